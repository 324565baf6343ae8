// TCP sockets over loopback: what a server and its client rely on.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static struct sockaddr_in bound(int fd) {
    struct sockaddr_in name = {0};
    socklen_t len = sizeof name;
    getsockname(fd, (struct sockaddr *)&name, &len);
    return name;
}

static int listener(int backlog) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&any, sizeof any) || listen(fd, backlog)) return -1;
    return fd;
}

static int dial(int server) {
    struct sockaddr_in name = bound(server);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&name, sizeof name) ? -1 : fd;
}

static void pair(int ends[2]) {
    int server = listener(8);
    ends[0] = dial(server);
    ends[1] = accept(server, NULL, NULL);
    close(server);
}

static void names_and_states(void) {
    int server = listener(8), fd = socket(AF_INET, SOCK_STREAM, 0);
    char byte;
    EXPECT(server >= 0 && bound(server).sin_port != 0, "port 0 becomes a free port");
    EXPECT(send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE,
          "sending without a connection is EPIPE");
    EXPECT(recv(fd, &byte, 1, 0) < 0 && errno == ENOTCONN, "receiving without one is ENOTCONN");
    struct sockaddr_in name = bound(server);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(bind(other, (struct sockaddr *)&name, sizeof name) < 0 && errno == EADDRINUSE,
          "a taken port is EADDRINUSE");
    close(server);
    EXPECT(connect(fd, (struct sockaddr *)&name, sizeof name) < 0 && errno == ECONNREFUSED,
          "a closed port refuses");
    close(fd), close(other);
    EXPECT(socket(AF_INET, SOCK_STREAM, 262) >= 0 || errno == EPROTONOSUPPORT,
          "MPTCP works or is EPROTONOSUPPORT, so that Go falls back");
}

static void bytes_flow(void) {
    int e[2];
    char buffer[64];
    pair(e);
    EXPECT(write(e[0], "hello", 5) == 5 && read(e[1], buffer, sizeof buffer) == 5 &&
              !memcmp(buffer, "hello", 5), "bytes arrive");
    struct iovec parts[2] = {{"ab", 2}, {"cde", 3}};
    EXPECT(writev(e[1], parts, 2) == 5 && recv(e[0], buffer, 2, MSG_PEEK) == 2 &&
              read(e[0], buffer, sizeof buffer) == 5 && !memcmp(buffer, "abcde", 5),
          "writev and MSG_PEEK");
    EXPECT(recv(e[0], buffer, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN, "MSG_DONTWAIT is EAGAIN");
    int waiting = 0;
    (void)!write(e[0], "12345", 5);
    poll(&(struct pollfd){e[1], POLLIN, 0}, 1, 1000);
    EXPECT(ioctl(e[1], FIONREAD, &waiting) == 0 && waiting == 5, "FIONREAD counts");
    EXPECT(shutdown(e[0], SHUT_WR) == 0 && read(e[1], buffer, sizeof buffer) == 5 &&
              read(e[1], buffer, 1) == 0, "a half close is the end of the stream");
    EXPECT(write(e[1], "z", 1) == 1 && read(e[0], buffer, 1) == 1, "the other half still works");
    struct pollfd ready = {e[1], POLLIN | POLLRDHUP, 0};
    EXPECT(poll(&ready, 1, 1000) == 1 && ready.revents & POLLRDHUP, "POLLRDHUP is seen");
    close(e[0]), close(e[1]);
}

// What is there for who asks for reading only; waits so long for something.
static short to_read(int fd, int wait_ms) {
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLRDHUP};
    return poll(&asked, 1, wait_ms) == 1 ? asked.revents : 0;
}

static void readiness_follows_each_read(void) {
    int ends[2];
    char got[4];
    pair(ends);
    for (int turn = 0; turn < 3; turn++) {
        EXPECT(to_read(ends[1], 0) == 0, "nothing is there to read");
        EXPECT(send(ends[0], "four", 4, 0) == 4 && to_read(ends[1], 1000) == POLLIN,
              "bytes that arrive can be read");
        EXPECT(recv(ends[1], got, 2, 0) == 2 && to_read(ends[1], 0) == POLLIN,
              "what was left can be read");
        EXPECT(recv(ends[1], got, 4, 0) == 2, "the rest is read");
    }
    EXPECT(shutdown(ends[0], SHUT_WR) == 0 && to_read(ends[1], 1000) == (POLLIN | POLLRDHUP),
          "the end of the stream can be read");
    EXPECT(recv(ends[1], got, 4, 0) == 0 && shutdown(ends[1], SHUT_WR) == 0 &&
              to_read(ends[1], 1000) == (POLLIN | POLLRDHUP | POLLHUP),
          "both ends make a hang-up");
    close(ends[0]), close(ends[1]);
    pair(ends);
    EXPECT(send(ends[0], "four", 4, 0) == 4 && recv(ends[1], got, 4, MSG_WAITALL) == 4,
          "a connection that was read has nothing left");
    struct linger at_once = {.l_onoff = 1};
    setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(ends[0]);
    EXPECT(to_read(ends[1], 1000) & POLLERR, "its reset is heard of");
    close(ends[1]);
}

static void resets(void) {
    int e[2];
    char byte;
    struct linger now = {1, 0};
    pair(e);
    setsockopt(e[0], SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(e[0]);
    poll(&(struct pollfd){e[1], POLLIN, 0}, 1, 1000);
    EXPECT(read(e[1], &byte, 1) < 0 && errno == ECONNRESET, "linger 0 resets the peer");
    EXPECT(send(e[1], "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE, "then sending is EPIPE");
    close(e[1]);
}

static void options(void) {
    int e[2], value = 1;
    socklen_t len = sizeof value;
    pair(e);
    static const struct { int level, name; const char *what; } flags[] = {
        {IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY"}, {IPPROTO_TCP, TCP_CORK, "TCP_CORK"},
        {SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE"}, {SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR"},
        {SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT"}, {IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE"},
        {IPPROTO_TCP, TCP_KEEPINTVL, "TCP_KEEPINTVL"}, {IPPROTO_TCP, TCP_KEEPCNT, "TCP_KEEPCNT"},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int set = 1, got = 0;
        len = sizeof got;
        EXPECT(!setsockopt(e[0], flags[i].level, flags[i].name, &set, sizeof set) &&
                  !getsockopt(e[0], flags[i].level, flags[i].name, &got, &len) && got != 0,
              "%s is kept", flags[i].what);
    }
    len = sizeof value;
    EXPECT(!getsockopt(e[0], SOL_SOCKET, SO_ERROR, &value, &len) && value == 0, "SO_ERROR is 0");
    EXPECT(!getsockopt(e[0], SOL_SOCKET, SO_TYPE, &value, &len) && value == SOCK_STREAM, "SO_TYPE");
    EXPECT(!getsockopt(e[0], SOL_SOCKET, SO_SNDBUF, &value, &len) && value > 4096, "SO_SNDBUF");
    struct timeval soon = {0, 20000};
    char byte;
    setsockopt(e[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    EXPECT(read(e[0], &byte, 1) < 0 && errno == EAGAIN, "SO_RCVTIMEO ends a read with EAGAIN");
    EXPECT(setsockopt(e[0], IPPROTO_TCP, 9999, &value, sizeof value) < 0 && errno == ENOPROTOOPT,
          "an unknown option is ENOPROTOOPT");
    struct tcp_info info;
    len = sizeof info;
    EXPECT(!getsockopt(e[0], IPPROTO_TCP, TCP_INFO, &info, &len) && info.tcpi_state == 1,
          "TCP_INFO says ESTABLISHED");
    close(e[0]), close(e[1]);
}

static void nonblocking_connect(void) {
    int server = listener(8), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in name = bound(server);
    struct pollfd ready = {fd, POLLOUT, 0};
    int error = -1;
    socklen_t len = sizeof error;
    EXPECT(connect(fd, (struct sockaddr *)&name, sizeof name) < 0 && errno == EINPROGRESS,
          "a non-blocking connect to ourselves is under way too");
    EXPECT(poll(&ready, 1, 1000) == 1 && ready.revents & POLLOUT, "it becomes writable");
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && error == 0, "without an error");
    EXPECT(connect(fd, (struct sockaddr *)&name, sizeof name) == 0, "connecting again tells of it once");
    EXPECT(connect(fd, (struct sockaddr *)&name, sizeof name) < 0 && errno == EISCONN,
          "then it is EISCONN");
    struct tcp_info info;
    socklen_t room = sizeof info;
    EXPECT(!getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &room) && info.tcpi_state == 10 &&
              info.tcpi_unacked == 1 && info.tcpi_sacked == 8,
          "TCP_INFO of a listener tells how many wait, and how many may");
    EXPECT(send(server, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE, "sending by a listener is EPIPE");
    int accepted = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    EXPECT(accepted >= 0 && fcntl(accepted, F_GETFL) & O_NONBLOCK, "accept4 sets its flags");
    EXPECT(fcntl(server, F_SETFL, O_NONBLOCK) == 0 && accept(server, NULL, NULL) < 0 &&
              errno == EAGAIN, "nobody waits: EAGAIN");
    close(fd), close(accepted), close(server);
}

enum { BULK_BYTES = 8 << 20 };

static void *send_bulk(void *fd) {
    static unsigned char block[65536];
    uint32_t state = 1;
    for (size_t sent = 0; sent < BULK_BYTES;) {
        for (size_t i = 0; i < sizeof block; i++) {
            state = state * 1664525 + 1013904223;
            block[i] = state >> 24;
        }
        for (size_t done = 0; done < sizeof block;) {
            ssize_t n = write(*(int *)fd, block + done, sizeof block - done);
            if (n <= 0) return NULL;
            done += (size_t)n;
        }
        sent += sizeof block;
    }
    shutdown(*(int *)fd, SHUT_WR);
    return NULL;
}

static void bulk(void) {
    int e[2];
    pthread_t sender;
    static unsigned char block[50000];
    uint32_t state = 1;
    size_t total = 0, wrong = 0;
    pair(e);
    pthread_create(&sender, NULL, send_bulk, &e[0]);
    for (ssize_t n; (n = read(e[1], block, sizeof block)) > 0; total += (size_t)n) {
        for (ssize_t i = 0; i < n; i++) {
            state = state * 1664525 + 1013904223;
            wrong += block[i] != state >> 24;
        }
    }
    pthread_join(sender, NULL);
    EXPECT(total == BULK_BYTES && wrong == 0, "8 MiB arrive in order and unchanged");
    close(e[0]), close(e[1]);
}

static void many_connections(void) {
    enum { COUNT = 300 };
    int server = listener(512), client[COUNT], accepted[COUNT], good = 0;
    int epoll = epoll_create1(0);
    for (int i = 0; i < COUNT; i++) {
        client[i] = dial(server);
        accepted[i] = accept(server, NULL, NULL);
        struct epoll_event event = {EPOLLIN | EPOLLET, {.u32 = (uint32_t)i}};
        epoll_ctl(epoll, EPOLL_CTL_ADD, accepted[i], &event);
    }
    for (int i = 0; i < COUNT; i++) (void)!write(client[i], &i, sizeof i);
    struct epoll_event events[64];
    for (int seen = 0, n; seen < COUNT && (n = epoll_wait(epoll, events, 64, 1000)) > 0; seen += n) {
        for (int k = 0; k < n; k++) {
            int value = -1;
            (void)!read(accepted[events[k].data.u32], &value, sizeof value);
            good += value == (int)events[k].data.u32;
        }
    }
    EXPECT(good == COUNT, "epoll reports 300 connections once each");
    for (int i = 0; i < COUNT; i++) close(client[i]), close(accepted[i]);
    close(epoll), close(server);
}

static void reconnects(void) {
    int server = listener(64), good = 0;
    for (int i = 0; i < 2000; i++) {
        int c = dial(server), a = accept(server, NULL, NULL);
        char byte = 0;
        good += write(c, "q", 1) == 1 && read(a, &byte, 1) == 1 && byte == 'q';
        close(a), close(c);
    }
    EXPECT(good == 2000, "2000 connections one after the other succeed");
    close(server);
}

static void ipv6_sockets_take_ipv4(void) {
    int fd = socket(AF_INET6, SOCK_STREAM, 0), off = 0;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    EXPECT(fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof any) && !listen(fd, 4),
          "an IPv6 socket binds to [::]");
    socklen_t len = sizeof any;
    getsockname(fd, (struct sockaddr *)&any, &len);
    struct sockaddr_in v4 = {AF_INET, any.sin6_port, {htonl(INADDR_LOOPBACK)}, {0}};
    int c = socket(AF_INET, SOCK_STREAM, 0), is_reached = !connect(c, (struct sockaddr *)&v4, sizeof v4);
    EXPECT(is_reached, "an IPv4 client reaches it");
    struct sockaddr_in6 peer = {0};
    len = sizeof peer;
    int a = is_reached ? accept(fd, (struct sockaddr *)&peer, &len) : -1;
    EXPECT(a >= 0 && peer.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr),
          "and appears with a mapped address");
    close(a), close(c), close(fd);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    names_and_states();
    bytes_flow();
    readiness_follows_each_read();
    resets();
    options();
    nonblocking_connect();
    bulk();
    many_connections();
    reconnects();
    ipv6_sockets_take_ipv4();
    return check_status();
}
