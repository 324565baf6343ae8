// Filters over links: Sietch's, not Linux's (docs/rings.md, "Filters").
#ifndef XDP_FILTER_H
#define XDP_FILTER_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "xdp.h"

struct xdp_predicate {
    uint8_t family;
    uint8_t protocol; // 0: any
    uint8_t local_bits, peer_bits;
    uint16_t local_ports[2], peer_ports[2]; // the first and the last; both 0: any, or none
    uint8_t local[16], peer[16];
};

struct xdp_filter {
    uint32_t ifindex;
    uint32_t flags;
    struct xdp_predicate rx, tx;
};

#define XDP_FILTER_BOTH_WAYS 1
#define XDP_CREATE_FILTER _IOW(0xda, 1, struct xdp_filter)
#define XDP_FILTER_SOCKET _IO(0xda, 2)
#define XDP_FILTER 0x5302

// One protocol between ports of an IPv4 address of ours and anybody, both ways.
static inline struct xdp_filter filter_for(unsigned interface, const char *local, int protocol,
                                           uint16_t first, uint16_t last) {
    struct xdp_filter filter = {.ifindex = interface, .flags = XDP_FILTER_BOTH_WAYS};
    filter.rx.family = AF_INET;
    filter.rx.protocol = protocol;
    filter.rx.local_bits = 32;
    filter.rx.local_ports[0] = first;
    filter.rx.local_ports[1] = last;
    inet_pton(AF_INET, local, filter.rx.local);
    return filter;
}

// The filter's descriptor, or -1; `xsk` is any AF_XDP socket.
static inline int filter_create(int xsk, const struct xdp_filter *filter) {
    return ioctl(xsk, XDP_CREATE_FILTER, filter);
}

#endif
