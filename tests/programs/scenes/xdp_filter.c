// xdp_filter A B: filters over the VNIC B, whose address the kernel's stack has, too; over A this program has
// all frames and is the peer. Both are on one etherstub, and nobody else is.
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"
#include "xdp_filter.h"

#define US "10.9.0.2"
#define PEER "10.9.0.1"
#define OTHER "10.9.0.3"

enum { ENTRIES = 64, CHUNKS = 128, NOBODY = 65534, MANY = 2000 };
enum { IP = 14, UDP = 34, PAYLOAD = 42, FRAME = 64 };

static unsigned a_index, b_index;
static unsigned char a_mac[6], b_mac[6];
// The peer, and a socket that is never bound.
static struct xsk peer;
static int bare;

static void mac_of(unsigned interface, unsigned char *mac) {
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if_indextoname(interface, request.ifr_name);
    ioctl(fd, SIOCGIFHWADDR, &request);
    memcpy(mac, request.ifr_hwaddr.sa_data, 6);
    close(fd);
}

static int refused(int result, int why) { return result == -1 && errno == why; }

static int datagrams_to(uint16_t first, uint16_t last) {
    struct xdp_filter filter = filter_for(b_index, US, IPPROTO_UDP, first, last);
    return filter_create(bare, &filter);
}

struct end {
    const unsigned char *mac;
    const char *address;
    uint16_t port;
};

static uint16_t sum(const unsigned char *at, size_t bytes) {
    uint32_t total = 0;
    for (size_t i = 0; i < bytes; i += 2) total += at[i] << 8 | at[i + 1];
    while (total >> 16) total = (total & 0xffff) + (total >> 16);
    return ~total;
}

static void put16(unsigned char *at, uint16_t value) {
    at[0] = value >> 8;
    at[1] = value;
}

// A datagram without a checksum; `fragment` is that field of IP.
static uint32_t datagram(char *to, struct end from, struct end target, uint16_t fragment) {
    unsigned char *frame = (unsigned char *)to;
    memset(frame, 0, FRAME);
    memcpy(frame, target.mac, 6);
    memcpy(frame + 6, from.mac, 6);
    put16(frame + 12, 0x0800);
    frame[IP] = 0x45;
    put16(frame + IP + 2, FRAME - IP);
    put16(frame + IP + 6, fragment);
    frame[IP + 8] = 64;
    frame[IP + 9] = IPPROTO_UDP;
    inet_pton(AF_INET, from.address, frame + IP + 12);
    inet_pton(AF_INET, target.address, frame + IP + 16);
    put16(frame + IP + 10, sum(frame + IP, 20));
    put16(frame + UDP, from.port);
    put16(frame + UDP + 2, target.port);
    put16(frame + UDP + 4, FRAME - UDP);
    return FRAME;
}

static uint32_t arp(char *to, int operation, const unsigned char *mac, const char *sender,
                    const char *target) {
    unsigned char *frame = (unsigned char *)to;
    static const unsigned char head[] = {0, 1, 8, 0, 6, 4, 0};
    memset(frame, 0, FRAME);
    memcpy(frame, a_mac, 6);
    memcpy(frame + 6, b_mac, 6);
    put16(frame + 12, 0x0806);
    memcpy(frame + 14, head, sizeof head);
    frame[21] = operation;
    memcpy(frame + 22, mac, 6);
    inet_pton(AF_INET, sender, frame + 28);
    inet_pton(AF_INET, target, frame + 38);
    return 60;
}

static void fill(struct xsk *x) {
    for (uint64_t i = ENTRIES; i < CHUNKS; i++) xsk_fill(x, i * XSK_CHUNK);
}

// The next frame whose type is IP, or that is ARP; -1 if none comes.
static int next_frame(struct xsk *x, struct xdp_desc *frame, int patience_ms) {
    for (;;) {
        struct pollfd one = {.fd = x->fd, .events = POLLIN};
        if (!xsk_receive(x, frame)) {
            if (poll(&one, 1, patience_ms) != 1 || !xsk_receive(x, frame)) return -1;
        }
        xsk_fill(x, frame->addr / XSK_CHUNK * XSK_CHUNK);
        return 0;
    }
}

// The port that the next datagram is from (or to, for those who get it), -1 if none comes.
static int next_port(struct xsk *x, int where, int patience_ms) {
    struct xdp_desc frame;
    while (next_frame(x, &frame, patience_ms) == 0) {
        unsigned char *at = (unsigned char *)x->umem + frame.addr;
        if (frame.len >= PAYLOAD && at[12] == 8 && at[13] == 0 && at[IP + 9] == IPPROTO_UDP)
            return at[where] << 8 | at[where + 1];
    }
    return -1;
}

static void drain(struct xsk *x) {
    struct xdp_desc frame;
    while (next_frame(x, &frame, 0) == 0) {}
}

static int begin_peer(void) {
    // Children are its peers, too.
    xsk_umem_kind = MAP_SHARED;
    if (xsk_open(&peer, ENTRIES, CHUNKS) != 0) return -1;
    fill(&peer);
    return xsk_bind(&peer, a_index, XDP_COPY);
}

// Sends what lies in the first chunk.
static int send_first(struct xsk *x, uint32_t len) {
    uint64_t done;
    xsk_send(x, 0, len);
    if (xsk_kick(x) != 0) return -1;
    while (!xsk_completed(x, &done)) usleep(1000);
    return 0;
}

static struct end ours(uint16_t port) { return (struct end){b_mac, US, port}; }
static struct end theirs(uint16_t port) { return (struct end){a_mac, PEER, port}; }

static int peer_sends(uint16_t port) {
    return send_first(&peer, datagram(peer.umem, theirs(9), ours(port), 0)) == 0;
}

static void peer_sends_to(uint16_t port) { CHECK(peer_sends(port)); }

// A child's check, which ends no test of its parent's.
#define HOLD(condition)                                                      \
    do {                                                                     \
        if (!(condition)) {                                                  \
            printf("# line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
            fflush(stdout);                                                  \
            return 0;                                                        \
        }                                                                    \
    } while (0)

// A socket that a filter made, with its rings.
static int open_by(struct xsk *x, int filter) {
    if (xsk_open_on(x, ioctl(filter, XDP_FILTER_SOCKET), ENTRIES, CHUNKS) != 0) return -1;
    fill(x);
    return 0;
}

// Whether the peer gets what a program may not send, while the stack there asks by ARP and sends ICMP.
static int hears_of_nobody(int patience_ms) {
    struct xdp_desc frame;
    unsigned char other[4];
    inet_pton(AF_INET, OTHER, other);
    while (next_frame(&peer, &frame, patience_ms) == 0) {
        unsigned char *at = (unsigned char *)peer.umem + frame.addr;
        int is_arp = at[12] == 8 && at[13] == 6, is_ip = at[12] == 8 && at[13] == 0;
        int is_forged = at[21] != 1 || memcmp(at + 22, b_mac, 6) != 0 || memcmp(at + 28, other, 4) == 0;
        if (is_ip ? at[IP + 9] == IPPROTO_UDP : !is_arp || is_forged) return 1;
    }
    return 0;
}

// Whether the peer is asked for the third address, by ARP, for which the stack does not ask.
static int hears_a_question(int patience_ms) {
    struct xdp_desc frame;
    unsigned char other[4];
    inet_pton(AF_INET, OTHER, other);
    while (next_frame(&peer, &frame, patience_ms) == 0) {
        unsigned char *at = (unsigned char *)peer.umem + frame.addr;
        if (at[13] == 6 && at[21] == 1 && memcmp(at + 38, other, 4) == 0) return 1;
    }
    return 0;
}

static int in_child(int (*holds)(int), int argument) {
    pid_t child = fork();
    if (child == 0) _exit(holds(argument) ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

static int give_up_rights(void) { return setgid(NOBODY) == 0 && setuid(NOBODY) == 0; }

static int nobody_makes_none(int unused) {
    (void)unused;
    return give_up_rights() && refused(datagrams_to(7, 7), EPERM);
}

static void only_who_may_take_the_link_makes_filters(void) { CHECK(in_child(nobody_makes_none, 0)); }

static int create_with(void (*change)(struct xdp_filter *)) {
    struct xdp_filter filter = filter_for(b_index, US, IPPROTO_UDP, 7, 7);
    change(&filter);
    return filter_create(bare, &filter);
}

static void no_family(struct xdp_filter *filter) { filter->rx.family = 0; }
static void long_prefix(struct xdp_filter *filter) { filter->rx.local_bits = 33; }
static void ports_of_none(struct xdp_filter *filter) { filter->rx.protocol = IPPROTO_ICMP; }
static void empty_range(struct xdp_filter *filter) { filter->rx.local_ports[0] = 8; }
static void unknown_flag(struct xdp_filter *filter) { filter->flags = 2; }
static void no_way_back(struct xdp_filter *filter) { filter->flags = 0; }
static void no_interface(struct xdp_filter *filter) { filter->ifindex = 0x7fffffff; }
static void loopback(struct xdp_filter *filter) { filter->ifindex = if_nametoindex("lo"); }

static void what_makes_no_sense_is_refused(void) {
    CHECK(refused(create_with(no_family), EINVAL));
    CHECK(refused(create_with(long_prefix), EINVAL));
    CHECK(refused(create_with(ports_of_none), EINVAL));
    CHECK(refused(create_with(empty_range), EINVAL));
    CHECK(refused(create_with(unknown_flag), EINVAL));
    CHECK(refused(create_with(no_way_back), EINVAL));
    CHECK(refused(create_with(no_interface), ENODEV));
    CHECK(refused(create_with(loopback), EOPNOTSUPP));
    CHECK(refused(ioctl(bare, XDP_CREATE_FILTER, NULL), EFAULT));
    int none = -1, file = 0;
    CHECK(refused(xsk_option(bare, XDP_FILTER, &none, sizeof none), EBADF));
    CHECK(refused(xsk_option(bare, XDP_FILTER, &bare, sizeof bare), EINVAL));
    CHECK(refused(xsk_option(bare, XDP_FILTER, &file, 0), EINVAL));
}

static void filters_that_cross_are_refused_and_those_inside_each_other_are_not(void) {
    int wide = datagrams_to(100, 200);
    CHECK(wide >= 0);
    CHECK(refused(datagrams_to(100, 200), EEXIST));
    CHECK(refused(datagrams_to(150, 250), EEXIST));
    int inside = datagrams_to(150, 160), around = datagrams_to(50, 300), apart = datagrams_to(7, 7);
    CHECK(inside >= 0 && around >= 0 && apart >= 0);
    CHECK(refused(datagrams_to(155, 165), EEXIST));
    close(wide);
    int again = datagrams_to(140, 170);
    CHECK(again >= 0);
    int all[] = {inside, around, apart, again};
    for (int i = 0; i < 4; i++) close(all[i]);
}

// Each link has room for 64, each user for 96.
static void there_are_so_many_and_what_is_closed_is_given_back(void) {
    int all[96];
    for (int i = 0; i < 64; i++) CHECK((all[i] = datagrams_to(1000 + i, 1000 + i)) >= 0);
    CHECK(refused(datagrams_to(2000, 2000), ENOSPC));
    for (int i = 64; i < 96; i++) {
        struct xdp_filter filter = filter_for(a_index, PEER, IPPROTO_UDP, i, i);
        CHECK((all[i] = filter_create(bare, &filter)) >= 0);
    }
    struct xdp_filter more = filter_for(a_index, PEER, IPPROTO_UDP, 96, 96);
    CHECK(refused(filter_create(bare, &more), EMFILE));
    close(all[70]);
    CHECK((all[70] = filter_create(bare, &more)) >= 0);
    close(all[3]);
    CHECK((all[3] = datagrams_to(2000, 2000)) >= 0);
    for (int i = 0; i < 96; i++) close(all[i]);
}

// What a program without rights gets and sends by a filter for port 7.
static int nobody_has_port_7(int filter) {
    struct xsk x, without = {.fd = bare};
    if (!give_up_rights()) return 0;
    HOLD(refused(socket(AF_XDP, SOCK_RAW, 0), EPERM));
    HOLD(open_by(&x, filter) == 0);
    HOLD(refused(xsk_bind(&without, b_index, XDP_COPY), EPERM));
    HOLD(refused(xsk_bind(&x, a_index, XDP_COPY), ENODEV));
    HOLD(xsk_bind(&x, b_index, XDP_COPY) == 0);
    drain(&peer);
    HOLD(peer_sends(8) && peer_sends(7));
    HOLD(next_port(&x, UDP + 2, 5000) == 7);
    HOLD(next_port(&x, UDP + 2, 100) == -1);
    struct end foreign_mac = {a_mac, US, 7}, foreign_address = {b_mac, OTHER, 7};
    HOLD(send_first(&x, datagram(x.umem, ours(8), theirs(9), 0)) == 0);
    HOLD(send_first(&x, datagram(x.umem, foreign_mac, theirs(9), 0)) == 0);
    HOLD(send_first(&x, datagram(x.umem, foreign_address, theirs(9), 0)) == 0);
    HOLD(send_first(&x, datagram(x.umem, ours(7), theirs(9), 0x2000)) == 0);
    HOLD(send_first(&x, datagram(x.umem, ours(7), theirs(9), 8)) == 0);
    HOLD(send_first(&x, arp(x.umem, 2, b_mac, OTHER, PEER)) == 0);
    HOLD(send_first(&x, arp(x.umem, 1, a_mac, US, PEER)) == 0);
    memset(x.umem + 12, 0x88, 2);
    HOLD(send_first(&x, 60) == 0);
    HOLD(!hears_of_nobody(200));
    HOLD(send_first(&x, arp(x.umem, 1, b_mac, US, OTHER)) == 0);
    HOLD(hears_a_question(5000));
    HOLD(send_first(&x, datagram(x.umem, ours(7), theirs(9), 0)) == 0);
    HOLD(next_port(&peer, UDP, 5000) == 7);
    return 1;
}

static void a_program_without_rights_has_its_port_and_nothing_else(void) {
    int filter = datagrams_to(7, 7);
    CHECK(in_child(nobody_has_port_7, filter));
    close(filter);
}

static void send_descriptor(int to, int descriptor) {
    char byte = 1, room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
    CHECK(sendmsg(to, &message, 0) == 1);
}

static int take_descriptor(int from) {
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int descriptor = -1;
    if (recvmsg(from, &message, 0) == 1 && CMSG_FIRSTHDR(&message) != NULL)
        memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

static int serves_what_it_is_sent(int from) {
    int filter = give_up_rights() ? take_descriptor(from) : -1;
    return filter >= 0 && nobody_has_port_7(filter);
}

// It was made after the child began, so the child has it by the message alone.
static void a_filter_is_passed_on_by_a_message(void) {
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    if (child == 0) _exit(serves_what_it_is_sent(pair[1]) ? 0 : 1);
    int filter = datagrams_to(7, 7);
    send_descriptor(pair[0], filter);
    close(filter);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(pair[0]);
    close(pair[1]);
}

static void a_filter_has_one_socket_at_a_time(void) {
    int filter = datagrams_to(7, 7), other = datagrams_to(8, 8);
    struct xsk x;
    CHECK(open_by(&x, filter) == 0);
    CHECK(refused(ioctl(filter, XDP_FILTER_SOCKET), EBUSY));
    int fresh = socket(AF_XDP, SOCK_RAW, 0);
    CHECK(refused(xsk_option(fresh, XDP_FILTER, &filter, sizeof filter), EBUSY));
    CHECK(refused(xsk_option(x.fd, XDP_FILTER, &other, sizeof other), EBUSY));
    xsk_close(&x);
    CHECK(xsk_option(fresh, XDP_FILTER, &filter, sizeof filter) == 0);
    close(fresh);
    close(filter);
    close(other);
}

static int holds_on(int until) {
    char byte;
    return read(until, &byte, 1) == 0;
}

static void a_filter_lives_as_long_as_a_descriptor_or_a_socket_of_it(void) {
    int filter = datagrams_to(7, 7), ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(holds_on(ends[0]) ? 0 : 1);
    }
    close(filter);
    CHECK(refused(datagrams_to(7, 7), EEXIST));
    close(ends[1]);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    filter = datagrams_to(7, 7);
    struct xsk x;
    CHECK(filter >= 0 && open_by(&x, filter) == 0 && xsk_bind(&x, b_index, XDP_COPY) == 0);
    close(filter);
    CHECK(refused(datagrams_to(7, 7), EEXIST));
    peer_sends_to(7);
    CHECK(next_port(&x, UDP + 2, 5000) == 7);
    xsk_close(&x);
    filter = datagrams_to(7, 7);
    CHECK(filter >= 0);
    close(filter);
}

static int stack_socket(uint16_t port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, US, &name.sin_addr);
    CHECK(bind(fd, (struct sockaddr *)&name, sizeof name) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void the_stack_has_all_other_ports_of_the_same_address(void) {
    int other = stack_socket(8), same = stack_socket(7), filter = datagrams_to(7, 7);
    char bytes[FRAME];
    struct xsk x;
    CHECK(open_by(&x, filter) == 0 && xsk_bind(&x, b_index, XDP_COPY) == 0);
    peer_sends_to(7);
    peer_sends_to(8);
    CHECK(recv(other, bytes, sizeof bytes, 0) == FRAME - PAYLOAD);
    CHECK(next_port(&x, UDP + 2, 5000) == 7);
    CHECK(refused(recv(same, bytes, sizeof bytes, MSG_DONTWAIT), EAGAIN));
    xsk_close(&x);
    close(filter);
    peer_sends_to(7);
    CHECK(recv(same, bytes, sizeof bytes, 0) == FRAME - PAYLOAD);
    close(other);
    close(same);
}

static void the_innermost_filter_with_a_queue_gets_a_frame(void) {
    int wide = datagrams_to(1, 100), inner = datagrams_to(7, 9);
    struct xsk x, y;
    CHECK(open_by(&x, wide) == 0 && xsk_bind_queue(&x, b_index, 4, XDP_COPY) == 0);
    peer_sends_to(7);
    CHECK(next_port(&x, UDP + 2, 5000) == 7);
    CHECK(open_by(&y, inner) == 0);
    CHECK(refused(xsk_bind_queue(&y, b_index, 4, XDP_COPY), EBUSY));
    CHECK(xsk_bind_queue(&y, b_index, 2, XDP_COPY) == 0);
    peer_sends_to(7);
    peer_sends_to(10);
    CHECK(next_port(&y, UDP + 2, 5000) == 7 && next_port(&y, UDP + 2, 100) == -1);
    CHECK(next_port(&x, UDP + 2, 5000) == 10);
    xsk_close(&y);
    peer_sends_to(7);
    CHECK(next_port(&x, UDP + 2, 5000) == 7);
    xsk_close(&x);
    close(wide);
    close(inner);
}

static void a_queue_is_narrowed_that_had_the_whole_link(void) {
    int filter = datagrams_to(7, 7), stack = stack_socket(8);
    char bytes[FRAME];
    struct xsk x;
    CHECK(xsk_open(&x, ENTRIES, CHUNKS) == 0);
    fill(&x);
    CHECK(xsk_bind(&x, b_index, XDP_COPY) == 0);
    peer_sends_to(8);
    CHECK(next_port(&x, UDP + 2, 5000) == 8);
    CHECK(xsk_option(x.fd, XDP_FILTER, &filter, sizeof filter) == 0);
    peer_sends_to(8);
    peer_sends_to(7);
    CHECK(next_port(&x, UDP + 2, 5000) == 7);
    CHECK(recv(stack, bytes, sizeof bytes, 0) == FRAME - PAYLOAD);
    drain(&peer);
    CHECK(send_first(&x, datagram(x.umem, ours(8), theirs(9), 0)) == 0);
    CHECK(send_first(&x, datagram(x.umem, ours(7), theirs(9), 0)) == 0);
    CHECK(next_port(&peer, UDP, 5000) == 7);
    xsk_close(&x);
    close(filter);
    close(stack);
}

static int scribbler_runs;

static void *scribble(void *frame) {
    unsigned char *port = (unsigned char *)frame + UDP + 1;
    while (__atomic_load_n(&scribbler_runs, __ATOMIC_RELAXED)) {
        __atomic_store_n(port, 8, __ATOMIC_RELAXED);
        __atomic_store_n(port, 7, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void a_frame_that_is_changed_after_the_look_leaves_as_it_was(void) {
    int filter = datagrams_to(7, 7), left = 0;
    struct xsk x;
    pthread_t scribbler;
    CHECK(open_by(&x, filter) == 0 && xsk_bind(&x, b_index, XDP_COPY) == 0);
    datagram(x.umem, ours(7), theirs(9), 0);
    drain(&peer);
    scribbler_runs = 1;
    CHECK(pthread_create(&scribbler, NULL, scribble, x.umem) == 0);
    for (int i = 0; i < MANY; i++) {
        CHECK(send_first(&x, FRAME) == 0);
        // With one CPU the scribbler has to be let in.
        if (i % 16 == 0) usleep(1000);
        int port;
        while ((port = next_port(&peer, UDP, 0)) != -1) {
            CHECK(port == 7);
            left++;
        }
    }
    __atomic_store_n(&scribbler_runs, 0, __ATOMIC_RELAXED);
    pthread_join(scribbler, NULL);
    CHECK(left > 0);
    xsk_close(&x);
    close(filter);
}

static int sender_stopped;

// Sends for as long as it may; what it hears then is kept.
static void *send_on(void *socket) {
    struct xsk *x = socket;
    uint64_t done;
    for (;;) {
        if (xsk_filled(&x->tx) < ENTRIES) xsk_send(x, 0, FRAME);
        if (xsk_kick(x) != 0 && errno != EAGAIN) break;
        while (xsk_completed(x, &done)) {}
    }
    __atomic_store_n(&sender_stopped, errno, __ATOMIC_RELEASE);
    return NULL;
}

// Runs dladm, whose first line is the number that it says; -1 if it fails.
static long dladm(const char *command, const char *option, const char *last) {
    char name[IF_NAMESIZE], said[64] = "0";
    int ends[2], status = 1;
    if_indextoname(b_index, name);
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child != -1);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        if (option != NULL)
            execlp("dladm", "dladm", command, "-p", "-o", option, name, NULL);
        else
            execlp("dladm", "dladm", command, name, last, NULL);
        _exit(127);
    }
    close(ends[1]);
    if (read(ends[0], said, sizeof said - 1) < 0) said[0] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    return status == 0 ? atol(said) : -1;
}

static long number_of_the_filter(void) { return dladm("show-filter", "id", NULL); }

static int delete_filter(long number) {
    char text[24];
    snprintf(text, sizeof text, "%ld", number);
    return dladm("delete-filter", NULL, text) == -1;
}

static void a_filter_that_is_revoked_under_load_is_over_at_once(void) {
    int filter = datagrams_to(7, 7), stack = stack_socket(7);
    char bytes[FRAME];
    struct xsk x;
    pthread_t sender;
    CHECK(open_by(&x, filter) == 0 && xsk_bind(&x, b_index, XDP_COPY) == 0);
    datagram(x.umem, ours(7), theirs(9), 0);
    sender_stopped = 0;
    CHECK(pthread_create(&sender, NULL, send_on, &x) == 0);
    for (int i = 0; i < 100; i++) CHECK(next_port(&peer, UDP, 5000) == 7);
    long number = number_of_the_filter();
    CHECK(number > 0);
    CHECK(delete_filter(number) == 0);
    drain(&peer);
    CHECK(next_port(&peer, UDP, 300) == -1);
    struct pollfd one = {.fd = x.fd};
    CHECK(poll(&one, 1, 5000) == 1 && one.revents & POLLERR);
    pthread_join(sender, NULL);
    CHECK(sender_stopped == ENETDOWN);
    // What is left of it serves for nothing, and its packets are the stack's.
    peer_sends_to(7);
    CHECK(recv(stack, bytes, sizeof bytes, 0) == FRAME - PAYLOAD);
    CHECK(next_port(&x, UDP + 2, 0) == -1);
    CHECK(delete_filter(number) != 0);
    xsk_close(&x);
    CHECK(refused(ioctl(filter, XDP_FILTER_SOCKET), ENETDOWN));
    int again = datagrams_to(7, 7);
    CHECK(again >= 0);
    close(again);
    close(filter);
    close(stack);
}

static int says_no_new_flows(struct xsk *x) {
    int no = 0;
    return xsk_option(x->fd, XDP_NEW_FLOWS, &no, sizeof no);
}

static void who_has_lost_a_queue_says_nothing_about_its_next_owner(void) {
    int filter = datagrams_to(7, 7);
    struct xsk x, alone, beside;
    CHECK(open_by(&x, filter) == 0 && xsk_bind(&x, b_index, XDP_COPY) == 0);
    CHECK(delete_filter(number_of_the_filter()) == 0);
    CHECK(refused(says_no_new_flows(&x), ENETDOWN));
    CHECK(xsk_open(&alone, ENTRIES, CHUNKS) == 0 && xsk_bind(&alone, b_index, XDP_COPY) == 0);
    CHECK(refused(says_no_new_flows(&x), ENETDOWN));
    CHECK(xsk_open(&beside, ENTRIES, CHUNKS) == 0);
    CHECK(xsk_bind_queue(&beside, b_index, 1, XDP_COPY) == 0);
    CHECK(refused(says_no_new_flows(&x), ENETDOWN));
    CHECK(says_no_new_flows(&alone) == 0 && says_no_new_flows(&beside) == 0);
    xsk_close(&beside);
    xsk_close(&alone);
    xsk_close(&x);
    close(filter);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    a_index = if_nametoindex(argv[1]);
    b_index = if_nametoindex(argv[2]);
    mac_of(a_index, a_mac);
    mac_of(b_index, b_mac);
    bare = socket(AF_XDP, SOCK_RAW, 0);
    if (begin_peer() != 0) {
        perror("the peer");
        return 1;
    }
    TEST(only_who_may_take_the_link_makes_filters);
    TEST(what_makes_no_sense_is_refused);
    TEST(filters_that_cross_are_refused_and_those_inside_each_other_are_not);
    TEST(there_are_so_many_and_what_is_closed_is_given_back);
    TEST(a_program_without_rights_has_its_port_and_nothing_else);
    TEST(a_filter_is_passed_on_by_a_message);
    TEST(a_filter_has_one_socket_at_a_time);
    TEST(a_filter_lives_as_long_as_a_descriptor_or_a_socket_of_it);
    TEST(the_stack_has_all_other_ports_of_the_same_address);
    TEST(the_innermost_filter_with_a_queue_gets_a_frame);
    TEST(a_queue_is_narrowed_that_had_the_whole_link);
    TEST(a_frame_that_is_changed_after_the_look_leaves_as_it_was);
    TEST(a_filter_that_is_revoked_under_load_is_over_at_once);
    TEST(who_has_lost_a_queue_says_nothing_about_its_next_owner);
    return check_status();
}
