// splice from a file to a connection or a program: the pipe between holds the file's pages.
#define _GNU_SOURCE
#include "file_sending.h"
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#define PIPE_BYTES 65536

static int r, w;

static void open_pipe(void) {
    int ends[2];
    CHECK(pipe2(ends, O_NONBLOCK) == 0);
    r = ends[0], w = ends[1];
}

static void close_all(int fd, int other) {
    close(r), close(w), close(fd), close(other);
    unlink("sent");
}

static ssize_t splice_in(int fd, loff_t at, size_t len) { return splice(fd, &at, w, NULL, len, 0); }

static int is_writable(void) {
    struct pollfd poll_of = {w, POLLOUT, 0};
    return poll(&poll_of, 1, 0) == 1 && poll_of.revents == POLLOUT;
}

// Sends the file from byte `at` on, `step` bytes at most by each call.
static void send_in_steps(int fd, int ends[2], loff_t at, size_t step) {
    size_t have = 0, inside = 0, whole = sizeof bytes - at;
    loff_t start = at;
    while (have < whole) {
        ssize_t in = splice(fd, &at, w, NULL, step, 0);
        CHECK(in >= 0 || errno == EAGAIN);
        inside += in > 0 ? in : 0;
        ssize_t out = inside ? splice(r, NULL, ends[0], NULL, step, 0) : 0;
        CHECK(out >= 0 || errno == EAGAIN);
        inside -= out > 0 ? out : 0;
        have = take(ends[1], have, whole);
    }
    CHECK(at == sizeof bytes && inside == 0 && !memcmp(got, bytes + start, whole));
    CHECK(splice(fd, &at, w, NULL, step, 0) == 0);
}

static void a_file_reaches_the_peer_from_any_byte_on_and_in_any_steps(void) {
    static const loff_t starts[] = {0, 1, 4095, 4096, 100001};
    static const size_t steps[] = {777, 4096, 5001, PIPE_BYTES, FILE_BYTES};
    int fd = file("sent"), ends[2];
    pair(ends);
    open_pipe();
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
            send_in_steps(fd, ends, starts[i], steps[k]);
    close(ends[0]);
    close_all(fd, ends[1]);
}

// The file's position is used, and moves on, where no offset is given.
static void a_position_moves_on_with_what_went_in(void) {
    int fd = file("sent");
    open_pipe();
    CHECK(lseek(fd, 5000, SEEK_SET) == 5000);
    CHECK(splice(fd, NULL, w, NULL, 3000, 0) == 3000 && lseek(fd, 0, SEEK_CUR) == 8000);
    CHECK(read(r, got, sizeof got) == 3000 && !memcmp(got, bytes + 5000, 3000));
    close_all(fd, -1);
}

// A pipe that had copied them would show what the file held before.
static void a_reader_sees_what_was_written_to_the_file_meanwhile(void) {
    int fd = file("sent"), copy[2];
    open_pipe();
    CHECK(pipe(copy) == 0);
    CHECK(splice_in(fd, 100, 5000) == 5000 && tee(r, copy[1], 5000, 0) == 5000);
    CHECK(pwrite(fd, "changed", 7, 4093) == 7);
    memcpy(bytes + 4093, "changed", 7);
    CHECK(read(r, got, sizeof got) == 5000 && !memcmp(got, bytes + 100, 5000));
    CHECK(read(copy[0], got, sizeof got) == 5000 && !memcmp(got, bytes + 100, 5000));
    close(copy[0]), close(copy[1]);
    close_all(fd, -1);
}

static void a_peer_sees_what_was_written_to_the_file_meanwhile(void) {
    int fd = file("sent"), ends[2];
    pair(ends);
    open_pipe();
    CHECK(splice_in(fd, 0, 8192) == 8192 && splice(r, NULL, ends[0], NULL, 8192, 0) == 8192);
    CHECK(pwrite(fd, "changed", 7, 4093) == 7);
    memcpy(bytes + 4093, "changed", 7);
    size_t have = 0;
    while (have < 8192) have = take(ends[1], have, 8192);
    CHECK(!memcmp(got, bytes, 8192));
    close(ends[0]);
    close_all(fd, ends[1]);
}

static void *splice_all(void *fd) {
    size_t done = 0;
    ssize_t len;
    while ((len = splice(*(int *)fd, NULL, w, NULL, FILE_BYTES, 0)) > 0) done += len;
    close(w);
    return (void *)done;
}

static void a_splice_waits_for_room_and_its_reader_for_pages(void) {
    int fd = file("sent"), ends[2];
    pthread_t thread;
    CHECK(pipe(ends) == 0);
    r = ends[0], w = ends[1];
    CHECK(lseek(fd, 1, SEEK_SET) == 1 && pthread_create(&thread, NULL, splice_all, &fd) == 0);
    size_t have = 0;
    ssize_t len;
    while ((len = read(r, got + have, 10007)) > 0) have += len;
    void *done;
    CHECK(pthread_join(thread, &done) == 0 && (size_t)done == have);
    CHECK(have == sizeof bytes - 1 && !memcmp(got, bytes + 1, have));
    close(r), close(fd);
    CHECK(unlink("sent") == 0);
}

static void bytes_and_pages_keep_their_order(void) {
    int fd = file("sent"), other = open("copy", O_CREAT | O_RDWR | O_TRUNC, 0644);
    static char wanted[12011];
    memcpy(wanted, "before", 6), memcpy(wanted + 6, bytes + 10, 5000);
    memcpy(wanted + 5006, "after", 5), memcpy(wanted + 5011, bytes + 4096, 7000);
    for (size_t step = 1; step < 20000; step = step * 3 + 1) {
        open_pipe();
        CHECK(write(w, "before", 6) == 6 && splice_in(fd, 10, 5000) == 5000);
        CHECK(write(w, "after", 5) == 5 && splice_in(fd, 4096, 7000) == 7000);
        // Every second step goes by way of a file.
        loff_t at = 0;
        size_t have = 0, turn = 0;
        while (have < sizeof wanted) {
            ssize_t len = turn++ % 2 ? read(r, got + have, step) : splice(r, NULL, other, &at, step, 0);
            CHECK(len > 0);
            if (turn % 2) CHECK(pread(other, got + have, len, at - len) == len);
            have += len;
        }
        CHECK(have == sizeof wanted && !memcmp(got, wanted, have));
        close(r), close(w);
    }
    close(other);
    CHECK(unlink("copy") == 0);
    close_all(fd, -1);
}

static void a_page_takes_a_slot_however_little_of_it_is_there(void) {
    int fd = file("sent"), inside;
    open_pipe();
    CHECK(fcntl(w, F_SETPIPE_SZ, 4 * 4096) == 4 * 4096);
    CHECK(splice_in(fd, 4000, PIPE_BYTES) == 96 + 3 * 4096);
    CHECK(!ioctl(r, FIONREAD, &inside) && inside == 96 + 3 * 4096 && !is_writable());
    CHECK(write(w, "x", 1) < 0 && errno == EAGAIN && splice_in(fd, 0, 1) < 0 && errno == EAGAIN);
    CHECK(fcntl(w, F_SETPIPE_SZ, 2 * 4096) < 0 && errno == EBUSY);
    CHECK(read(r, got, 96) == 96 && is_writable() && splice_in(fd, 7, 1) == 1 && !is_writable());
    CHECK(fcntl(w, F_SETPIPE_SZ, 8 * 4096) == 8 * 4096 && is_writable());
    CHECK(read(r, got + 96, sizeof got - 96) == 3 * 4096 + 1 && !memcmp(got, bytes + 4000, 96 + 3 * 4096));
    CHECK(got[96 + 3 * 4096] == bytes[7]);
    close_all(fd, -1);
}

static void pages_in_a_pipe_outlive_the_file(void) {
    int fd = file("sent");
    open_pipe();
    CHECK(splice_in(fd, 0, PIPE_BYTES) == PIPE_BYTES);
    CHECK(ftruncate(fd, 0) == 0 && close(fd) == 0 && unlink("sent") == 0);
    // Who takes the memory of the file's pages now, fills it.
    size_t much = 8 << 20;
    char *other = mmap(NULL, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(other != MAP_FAILED);
    memset(other, 0xee, much);
    CHECK(read(r, got, sizeof got) == PIPE_BYTES && !memcmp(got, bytes, PIPE_BYTES));
    CHECK(munmap(other, much) == 0);
    close(r), close(w);
}

static long long free_bytes(void) {
    struct sysinfo info;
    CHECK(sysinfo(&info) == 0);
    return (long long)info.freeram * info.mem_unit;
}

static void a_pipe_that_is_closed_gives_its_pages_back(void) {
    long long before = free_bytes();
    for (int i = 0; i < 500; i++) {
        int fd = file("sent");
        open_pipe();
        CHECK(splice_in(fd, 0, PIPE_BYTES) == PIPE_BYTES && ftruncate(fd, 0) == 0);
        close_all(fd, -1);
    }
    CHECK(before - free_bytes() < 500 * PIPE_BYTES / 2);
}

int main(void) {
    TEST(a_file_reaches_the_peer_from_any_byte_on_and_in_any_steps);
    TEST(a_position_moves_on_with_what_went_in);
    TEST(a_reader_sees_what_was_written_to_the_file_meanwhile);
    TEST(a_peer_sees_what_was_written_to_the_file_meanwhile);
    TEST(a_splice_waits_for_room_and_its_reader_for_pages);
    TEST(bytes_and_pages_keep_their_order);
    TEST(a_page_takes_a_slot_however_little_of_it_is_there);
    TEST(pages_in_a_pipe_outlive_the_file);
    TEST(a_pipe_that_is_closed_gives_its_pages_back);
    return check_status();
}
