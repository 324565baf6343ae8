// Packet sockets on loopback: what they see, what their filters and rings keep, and that a
// slow or hostile program loses packets and nothing else.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define LO 1
#define PORT 7777
#define BLOCK_BYTES 4096
#define BLOCKS 4
#define RING_BYTES (BLOCK_BYTES * BLOCKS)

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif
#ifndef SO_TIMESTAMPNS
#define SO_TIMESTAMPNS 35
#endif

// A packet socket on loopback. Linux shows loopback's packets twice, as they go and as
// they come; the tests look at those that come.
static int watch(int type) {
    int fd = socket(AF_PACKET, type, 0), on = 1;
    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    struct sockaddr_ll name = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
                               .sll_ifindex = LO};
    return bind(fd, (void *)&name, sizeof name) == 0 ? fd : -1;
}

static void send_datagrams(int count, int bytes, int port) {
    static char data[1400];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < count; i++) sendto(fd, data, bytes, 0, (void *)&to, sizeof to);
    close(fd);
}

// Keeps `bytes` of datagrams to the port, nothing of anything else. Offsets are a raw
// socket's.
static int attach(int fd, int port, int bytes) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 5),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 14 + 9),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 14 + 20 + 2),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, bytes),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static int receive(int fd, void *to, int room) { return recv(fd, to, room, MSG_DONTWAIT); }

static void only_those_who_may_open_packet_sockets(void) {
    pid_t child = fork();
    if (child == 0) {
        int refused = setgid(65534) == 0 && setuid(65534) == 0 &&
                      socket(AF_PACKET, SOCK_RAW, 0) == -1 && errno == EPERM;
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void interfaces_have_numbers_and_names(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {0};
    strcpy(request.ifr_name, "lo");
    CHECK(ioctl(fd, SIOCGIFINDEX, &request) == 0 && request.ifr_ifindex == LO);
    CHECK(ioctl(fd, SIOCGIFHWADDR, &request) == 0);
    CHECK(request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
    CHECK(ioctl(fd, SIOCGIFFLAGS, &request) == 0 && request.ifr_flags & IFF_LOOPBACK);
    CHECK(ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu == 65536);
    request = (struct ifreq){.ifr_ifindex = LO};
    CHECK(ioctl(fd, SIOCGIFNAME, &request) == 0 && strcmp(request.ifr_name, "lo") == 0);
    strcpy(request.ifr_name, "none0");
    CHECK(ioctl(fd, SIOCGIFINDEX, &request) == -1 && errno == ENODEV);
    close(fd);
}

static void a_raw_socket_sees_the_link_header(void) {
    unsigned char frame[2048];
    int fd = watch(SOCK_RAW);
    CHECK(fd >= 0 && attach(fd, PORT, 65535) == 0);
    send_datagrams(1, 10, PORT);
    struct sockaddr_ll from;
    socklen_t len = sizeof from;
    int count = recvfrom(fd, frame, sizeof frame, MSG_DONTWAIT, (void *)&from, &len);
    CHECK(count == 14 + 20 + 8 + 10);
    CHECK(frame[12] == 8 && frame[13] == 0 && frame[14] == 0x45);
    CHECK(from.sll_family == AF_PACKET && from.sll_protocol == htons(ETH_P_IP));
    CHECK(from.sll_ifindex == LO && from.sll_hatype == ARPHRD_LOOPBACK);
    CHECK(from.sll_pkttype == PACKET_HOST && from.sll_halen == 6);
    CHECK(receive(fd, frame, sizeof frame) == -1 && errno == EAGAIN);
    close(fd);
}

static void a_datagram_socket_sees_the_network_header(void) {
    unsigned char packet[2048];
    int fd = watch(SOCK_DGRAM);
    CHECK(fd >= 0);
    send_datagrams(1, 10, PORT);
    struct pollfd wanted = {fd, POLLIN, 0};
    CHECK(poll(&wanted, 1, 5000) == 1 && wanted.revents == POLLIN);
    CHECK(receive(fd, packet, sizeof packet) >= 20 && packet[0] == 0x45);
    close(fd);
}

static void a_filter_decides_what_is_kept(void) {
    unsigned char frame[2048];
    int fd = watch(SOCK_RAW);
    CHECK(attach(fd, PORT, 20) == 0);
    send_datagrams(3, 100, PORT + 1);
    CHECK(receive(fd, frame, sizeof frame) == -1 && errno == EAGAIN);
    send_datagrams(1, 100, PORT);
    CHECK(receive(fd, frame, sizeof frame) == 20);
    int any = 0;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &any, sizeof any) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &any, sizeof any) == -1);
    CHECK(errno == ENOENT);
    send_datagrams(1, 100, PORT + 1);
    CHECK(receive(fd, frame, sizeof frame) == 14 + 20 + 8 + 100);
    close(fd);
}

static void what_is_no_filter_is_refused(void) {
    int fd = watch(SOCK_RAW), on = 1, off = 0;
    struct sock_filter endless[] = {BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff)};
    struct sock_fprog program = {1, endless};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == -1);
    CHECK(errno == EINVAL);
    program.len = 0;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == -1);
    CHECK(errno == EINVAL);
    program = (struct sock_fprog){1, (void *)16};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == -1);
    CHECK(errno == EFAULT);
    CHECK(attach(fd, PORT, 1) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on) == 0);
    CHECK(attach(fd, PORT, 1) == -1 && errno == EPERM);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof off) == -1);
    CHECK(errno == EPERM);
    close(fd);
}

static void times_and_lengths_travel_beside_a_packet(void) {
    char frame[64], control[256];
    int fd = watch(SOCK_RAW), on = 1;
    CHECK(attach(fd, PORT, 30) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0);
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) == 0);
    struct timespec before, after, stamp = {0};
    struct tpacket_auxdata told = {0};
    clock_gettime(CLOCK_REALTIME, &before);
    send_datagrams(1, 100, PORT);
    struct iovec bytes = {frame, sizeof frame};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK(recvmsg(fd, &message, MSG_DONTWAIT) == 30);
    clock_gettime(CLOCK_REALTIME, &after);
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
        if (one->cmsg_level == SOL_SOCKET) memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
        if (one->cmsg_level == SOL_PACKET) memcpy(&told, CMSG_DATA(one), sizeof told);
    }
    CHECK(stamp.tv_sec >= before.tv_sec && stamp.tv_sec <= after.tv_sec);
    CHECK(told.tp_len == 14 + 20 + 8 + 100 && told.tp_snaplen == 30);
    CHECK(told.tp_net == 14 && told.tp_status & TP_STATUS_USER);
    close(fd);
}

static void a_queue_that_nobody_empties_is_bounded(void) {
    char frame[2048];
    int fd = watch(SOCK_RAW), bytes = 8192, kept = 0;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
    CHECK(attach(fd, PORT, 65535) == 0);
    send_datagrams(200, 1000, PORT);
    while (receive(fd, frame, sizeof frame) > 0) kept++;
    struct tpacket_stats counted;
    socklen_t len = sizeof counted;
    CHECK(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counted, &len) == 0 && len == 8);
    CHECK(counted.tp_packets == 200 && counted.tp_drops > 0);
    CHECK(kept > 0 && kept + counted.tp_drops == 200);
    CHECK(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counted, &len) == 0);
    CHECK(counted.tp_packets == 0 && counted.tp_drops == 0);
    close(fd);
}

static void frames_that_a_program_makes_are_seen_by_others(void) {
    unsigned char packet[] = {0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0,
                              127, 0, 0, 1, 127, 0, 0, 1, 0x30, 0x39, PORT >> 8, PORT & 255,
                              0, 12, 0, 0, 'm', 'a', 'd', 'e'};
    unsigned char got[64];
    int watcher = watch(SOCK_RAW), fd = socket(AF_PACKET, SOCK_DGRAM, 0);
    CHECK(attach(watcher, PORT, 65535) == 0);
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
                             .sll_ifindex = LO, .sll_halen = 6};
    CHECK(sendto(fd, packet, sizeof packet, 0, (void *)&to, sizeof to) == sizeof packet);
    CHECK(recv(watcher, got, sizeof got, 0) == 14 + sizeof packet);
    CHECK(memcmp(got + 14, packet, sizeof packet) == 0);
    static char large[70000];
    CHECK(sendto(fd, large, sizeof large, 0, (void *)&to, sizeof to) == -1 && errno == EMSGSIZE);
    to.sll_ifindex = 77;
    CHECK(sendto(fd, packet, sizeof packet, 0, (void *)&to, sizeof to) == -1 && errno == ENXIO);
    close(watcher), close(fd);
}

// Makes a ring of version 3 and maps it.
static struct tpacket_block_desc *ring_of(int fd) {
    int version = TPACKET_V3;
    struct tpacket_req3 wanted = {.tp_block_size = BLOCK_BYTES, .tp_block_nr = BLOCKS,
                                  .tp_frame_size = 2048, .tp_frame_nr = 2 * BLOCKS,
                                  .tp_retire_blk_tov = 20};
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted))
        return MAP_FAILED;
    return mmap(0, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static struct tpacket_block_desc *block(struct tpacket_block_desc *ring, int number) {
    return (void *)((char *)ring + number * BLOCK_BYTES);
}

// Waits for the block and counts its packets to our port.
static int packets_in(int fd, struct tpacket_block_desc *of) {
    volatile uint32_t *status = &of->hdr.bh1.block_status;
    struct pollfd wanted = {fd, POLLIN, 0};
    for (int i = 0; i < 200 && !(*status & TP_STATUS_USER); i++) poll(&wanted, 1, 50);
    if (!(*status & TP_STATUS_USER)) return -1;
    int count = of->hdr.bh1.num_pkts;
    struct tpacket3_hdr *packet = (void *)((char *)of + of->hdr.bh1.offset_to_first_pkt);
    for (int i = 0; i < count; i++) {
        unsigned char *bytes = (unsigned char *)packet + packet->tp_mac;
        if (bytes[12] != 8 || bytes[36] != PORT >> 8 || bytes[37] != (PORT & 255)) return -2;
        packet = (void *)((char *)packet + packet->tp_next_offset);
    }
    return count;
}

static struct tpacket_stats_v3 statistics(int fd) {
    struct tpacket_stats_v3 counted = {0};
    socklen_t len = sizeof counted;
    getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counted, &len);
    return counted;
}

static void a_ring_gets_packets_without_calls(void) {
    int fd = watch(SOCK_RAW), total = 0;
    CHECK(attach(fd, PORT, 65535) == 0);
    struct tpacket_block_desc *ring = ring_of(fd);
    CHECK(ring != MAP_FAILED);
    for (int turn = 0; turn < 3 * BLOCKS; turn++) {
        send_datagrams(2, 100, PORT);
        struct tpacket_block_desc *next = block(ring, turn % BLOCKS);
        int count = packets_in(fd, next);
        CHECK(count > 0 && next->hdr.bh1.seq_num == turn + 1);
        total += count;
        __atomic_store_n(&next->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        // What a slow machine left for the next block is read there.
        if (count < 2) turn++, total += packets_in(fd, block(ring, turn % BLOCKS)),
                       block(ring, turn % BLOCKS)->hdr.bh1.block_status = TP_STATUS_KERNEL;
    }
    struct tpacket_stats_v3 counted = statistics(fd);
    CHECK(counted.tp_packets == total && counted.tp_drops == 0);
    munmap(ring, RING_BYTES), close(fd);
}

static void rings_that_cannot_be_are_refused(void) {
    int fd = watch(SOCK_RAW), version = TPACKET_V3;
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) == 0);
    struct tpacket_req3 wanted = {.tp_block_size = 1000, .tp_block_nr = 1,
                                  .tp_frame_size = 2048, .tp_frame_nr = 2};
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted) == -1);
    CHECK(errno == EINVAL);
    wanted = (struct tpacket_req3){.tp_block_size = 1 << 30, .tp_block_nr = 1 << 20,
                                   .tp_frame_size = 1 << 30, .tp_frame_nr = 1 << 20};
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted) == -1);
    close(fd);
    fd = watch(SOCK_RAW);
    CHECK(mmap(0, RING_BYTES, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
    struct tpacket_block_desc *ring = ring_of(fd);
    CHECK(ring != MAP_FAILED);
    CHECK(mmap(0, BLOCK_BYTES, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) == -1);
    CHECK(errno == EBUSY);
    wanted = (struct tpacket_req3){0};
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted) == -1);
    CHECK(errno == EBUSY);
    munmap(ring, RING_BYTES);
    CHECK(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted) == 0);
    close(fd);
}

static void a_ring_that_nobody_reads_loses_the_rest_and_counts_it(void) {
    int fd = watch(SOCK_RAW), total = 0;
    CHECK(attach(fd, PORT, 65535) == 0);
    struct tpacket_block_desc *ring = ring_of(fd);
    CHECK(ring != MAP_FAILED);
    send_datagrams(100, 1000, PORT);
    for (int i = 0; i < BLOCKS; i++) {
        int count = packets_in(fd, block(ring, i));
        CHECK(count > 0);
        total += count;
    }
    struct tpacket_stats_v3 counted = statistics(fd);
    CHECK(counted.tp_packets == 100 && counted.tp_drops > 0 && counted.tp_freeze_q_cnt > 0);
    CHECK(total + counted.tp_drops == 100);
    for (int i = 0; i < BLOCKS; i++) block(ring, i)->hdr.bh1.block_status = TP_STATUS_KERNEL;
    send_datagrams(1, 1000, PORT);
    CHECK(packets_in(fd, block(ring, 0)) == 1);
    munmap(ring, RING_BYTES), close(fd);
}

// A slot of a ring of version 2.
static struct tpacket2_hdr *slot(void *ring, int number) {
    return (void *)((char *)ring + number * 2048);
}

static void *slots_of(int fd) {
    int version = TPACKET_V2;
    struct tpacket_req wanted = {.tp_block_size = BLOCK_BYTES, .tp_block_nr = BLOCKS,
                                 .tp_frame_size = 2048, .tp_frame_nr = 2 * BLOCKS};
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted))
        return MAP_FAILED;
    return mmap(0, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void a_ring_of_slots_tells_of_each_packet(void) {
    int fd = watch(SOCK_RAW), header = TPACKET_V2;
    socklen_t len = sizeof header;
    CHECK(getsockopt(fd, SOL_PACKET, PACKET_HDRLEN, &header, &len) == 0);
    CHECK(header == sizeof(struct tpacket2_hdr));
    CHECK(attach(fd, PORT, 65535) == 0);
    void *ring = slots_of(fd);
    CHECK(ring != MAP_FAILED);
    for (int i = 0; i < 2 * BLOCKS; i++) {
        send_datagrams(1, 100 + i, PORT);
        struct pollfd wanted = {fd, POLLIN, 0};
        CHECK(poll(&wanted, 1, 5000) == 1);
        struct tpacket2_hdr *next = slot(ring, i);
        CHECK(next->tp_status & TP_STATUS_USER);
        CHECK(next->tp_len == 142 + i && next->tp_snaplen == 142 + i);
        CHECK(next->tp_net == next->tp_mac + 14);
        CHECK(((unsigned char *)next)[next->tp_net] == 0x45);
        struct sockaddr_ll *from = (void *)((char *)next + TPACKET_ALIGN(sizeof *next));
        CHECK(from->sll_family == AF_PACKET && from->sll_ifindex == LO);
    }
    send_datagrams(3, 100, PORT);
    struct tpacket_stats counted;
    len = sizeof counted;
    CHECK(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counted, &len) == 0 && len == 8);
    CHECK(counted.tp_packets == 2 * BLOCKS + 3 && counted.tp_drops == 3);
    slot(ring, 0)->tp_status = TP_STATUS_KERNEL;
    send_datagrams(1, 100, PORT);
    CHECK(slot(ring, 0)->tp_status & TP_STATUS_USER);
    memset(ring, 0x55, RING_BYTES);
    send_datagrams(3, 100, PORT);
    memset(ring, 0, RING_BYTES);
    send_datagrams(1, 100, PORT);
    int found = 0;
    for (int i = 0; i < 2 * BLOCKS; i++) found += slot(ring, i)->tp_status & TP_STATUS_USER;
    CHECK(found == 1);
    munmap(ring, RING_BYTES), close(fd);
}

static void a_program_that_scribbles_over_its_ring_harms_only_itself(void) {
    int fd = watch(SOCK_RAW);
    CHECK(attach(fd, PORT, 65535) == 0);
    struct tpacket_block_desc *ring = ring_of(fd);
    CHECK(ring != MAP_FAILED);
    srandom(1);
    for (int turn = 0; turn < 300; turn++) {
        uint32_t *words = (void *)ring;
        for (int i = 0; i < RING_BYTES / 4; i++) words[i] = random() % 3 ? random() : 0;
        send_datagrams(3, 700, PORT);
        struct pollfd wanted = {fd, POLLIN, 0};
        poll(&wanted, 1, 0);
    }
    struct tpacket_stats_v3 counted = statistics(fd);
    CHECK(counted.tp_packets == 900 && counted.tp_drops <= 900);
    close(fd);
    // The mapping outlives the socket, and the program may still write there.
    memset(ring, 0xff, RING_BYTES);
    send_datagrams(3, 700, PORT);
    munmap(ring, RING_BYTES);
    // Another socket is none the worse.
    fd = watch(SOCK_RAW);
    CHECK(attach(fd, PORT, 65535) == 0);
    ring = ring_of(fd);
    CHECK(ring != MAP_FAILED);
    send_datagrams(1, 700, PORT);
    CHECK(packets_in(fd, ring) == 1);
    munmap(ring, RING_BYTES), close(fd);
}

int main(void) {
    TEST(only_those_who_may_open_packet_sockets);
    TEST(interfaces_have_numbers_and_names);
    TEST(a_raw_socket_sees_the_link_header);
    TEST(a_datagram_socket_sees_the_network_header);
    TEST(a_filter_decides_what_is_kept);
    TEST(what_is_no_filter_is_refused);
    TEST(times_and_lengths_travel_beside_a_packet);
    TEST(a_queue_that_nobody_empties_is_bounded);
    TEST(frames_that_a_program_makes_are_seen_by_others);
    TEST(a_ring_gets_packets_without_calls);
    TEST(rings_that_cannot_be_are_refused);
    TEST(a_ring_that_nobody_reads_loses_the_rest_and_counts_it);
    TEST(a_ring_of_slots_tells_of_each_packet);
    TEST(a_program_that_scribbles_over_its_ring_harms_only_itself);
    return check_status();
}
