// Calls on sockets that a signal's handler interrupts: with SA_RESTART they go on, without they say EINTR, and so they do
// with a limit on their time (signal(7)).
#include "check.h"
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static struct sockaddr_in name;
static atomic_int handled;

static void handle(int signal) {
    (void)signal;
    atomic_fetch_add(&handled, 1);
}

static void catch_with(int flags) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
    atomic_store(&handled, 0);
}

static int listener(void) {
    socklen_t len = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (void *)&name, len) || listen(fd, 4) || getsockname(fd, (void *)&name, &len)) abort();
    return fd;
}

static void pair(int ends[2]) {
    int server = listener();
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[0], (void *)&name, sizeof name)) abort();
    ends[1] = accept(server, NULL, NULL);
    close(server);
}

static struct call {
    long (*run)(int fd);
    int fd, error;
    long result;
    atomic_int thread, is_over;
} call;

static void *make(void *unused) {
    (void)unused;
    atomic_store(&call.thread, (int)syscall(SYS_gettid));
    errno = 0;
    call.result = call.run(call.fd);
    call.error = errno;
    atomic_store(&call.is_over, 1);
    return NULL;
}

static int sleeps(void) {
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&call.thread));
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d %*s %c", &state) != 1) state = 0;
    if (file) fclose(file);
    return state == 'S';
}

static void until_asleep(void) {
    for (int calm = 0; calm < 3 && !atomic_load(&call.is_over); usleep(5000)) calm = sleeps() ? calm + 1 : 0;
}

static pthread_t begin(long (*run)(int fd), int fd) {
    pthread_t thread;
    call = (struct call){.run = run, .fd = fd};
    pthread_create(&thread, NULL, make, NULL);
    while (!atomic_load(&call.thread)) usleep(1000);
    until_asleep();
    return thread;
}

// The handler has run in the thread that waits, which waits again or has come back.
static void interrupt(pthread_t thread) {
    pthread_kill(thread, SIGUSR1);
    while (!atomic_load(&handled)) usleep(1000);
    until_asleep();
}

static long receives(int fd) {
    char byte;
    return recv(fd, &byte, 1, 0);
}

static long reads(int fd) {
    char byte;
    return read(fd, &byte, 1);
}

static long accepts(int fd) { return accept(fd, NULL, NULL) >= 0; }

static long gets_datagram(int fd) {
    char byte;
    return recvfrom(fd, &byte, 1, 0, NULL, NULL);
}

static void calls_that_receive_go_on(void) {
    long (*const ways[])(int) = {receives, reads};
    for (int i = 0; i < 2; i++) {
        int ends[2];
        pair(ends);
        catch_with(SA_RESTART);
        pthread_t thread = begin(ways[i], ends[0]);
        interrupt(thread);
        CHECK(!atomic_load(&call.is_over));
        CHECK(send(ends[1], "x", 1, 0) == 1);
        pthread_join(thread, NULL);
        CHECK(call.result == 1 && atomic_load(&handled) == 1);
        close(ends[0]), close(ends[1]);
    }
}

static void an_accept_goes_on(void) {
    int server = listener();
    catch_with(SA_RESTART);
    pthread_t thread = begin(accepts, server);
    interrupt(thread);
    CHECK(!atomic_load(&call.is_over));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(client, (void *)&name, sizeof name) == 0);
    pthread_join(thread, NULL);
    CHECK(call.result == 1);
    close(client), close(server);
}

static void a_datagram_is_waited_for_again(void) {
    socklen_t len = sizeof name;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(!bind(fd, (void *)&name, len) && !getsockname(fd, (void *)&name, &len));
    catch_with(SA_RESTART);
    pthread_t thread = begin(gets_datagram, fd);
    interrupt(thread);
    CHECK(!atomic_load(&call.is_over));
    CHECK(sendto(other, "x", 1, 0, (void *)&name, len) == 1);
    pthread_join(thread, NULL);
    CHECK(call.result == 1);
    close(fd), close(other);
}

static void without_it_calls_say_so(void) {
    int ends[2];
    pair(ends);
    catch_with(0);
    pthread_t thread = begin(receives, ends[0]);
    interrupt(thread);
    pthread_join(thread, NULL);
    CHECK(call.result == -1 && call.error == EINTR);
    int server = listener();
    catch_with(0);
    thread = begin(accepts, server);
    interrupt(thread);
    pthread_join(thread, NULL);
    CHECK(call.result == 0 && call.error == EINTR);
    close(ends[0]), close(ends[1]), close(server);
}

static void with_a_limit_they_say_so_anyway(void) {
    int ends[2];
    struct timeval limit = {60, 0};
    pair(ends);
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    catch_with(SA_RESTART);
    pthread_t thread = begin(receives, ends[0]);
    interrupt(thread);
    pthread_join(thread, NULL);
    CHECK(call.result == -1 && call.error == EINTR);
    close(ends[0]), close(ends[1]);
}

int main(void) {
    TEST(calls_that_receive_go_on);
    TEST(an_accept_goes_on);
    TEST(a_datagram_is_waited_for_again);
    TEST(without_it_calls_say_so);
    TEST(with_a_limit_they_say_so_anyway);
    return check_status();
}
