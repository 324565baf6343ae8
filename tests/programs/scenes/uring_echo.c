// Sends back whatever comes to port 7, datagrams and streams, by liburing: one ring, entered once for all that has
// completed. Says how often it was entered, and for how many completions, when a datagram says "count".
// build: liburing
#include "liburing.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { WINDOW = 128, STREAMS = 64, BYTES = 2048 };
enum kind { ACCEPT, HEARD, ANSWERED, READ, WRITTEN };

static struct io_uring ring;
static struct datagram {
    struct msghdr header;
    struct iovec part;
    struct sockaddr_in peer;
    char bytes[BYTES];
} datagrams[WINDOW];
static struct stream {
    int fd;
    char bytes[BYTES];
} streams[STREAMS];
static unsigned long entered, completed;

static struct io_uring_sqe *entry(int op, int fd, enum kind kind, unsigned index) {
    struct io_uring_sqe *sqe = next_entry(&ring, op, fd, (unsigned long)kind << 32 | index);
    if (!sqe) exit(2);
    return sqe;
}

static void listen_to(int fd, unsigned index) {
    struct datagram *one = &datagrams[index];
    one->part = (struct iovec){one->bytes, BYTES};
    one->header = (struct msghdr){&one->peer, sizeof one->peer, &one->part, 1};
    struct io_uring_sqe *sqe = entry(IORING_OP_RECVMSG, fd, HEARD, index);
    sqe->addr = (unsigned long)&one->header;
    sqe->len = 1;
}

static void answer(int fd, unsigned index, int len) {
    struct datagram *one = &datagrams[index];
    if (len == 5 && !memcmp(one->bytes, "count", 5))
        len = snprintf(one->bytes, BYTES, "%lu %lu", entered, completed);
    one->part.iov_len = len;
    struct io_uring_sqe *sqe = entry(IORING_OP_SENDMSG, fd, ANSWERED, index);
    sqe->addr = (unsigned long)&one->header;
    sqe->len = 1;
}

static void move(int op, enum kind kind, unsigned index, int len) {
    struct io_uring_sqe *sqe = entry(op, streams[index].fd, kind, index);
    sqe->addr = (unsigned long)streams[index].bytes;
    sqe->len = len;
    sqe->msg_flags = op == IORING_OP_SEND ? MSG_WAITALL : 0;
}

static void meet(int fd) {
    unsigned index = 0;
    while (index < STREAMS && streams[index].fd) index++;
    if (index == STREAMS) exit(3);
    streams[index].fd = fd;
    move(IORING_OP_RECV, READ, index, BYTES);
}

static void part(unsigned index) {
    entry(IORING_OP_CLOSE, streams[index].fd, WRITTEN, STREAMS);
    streams[index].fd = 0;
}

static void take(struct io_uring_cqe *cqe, int sock) {
    unsigned index = cqe->user_data;
    switch (cqe->user_data >> 32) {
    case ACCEPT: return cqe->res < 0 ? exit(4) : meet(cqe->res);
    case HEARD: return cqe->res < 0 ? listen_to(sock, index) : answer(sock, index, cqe->res);
    case ANSWERED: return listen_to(sock, index);
    case READ: return cqe->res <= 0 ? part(index) : move(IORING_OP_SEND, WRITTEN, index, cqe->res);
    case WRITTEN: return index == STREAMS ? (void)0 : move(IORING_OP_RECV, READ, index, BYTES);
    }
}

int main(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(7)};
    int sock = socket(AF_INET, SOCK_DGRAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(sock, (void *)&name, sizeof name) || bind(listener, (void *)&name, sizeof name)) return 1;
    if (listen(listener, 64) || io_uring_queue_init(512, &ring, 0)) return 1;
    entry(IORING_OP_ACCEPT, listener, ACCEPT, 0)->ioprio = IORING_ACCEPT_MULTISHOT;
    for (unsigned i = 0; i < WINDOW; i++) listen_to(sock, i);
    puts("serving");
    fflush(stdout);
    for (;;) {
        if (io_uring_submit_and_wait(&ring, 1) < 0) return 5;
        unsigned head = *ring.cq_head, tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
        entered++;
        completed += tail - head;
        for (; head != tail; head++) take(&ring.cqes[head & ring.cq_mask], sock);
        __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    }
}
