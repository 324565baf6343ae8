// send_frame [-n COUNT] INTERFACE HEX: sends a frame as it stands, from the Ethernet header on,
// once or so many times. A frame that has no room is sent no more.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int bytes_of(const char *hex, unsigned char *to, int most) {
    int count = 0;
    for (; count < most && sscanf(hex, "%2hhx", to + count) == 1; hex += 2) count++;
    return count;
}

int main(int argc, char **argv) {
    int times = 1, first = 1;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        times = atoi(argv[2]);
        first = 3;
    }
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (argc != first + 2 || fd < 0) return 2;
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = if_nametoindex(argv[first]), .sll_halen = 6};
    unsigned char frame[1514];
    int len = bytes_of(argv[first + 1], frame, sizeof frame);
    for (int i = 0; i < times; i++) {
        if (sendto(fd, frame, len, 0, (void *)&to, sizeof to) != len && errno != ENOBUFS) {
            perror("sendto");
            return 1;
        }
    }
    return 0;
}
