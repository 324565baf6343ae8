// What there is of <liburing.h> here (version 2, which its soname promises): Debian's package of programs has the
// library without its header.
#ifndef LIBURING_H
#define LIBURING_H

#include <linux/io_uring.h>
#include <stddef.h>
#include <string.h>

struct io_uring {
    unsigned *sq[7];
    struct io_uring_sqe *sqes;
    unsigned head, tail;
    size_t sq_bytes;
    void *sq_ring;
    unsigned sq_mask, sq_entries, pad[2];
    unsigned *cq_head, *cq_tail, *cq_words[4];
    struct io_uring_cqe *cqes;
    size_t cq_bytes;
    void *cq_ring;
    unsigned cq_mask, cq_entries, more_pad[2];
    unsigned rest[6];
};

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
struct io_uring_sqe *io_uring_get_sqe(struct io_uring *ring);
int io_uring_submit_and_wait(struct io_uring *ring, unsigned least);
int io_uring_register_files(struct io_uring *ring, const int *files, unsigned count);
int io_uring_register_buf_ring(struct io_uring *ring, struct io_uring_buf_reg *reg, unsigned flags);

// The next entry, all zeros but for what is given; NULL without room.
static inline struct io_uring_sqe *next_entry(struct io_uring *ring, int op, int fd, unsigned long data) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (!sqe) return NULL;
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = op;
    sqe->fd = fd;
    sqe->user_data = data;
    return sqe;
}

#endif
