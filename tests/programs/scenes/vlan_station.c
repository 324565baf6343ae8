// vlan_station INTERFACE VLAN: a station at 10.7.0.1 that only one VLAN hears. Runs on the host,
// whose kernel may know no VLANs: answers ARP requests and pings that have the tag, by frames with it.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ARP_OPERATION = 20, ARP_SENDER = 22, ARP_TARGET = 32, IP_SOURCE = 26, ICMP = 34, TAG_AT = 12 };
static const unsigned char station[ETH_ALEN] = {2, 0, 0, 0, 0, 7};
static const unsigned char address[4] = {10, 7, 0, 1};

// The tag that the kernel took out of a frame; 0 without one.
static int tag_of(struct msghdr *message) {
    struct cmsghdr *part = CMSG_FIRSTHDR(message);
    if (part == NULL || part->cmsg_type != PACKET_AUXDATA) return 0;
    struct tpacket_auxdata *data = (struct tpacket_auxdata *)CMSG_DATA(part);
    return data->tp_status & TP_STATUS_VLAN_VALID ? data->tp_vlan_tci & 0xfff : 0;
}

// Makes the answer of a frame; 0 if it needs none.
static int answer(unsigned char *frame, size_t len) {
    struct ether_header *header = (struct ether_header *)frame;
    int type = ntohs(header->ether_type);
    if (type == ETHERTYPE_ARP && len >= 42 && memcmp(frame + 38, address, 4) == 0) {
        frame[ARP_OPERATION + 1] = 2;
        memcpy(frame + ARP_TARGET, frame + ARP_SENDER, 10);
        memcpy(frame + ARP_SENDER, station, ETH_ALEN);
        memcpy(frame + ARP_SENDER + ETH_ALEN, address, 4);
    } else if (type == ETHERTYPE_IP && len >= 42 && frame[23] == 1 && frame[ICMP] == 8) {
        // The sum of the header is the same with the addresses exchanged.
        unsigned char source[4];
        memcpy(source, frame + IP_SOURCE, 4);
        memcpy(frame + IP_SOURCE, frame + IP_SOURCE + 4, 4);
        memcpy(frame + IP_SOURCE + 4, source, 4);
        frame[ICMP] = 0;
        unsigned sum = (frame[ICMP + 2] << 8 | frame[ICMP + 3]) + 0x800;
        sum = (sum & 0xffff) + (sum >> 16);
        frame[ICMP + 2] = sum >> 8;
        frame[ICMP + 3] = sum & 0xff;
    } else {
        return 0;
    }
    memcpy(header->ether_dhost, header->ether_shost, ETH_ALEN);
    memcpy(header->ether_shost, station, ETH_ALEN);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int vlan = atoi(argv[2]), yes = 1;
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll place = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
                                .sll_ifindex = if_nametoindex(argv[1])};
    if (bind(fd, (struct sockaddr *)&place, sizeof place) != 0) return 1;
    if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &yes, sizeof yes) != 0) return 1;
    puts("listening");
    fflush(stdout);
    for (;;) {
        unsigned char frame[2048], control[256], tag[4] = {0x81, 0, vlan >> 8, vlan & 0xff};
        struct iovec all = {frame, sizeof frame};
        struct msghdr message = {.msg_iov = &all, .msg_iovlen = 1,
                                 .msg_control = control, .msg_controllen = sizeof control};
        ssize_t len = recvmsg(fd, &message, 0);
        if (len < 0) return 1;
        if (tag_of(&message) != vlan || !answer(frame, len)) continue;
        struct iovec parts[] = {{frame, TAG_AT}, {tag, sizeof tag}, {frame + TAG_AT, len - TAG_AT}};
        if (writev(fd, parts, 3) < 0) perror("writev");
    }
}
