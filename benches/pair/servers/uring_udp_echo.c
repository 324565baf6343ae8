// Sends every datagram back to where it came from, at port 7 (RFC 862), by io_uring as liburing's own
// examples/io_uring-udp.c does: one receive of many shots into lent buffers, answers sent from where they lie, and the ring
// entered once for all that has come.
// build: liburing
#include "liburing.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { BUFFERS = 256, BYTES = 2048, GROUP = 1, FIXED_FD = 0 };
#define HEARD (~0ul) // Else an answer from the buffer of this number.

static struct io_uring ring;
static struct io_uring_buf_ring *lent;
static unsigned short lent_tail;
static _Alignas(16) char memory[BUFFERS][BYTES];
static struct msghdr asked = {.msg_namelen = sizeof(struct sockaddr_in)};
static struct answer {
    struct msghdr header;
    struct iovec part;
} answers[BUFFERS];

static void lend(unsigned number) {
    struct io_uring_buf *buffer = &lent->bufs[lent_tail++ & (BUFFERS - 1)];
    buffer->addr = (unsigned long)memory[number];
    buffer->len = BYTES;
    buffer->bid = number;
}

static struct io_uring_sqe *message(int op, struct msghdr *header, unsigned long data) {
    struct io_uring_sqe *sqe = next_entry(&ring, op, FIXED_FD, data);
    if (!sqe) exit(2);
    sqe->addr = (unsigned long)header;
    sqe->len = 1;
    sqe->flags = IOSQE_FIXED_FILE;
    return sqe;
}

static void listen_on(void) {
    struct io_uring_sqe *sqe = message(IORING_OP_RECVMSG, &asked, HEARD);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
}

static void reply(unsigned number) {
    struct io_uring_recvmsg_out *heard = (void *)memory[number];
    struct answer *one = &answers[number];
    one->part = (struct iovec){(char *)(heard + 1) + asked.msg_namelen, heard->payloadlen};
    one->header = (struct msghdr){heard + 1, heard->namelen, &one->part, 1};
    message(IORING_OP_SENDMSG, &one->header, number);
}

static void take(const struct io_uring_cqe *cqe) {
    if (cqe->user_data != HEARD) return lend(cqe->user_data);
    if (!(cqe->flags & IORING_CQE_F_MORE)) listen_on();
    if (cqe->flags & IORING_CQE_F_BUFFER) reply(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
}

static int prepare(int sock) {
    lent = mmap(NULL, BUFFERS * sizeof lent->bufs[0], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lent == MAP_FAILED) return -1;
    struct io_uring_buf_reg reg = {.ring_addr = (unsigned long)lent, .ring_entries = BUFFERS, .bgid = GROUP};
    // As many entries as one completion each of all buffers, and the receive's.
    if (io_uring_queue_init(2 * BUFFERS, &ring, IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN)) return -1;
    if (io_uring_register_files(&ring, &sock, 1) || io_uring_register_buf_ring(&ring, &reg, 0)) return -1;
    for (unsigned number = 0; number < BUFFERS; number++) lend(number);
    listen_on();
    return 0;
}

int main(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(7)};
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(sock, (void *)&name, sizeof name) || prepare(sock)) return 1;
    puts("serving");
    fflush(stdout);
    for (;;) {
        __atomic_store_n(&lent->tail, lent_tail, __ATOMIC_RELEASE);
        if (io_uring_submit_and_wait(&ring, 1) < 0) return 1;
        unsigned head = *ring.cq_head, tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
        for (; head != tail; head++) take(&ring.cqes[head & ring.cq_mask]);
        __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    }
}
