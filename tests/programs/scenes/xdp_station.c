// xdp_station LINK ADDRESS [deaf|filtered]: a station at an IPv4 address whose frames this program moves by the
// rings of an AF_XDP socket: answers ARP requests, and each datagram by itself. A deaf one has the
// link, gives chunks, and never looks at its rings. A filtered one gives its rights up and has port 7 of the
// address.
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "xdp_filter.h"

enum { ENTRIES = 256, BATCH_MAX = 64, PATIENCE_MS = 10, ECHO = 7, NOBODY = 65534 };
enum { ARP_OPERATION = 20, ARP_SENDER = 22, ARP_TARGET = 32, ARP_END = 42 };
enum { IP = 14, IP_PROTOCOL = 23, IP_SOURCE = 26, IP_TARGET = 30, UDP = 34, UDP_END = 42 };

static struct xsk rings;
static unsigned char station[ETH_ALEN], address[4];

static int find_station(const char *name) {
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    int found = ioctl(fd, SIOCGIFHWADDR, &request);
    memcpy(station, request.ifr_hwaddr.sa_data, ETH_ALEN);
    close(fd);
    return found;
}

static void exchange(unsigned char *one, unsigned char *other, size_t bytes) {
    unsigned char kept[4];
    memcpy(kept, one, bytes);
    memcpy(one, other, bytes);
    memcpy(other, kept, bytes);
}

// Makes the answer of a frame in its place; 0 if it needs none. Sums stay right: what they are of is
// only exchanged.
static int answer(unsigned char *frame, uint32_t len) {
    int type = frame[12] << 8 | frame[13];
    if (type == ETHERTYPE_ARP && len >= ARP_END && frame[ARP_OPERATION + 1] == 1 &&
        memcmp(frame + ARP_TARGET + ETH_ALEN, address, 4) == 0) {
        frame[ARP_OPERATION + 1] = 2;
        memcpy(frame + ARP_TARGET, frame + ARP_SENDER, 10);
        memcpy(frame + ARP_SENDER, station, ETH_ALEN);
        memcpy(frame + ARP_SENDER + ETH_ALEN, address, 4);
    } else if (type == ETHERTYPE_IP && len >= UDP_END && frame[IP] == 0x45 &&
               frame[IP_PROTOCOL] == IPPROTO_UDP && memcmp(frame + IP_TARGET, address, 4) == 0) {
        exchange(frame + IP_SOURCE, frame + IP_TARGET, 4);
        exchange(frame + UDP, frame + UDP + 2, 2);
    } else {
        return 0;
    }
    memcpy(frame, frame + ETH_ALEN, ETH_ALEN);
    memcpy(frame + ETH_ALEN, station, ETH_ALEN);
    return 1;
}

// Answers a batch; returns how many frames were taken, and adds the answers to `*sent`.
static int take_batch(unsigned *sent) {
    struct xdp_desc frame;
    int taken = 0;
    while (taken < BATCH_MAX && xsk_receive(&rings, &frame)) {
        taken++;
        if (answer((unsigned char *)rings.umem + frame.addr, frame.len)) {
            xsk_send(&rings, frame.addr, frame.len);
            (*sent)++;
        } else {
            xsk_fill(&rings, frame.addr);
        }
    }
    return taken;
}

// Chunks whose frames are sent take the next ones.
static unsigned reuse(void) {
    uint64_t at;
    unsigned count = 0;
    for (; xsk_completed(&rings, &at); count++) xsk_fill(&rings, at);
    return count;
}

// Until the link is gone.
static void serve(void) {
    unsigned under_way = 0;
    for (;;) {
        struct pollfd one = {.fd = rings.fd, .events = POLLIN};
        int taken = take_batch(&under_way);
        // What the link does not take now it sends later by itself.
        if (under_way != 0) xsk_kick(&rings);
        under_way -= reuse();
        if (taken == 0 && poll(&one, 1, under_way != 0 ? PATIENCE_MS : -1) == 1 && one.revents & POLLERR)
            return;
    }
}

// A socket by a filter, for a program that has no rights any more; -1 if that is refused.
static int filtered(const char *link, const char *local) {
    struct xdp_filter wanted = filter_for(if_nametoindex(link), local, IPPROTO_UDP, ECHO, ECHO);
    int any = socket(AF_XDP, SOCK_RAW, 0);
    int filter = filter_create(any, &wanted);
    if (filter < 0 || close(any) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) return -1;
    return ioctl(filter, XDP_FILTER_SOCKET);
}

int main(int argc, char **argv) {
    if (argc < 3 || inet_pton(AF_INET, argv[2], address) != 1) return 2;
    int is_filtered = argc > 3 && strcmp(argv[3], "filtered") == 0;
    int fd = is_filtered ? filtered(argv[1], argv[2]) : socket(AF_XDP, SOCK_RAW, 0);
    if (find_station(argv[1]) != 0 || xsk_open_on(&rings, fd, ENTRIES, ENTRIES) != 0) {
        perror("socket");
        return 1;
    }
    for (uint64_t i = 0; i < ENTRIES; i++) xsk_fill(&rings, i * XSK_CHUNK);
    if (xsk_bind(&rings, if_nametoindex(argv[1]), XDP_USE_NEED_WAKEUP) != 0) {
        perror("bind");
        return 1;
    }
    puts("serving");
    fflush(stdout);
    if (argc > 3 && !is_filtered)
        for (;;) pause();
    serve();
    puts("the link is gone");
    return 0;
}
