// Sockets that are sent through each other in circles, and then closed: they are collected, so
// that descriptors can be sent for ever, and whoever is connected to them hears of their end.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int send_fd(int through, int fd) {
    char byte = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(through, &message, MSG_DONTWAIT) == 1 ? 0 : -1;
}

static int receive_fd(int from) {
    char byte, control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (recvmsg(from, &message, MSG_DONTWAIT) != 1) return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (header) memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

static void pair(int type, int ends[2]) { CHECK(socketpair(AF_UNIX, type, 0, ends) == 0); }

// Closes a socket that has nothing to do with anything: a chance to collect.
static void close_another(void) {
    int ends[2];
    pair(SOCK_STREAM, ends);
    close(ends[0]);
    close(ends[1]);
}

// Waits until the peer of `fd` is gone.
static int is_hung_up(int fd) {
    for (int i = 0; i < 50; i++) {
        struct pollfd polled = {fd, POLLRDHUP, 0};
        close_another();
        if (poll(&polled, 1, 20) == 1 && polled.revents & (POLLHUP | POLLRDHUP)) return 1;
    }
    return 0;
}

static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};

static void a_socket_in_its_own_queue_is_collected(void) {
    for (int i = 0; i < 2; i++) {
        int ends[2], watched[2];
        pair(types[i], ends);
        pair(SOCK_STREAM, watched);
        CHECK(send_fd(ends[0], ends[1]) == 0);
        CHECK(send_fd(ends[0], watched[1]) == 0);
        close(watched[1]);
        close(ends[0]);
        close(ends[1]);
        CHECK(is_hung_up(watched[0]));
        close(watched[0]);
    }
}

static void two_in_each_others_queue_are_collected(void) {
    for (int i = 0; i < 3; i++) {
        int a[2], b[2], watched[2];
        pair(types[i], a);
        pair(types[i], b);
        pair(SOCK_STREAM, watched);
        CHECK(send_fd(a[0], b[1]) == 0 && send_fd(b[0], a[1]) == 0);
        CHECK(send_fd(a[0], watched[1]) == 0);
        close(watched[1]);
        close(a[0]), close(a[1]), close(b[0]), close(b[1]);
        CHECK(is_hung_up(watched[0]));
        close(watched[0]);
    }
}

static void a_circle_with_one_end_open_is_kept(void) {
    int a[2], b[2];
    pair(SOCK_STREAM, a);
    pair(SOCK_STREAM, b);
    CHECK(send_fd(a[0], b[1]) == 0 && send_fd(b[0], a[1]) == 0);
    close(a[0]), close(b[0]), close(b[1]);
    for (int i = 0; i < 20; i++) close_another();
    int got = receive_fd(a[1]);
    CHECK(got >= 0);
    int again = receive_fd(got);
    CHECK(again >= 0);
    close(again), close(got), close(a[1]);
}

static void what_waits_to_be_accepted_is_collected_with_its_listener(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0circles"};
    socklen_t len = sizeof(sa_family_t) + 8;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    int client = socket(AF_UNIX, SOCK_STREAM, 0), watched[2];
    pair(SOCK_STREAM, watched);
    CHECK(bind(listener, (void *)&name, len) == 0 && listen(listener, 4) == 0);
    CHECK(connect(client, (void *)&name, len) == 0);
    CHECK(send_fd(client, listener) == 0 && send_fd(client, watched[1]) == 0);
    for (int i = 0; i < 5; i++) close_another();
    struct pollfd polled = {watched[0], POLLRDHUP, 0};
    close(watched[1]);
    CHECK(poll(&polled, 1, 0) == 0);
    close(listener);
    CHECK(is_hung_up(client) && is_hung_up(watched[0]));
    close(client), close(watched[0]);
}

static void a_connection_that_is_accepted_keeps_what_it_holds(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0kept"};
    socklen_t len = sizeof(sa_family_t) + 5;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&name, len) == 0 && listen(listener, 4) == 0);
    CHECK(connect(client, (void *)&name, len) == 0 && send_fd(client, listener) == 0);
    int server = accept(listener, 0, 0);
    close(listener);
    for (int i = 0; i < 10; i++) close_another();
    int got = receive_fd(server);
    CHECK(got >= 0);
    int second = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(second, (void *)&name, len) == 0);
    close(got), close(server), close(client), close(second);
}

static void an_epoll_in_a_circle_goes_with_it(void) {
    int a[2], watched[2], epoll = epoll_create1(0);
    pair(SOCK_STREAM, a);
    pair(SOCK_STREAM, watched);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, a[1], &event) == 0);
    CHECK(send_fd(a[0], epoll) == 0 && send_fd(a[0], a[1]) == 0);
    CHECK(send_fd(a[0], watched[1]) == 0);
    close(epoll), close(a[0]), close(a[1]), close(watched[1]);
    CHECK(is_hung_up(watched[0]));
    close(watched[0]);
}

static void a_long_chain_that_bites_its_tail_is_collected(void) {
    enum { LINKS = 300 };
    int first[2], last[2], watched[2];
    pair(SOCK_STREAM, first);
    pair(SOCK_STREAM, watched);
    last[0] = dup(first[0]), last[1] = dup(first[1]);
    for (int i = 0; i < LINKS; i++) {
        int next[2];
        pair(SOCK_STREAM, next);
        CHECK(send_fd(last[0], next[1]) == 0);
        close(last[0]), close(last[1]);
        last[0] = next[0], last[1] = next[1];
    }
    CHECK(send_fd(last[0], first[1]) == 0 && send_fd(last[0], watched[1]) == 0);
    close(watched[1]), close(last[0]), close(last[1]), close(first[0]);
    int next = receive_fd(first[1]);
    CHECK(next >= 0 && send_fd(watched[0], next) == 0);
    close(next), close(first[1]);
    CHECK(is_hung_up(watched[0]));
    close(watched[0]);
}

static void circles_can_be_made_for_ever(void) {
    for (int i = 0; i < 6000; i++) {
        int a[2], b[2];
        pair(SOCK_DGRAM, a);
        pair(SOCK_DGRAM, b);
        CHECK(send_fd(a[0], b[1]) == 0 && send_fd(b[0], a[1]) == 0);
        close(a[0]), close(a[1]), close(b[0]), close(b[1]);
    }
    int ends[2];
    pair(SOCK_STREAM, ends);
    CHECK(send_fd(ends[0], 0) == 0);
    int got = receive_fd(ends[1]);
    CHECK(got >= 0);
    close(got), close(ends[0]), close(ends[1]);
}

// Runs `act` in a child of another user; its status.
static int as_user(int (*act)(void)) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {64, 64};
        if (setrlimit(RLIMIT_NOFILE, &limit) || (getuid() == 0 && setuid(12345))) _exit(99);
        _exit(act());
    }
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int reach_the_limit(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    for (int i = 0; i < 65; i++)
        if (send_fd(ends[0], 0)) return 2;
    if (send_fd(ends[0], 0) == 0 || errno != ETOOMANYREFS) return 3;
    int got = receive_fd(ends[1]);
    return got < 0 || send_fd(ends[0], 0) ? 4 : 0;
}

static int make_circles(void) {
    for (int i = 0; i < 300; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
        if (send_fd(ends[0], ends[1])) return 2;
        close(ends[0]), close(ends[1]);
    }
    return 0;
}

static void a_user_has_as_many_under_way_as_files_open(void) {
    CHECK(as_user(reach_the_limit) == 0);
}

static void a_users_circles_are_collected_too(void) { CHECK(as_user(make_circles) == 0); }

int main(void) {
    TEST(a_socket_in_its_own_queue_is_collected);
    TEST(two_in_each_others_queue_are_collected);
    TEST(a_circle_with_one_end_open_is_kept);
    TEST(what_waits_to_be_accepted_is_collected_with_its_listener);
    TEST(a_connection_that_is_accepted_keeps_what_it_holds);
    TEST(an_epoll_in_a_circle_goes_with_it);
    TEST(a_long_chain_that_bites_its_tail_is_collected);
    TEST(circles_can_be_made_for_ever);
    TEST(a_user_has_as_many_under_way_as_files_open);
    TEST(a_users_circles_are_collected_too);
    return check_status();
}
