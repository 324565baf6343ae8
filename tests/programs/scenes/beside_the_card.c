// Sockets over an interface beside the card: the machine has its card's address and a VNIC, whose
// name, address and peer are the arguments: DEVICE ADDRESS PEER. The peer is another VNIC's address
// in a network namespace of its own, where this program runs with `echo`: it answers each datagram,
// and each connection with its first bytes; at one address, if another argument names it.
#include "check.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000, GROUP_PORT = 7001 };

static const char *device, *own, *peer;
static const char *group = "239.1.2.3";

static struct sockaddr_in name(const char *address, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (address) inet_pton(AF_INET, address, &name.sin_addr);
    return name;
}

static int bound(int kind, const char *address, int port) {
    int fd = socket(AF_INET, kind, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in local = name(address, port);
    return fd < 0 || bind(fd, (void *)&local, sizeof local) ? -1 : fd;
}

static int is_from(int fd, const char *address) {
    struct sockaddr_in local;
    socklen_t len = sizeof local;
    return !getsockname(fd, (void *)&local, &len) && local.sin_addr.s_addr == name(address, 0).sin_addr.s_addr;
}

static int readable(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 10000) == 1 && one.revents & POLLIN;
}

// What came, by which interface, to which address; 0 if nothing did.
static ssize_t hear(int fd, char *bytes, size_t room, struct sockaddr_in *from, struct in_pktinfo *info) {
    char control[CMSG_SPACE(sizeof *info)];
    struct iovec part = {bytes, room};
    struct msghdr message = {.msg_name = from, .msg_namelen = sizeof *from, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control};
    if (!readable(fd)) return 0;
    ssize_t len = recvmsg(fd, &message, 0);
    struct cmsghdr *told = CMSG_FIRSTHDR(&message);
    if (told && told->cmsg_type == IP_PKTINFO) memcpy(info, CMSG_DATA(told), sizeof *info);
    return len;
}

static ssize_t say(int fd, const char *to, struct in_pktinfo info) {
    char control[CMSG_SPACE(sizeof info)] = {0};
    struct sockaddr_in peer = name(to, PORT);
    struct iovec part = {"which", 5};
    struct msghdr message = {.msg_name = &peer, .msg_namelen = sizeof peer, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *told = CMSG_FIRSTHDR(&message);
    *told = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof info)};
    memcpy(CMSG_DATA(told), &info, sizeof info);
    return sendmsg(fd, &message, 0);
}

static void a_client_connects_out_by_the_network_of_the_vnic(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = name(peer, PORT);
    CHECK(!connect(fd, (void *)&to, sizeof to));
    CHECK(is_from(fd, own));
    char bytes[8] = {0};
    CHECK(send(fd, "hello", 5, 0) == 5 && readable(fd) && recv(fd, bytes, sizeof bytes, 0) == 5);
    CHECK(!strcmp(bytes, "hello"));
    close(fd);
}

static void a_datagram_without_a_source_leaves_by_the_route_and_its_answer_is_heard(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
    CHECK(!setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on));
    struct sockaddr_in to = name(peer, PORT), from;
    CHECK(sendto(fd, "hello", 5, 0, (void *)&to, sizeof to) == 5);
    char bytes[8];
    struct in_pktinfo info = {0};
    CHECK(hear(fd, bytes, sizeof bytes, &from, &info) == 5);
    CHECK(from.sin_addr.s_addr == to.sin_addr.s_addr);
    CHECK(info.ipi_ifindex == (int)if_nametoindex(device));
    CHECK(info.ipi_addr.s_addr == name(own, 0).sin_addr.s_addr);
    close(fd);
}

static void a_connected_datagram_socket_has_the_address_of_the_vnic_until_it_is_disconnected(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = name(peer, PORT), nobody = {.sin_family = AF_UNSPEC};
    CHECK(!connect(fd, (void *)&to, sizeof to));
    CHECK(is_from(fd, own));
    char bytes[8];
    CHECK(send(fd, "hello", 5, 0) == 5 && readable(fd) && recv(fd, bytes, sizeof bytes, 0) == 5);
    CHECK(!connect(fd, (void *)&nobody, sizeof nobody));
    CHECK(is_from(fd, "0.0.0.0"));
    close(fd);
}

static void packet_info_names_the_interface_or_the_address_by_which_a_datagram_leaves(void) {
    int fd = bound(SOCK_DGRAM, NULL, 0);
    struct in_pktinfo by_device = {.ipi_ifindex = (int)if_nametoindex(device)};
    struct in_pktinfo by_address = {.ipi_spec_dst = name(own, 0).sin_addr};
    char bytes[8];
    CHECK(say(fd, peer, by_device) == 5 && readable(fd) && recv(fd, bytes, sizeof bytes, 0) == 5);
    CHECK(say(fd, peer, by_address) == 5 && readable(fd) && recv(fd, bytes, sizeof bytes, 0) == 5);
    struct in_pktinfo nowhere = {.ipi_ifindex = 99};
    CHECK(say(fd, peer, nowhere) == -1 && errno == ENODEV);
    close(fd);
}

static void a_socket_bound_to_a_device_speaks_and_hears_by_that_one_only(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), card = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)));
    CHECK(!setsockopt(card, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 4));
    struct sockaddr_in local = name(NULL, 7100), to = name(peer, PORT);
    CHECK(!bind(fd, (void *)&local, sizeof local));
    CHECK(!bind(card, (void *)&local, sizeof local));
    char bytes[8], told[IF_NAMESIZE];
    socklen_t len = sizeof told;
    CHECK(sendto(fd, "hello", 5, 0, (void *)&to, sizeof to) == 5);
    CHECK(readable(fd) && recv(fd, bytes, sizeof bytes, 0) == 5);
    CHECK(recv(card, bytes, sizeof bytes, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(!getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, told, &len) && !strcmp(told, device));
    close(fd);
    close(card);
}

static void names_on_the_card_and_on_the_vnic_do_not_meet(void) {
    int here = bound(SOCK_STREAM, own, 7200), card = bound(SOCK_STREAM, "10.0.2.15", 7200);
    CHECK(here >= 0 && card >= 0);
    CHECK(!listen(here, 4) && !listen(card, 4));
    CHECK(bound(SOCK_STREAM, own, 7200) == -1 && errno == EADDRINUSE);
    CHECK(bound(SOCK_STREAM, "10.9.9.9", 7200) == -1 && errno == EADDRNOTAVAIL);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = name(own, 7200);
    CHECK(!connect(fd, (void *)&to, sizeof to));
    CHECK(is_from(fd, own));
    CHECK(readable(here) && accept(here, NULL, NULL) >= 0);
    struct pollfd quiet = {.fd = card, .events = POLLIN};
    CHECK(poll(&quiet, 1, 0) == 0);
    close(here), close(card), close(fd);
}

static void a_group_is_joined_on_the_vnic_and_sent_to_by_it(void) {
    int member = bound(SOCK_DGRAM, NULL, GROUP_PORT), fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ip_mreqn at = {.imr_ifindex = (int)if_nametoindex(device)};
    inet_pton(AF_INET, group, &at.imr_multiaddr);
    CHECK(!setsockopt(member, IPPROTO_IP, IP_ADD_MEMBERSHIP, &at, sizeof at));
    CHECK(setsockopt(member, IPPROTO_IP, IP_ADD_MEMBERSHIP, &at, sizeof at) == -1 && errno == EADDRINUSE);
    struct in_addr by = {1}, ours = name(own, 0).sin_addr;
    socklen_t len = sizeof by;
    CHECK(!setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &at, sizeof at));
    CHECK(!getsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, &len) && by.s_addr == 0);
    CHECK(!setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &ours, sizeof ours));
    CHECK(!getsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &by, &len) && by.s_addr == ours.s_addr);
    struct sockaddr_in to = name(group, GROUP_PORT), from;
    CHECK(sendto(fd, "hello", 5, 0, (void *)&to, sizeof to) == 5);
    char bytes[8];
    struct in_pktinfo info;
    CHECK(hear(member, bytes, sizeof bytes, &from, &info) == 5);
    CHECK(from.sin_addr.s_addr == ours.s_addr);
    CHECK(!setsockopt(member, IPPROTO_IP, IP_DROP_MEMBERSHIP, &at, sizeof at));
    CHECK(setsockopt(member, IPPROTO_IP, IP_DROP_MEMBERSHIP, &at, sizeof at) == -1 && errno == EADDRNOTAVAIL);
    close(member), close(fd);
}

// Answers whatever comes, from the address to which it came.
static int echo(const char *at) {
    int datagrams = bound(SOCK_DGRAM, at, PORT), listener = bound(SOCK_STREAM, at, PORT);
    if (datagrams < 0 || listener < 0 || listen(listener, 16)) return 1;
    printf("echo ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd both[] = {{.fd = datagrams, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
        char bytes[64];
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        if (poll(both, 2, -1) < 0) return 1;
        if (both[0].revents) {
            ssize_t count = recvfrom(datagrams, bytes, sizeof bytes, 0, (void *)&from, &len);
            if (count > 0) sendto(datagrams, bytes, count, 0, (void *)&from, len);
        }
        if (both[1].revents) {
            int fd = accept(listener, NULL, NULL);
            ssize_t count = recv(fd, bytes, sizeof bytes, 0);
            if (count > 0) send(fd, bytes, count, 0);
            close(fd);
        }
    }
}

// Answers each datagram from the address and the interface that it came to (IP_PKTINFO), and says
// in it which interface that was.
static int which(void) {
    int fd = bound(SOCK_DGRAM, NULL, PORT + 1), on = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on)) return 1;
    printf("which ready\n");
    fflush(stdout);
    for (;;) {
        char bytes[64], called[IF_NAMESIZE] = "?", control[CMSG_SPACE(sizeof(struct in_pktinfo))] = {0};
        struct sockaddr_in from;
        struct in_pktinfo info = {0};
        if (hear(fd, bytes, sizeof bytes, &from, &info) <= 0) continue;
        if_indextoname(info.ipi_ifindex, called);
        info.ipi_spec_dst = info.ipi_addr;
        struct iovec part = {called, strlen(called)};
        struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
                                 .msg_control = control, .msg_controllen = sizeof control};
        struct cmsghdr *told = CMSG_FIRSTHDR(&message);
        *told = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof info)};
        memcpy(CMSG_DATA(told), &info, sizeof info);
        sendmsg(fd, &message, 0);
    }
}

// Asks the server of `which` at an address from one of ours, and prints its answer.
static int ask(const char *from, const char *to) {
    int fd = bound(SOCK_DGRAM, from, 0);
    struct sockaddr_in at = name(to, PORT + 1);
    char bytes[64] = {0};
    // A connected socket hears an answer from that address only.
    if (fd < 0 || connect(fd, (void *)&at, sizeof at) || send(fd, "?", 1, 0) != 1 || !readable(fd)) return 1;
    if (recv(fd, bytes, sizeof bytes - 1, 0) <= 0) return 1;
    printf("by %s\n", bytes);
    return 0;
}

// Says "hello" to the echo at an address, by a datagram and by a stream, and prints what came back.
static int hello(const char *to) {
    struct sockaddr_in at = name(to, PORT);
    int kinds[] = {SOCK_DGRAM, SOCK_STREAM};
    for (int i = 0; i < 2; i++) {
        int fd = socket(AF_INET, kinds[i], 0);
        char bytes[8] = {0};
        if (connect(fd, (void *)&at, sizeof at) || send(fd, "hello", 5, 0) != 5) return 1;
        if (readable(fd) && recv(fd, bytes, sizeof bytes - 1, 0) > 0) printf("%s by %s\n", bytes, i ? "stream" : "datagram");
        close(fd);
    }
    return 0;
}

// A connected datagram socket says "hello" to the echo at an address for each line that it reads, and
// prints what came back, or that nothing did; a stranger's datagram would be told as well.
static int keep_asking(const char *to) {
    struct sockaddr_in at = name(to, PORT);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    char line[8], bytes[8];
    if (connect(fd, (void *)&at, sizeof at)) return 1;
    for (int round = 1; fgets(line, sizeof line, stdin); round++) {
        memset(bytes, 0, sizeof bytes);
        int is_sent = send(fd, "hello", 5, 0) == 5;
        int is_heard = is_sent && readable(fd) && recv(fd, bytes, sizeof bytes - 1, 0) > 0;
        printf("%s in round %d\n", is_heard ? bytes : "nothing", round);
        fflush(stdout);
    }
    return 0;
}

// Prints to which address each datagram for our port goes that a raw socket sees.
static int overhear(void) {
    int fd = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
    if (fd < 0) return 1;
    printf("overhear ready\n");
    fflush(stdout);
    for (;;) {
        unsigned char packet[1500];
        char text[INET_ADDRSTRLEN];
        if (recv(fd, packet, sizeof packet, 0) < 28) continue;
        if (packet[22] << 8 != (PORT & 0xff00) || packet[23] != (PORT & 0xff)) continue;
        printf("overheard %s\n", inet_ntop(AF_INET, packet + 16, text, sizeof text));
        fflush(stdout);
    }
}

static void a_socket_bound_to_the_vnic_reaches_the_address_of_the_vnic(void) {
    int here = bound(SOCK_DGRAM, own, 7300), fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(!setsockopt(here, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)));
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)));
    struct sockaddr_in to = name(own, 7300), from;
    struct in_pktinfo info;
    char bytes[8];
    CHECK(sendto(fd, "hello", 5, 0, (void *)&to, sizeof to) == 5);
    CHECK(hear(here, bytes, sizeof bytes, &from, &info) == 5);
    CHECK(from.sin_addr.s_addr == to.sin_addr.s_addr);
    CHECK(sendto(here, "again", 5, 0, (void *)&from, sizeof from) == 5);
    CHECK(readable(fd) && recv(fd, bytes, sizeof bytes, 0) == 5);
    close(here), close(fd);
    int listener = bound(SOCK_STREAM, NULL, 7301);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!setsockopt(listener, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)));
    CHECK(!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)));
    CHECK(!listen(listener, 4));
    to = name(own, 7301);
    CHECK(!connect(fd, (void *)&to, sizeof to));
    CHECK(readable(listener) && accept(listener, NULL, NULL) >= 0);
    close(listener), close(fd);
}

int main(int count, char **words) {
    if ((count == 2 || count == 3) && !strcmp(words[1], "echo")) return echo(count == 3 ? words[2] : NULL);
    if (count == 3 && !strcmp(words[1], "hello")) return hello(words[2]);
    if (count == 3 && !strcmp(words[1], "keep")) return keep_asking(words[2]);
    if (count == 2 && !strcmp(words[1], "overhear")) return overhear();
    if (count == 2 && !strcmp(words[1], "which")) return which();
    if (count == 4 && !strcmp(words[1], "ask")) return ask(words[2], words[3]);
    if (count != 4) return 2;
    device = words[1], own = words[2], peer = words[3];
    TEST(a_client_connects_out_by_the_network_of_the_vnic);
    TEST(a_datagram_without_a_source_leaves_by_the_route_and_its_answer_is_heard);
    TEST(a_connected_datagram_socket_has_the_address_of_the_vnic_until_it_is_disconnected);
    TEST(packet_info_names_the_interface_or_the_address_by_which_a_datagram_leaves);
    TEST(a_socket_bound_to_a_device_speaks_and_hears_by_that_one_only);
    TEST(a_socket_bound_to_the_vnic_reaches_the_address_of_the_vnic);
    TEST(names_on_the_card_and_on_the_vnic_do_not_meet);
    TEST(a_group_is_joined_on_the_vnic_and_sent_to_by_it);
    return check_status();
}
