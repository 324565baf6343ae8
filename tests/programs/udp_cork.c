// Datagrams and packets that a program gives in pieces: MSG_MORE, UDP_CORK.
#include "check.h"
#include "family.h"
#include <arpa/inet.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <unistd.h>

static char bytes[70000], room[70000];

static int receiver(union name *name) {
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
    socklen_t len = sizeof *name;
    *name = loopback();
    if (bind(fd, &name->any, name_len()) || getsockname(fd, &name->any, &len)) return -1;
    return fd;
}

static int sender(const union name *to) {
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
    return to && connect(fd, &to->any, name_len()) ? -1 : fd;
}

static int has(int fd, const void *what, size_t len) {
    ssize_t got = recv(fd, room, sizeof room, MSG_DONTWAIT);
    return got == (ssize_t)len && !memcmp(room, what, len);
}

static int is_empty(int fd) { return recv(fd, room, sizeof room, MSG_DONTWAIT) < 0 && errno == EAGAIN; }

static int cork(int fd, int on) { return setsockopt(fd, SOL_UDP, UDP_CORK, &on, sizeof on); }

static int queued(int fd) {
    int count = -1;
    ioctl(fd, SIOCOUTQ, &count);
    return count;
}

static void pieces(int a, int b) {
    EXPECT(send(a, "one ", 4, MSG_MORE) == 4 && is_empty(b), "a piece waits for the rest");
    EXPECT(send(a, "two ", 4, MSG_MORE) == 4 && is_empty(b) && queued(a) > 0, "so does the next, and both are queued");
    EXPECT(send(a, "three", 5, 0) == 5 && has(b, "one two three", 13) && is_empty(b), "the last one sends them as one datagram");
    EXPECT(queued(a) == 0 && send(a, "four", 4, 0) == 4 && has(b, "four", 4), "after that all is as before");
    EXPECT(send(a, "end", 3, MSG_MORE) == 3 && write(a, "", 0) == 0 && has(b, "end", 3) && is_empty(b), "an empty write can be the last piece");
    EXPECT(send(a, "", 0, MSG_MORE) == 0 && is_empty(b) && send(a, "", 0, 0) == 0 && has(b, "", 0) && is_empty(b),
           "pieces without bytes make an empty datagram");
    struct iovec parts[] = {{"a", 1}, {"bc", 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    EXPECT(sendmsg(a, &message, MSG_MORE) == 3 && write(a, "d", 1) == 1 && has(b, "abcd", 4), "sendmsg and write give pieces too");
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    EXPECT(sendmmsg(a, many, 2, MSG_MORE) == 2 && is_empty(b) && send(a, "!", 1, 0) == 1 && has(b, "abcabc!", 7),
           "and sendmmsg");
    EXPECT(send(a, (void *)8, 4, MSG_MORE) < 0 && errno == EFAULT && send(a, "ok", 2, 0) == 2 && has(b, "ok", 2),
           "a bad address is no piece");
}

static void corked(int a, int b) {
    int on = -1;
    socklen_t len = sizeof on;
    EXPECT(!getsockopt(a, SOL_UDP, UDP_CORK, &on, &len) && on == 0, "a socket has no cork");
    EXPECT(!cork(a, 1) && !getsockopt(a, SOL_UDP, UDP_CORK, &on, &len) && on == 1, "until it gets one");
    EXPECT(send(a, "one ", 4, 0) == 4 && write(a, "two", 3) == 3 && is_empty(b), "under it all sends are pieces");
    EXPECT(!cork(a, 1) && is_empty(b), "a second cork changes nothing");
    EXPECT(!cork(a, 0) && has(b, "one two", 7) && is_empty(b), "what was gathered goes when it is pulled");
    EXPECT(!cork(a, 1) && !cork(a, 0) && is_empty(b), "if there is something");
    EXPECT(send(a, "x", 1, MSG_MORE) == 1 && !cork(a, 1) && send(a, "y", 1, 0) == 1 && is_empty(b) && !cork(a, 0) && has(b, "xy", 2),
           "a cork takes over what MSG_MORE began");
    EXPECT(cork(a, 2) == 0 && !getsockopt(a, SOL_UDP, UDP_CORK, &on, &len) && on == 1 && !cork(a, 0), "any number is on");
}

static void addresses(void) {
    union name first, second;
    int b = receiver(&first), c = receiver(&second), a = sender(NULL);
    EXPECT(send(a, "x", 1, MSG_MORE) < 0 && errno == EDESTADDRREQ, "the first piece needs an address");
    EXPECT(sendto(a, "to ", 3, MSG_MORE, &first.any, name_len()) == 3 && sendto(a, "the ", 4, MSG_MORE, &second.any, name_len()) == 4 &&
               send(a, "first", 5, 0) == 5 && has(b, "to the first", 12) && is_empty(c),
           "where the first goes the others go");
    union name own;
    socklen_t len = sizeof own;
    int d = sender(NULL);
    EXPECT(sendto(d, "x", 1, MSG_MORE, &first.any, name_len()) == 1 && !getsockname(d, &own.any, &len) && own.four.sin_port != 0,
           "the first piece gives the socket a port");
    // Over IPv4 Linux sends to the later one.
    if (v6) EXPECT(!connect(d, &second.any, name_len()) && send(d, "y", 1, 0) == 1 && has(b, "xy", 2) && is_empty(c),
                   "a peer that comes later does not matter");
    else EXPECT(send(d, "y", 1, 0) == 1 && has(b, "xy", 2), "and the last one needs no address");
    connect(d, &second.any, name_len());
    EXPECT(send(d, "lost", 4, MSG_MORE) == 4 && !close(d) && is_empty(c), "what is gathered when a socket is closed is lost");
    close(a), close(b), close(c);
}

// Other sizes and times to live of the first piece hold for all.
static void control(int a, int b) {
    char space[CMSG_SPACE(2)] = {0};
    struct iovec part = {bytes, 1000};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(2), .cmsg_level = SOL_UDP, .cmsg_type = 103};
    *(uint16_t *)CMSG_DATA(header) = 600;
    EXPECT(sendmsg(a, &message, MSG_MORE) == 1000 && send(a, bytes + 1000, 500, 0) == 500 && has(b, bytes, 600) &&
               has(b, bytes + 600, 600) && has(b, bytes + 1200, 300) && is_empty(b),
           "gathered bytes are cut into datagrams of the first piece's size");
}

static void bounds(int a, int b) {
    size_t most = v6 ? 65527 : 65507;
    size_t half = 30000;
    EXPECT(send(a, bytes, half, MSG_MORE) == (ssize_t)half && send(a, bytes + half, most - half, 0) == (ssize_t)(most - half) &&
               has(b, bytes, most),
           "the largest datagram can be gathered");
    EXPECT(send(a, bytes, half, MSG_MORE) == (ssize_t)half && send(a, bytes + half, most - half + 1, 0) < 0 && errno == EMSGSIZE,
           "no larger one");
    EXPECT(is_empty(b) && queued(a) == 0 && send(a, "new", 3, 0) == 3 && has(b, "new", 3), "and what was gathered is gone then");
    int small = 1;
    setsockopt(a, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    EXPECT(send(a, bytes, 60000, MSG_MORE) == 60000, "a first piece may be as large as it is");
    if (v6) EXPECT(send(a, bytes, 5527, 0) < 0 && errno == ENOBUFS && is_empty(b), "a second one keeps to the send buffer");
    else EXPECT(send(a, bytes, 5508, 0) < 0 && is_empty(b), "a second one keeps to bounds");
    EXPECT(send(a, "new", 3, 0) == 3 && has(b, "new", 3), "and the socket can be used again");
}

static void *sends(void *of) {
    int fd = *(int *)of;
    for (int i = 0; i < 2000; i++) send(fd, "ab", 2, i % 3 ? MSG_MORE : 0);
    return NULL;
}

static void threads(int a, int b) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, sends, &a);
    int odd = 0;
    for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
    send(a, "ab", 2, 0);
    for (ssize_t got; (got = recv(b, room, sizeof room, MSG_DONTWAIT)) > 0;) odd += got % 2;
    EXPECT(odd == 0, "threads that give pieces at once tear none");
}

static void many(const union name *to) {
    enum { MANY = 500 };
    for (int round = 0; round < 4; round++) {
        static int fds[MANY];
        int sent = 0;
        for (int i = 0; i < MANY; i++) fds[i] = sender(to);
        for (int i = 0; i < MANY; i++) sent += send(fds[i], bytes, 9000, MSG_MORE) == 9000;
        for (int i = 0; i < MANY; i++) close(fds[i]);
        if (round == 3) EXPECT(sent == MANY, "closing gives back what was gathered");
    }
}

static unsigned short sum(const void *of, size_t len) {
    const unsigned short *words = of;
    unsigned total = 0;
    for (size_t i = 0; i < len / 2; i++) total += words[i];
    while (total >> 16) total = (total & 0xffff) + (total >> 16);
    return ~total;
}

static void raw(void) {
    union name to = loopback();
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, 253);
    int b = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, 253);
    if (fd < 0) return;
    size_t header = v6 ? 0 : 20;
    EXPECT(sendto(fd, "one ", 4, MSG_MORE, &to.any, name_len()) == 4 && is_empty(b) && sendto(fd, "two", 3, 0, &to.any, name_len()) == 3,
           "a raw socket gathers packets");
    ssize_t got = recv(b, room, sizeof room, MSG_DONTWAIT);
    EXPECT(got == (ssize_t)header + 7 && !memcmp(room + header, "one two", 7), "and sends one");
    EXPECT(recv(fd, room, sizeof room, MSG_DONTWAIT) == (ssize_t)header + 7 && is_empty(fd) && is_empty(b), "once");
    close(fd), close(b);
    if (v6) return;
    int ping = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    struct icmphdr echo = {.type = ICMP_ECHO, .un.echo.id = 77};
    echo.checksum = sum(&echo, sizeof echo);
    sendto(ping, &echo, 4, MSG_MORE, &to.any, name_len());
    sendto(ping, (char *)&echo + 4, 4, 0, &to.any, name_len());
    int replies = 0;
    for (ssize_t len; (len = recv(ping, room, sizeof room, MSG_DONTWAIT)) > 0;) {
        const struct icmphdr *seen = (void *)(room + 20);
        replies += len == 28 && seen->type == ICMP_ECHOREPLY && seen->un.echo.id == 77;
    }
    EXPECT(replies == 1, "an echo request in two pieces is answered");
    close(ping);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 + i / 256;
    for (v6 = 0; v6 < 2; v6++) {
        union name name;
        int b = receiver(&name), a = sender(&name);
        EXPECT(a >= 0 && b >= 0, "two sockets");
        pieces(a, b);
        corked(a, b);
        control(a, b);
        addresses();
        threads(a, b);
        bounds(a, b);
        many(&name);
        raw();
        EXPECT(!shutdown(a, SHUT_WR) && send(a, "x", 1, 0) < 0 && errno == EPIPE, "a socket that was shut down is told so without a signal");
        close(a), close(b);
    }
    return check_status();
}
