// promiscuous INTERFACE [GROUP]: wants all its frames, or those to a station that many are, until it
// is ended.
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    struct packet_mreq wanted = {.mr_type = PACKET_MR_PROMISC,
                                 .mr_ifindex = argc > 1 ? if_nametoindex(argv[1]) : 0};
    if (argc > 2) {
        wanted.mr_type = PACKET_MR_MULTICAST;
        wanted.mr_alen = ETH_ALEN;
        ether_aton_r(argv[2], (struct ether_addr *)wanted.mr_address);
    }
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &wanted, sizeof wanted) != 0) return 1;
    puts("listening");
    fflush(stdout);
    pause();
}
