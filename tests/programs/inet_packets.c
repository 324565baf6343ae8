// What servers ask of their sockets when they start: limits of packets, options of packets, stations.
#include "check.h"
#include "family.h"
#include "inet_sockets.h"
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char bytes[9000], room[70000];

// The socket's own limit of a packet, and no pieces.
static void packets(void) {
    union name to;
    int b = named(SOCK_DGRAM, &to), a = socket(to.any.sa_family, SOCK_DGRAM, 0);
    connect(a, &to.any, name_len());
    EXPECT(get(a, SOL_SOCKET, SO_INCOMING_NAPI_ID) == 0, "no queue is known that packets come from");
    if (!v6) {
        EXPECT(refuses(set(a, SOL_IPV6, IPV6_V6ONLY, 1), ENOPROTOOPT), "IPv4 has no options of IPv6");
        int stream = socket(AF_INET, SOCK_STREAM, 0);
        socklen_t len = sizeof room;
        EXPECT(!getsockopt(stream, SOL_IP, IP_OPTIONS, room, &len) && len == 0, "packets carry no options");
        close(a), close(b), close(stream);
        return;
    }
    EXPECT(refuses(set(a, SOL_IPV6, IPV6_MTU, 1279), EINVAL) && refuses(set(a, SOL_IPV6, IPV6_MTU, -1), EINVAL), "no packet is limited below 1280 bytes");
    EXPECT(!set(a, SOL_IPV6, IPV6_MTU, 1280) && get(a, SOL_IPV6, IPV6_MTU) == 65536, "a socket's limit is not the path's");
    EXPECT(send(a, bytes, 9000, 0) == 9000 && recv(b, room, sizeof room, MSG_DONTWAIT) == 9000, "what is larger goes in pieces");
    EXPECT(get(a, SOL_IPV6, IPV6_DONTFRAG) == 0 && !set(a, SOL_IPV6, IPV6_DONTFRAG, 1) && get(a, SOL_IPV6, IPV6_DONTFRAG) == 1, "or is not to");
    EXPECT(send(a, bytes, 1232, 0) == 1232 && refuses(send(a, bytes, 1233, 0), EMSGSIZE), "and is refused then");
    EXPECT(!set(a, SOL_IPV6, IPV6_MTU, 0) && send(a, bytes, 9000, 0) == 9000, "unless there is no limit");
    close(a), close(b);
}

// Stations that the kernel knows: what it shows of one is what it tells.
static void stations(void) {
    struct arpreq ask = {.arp_pa.sa_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT(refuses(ioctl(fd, SIOCGARP, &ask), ENODEV), "a station is somewhere");
    strcpy(ask.arp_dev, "lo");
    EXPECT(refuses(ioctl(fd, SIOCGARP, &ask), ENXIO), "of loopback none is known");
    ask.arp_pa.sa_family = AF_INET6;
    EXPECT(refuses(ioctl(fd, SIOCGARP, &ask), EPFNOSUPPORT), "only addresses of IPv4 have one");
    FILE *file = fopen("/proc/net/arp", "r");
    char line[200], ip[50], mac[50], name[50], told[50];
    unsigned flags;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%49s 0x1 %x %49s %*s %49s", ip, &flags, mac, name) == 4 && flags) {
            ask = (struct arpreq){.arp_pa.sa_family = AF_INET};
            inet_pton(AF_INET, ip, &((struct sockaddr_in *)&ask.arp_pa)->sin_addr);
            strcpy(ask.arp_dev, name);
            EXPECT(!ioctl(fd, SIOCGARP, &ask) && ask.arp_ha.sa_family == ARPHRD_ETHER && ask.arp_flags == (int)flags, "a station is told");
            unsigned char *at = (unsigned char *)ask.arp_ha.sa_data;
            sprintf(told, "%02x:%02x:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3], at[4], at[5]);
            EXPECT(!strcmp(told, mac), "as it is shown");
        }
    fclose(file), close(fd);
}

int main(void) {
    for (v6 = 0; v6 < 2; v6++) packets();
    stations();
    return check_status();
}
