// Small rules of sockets that differ from what one would guess; all of them are Linux's.
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[16];

static int set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value);
}

static int get(int fd, int level, int name) {
    int value = -77;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, name, &value, &len) ? -1000 - errno : value;
}

static void priorities_and_marks_are_told_as_they_were_set(void) {
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6};
    for (int i = 0; i < 3; i++) {
        int fd = socket(families[i], SOCK_DGRAM, 0);
        CHECK(!set(fd, SOL_SOCKET, SO_PRIORITY, 5) && get(fd, SOL_SOCKET, SO_PRIORITY) == 5);
        CHECK(!set(fd, SOL_SOCKET, SO_MARK, 4711) && get(fd, SOL_SOCKET, SO_MARK) == 4711);
        CHECK(!set(fd, SOL_SOCKET, SO_MARK, -1) && get(fd, SOL_SOCKET, SO_MARK) == -1);
        close(fd);
    }
}

static void unix_sockets_refuse_what_is_of_the_internet(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(set(fd, IPPROTO_TCP, TCP_NODELAY, 1) == -1 && errno == EOPNOTSUPP);
    CHECK(get(fd, IPPROTO_IP, IP_TTL) == -1000 - EOPNOTSUPP);
    CHECK(set(fd, SOL_SOCKET, SO_REUSEPORT, 1) == -1 && errno == EOPNOTSUPP);
    CHECK(!set(fd, SOL_SOCKET, SO_REUSEPORT, 0));
    CHECK(set(fd, SOL_SOCKET, 9999, 1) == -1 && errno == ENOPROTOOPT);
    close(fd);
}

static void records_have_no_flag_at_their_end(void) {
    int s[2];
    struct iovec bytes = {buffer, 9};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) && send(s[0], "abc", 3, MSG_EOR) == 3);
    CHECK(recvmsg(s[1], &message, 0) == 3 && message.msg_flags == 0);
    close(s[0]), close(s[1]);
}

static void who_may_not_wait_hears_no_end_of_datagrams(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !shutdown(s[0], SHUT_RD));
    CHECK(recv(s[0], buffer, 9, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(recv(s[0], buffer, 9, 0) == 0);
    close(s[0]), close(s[1]);
}

static void what_has_not_begun_may_end(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(!shutdown(fd, SHUT_RDWR) && shutdown(fd, 3) == -1 && errno == EINVAL);
    close(fd);
}

static void datagrams_leave_at_once_and_none_is_urgent(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), count = -1;
    CHECK(!bind(fd, (void *)&name, len) && !getsockname(fd, (void *)&name, &len));
    CHECK(sendto(fd, "abc", 3, 0, (void *)&name, len) == 3);
    CHECK(!ioctl(fd, TIOCOUTQ, &count) && count == 0 && !ioctl(fd, FIONREAD, &count) && count == 3);
    CHECK(sendto(fd, "abc", 3, MSG_OOB, (void *)&name, len) == -1 && errno == EOPNOTSUPP);
    close(fd);
}

int main(void) {
    TEST(priorities_and_marks_are_told_as_they_were_set);
    TEST(unix_sockets_refuse_what_is_of_the_internet);
    TEST(records_have_no_flag_at_their_end);
    TEST(who_may_not_wait_hears_no_end_of_datagrams);
    TEST(what_has_not_begun_may_end);
    TEST(datagrams_leave_at_once_and_none_is_urgent);
    return check_status();
}
