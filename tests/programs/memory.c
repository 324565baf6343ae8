// Memory: mmap and its kin, faults and their signals, copy on write, files in memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static char *map(size_t bytes, int prot, int flags) { return mmap(NULL, bytes, prot, flags, -1, 0); }

static sigjmp_buf fault_out;
static volatile int fault_signal, fault_code;
static void *volatile fault_address;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    fault_signal = signal;
    fault_code = info->si_code;
    fault_address = info->si_addr;
    siglongjmp(fault_out, 1);
}

static void catch_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

// The signal that a load from (or a store to) an address raises; 0 if none.
static int signal_of(volatile char *at, int store) {
    fault_signal = 0;
    if (sigsetjmp(fault_out, 1) == 0) {
        if (store) *at = 1;
        else (void)*at;
    }
    return fault_signal;
}

static int child_status(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void anonymous_memory_is_zero_and_keeps_what_is_stored(void) {
    char *p = map(64 * PAGE, RW, ANON);
    CHECK(p != MAP_FAILED);
    for (size_t i = 0; i < 64 * PAGE; i += 512) CHECK(p[i] == 0);
    for (size_t i = 0; i < 64 * PAGE; i += 512) p[i] = (char)(i / 512);
    for (size_t i = 0; i < 64 * PAGE; i += 512) CHECK(p[i] == (char)(i / 512));
    CHECK(munmap(p, 64 * PAGE) == 0);
}

static void unmapped_memory_raises_sigsegv_with_its_address(void) {
    char *p = map(3 * PAGE, RW, ANON);
    CHECK(munmap(p + PAGE, PAGE) == 0);
    CHECK(signal_of(p, 1) == 0 && signal_of(p + 2 * PAGE, 1) == 0);
    CHECK(signal_of(p + PAGE + 5, 0) == SIGSEGV);
    CHECK(fault_code == SEGV_MAPERR && fault_address == p + PAGE + 5);
}

static void protection_is_enforced_and_can_be_given_back(void) {
    char *p = map(4 * PAGE, RW, ANON);
    p[PAGE] = 7;
    CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
    CHECK(signal_of(p + PAGE, 1) == SIGSEGV && fault_code == SEGV_ACCERR);
    CHECK(p[PAGE] == 7);
    CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
    CHECK(signal_of(p + PAGE, 0) == SIGSEGV && fault_code == SEGV_ACCERR);
    CHECK(mprotect(p, 4 * PAGE, RW) == 0);
    CHECK(p[PAGE] == 7 && signal_of(p + PAGE, 1) == 0);
    errno = 0;
    CHECK(munmap(p + 2 * PAGE, PAGE) == 0);
    CHECK(mprotect(p, 4 * PAGE, PROT_READ) == -1 && errno == ENOMEM);
    CHECK(mprotect(p + 1, PAGE, PROT_READ) == -1 && errno == EINVAL);
}

static void the_kernel_respects_protection(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "abcd", 4) == 4);
    char *p = map(PAGE, PROT_READ, ANON);
    CHECK(read(ends[0], p, 4) == -1 && errno == EFAULT);
    char *volatile low = (char *)8;
    CHECK(write(ends[1], low, 4) == -1 && errno == EFAULT);
    CHECK(write(ends[1], (char *)0x7fffffffe000, 8192) == -1 && errno == EFAULT);
    CHECK(write(ends[1], (char *)0xffff800000000000, 8) == -1 && errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
}

static void fixed_mappings_replace_or_refuse(void) {
    char *p = map(4 * PAGE, RW, ANON);
    p[PAGE] = 1;
    CHECK(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + PAGE && p[PAGE] == 0);
    CHECK(mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno == EEXIST);
    CHECK(munmap(p, PAGE) == 0);
    CHECK(mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == p);
    CHECK(munmap(p, PAGE) == 0);
    CHECK(mmap(p, PAGE, RW, ANON, -1, 0) == p);
    CHECK(mmap(p + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, 0, RW, ANON, -1, 0) == MAP_FAILED && errno == EINVAL);
}

static void gigabytes_are_reserved_without_memory(void) {
    size_t bytes = 64UL << 30;
    char *p = map(bytes, PROT_NONE, ANON | MAP_NORESERVE);
    CHECK(p != MAP_FAILED);
    CHECK(mprotect(p + (32UL << 30), 16 * PAGE, RW) == 0);
    p[32UL << 30] = 3;
    CHECK(munmap(p, bytes) == 0);
    CHECK(map(1UL << 40, RW, ANON) == MAP_FAILED && errno == ENOMEM);
}

static void a_mapping_grows_moves_and_shrinks_with_its_content(void) {
    char *p = map(2 * PAGE, RW, ANON);
    strcpy(p + PAGE, "content");
    char *q = mremap(p, 2 * PAGE, 600 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && strcmp(q + PAGE, "content") == 0 && q[599 * PAGE] == 0);
    char *target = map(8 * PAGE, PROT_NONE, ANON);
    CHECK(mremap(q, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
    CHECK(strcmp(target + PAGE, "content") == 0 && signal_of(q, 0) == SIGSEGV);
    CHECK(mremap(target, 2 * PAGE, PAGE, 0) == target);
    CHECK(signal_of(target + PAGE, 0) == SIGSEGV);
    CHECK(mremap(target, PAGE, 1UL << 46, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(mremap(target, PAGE, 0, 0) == MAP_FAILED && errno == EINVAL);
}

static void discarded_memory_reads_as_zero(void) {
    char *p = map(4 * PAGE, RW, ANON);
    memset(p, 9, 4 * PAGE);
    CHECK(madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(p[0] == 9 && p[PAGE] == 0 && p[2 * PAGE] == 0 && p[3 * PAGE] == 9);
    CHECK(madvise(p + 1, PAGE, MADV_DONTNEED) == -1 && errno == EINVAL);
    CHECK(madvise(p, PAGE, 12345) == -1 && errno == EINVAL);
    CHECK(munmap(p + PAGE, PAGE) == 0);
    CHECK(madvise(p, 4 * PAGE, MADV_DONTNEED) == -1 && errno == ENOMEM);
}

static void residence_follows_use(void) {
    unsigned char resident[4];
    char *p = map(4 * PAGE, RW, ANON);
    p[PAGE] = 1;
    CHECK(mincore(p, 4 * PAGE, resident) == 0);
    CHECK(!resident[0] && resident[1] && !resident[2] && !resident[3]);
    CHECK(mlock(p, 4 * PAGE) == 0 && mincore(p, 4 * PAGE, resident) == 0 && resident[3]);
    CHECK(munlock(p, 4 * PAGE) == 0);
}

static void the_break_moves_and_its_memory_is_zero(void) {
    char *start = sbrk(0);
    CHECK(sbrk(10 * PAGE) == start);
    CHECK(start[9 * PAGE] == 0);
    start[9 * PAGE] = 5;
    CHECK(brk(start) == 0 && sbrk(0) == start);
    CHECK(sbrk(10 * PAGE) == start && start[9 * PAGE] == 0);
    CHECK(brk(start) == 0);
}

static void parent_and_child_do_not_see_each_others_stores(void) {
    char *p = map(256 * PAGE, RW, ANON);
    memset(p, 1, 256 * PAGE);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < 256; i += 2) p[i * PAGE] = 2;
        for (size_t i = 0; i < 256; i++)
            if (p[i * PAGE] != (i % 2 ? 1 : 2)) _exit(1);
        _exit(0);
    }
    for (size_t i = 0; i < 256; i += 3) p[i * PAGE] = 3;
    CHECK(child_status(child) == 0);
    for (size_t i = 0; i < 256; i++) CHECK(p[i * PAGE] == (i % 3 ? 1 : 3));
}

static void some_memory_is_not_inherited(void) {
    char *p = map(2 * PAGE, RW, ANON);
    p[0] = p[PAGE] = 4;
    CHECK(madvise(p, PAGE, MADV_DONTFORK) == 0 && madvise(p + PAGE, PAGE, MADV_WIPEONFORK) == 0);
    pid_t child = fork();
    if (child == 0) _exit(signal_of(p, 0) != SIGSEGV || p[PAGE] != 0);
    CHECK(child_status(child) == 0);
    CHECK(p[0] == 4 && p[PAGE] == 4);
}

static int temporary_file(size_t bytes) {
    char name[] = "/tmp/memory-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    for (size_t i = 0; i < bytes; i += PAGE) {
        char page[PAGE];
        memset(page, 'a' + (int)(i / PAGE % 26), PAGE);
        if (write(fd, page, PAGE) != (ssize_t)PAGE) return -1;
    }
    return fd;
}

static void a_private_mapping_of_a_file_keeps_stores_to_itself(void) {
    int fd = temporary_file(4 * PAGE);
    char *p = mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE, fd, PAGE), byte;
    CHECK(p != MAP_FAILED && p[0] == 'b' && p[2 * PAGE] == 'd');
    p[0] = 'X';
    CHECK(pread(fd, &byte, 1, PAGE) == 1 && byte == 'b' && p[0] == 'X' && p[1] == 'b');
    CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 1) == MAP_FAILED && errno == EINVAL);
    close(fd);
    CHECK(p[PAGE] == 'c');
}

static void a_shared_mapping_of_a_file_is_the_file(void) {
    int fd = temporary_file(2 * PAGE);
    char *p = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0), bytes[2];
    CHECK(p != MAP_FAILED && p[0] == 'a');
    p[0] = 'X';
    CHECK(pread(fd, bytes, 2, 0) == 2 && bytes[0] == 'X' && bytes[1] == 'a');
    CHECK(pwrite(fd, "Y", 1, PAGE) == 1 && p[PAGE] == 'Y');
    CHECK(msync(p, 2 * PAGE, MS_SYNC) == 0);
    pid_t child = fork();
    if (child == 0) {
        p[1] = 'Z';
        _exit(0);
    }
    CHECK(child_status(child) == 0 && p[1] == 'Z');
    close(fd);
}

static void memory_beyond_the_end_of_a_file_raises_sigbus(void) {
    int fd = temporary_file(PAGE);
    char *p = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(signal_of(p, 0) == 0);
    CHECK(signal_of(p + PAGE, 0) == SIGBUS);
    close(fd);
}

static void what_may_be_mapped_follows_from_how_a_file_was_opened(void) {
    int fd = open("/proc/self/exe", O_RDONLY);
    CHECK(fd >= 0);
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
    char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED && memcmp(p, "\177ELF", 4) == 0);
    CHECK(mprotect(p, PAGE, RW) == -1 && errno == EACCES);
    close(fd);
    CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EBADF);
}

static void shared_anonymous_memory_is_shared_page_by_page(void) {
    char *p = map(64 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS);
    p[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < 64; i++) p[i * PAGE + 1] = (char)i;
        _exit(p[0] != 1);
    }
    CHECK(child_status(child) == 0);
    for (size_t i = 0; i < 64; i++) CHECK(p[i * PAGE + 1] == (char)i);
}

static int use_stack(int depth) {
    volatile char frame[1024];
    frame[0] = (char)depth;
    return depth == 0 ? 0 : use_stack(depth - 1) + frame[0] - (char)depth;
}

static void the_stack_grows_to_its_limit(void) {
    pid_t child = fork();
    if (child == 0) _exit(use_stack(4000) != 0);
    CHECK(child_status(child) == 0);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(use_stack(1 << 20));
    }
    int status = child_status(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static char *volatile contested;
static volatile int stop;

static void *read_contested(void *unused) {
    unsigned long sum = 0;
    (void)unused;
    while (!stop) sum += (unsigned char)contested[0];
    return (void *)sum;
}

static void other_threads_see_a_replaced_page_at_once(void) {
    pthread_t reader;
    contested = map(PAGE, RW, ANON);
    stop = 0;
    CHECK(pthread_create(&reader, NULL, read_contested, NULL) == 0);
    for (int i = 0; i < 200; i++) {
        char *fresh = map(PAGE, RW, ANON);
        fresh[0] = 0;
        CHECK(mremap(fresh, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, contested) == contested);
        CHECK(madvise(contested, PAGE, MADV_DONTNEED) == 0);
    }
    stop = 1;
    void *sum;
    CHECK(pthread_join(reader, &sum) == 0 && sum == NULL);
}

static void execution_needs_its_permission(void) {
    unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    unsigned char *p = (unsigned char *)map(PAGE, RW, ANON);
    memcpy(p, code, sizeof code);
    fault_signal = 0;
    if (sigsetjmp(fault_out, 1) == 0) ((int (*)(void))(uintptr_t)p)();
    CHECK(fault_signal == SIGSEGV && fault_code == SEGV_ACCERR);
    CHECK(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0);
    CHECK(((int (*)(void))(uintptr_t)p)() == 42);
}

static void memory_for_stores_only_can_be_read_after_a_fork(void) {
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    strcpy(at, "/");
    CHECK(mprotect(at, 4096, PROT_WRITE) == 0);
    pid_t child = fork();
    if (child == 0) _exit(access(at, F_OK) == 0 ? 0 : 1);
    int status = -1;
    CHECK(access(at, F_OK) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    catch_faults();
    TEST(anonymous_memory_is_zero_and_keeps_what_is_stored);
    TEST(unmapped_memory_raises_sigsegv_with_its_address);
    TEST(protection_is_enforced_and_can_be_given_back);
    TEST(the_kernel_respects_protection);
    TEST(fixed_mappings_replace_or_refuse);
    TEST(gigabytes_are_reserved_without_memory);
    TEST(a_mapping_grows_moves_and_shrinks_with_its_content);
    TEST(discarded_memory_reads_as_zero);
    TEST(residence_follows_use);
    TEST(the_break_moves_and_its_memory_is_zero);
    TEST(parent_and_child_do_not_see_each_others_stores);
    TEST(some_memory_is_not_inherited);
    TEST(a_private_mapping_of_a_file_keeps_stores_to_itself);
    TEST(a_shared_mapping_of_a_file_is_the_file);
    TEST(memory_beyond_the_end_of_a_file_raises_sigbus);
    TEST(what_may_be_mapped_follows_from_how_a_file_was_opened);
    TEST(shared_anonymous_memory_is_shared_page_by_page);
    TEST(the_stack_grows_to_its_limit);
    TEST(other_threads_see_a_replaced_page_at_once);
    TEST(execution_needs_its_permission);
    TEST(memory_for_stores_only_can_be_read_after_a_fork);
    return check_status();
}
