// Classic filters on UDP, TCP and Unix sockets: what they see, keep, cut and drop.
#include "check.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_GET_FILTER
#define SO_GET_FILTER SO_ATTACH_FILTER
#endif
#ifndef SO_ATTACH_BPF
#define SO_ATTACH_BPF 50
#endif

#define KEEP(bytes) BPF_STMT(BPF_RET | BPF_K, bytes)

static char buffer[70000];

static int attach(int fd, const struct sock_filter *program, int len) {
    struct sock_fprog all = {len, (struct sock_filter *)program};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all);
}

static int keep(int fd, unsigned bytes) {
    struct sock_filter program[] = {KEEP(bytes)};
    return attach(fd, program, 1);
}

static int detach(int fd) {
    int nothing = 0;
    return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &nothing, sizeof nothing);
}

static int locked(int fd) {
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &value, &len) ? -1 : value;
}

static int lock(int fd, int value) {
    return setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &value, sizeof value);
}

/// An address of this machine, with a port of its own once bound.
struct sockaddr_storage name;
static socklen_t name_len;

static int bound(int family, int type) {
    struct sockaddr_in *v4 = (void *)&name;
    struct sockaddr_in6 *v6 = (void *)&name;
    int fd = socket(family, type, 0);
    memset(&name, 0, sizeof name);
    name.ss_family = family;
    if (family == AF_INET) v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (family == AF_INET6) v6->sin6_addr = in6addr_loopback;
    name_len = family == AF_INET ? sizeof *v4 : sizeof *v6;
    if (bind(fd, (void *)&name, name_len) || getsockname(fd, (void *)&name, &name_len)) return -1;
    return fd;
}

static int pass(int from, int to, int bytes) {
    if (sendto(from, buffer, bytes, 0, (void *)&name, name_len) != bytes) return -2;
    return recv(to, buffer, sizeof buffer, MSG_DONTWAIT);
}

static void a_udp_filter_drops_cuts_and_keeps(void) {
    static const int families[] = {AF_INET, AF_INET6};
    for (int i = 0; i < 2; i++) {
        int to = bound(families[i], SOCK_DGRAM), from = socket(families[i], SOCK_DGRAM, 0);
        CHECK(to >= 0 && pass(from, to, 6) == 6);
        CHECK(!keep(to, 0) && pass(from, to, 6) == -1 && errno == EAGAIN);
        CHECK(!keep(to, 1) && pass(from, to, 6) == 0 && !keep(to, 8) && pass(from, to, 6) == 0);
        CHECK(!keep(to, 12) && pass(from, to, 6) == 4 && !keep(to, 100) && pass(from, to, 6) == 6);
        CHECK(!keep(to, 1008) && pass(from, to, 60000) == 1000);
        CHECK(!detach(to) && pass(from, to, 60000) == 60000);
        int error;
        socklen_t len = sizeof error;
        CHECK(!getsockopt(from, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
        close(to), close(from);
    }
}

/// What a filter finds at an offset, in its low byte; -1 if nothing.
static int seen(int from, int to, unsigned offset) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offset),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 255),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 9),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    if (attach(to, program, 4)) return -2;
    int got = pass(from, to, 300);
    return got < 0 ? -1 : got - 1;
}

static void a_udp_filter_sees_headers_and_ancillary_words(void) {
    int to = bound(AF_INET, SOCK_DGRAM), from = socket(AF_INET, SOCK_DGRAM, 0);
    int port = ntohs(((struct sockaddr_in *)&name)->sin_port);
    memset(buffer, 77, sizeof buffer);
    CHECK(seen(from, to, 2) == port >> 8 && seen(from, to, 3) == (port & 255));
    CHECK(seen(from, to, 4) == 308 >> 8 && seen(from, to, 5) == (308 & 255));
    CHECK(seen(from, to, 8) == 77 && seen(from, to, 307) == 77 && seen(from, to, 308) == -1);
    CHECK(seen(from, to, SKF_NET_OFF) == 0x45 && seen(from, to, SKF_NET_OFF + 9) == 17);
    CHECK(seen(from, to, SKF_NET_OFF + 16) == 127 && seen(from, to, SKF_NET_OFF + 19) == 1);
    CHECK(seen(from, to, SKF_NET_OFF + 20 + 3) == (port & 255));
    CHECK(seen(from, to, SKF_LL_OFF + 12) == 8 && seen(from, to, SKF_LL_OFF + 13) == 0);
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_PROTOCOL) == 0);
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_PKTTYPE) == 0);
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_IFINDEX) == 1);
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_HATYPE) == (772 & 255));
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_PAY_OFFSET) == 8);
    close(to), close(from);
    to = bound(AF_INET6, SOCK_DGRAM), from = socket(AF_INET6, SOCK_DGRAM, 0);
    CHECK(seen(from, to, SKF_NET_OFF) >> 4 == 6 && seen(from, to, SKF_NET_OFF + 6) == 17);
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_PROTOCOL) == 0xdd);
    CHECK(seen(from, to, SKF_AD_OFF + SKF_AD_PAY_OFFSET) == 8);
    close(to), close(from);
}

static void a_filter_is_told_locked_and_taken_away(void) {
    static const int kinds[][2] = {{AF_INET, SOCK_DGRAM}, {AF_INET6, SOCK_STREAM},
        {AF_UNIX, SOCK_STREAM}, {AF_UNIX, SOCK_DGRAM}, {AF_UNIX, SOCK_SEQPACKET}};
    struct sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), KEEP(7)}, told[4];
    struct sock_filter wrong = {0xffff, 0, 0, 0};
    for (int i = 0; i < 5; i++) {
        int fd = socket(kinds[i][0], kinds[i][1], 0), no_program = -1, value = 0;
        socklen_t len = 0, int_len = sizeof value;
        CHECK(detach(fd) == -1 && errno == ENOENT);
        CHECK(!getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, told, &len) && len == 0);
        CHECK(attach(fd, &wrong, 1) == -1 && errno == EINVAL);
        CHECK(attach(fd, program, 0) == -1 && errno == EINVAL);
        CHECK(attach(fd, (void *)16, 2) == -1 && errno == EFAULT);
        CHECK(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, program, 8) == -1 && errno == EINVAL);
        CHECK(!attach(fd, program, 2));
        CHECK(!getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &len) && len == 2);
        len = 1;
        CHECK(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, told, &len) == -1 && errno == EINVAL);
        len = 4;
        CHECK(!getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, told, &len) && len == 2);
        CHECK(!memcmp(told, program, sizeof program) && locked(fd) == 0);
        CHECK(!lock(fd, 0) && !lock(fd, 1) && locked(fd) == 1 && !lock(fd, 1));
        CHECK(lock(fd, 0) == -1 && errno == EPERM && detach(fd) == -1 && errno == EPERM);
        CHECK(attach(fd, program, 2) == -1 && errno == EPERM);
        CHECK(setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &no_program, 4) == -1);
        CHECK(!getsockopt(fd, SOL_SOCKET, SO_BPF_EXTENSIONS, &value, &int_len) && value == 64);
        close(fd);
    }
}

static void a_unix_message_is_cut_or_gone_and_the_sender_does_not_hear(void) {
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        int s[2], count;
        CHECK(!socketpair(AF_UNIX, types[i], 0, s));
        CHECK(!keep(s[1], 0));
        for (int round = 0; round < 1000; round++) CHECK(send(s[0], buffer, 5000, 0) == 5000);
        CHECK(!ioctl(s[0], TIOCOUTQ, &count) && count == 0);
        CHECK(recv(s[1], buffer, 100, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        CHECK(!keep(s[1], 3) && send(s[0], "abcdef", 6, 0) == 6 && send(s[1], "abcdef", 6, 0) == 6);
        CHECK(recv(s[1], buffer, 100, 0) == 3 && !memcmp(buffer, "abc", 3));
        CHECK(recv(s[0], buffer, 100, 0) == 6);
        CHECK(!keep(s[1], 5000));
        for (int at = 0; at < 60000; at++) buffer[at] = at >> 8;
        CHECK(send(s[0], "x", 1, 0) == 1 && send(s[0], buffer, 60000, 0) == 60000);
        CHECK(recv(s[1], buffer, 100, 0) == 1 && recv(s[1], buffer, sizeof buffer, 0) == 5000);
        CHECK(buffer[4999] == 4999 >> 8);
        struct sock_filter by_byte[] = {
            BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20000),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 5, 0, 1),
            KEEP(30000),
            KEEP(0),
        };
        CHECK(!attach(s[1], by_byte, 4));
        memset(buffer, 0, sizeof buffer);
        CHECK(send(s[0], buffer, 40000, 0) == 40000 && send(s[0], buffer, 10, 0) == 10);
        buffer[20000] = 5;
        CHECK(send(s[0], buffer, 40000, 0) == 40000);
        CHECK(recv(s[1], buffer, sizeof buffer, MSG_DONTWAIT) == 30000 && buffer[20000] == 5);
        CHECK(recv(s[1], buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        close(s[0]), close(s[1]);
    }
}

static void descriptors_of_a_dropped_message_are_closed(void) {
    int s[2], p[2];
    char byte, room[CMSG_SPACE(sizeof(int))] = {0};
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !pipe(p) && !keep(s[1], 0));
    struct iovec bytes = {"x", 1};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room,
        .msg_controllen = sizeof room};
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &p[1], sizeof(int));
    CHECK(sendmsg(s[0], &message, 0) == 1);
    close(p[1]);
    CHECK(read(p[0], &byte, 1) == 0);
    close(s[0]), close(s[1]), close(p[0]);
}

static void a_unix_stream_is_not_filtered(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !keep(s[1], 0));
    CHECK(send(s[0], "abc", 3, 0) == 3 && recv(s[1], buffer, 10, MSG_DONTWAIT) == 3);
    close(s[0]), close(s[1]);
}

static int becomes(int fd, short events, int patience_ms) {
    struct pollfd p = {fd, events, 0};
    return poll(&p, 1, patience_ms) == 1 && (p.revents & events);
}

static void a_listener_that_drops_all_hears_nothing_until_it_lets_go(void) {
    int listener = bound(AF_INET, SOCK_STREAM);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(!listen(listener, 5) && !keep(listener, 0));
    CHECK(connect(client, (void *)&name, name_len) == -1 && errno == EINPROGRESS);
    CHECK(!becomes(client, POLLOUT, 300));
    CHECK(!detach(listener) && becomes(client, POLLOUT, 60000));
    int server = accept(listener, NULL, NULL);
    CHECK(server >= 0 && write(client, "abc", 3) == 3 && read(server, buffer, 9) == 3);
    close(listener), close(client), close(server);
}

static void a_connection_has_its_listeners_filter_and_lock(void) {
    int listener = bound(AF_INET, SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!keep(listener, 0x40000) && !lock(listener, 1) && !listen(listener, 5));
    CHECK(!connect(client, (void *)&name, name_len));
    int server = accept(listener, NULL, NULL);
    socklen_t len = 0;
    CHECK(server >= 0 && !getsockopt(server, SOL_SOCKET, SO_GET_FILTER, NULL, &len) && len == 1);
    CHECK(locked(server) == 1 && detach(server) == -1 && errno == EPERM && detach(client) == -1);
    close(listener);
    CHECK(write(client, "abc", 3) == 3 && read(server, buffer, 9) == 3);
    close(client), close(server);
}

static int connection(int ends[2], int family) {
    int listener = bound(family, SOCK_STREAM);
    ends[0] = socket(family, SOCK_STREAM, 0);
    if (listen(listener, 5) || connect(ends[0], (void *)&name, name_len)) return -1;
    ends[1] = accept(listener, NULL, NULL);
    return close(listener) || ends[1] < 0 ? -1 : 0;
}

static void segments_that_are_dropped_come_again(void) {
    static const int families[] = {AF_INET, AF_INET6};
    for (int i = 0; i < 2; i++) {
        int s[2];
        CHECK(!connection(s, families[i]) && !keep(s[1], 0));
        CHECK(write(s[0], "abcdef", 6) == 6 && !becomes(s[1], POLLIN, 200));
        CHECK(!detach(s[1]) && becomes(s[1], POLLIN, 60000) && read(s[1], buffer, 9) == 6);
        CHECK(!memcmp(buffer, "abcdef", 6));
        close(s[0]);
        CHECK(read(s[1], buffer, 9) == 0);
        close(s[1]);
    }
}

static void segments_that_are_cut_arrive_piece_by_piece_to_their_end(void) {
    // The header, whose length is in its thirteenth byte, and two bytes more.
    struct sock_filter header_and_two[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
        BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 2),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    int s[2], got = 0, count;
    CHECK(!connection(s, AF_INET) && !attach(s[1], header_and_two, 5));
    CHECK(write(s[0], "abcdef", 6) == 6 && !shutdown(s[0], SHUT_WR));
    while ((count = read(s[1], buffer + got, 9)) > 0) got += count;
    CHECK(count == 0 && got == 6 && !memcmp(buffer, "abcdef", 6));
    CHECK(write(s[1], "back", 4) == 4 && read(s[0], buffer, 9) == 4);
    close(s[1]);
    CHECK(read(s[0], buffer, 9) == 0);
    close(s[0]);
}

static void filters_come_and_go_while_bytes_pass(void) {
    int s[2], status;
    CHECK(!connection(s, AF_INET));
    pid_t child = fork();
    if (!child) {
        close(s[1]);
        memset(buffer, 1, sizeof buffer);
        for (int i = 0; i < 200; i++)
            if (write(s[0], buffer, 50000) != 50000) _exit(1);
        _exit(0);
    }
    close(s[0]);
    long total = 0, count;
    for (int round = 0; (count = read(s[1], buffer, sizeof buffer)) > 0; round++) {
        total += count;
        CHECK(round % 2 ? !detach(s[1]) : !keep(s[1], 0x40000));
    }
    CHECK(total == 10000000 && waitpid(child, &status, 0) == child && !status);
    close(s[1]);
}

static void a_user_may_filter_his_own_sockets(void) {
    pid_t child = fork();
    int status;
    if (!child) {
        if (setuid(65534)) _exit(1);
        int to = bound(AF_INET, SOCK_DGRAM), from = socket(AF_INET, SOCK_DGRAM, 0);
        _exit(!(!keep(to, 10) && pass(from, to, 6) == 2 && !lock(to, 1) && detach(to) == -1));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void long_filters_on_many_sockets_are_given_back(void) {
    static struct sock_filter longest[4096];
    for (int i = 0; i < 4095; i++) longest[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, i);
    longest[4095] = (struct sock_filter)KEEP(8);
    for (int round = 0; round < 500; round++) {
        int to = bound(AF_INET, SOCK_DGRAM), from = socket(AF_INET, SOCK_DGRAM, 0);
        int refused = attach(to, longest, 4096);
        // Linux has a limit for a socket's options, which a program of this length may pass.
        CHECK(!refused || errno == ENOMEM);
        CHECK(refused || pass(from, to, 6) == 0);
        close(to), close(from);
    }
}

int main(void) {
    TEST(a_udp_filter_drops_cuts_and_keeps);
    TEST(a_udp_filter_sees_headers_and_ancillary_words);
    TEST(a_filter_is_told_locked_and_taken_away);
    TEST(a_unix_message_is_cut_or_gone_and_the_sender_does_not_hear);
    TEST(descriptors_of_a_dropped_message_are_closed);
    TEST(a_unix_stream_is_not_filtered);
    TEST(a_listener_that_drops_all_hears_nothing_until_it_lets_go);
    TEST(a_connection_has_its_listeners_filter_and_lock);
    TEST(segments_that_are_dropped_come_again);
    TEST(segments_that_are_cut_arrive_piece_by_piece_to_their_end);
    TEST(filters_come_and_go_while_bytes_pass);
    TEST(a_user_may_filter_his_own_sockets);
    TEST(long_filters_on_many_sockets_are_given_back);
    return check_status();
}
