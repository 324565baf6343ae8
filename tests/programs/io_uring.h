// A ring through the system calls alone: setup, shared memory, entries, completions.
#ifndef IO_URING_H
#define IO_URING_H

#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
    int fd;
    struct io_uring_params p;
    char *rings;
    size_t rings_bytes;
    struct io_uring_sqe *sqes;
};

static inline unsigned *ring_word(struct ring *r, unsigned offset) {
    return (unsigned *)(r->rings + offset);
}

static inline int ring_open(struct ring *r, unsigned entries, unsigned flags, unsigned cq) {
    memset(r, 0, sizeof *r);
    r->p.flags = flags;
    r->p.cq_entries = cq;
    r->fd = syscall(__NR_io_uring_setup, entries, &r->p);
    if (r->fd < 0) return -1;
    size_t sq_bytes = r->p.sq_off.array + r->p.sq_entries * 4;
    size_t cq_bytes = r->p.cq_off.cqes + r->p.cq_entries * 16;
    r->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    int prot = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_POPULATE;
    r->rings = mmap(NULL, r->rings_bytes, prot, how, r->fd, IORING_OFF_SQ_RING);
    r->sqes = mmap(NULL, r->p.sq_entries * 64, prot, how, r->fd, IORING_OFF_SQES);
    return r->rings == MAP_FAILED || (void *)r->sqes == MAP_FAILED ? -1 : 0;
}

static inline void ring_close(struct ring *r) {
    munmap(r->rings, r->rings_bytes);
    munmap(r->sqes, r->p.sq_entries * 64);
    close(r->fd);
}

// The next entry, all zeros but for what is given.
static inline struct io_uring_sqe *ring_entry(struct ring *r, int op, int fd, uint64_t data) {
    unsigned *tail = ring_word(r, r->p.sq_off.tail);
    unsigned slot = *tail & (r->p.sq_entries - 1);
    struct io_uring_sqe *sqe = &r->sqes[slot];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = op;
    sqe->fd = fd;
    sqe->user_data = data;
    ring_word(r, r->p.sq_off.array)[slot] = slot;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    return sqe;
}

static inline struct io_uring_sqe *ring_bytes(struct ring *r, int op, int fd, void *at,
                                              unsigned len, uint64_t data) {
    struct io_uring_sqe *sqe = ring_entry(r, op, fd, data);
    sqe->addr = (uintptr_t)at;
    sqe->len = len;
    return sqe;
}

static inline int ring_enter(struct ring *r, unsigned submit, unsigned wait) {
    return syscall(__NR_io_uring_enter, r->fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0,
                   NULL, 0);
}

static inline int ring_register(struct ring *r, unsigned what, void *at, unsigned count) {
    return syscall(__NR_io_uring_register, r->fd, what, at, count);
}

static inline unsigned ring_ready(struct ring *r) {
    return __atomic_load_n(ring_word(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE) -
           *ring_word(r, r->p.cq_off.head);
}

// Takes the next completion; waits for it.
static inline struct io_uring_cqe ring_take(struct ring *r) {
    struct io_uring_cqe none = {.user_data = ~0ull, .res = -9999};
    if (!ring_ready(r) && ring_enter(r, 0, 1) < 0) return none;
    if (!ring_ready(r)) return none;
    unsigned *head = ring_word(r, r->p.cq_off.head);
    struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes);
    struct io_uring_cqe cqe = cqes[*head & (r->p.cq_entries - 1)];
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return cqe;
}

// Takes the completion of `data`; others that come first are thrown away.
static inline struct io_uring_cqe ring_take_of(struct ring *r, uint64_t data) {
    struct io_uring_cqe cqe = ring_take(r);
    for (int i = 0; i < 64 && cqe.user_data != data && cqe.res != -9999; i++) cqe = ring_take(r);
    return cqe;
}

#endif
