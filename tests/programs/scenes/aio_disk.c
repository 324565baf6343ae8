// aio_disk DISK: transfers to a disk that is open with O_DIRECT, by io_submit(2) and io_uring, many at once,
// and what becomes of them when their program ends, forks or unmaps its memory.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "aio_calls.h"
#include "check.h"
#include "io_uring.h"

enum { BLOCK = 4096, DEPTH = 64, ROUNDS = 24 };

static const char *disk;
static int fd;

static char *memory(size_t blocks) {
    char *at = mmap(NULL, blocks * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

// Block `number` of the disk as `round` writes it.
static void fill(char *at, unsigned number, unsigned round) {
    for (unsigned word = 0; word < BLOCK / 4; word++) ((unsigned *)at)[word] = number << 16 | round << 8 | (word & 255);
}

static int is_filled(const char *at, unsigned number, unsigned round) {
    for (unsigned word = 0; word < BLOCK / 4; word++)
        if (((unsigned *)at)[word] != (number << 16 | round << 8 | (word & 255))) return 0;
    return 1;
}

static void many_at_once_arrive_and_come_back(void) {
    aio_context_t context = 0;
    struct iocb blocks[DEPTH], *all[DEPTH];
    struct io_event events[DEPTH];
    char *buffer = memory(DEPTH);
    CHECK(io_setup(DEPTH, &context) == 0);
    for (int kind = IOCB_CMD_PWRITE; kind >= IOCB_CMD_PREAD; kind--) {
        for (unsigned number = 0; number < DEPTH; number++) {
            char *at = buffer + number * BLOCK;
            if (kind == IOCB_CMD_PWRITE) fill(at, number, 1);
            else memset(at, 0, BLOCK);
            blocks[number] = block(kind, fd, at, BLOCK, (int64_t)number * BLOCK);
            all[number] = &blocks[number];
        }
        CHECK(io_submit(context, DEPTH, all) == DEPTH);
        CHECK(io_getevents(context, DEPTH, DEPTH, events, NULL) == DEPTH);
        for (int each = 0; each < DEPTH; each++) CHECK(events[each].res == BLOCK);
    }
    for (unsigned number = 0; number < DEPTH; number++) CHECK(is_filled(buffer + number * BLOCK, number, 1));
    CHECK(io_destroy(context) == 0);
    munmap(buffer, DEPTH * BLOCK);
}

static void more_than_a_queue_has_room_for_are_taken_all_the_same(void) {
    enum { MANY = 700 };
    aio_context_t context = 0;
    static struct iocb blocks[MANY], *all[MANY];
    static struct io_event events[MANY];
    char *buffer = memory(MANY);
    CHECK(io_setup(MANY, &context) == 0);
    for (unsigned number = 0; number < MANY; number++) {
        fill(buffer + number * BLOCK, number, 3);
        blocks[number] = block(IOCB_CMD_PWRITE, fd, buffer + number * BLOCK, BLOCK, (int64_t)number * BLOCK);
        all[number] = &blocks[number];
    }
    CHECK(io_submit(context, MANY, all) == MANY);
    CHECK(io_getevents(context, MANY, MANY, events, NULL) == MANY);
    for (int each = 0; each < MANY; each++) CHECK(events[each].res == BLOCK);
    memset(buffer, 0, MANY * BLOCK);
    CHECK(pread(fd, buffer, MANY * BLOCK, 0) == MANY * BLOCK);
    for (unsigned number = 0; number < MANY; number++) CHECK(is_filled(buffer + number * BLOCK, number, 3));
    CHECK(io_destroy(context) == 0);
    munmap(buffer, MANY * BLOCK);
}

static void odd_ones_say_so_and_ends_are_respected(void) {
    aio_context_t context = 0;
    char *buffer = memory(4);
    int64_t size = lseek(fd, 0, SEEK_END);
    CHECK(io_setup(8, &context) == 0);
    struct iocb one = block(IOCB_CMD_PREAD, fd, buffer, 100, 0);
    CHECK(whole(context, &one) == -EINVAL);
    one = block(IOCB_CMD_PREAD, fd, buffer, BLOCK, 100);
    CHECK(whole(context, &one) == -EINVAL);
    one = block(IOCB_CMD_PREAD, fd, buffer, 4 * BLOCK, size - BLOCK);
    CHECK(whole(context, &one) == BLOCK);
    one = block(IOCB_CMD_PREAD, fd, buffer, BLOCK, size);
    CHECK(whole(context, &one) == 0);
    one = block(IOCB_CMD_PWRITE, fd, buffer, BLOCK, size);
    CHECK(whole(context, &one) == -ENOSPC);
    one = block(IOCB_CMD_PREAD, fd, (void *)BLOCK, BLOCK, 0);
    CHECK(whole(context, &one) == -EFAULT);
    // Memory that may only be read takes nothing, and gives what it has.
    mprotect(buffer, BLOCK, PROT_READ);
    one = block(IOCB_CMD_PREAD, fd, buffer, BLOCK, 0);
    CHECK(whole(context, &one) == -EFAULT);
    one = block(IOCB_CMD_PWRITE, fd, buffer, BLOCK, size - BLOCK);
    CHECK(whole(context, &one) == BLOCK);
    mprotect(buffer, BLOCK, PROT_READ | PROT_WRITE);
    fill(buffer, 1, 7);
    fill(buffer + 2 * BLOCK, 2, 7);
    struct iovec parts[] = {{buffer, BLOCK}, {buffer + 2 * BLOCK, BLOCK}, {buffer, 512}, {buffer + 512, BLOCK - 512}};
    one = block(IOCB_CMD_PWRITEV, fd, parts, 4, 0);
    CHECK(whole(context, &one) == 3 * BLOCK);
    memset(buffer, 0, 4 * BLOCK);
    one = block(IOCB_CMD_PREAD, fd, buffer, 3 * BLOCK, 0);
    CHECK(whole(context, &one) == 3 * BLOCK);
    CHECK(is_filled(buffer, 1, 7) && is_filled(buffer + BLOCK, 2, 7) && is_filled(buffer + 2 * BLOCK, 1, 7));
    // A vector of memory that a device is told of, and of a file's, of which it is not.
    char name[] = "/tmp/aio-XXXXXX";
    int other = mkstemp(name);
    unlink(name);
    CHECK(ftruncate(other, BLOCK) == 0);
    char *mapped = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
    CHECK(mapped != MAP_FAILED);
    struct iovec mixed[] = {{buffer, BLOCK}, {mapped, BLOCK}, {buffer + 2 * BLOCK, BLOCK}};
    memset(buffer, 0, 4 * BLOCK);
    one = block(IOCB_CMD_PREADV, fd, mixed, 3, 0);
    CHECK(whole(context, &one) == 3 * BLOCK);
    CHECK(is_filled(buffer, 1, 7) && is_filled(mapped, 2, 7) && is_filled(buffer + 2 * BLOCK, 1, 7));
    CHECK(preadv(fd, mixed, 3, 0) == 3 * BLOCK && is_filled(mapped, 2, 7));
    munmap(mapped, BLOCK);
    close(other);
    one = block(IOCB_CMD_PWRITE, fd, buffer, BLOCK, 0);
    one.aio_rw_flags = 2; // RWF_DSYNC
    CHECK(whole(context, &one) == BLOCK);
    one = block(IOCB_CMD_FDSYNC, fd, 0, 0, 0);
    CHECK(whole(context, &one) == 0);
    CHECK(io_destroy(context) == 0);
    munmap(buffer, 4 * BLOCK);
}

// Begins reads into memory, through whatever way, and does not wait for them.
static int begin_reads(int by_ring, char *buffer) {
    if (by_ring) {
        struct ring r;
        if (ring_open(&r, DEPTH, 0, 0) != 0) return 0;
        unsigned *tail = ring_word(&r, r.p.sq_off.tail), *array = ring_word(&r, r.p.sq_off.array);
        for (unsigned number = 0; number < DEPTH; number++) {
            r.sqes[number] = (struct io_uring_sqe){
                .opcode = IORING_OP_READ, .fd = fd, .off = (uint64_t)number * BLOCK,
                .addr = (uintptr_t)(buffer + number * BLOCK), .len = BLOCK, .user_data = number};
            array[number] = number;
        }
        *tail += DEPTH;
        return syscall(__NR_io_uring_enter, r.fd, DEPTH, 0, 0, NULL, 0) == DEPTH;
    }
    aio_context_t context = 0;
    static struct iocb blocks[DEPTH];
    struct iocb *all[DEPTH];
    if (io_setup(DEPTH, &context) != 0) return 0;
    for (unsigned number = 0; number < DEPTH; number++) {
        blocks[number] = block(IOCB_CMD_PREAD, fd, buffer + number * BLOCK, BLOCK, (int64_t)number * BLOCK);
        all[number] = &blocks[number];
    }
    return io_submit(context, DEPTH, all) == DEPTH;
}

enum how { EXITS, IS_KILLED, UNMAPS, HOWS };

static void memory_that_a_device_still_writes_is_given_to_nobody(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        enum how how = round % HOWS;
        pid_t child = fork();
        if (child == 0) {
            char *buffer = memory(DEPTH);
            if (!begin_reads(round & 1, buffer)) _exit(9);
            if (how == IS_KILLED) raise(SIGKILL);
            if (how == UNMAPS) munmap(buffer, DEPTH * BLOCK);
            _exit(0);
        }
        // Takes what the child gives back, and looks whether anybody else writes there.
        char *own = memory(4 * DEPTH);
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(how == IS_KILLED ? WIFSIGNALED(status) : status == 0);
        memset(own, 0xa5, 4 * DEPTH * BLOCK);
        usleep(2000);
        for (size_t at = 0; at < 4 * DEPTH * BLOCK; at++) CHECK((unsigned char)own[at] == 0xa5);
        munmap(own, 4 * DEPTH * BLOCK);
    }
}

static void a_fork_takes_no_memory_from_a_read_under_way(void) {
    aio_context_t context = 0;
    char *buffer = memory(1);
    char *wanted = memory(1);
    struct io_event event;
    fill(wanted, 5, 5);
    CHECK(io_setup(4, &context) == 0);
    CHECK(pwrite(fd, wanted, BLOCK, 0) == BLOCK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        memset(buffer, 0, BLOCK);
        struct iocb one = block(IOCB_CMD_PREAD, fd, buffer, BLOCK, 0);
        CHECK(submit_one(context, &one) == 1);
        pid_t child = fork();
        if (child == 0) {
            memset(buffer, 1, BLOCK);
            _exit(0);
        }
        CHECK(io_getevents(context, 1, 1, &event, NULL) == 1 && event.res == BLOCK);
        CHECK(waitpid(child, NULL, 0) == child && is_filled(buffer, 5, 5));
    }
    CHECK(io_destroy(context) == 0);
    munmap(buffer, BLOCK);
    munmap(wanted, BLOCK);
}

static void a_context_that_is_destroyed_waits_for_what_is_under_way(void) {
    char *buffer = memory(DEPTH);
    for (unsigned round = 0; round < ROUNDS; round++) {
        aio_context_t context = 0;
        struct iocb blocks[DEPTH], *all[DEPTH];
        CHECK(io_setup(DEPTH, &context) == 0);
        for (unsigned number = 0; number < DEPTH; number++) {
            fill(buffer + number * BLOCK, number, round);
            blocks[number] = block(IOCB_CMD_PWRITE, fd, buffer + number * BLOCK, BLOCK, (int64_t)number * BLOCK);
            all[number] = &blocks[number];
        }
        CHECK(io_submit(context, DEPTH, all) == DEPTH);
        CHECK(io_destroy(context) == 0);
        memset(buffer, 0, DEPTH * BLOCK);
        CHECK(pread(fd, buffer, DEPTH * BLOCK, 0) == DEPTH * BLOCK);
        for (unsigned number = 0; number < DEPTH; number++) CHECK(is_filled(buffer + number * BLOCK, number, round));
    }
    munmap(buffer, DEPTH * BLOCK);
}

int main(int count, char **words) {
    disk = count > 1 ? words[1] : "/dev/vda";
    fd = open(disk, O_RDWR | O_DIRECT);
    if (fd < 0) {
        perror(disk);
        return 1;
    }
    TEST(many_at_once_arrive_and_come_back);
    TEST(more_than_a_queue_has_room_for_are_taken_all_the_same);
    TEST(odd_ones_say_so_and_ends_are_respected);
    TEST(memory_that_a_device_still_writes_is_given_to_nobody);
    TEST(a_fork_takes_no_memory_from_a_read_under_way);
    TEST(a_context_that_is_destroyed_waits_for_what_is_under_way);
    return check_status();
}
