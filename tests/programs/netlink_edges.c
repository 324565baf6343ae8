// Netlink sockets at their edges: filters, acknowledgements, looks, and queues that overflow.
#include "check.h"
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct sockaddr Name;

static char buffer[32768];
static unsigned own_port;

static int opened(void) {
    struct sockaddr_nl name = {.nl_family = AF_NETLINK};
    socklen_t len = sizeof name;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (bind(fd, (Name *)&name, len) || getsockname(fd, (Name *)&name, &len)) return -1;
    own_port = name.nl_pid;
    return fd;
}

static int set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value);
}

static int get(int fd, int level, int name) {
    int value = -77;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, name, &value, &len) ? -1000 - errno : value;
}

/// Asks for a dump of links.
static int ask(int fd, int flags) {
    struct {
        struct nlmsghdr header;
        struct ifinfomsg link;
    } request = {{sizeof request, RTM_GETLINK, NLM_F_REQUEST | flags, 7, 0}, {.ifi_family = AF_UNSPEC}};
    return send(fd, &request, sizeof request, 0) == sizeof request;
}

static struct nlmsghdr *answer(void) { return (struct nlmsghdr *)buffer; }

static void a_look_leaves_the_message_and_tells_its_length(void) {
    int fd = opened();
    struct sockaddr_nl from;
    socklen_t len = sizeof from;
    CHECK(fd >= 0 && ask(fd, NLM_F_DUMP));
    ssize_t whole = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
    CHECK(whole > 100 && recv(fd, buffer, 10, MSG_PEEK) == 10);
    CHECK(recv(fd, buffer, 10, MSG_PEEK | MSG_TRUNC) == whole);
    struct iovec part = {buffer, 20};
    struct msghdr message = {.msg_name = &from, .msg_namelen = len, .msg_iov = &part, .msg_iovlen = 1};
    CHECK(recvmsg(fd, &message, MSG_PEEK) == 20 && message.msg_flags & MSG_TRUNC && message.msg_namelen == sizeof from);
    CHECK(from.nl_pid == 0 && recv(fd, buffer, sizeof buffer, 0) == whole && answer()->nlmsg_type == RTM_NEWLINK);
    CHECK(answer()->nlmsg_pid == own_port && answer()->nlmsg_seq == 7 && answer()->nlmsg_flags & NLM_F_MULTI);
    close(fd);
}

/// Sends a request of an unknown kind with so much behind its header; returns the answer's length.
static ssize_t refused(int fd, unsigned short kind, int behind) {
    static char request[256];
    memset(request, 0, sizeof request);
    *(struct nlmsghdr *)request = (struct nlmsghdr){NLMSG_HDRLEN + behind, kind, NLM_F_REQUEST | NLM_F_ACK, 9, 0};
    send(fd, request, NLMSG_HDRLEN + behind, 0);
    return recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
}

static void what_does_not_fit_is_lost(void) {
    int fd = opened();
    static char request[NLMSG_HDRLEN + 64];
    *(struct nlmsghdr *)request = (struct nlmsghdr){sizeof request, 200, NLM_F_REQUEST | NLM_F_ACK, 9, 0};
    CHECK(send(fd, request, sizeof request, 0) == sizeof request && recv(fd, buffer, 20, 0) == 20);
    CHECK(recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(fd);
}

static void an_error_carries_the_request_unless_it_is_capped(void) {
    int fd = opened();
    struct nlmsgerr *error = NLMSG_DATA(answer());
    CHECK(get(fd, SOL_NETLINK, NETLINK_CAP_ACK) == 0 && get(fd, SOL_NETLINK, NETLINK_EXT_ACK) == 0);
    CHECK(get(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK) == 0);
    ssize_t got = refused(fd, 200, 64);
    CHECK(got == NLMSG_HDRLEN + 4 + NLMSG_HDRLEN + 64 && answer()->nlmsg_type == NLMSG_ERROR);
    CHECK(error->error == -EOPNOTSUPP && error->msg.nlmsg_seq == 9 && error->msg.nlmsg_type == 200);
    CHECK(answer()->nlmsg_flags == 0);
    CHECK(!set(fd, SOL_NETLINK, NETLINK_CAP_ACK, 1) && get(fd, SOL_NETLINK, NETLINK_CAP_ACK) == 1);
    got = refused(fd, 200, 64);
    CHECK(got == NLMSG_HDRLEN + 4 + NLMSG_HDRLEN && answer()->nlmsg_flags == NLM_F_CAPPED);
    CHECK(!set(fd, SOL_NETLINK, NETLINK_EXT_ACK, 1) && get(fd, SOL_NETLINK, NETLINK_EXT_ACK) == 1);
    CHECK(!set(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 1) && get(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK) == 1);
    close(fd);
}

static void an_acknowledgement_is_an_error_of_zero(void) {
    int fd = opened();
    struct nlmsgerr *error = NLMSG_DATA(answer());
    // A message without meaning is acknowledged too.
    CHECK(refused(fd, NLMSG_NOOP, 16) == NLMSG_HDRLEN + 4 + NLMSG_HDRLEN && error->error == 0);
    CHECK(answer()->nlmsg_type == NLMSG_ERROR && answer()->nlmsg_flags == NLM_F_CAPPED);
    // One that is too short is not.
    CHECK(send(fd, buffer, 8, 0) == 8 && recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(fd);
}

static int attach(int fd, unsigned kept) {
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, kept)};
    struct sock_fprog program = {1, code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static void a_filter_chooses_what_is_heard(void) {
    int fd = opened();
    CHECK(!attach(fd, 0) && refused(fd, 200, 64) == -1 && errno == EAGAIN && !attach(fd, 40));
    CHECK(refused(fd, 200, 64) == 40 && answer()->nlmsg_type == NLMSG_ERROR);
    // By the kind of the message, as libpcap and udev have it.
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NLMSG_ERROR << 8, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, -1)};
    struct sock_fprog program = {4, code};
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    CHECK(refused(fd, 200, 64) == -1 && errno == EAGAIN && ask(fd, NLM_F_DUMP));
    CHECK(recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0 && answer()->nlmsg_type == RTM_NEWLINK);
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &fd, sizeof fd));
    close(fd);
}

static void a_queue_that_overflows_says_so_once(void) {
    int fd = opened();
    CHECK(!set(fd, SOL_SOCKET, SO_RCVBUF, 1));
    for (int i = 0; i < 200; i++) {
        static char request[NLMSG_HDRLEN + 64];
        *(struct nlmsghdr *)request = (struct nlmsghdr){sizeof request, 200, NLM_F_REQUEST | NLM_F_ACK, i, 0};
        if (send(fd, request, sizeof request, 0) < 0) break;
    }
    struct pollfd p = {fd, POLLIN, 0};
    CHECK(poll(&p, 1, 0) == 1 && p.revents & POLLERR && p.revents & POLLIN);
    CHECK(recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == ENOBUFS);
    int count = 0;
    while (recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0) count++;
    CHECK(count > 0 && count < 200 && errno == EAGAIN);
    CHECK(refused(fd, 200, 64) > 0);
    close(fd);
    fd = opened();
    CHECK(!set(fd, SOL_SOCKET, SO_RCVBUF, 1) && !set(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, 1));
    for (int i = 0; i < 200; i++) {
        struct nlmsghdr request = {sizeof request, 200, NLM_F_REQUEST | NLM_F_ACK, i, 0};
        if (send(fd, &request, sizeof request, 0) < 0) break;
    }
    CHECK(recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0);
    close(fd);
}

static void names_and_groups_are_checked(void) {
    struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_pid = 4711};
    socklen_t len = sizeof name;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), other = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    CHECK(!bind(fd, (Name *)&name, len) && bind(other, (Name *)&name, len) == -1 && errno == EADDRINUSE);
    name.nl_pid = 4712;
    CHECK(bind(fd, (Name *)&name, len) == -1 && errno == EINVAL && bind(fd, (Name *)&name, 4) == -1 && errno == EINVAL);
    CHECK(set(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, 0) == -1 && errno == EINVAL);
    CHECK(!set(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_LINK));
    CHECK(!getsockname(fd, (Name *)&name, &len) && name.nl_pid == 4711 && name.nl_groups == 1);
    unsigned groups[4] = {0};
    len = sizeof groups;
    CHECK(!getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups, &len) && groups[0] == 1);
    CHECK(!set(fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, RTNLGRP_LINK));
    CHECK(get(fd, SOL_NETLINK, 999) == -1000 - ENOPROTOOPT && get(fd, SOL_SOCKET, SO_PROTOCOL) == NETLINK_ROUTE);
    CHECK(listen(fd, 1) == -1 && errno == EOPNOTSUPP && send(fd, "x", 1, MSG_OOB) == -1 && errno == EOPNOTSUPP);
    CHECK(socket(AF_NETLINK, SOCK_STREAM, 0) == -1 && errno == ESOCKTNOSUPPORT);
    CHECK(socket(AF_NETLINK, SOCK_RAW, 99) == -1 && errno == EPROTONOSUPPORT);
    close(fd), close(other);
}

int main(void) {
    TEST(a_look_leaves_the_message_and_tells_its_length);
    TEST(what_does_not_fit_is_lost);
    TEST(an_error_carries_the_request_unless_it_is_capped);
    TEST(an_acknowledgement_is_an_error_of_zero);
    TEST(a_filter_chooses_what_is_heard);
    TEST(a_queue_that_overflows_says_so_once);
    TEST(names_and_groups_are_checked);
    return check_status();
}
