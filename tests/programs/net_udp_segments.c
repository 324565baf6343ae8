// Datagrams that cross into the kernel many at a time: UDP_SEGMENT, UDP_GRO, recvmmsg.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static char bytes[65536], room[65536];

static int bound_socket(struct sockaddr_in6 *name, int family) {
    int fd = socket(family, SOCK_DGRAM, 0);
    socklen_t len = sizeof *name;
    struct sockaddr_in *four = (struct sockaddr_in *)name;
    if (family == AF_INET) *four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    else *name = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (bind(fd, (struct sockaddr *)name, family == AF_INET ? sizeof *four : sizeof *name)) return -1;
    return getsockname(fd, (struct sockaddr *)name, &len) ? -1 : fd;
}

// Sends with a size of datagrams for this call alone.
static ssize_t send_segments(int fd, size_t len, uint16_t size) {
    char control[CMSG_SPACE(sizeof size)] = {0};
    struct iovec part = {bytes, len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof size), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
    memcpy(CMSG_DATA(header), &size, sizeof size);
    return sendmsg(fd, &message, 0);
}

// Receives, and what UDP_GRO tells of the size; -1 if it tells nothing.
static ssize_t receive_joined(int fd, int *size) {
    char control[64];
    struct iovec part = {room, sizeof room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *size = -1;
    if (len >= 0 && header && header->cmsg_level == SOL_UDP && header->cmsg_type == UDP_GRO)
        memcpy(size, CMSG_DATA(header), sizeof *size);
    return len;
}

static int is_next(int fd, size_t from, size_t len) {
    return recv(fd, room, sizeof room, MSG_DONTWAIT) == (ssize_t)len && !memcmp(room, bytes + from, len);
}

static void cut(int a, int b) {
    int size = 0;
    socklen_t len = sizeof size;
    EXPECT(send_segments(a, 2500, 1000) == 2500 && is_next(b, 0, 1000) && is_next(b, 1000, 1000) &&
              is_next(b, 2000, 500) && recv(b, room, 1, MSG_DONTWAIT) < 0,
          "one call sends three datagrams, the last a shorter one");
    EXPECT(!setsockopt(a, SOL_UDP, UDP_SEGMENT, &(int){700}, sizeof(int)) &&
              !getsockopt(a, SOL_UDP, UDP_SEGMENT, &size, &len) && size == 700 && send(a, bytes, 1400, 0) == 1400 &&
              is_next(b, 0, 700) && is_next(b, 700, 700),
          "a socket remembers the size");
    EXPECT(send_segments(a, 1400, 0) == 1400 && is_next(b, 0, 1400), "a call's own size counts more");
    EXPECT(send(a, bytes, 600, 0) == 600 && is_next(b, 0, 600), "what is shorter is one datagram");
    EXPECT(setsockopt(a, SOL_UDP, UDP_SEGMENT, &(int){65536}, sizeof(int)) < 0 && errno == EINVAL &&
              setsockopt(a, SOL_UDP, UDP_SEGMENT, &(int){-1}, sizeof(int)) < 0 && errno == EINVAL,
          "no datagram has such a size");
    setsockopt(a, SOL_UDP, UDP_SEGMENT, &(int){0}, sizeof(int));
    EXPECT(send_segments(a, 200, 1) < 0 && errno == EINVAL, "too many datagrams are refused");
    EXPECT(recv(b, room, 1, MSG_DONTWAIT) < 0, "and none is sent");
}

static void join(int a, int b) {
    int size, many = 0;
    socklen_t len = sizeof size;
    EXPECT(!getsockopt(b, SOL_UDP, UDP_GRO, &size, &len) && size == 0, "datagrams come one by one");
    EXPECT(!setsockopt(b, SOL_UDP, UDP_GRO, &(int){1}, sizeof(int)), "unless a socket wants them joined");
    send_segments(a, 2500, 1000);
    EXPECT(receive_joined(b, &size) == 2500 && size == 1000 && !memcmp(room, bytes, 2500),
          "what was sent together is read together, with the size");
    send(a, bytes, 10, 0);
    EXPECT(receive_joined(b, &size) == 10 && size == -1, "one alone is as ever");
    // Which of them are joined is the kernel's affair; where each ends must be clear.
    static const int sent[] = {300, 400, 400, 100, 100, 50, 50, 50};
    enum { SENT = sizeof sent / sizeof *sent };
    for (int i = 0; i < SENT; i++) send(a, bytes, sent[i], 0);
    int read = 0;
    for (ssize_t left; (left = receive_joined(b, &size)) > 0;)
        for (ssize_t one; left > 0; left -= one, read++) {
            one = size < 0 || size > left ? left : size;
            if (read >= SENT || one != sent[read]) read = SENT;
        }
    EXPECT(read == SENT, "each datagram's end can be told");
    for (int i = 0; i < 200; i++) send(a, bytes, 50, 0);
    for (ssize_t got; (got = receive_joined(b, &size)) > 0;) many += got / 50;
    EXPECT(many == 200, "none of many is lost");
    setsockopt(b, SOL_UDP, UDP_GRO, &(int){0}, sizeof(int));
    send_segments(a, 2000, 1000);
    EXPECT(is_next(b, 0, 1000) && is_next(b, 1000, 1000), "until it wants them one by one again");
}

static void take_many(int a, int b) {
    struct mmsghdr many[4] = {0};
    struct iovec parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){room + i * 100, 100};
        many[i].msg_hdr.msg_iov = &parts[i], many[i].msg_hdr.msg_iovlen = 1;
    }
    send(a, "1", 1, 0), send(a, "22", 2, 0);
    EXPECT(recvmmsg(b, many, 4, MSG_WAITFORONE, NULL) == 2 && many[1].msg_len == 2, "MSG_WAITFORONE takes what is there");
    send(a, "333", 3, 0);
    struct timespec none = {0, 0};
    EXPECT(recvmmsg(b, many, 4, 0, &none) == 1 && many[0].msg_len == 3, "a time that is over ends the wait after a datagram");
    EXPECT(recvmmsg(b, many, 4, MSG_DONTWAIT, NULL) < 0 && errno == EAGAIN, "without any there is nothing to take");
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 + i / 256;
    for (int family = 0; family < 2; family++) {
        struct sockaddr_in6 a_name, b_name;
        int number = family ? AF_INET6 : AF_INET;
        int a = bound_socket(&a_name, number), b = bound_socket(&b_name, number);
        EXPECT(a >= 0 && b >= 0 && !connect(a, (struct sockaddr *)&b_name, sizeof b_name), "two sockets");
        cut(a, b);
        join(a, b);
        take_many(a, b);
        close(a), close(b);
    }
    return check_status();
}
