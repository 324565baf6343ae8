// Files in memory that lose pages, are sealed, and are shown twice, while programs map them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, PAGES = 64, BYTES = PAGES * PAGE };

static int file_of(const char *bytes) {
    int fd = memfd_create("holes", MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
    if (bytes)
        for (int i = 0; i < PAGES; i++) CHECK(pwrite(fd, bytes, strlen(bytes), i * PAGE) > 0);
    return fd;
}

static char *show(int fd, int sharing) {
    char *at = mmap(0, BYTES, PROT_READ | PROT_WRITE, sharing, fd, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static sigjmp_buf fault;

static void on_fault(int signal) { siglongjmp(fault, signal); }

// The signal that a load from `at` raises, or 0.
static int load(volatile char *at) {
    struct sigaction action = {.sa_handler = on_fault}, old[2];
    sigaction(SIGBUS, &action, &old[0]);
    sigaction(SIGSEGV, &action, &old[1]);
    int raised = sigsetjmp(fault, 1);
    if (raised == 0) (void)*at;
    sigaction(SIGBUS, &old[0], 0);
    sigaction(SIGSEGV, &old[1], 0);
    return raised;
}

static void punch(int fd, off_t from, off_t bytes) {
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, bytes) == 0);
}

static void a_hole_shows_in_shared_mappings(void) {
    int fd = file_of("old");
    char *shared = show(fd, MAP_SHARED);
    for (int i = 0; i < PAGES; i++) CHECK(shared[i * PAGE] == 'o');
    punch(fd, 0, BYTES / 2);
    for (int i = 0; i < PAGES; i++) CHECK(shared[i * PAGE] == (i < PAGES / 2 ? 0 : 'o'));
    shared[5] = 'x';
    char byte;
    CHECK(pread(fd, &byte, 1, 5) == 1 && byte == 'x');
    munmap(shared, BYTES);
    close(fd);
}

static void a_hole_shows_in_another_process(void) {
    int fd = file_of("old");
    char *shared = show(fd, MAP_SHARED);
    CHECK(shared[0] == 'o');
    int to_child[2], to_parent[2];
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte = shared[0];
        (void)!write(to_parent[1], &byte, 1);
        (void)!read(to_child[0], &byte, 1);
        shared[1] = 'c';
        _exit(shared[0]);
    }
    char byte;
    CHECK(read(to_parent[0], &byte, 1) == 1 && byte == 'o');
    punch(fd, 0, PAGE);
    CHECK(write(to_child[1], &byte, 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pread(fd, &byte, 1, 1) == 1 && byte == 'c');
    munmap(shared, BYTES);
    close(fd);
}

static void a_hole_leaves_private_copies_and_not_the_rest(void) {
    int fd = file_of("old");
    char *private = show(fd, MAP_PRIVATE);
    private[0] = 'p';
    CHECK(private[PAGE] == 'o');
    punch(fd, 0, BYTES);
    CHECK(private[0] == 'p' && private[1] == 'l');
    CHECK(private[PAGE] == 0);
    munmap(private, BYTES);
    close(fd);
}

static void a_shorter_file_takes_private_copies_too(void) {
    int fd = file_of(0);
    char *private = show(fd, MAP_PRIVATE);
    memset(private, 'p', BYTES);
    CHECK(ftruncate(fd, PAGE + 1) == 0);
    CHECK(private[0] == 'p' && private[PAGE] == 'p');
    CHECK(load(private + 2 * PAGE) == SIGBUS);
    CHECK(ftruncate(fd, BYTES) == 0);
    CHECK(load(private + 2 * PAGE) == 0 && private[2 * PAGE] == 0);
    munmap(private, BYTES);
    close(fd);
}

static void writes_are_not_sealed_while_a_mapping_may_store(void) {
    int fd = file_of("old");
    char *shared = show(fd, MAP_SHARED);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EBUSY);
    CHECK(fcntl(fd, F_GET_SEALS) == 0);
    CHECK(mprotect(shared, BYTES, PROT_READ) == 0);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EBUSY);
    CHECK(munmap(shared, BYTES) == 0);
    char *private = show(fd, MAP_PRIVATE);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0);
    private[0] = 'p';
    CHECK(write(fd, "x", 1) == -1 && errno == EPERM);
    CHECK(mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    CHECK(errno == EPERM);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) == -1);
    CHECK(errno == EPERM);
    munmap(private, BYTES);
    close(fd);
}

static void future_writes_are_sealed_and_old_mappings_go_on(void) {
    int fd = file_of("old");
    char *shared = show(fd, MAP_SHARED);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
    shared[0] = 'x';
    char byte;
    CHECK(pread(fd, &byte, 1, 0) == 1 && byte == 'x');
    CHECK(write(fd, "x", 1) == -1 && errno == EPERM);
    CHECK(mmap(0, BYTES, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EPERM);
    char *reader = mmap(0, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(reader != MAP_FAILED && reader[0] == 'x');
    CHECK(mprotect(reader, BYTES, PROT_READ | PROT_WRITE) == -1 && errno == EACCES);
    munmap(reader, BYTES);
    munmap(shared, BYTES);
    close(fd);
}

static void an_old_size_of_0_shows_shared_memory_again(void) {
    int fd = file_of("old");
    char *shared = show(fd, MAP_SHARED);
    char *again = mremap(shared + PAGE, 0, 2 * PAGE, MREMAP_MAYMOVE);
    CHECK(again != MAP_FAILED && again != shared);
    again[3] = 'a';
    CHECK(shared[PAGE + 3] == 'a');
    shared[2 * PAGE + 3] = 'b';
    CHECK(again[PAGE + 3] == 'b');
    CHECK(munmap(again, 2 * PAGE) == 0 && shared[PAGE + 3] == 'a');
    munmap(shared, BYTES);
    shared = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[0] = 's';
    again = mremap(shared, 0, BYTES, MREMAP_MAYMOVE);
    CHECK(again != MAP_FAILED && again[0] == 's');
    again[1] = 't';
    CHECK(shared[1] == 't');
    CHECK(mremap(shared, 0, BYTES, 0) == MAP_FAILED && errno == ENOMEM);
    munmap(shared, BYTES);
    munmap(again, BYTES);
    char *private = mmap(0, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mremap(private, 0, BYTES, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    munmap(private, BYTES);
    close(fd);
}

static void a_mapping_shrinks_across_areas(void) {
    char *at = mmap(0, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    memset(at, 'm', 8 * PAGE);
    CHECK(mprotect(at + 2 * PAGE, 2 * PAGE, PROT_READ) == 0);
    CHECK(mremap(at, 8 * PAGE, 5 * PAGE, 0) == at);
    CHECK(at[4 * PAGE] == 'm' && load(at + 5 * PAGE) == SIGSEGV);
    CHECK(mremap(at, 5 * PAGE, 6 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    char *to = mmap(0, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mremap(at, 5 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    CHECK(to[0] == 'm' && to[2 * PAGE - 1] == 'm');
    CHECK(load(at) == SIGSEGV && load(at + 4 * PAGE) == SIGSEGV);
    munmap(to, 8 * PAGE);
}

static void large_changes_are_whole_for_other_processes(void) {
    enum { BIG = 64 << 20 };
    char *at = mmap(0, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 'b', BIG);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < BIG; i += PAGE)
            if (at[i] != 'b') _exit(1);
        memset(at, 'c', BIG);
        if (mprotect(at, BIG, PROT_NONE) || mprotect(at, BIG, PROT_READ)) _exit(2);
        char *moved = mremap(at, BIG, BIG + PAGE, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED) _exit(3);
        for (int i = 0; i < BIG; i += PAGE)
            if (moved[i] != 'c') _exit(4);
        if (munmap(moved, BIG)) _exit(5);
        _exit(load(moved + BIG / 2) == SIGSEGV ? 0 : 6);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < BIG; i += PAGE) CHECK(at[i] == 'b');
    munmap(at, BIG);
}

static void many_pages_are_given_back(void) {
    enum { BIG = 128 << 20 };
    for (int round = 0; round < 3; round++) {
        int fd = memfd_create("big", 0);
        CHECK(fd >= 0 && ftruncate(fd, BIG) == 0);
        char *at = mmap(0, BIG, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(at != MAP_FAILED);
        for (size_t byte = 0; byte < BIG; byte += PAGE) at[byte] = 1;
        CHECK(munmap(at, BIG) == 0);
        CHECK(close(fd) == 0);
    }
}

int main(void) {
    TEST(a_hole_shows_in_shared_mappings);
    TEST(a_hole_shows_in_another_process);
    TEST(a_hole_leaves_private_copies_and_not_the_rest);
    TEST(a_shorter_file_takes_private_copies_too);
    TEST(writes_are_not_sealed_while_a_mapping_may_store);
    TEST(future_writes_are_sealed_and_old_mappings_go_on);
    TEST(an_old_size_of_0_shows_shared_memory_again);
    TEST(a_mapping_shrinks_across_areas);
    TEST(large_changes_are_whole_for_other_processes);
    TEST(many_pages_are_given_back);
    return check_status();
}
