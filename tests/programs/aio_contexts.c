// Contexts of io_submit(2): what they take, what they refuse, and what their ring shows.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "aio_calls.h"
#include "check.h"

static int file(void) {
    char name[] = "/tmp/aio-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    return fd;
}

static void a_file_has_what_was_written_and_gives_it_back(void) {
    aio_context_t context = 0;
    char text[] = "0123456789", back[10] = {0}, more[4] = {0};
    int fd = file();
    CHECK(io_setup(4, &context) == 0 && context != 0);
    struct iocb one = block(IOCB_CMD_PWRITE, fd, text, 10, 100);
    CHECK(whole(context, &one) == 10);
    one = block(IOCB_CMD_PREAD, fd, back, 10, 100);
    CHECK(whole(context, &one) == 10 && !memcmp(text, back, 10));
    struct iovec parts[] = {{more, 2}, {more + 2, 2}};
    one = block(IOCB_CMD_PREADV, fd, parts, 2, 103);
    CHECK(whole(context, &one) == 4 && !memcmp(more, "3456", 4));
    one = block(IOCB_CMD_PWRITEV, fd, parts, 2, 0);
    CHECK(whole(context, &one) == 4);
    one = block(IOCB_CMD_PREAD, fd, back, 10, 105);
    CHECK(whole(context, &one) == 5);
    one = block(IOCB_CMD_PREAD, fd, back, 10, 500);
    CHECK(whole(context, &one) == 0);
    one = block(IOCB_CMD_FSYNC, fd, 0, 0, 0);
    CHECK(whole(context, &one) == 0);
    one = block(IOCB_CMD_FDSYNC, fd, 0, 0, 0);
    CHECK(whole(context, &one) == 0);
    CHECK(io_destroy(context) == 0);
    CHECK(io_destroy(context) == -1 && errno == EINVAL);
    close(fd);
}

static void what_is_wrong_is_refused_at_once(void) {
    aio_context_t context = 0, none = 0;
    char byte;
    int fd = file(), only_read = open("/dev/zero", O_RDONLY);
    CHECK(io_setup(0, &context) == -1 && errno == EINVAL);
    context = 1;
    CHECK(io_setup(1, &context) == -1 && errno == EINVAL);
    context = 0;
    CHECK(io_setup(1, (aio_context_t *)8) == -1 && errno == EFAULT);
    CHECK(io_setup(4, &context) == 0);
    CHECK(io_destroy(none) == -1 && errno == EINVAL);
    CHECK(io_submit(none, 1, NULL) == -1 && errno == EINVAL);
    CHECK(io_submit(context, -1, NULL) == -1 && errno == EINVAL);
    CHECK(io_submit(context, 0, NULL) == 0);
    CHECK(io_submit(context, 1, (struct iocb **)8) == -1 && errno == EFAULT);
    struct iocb one = block(IOCB_CMD_PREAD, 999, &byte, 1, 0);
    CHECK(submit_one(context, &one) == -1 && errno == EBADF);
    one = block(IOCB_CMD_PREAD, fd, &byte, 1, -1);
    CHECK(submit_one(context, &one) == -1 && errno == EINVAL);
    one = block(IOCB_CMD_PWRITE, only_read, &byte, 1, 0);
    CHECK(submit_one(context, &one) == -1 && errno == EBADF);
    one = block(99, fd, &byte, 1, 0);
    CHECK(submit_one(context, &one) == -1 && errno == EINVAL);
    one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    one.aio_reserved2 = 1;
    CHECK(submit_one(context, &one) == -1 && errno == EINVAL);
    one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    one.aio_rw_flags = 1 << 20;
    CHECK(submit_one(context, &one) == -1 && errno == EOPNOTSUPP);
    one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    one.aio_flags = IOCB_FLAG_RESFD;
    one.aio_resfd = fd;
    CHECK(submit_one(context, &one) == -1 && errno == EINVAL);
    struct io_event event;
    CHECK(io_getevents(context, 2, 1, &event, NULL) == -1 && errno == EINVAL);
    CHECK(io_getevents(context, -1, 1, &event, NULL) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_io_cancel, context, &one, &event) == -1 && errno == EINVAL);
    CHECK(io_destroy(context) == 0);
    close(fd);
    close(only_read);
}

static void those_before_a_wrong_one_are_taken(void) {
    aio_context_t context = 0;
    char byte;
    int fd = file();
    CHECK(io_setup(8, &context) == 0);
    struct iocb good = block(IOCB_CMD_PREAD, fd, &byte, 1, 0), bad = block(IOCB_CMD_PREAD, 999, &byte, 1, 0);
    struct iocb *blocks[] = {&good, &good, &bad, &good};
    CHECK(io_submit(context, 4, blocks) == 2);
    struct io_event events[4];
    CHECK(io_getevents(context, 2, 4, events, NULL) == 2);
    struct timespec now = {0, 0};
    CHECK(io_getevents(context, 0, 4, events, &now) == 0);
    CHECK(io_getevents(context, 1, 4, events, &now) == 0);
    CHECK(io_destroy(context) == 0);
    close(fd);
}

static void the_ring_can_be_read_without_a_call(void) {
    aio_context_t context = 0;
    char byte;
    int fd = file();
    CHECK(io_setup(3, &context) == 0);
    struct aio_ring *ring = (void *)context;
    CHECK(ring->magic == AIO_RING_MAGIC && ring->header_length == sizeof *ring && ring->nr > 3);
    CHECK(ring->compat_features == 1 && ring->incompat_features == 0);
    // More than it has places, so that it begins anew.
    for (unsigned turn = 0; turn < 2 * ring->nr; turn++) {
        struct iocb one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
        one.aio_data = turn;
        CHECK(submit_one(context, &one) == 1);
        CHECK(ring->head != ring->tail);
        struct io_event *event = &ring->events[ring->head];
        CHECK(event->data == turn && event->obj == (uintptr_t)&one && event->res == 0);
        ring->head = (ring->head + 1) % ring->nr;
    }
    // Whatever stands there, the kernel finds a place.
    ring->head = 0xffffffff;
    ring->tail = 0x12345678;
    ring->nr = 0;
    struct iocb one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    struct io_event events[2];
    struct timespec now = {0, 0};
    submit_one(context, &one);
    io_getevents(context, 0, 2, events, &now);
    CHECK(io_destroy(context) == 0);
    close(fd);
}

static void ends_that_nobody_takes_leave_no_room_until_they_are(void) {
    aio_context_t context = 0;
    char byte;
    int fd = file(), taken = 0;
    CHECK(io_setup(1, &context) == 0);
    struct iocb one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    while (submit_one(context, &one) == 1) CHECK(++taken < 100000);
    CHECK(errno == EAGAIN && taken >= 1);
    struct io_event event;
    CHECK(io_getevents(context, 1, 1, &event, NULL) == 1);
    CHECK(submit_one(context, &one) == 1);
    CHECK(io_destroy(context) == 0);
    close(fd);
}

static void an_eventfd_hears_of_each_end(void) {
    aio_context_t context = 0;
    char byte;
    int fd = file(), counter = eventfd(0, 0);
    uint64_t count;
    CHECK(io_setup(8, &context) == 0);
    struct iocb one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    one.aio_flags = IOCB_FLAG_RESFD;
    one.aio_resfd = counter;
    struct iocb *blocks[] = {&one, &one, &one};
    CHECK(io_submit(context, 3, blocks) == 3);
    CHECK(read(counter, &count, 8) == 8 && count == 3);
    CHECK(io_destroy(context) == 0);
    close(counter);
    close(fd);
}

static void a_child_has_no_context_and_a_parent_keeps_his(void) {
    aio_context_t context = 0;
    char byte;
    int fd = file(), status;
    CHECK(io_setup(8, &context) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct iocb one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
        _exit(!(submit_one(context, &one) == -1 && errno == EINVAL));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct iocb one = block(IOCB_CMD_PREAD, fd, &byte, 1, 0);
    CHECK(whole(context, &one) == 0);
    CHECK(io_destroy(context) == 0);
    close(fd);
}

static void on_alarm(int number) { (void)number; }

static void a_signal_ends_a_wait(void) {
    aio_context_t context = 0;
    struct io_event event;
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    CHECK(io_setup(8, &context) == 0);
    alarm(1);
    CHECK(io_getevents(context, 1, 1, &event, NULL) == -1 && errno == EINTR);
    CHECK(io_destroy(context) == 0);
}

static long figure(const char *path) {
    FILE *from = fopen(path, "r");
    long number = -1;
    if (from && fscanf(from, "%ld", &number) != 1) number = -1;
    if (from) fclose(from);
    return number;
}

static void contexts_are_counted_and_limited_and_an_exit_gives_them_back(void) {
    long before = figure("/proc/sys/fs/aio-nr"), most = figure("/proc/sys/fs/aio-max-nr");
    int status;
    CHECK(before >= 0 && most >= 65536);
    pid_t child = fork();
    if (child == 0) {
        aio_context_t one = 0, two = 0;
        int has_one = io_setup(1000, &one) == 0 && figure("/proc/sys/fs/aio-nr") >= before + 1000;
        int is_refused = io_setup(most, &two) == -1 && errno == EAGAIN;
        _exit(!(has_one && is_refused));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(figure("/proc/sys/fs/aio-nr") == before);
}

int main(void) {
    TEST(a_file_has_what_was_written_and_gives_it_back);
    TEST(what_is_wrong_is_refused_at_once);
    TEST(those_before_a_wrong_one_are_taken);
    TEST(the_ring_can_be_read_without_a_call);
    TEST(ends_that_nobody_takes_leave_no_room_until_they_are);
    TEST(an_eventfd_hears_of_each_end);
    TEST(a_child_has_no_context_and_a_parent_keeps_his);
    TEST(a_signal_ends_a_wait);
    TEST(contexts_are_counted_and_limited_and_an_exit_gives_them_back);
    return check_status();
}
