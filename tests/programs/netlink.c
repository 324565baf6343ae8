// Netlink sockets: numbers, groups, requests and their answers.
#include "check.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

static char answer[65536];
static struct nlmsghdr *first = (struct nlmsghdr *)answer;

static int opened(void) {
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

static struct sockaddr_nl name_of(int fd) {
    struct sockaddr_nl name = {0};
    socklen_t len = sizeof name;
    getsockname(fd, (struct sockaddr *)&name, &len);
    return name;
}

// Sends a request with a body of so many bytes, of which the first four are `word`.
static int ask(int fd, int type, int flags, unsigned bytes, int word) {
    struct {
        struct nlmsghdr header;
        char body[64];
    } request = {{NLMSG_LENGTH(bytes), type, NLM_F_REQUEST | flags, 7, 0}, {0}};
    memcpy(request.body + (type == RTM_GETLINK && bytes > 4 ? 4 : 0), &word, 4);
    return send(fd, &request, request.header.nlmsg_len, 0) == request.header.nlmsg_len ? 0 : -1;
}

static int refusal(int fd) {
    int got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (got < (int)sizeof(struct nlmsghdr) || first->nlmsg_type != NLMSG_ERROR) return -1;
    return -((struct nlmsgerr *)NLMSG_DATA(first))->error;
}

static void only_datagrams_and_known_protocols(void) {
    CHECK(socket(AF_NETLINK, SOCK_STREAM, NETLINK_ROUTE) < 0 && errno == ESOCKTNOSUPPORT);
    CHECK(socket(AF_NETLINK, SOCK_RAW, 99) < 0 && errno == EPROTONOSUPPORT);
}

static void a_socket_is_called_by_its_program_and_further_ones_otherwise(void) {
    struct sockaddr_nl any = {.nl_family = AF_NETLINK};
    int one = opened(), two = opened();
    CHECK(name_of(one).nl_pid == 0);
    CHECK(!bind(one, (struct sockaddr *)&any, sizeof any));
    CHECK(!bind(two, (struct sockaddr *)&any, sizeof any));
    CHECK(name_of(one).nl_pid == (unsigned)getpid());
    CHECK(name_of(two).nl_pid != 0 && name_of(two).nl_pid != name_of(one).nl_pid);
    any.nl_pid = 4711;
    CHECK(bind(one, (struct sockaddr *)&any, sizeof any) < 0 && errno == EINVAL);
    int three = opened();
    any.nl_pid = getpid();
    CHECK(bind(three, (struct sockaddr *)&any, sizeof any) < 0 && errno == EADDRINUSE);
    close(one);
    CHECK(!bind(three, (struct sockaddr *)&any, sizeof any));
    close(two), close(three);
}

static void a_dump_ends_with_done_and_says_whose_it_is(void) {
    int fd = opened(), links = 0, done = 0;
    CHECK(!ask(fd, RTM_GETLINK, NLM_F_DUMP, 1, 0));
    while (!done) {
        struct sockaddr_nl from;
        socklen_t len = sizeof from;
        int whole = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
        int got = recvfrom(fd, answer, sizeof answer, 0, (struct sockaddr *)&from, &len);
        CHECK(whole > 0 && got == whole && len == sizeof from && from.nl_pid == 0);
        for (struct nlmsghdr *one = first; NLMSG_OK(one, got); one = NLMSG_NEXT(one, got)) {
            CHECK(one->nlmsg_seq == 7 && one->nlmsg_pid == name_of(fd).nl_pid);
            CHECK(one->nlmsg_flags & NLM_F_MULTI);
            done |= one->nlmsg_type == NLMSG_DONE;
            links += one->nlmsg_type == RTM_NEWLINK;
        }
    }
    CHECK(links >= 1);
    CHECK(recv(fd, answer, sizeof answer, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    close(fd);
}

static void one_link_is_found_by_its_number(void) {
    int fd = opened();
    CHECK(!ask(fd, RTM_GETLINK, 0, sizeof(struct ifinfomsg), 1));
    CHECK(recv(fd, answer, sizeof answer, 0) > 0 && first->nlmsg_type == RTM_NEWLINK);
    CHECK(((struct ifinfomsg *)NLMSG_DATA(first))->ifi_index == 1);
    CHECK(!ask(fd, RTM_GETLINK, 0, sizeof(struct ifinfomsg), 99999));
    CHECK(refusal(fd) == ENODEV);
    close(fd);
}

static void what_is_refused_is_repeated_and_told_why(void) {
    int fd = opened(), on = 1;
    CHECK(!ask(fd, RTM_GETLINK, 0, 4, 0) && refusal(fd) == EINVAL);
    CHECK(first->nlmsg_len == NLMSG_LENGTH(4 + 16 + 4));
    CHECK(!setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on));
    CHECK(!ask(fd, RTM_GETLINK, 0, 4, 0) && refusal(fd) == EINVAL);
    CHECK(first->nlmsg_len == NLMSG_LENGTH(4 + 16) && first->nlmsg_flags & NLM_F_CAPPED);
    CHECK(!ask(fd, 0x7f8, 0, 16, 0) && refusal(fd) == EOPNOTSUPP);
    CHECK(!ask(fd, NLMSG_NOOP, NLM_F_ACK, 0, 0) && refusal(fd) == 0);
    CHECK(!ask(fd, NLMSG_NOOP, 0, 0, 0) && refusal(fd) == -1);
    close(fd);
}

static void only_administrators_change_things(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int fd = opened(), failed = setresuid(65534, 65534, 65534);
        failed |= ask(fd, RTM_NEWADDR, NLM_F_ACK, sizeof(struct ifaddrmsg), 0);
        _exit(failed || refusal(fd) != EPERM);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void answers_that_nobody_reads_are_bounded(void) {
    int fd = opened(), bytes = 4096, got = 0;
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes));
    for (int i = 0; i < 10000; i++)
        CHECK(!ask(fd, RTM_GETLINK, 0, sizeof(struct ifinfomsg), 1));
    struct pollfd ready = {fd, POLLIN, 0};
    while (poll(&ready, 1, 0) == 1 && got < 10000)
        got += recv(fd, answer, sizeof answer, MSG_DONTWAIT) > 0;
    CHECK(got >= 1 && got < 100);
    CHECK(!ask(fd, RTM_GETLINK, 0, sizeof(struct ifinfomsg), 1));
    CHECK(recv(fd, answer, sizeof answer, 0) > 0 && first->nlmsg_type == RTM_NEWLINK);
    close(fd);
}

static void groups_are_joined_and_left(void) {
    struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int fd = opened(), group = RTNLGRP_IPV4_ROUTE;
    unsigned joined[2] = {0};
    socklen_t len = sizeof joined;
    CHECK(!bind(fd, (struct sockaddr *)&name, sizeof name));
    CHECK(!setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group));
    CHECK(name_of(fd).nl_groups == (RTMGRP_LINK | RTMGRP_IPV4_ROUTE));
    CHECK(!getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, joined, &len));
    CHECK(joined[0] == (RTMGRP_LINK | RTMGRP_IPV4_ROUTE));
    CHECK(!setsockopt(fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group));
    CHECK(name_of(fd).nl_groups == RTMGRP_LINK);
    group = 0;
    CHECK(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0);
    close(fd);
}

static void nobody_but_the_kernel_is_reached(void) {
    struct sockaddr_nl other = {.nl_family = AF_NETLINK, .nl_pid = 987654};
    int fd = opened();
    CHECK(sendto(fd, answer, 16, 0, (struct sockaddr *)&other, sizeof other) < 0);
    CHECK(errno == ECONNREFUSED);
    other.nl_pid = 0;
    CHECK(!connect(fd, (struct sockaddr *)&other, sizeof other));
    CHECK(!ask(fd, RTM_GETLINK, 0, sizeof(struct ifinfomsg), 1));
    CHECK(read(fd, answer, sizeof answer) > 0 && first->nlmsg_type == RTM_NEWLINK);
    close(fd);
}

int main(void) {
    TEST(only_datagrams_and_known_protocols);
    TEST(a_socket_is_called_by_its_program_and_further_ones_otherwise);
    TEST(a_dump_ends_with_done_and_says_whose_it_is);
    TEST(one_link_is_found_by_its_number);
    TEST(what_is_refused_is_repeated_and_told_why);
    TEST(only_administrators_change_things);
    TEST(answers_that_nobody_reads_are_bounded);
    TEST(groups_are_joined_and_left);
    TEST(nobody_but_the_kernel_is_reached);
    return check_status();
}
