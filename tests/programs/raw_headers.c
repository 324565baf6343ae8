// Raw sockets: packets of UDP and TCP, headers that programs write, and IPv6's own options.
#include "check.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPERIMENT 253
#ifndef IPV6_HDRINCL
#define IPV6_HDRINCL 36
#endif

static struct sockaddr_in lo = {.sin_family = AF_INET};
static struct sockaddr_in6 lo6 = {.sin6_family = AF_INET6};
static char buffer[70000], room[512];

static int set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value);
}

static int get(int fd, int level, int name) {
    int value = -77;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, name, &value, &len) ? -1000 - errno : value;
}

/// Receives with control messages; waits for what is on its way.
static int receive(int fd, struct msghdr *message) {
    static struct iovec bytes = {buffer, sizeof buffer};
    static struct sockaddr_storage from;
    *message = (struct msghdr){.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &bytes,
        .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 5000) == 1 ? recvmsg(fd, message, 0) : -2;
}

static int is_empty(int fd) {
    return recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

/// The bytes of a control message; NULL without it.
static unsigned char *told(struct msghdr *message, int level, int kind) {
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one))
        if (one->cmsg_level == level && one->cmsg_type == kind) return CMSG_DATA(one);
    return NULL;
}

struct datagram {
    struct udphdr udp;
    char bytes[5];
} __attribute__((packed));

struct packet {
    struct iphdr ip;
    struct datagram datagram;
} __attribute__((packed));

/// A UDP socket on loopback, whose port is in `lo` until that is cleared.
static int udp_socket(struct sockaddr_in *name) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t len = sizeof *name;
    *name = lo;
    return bind(fd, (void *)name, len) || getsockname(fd, (void *)name, &len) ? -1 : fd;
}

static struct datagram datagram_to(struct sockaddr_in *name, const char *bytes) {
    struct datagram made = {.udp = {htons(777), name->sin_port, htons(13), 0}};
    memcpy(made.bytes, bytes, 5);
    return made;
}

static void protocols_are_those_of_linux(void) {
    static const int families[] = {AF_INET, AF_INET6}, good[] = {1, 2, 6, 17, 58, 97, 255};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 7; j++) {
            int fd = socket(families[i], SOCK_RAW, good[j]), protocol;
            socklen_t len = sizeof protocol;
            CHECK(fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len));
            CHECK(protocol == good[j] && !close(fd));
        }
        CHECK(socket(families[i], SOCK_RAW, 0) == -1 && errno == EPROTONOSUPPORT);
        CHECK(socket(families[i], SOCK_RAW, -1) == -1 && errno == EINVAL);
        CHECK(socket(families[i], SOCK_DGRAM, 5000) == -1 && errno == EINVAL);
        pid_t child = fork();
        if (!child) {
            int refused = !setgid(65534) && !setuid(65534) &&
                          socket(families[i], SOCK_RAW, EXPERIMENT) == -1 && errno == EPERM;
            _exit(!refused);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void a_datagram_made_by_hand_reaches_its_port_and_is_seen(void) {
    struct sockaddr_in name, from;
    struct msghdr message;
    socklen_t len = sizeof from;
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP), udp = udp_socket(&name);
    struct datagram hello = datagram_to(&name, "hello");
    CHECK(raw >= 0 && udp >= 0 && !set(raw, IPPROTO_IP, IP_TTL, 9));
    CHECK(sendto(raw, &hello, sizeof hello, 0, (void *)&lo, sizeof lo) == sizeof hello);
    CHECK(recvfrom(udp, buffer, sizeof buffer, 0, (void *)&from, &len) == 5);
    CHECK(!memcmp(buffer, "hello", 5) && from.sin_port == htons(777));
    CHECK(receive(raw, &message) == 33);
    struct iphdr *ip = (void *)buffer;
    CHECK(ip->ttl == 9 && ip->protocol == 17 && ntohs(ip->tot_len) == 33);
    CHECK(message.msg_namelen == sizeof from && message.msg_controllen == 0);
    CHECK(!set(raw, IPPROTO_IP, IP_PKTINFO, 1) && !set(raw, IPPROTO_IP, IP_RECVTTL, 1));
    CHECK(!set(raw, IPPROTO_IP, IP_RECVTOS, 1) && !set(udp, IPPROTO_IP, IP_TOS, 0x20));
    CHECK(sendto(udp, "abc", 3, 0, (void *)&name, sizeof name) == 3);
    CHECK(receive(raw, &message) == 31 && told(&message, IPPROTO_IP, IP_TTL));
    CHECK(*told(&message, IPPROTO_IP, IP_TTL) == 64 && *told(&message, IPPROTO_IP, IP_TOS) == 0x20);
    struct in_pktinfo *info = (void *)told(&message, IPPROTO_IP, IP_PKTINFO);
    CHECK(info && info->ipi_ifindex == 1 && info->ipi_addr.s_addr == lo.sin_addr.s_addr);
    close(raw), close(udp);
}

static void a_raw_socket_sees_segments_and_connections_go_on(void) {
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_TCP), listener = socket(AF_INET, SOCK_STREAM, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = lo;
    struct msghdr message;
    socklen_t len = sizeof name;
    CHECK(raw >= 0 && !bind(listener, (void *)&name, len) && !listen(listener, 1));
    CHECK(!getsockname(listener, (void *)&name, &len) && !connect(client, (void *)&name, len));
    int server = accept(listener, NULL, NULL), seen = 0;
    CHECK(write(client, "abc", 3) == 3 && read(server, buffer, 9) == 3);
    while (!seen && receive(raw, &message) > 0)
        seen = buffer[9] == 6 && !memcmp(buffer + 22, &name.sin_port, 2);
    CHECK(seen);
    close(raw), close(listener), close(client), close(server);
}

static void a_header_that_a_program_writes_is_sent_as_it_is(void) {
    struct sockaddr_in name;
    struct msghdr message;
    int any = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
    int udp = udp_socket(&name);
    struct packet packet = {.datagram = datagram_to(&name, "hello")};
    packet.ip = (struct iphdr){.ihl = 5, .version = 4, .ttl = 33, .protocol = IPPROTO_UDP,
        .tot_len = htons(1), .tos = 0x40, .daddr = lo.sin_addr.s_addr};
    CHECK(get(any, IPPROTO_IP, IP_HDRINCL) == 1 && get(raw, IPPROTO_IP, IP_HDRINCL) == 0);
    CHECK(sendto(any, &packet, sizeof packet, 0, (void *)&lo, sizeof lo) == sizeof packet);
    CHECK(receive(raw, &message) == sizeof packet);
    struct iphdr *ip = (void *)buffer;
    CHECK(ip->ttl == 33 && ip->tos == 0x40 && ntohs(ip->tot_len) == sizeof packet && ip->id);
    CHECK(ip->saddr == lo.sin_addr.s_addr && ip->check && is_empty(any));
    CHECK(recv(udp, buffer, sizeof buffer, 0) == 5 && !memcmp(buffer, "hello", 5));
    packet.ip.saddr = htonl(0x7f000003), packet.ip.id = htons(4711);
    CHECK(!set(raw, IPPROTO_IP, IP_HDRINCL, 1) && get(raw, IPPROTO_IP, IP_HDRINCL) == 1);
    CHECK(sendto(raw, &packet, sizeof packet, 0, (void *)&lo, sizeof lo) == sizeof packet);
    CHECK(receive(raw, &message) == sizeof packet && ip->id == htons(4711));
    CHECK(ip->saddr == htonl(0x7f000003));
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    CHECK(recvfrom(udp, buffer, sizeof buffer, 0, (void *)&from, &len) == 5);
    CHECK(from.sin_addr.s_addr == htonl(0x7f000003));
    CHECK(sendto(any, &packet, 19, 0, (void *)&lo, sizeof lo) == -1 && errno == EINVAL);
    packet.ip.ihl = 15;
    CHECK(sendto(any, &packet, sizeof packet, 0, (void *)&lo, sizeof lo) == -1 && errno == EINVAL);
    CHECK(sendto(any, buffer, 65536, 0, (void *)&lo, sizeof lo) == -1 && errno == EMSGSIZE);
    CHECK(send(any, &packet, sizeof packet, 0) == -1 && errno == EDESTADDRREQ);
    close(any), close(raw), close(udp);
}

static void names_and_ends_are_as_on_linux(void) {
    int fd = socket(AF_INET, SOCK_RAW, EXPERIMENT), count;
    struct sockaddr_in name = lo;
    socklen_t len = sizeof name;
    CHECK(shutdown(fd, SHUT_RD) == -1 && errno == ENOTCONN);
    CHECK(!connect(fd, (void *)&lo, sizeof lo) && !shutdown(fd, SHUT_RD));
    CHECK(getpeername(fd, (void *)&name, &len) == -1 && errno == ENOTCONN);
    name.sin_port = htons(99);
    CHECK(!connect(fd, (void *)&name, len) && !getpeername(fd, (void *)&name, &len));
    CHECK(name.sin_port == htons(99) && bind(fd, (void *)&name, len) == -1 && errno == EINVAL);
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    CHECK(!connect(fd, &nobody, sizeof nobody) && !bind(fd, (void *)&name, len) && !close(fd));
    fd = socket(AF_INET, SOCK_RAW, EXPERIMENT);
    CHECK(!bind(fd, (void *)&name, len));
    CHECK(!getsockname(fd, (void *)&name, &len) && name.sin_port == htons(EXPERIMENT));
    CHECK(name.sin_addr.s_addr == lo.sin_addr.s_addr);
    CHECK(listen(fd, 1) == -1 && errno == EOPNOTSUPP && !ioctl(fd, TIOCOUTQ, &count) && !count);
    close(fd);
}

static void an_echo_over_ipv6_has_its_checksum_and_is_chosen_by_type(void) {
    int fd = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
    struct icmp6_filter filter, before;
    struct msghdr message;
    socklen_t len = sizeof before;
    CHECK(!getsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &before, &len) && len == sizeof before);
    CHECK(ICMP6_FILTER_WILLPASS(0, &before) && ICMP6_FILTER_WILLPASS(255, &before));
    ICMP6_FILTER_SETBLOCKALL(&filter);
    ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
    CHECK(!setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter));
    CHECK(!getsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &before, &len));
    CHECK(!memcmp(&before, &filter, sizeof filter));
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && !set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1));
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1));
    CHECK(get(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT) == 1);
    struct icmp6_hdr question = {.icmp6_type = ICMP6_ECHO_REQUEST, .icmp6_cksum = 1};
    question.icmp6_id = htons(77);
    CHECK(sendto(fd, &question, sizeof question, 0, (void *)&lo6, sizeof lo6) == sizeof question);
    CHECK(receive(fd, &message) == sizeof question);
    struct icmp6_hdr *answer = (void *)buffer;
    struct sockaddr_in6 *from = message.msg_name;
    CHECK(answer->icmp6_type == ICMP6_ECHO_REPLY && answer->icmp6_id == htons(77));
    CHECK(message.msg_namelen == sizeof *from && IN6_IS_ADDR_LOOPBACK(&from->sin6_addr));
    CHECK(from->sin6_port == 0 && told(&message, IPPROTO_IPV6, IPV6_HOPLIMIT));
    CHECK(*told(&message, IPPROTO_IPV6, IPV6_HOPLIMIT) == 64);
    CHECK(told(&message, IPPROTO_IPV6, IPV6_TCLASS));
    struct in6_pktinfo *info = (void *)told(&message, IPPROTO_IPV6, IPV6_PKTINFO);
    CHECK(info && info->ipi6_ifindex == 1 && IN6_IS_ADDR_LOOPBACK(&info->ipi6_addr) && is_empty(fd));
    ICMP6_FILTER_SETPASSALL(&filter);
    CHECK(!setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter));
    CHECK(sendto(fd, &question, sizeof question, 0, (void *)&lo6, sizeof lo6) == sizeof question);
    CHECK(receive(fd, &message) == 8 && answer->icmp6_type == ICMP6_ECHO_REQUEST);
    CHECK(receive(fd, &message) == 8 && answer->icmp6_type == ICMP6_ECHO_REPLY);
    close(fd);
}

static void filters_of_messages_are_for_their_protocols(void) {
    int udp = socket(AF_INET, SOCK_RAW, IPPROTO_UDP), six = socket(AF_INET6, SOCK_RAW, EXPERIMENT);
    struct icmp6_filter filter = {{0}};
    socklen_t len = 4;
    int number;
    CHECK(set(udp, SOL_RAW, 1, 1) == -1 && errno == EOPNOTSUPP);
    CHECK(getsockopt(udp, SOL_RAW, 1, &number, &len) == -1 && errno == EOPNOTSUPP);
    CHECK(setsockopt(six, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter) == -1);
    CHECK(errno == EOPNOTSUPP);
    close(udp), close(six);
}

static void a_checksum_is_filled_in_and_looked_at_where_a_program_says(void) {
    int icmp = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), one = socket(AF_INET6, SOCK_RAW, 97);
    int other = socket(AF_INET6, SOCK_RAW, 97), udp = socket(AF_INET6, SOCK_DGRAM, 0);
    CHECK(get(icmp, IPPROTO_IPV6, IPV6_CHECKSUM) == 2 && get(one, IPPROTO_IPV6, IPV6_CHECKSUM) == -1);
    CHECK(set(icmp, IPPROTO_IPV6, IPV6_CHECKSUM, 2) == -1 && errno == EINVAL);
    CHECK(set(one, IPPROTO_IPV6, IPV6_CHECKSUM, 3) == -1 && errno == EINVAL);
    CHECK(set(udp, IPPROTO_IPV6, IPV6_CHECKSUM, 2) == -1 && errno == ENOPROTOOPT);
    CHECK(!set(one, IPPROTO_IPV6, IPV6_CHECKSUM, 0) && get(one, IPPROTO_IPV6, IPV6_CHECKSUM) == 0);
    CHECK(sendto(one, "\0\0abcd", 6, 0, (void *)&lo6, sizeof lo6) == 6);
    CHECK(recv(other, buffer, sizeof buffer, 0) == 6);
    CHECK((unsigned char)buffer[0] == 0x3a && (unsigned char)buffer[1] == 0xd0);
    CHECK(recv(one, buffer, sizeof buffer, 0) == 6);
    CHECK(sendto(other, "\0\0wxyz", 6, 0, (void *)&lo6, sizeof lo6) == 6);
    CHECK(recv(other, buffer, sizeof buffer, 0) == 6 && is_empty(one));
    CHECK(!set(one, IPPROTO_IPV6, IPV6_CHECKSUM, 50));
    CHECK(sendto(one, "abcd", 4, 0, (void *)&lo6, sizeof lo6) == -1 && errno == EINVAL);
    CHECK(!set(one, IPPROTO_IPV6, IPV6_CHECKSUM, -1));
    CHECK(sendto(one, "abcd", 4, 0, (void *)&lo6, sizeof lo6) == 4);
    CHECK(recv(one, buffer, sizeof buffer, 0) == 4 && recv(other, buffer, sizeof buffer, 0) == 4);
    close(icmp), close(one), close(other), close(udp);
}

static void hops_and_classes_of_ipv6_are_set_for_all_or_for_one(void) {
    int fd = socket(AF_INET6, SOCK_RAW, EXPERIMENT);
    struct msghdr message;
    CHECK(get(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS) == 64 && get(fd, IPPROTO_IPV6, IPV6_TCLASS) == 0);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 7) && !set(fd, IPPROTO_IPV6, IPV6_TCLASS, 0x20));
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) && !set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1));
    CHECK(sendto(fd, "one", 3, 0, (void *)&lo6, sizeof lo6) == 3 && receive(fd, &message) == 3);
    CHECK(*told(&message, IPPROTO_IPV6, IPV6_HOPLIMIT) == 7);
    CHECK(*told(&message, IPPROTO_IPV6, IPV6_TCLASS) == 0x20);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), IPPROTO_IPV6, IPV6_HOPLIMIT}};
    *(int *)CMSG_DATA(&control.header) = 33;
    struct iovec bytes = {"two", 3};
    struct msghdr sent = {.msg_name = &lo6, .msg_namelen = sizeof lo6, .msg_iov = &bytes,
        .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    CHECK(sendmsg(fd, &sent, 0) == 3 && receive(fd, &message) == 3);
    CHECK(*told(&message, IPPROTO_IPV6, IPV6_HOPLIMIT) == 33);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, -1));
    CHECK(get(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS) == 64);
    CHECK(set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 256) == -1 && errno == EINVAL);
    close(fd);
}

static void a_packet_of_ipv6_may_bring_its_header(void) {
    int any = socket(AF_INET6, SOCK_RAW, IPPROTO_RAW), fd = socket(AF_INET6, SOCK_RAW, EXPERIMENT);
    struct msghdr message;
    struct {
        struct ip6_hdr ip;
        char bytes[4];
    } packet = {.bytes = "abcd"};
    packet.ip.ip6_vfc = 0x60, packet.ip.ip6_plen = htons(4), packet.ip.ip6_nxt = EXPERIMENT;
    packet.ip.ip6_hlim = 21, packet.ip.ip6_src = packet.ip.ip6_dst = in6addr_loopback;
    CHECK(get(any, IPPROTO_IPV6, IPV6_HDRINCL) == 1 && get(fd, IPPROTO_IPV6, IPV6_HDRINCL) == 0);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1));
    CHECK(sendto(any, &packet, 44, 0, (void *)&lo6, sizeof lo6) == 44);
    CHECK(receive(fd, &message) == 4 && !memcmp(buffer, "abcd", 4));
    CHECK(*told(&message, IPPROTO_IPV6, IPV6_HOPLIMIT) == 21);
    CHECK(sendto(any, &packet, 20, 0, (void *)&lo6, sizeof lo6) == -1 && errno == EINVAL);
    close(any), close(fd);
}

static void names_of_ipv6_choose_what_is_heard(void) {
    int fd = socket(AF_INET6, SOCK_RAW, EXPERIMENT), other = socket(AF_INET6, SOCK_RAW, EXPERIMENT);
    struct sockaddr_in6 name = lo6;
    socklen_t len = sizeof name;
    name.sin6_addr.s6_addr[0] = 0x20, name.sin6_addr.s6_addr[1] = 1;
    CHECK(bind(fd, (void *)&name, sizeof name) == -1 && errno == EADDRNOTAVAIL);
    CHECK(!bind(fd, (void *)&lo6, sizeof lo6) && !getsockname(fd, (void *)&name, &len));
    CHECK(name.sin6_port == htons(EXPERIMENT) && IN6_IS_ADDR_LOOPBACK(&name.sin6_addr));
    CHECK(!connect(fd, (void *)&lo6, sizeof lo6) && send(fd, "abc", 3, 0) == 3);
    CHECK(recv(fd, buffer, sizeof buffer, 0) == 3 && recv(other, buffer, sizeof buffer, 0) == 3);
    name.sin6_port = htons(300);
    CHECK(sendto(other, "x", 1, 0, (void *)&name, len) == -1 && errno == EINVAL);
    name.sin6_port = htons(98);
    CHECK(sendto(other, "x", 1, 0, (void *)&name, len) == -1 && errno == EINVAL);
    struct sock_filter second[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'b', 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 2),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {4, second};
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    CHECK(send(fd, "aaa", 3, 0) == 3 && send(fd, "bbb", 3, 0) == 3);
    CHECK(recv(fd, buffer, sizeof buffer, 0) == 2 && !memcmp(buffer, "bb", 2) && is_empty(fd));
    close(fd), close(other);
}

static void a_queue_has_a_limit(void) {
    static const int families[] = {AF_INET, AF_INET6};
    for (int i = 0; i < 2; i++) {
        int fd = socket(families[i], SOCK_RAW, EXPERIMENT), kept = 0;
        void *name = i ? (void *)&lo6 : (void *)&lo;
        CHECK(!set(fd, SOL_SOCKET, SO_RCVBUF, 5000));
        for (int sent = 0; sent < 2000; sent++)
            CHECK(sendto(fd, buffer, 1000, 0, name, i ? sizeof lo6 : sizeof lo) == 1000);
        while (recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0) kept++;
        CHECK(kept > 0 && kept < 30);
        close(fd);
    }
}

int main(void) {
    lo.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    lo6.sin6_addr = in6addr_loopback;
    TEST(protocols_are_those_of_linux);
    TEST(a_datagram_made_by_hand_reaches_its_port_and_is_seen);
    TEST(a_raw_socket_sees_segments_and_connections_go_on);
    TEST(a_header_that_a_program_writes_is_sent_as_it_is);
    TEST(names_and_ends_are_as_on_linux);
    TEST(an_echo_over_ipv6_has_its_checksum_and_is_chosen_by_type);
    TEST(filters_of_messages_are_for_their_protocols);
    TEST(a_checksum_is_filled_in_and_looked_at_where_a_program_says);
    TEST(hops_and_classes_of_ipv6_are_set_for_all_or_for_one);
    TEST(a_packet_of_ipv6_may_bring_its_header);
    TEST(names_of_ipv6_choose_what_is_heard);
    TEST(a_queue_has_a_limit);
    return check_status();
}
