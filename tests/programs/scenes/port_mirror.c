// A program that mirrors frames of a card that it does not have, by /dev/portmirror: what it may not say is refused, and
// what it says is seen at its own interface only, while somebody looks.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct mirror {
    char place[16];
    uint8_t station[6];
    uint16_t mtu;
};
#define ATTACH _IOW(0xda, 32, struct mirror)

enum { HEADER = 4, OUTGOING = 1, FRAME_MAX = (1 << 16) + 64, MIRRORS_MAX = 64 };

static void fail(const char *what) {
    printf("failed: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int device(void) {
    int fd = open("/dev/portmirror", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fail("open");
    return fd;
}

static int attach(int fd, const char *place) {
    struct mirror mirror = {.station = {2, 0, 0, 0, 0, 1}, .mtu = 1500};
    memcpy(mirror.place, place, strnlen(place, sizeof mirror.place));
    return ioctl(fd, ATTACH, &mirror);
}

static void refuses(int error, const char *place) {
    int fd = device();
    if (attach(fd, place) != -1 || errno != error) {
        printf("%s: ", place);
        fail("not refused so");
    }
    close(fd);
}

static void as_nobody(void) {
    pid_t child = fork();
    if (child == 0) {
        if (setuid(65534))
            fail("setuid");
        refuses(EPERM, "0000:02:10.1");
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        fail("another user");
}

static void refused(void) {
    const char *none[] = {"", "eth0", "0000:02:10", "0000:02:20.0", "0000:02:10.8", "0000:100:10.0", "0:0:0.-1", "0000:02:10.1234567"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        refuses(EINVAL, none[i]);
    as_nobody();
    int fd = device();
    if (write(fd, "frame of nothing", 16) != -1 || errno != ENXIO)
        fail("a write without a mirror");
    if (ioctl(fd, ATTACH, NULL) != -1 || errno != EFAULT)
        fail("a request that is nowhere");
    close(fd);
}

static void bounded(int first) {
    int all[MIRRORS_MAX], count = 0;
    char place[16];
    for (int bus = 3; count < MIRRORS_MAX; bus++) {
        snprintf(place, sizeof place, "0000:%02x:00.0", bus);
        all[count] = device();
        if (attach(all[count++], place))
            break;
    }
    // The first one is there, too.
    if (count != MIRRORS_MAX || errno != ENOBUFS)
        fail("no limit");
    if (attach(first, "0000:03:00.0") != -1)
        fail("a second card of a file");
    while (count--)
        close(all[count]);
    int again = device();
    if (attach(again, "0000:03:00.0"))
        fail("not given back");
    close(again);
}

static int looks(int interface) {
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = interface};
    if (fd < 0 || bind(fd, (void *)&at, sizeof at))
        fail("packet socket");
    return fd;
}

static void shows(int mirror, int here, int elsewhere) {
    uint8_t sent[HEADER + 60] = {OUTGOING}, got[100];
    memset(sent + HEADER, 0x5a, sizeof sent - HEADER);
    for (int direction = OUTGOING; direction >= 0; direction--) {
        sent[0] = direction;
        if (write(mirror, sent, sizeof sent) != sizeof sent)
            fail("write");
        struct sockaddr_ll from;
        socklen_t len = sizeof from;
        ssize_t count = recvfrom(here, got, sizeof got, MSG_DONTWAIT, (void *)&from, &len);
        if (count != 60 || memcmp(got, sent + HEADER, 60))
            fail("another frame");
        if ((from.sll_pkttype == PACKET_OUTGOING) != direction)
            fail("another way");
    }
    if (recv(elsewhere, got, sizeof got, MSG_DONTWAIT) != -1)
        fail("seen elsewhere");
}

int main(void) {
    refused();
    int mirror = device();
    if (attach(mirror, "0000:02:10.1"))
        fail("attach");
    if (attach(mirror, "0000:02:10.2") != -1 || errno != EBUSY)
        fail("attached twice");
    refuses(EEXIST, "0000:02:10.1");
    int interface = if_nametoindex("enp2s16f1");
    if (!interface || if_nametoindex("enp2s16f2"))
        fail("names");
    if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, mirror, 0) != MAP_FAILED)
        fail("a private page");
    volatile uint32_t *watched = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mirror, 0);
    if (watched == MAP_FAILED || *watched)
        fail("watched by nobody");
    int here = looks(interface), elsewhere = looks(if_nametoindex("lo"));
    if (!*watched)
        fail("not told");
    shows(mirror, here, elsewhere);
    static uint8_t large[HEADER + FRAME_MAX + 1];
    if (write(mirror, large, HEADER + FRAME_MAX) != HEADER + FRAME_MAX)
        fail("a large segment");
    if (write(mirror, large, sizeof large) != -1 || errno != EMSGSIZE)
        fail("a larger one");
    if (write(mirror, large, HEADER + 13) != -1 || errno != EINVAL)
        fail("less than a header");
    if (send(here, large, 60, 0) != -1)
        fail("sent through an interface without a stack");
    close(here);
    close(elsewhere);
    if (*watched)
        fail("not told of the end");
    bounded(mirror);
    printf("mirrored all\n");
    return 0;
}
