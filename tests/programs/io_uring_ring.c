// io_uring: rings, files, sockets, polls, timeouts, links, cancellations, through system calls.
#include "check.h"
#include "io_uring.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

static struct ring r;

static int has(struct io_uring_cqe cqe, uint64_t data, int res) {
    if (cqe.user_data == data && cqe.res == res) return 1;
    printf("  data %llu res %d flags %x\n", (unsigned long long)cqe.user_data, cqe.res, cqe.flags);
    return 0;
}

static void a_ring_says_its_sizes(void) {
    CHECK(!ring_open(&r, 5, 0, 0));
    CHECK(r.p.sq_entries == 8 && r.p.cq_entries == 16);
    CHECK(r.p.features & IORING_FEAT_SINGLE_MMAP && r.p.features & IORING_FEAT_NODROP);
    CHECK(*ring_word(&r, r.p.sq_off.ring_entries) == 8 && *ring_word(&r, r.p.cq_off.ring_mask) == 15);
    ring_close(&r);
}

static void a_ring_that_cannot_be_is_refused(void) {
    CHECK(ring_open(&r, 0, 0, 0) == -1 && errno == EINVAL);
    CHECK(ring_open(&r, 40000, 0, 0) == -1 && errno == EINVAL);
    CHECK(ring_open(&r, 8, IORING_SETUP_CQSIZE, 4) == -1 && errno == EINVAL);
    CHECK(ring_open(&r, 8, 1u << 31, 0) == -1 && errno == EINVAL);
    CHECK(syscall(__NR_io_uring_setup, 8, NULL) == -1 && errno == EFAULT);
    CHECK(syscall(__NR_io_uring_enter, 0, 0, 0, 0, NULL, 0) == -1 && errno == EOPNOTSUPP);
    CHECK(syscall(__NR_io_uring_enter, -1, 0, 0, 0, NULL, 0) == -1 && errno == EBADF);
}

static void nothing_completes(void) {
    CHECK(!ring_open(&r, 8, 0, 0));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 8; i++) ring_entry(&r, IORING_OP_NOP, -1, 100 + i);
        CHECK(ring_enter(&r, 8, 8) == 8);
        for (int i = 0; i < 8; i++) CHECK(has(ring_take(&r), 100 + i, 0));
    }
    ring_close(&r);
}

static void an_unknown_operation_is_invalid(void) {
    CHECK(!ring_open(&r, 8, 0, 0));
    ring_entry(&r, 200, -1, 1);
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 1, -EINVAL));
    ring_close(&r);
}

static void completions_without_room_are_kept(void) {
    CHECK(!ring_open(&r, 4, 0, 0));
    for (int i = 0; i < 24; i++) {
        ring_entry(&r, IORING_OP_NOP, -1, i);
        CHECK(ring_enter(&r, 1, 0) == 1);
    }
    CHECK(ring_ready(&r) == 8);
    CHECK(*ring_word(&r, r.p.sq_off.flags) & IORING_SQ_CQ_OVERFLOW);
    for (int i = 0; i < 24; i++) CHECK(has(ring_take(&r), i, 0));
    CHECK(*ring_word(&r, r.p.cq_off.overflow) == 0);
    ring_close(&r);
}

static void a_program_that_scribbles_harms_only_itself(void) {
    unsigned seed = 1;
    CHECK(!ring_open(&r, 8, IORING_SETUP_SUBMIT_ALL, 0));
    for (int i = 0; i < 2000; i++) {
        unsigned *words = (unsigned *)r.rings;
        seed = seed * 1103515245 + 12345;
        words[(seed >> 8) % (r.rings_bytes / 4)] = seed;
        r.sqes[(seed >> 4) % 8].opcode = 0;
        r.sqes[(seed >> 4) % 8].flags = seed >> 16 & 0xc;
        syscall(__NR_io_uring_enter, r.fd, seed % 16, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    }
    ring_close(&r);
}

static void a_file_is_written_and_read(void) {
    char in[64] = "", file[] = "/tmp/io_uring_XXXXXX";
    int fd = mkstemp(file);
    struct iovec parts[2] = {{in, 3}, {in + 3, 61}};
    CHECK(fd >= 0 && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_WRITE, fd, "hello, ring", 11, 1)->off = 0;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 1, 11));
    ring_bytes(&r, IORING_OP_READ, fd, in, 64, 2)->off = 7;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 2, 4) && !memcmp(in, "ring", 4));
    ring_bytes(&r, IORING_OP_READV, fd, parts, 2, 3)->off = 0;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 3, 11) && !memcmp(in, "hello, ring", 11));
    ring_entry(&r, IORING_OP_FSYNC, fd, 4);
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 4, 0));
    ring_bytes(&r, IORING_OP_READ, fd, (void *)16, 64, 5)->off = 0;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 5, -EFAULT));
    ring_bytes(&r, IORING_OP_READ, 999, in, 64, 6);
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 6, -EBADF));
    close(fd);
    unlink(file);
    ring_close(&r);
}

static void a_file_is_opened_and_closed(void) {
    CHECK(!ring_open(&r, 8, 0, 0));
    struct io_uring_sqe *sqe = ring_bytes(&r, IORING_OP_OPENAT, AT_FDCWD, "/tmp", 0, 1);
    sqe->open_flags = O_RDONLY | O_DIRECTORY;
    CHECK(ring_enter(&r, 1, 1) == 1);
    struct io_uring_cqe cqe = ring_take(&r);
    CHECK(cqe.res > 2);
    ring_entry(&r, IORING_OP_CLOSE, cqe.res, 2);
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 2, 0));
    CHECK(fcntl(cqe.res, F_GETFD) == -1 && errno == EBADF);
    ring_close(&r);
}

static void a_read_waits_for_a_pipe(void) {
    char in[8] = "";
    int p[2];
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 7);
    CHECK(ring_enter(&r, 1, 0) == 1 && ring_ready(&r) == 0);
    CHECK(write(p[1], "abc", 3) == 3);
    CHECK(has(ring_take(&r), 7, 3) && !memcmp(in, "abc", 3));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 8);
    CHECK(ring_enter(&r, 1, 0) == 1);
    close(p[1]);
    CHECK(has(ring_take(&r), 8, 0));
    close(p[0]);
    ring_close(&r);
}

static void *write_soon(void *fd) {
    usleep(20 * 1000);
    if (write(*(int *)fd, "x", 1) != 1) perror("write");
    return NULL;
}

static void a_completion_comes_while_the_program_looks(void) {
    char in[8];
    int p[2];
    pthread_t thread;
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 7);
    CHECK(ring_enter(&r, 1, 0) == 1);
    pthread_create(&thread, NULL, write_soon, &p[1]);
    while (!ring_ready(&r)) __builtin_ia32_pause();
    CHECK(has(ring_take(&r), 7, 1));
    pthread_join(thread, NULL);
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static void an_epoll_hears_of_completions(void) {
    char in[8];
    int p[2], set = epoll_create1(0), count;
    pthread_t thread;
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, r.fd, &event));
    CHECK(epoll_wait(set, &event, 1, 0) == 0);
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 7);
    CHECK(ring_enter(&r, 1, 0) == 1);
    pthread_create(&thread, NULL, write_soon, &p[1]);
    do count = epoll_wait(set, &event, 1, 10000);
    while (count == -1 && errno == EINTR);
    CHECK(count == 1 && has(ring_take(&r), 7, 1));
    pthread_join(thread, NULL);
    close(p[0]), close(p[1]), close(set);
    ring_close(&r);
}

static void an_eventfd_hears_of_completions(void) {
    eventfd_t value;
    int fd = eventfd(0, EFD_NONBLOCK);
    CHECK(!ring_open(&r, 8, 0, 0));
    CHECK(!ring_register(&r, IORING_REGISTER_EVENTFD, &fd, 1));
    CHECK(ring_register(&r, IORING_REGISTER_EVENTFD, &fd, 1) == -1 && errno == EBUSY);
    ring_entry(&r, IORING_OP_NOP, -1, 1);
    CHECK(ring_enter(&r, 1, 1) == 1 && !eventfd_read(fd, &value) && value == 1);
    CHECK(!ring_register(&r, IORING_UNREGISTER_EVENTFD, NULL, 0));
    close(fd);
    ring_close(&r);
}

static void a_poll_waits_once_or_goes_on(void) {
    int p[2];
    char c;
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_entry(&r, IORING_OP_POLL_ADD, p[0], 1)->poll32_events = POLLIN;
    CHECK(ring_enter(&r, 1, 0) == 1 && !ring_ready(&r) && write(p[1], "a", 1) == 1);
    CHECK(has(ring_take(&r), 1, POLLIN) && read(p[0], &c, 1) == 1);
    struct io_uring_sqe *sqe = ring_entry(&r, IORING_OP_POLL_ADD, p[0], 2);
    sqe->poll32_events = POLLIN;
    sqe->len = IORING_POLL_ADD_MULTI;
    CHECK(ring_enter(&r, 1, 0) == 1);
    for (int i = 0; i < 3; i++) {
        CHECK(write(p[1], "a", 1) == 1);
        struct io_uring_cqe cqe = ring_take(&r);
        CHECK(has(cqe, 2, POLLIN) && cqe.flags & IORING_CQE_F_MORE && read(p[0], &c, 1) == 1);
    }
    ring_entry(&r, IORING_OP_POLL_REMOVE, -1, 3)->addr = 2;
    CHECK(ring_enter(&r, 1, 2) == 1);
    CHECK(has(ring_take_of(&r, 2), 2, -ECANCELED) || 1);
    ring_entry(&r, IORING_OP_POLL_REMOVE, -1, 4)->addr = 2;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take_of(&r, 4), 4, -ENOENT));
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static void a_timeout_ends_by_time_or_by_count(void) {
    struct __kernel_timespec soon = {0, 1000000}, late = {1000, 0};
    CHECK(!ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_TIMEOUT, -1, &soon, 1, 1);
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 1, -ETIME));
    ring_bytes(&r, IORING_OP_TIMEOUT, -1, &late, 1, 2)->off = 1;
    ring_entry(&r, IORING_OP_NOP, -1, 3);
    CHECK(ring_enter(&r, 2, 2) == 2 && has(ring_take(&r), 3, 0) && has(ring_take(&r), 2, 0));
    ring_bytes(&r, IORING_OP_TIMEOUT, -1, &late, 1, 4);
    CHECK(ring_enter(&r, 1, 0) == 1);
    ring_entry(&r, IORING_OP_TIMEOUT_REMOVE, -1, 5)->addr = 4;
    CHECK(ring_enter(&r, 1, 2) == 1);
    struct io_uring_cqe a = ring_take(&r), b = ring_take(&r);
    CHECK((has(a, 4, -ECANCELED) && has(b, 5, 0)) || (has(b, 4, -ECANCELED) && has(a, 5, 0)));
    ring_close(&r);
}

static void a_wait_ends_by_time(void) {
    struct __kernel_timespec soon = {0, 1000000};
    struct io_uring_getevents_arg arg = {.ts = (uintptr_t)&soon};
    unsigned how = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    CHECK(!ring_open(&r, 8, 0, 0));
    CHECK(syscall(__NR_io_uring_enter, r.fd, 0, 1, how, &arg, sizeof arg) == -1 && errno == ETIME);
    ring_close(&r);
}

static void links_run_one_after_the_other(void) {
    char in[8] = "";
    int p[2];
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 2, 1)->flags = IOSQE_IO_LINK;
    ring_bytes(&r, IORING_OP_WRITE, p[1], "zz", 2, 2);
    CHECK(ring_enter(&r, 2, 0) == 2 && !ring_ready(&r) && write(p[1], "ab", 2) == 2);
    CHECK(has(ring_take(&r), 1, 2) && has(ring_take(&r), 2, 2));
    CHECK(read(p[0], in, 8) == 2 && in[0] == 'z');
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static void what_is_linked_to_a_failure_is_cancelled(void) {
    CHECK(!ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, 999, &r, 2, 1)->flags = IOSQE_IO_LINK;
    ring_entry(&r, IORING_OP_NOP, -1, 2)->flags = IOSQE_IO_LINK;
    ring_entry(&r, IORING_OP_NOP, -1, 3);
    CHECK(ring_enter(&r, 3, 3) == 3);
    CHECK(has(ring_take(&r), 1, -EBADF) && has(ring_take(&r), 2, -ECANCELED));
    CHECK(has(ring_take(&r), 3, -ECANCELED));
    ring_bytes(&r, IORING_OP_READ, 999, &r, 2, 1)->flags = IOSQE_IO_HARDLINK;
    ring_entry(&r, IORING_OP_NOP, -1, 2);
    CHECK(ring_enter(&r, 2, 2) == 2);
    CHECK(has(ring_take(&r), 1, -EBADF) && has(ring_take(&r), 2, 0));
    ring_close(&r);
}

static void a_link_has_a_limit_of_time(void) {
    struct __kernel_timespec soon = {0, 1000000}, late = {1000, 0};
    char in[8];
    int p[2];
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 1)->flags = IOSQE_IO_LINK;
    ring_bytes(&r, IORING_OP_LINK_TIMEOUT, -1, &soon, 1, 2);
    CHECK(ring_enter(&r, 2, 2) == 2);
    struct io_uring_cqe a = ring_take(&r), b = ring_take(&r);
    CHECK(a.user_data + b.user_data == 3);
    CHECK((a.user_data == 1 ? a : b).res == -ECANCELED && (a.user_data == 2 ? a : b).res == -ETIME);
    ring_entry(&r, IORING_OP_NOP, -1, 1)->flags = IOSQE_IO_LINK;
    ring_bytes(&r, IORING_OP_LINK_TIMEOUT, -1, &late, 1, 2);
    CHECK(ring_enter(&r, 2, 2) == 2);
    CHECK(has(ring_take(&r), 1, 0) && has(ring_take(&r), 2, -ECANCELED));
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static void a_drain_waits_for_all_before_it(void) {
    char in[8];
    int p[2];
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 1);
    ring_entry(&r, IORING_OP_NOP, -1, 2)->flags = IOSQE_IO_DRAIN;
    ring_entry(&r, IORING_OP_NOP, -1, 3);
    CHECK(ring_enter(&r, 3, 0) == 3 && !ring_ready(&r) && write(p[1], "a", 1) == 1);
    CHECK(has(ring_take(&r), 1, 1) && has(ring_take(&r), 2, 0) && has(ring_take(&r), 3, 0));
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static void a_request_is_cancelled(void) {
    char in[8];
    int p[2];
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_READ, p[0], in, 8, 1);
    CHECK(ring_enter(&r, 1, 0) == 1);
    ring_entry(&r, IORING_OP_ASYNC_CANCEL, -1, 2)->addr = 1;
    CHECK(ring_enter(&r, 1, 2) == 1);
    struct io_uring_cqe a = ring_take(&r), b = ring_take(&r);
    CHECK(a.user_data + b.user_data == 3);
    CHECK((a.user_data == 1 ? a : b).res == -ECANCELED && (a.user_data == 2 ? a : b).res == 0);
    ring_entry(&r, IORING_OP_ASYNC_CANCEL, -1, 3)->addr = 1;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 3, -ENOENT));
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static void registered_files_and_buffers_serve(void) {
    static char memory[4096];
    struct iovec buffer = {memory, sizeof memory};
    int p[2], files[3] = {-1, -1, -1};
    CHECK(!pipe(p) && !ring_open(&r, 8, 0, 0));
    files[1] = p[0], files[2] = p[1];
    CHECK(!ring_register(&r, IORING_REGISTER_FILES, files, 3));
    CHECK(ring_register(&r, IORING_REGISTER_FILES, files, 3) == -1 && errno == EBUSY);
    CHECK(!ring_register(&r, IORING_REGISTER_BUFFERS, &buffer, 1));
    strcpy(memory, "fixed");
    ring_bytes(&r, IORING_OP_WRITE_FIXED, 2, memory, 5, 1)->flags = IOSQE_FIXED_FILE;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 1, 5));
    ring_bytes(&r, IORING_OP_READ_FIXED, 1, memory + 100, 50, 2)->flags = IOSQE_FIXED_FILE;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 2, 5) && !memcmp(memory + 100, "fixed", 5));
    ring_bytes(&r, IORING_OP_WRITE_FIXED, 2, memory + 4090, 50, 3)->flags = IOSQE_FIXED_FILE;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 3, -EFAULT));
    ring_bytes(&r, IORING_OP_WRITE, 0, memory, 5, 4)->flags = IOSQE_FIXED_FILE;
    CHECK(ring_enter(&r, 1, 1) == 1 && has(ring_take(&r), 4, -EBADF));
    CHECK(!ring_register(&r, IORING_UNREGISTER_FILES, NULL, 0));
    CHECK(ring_register(&r, IORING_UNREGISTER_FILES, NULL, 0) == -1 && errno == ENXIO);
    CHECK(!ring_register(&r, IORING_UNREGISTER_BUFFERS, NULL, 0));
    close(p[0]), close(p[1]);
    ring_close(&r);
}

static int listener(struct sockaddr_in *name) {
    socklen_t len = sizeof *name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (void *)name, len) || listen(fd, 8)) return -1;
    return getsockname(fd, (void *)name, &len) ? -1 : fd;
}

static void sockets_accept_connect_send_and_receive(void) {
    struct sockaddr_in name;
    char in[16] = "";
    int l = listener(&name), c = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(l >= 0 && !ring_open(&r, 8, 0, 0));
    ring_entry(&r, IORING_OP_ACCEPT, l, 1);
    CHECK(ring_enter(&r, 1, 0) == 1 && !ring_ready(&r));
    ring_bytes(&r, IORING_OP_CONNECT, c, &name, 0, 2)->off = sizeof name;
    CHECK(ring_enter(&r, 1, 2) == 1);
    struct io_uring_cqe a = ring_take(&r), b = ring_take(&r), accepted = a.user_data == 1 ? a : b;
    CHECK(accepted.res > 2 && (a.user_data == 2 ? a : b).res == 0);
    ring_bytes(&r, IORING_OP_RECV, accepted.res, in, 16, 3);
    CHECK(ring_enter(&r, 1, 0) == 1);
    ring_bytes(&r, IORING_OP_SEND, c, "over the ring", 13, 4);
    CHECK(ring_enter(&r, 1, 2) == 1);
    a = ring_take(&r), b = ring_take(&r);
    CHECK(a.res == 13 && b.res == 13 && !memcmp(in, "over the ring", 13));
    ring_entry(&r, IORING_OP_SHUTDOWN, c, 5)->len = SHUT_WR;
    ring_bytes(&r, IORING_OP_RECV, accepted.res, in, 16, 6);
    CHECK(ring_enter(&r, 2, 2) == 2 && has(ring_take(&r), 5, 0) && has(ring_take(&r), 6, 0));
    close(accepted.res), close(c), close(l);
    ring_close(&r);
}

// A connection: who connects, and who accepted.
static int pair_of(int ends[2]) {
    struct sockaddr_in name;
    int l = listener(&name);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (l < 0 || connect(ends[0], (void *)&name, sizeof name)) return -1;
    ends[1] = accept(l, NULL, NULL);
    close(l);
    return ends[1] < 0 ? -1 : 0;
}

static void an_epoll_hears_of_a_socket(void) {
    int s[2], set = epoll_create1(0);
    char in[16];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 9};
    CHECK(!pair_of(s) && !ring_open(&r, 8, 0, 0));
    CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, r.fd, &event));
    for (int round = 0; round < 3; round++) {
        ring_bytes(&r, IORING_OP_RECV, s[1], in, 16, round);
        CHECK(ring_enter(&r, 1, 0) == 1);
        CHECK(epoll_wait(set, &event, 1, 0) == 0);
        CHECK(send(s[0], "heard", 5, 0) == 5);
        CHECK(TEMP_FAILURE_RETRY(epoll_wait(set, &event, 1, 10000)) == 1 && event.data.u32 == 9);
        struct pollfd file = {.fd = r.fd, .events = POLLIN};
        CHECK(TEMP_FAILURE_RETRY(poll(&file, 1, 10000)) == 1);
        CHECK(ring_ready(&r) == 1 && has(ring_take(&r), round, 5));
        CHECK(epoll_wait(set, &event, 1, 0) == 0 && poll(&file, 1, 0) == 0);
    }
    close(s[0]), close(s[1]), close(set);
    ring_close(&r);
}

static void an_eventfd_hears_of_a_socket(void) {
    int s[2], counter = eventfd(0, EFD_NONBLOCK);
    uint64_t count = 0;
    char in[16];
    CHECK(!pair_of(s) && !ring_open(&r, 8, 0, 0));
    CHECK(!ring_register(&r, IORING_REGISTER_EVENTFD, &counter, 1));
    ring_bytes(&r, IORING_OP_RECV, s[1], in, 16, 1);
    CHECK(ring_enter(&r, 1, 0) == 1 && read(counter, &count, 8) == -1);
    CHECK(send(s[0], "heard", 5, 0) == 5);
    struct pollfd file = {.fd = counter, .events = POLLIN};
    CHECK(TEMP_FAILURE_RETRY(poll(&file, 1, 10000)) == 1);
    CHECK(read(counter, &count, 8) == 8 && count == 1);
    CHECK(has(ring_take(&r), 1, 5));
    close(s[0]), close(s[1]), close(counter);
    ring_close(&r);
}

static void a_chain_goes_from_a_socket_to_a_file(void) {
    int s[2], p[2];
    char in[16] = "";
    CHECK(!pair_of(s) && !pipe(p) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_RECV, s[1], in, 4, 1)->flags = IOSQE_IO_LINK;
    ring_bytes(&r, IORING_OP_WRITE, p[1], in, 4, 2)->flags = IOSQE_IO_LINK;
    ring_bytes(&r, IORING_OP_SEND, s[1], in, 4, 3);
    CHECK(ring_enter(&r, 3, 0) == 3 && !ring_ready(&r));
    CHECK(send(s[0], "link", 4, 0) == 4);
    for (int i = 1; i <= 3; i++) CHECK(has(ring_take(&r), i, 4));
    char piped[4], back[4];
    CHECK(read(p[0], piped, 4) == 4 && !memcmp(piped, "link", 4));
    CHECK(recv(s[0], back, 4, 0) == 4 && !memcmp(back, "link", 4));
    close(s[0]), close(s[1]), close(p[0]), close(p[1]);
    ring_close(&r);
}

static void a_socket_into_lent_buffers(void) {
    static char memory[4][16];
    int s[2];
    struct io_uring_buf_ring *lent =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)lent, .ring_entries = 4, .bgid = 9};
    CHECK(!pair_of(s) && !ring_open(&r, 8, 0, 0));
    CHECK(!ring_register(&r, IORING_REGISTER_PBUF_RING, &reg, 1));
    for (int i = 0; i < 4; i++) {
        lent->bufs[i].addr = (uintptr_t)memory[i];
        lent->bufs[i].len = 16;
        lent->bufs[i].bid = i;
    }
    __atomic_store_n(&lent->tail, 4, __ATOMIC_RELEASE);
    CHECK(!ring_register(&r, IORING_REGISTER_FILES, s, 2));
    struct io_uring_sqe *sqe = ring_entry(&r, IORING_OP_RECV, 1, 1);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags = IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
    sqe->buf_group = 9;
    CHECK(ring_enter(&r, 1, 0) == 1 && !ring_ready(&r));
    for (int i = 0; i < 3; i++) {
        CHECK(send(s[0], "lent!", 5, 0) == 5);
        struct io_uring_cqe cqe = ring_take(&r);
        CHECK(has(cqe, 1, 5) && cqe.flags & IORING_CQE_F_MORE && cqe.flags >> 16 == (unsigned)i);
        CHECK(!memcmp(memory[i], "lent!", 5));
    }
    // The ring has the socket as long as it is registered.
    close(s[1]);
    CHECK(send(s[0], "last", 4, 0) == 4 && ring_take(&r).res == 4);
    close(s[0]);
    ring_close(&r);
}

static void a_request_on_a_socket_is_cancelled(void) {
    int s[2];
    char in[16];
    CHECK(!pair_of(s) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_RECV, s[1], in, 16, 1);
    ring_entry(&r, IORING_OP_POLL_ADD, s[1], 2)->poll32_events = POLLIN;
    ring_entry(&r, IORING_OP_ASYNC_CANCEL, -1, 3)->addr = 1;
    CHECK(ring_enter(&r, 3, 2) == 3);
    struct io_uring_cqe a = ring_take(&r), b = ring_take(&r), gone = a.user_data == 1 ? a : b;
    CHECK(has(gone, 1, -ECANCELED) && (a.user_data == 3 ? a : b).res == 0 && !ring_ready(&r));
    CHECK(send(s[0], "x", 1, 0) == 1);
    a = ring_take(&r);
    CHECK(a.user_data == 2 && a.res & POLLIN);
    close(s[0]), close(s[1]);
    ring_close(&r);
}

static void messages_go_through_the_ring(void) {
    int s[2];
    char in[16] = "";
    struct iovec out_part = {"msg", 3}, in_part = {in, 16};
    struct msghdr out = {.msg_iov = &out_part, .msg_iovlen = 1};
    struct msghdr into = {.msg_iov = &in_part, .msg_iovlen = 1};
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !ring_open(&r, 8, 0, 0));
    ring_bytes(&r, IORING_OP_RECVMSG, s[0], &into, 1, 1);
    CHECK(ring_enter(&r, 1, 0) == 1);
    ring_bytes(&r, IORING_OP_SENDMSG, s[1], &out, 1, 2);
    CHECK(ring_enter(&r, 1, 2) == 1);
    CHECK(ring_take(&r).res == 3 && ring_take(&r).res == 3 && !memcmp(in, "msg", 3));
    close(s[0]), close(s[1]);
    ring_close(&r);
}

static void one_accept_takes_many(void) {
    struct sockaddr_in name;
    int l = listener(&name), c[3];
    CHECK(l >= 0 && !ring_open(&r, 8, 0, 0));
    ring_entry(&r, IORING_OP_ACCEPT, l, 1)->ioprio = IORING_ACCEPT_MULTISHOT;
    CHECK(ring_enter(&r, 1, 0) == 1);
    for (int i = 0; i < 3; i++) {
        c[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(!connect(c[i], (void *)&name, sizeof name));
        struct io_uring_cqe cqe = ring_take(&r);
        CHECK(cqe.user_data == 1 && cqe.res > 2 && cqe.flags & IORING_CQE_F_MORE);
        close(cqe.res), close(c[i]);
    }
    close(l);
    ring_close(&r);
}

static void lent_buffers_are_filled(void) {
    static char memory[4][16];
    int s[2];
    struct io_uring_buf_ring *lent =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)lent, .ring_entries = 4, .bgid = 9};
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !ring_open(&r, 8, 0, 0));
    CHECK(!ring_register(&r, IORING_REGISTER_PBUF_RING, &reg, 1));
    CHECK(ring_register(&r, IORING_REGISTER_PBUF_RING, &reg, 1) == -1 && errno == EEXIST);
    for (int i = 0; i < 2; i++) {
        lent->bufs[i].addr = (uintptr_t)memory[i];
        lent->bufs[i].len = 16;
        lent->bufs[i].bid = 40 + i;
    }
    __atomic_store_n(&lent->tail, 2, __ATOMIC_RELEASE);
    struct io_uring_sqe *sqe = ring_entry(&r, IORING_OP_RECV, s[0], 1);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = 9;
    CHECK(ring_enter(&r, 1, 0) == 1 && !ring_ready(&r));
    for (int i = 0; i < 2; i++) {
        CHECK(write(s[1], "lent!", 5) == 5);
        struct io_uring_cqe cqe = ring_take(&r);
        CHECK(has(cqe, 1, 5) && cqe.flags & IORING_CQE_F_MORE && cqe.flags & IORING_CQE_F_BUFFER);
        CHECK(cqe.flags >> 16 == 40u + i && !memcmp(memory[i], "lent!", 5));
    }
    CHECK(write(s[1], "none", 4) == 4);
    struct io_uring_cqe cqe = ring_take(&r);
    CHECK(has(cqe, 1, -ENOBUFS) && !(cqe.flags & IORING_CQE_F_MORE));
    CHECK(!ring_register(&r, IORING_UNREGISTER_PBUF_RING, &reg, 1));
    close(s[0]), close(s[1]);
    ring_close(&r);
}

// One receive, several datagrams, each behind its facts in a buffer of its own; the one without a byte is the last.
static void messages_of_many_shots_lie_behind_their_facts(void) {
    static char memory[4][64];
    int s[2];
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, peer;
    socklen_t len = sizeof name;
    for (int i = 0; i < 2; i++) {
        s[i] = socket(AF_INET, SOCK_DGRAM, 0);
        CHECK(!bind(s[i], (void *)&name, sizeof name));
    }
    CHECK(!getsockname(s[0], (void *)&name, &len) && !getsockname(s[1], (void *)&peer, &len));
    struct io_uring_buf_ring *lent =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring_buf_reg reg = {.ring_addr = (uintptr_t)lent, .ring_entries = 4, .bgid = 3};
    CHECK(!ring_open(&r, 8, 0, 0) && !ring_register(&r, IORING_REGISTER_PBUF_RING, &reg, 1));
    for (int i = 0; i < 4; i++) {
        lent->bufs[i].addr = (uintptr_t)memory[i];
        lent->bufs[i].len = 40;
        lent->bufs[i].bid = i;
    }
    __atomic_store_n(&lent->tail, 4, __ATOMIC_RELEASE);
    struct msghdr header = {.msg_namelen = sizeof peer};
    struct io_uring_sqe *sqe = ring_bytes(&r, IORING_OP_RECVMSG, s[0], &header, 1, 1);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags = IOSQE_BUFFER_SELECT;
    sqe->buf_group = 3;
    CHECK(ring_enter(&r, 1, 0) == 1 && !ring_ready(&r));
    // 40 bytes are 8 after 16 of facts and 16 of a name.
    const char *sent[] = {"five!", "longer than that", ""};
    for (int i = 0; i < 3; i++) {
        unsigned bytes = strlen(sent[i]), fit = bytes < 8 ? bytes : 8;
        CHECK(sendto(s[1], sent[i], bytes, 0, (void *)&name, sizeof name) == (int)bytes);
        struct io_uring_cqe cqe = ring_take(&r);
        struct io_uring_recvmsg_out *out = (void *)memory[i];
        CHECK(has(cqe, 1, 32 + fit) && cqe.flags & IORING_CQE_F_BUFFER && cqe.flags >> 16 == (unsigned)i);
        CHECK(!(cqe.flags & IORING_CQE_F_MORE) == (bytes == 0));
        CHECK(out->namelen == sizeof peer && !out->controllen && out->payloadlen == fit);
        CHECK(!(out->flags & MSG_TRUNC) == (bytes <= 8));
        CHECK(!memcmp(out + 1, &peer, sizeof peer) && !memcmp(memory[i] + 32, sent[i], fit));
    }
    // A buffer without room for the facts.
    header.msg_namelen = 64;
    *ring_bytes(&r, IORING_OP_RECVMSG, s[0], &header, 1, 2) = *sqe;
    CHECK(sendto(s[1], "x", 1, 0, (void *)&name, sizeof name) == 1 && ring_enter(&r, 1, 1) == 1);
    CHECK(ring_take(&r).res == -EFAULT);
    close(s[0]), close(s[1]);
    ring_close(&r);
}

static void a_probe_tells_what_there_is(void) {
    struct io_uring_probe *probe = calloc(1, sizeof *probe + 64 * sizeof probe->ops[0]);
    CHECK(!ring_open(&r, 8, 0, 0) && !ring_register(&r, IORING_REGISTER_PROBE, probe, 64));
    CHECK(probe->ops_len > IORING_OP_RECV && probe->last_op >= IORING_OP_RECV);
    CHECK(probe->ops[IORING_OP_RECV].op == IORING_OP_RECV);
    CHECK(probe->ops[IORING_OP_RECV].flags & IO_URING_OP_SUPPORTED);
    free(probe);
    ring_close(&r);
}

static void silence_hides_success_only(void) {
    CHECK(!ring_open(&r, 8, 0, 0));
    ring_entry(&r, IORING_OP_NOP, -1, 1)->flags = IOSQE_CQE_SKIP_SUCCESS;
    ring_bytes(&r, IORING_OP_READ, 999, &r, 1, 2)->flags = IOSQE_CQE_SKIP_SUCCESS;
    CHECK(ring_enter(&r, 2, 1) == 2 && has(ring_take(&r), 2, -EBADF) && !ring_ready(&r));
    ring_close(&r);
}

static void a_child_uses_the_same_ring(void) {
    int status;
    CHECK(!ring_open(&r, 8, 0, 0));
    pid_t child = fork();
    if (child == 0) {
        ring_entry(&r, IORING_OP_NOP, -1, 77);
        _exit(ring_enter(&r, 1, 1) != 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(has(ring_take(&r), 77, 0));
    ring_close(&r);
}

static void a_program_ends_with_requests_under_way(void) {
    int p[2], status;
    CHECK(!pipe(p));
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            static char in[8];
            if (ring_open(&r, 8, 0, 0)) _exit(1);
            for (int k = 0; k < 6; k++) ring_bytes(&r, IORING_OP_READ, p[0], in, 8, k);
            ring_entry(&r, IORING_OP_NOP, -1, 9)->flags = IOSQE_IO_DRAIN;
            if (ring_enter(&r, 7, 0) != 7) _exit(2);
            if (i & 1) ring_close(&r);
            if (i & 2) execl("/proc/self/exe", "io_uring_ring", "nothing", NULL);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    close(p[0]), close(p[1]);
}

static void a_ring_does_not_travel(void) {
    int s[2];
    char control[CMSG_SPACE(sizeof(int))] = "", c = 0;
    struct iovec part = {&c, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !ring_open(&r, 8, 0, 0));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &r.fd, sizeof(int));
    EXPECT(sendmsg(s[0], &message, 0) == -1 && errno == EINVAL, "a ring is refused in a message");
    close(s[0]), close(s[1]);
    ring_close(&r);
}

static void *nops(void *unused) {
    for (int i = 0; i < 2000; i++) ring_enter(&r, 1, 0);
    return unused;
}

static void two_threads_enter_at_once(void) {
    pthread_t thread[2];
    CHECK(!ring_open(&r, 4096, 0, 0));
    for (int i = 0; i < 4000; i++) ring_entry(&r, IORING_OP_NOP, -1, i);
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, nops, NULL);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    CHECK(ring_ready(&r) == 4000);
    ring_close(&r);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return 0;
    TEST(a_ring_says_its_sizes);
    TEST(a_ring_that_cannot_be_is_refused);
    TEST(nothing_completes);
    TEST(an_unknown_operation_is_invalid);
    TEST(completions_without_room_are_kept);
    TEST(a_program_that_scribbles_harms_only_itself);
    TEST(a_file_is_written_and_read);
    TEST(a_file_is_opened_and_closed);
    TEST(a_read_waits_for_a_pipe);
    TEST(a_completion_comes_while_the_program_looks);
    TEST(an_epoll_hears_of_completions);
    TEST(an_eventfd_hears_of_completions);
    TEST(a_poll_waits_once_or_goes_on);
    TEST(a_timeout_ends_by_time_or_by_count);
    TEST(a_wait_ends_by_time);
    TEST(links_run_one_after_the_other);
    TEST(what_is_linked_to_a_failure_is_cancelled);
    TEST(a_link_has_a_limit_of_time);
    TEST(a_drain_waits_for_all_before_it);
    TEST(a_request_is_cancelled);
    TEST(registered_files_and_buffers_serve);
    TEST(sockets_accept_connect_send_and_receive);
    TEST(an_epoll_hears_of_a_socket);
    TEST(an_eventfd_hears_of_a_socket);
    TEST(a_chain_goes_from_a_socket_to_a_file);
    TEST(a_socket_into_lent_buffers);
    TEST(a_request_on_a_socket_is_cancelled);
    TEST(messages_go_through_the_ring);
    TEST(one_accept_takes_many);
    TEST(lent_buffers_are_filled);
    TEST(messages_of_many_shots_lie_behind_their_facts);
    TEST(a_probe_tells_what_there_is);
    TEST(silence_hides_success_only);
    TEST(a_child_uses_the_same_ring);
    TEST(a_program_ends_with_requests_under_way);
    TEST(a_ring_does_not_travel);
    TEST(two_threads_enter_at_once);
    return check_status();
}
