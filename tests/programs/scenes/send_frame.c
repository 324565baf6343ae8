// send_frame INTERFACE HEX...: sends each frame as it stands, from the Ethernet header on.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int bytes_of(const char *hex, unsigned char *to, int most) {
    int count = 0;
    for (; count < most && sscanf(hex, "%2hhx", to + count) == 1; hex += 2) count++;
    return count;
}

int main(int argc, char **argv) {
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (argc < 3 || fd < 0) return 2;
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = if_nametoindex(argv[1]), .sll_halen = 6};
    for (int i = 2; i < argc; i++) {
        unsigned char frame[1514];
        int len = bytes_of(argv[i], frame, sizeof frame);
        if (sendto(fd, frame, len, 0, (void *)&to, sizeof to) != len) {
            perror("sendto");
            return 1;
        }
    }
    return 0;
}
