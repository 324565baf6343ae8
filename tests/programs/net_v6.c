// Sockets of IPv6 over loopback: both families through one socket, options, groups, and
// what travels beside datagrams.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE 8192

static const int on = 1, off = 0;

static int set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value);
}

static int get(int fd, int level, int name) {
    int value = -2;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, name, &value, &len) ? -3 : value;
}

static struct sockaddr_in6 at(const char *ip, in_port_t port) {
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = port};
    inet_pton(AF_INET6, ip, &name.sin6_addr);
    return name;
}

static struct sockaddr_in at4(const char *ip, in_port_t port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = port};
    inet_pton(AF_INET, ip, &name.sin_addr);
    return name;
}

static int named(int fd, const void *name, socklen_t len) {
    return bind(fd, name, len);
}

static in_port_t port_of(int fd) {
    struct sockaddr_in6 name = {0};
    socklen_t len = sizeof name;
    getsockname(fd, (struct sockaddr *)&name, &len);
    return name.sin6_port;
}

static int opened(int kind, const char *ip, int only) {
    int fd = socket(AF_INET6, kind, 0);
    struct sockaddr_in6 name = at(ip, 0);
    set(fd, IPPROTO_IPV6, IPV6_V6ONLY, only);
    return named(fd, &name, sizeof name) ? -1 : fd;
}

static void a_stream_runs_over_the_loopback_address(void) {
    int server = opened(SOCK_STREAM, "::1", off);
    CHECK(server >= 0 && !listen(server, 4));
    struct sockaddr_in6 to = at("::1", port_of(server)), peer;
    int client = socket(AF_INET6, SOCK_STREAM, 0);
    CHECK(!connect(client, (struct sockaddr *)&to, sizeof to));
    socklen_t len = sizeof peer;
    int accepted = accept(server, (struct sockaddr *)&peer, &len);
    CHECK(accepted >= 0 && len == sizeof peer && peer.sin6_port == port_of(client));
    CHECK(IN6_IS_ADDR_LOOPBACK(&peer.sin6_addr) && peer.sin6_scope_id == 0);
    char word[8] = {0};
    CHECK(write(client, "sand", 4) == 4 && read(accepted, word, 8) == 4 && !strcmp(word, "sand"));
    close(client), close(accepted), close(server);
}

static void a_socket_for_ipv6_alone_leaves_ipv4_to_others(void) {
    int six = opened(SOCK_STREAM, "::", on);
    CHECK(six >= 0 && !listen(six, 4));
    struct sockaddr_in name = at4("0.0.0.0", port_of(six));
    int four = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!named(four, &name, sizeof name) && !listen(four, 4));
    int both = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 any = at("::", port_of(six));
    CHECK(named(both, &any, sizeof any) && errno == EADDRINUSE);
    struct sockaddr_in6 mapped = at("::ffff:127.0.0.1", port_of(six));
    int client = socket(AF_INET6, SOCK_STREAM, 0);
    set(client, IPPROTO_IPV6, IPV6_V6ONLY, on);
    CHECK(connect(client, (struct sockaddr *)&mapped, sizeof mapped) && errno == ENETUNREACH);
    mapped.sin6_port = 0;
    CHECK(named(client, &mapped, sizeof mapped) && errno == EINVAL);
    close(six), close(four), close(both), close(client);
}

static void a_datagram_socket_answers_both_families(void) {
    int server = opened(SOCK_DGRAM, "::", off);
    CHECK(server >= 0);
    struct sockaddr_in6 six = at("::1", port_of(server)), from;
    struct sockaddr_in four = at4("127.0.0.1", port_of(server));
    int a = socket(AF_INET6, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    char word[8] = {0};
    socklen_t len = sizeof from;
    CHECK(sendto(a, "6", 1, 0, (struct sockaddr *)&six, sizeof six) == 1);
    CHECK(recvfrom(server, word, 8, 0, (struct sockaddr *)&from, &len) == 1 && word[0] == '6');
    CHECK(sendto(server, "A", 1, 0, (struct sockaddr *)&from, len) == 1 && read(a, word, 8) == 1);
    len = sizeof from;
    CHECK(sendto(b, "4", 1, 0, (struct sockaddr *)&four, sizeof four) == 1);
    CHECK(recvfrom(server, word, 8, 0, (struct sockaddr *)&from, &len) == 1 && word[0] == '4');
    CHECK(from.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
    CHECK(sendto(server, "B", 1, 0, (struct sockaddr *)&from, len) == 1 && read(b, word, 8) == 1);
    close(a), close(b), close(server);
}

static void an_unnamed_socket_hears_both_families_after_it_has_sent(void) {
    int server = opened(SOCK_DGRAM, "::1", off), client = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 six = at("::1", port_of(server)), any;
    CHECK(sendto(client, "x", 1, 0, (struct sockaddr *)&six, sizeof six) == 1);
    socklen_t len = sizeof any;
    CHECK(!getsockname(client, (struct sockaddr *)&any, &len));
    CHECK(IN6_IS_ADDR_UNSPECIFIED(&any.sin6_addr) && any.sin6_port);
    struct sockaddr_in four = at4("127.0.0.1", any.sin6_port);
    int other = socket(AF_INET, SOCK_DGRAM, 0);
    char word[8];
    CHECK(sendto(other, "y", 1, 0, (struct sockaddr *)&four, sizeof four) == 1);
    CHECK(read(client, word, 8) == 1 && word[0] == 'y');
    close(server), close(client), close(other);
}

static void a_peer_taken_away_takes_the_chosen_address_with_it(void) {
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 to = at("::1", htons(9)), name;
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    socklen_t len = sizeof name;
    CHECK(!connect(fd, (struct sockaddr *)&to, sizeof to));
    CHECK(!getsockname(fd, (struct sockaddr *)&name, &len) && IN6_IS_ADDR_LOOPBACK(&name.sin6_addr));
    CHECK(!connect(fd, &none, sizeof none));
    CHECK(!getsockname(fd, (struct sockaddr *)&name, &len));
    CHECK(IN6_IS_ADDR_UNSPECIFIED(&name.sin6_addr));
    to = at("::ffff:127.0.0.1", htons(9));
    CHECK(!connect(fd, (struct sockaddr *)&to, sizeof to));
    CHECK(!getsockname(fd, (struct sockaddr *)&name, &len) && IN6_IS_ADDR_V4MAPPED(&name.sin6_addr));
    close(fd);
}

static void large_datagrams_are_whole(void) {
    int server = opened(SOCK_DGRAM, "::1", off), client = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 to = at("::1", port_of(server));
    static char bytes[LARGE], got[LARGE];
    memset(bytes, 's', LARGE);
    CHECK(sendto(client, bytes, LARGE, 0, (struct sockaddr *)&to, sizeof to) == LARGE);
    CHECK(read(server, got, LARGE) == LARGE && !memcmp(bytes, got, LARGE));
    close(server), close(client);
}

static void options_have_linux_defaults_and_limits(void) {
    int fd = socket(AF_INET6, SOCK_DGRAM, 0), four = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(get(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0);
    CHECK(get(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS) == 64);
    CHECK(get(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS) == 1);
    CHECK(get(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP) == 1);
    CHECK(get(fd, IPPROTO_IPV6, IPV6_TCLASS) == 0);
    CHECK(get(four, IPPROTO_IP, IP_MULTICAST_TTL) == 1);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 7));
    CHECK(get(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS) == 7);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, -1));
    CHECK(get(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS) == 64);
    CHECK(set(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 256) && errno == EINVAL);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_TCLASS, 0x20));
    CHECK(get(fd, IPPROTO_IPV6, IPV6_TCLASS) == 0x20);
    CHECK(!set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO));
    CHECK(get(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER) == IPV6_PMTUDISC_DO);
    CHECK(get(fd, IPPROTO_IPV6, IPV6_MTU) == -3 && errno == ENOTCONN);
    struct sockaddr_in6 any = at("::", 0);
    CHECK(!named(fd, &any, sizeof any));
    CHECK(set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) && errno == EINVAL);
    CHECK(set(four, IPPROTO_IPV6, IPV6_V6ONLY, 1) && errno == ENOPROTOOPT);
    close(fd), close(four);
}

static void a_link_local_address_needs_its_interface(void) {
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 to = at("fe80::9", htons(9));
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) && errno == EINVAL);
    close(fd);
}

// The first control message of a kind.
static struct cmsghdr *message(struct msghdr *header, int level, int kind) {
    struct cmsghdr *one = CMSG_FIRSTHDR(header);
    while (one && (one->cmsg_level != level || one->cmsg_type != kind))
        one = CMSG_NXTHDR(header, one);
    return one;
}

static void a_program_hears_where_a_datagram_came_to_and_how(void) {
    int server = opened(SOCK_DGRAM, "::", off), client = socket(AF_INET6, SOCK_DGRAM, 0);
    CHECK(!set(server, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1));
    CHECK(!set(server, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1));
    CHECK(!set(server, IPPROTO_IPV6, IPV6_RECVTCLASS, 1));
    CHECK(get(server, IPPROTO_IPV6, IPV6_RECVPKTINFO) == 1);
    set(client, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 33), set(client, IPPROTO_IPV6, IPV6_TCLASS, 0x40);
    struct sockaddr_in6 to = at("::1", port_of(server)), from;
    CHECK(sendto(client, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
    char word[4], room[256];
    struct iovec part = {word, sizeof word};
    struct msghdr header = {&from, sizeof from, &part, 1, room, sizeof room, 0};
    CHECK(recvmsg(server, &header, 0) == 1);
    struct cmsghdr *info = message(&header, IPPROTO_IPV6, IPV6_PKTINFO);
    struct cmsghdr *hops = message(&header, IPPROTO_IPV6, IPV6_HOPLIMIT);
    struct cmsghdr *class = message(&header, IPPROTO_IPV6, IPV6_TCLASS);
    CHECK(info && hops && class);
    CHECK(IN6_IS_ADDR_LOOPBACK(&((struct in6_pktinfo *)CMSG_DATA(info))->ipi6_addr));
    CHECK(((struct in6_pktinfo *)CMSG_DATA(info))->ipi6_ifindex == 1);
    CHECK(*(int *)CMSG_DATA(hops) == 33 && *(int *)CMSG_DATA(class) == 0x40);
    close(server), close(client);
}

static void a_datagram_can_say_where_it_comes_from(void) {
    int server = opened(SOCK_DGRAM, "::1", off), client = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 to = at("::1", port_of(server)), from;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } control = {{CMSG_LEN(sizeof(struct in6_pktinfo)), IPPROTO_IPV6, IPV6_PKTINFO}};
    struct in6_pktinfo *info = (void *)CMSG_DATA(&control.header);
    info->ipi6_addr = in6addr_loopback;
    struct iovec part = {"x", 1};
    struct msghdr header = {&to, sizeof to, &part, 1, &control, sizeof control, 0};
    CHECK(sendmsg(client, &header, 0) == 1);
    socklen_t len = sizeof from;
    char word[4];
    CHECK(recvfrom(server, word, 4, 0, (struct sockaddr *)&from, &len) == 1);
    CHECK(IN6_IS_ADDR_LOOPBACK(&from.sin6_addr));
    inet_pton(AF_INET6, "2001:db8::1", &info->ipi6_addr);
    CHECK(sendmsg(client, &header, 0) < 0);
    close(server), close(client);
}

static void groups_are_joined_once_and_left_once(void) {
    int fd = socket(AF_INET6, SOCK_DGRAM, 0), four = socket(AF_INET, SOCK_DGRAM, 0);
    struct ipv6_mreq six = {.ipv6mr_interface = 1};
    inet_pton(AF_INET6, "ff02::51e7", &six.ipv6mr_multiaddr);
    CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof six));
    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof six) && errno == EADDRINUSE);
    CHECK(!setsockopt(fd, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &six, sizeof six));
    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &six, sizeof six));
    CHECK(errno == EADDRNOTAVAIL);
    six.ipv6mr_interface = 77;
    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof six) && errno == ENODEV);
    six.ipv6mr_multiaddr = in6addr_loopback;
    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof six) && errno == EINVAL);
    struct ip_mreqn group = {.imr_ifindex = 1};
    inet_pton(AF_INET, "239.5.1.7", &group.imr_multiaddr);
    CHECK(!setsockopt(four, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));
    CHECK(!setsockopt(four, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group));
    struct group_req request = {.gr_interface = 1};
    struct sockaddr_in6 name = at("ff02::51e7", 0);
    memcpy(&request.gr_group, &name, sizeof name);
    CHECK(!setsockopt(fd, IPPROTO_IPV6, MCAST_JOIN_GROUP, &request, sizeof request));
    CHECK(!setsockopt(fd, IPPROTO_IPV6, MCAST_LEAVE_GROUP, &request, sizeof request));
    close(fd), close(four);
}

int main(void) {
    TEST(a_stream_runs_over_the_loopback_address);
    TEST(a_socket_for_ipv6_alone_leaves_ipv4_to_others);
    TEST(a_datagram_socket_answers_both_families);
    TEST(an_unnamed_socket_hears_both_families_after_it_has_sent);
    TEST(a_peer_taken_away_takes_the_chosen_address_with_it);
    TEST(large_datagrams_are_whole);
    TEST(options_have_linux_defaults_and_limits);
    TEST(a_link_local_address_needs_its_interface);
    TEST(a_program_hears_where_a_datagram_came_to_and_how);
    TEST(a_datagram_can_say_where_it_comes_from);
    TEST(groups_are_joined_once_and_left_once);
    return check_status();
}
