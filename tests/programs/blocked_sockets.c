// Calls on sockets that wait, and what another thread's shutdown does to them.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static volatile sig_atomic_t broken_pipes;
static void count(int signal) { broken_pipes += signal == SIGPIPE; }

static struct sockaddr_in name;

static int tcp_listener(void) {
    socklen_t len = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (void *)&name, len) || listen(fd, 4) || getsockname(fd, (void *)&name, &len)) abort();
    return fd;
}

static void tcp_pair(int ends[2]) {
    int server = tcp_listener();
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (void *)&name, sizeof name)) abort();
    ends[1] = accept(server, NULL, NULL);
    close(server);
}

static int unix_listener(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (void *)&name, sizeof(sa_family_t)) || listen(fd, 4)) abort();
    return fd;
}

static struct call {
    ssize_t (*run)(int fd);
    int fd;
    atomic_int thread, is_over;
    ssize_t result;
    int error, signals;
} call;

static void *make(void *unused) {
    (void)unused;
    atomic_store(&call.thread, (int)syscall(SYS_gettid));
    errno = 0, broken_pipes = 0;
    call.result = call.run(call.fd);
    call.error = errno, call.signals = broken_pipes;
    atomic_store(&call.is_over, 1);
    return NULL;
}

// Whether the thread sleeps.
static int sleeps(int thread) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1) state = 0;
    if (file) fclose(file);
    return state == 'S';
}

// Runs a call until it waits, then shuts `fd` down; false if it waits for ever.
static int ends_by(ssize_t (*run)(int), int fd, int how) {
    pthread_t thread;
    call.run = run, call.fd = fd;
    atomic_store(&call.thread, 0), atomic_store(&call.is_over, 0);
    pthread_create(&thread, NULL, make, NULL);
    while (!atomic_load(&call.thread) || !sleeps(call.thread)) usleep(1000);
    shutdown(fd, how);
    for (int turn = 0; turn < 5000 && !atomic_load(&call.is_over); turn++) usleep(1000);
    if (!atomic_load(&call.is_over)) return 0;
    pthread_join(thread, NULL);
    return 1;
}

static ssize_t send_much(int fd) {
    static char bytes[1 << 16];
    ssize_t sent;
    while ((sent = write(fd, bytes, sizeof bytes)) == sizeof bytes) {}
    return sent < 0 ? sent : write(fd, bytes, 1);
}
static ssize_t receive(int fd) { char byte; return read(fd, &byte, 1); }
static ssize_t receive_from(int fd) { char byte; return recvfrom(fd, &byte, 1, 0, NULL, NULL); }
static ssize_t take(int fd) { return accept(fd, NULL, NULL); }

static void of_connections(const char *kind, int (*pair)(int ends[2])) {
    int ends[2];
    for (int how = SHUT_WR; how <= SHUT_RDWR; how++) {
        pair(ends);
        EXPECT(ends_by(send_much, ends[0], how) && call.result < 0 && call.error == EPIPE &&
                   call.signals == 1,
               "shutdown(%d) ends a %s send that waits with EPIPE and SIGPIPE", how, kind);
        close(ends[0]), close(ends[1]);
    }
    for (int how = SHUT_RD; how <= SHUT_RDWR; how += 2) {
        pair(ends);
        EXPECT(ends_by(receive, ends[0], how) && call.result == 0,
               "shutdown(%d) ends a %s receive that waits", how, kind);
        close(ends[0]), close(ends[1]);
    }
    pair(ends);
    char got[8] = {0};
    EXPECT(write(ends[1], "abc", 3) == 3 && poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, -1) == 1 &&
               shutdown(ends[0], SHUT_RD) == 0 && read(ends[0], got, 8) == 3 && got[2] == 'c' &&
               read(ends[0], got, 8) == 0,
           "what a %s connection holds can be read after shutdown(SHUT_RD)", kind);
    close(ends[0]), close(ends[1]);
}

static int pair_of_tcp(int ends[2]) { tcp_pair(ends); return 0; }
static int pair_of_unix(int ends[2]) { return socketpair(AF_UNIX, SOCK_STREAM, 0, ends); }

static void of_listeners(void) {
    int fd = tcp_listener();
    EXPECT(ends_by(take, fd, SHUT_RD) && call.result < 0 && call.error == EINVAL,
           "shutdown(SHUT_RD) ends a TCP accept that waits");
    int client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(connect(client, (void *)&name, sizeof name) < 0 && errno == ECONNREFUSED,
           "a listener that was shut down refuses");
    socklen_t len = sizeof name;
    EXPECT(listen(fd, 1) == 0 && getsockname(fd, (void *)&name, &len) == 0 && connect(client, (void *)&name, sizeof name) == 0,
           "and listens again when it is asked to");
    close(client), close(fd);
    fd = tcp_listener();
    client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(shutdown(fd, SHUT_WR) == 0 && connect(client, (void *)&name, sizeof name) == 0,
           "shutdown(SHUT_WR) means nothing to a listener");
    EXPECT(shutdown(fd, SHUT_RDWR) == 0 && poll(&(struct pollfd){client, POLLIN, 0}, 1, -1) == 1 &&
               recv(client, &client, 1, 0) < 0 && errno == ECONNRESET,
           "shutdown of a listener resets what waits to be accepted");
    close(client), close(fd);
    fd = unix_listener();
    EXPECT(ends_by(take, fd, SHUT_RD) && call.result < 0 && call.error == EINVAL,
           "shutdown(SHUT_RD) ends a Unix accept that waits");
    struct sockaddr_un path;
    len = sizeof path;
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(getsockname(fd, (void *)&path, &len) == 0 && connect(client, (void *)&path, len) < 0 &&
               errno == ECONNREFUSED,
           "a Unix listener that was shut down refuses");
    close(client), close(fd);
}

static void of_datagrams(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof any;
    bind(fd, (void *)&any, len), getsockname(fd, (void *)&any, &len);
    EXPECT(shutdown(fd, SHUT_RD) < 0 && errno == ENOTCONN,
           "shutdown of a UDP socket without a peer is ENOTCONN");
    close(fd);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    bind(fd, (void *)&any, len);
    EXPECT(ends_by(receive_from, fd, SHUT_RDWR) && call.result == 0,
           "and ends a receive that waits all the same");
    EXPECT(recv(fd, &len, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN,
           "a receive that may not wait is EAGAIN as before");
    EXPECT(sendto(fd, "x", 1, MSG_NOSIGNAL, (void *)&any, sizeof any) < 0 && errno == EPIPE,
           "nothing can be sent after shutdown(SHUT_WR)");
    close(fd);
}

int main(void) {
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGPIPE, &action, NULL);
    of_connections("TCP", pair_of_tcp);
    of_connections("Unix", pair_of_unix);
    of_listeners();
    of_datagrams();
    return check_status();
}
