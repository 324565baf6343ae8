// What a UDP socket hears of datagrams that did not arrive: pending errors, and the queue of
// errors (IP_RECVERR, IPV6_RECVERR, MSG_ERRQUEUE).
#include "check.h"
#include "family.h"
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char bytes[70000], room[70000];

static int datagrams(void) { return socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0); }

// The port of a service that nobody offers any more ("discard"). One that a socket had and gave
// back could be given to the next socket without a name, which then would send to itself.
static union name closed_port(void) {
    union name name = loopback();
    *(v6 ? &name.six.sin6_port : &name.four.sin_port) = htons(9);
    return name;
}

static int want_errors(int fd, int on) {
    return v6 ? setsockopt(fd, SOL_IPV6, IPV6_RECVERR, &on, sizeof on) : setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof on);
}

static int pending(int fd) {
    int error = -1;
    socklen_t len = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    return error;
}

static int ready(int fd) {
    struct pollfd one = {fd, POLLIN | POLLPRI | POLLRDHUP, 0};
    return poll(&one, 1, 0) < 0 ? -1 : one.revents;
}

// What the queue says.
static struct {
    struct sock_extended_err error;
    union name offender, to;
    int flags, ttl, has_error;
} told;

static ssize_t next_error(int fd, size_t len) {
    static char control[512];
    struct iovec part = {room, len};
    memset(&told, 0, sizeof told);
    told.ttl = -1;
    struct msghdr message = {.msg_name = &told.to, .msg_namelen = sizeof told.to, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_ERRQUEUE);
    if (got < 0) return got;
    told.flags = message.msg_flags;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        size_t bytes = header->cmsg_len - CMSG_LEN(0);
        int is_error = (header->cmsg_level == SOL_IP && header->cmsg_type == IP_RECVERR) ||
                       (header->cmsg_level == SOL_IPV6 && header->cmsg_type == IPV6_RECVERR);
        if (header->cmsg_type == (header->cmsg_level == SOL_IP ? IP_TTL : IPV6_HOPLIMIT)) memcpy(&told.ttl, CMSG_DATA(header), sizeof told.ttl);
        if (!is_error) continue;
        told.has_error = 1;
        memcpy(&told.error, CMSG_DATA(header), sizeof told.error);
        memcpy(&told.offender, CMSG_DATA(header) + sizeof told.error, bytes - sizeof told.error);
    }
    return got;
}

static int is_loopback(const union name *name) {
    if (!v6) return name->four.sin_family == AF_INET && name->four.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    return name->six.sin6_family == AF_INET6 && !memcmp(&name->six.sin6_addr, &in6addr_loopback, 16);
}

static int tells_port(void) {
    return told.error.ee_errno == ECONNREFUSED && told.error.ee_origin == (v6 ? SO_EE_ORIGIN_ICMP6 : SO_EE_ORIGIN_ICMP) &&
           told.error.ee_type == (v6 ? ICMP6_DST_UNREACH : ICMP_DEST_UNREACH) &&
           told.error.ee_code == (v6 ? ICMP6_DST_UNREACH_NOPORT : ICMP_PORT_UNREACH) && !told.error.ee_info && !told.error.ee_data;
}

static int says(ssize_t result, int error) { return result < 0 && errno == error; }

static void unasked(void) {
    union name nowhere = closed_port();
    int fd = datagrams(), error = -1;
    socklen_t len = sizeof error;
    connect(fd, &nowhere.any, name_len());
    EXPECT(send(fd, "x", 1, 0) == 1 && ready(fd) == POLLERR, "a refused datagram is an error to poll, and nothing to read");
    EXPECT(says(next_error(fd, 10), EAGAIN), "none is queued unless the program asks");
    EXPECT(pending(fd) == ECONNREFUSED && !pending(fd) && !ready(fd), "SO_ERROR tells it once");
    EXPECT(send(fd, "x", 1, 0) == 1 && says(send(fd, "y", 1, 0), ECONNREFUSED) && send(fd, "z", 1, 0) == 1, "or the next send does");
    EXPECT(says(recv(fd, room, 1, 0), ECONNREFUSED) && says(recv(fd, room, 1, MSG_DONTWAIT), EAGAIN), "or a receive");
    close(fd);
    fd = datagrams();
    EXPECT(sendto(fd, "x", 1, 0, &nowhere.any, name_len()) == 1 && !pending(fd) && !ready(fd), "a socket without a peer hears nothing");
    EXPECT(!getsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &error, &len) && error == 0, "as long as it does not ask");
    EXPECT(!want_errors(fd, 1) && !getsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &error, &len) && error == 1,
           "which is an option");
    close(fd);
}

static void asked(int is_connected) {
    const char *kind = is_connected ? "with" : "without";
    union name nowhere = closed_port();
    int fd = datagrams();
    want_errors(fd, 1);
    if (is_connected) connect(fd, &nowhere.any, name_len());
    sendto(fd, "hello", 5, 0, &nowhere.any, name_len());
    EXPECT(ready(fd) == POLLERR, "a socket %s a peer that asks is told by poll", kind);
    EXPECT(next_error(fd, 100) == 5 && !memcmp(room, "hello", 5) && told.flags == MSG_ERRQUEUE, "and gets the datagram back");
    EXPECT(!memcmp(&told.to, &nowhere, name_len()), "with whom it was for");
    EXPECT(told.has_error && tells_port() && is_loopback(&told.offender), "why it did not arrive and who said so");
    EXPECT(!ready(fd) && !pending(fd) && says(next_error(fd, 100), EAGAIN), "the last one takes the pending error away");
    for (int i = 0; i < 3; i++) sendto(fd, "abc", i + 1, 0, &nowhere.any, name_len()), pending(fd);
    EXPECT(!pending(fd) && ready(fd) == POLLERR, "queued errors are told by poll without a pending one");
    EXPECT(says(recv(fd, room, 1, MSG_DONTWAIT), EAGAIN), "but not by a receive");
    EXPECT(next_error(fd, 100) == 1 && pending(fd) == ECONNREFUSED, "each makes the next one pend");
    EXPECT(next_error(fd, 100) == 2 && says(recv(fd, room, 1, MSG_DONTWAIT), ECONNREFUSED), "which a receive tells then");
    EXPECT(next_error(fd, 1) == 1 && told.flags == (MSG_ERRQUEUE | MSG_TRUNC), "what does not fit is cut");
    int quote = v6 ? 1280 - 40 - 8 - 40 - 8 : 576 - 20 - 8 - 20 - 8;
    sendto(fd, bytes, 5000, 0, &nowhere.any, name_len());
    EXPECT(next_error(fd, sizeof room) == quote && !memcmp(room, bytes, quote), "of a long datagram the start comes back");
    sendto(fd, "x", 1, 0, &nowhere.any, name_len());
    EXPECT(!want_errors(fd, 0) && says(next_error(fd, 100), EAGAIN) && pending(fd) == ECONNREFUSED && !ready(fd),
           "who does not want to hear any more loses what was queued, but not the pending error");
    close(fd);
}

static void hops(void) {
    union name nowhere = closed_port();
    int fd = datagrams(), on = 1;
    want_errors(fd, 1);
    if (v6) setsockopt(fd, SOL_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof on);
    else setsockopt(fd, SOL_IP, IP_RECVTTL, &on, sizeof on);
    sendto(fd, "x", 1, 0, &nowhere.any, name_len());
    EXPECT(next_error(fd, 10) == 1 && told.ttl == 64 && tells_port(), "other control messages tell of the ICMP packet");
    close(fd);
}

// Errors of both kinds, of a socket that hears of several peers: a closed port, which is odd, and one from
// `port` on, odd or even, since a kernel may keep what it hears of them in different places.
static void both_kinds(unsigned port) {
    union name nowhere = closed_port(), to = loopback();
    int b = datagrams();
    do *(v6 ? &to.six.sin6_port : &to.four.sin_port) = htons(port), port += 2;
    while (bind(b, &to.any, name_len()) && port < 65534);
    int c = datagrams();
    want_errors(c, 1);
    EXPECT(says(sendto(c, bytes, 65530, 0, &to.any, name_len()), EMSGSIZE) && sendto(c, "x", 1, 0, &nowhere.any, name_len()) == 1 &&
               pending(c) == ECONNREFUSED && next_error(c, 100) == 0 && told.error.ee_errno == EMSGSIZE && is_loopback(&told.to),
           "one of ours comes in its turn");
    EXPECT(pending(c) == ECONNREFUSED && next_error(c, 100) == 1 && tells_port() && !pending(c), "and makes an ICMP error pend");
    sendto(c, "x", 1, 0, &nowhere.any, name_len()), pending(c);
    EXPECT(says(sendto(c, bytes, 65530, 0, &to.any, name_len()), EMSGSIZE) && next_error(c, 100) == 1 && tells_port() && !pending(c) &&
               ready(c) == POLLERR && next_error(c, 100) == 0 && !ready(c),
           "the other way nothing pends");
    close(b), close(c);
}

static void local(void) {
    union name to = loopback();
    socklen_t len = sizeof to;
    int b = datagrams(), a = datagrams();
    bind(b, &to.any, name_len()), getsockname(b, &to.any, &len);
    connect(a, &to.any, name_len());
    want_errors(a, 1);
    EXPECT(says(send(a, bytes, 65530, 0), EMSGSIZE) && ready(a) == POLLERR && !pending(a), "a datagram that is too long is queued too, nothing pends");
    EXPECT(next_error(a, 100) == 0 && told.has_error && told.error.ee_errno == EMSGSIZE && told.error.ee_origin == SO_EE_ORIGIN_LOCAL &&
               !told.error.ee_type && !told.error.ee_code && told.error.ee_info == (v6 ? 65536 : 65535),
           "with what would fit");
    EXPECT(told.offender.any.sa_family == AF_UNSPEC && !memcmp(&told.to, &to, name_len()), "nobody offended");
    if (!v6) EXPECT(says(send(a, bytes, 65536, 0), EMSGSIZE) && says(next_error(a, 1), EAGAIN), "one that no packet holds is not");
    want_errors(a, 0);
    EXPECT(says(send(a, bytes, 65530, 0), EMSGSIZE) && !ready(a), "nor is any unless the program asks");
    close(a), close(b);
    both_kinds(20000), both_kinds(20001);
}

static void bounded(void) {
    union name nowhere = closed_port();
    int fd = datagrams(), size = 20000, count = 0;
    want_errors(fd, 1);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    for (int i = 0; i < 3000; i++) sendto(fd, bytes, 400, 0, &nowhere.any, name_len()), pending(fd);
    while (next_error(fd, 1000) == 400) count++;
    EXPECT(count > 0 && count < 500, "the receive buffer bounds the queue");
    for (int i = 0; i < 3000; i++) sendto(fd, "x", 1, 0, &nowhere.any, name_len()), pending(fd);
    EXPECT(next_error(fd, 10) == 1, "and takes errors again");
    close(fd);
    int whole = 1;
    for (int round = 0; round < 300; round++) {
        fd = datagrams();
        want_errors(fd, 1);
        for (int i = 0; i < 100; i++) sendto(fd, bytes, 500, 0, &nowhere.any, name_len()), pending(fd);
        whole &= next_error(fd, 1000) == 500;
        close(fd);
    }
    EXPECT(whole, "closing gives back what was queued");
}

static void *sends_later(void *of) {
    usleep(50000);
    send(*(int *)of, "x", 1, 0);
    return NULL;
}

static void waits(void) {
    union name nowhere = closed_port();
    int fd = datagrams();
    pthread_t other;
    connect(fd, &nowhere.any, name_len());
    pthread_create(&other, NULL, sends_later, &fd);
    EXPECT(says(recv(fd, room, 1, 0), ECONNREFUSED), "an error ends a wait for a datagram");
    pthread_join(other, NULL);
    pthread_create(&other, NULL, sends_later, &fd);
    struct pollfd one = {fd, POLLIN, 0};
    EXPECT(poll(&one, 1, 20000) == 1 && one.revents == POLLERR, "and one by poll");
    pthread_join(other, NULL);
    pending(fd), want_errors(fd, 1);
    send(fd, "x", 1, 0), pending(fd);
    struct timeval limit = {0, 50000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT(says(recv(fd, room, 1, 0), EAGAIN) && next_error(fd, 10) == 1, "what is only queued does not");
    close(fd);
}

static unsigned short sum(const void *of, size_t len) {
    const unsigned short *words = of;
    unsigned total = 0;
    for (size_t i = 0; i < len / 2; i++) total += words[i];
    while (total >> 16) total = (total & 0xffff) + (total >> 16);
    return ~total;
}

// Sends an ICMP message about a datagram from `own` to `to`, both of loopback.
static void forge(int raw, int type, int code, unsigned rest, const union name *own, const union name *to) {
    union name back = loopback();
    struct udphdr udp = {.source = v6 ? own->six.sin6_port : own->four.sin_port, .dest = v6 ? to->six.sin6_port : to->four.sin_port, .len = htons(12)};
    char packet[100] = {type, code}, *at = packet + 8;
    rest = htonl(rest);
    memcpy(packet + 4, &rest, 4);
    if (v6) {
        struct ip6_hdr ip = {.ip6_src = in6addr_loopback, .ip6_dst = in6addr_loopback};
        ip.ip6_flow = htonl(6u << 28), ip.ip6_plen = htons(12), ip.ip6_nxt = IPPROTO_UDP, ip.ip6_hlim = 1;
        memcpy(at, &ip, sizeof ip), at += sizeof ip;
    } else {
        struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 1, .protocol = IPPROTO_UDP, .tot_len = htons(32), .saddr = htonl(INADDR_LOOPBACK), .daddr = htonl(INADDR_LOOPBACK)};
        ip.check = sum(&ip, sizeof ip);
        memcpy(at, &ip, sizeof ip), at += sizeof ip;
    }
    memcpy(at, &udp, sizeof udp), at += sizeof udp;
    memcpy(at, "data", 4), at += 4;
    if (!v6) {
        unsigned short check = sum(packet, at - packet);
        memcpy(packet + 2, &check, 2);
    }
    sendto(raw, packet, at - packet, 0, &back.any, name_len());
}

struct verdict {
    int type, code;
    unsigned rest, info;
    int error, is_hard;
};

static const struct verdict of_v4[] = {
    {3, 0, 0, 0, ENETUNREACH, 0},  {3, 1, 0, 0, EHOSTUNREACH, 0}, {3, 2, 0, 0, ENOPROTOOPT, 1},  {3, 3, 0, 0, ECONNREFUSED, 1},
    {3, 6, 0, 0, ENETUNREACH, 1},  {3, 7, 0, 0, EHOSTDOWN, 1},    {3, 9, 0, 0, ENETUNREACH, 1},  {3, 10, 0, 0, EHOSTUNREACH, 1},
    {3, 11, 0, 0, ENETUNREACH, 0}, {3, 12, 0, 0, EHOSTUNREACH, 0}, {3, 13, 0, 0, EHOSTUNREACH, 1}, {11, 0, 0, 0, EHOSTUNREACH, 0},
    {12, 0, 9u << 24, 9, EPROTO, 1}, {0}};
static const struct verdict of_v6[] = {
    {1, 0, 0, 0, ENETUNREACH, 0}, {1, 1, 0, 0, EACCES, 1},       {1, 2, 0, 0, EHOSTUNREACH, 0}, {1, 3, 0, 0, EHOSTUNREACH, 0},
    {1, 4, 0, 0, ECONNREFUSED, 1}, {1, 5, 0, 0, EACCES, 1},      {1, 6, 0, 0, EACCES, 1},       {3, 0, 0, 0, EHOSTUNREACH, 0},
    {3, 1, 0, 0, EHOSTUNREACH, 0}, {4, 0, 40, 40, EPROTO, 1},    {4, 1, 6, 6, EPROTO, 1},       {0}};

static void messages(void) {
    union name own = loopback(), peer = loopback();
    socklen_t len = sizeof own;
    int raw = v6 ? socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6) : socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    int a = datagrams(), b = datagrams();
    bind(a, &own.any, name_len()), getsockname(a, &own.any, &len), len = sizeof peer;
    bind(b, &peer.any, name_len()), getsockname(b, &peer.any, &len);
    EXPECT(raw >= 0, "a raw socket for messages");
    for (const struct verdict *one = v6 ? of_v6 : of_v4; one->type; one++) {
        forge(raw, one->type, one->code, one->rest, &own, &peer);
        EXPECT(!pending(a), "ICMP %d, %d is not told without a peer", one->type, one->code);
    }
    connect(a, &peer.any, name_len());
    for (const struct verdict *one = v6 ? of_v6 : of_v4; one->type; one++) {
        forge(raw, one->type, one->code, one->rest, &own, &peer);
        EXPECT(pending(a) == (one->is_hard ? one->error : 0), "ICMP %d, %d is told to who has a peer if it is final", one->type, one->code);
    }
    want_errors(a, 1);
    for (const struct verdict *one = v6 ? of_v6 : of_v4; one->type; one++) {
        forge(raw, one->type, one->code, one->rest, &own, &peer);
        EXPECT(pending(a) == one->error && next_error(a, 100) == 4 && !memcmp(room, "data", 4) && told.error.ee_errno == (unsigned)one->error &&
                   told.error.ee_type == one->type && told.error.ee_code == one->code && told.error.ee_info == one->info &&
                   is_loopback(&told.offender) && !memcmp(&told.to, &peer, name_len()),
               "ICMP %d, %d is queued", one->type, one->code);
    }
    forge(raw, v6 ? 1 : 3, v6 ? 4 : 3, 0, &peer, &own);
    EXPECT(!pending(a) && says(next_error(a, 1), EAGAIN) && !pending(b), "a message about another's datagram is not");
    close(a), close(b), close(raw);
}

// A socket of IPv6 that speaks to IPv4 has IPv4's option, and hears in IPv6's words.
static void mapped(void) {
    v6 = 0;
    union name four = closed_port(), six = {.six = {.sin6_family = AF_INET6, .sin6_port = four.four.sin_port}};
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.six.sin6_addr);
    v6 = 1;
    int fd = datagrams(), on = 1;
    want_errors(fd, 1);
    sendto(fd, "x", 1, 0, &six.any, sizeof six.six);
    EXPECT(says(next_error(fd, 10), EAGAIN) && !pending(fd), "IPV6_RECVERR tells nothing of IPv4");
    setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof on);
    sendto(fd, "x", 1, 0, &six.any, sizeof six.six);
    EXPECT(next_error(fd, 10) == 1 && told.error.ee_errno == ECONNREFUSED && told.error.ee_origin == SO_EE_ORIGIN_ICMP &&
               !memcmp(&told.to, &six, sizeof six.six) && told.offender.six.sin6_family == AF_INET6 &&
               !memcmp(&told.offender.six.sin6_addr, &six.six.sin6_addr, 16),
           "IP_RECVERR does, with mapped addresses");
    close(fd);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 + i / 256;
    for (v6 = 0; v6 < 2; v6++) {
        unasked();
        asked(0);
        asked(1);
        hops();
        local();
        bounded();
        waits();
        // What a raw socket sends does not reach a stack of the program's own.
        if (v6 || INADDR_LOOPBACK >> 24 == IN_LOOPBACKNET) messages();
    }
    mapped();
    return check_status();
}
