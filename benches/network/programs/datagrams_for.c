// datagrams_for ADDRESS PORT SECONDS
//
// Sends datagrams of 1400 bytes as fast as the socket takes them. Each begins with the time in
// nanoseconds by the sender's clock.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1400 };

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    to.sin_addr.s_addr = inet_addr(argv[1]);
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    if (sock < 0 || connect(sock, (struct sockaddr *)&to, sizeof to)) return perror("socket"), 1;
    char datagram[BYTES] = {0};
    uint64_t end = now_ns() + strtoull(argv[3], 0, 10) * 1000000000u;
    for (uint64_t now; (now = now_ns()) < end;) {
        memcpy(datagram, &now, sizeof now);
        if (send(sock, datagram, sizeof datagram, 0) < 0) usleep(1000);
    }
    puts("sent");
    return 0;
}
