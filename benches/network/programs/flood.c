// flood KIND ADDRESS RATE
//
// Sends RATE packets a second to ADDRESS until its input ends, and then says how many there
// were: "syn", each to port 6379 from another host and port, or "echo", pings of 56 bytes. It
// sends in bursts, a thousand a second, as a link of that rate delivers them.
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 6379, BURSTS = 1000, ECHO_BYTES = 56, SOURCES = 1 << 16 };

struct syn {
    struct iphdr ip;
    struct tcphdr tcp;
    uint8_t segment_size[4];
};

struct echo {
    struct iphdr ip;
    struct icmphdr icmp;
    uint8_t bytes[ECHO_BYTES];
};

static uint32_t sum_of(const void *bytes, size_t length) {
    const uint16_t *words = bytes;
    uint32_t sum = 0;
    for (size_t i = 0; i < length / 2; i++) sum += words[i];
    return sum;
}

static uint16_t checksum(uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static struct iphdr header(uint8_t protocol, in_addr_t from, in_addr_t to) {
    return (struct iphdr){.version = 4, .ihl = 5, .ttl = 64, .protocol = protocol, .saddr = from, .daddr = to};
}

// From 198.18.0.0/15, which is meant for such things (RFC 2544), by way of this host.
static struct syn syn(in_addr_t to, uint32_t number) {
    in_addr_t from = htonl(198u << 24 | 18u << 16 | number % SOURCES);
    struct syn packet = {.ip = header(IPPROTO_TCP, from, to), .segment_size = {2, 4, 5, 180}};
    packet.tcp = (struct tcphdr){.syn = 1, .doff = 6, .dest = htons(PORT), .window = 0xffff};
    packet.tcp.source = htons((uint16_t)(1024 + number * 7919u % 60000));
    packet.tcp.seq = number * 2654435761u;
    uint32_t pseudo = sum_of(&packet.ip.saddr, 8) + htons(IPPROTO_TCP) + htons(sizeof packet - sizeof packet.ip);
    packet.tcp.check = checksum(pseudo + sum_of(&packet.tcp, sizeof packet - sizeof packet.ip));
    return packet;
}

static struct echo echo(in_addr_t to, uint32_t number) {
    struct echo packet = {.ip = header(IPPROTO_ICMP, 0, to), .icmp = {.type = ICMP_ECHO}};
    packet.icmp.un.echo.id = 1;
    packet.icmp.un.echo.sequence = (uint16_t)number;
    packet.icmp.checksum = checksum(sum_of(&packet.icmp, sizeof packet - sizeof packet.ip));
    return packet;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int sock = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(argv[2])};
    if (sock < 0 || connect(sock, (struct sockaddr *)&to, sizeof to)) return perror("raw socket"), 1;
    int is_syn = strcmp(argv[1], "syn") == 0, rate = atoi(argv[3]);
    uint32_t sent = 0, refused = 0;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0) {
        for (int i = 0; i < rate / BURSTS; i++, sent++) {
            struct syn opening = syn(to.sin_addr.s_addr, sent);
            struct echo ping = echo(to.sin_addr.s_addr, sent);
            ssize_t done = is_syn ? send(sock, &opening, sizeof opening, 0) : send(sock, &ping, sizeof ping, 0);
            refused += done < 0;
        }
        next.tv_nsec += 1000000000 / BURSTS;
        if (next.tv_nsec >= 1000000000) next.tv_sec++, next.tv_nsec -= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
    }
    printf("Sent: %u\nRefused: %u\n", sent, refused);
    return 0;
}
