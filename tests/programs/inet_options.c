// Options of internet sockets that concern addresses, hops, paths and memory.
#include "check.h"
#include "family.h"
#include "inet_sockets.h"
#include <fcntl.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

static char bytes[70000], room[70000];

// Receives, and finds a control message.
static int control(int fd, int level, int kind, void *data, size_t len) {
    static char space[512];
    struct iovec part = {room, sizeof room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (recvmsg(fd, &message, MSG_DONTWAIT) < 0) return -1;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at))
        if (at->cmsg_level == level && at->cmsg_type == kind && at->cmsg_len == CMSG_LEN(len)) {
            memcpy(data, CMSG_DATA(at), len);
            return 1;
        }
    return 0;
}

static void destinations(void) {
    union name to, told = {0};
    int b = named(SOCK_DGRAM, &to), a = socket(to.any.sa_family, SOCK_DGRAM, 0);
    int level = v6 ? SOL_IPV6 : SOL_IP, option = v6 ? IPV6_RECVORIGDSTADDR : IP_RECVORIGDSTADDR;
    EXPECT(get(b, level, option) == 0 && !set(b, level, option, 1) && get(b, level, option) == 1, "a socket may ask for destinations");
    sendto(a, "x", 1, 0, &to.any, name_len());
    EXPECT(control(b, level, option, &told, name_len()) == 1 && !memcmp(&told, &to, name_len()), "and is told them");
    set(b, level, option, 0);
    sendto(a, "x", 1, 0, &to.any, name_len());
    EXPECT(control(b, level, option, &told, name_len()) == 0, "until it does not want to");
    close(a), close(b);
}

// A socket of IPv6 hears of IPv4's packets in IPv4's words.
static void mapped(void) {
    union name to = {.six = {.sin6_family = AF_INET6}}, told = {0};
    socklen_t len = sizeof to;
    int b = socket(AF_INET6, SOCK_DGRAM, 0), a = socket(AF_INET, SOCK_DGRAM, 0), hops = 0;
    bind(b, &to.any, sizeof to.six), getsockname(b, &to.any, &len);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = to.six.sin6_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    set(b, SOL_IPV6, IPV6_RECVORIGDSTADDR, 1), set(b, SOL_IPV6, IPV6_RECVHOPLIMIT, 1);
    sendto(a, "x", 1, 0, (struct sockaddr *)&four, sizeof four);
    EXPECT(control(b, SOL_IPV6, IPV6_HOPLIMIT, &hops, sizeof hops) == 0, "IPv6's options tell nothing of IPv4's packets");
    set(b, SOL_IP, IP_RECVORIGDSTADDR, 1), set(b, SOL_IP, IP_RECVTTL, 1);
    sendto(a, "x", 1, 0, (struct sockaddr *)&four, sizeof four);
    EXPECT(control(b, SOL_IP, IP_ORIGDSTADDR, &told, sizeof four) == 1 && !memcmp(&told, &four, sizeof four), "IPv4's tell the destination");
    sendto(a, "x", 1, 0, (struct sockaddr *)&four, sizeof four);
    EXPECT(control(b, SOL_IP, IP_TTL, &hops, sizeof hops) == 1 && hops == 64, "and the hops");
    close(a), close(b);
}

static void hops(void) {
    union name to;
    int b = named(SOCK_DGRAM, &to), a = socket(to.any.sa_family, SOCK_DGRAM, 0), told = 0;
    set(b, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVHOPLIMIT : IP_RECVTTL, 1);
    connect(a, &to.any, name_len());
    if (!v6) {
        EXPECT(!set(a, SOL_IP, IP_TTL, 5) && get(a, SOL_IP, IP_TTL) == 5 && !set(a, SOL_IP, IP_TTL, -1) && get(a, SOL_IP, IP_TTL) == 64,
               "a time to live of -1 is the default");
        EXPECT(refuses(set(a, SOL_IP, IP_TTL, 0), EINVAL) && refuses(set(a, SOL_IP, IP_TTL, 256), EINVAL) && refuses(set(a, SOL_IP, IP_TTL, -2), EINVAL),
               "other numbers are none");
        EXPECT(!set(a, SOL_IP, IP_TOS, 256 + 7) && get(a, SOL_IP, IP_TOS) == 7 && !set(a, SOL_IP, IP_TOS, -1) && get(a, SOL_IP, IP_TOS) == 255,
               "of a type of service the low byte counts");
    }
    send(a, bytes, 65000, 0);
    EXPECT(control(b, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_HOPLIMIT : IP_TTL, &told, sizeof told) == 1 && told == 64, "hops are told of large datagrams too");
    if (v6) send(a, bytes, 65527, 0);
    if (v6) EXPECT(control(b, SOL_IPV6, IPV6_HOPLIMIT, &told, sizeof told) == 1 && told == 64, "and of those in pieces");
    int level = v6 ? SOL_IPV6 : SOL_IP, option = v6 ? IPV6_MINHOPCOUNT : IP_MINTTL;
    EXPECT(get(b, level, option) == 0 && !set(b, level, option, 100) && get(b, level, option) == 100, "a least number of hops is kept");
    EXPECT(refuses(set(b, level, option, 256), EINVAL) && refuses(set(b, level, option, -1), EINVAL), "within a byte");
    EXPECT(send(a, "x", 1, 0) == 1 && recv(b, room, 1, MSG_DONTWAIT) == 1, "but datagrams need none");
    close(a), close(b);
}

static int is_readable(int fd, int millis) {
    struct pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, millis) == 1;
}

static void least_hops(void) {
    union name to;
    int level = v6 ? SOL_IPV6 : SOL_IP, option = v6 ? IPV6_MINHOPCOUNT : IP_MINTTL;
    int s = named(SOCK_STREAM, &to), a = socket(to.any.sa_family, SOCK_STREAM, 0);
    listen(s, 5);
    connect(a, &to.any, name_len());
    int b = accept(s, NULL, NULL);
    EXPECT(!set(b, level, option, 64) && send(a, "x", 1, 0) == 1 && is_readable(b, 10000) && recv(b, room, 1, 0) == 1, "a segment with enough hops arrives");
    set(b, level, option, 65);
    EXPECT(send(a, "y", 1, 0) == 1 && !is_readable(b, 50), "one with fewer does not");
    set(b, level, option, 0);
    EXPECT(is_readable(b, 20000) && recv(b, room, 1, 0) == 1 && *room == 'y', "but again when it may");
    close(a), close(b);
    set(s, level, option, 33);
    a = socket(to.any.sa_family, SOCK_STREAM, 0);
    connect(a, &to.any, name_len());
    b = accept(s, NULL, NULL);
    EXPECT(b >= 0 && get(b, level, option) == 33, "a listener passes the number on");
    close(a), close(b);
    set(s, level, option, 255);
    a = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(a, &to.any, name_len());
    EXPECT(!is_readable(s, 50), "and lets nobody in from too far away");
    set(s, level, option, 0);
    EXPECT(is_readable(s, 20000), "until it may");
    close(a), close(s);
}

static void paths(void) {
    union name to;
    int b = named(SOCK_DGRAM, &to), a = socket(to.any.sa_family, SOCK_DGRAM, 0);
    int level = v6 ? SOL_IPV6 : SOL_IP, option = v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, mtu = v6 ? IPV6_MTU : IP_MTU;
    int most = v6 ? 65527 : 65507;
    EXPECT(get(a, level, option) == 1 && refuses(set(a, level, option, -1), EINVAL) && refuses(set(a, level, option, 6), EINVAL), "there are six ways with paths");
    EXPECT(get(a, level, mtu) == -ENOTCONN, "none is known without a peer");
    connect(a, &to.any, name_len());
    EXPECT(get(a, level, mtu) == (v6 ? 65536 : 65535), "that to ourselves is as wide as can be");
    for (int mode = 0; mode < 6; mode++) {
        int is_strict = mode >= 2 && mode <= 4, whole = v6 ? 65536 - 48 : 65507;
        EXPECT(!set(a, level, option, mode) && get(a, level, option) == mode, "way %d is kept", mode);
        EXPECT(send(a, bytes, 60000, 0) == 60000 && recv(b, room, sizeof room, MSG_DONTWAIT) == 60000, "what fits passes by way %d", mode);
        if (!v6 || !is_strict) EXPECT(send(a, bytes, most, 0) == most && recv(b, room, sizeof room, MSG_DONTWAIT) == most, "the largest too");
        else EXPECT(refuses(send(a, bytes, whole + 1, 0), EMSGSIZE), "what does not is refused by way %d", mode);
    }
    close(a), close(b);
}

static void checksums(void) {
    union name to;
    int b = named(SOCK_DGRAM, &to), a = socket(to.any.sa_family, SOCK_DGRAM, 0);
    EXPECT(get(a, SOL_SOCKET, SO_NO_CHECK) == 0 && !set(a, SOL_SOCKET, SO_NO_CHECK, 1) && get(a, SOL_SOCKET, SO_NO_CHECK) == 1, "checksums can be left out");
    sendto(a, bytes, 1000, 0, &to.any, name_len()), sendto(a, bytes, 60000, 0, &to.any, name_len());
    EXPECT(recv(b, room, sizeof room, MSG_DONTWAIT) == 1000 && recv(b, room, sizeof room, MSG_DONTWAIT) == 60000, "datagrams arrive without");
    close(a), close(b);
}

static void drops(void) {
    union name to;
    int b = named(SOCK_DGRAM, &to), a = socket(to.any.sa_family, SOCK_DGRAM, 0), size = 1, got = 0;
    unsigned lost = 0;
    uint32_t memory[9] = {0};
    socklen_t len = sizeof memory;
    connect(a, &to.any, name_len());
    EXPECT(get(b, SOL_SOCKET, SO_RXQ_OVFL) == 0 && !set(b, SOL_SOCKET, SO_RXQ_OVFL, 1) && get(b, SOL_SOCKET, SO_RXQ_OVFL) == 1, "a socket may ask what is lost");
    setsockopt(b, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    send(a, bytes, 10, 0);
    EXPECT(control(b, SOL_SOCKET, SO_RXQ_OVFL, &lost, sizeof lost) == 0, "nothing is told while nothing is lost");
    for (int i = 0; i < 200; i++) send(a, bytes, 500, 0);
    EXPECT(!getsockopt(b, SOL_SOCKET, SO_MEMINFO, memory, &len) && len == sizeof memory && memory[0] > 0 && memory[1] == (unsigned)get(b, SOL_SOCKET, SO_RCVBUF) &&
               memory[3] == (unsigned)get(b, SOL_SOCKET, SO_SNDBUF) && memory[8] > 0,
           "SO_MEMINFO tells what waits and what is lost");
    while (recv(b, room, sizeof room, MSG_DONTWAIT) > 0) got++;
    EXPECT(got + memory[8] == 200, "each datagram was received or lost");
    send(a, bytes, 10, 0);
    EXPECT(control(b, SOL_SOCKET, SO_RXQ_OVFL, &lost, sizeof lost) == 1 && lost == memory[8], "the next one tells how many");
    EXPECT(!getsockopt(b, SOL_SOCKET, SO_MEMINFO, memory, &len) && memory[0] == 0, "nothing waits any more");
    len = 8;
    EXPECT(!getsockopt(b, SOL_SOCKET, SO_MEMINFO, memory, &len) && len == 8, "a part of it can be asked for");
    int cork = 1;
    setsockopt(a, SOL_UDP, UDP_CORK, &cork, sizeof cork);
    send(a, bytes, 1000, 0);
    len = sizeof memory;
    EXPECT(!getsockopt(a, SOL_SOCKET, SO_MEMINFO, memory, &len) && memory[2] >= 1000, "what is gathered counts");
    close(a), close(b);
}

static void cookies(void) {
    uint64_t all[100], again;
    int distinct = 1, fds[100];
    socklen_t len = sizeof *all;
    for (int i = 0; i < 100; i++) {
        fds[i] = socket(i % 3 == 2 ? AF_UNIX : i % 3 ? AF_INET6 : AF_INET, i % 2 ? SOCK_STREAM : SOCK_DGRAM, 0);
        distinct &= !getsockopt(fds[i], SOL_SOCKET, SO_COOKIE, &all[i], &len) && len == 8 && all[i] != 0;
        for (int j = 0; j < i; j++) distinct &= all[i] != all[j];
    }
    EXPECT(distinct, "each socket has a cookie of its own");
    EXPECT(!getsockopt(fds[7], SOL_SOCKET, SO_COOKIE, &again, &len) && again == all[7], "which stays");
    len = 4;
    EXPECT(refuses(getsockopt(fds[7], SOL_SOCKET, SO_COOKIE, &again, &len), EINVAL), "and is told whole");
    for (int i = 0; i < 100; i++) close(fds[i]);
}

static int limit(int fd, int option, long seconds, long micros) {
    struct timeval time = {seconds, micros};
    return setsockopt(fd, SOL_SOCKET, option, &time, sizeof time);
}

static void limits(int fd) {
    struct timeval told = {9, 9};
    socklen_t len = sizeof told;
    EXPECT(refuses(limit(fd, SO_RCVTIMEO, 0, -1), EDOM) && refuses(limit(fd, SO_SNDTIMEO, 0, 1000000), EDOM) && refuses(limit(fd, SO_RCVTIMEO, 5, 2000000), EDOM),
           "microseconds are less than a second");
    EXPECT(!limit(fd, SO_RCVTIMEO, -1, 0) && !getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &told, &len) && !told.tv_sec && !told.tv_usec &&
               refuses(recv(fd, room, 1, 0), EAGAIN),
           "a limit that is over ends a call at once");
    EXPECT(!limit(fd, SO_RCVTIMEO, 2, 500000) && !getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &told, &len) && told.tv_sec == 2 && told.tv_usec == 500000,
           "one to come is kept");
    EXPECT(!limit(fd, SO_RCVTIMEO, 0x7fffffffffffffff, 0) && !getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &told, &len) && !told.tv_sec && !told.tv_usec,
           "one that is too far away is none");
}

static void streams(void) {
    union name to;
    int fd = named(SOCK_STREAM, &to);
    uint32_t memory[9] = {0};
    socklen_t len = sizeof memory;
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) && len == sizeof memory && memory[1] == (unsigned)get(fd, SOL_SOCKET, SO_RCVBUF),
           "streams have memory too");
    EXPECT(!set(fd, SOL_IP, IP_TOS, 0xff) && get(fd, SOL_IP, IP_TOS) == 0xfc, "their congestion bits are their own");
    EXPECT(refuses(set(fd, SOL_IP, IP_MULTICAST_TTL, 3), EINVAL), "and they have no groups");
    if (!v6) EXPECT(get(fd, SOL_IPV6, IPV6_V6ONLY) == -EOPNOTSUPP && refuses(set(fd, SOL_IPV6, IPV6_V6ONLY, 1), ENOPROTOOPT), "IPv4 does not know IPv6's options");
    close(fd);
}

// A connection has what was set of its listener before it was accepted.
static void accepted(void) {
    union name to;
    int listener = named(SOCK_STREAM, &to), client = socket(to.any.sa_family, SOCK_STREAM, 0);
    struct timeval told = {0};
    struct linger linger = {.l_onoff = 1, .l_linger = 7};
    socklen_t len = sizeof told, linger_len = sizeof linger;
    limit(listener, SO_RCVTIMEO, 0, 20000), limit(listener, SO_SNDTIMEO, 3, 0);
    set(listener, SOL_SOCKET, SO_PRIORITY, 5), set(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
    setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    listen(listener, 1), connect(client, &to.any, name_len());
    int fd;
    // The limit is accept's, too.
    do fd = accept(listener, NULL, NULL);
    while (fd < 0 && errno == EAGAIN);
    EXPECT(refuses(read(fd, room, 1), EAGAIN), "a connection has its listener's limit for receiving");
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &told, &len) && told.tv_sec == 3, "for sending");
    EXPECT(get(fd, SOL_SOCKET, SO_PRIORITY) == 0 && get(fd, SOL_SOCKET, SO_KEEPALIVE) == 1, "its probes, not its priority");
    memset(&linger, 0, sizeof linger);
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &linger_len) && linger.l_onoff && linger.l_linger == 7, "and how long it lingers");
    close(fd), close(client), close(listener);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 + i / 256;
    for (v6 = 0; v6 < 2; v6++) {
        union name name;
        int fd = named(SOCK_DGRAM, &name);
        destinations();
        hops();
        least_hops();
        paths();
        checksums();
        drops();
        limits(fd);
        streams();
        accepted();
        close(fd);
    }
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    limits(ends[0]);
    mapped();
    cookies();
    return check_status();
}
