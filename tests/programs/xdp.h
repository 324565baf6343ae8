// AF_XDP through the system calls alone: memory, four rings, a link.
#ifndef XDP_H
#define XDP_H

#include <linux/if_xdp.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

#define XSK_CHUNK 2048

// Whether a child has the same memory as its parent (MAP_SHARED) or a copy.
static int xsk_umem_kind = MAP_PRIVATE;

struct xsk_ring {
    char *at;
    size_t bytes;
    unsigned entries;
    struct xdp_ring_offset off;
};

struct xsk {
    int fd;
    char *umem;
    size_t umem_bytes;
    struct xsk_ring fill, completion, rx, tx;
};

static inline uint32_t *xsk_word(struct xsk_ring *ring, uint64_t offset) {
    return (uint32_t *)(ring->at + offset);
}

static inline uint32_t xsk_get(struct xsk_ring *ring, uint64_t offset) {
    return __atomic_load_n(xsk_word(ring, offset), __ATOMIC_ACQUIRE);
}

static inline void xsk_set(struct xsk_ring *ring, uint64_t offset, uint32_t value) {
    __atomic_store_n(xsk_word(ring, offset), value, __ATOMIC_RELEASE);
}

// Entries between the ends.
static inline uint32_t xsk_filled(struct xsk_ring *ring) {
    return xsk_get(ring, ring->off.producer) - xsk_get(ring, ring->off.consumer);
}

static inline int xsk_needs_wakeup(struct xsk_ring *ring) {
    return xsk_get(ring, ring->off.flags) & XDP_RING_NEED_WAKEUP;
}

static inline void *xsk_entry(struct xsk_ring *ring, uint32_t position, size_t bytes) {
    return ring->at + ring->off.desc + (position & (ring->entries - 1)) * bytes;
}

// Puts an entry in; the ring has room.
static inline void xsk_put(struct xsk_ring *ring, const void *entry, size_t bytes) {
    uint32_t producer = xsk_get(ring, ring->off.producer);
    memcpy(xsk_entry(ring, producer, bytes), entry, bytes);
    xsk_set(ring, ring->off.producer, producer + 1);
}

// Takes an entry out; 0 if there is none.
static inline int xsk_take(struct xsk_ring *ring, void *entry, size_t bytes) {
    uint32_t consumer = xsk_get(ring, ring->off.consumer);
    if (consumer == xsk_get(ring, ring->off.producer)) return 0;
    memcpy(entry, xsk_entry(ring, consumer, bytes), bytes);
    xsk_set(ring, ring->off.consumer, consumer + 1);
    return 1;
}

static inline void xsk_fill(struct xsk *x, uint64_t address) {
    xsk_put(&x->fill, &address, sizeof address);
}

static inline void xsk_send(struct xsk *x, uint64_t address, uint32_t len) {
    struct xdp_desc frame = {.addr = address, .len = len};
    xsk_put(&x->tx, &frame, sizeof frame);
}

static inline int xsk_kick(struct xsk *x) { return sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0); }

static inline int xsk_completed(struct xsk *x, uint64_t *address) {
    return xsk_take(&x->completion, address, sizeof *address);
}

static inline int xsk_receive(struct xsk *x, struct xdp_desc *frame) {
    return xsk_take(&x->rx, frame, sizeof *frame);
}

static inline int xsk_option(int fd, int name, const void *value, socklen_t len) {
    return setsockopt(fd, SOL_XDP, name, value, len);
}

// docs/rings.md
#define XDP_NEW_FLOWS 0x5301

// A connection that goes on at another queue of the link.
struct xdp_flow {
    uint32_t hosts[2];  // ours and the peer's, as in a packet
    uint16_t ports[2];  // as numbers
    uint16_t queue, zero;
};
#define XDP_MOVE_FLOW _IOW(0xda, 3, struct xdp_flow)

static inline int xsk_register(int fd, void *at, uint64_t len, uint32_t chunk, uint32_t headroom) {
    struct xdp_umem_reg request = {
        .addr = (uintptr_t)at, .len = len, .chunk_size = chunk, .headroom = headroom};
    return xsk_option(fd, XDP_UMEM_REG, &request, sizeof request);
}

static inline int xsk_map(struct xsk *x, struct xsk_ring *ring, struct xdp_ring_offset off,
                          unsigned entries, size_t entry, off_t where) {
    ring->off = off;
    ring->entries = entries;
    ring->bytes = off.desc + entries * entry;
    ring->at = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, x->fd, where);
    return ring->at == MAP_FAILED ? -1 : 0;
}

// Gives a socket all rings of so many entries and as many chunks of memory; 0, or -1.
static inline int xsk_open_on(struct xsk *x, int fd, unsigned entries, unsigned chunks) {
    memset(x, 0, sizeof *x);
    x->fd = fd;
    if (x->fd < 0) return -1;
    x->umem_bytes = (size_t)chunks * XSK_CHUNK;
    x->umem = mmap(NULL, x->umem_bytes, PROT_READ | PROT_WRITE, xsk_umem_kind | MAP_ANONYMOUS, -1, 0);
    if (x->umem == MAP_FAILED) return -1;
    if (xsk_register(x->fd, x->umem, x->umem_bytes, XSK_CHUNK, 0) != 0) return -1;
    int names[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
    for (int i = 0; i < 4; i++)
        if (xsk_option(x->fd, names[i], &entries, sizeof entries) != 0) return -1;
    struct xdp_mmap_offsets off;
    socklen_t len = sizeof off;
    if (getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) != 0) return -1;
    size_t address = sizeof(uint64_t), frame = sizeof(struct xdp_desc);
    if (xsk_map(x, &x->fill, off.fr, entries, address, XDP_UMEM_PGOFF_FILL_RING) != 0) return -1;
    if (xsk_map(x, &x->completion, off.cr, entries, address, XDP_UMEM_PGOFF_COMPLETION_RING) != 0)
        return -1;
    if (xsk_map(x, &x->rx, off.rx, entries, frame, XDP_PGOFF_RX_RING) != 0) return -1;
    return xsk_map(x, &x->tx, off.tx, entries, frame, XDP_PGOFF_TX_RING);
}

static inline int xsk_open(struct xsk *x, unsigned entries, unsigned chunks) {
    return xsk_open_on(x, socket(AF_XDP, SOCK_RAW, 0), entries, chunks);
}

static inline int xsk_bind_queue(struct xsk *x, unsigned interface, unsigned queue, int flags) {
    struct sockaddr_xdp name = {.sxdp_family = AF_XDP,
                                .sxdp_flags = flags,
                                .sxdp_ifindex = interface,
                                .sxdp_queue_id = queue};
    return bind(x->fd, (struct sockaddr *)&name, sizeof name);
}

static inline int xsk_bind(struct xsk *x, unsigned interface, int flags) {
    return xsk_bind_queue(x, interface, 0, flags);
}

static inline struct xdp_statistics xsk_statistics(struct xsk *x) {
    struct xdp_statistics told = {0};
    socklen_t len = sizeof told;
    getsockopt(x->fd, SOL_XDP, XDP_STATISTICS, &told, &len);
    return told;
}

static inline void xsk_close(struct xsk *x) {
    struct xsk_ring *rings[] = {&x->fill, &x->completion, &x->rx, &x->tx};
    for (int i = 0; i < 4; i++) munmap(rings[i]->at, rings[i]->bytes);
    munmap(x->umem, x->umem_bytes);
    close(x->fd);
}

#endif
