// promiscuous INTERFACE: wants all its frames until it is ended.
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    struct packet_mreq wanted = {.mr_type = PACKET_MR_PROMISC,
                                 .mr_ifindex = argc > 1 ? if_nametoindex(argv[1]) : 0};
    if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &wanted, sizeof wanted) != 0) return 1;
    puts("listening");
    fflush(stdout);
    pause();
}
