// What the first touch of a page does: zeros that are shared, pages in advance, copies.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static char *map(size_t pages, int prot) {
    char *p = mmap(NULL, pages * PAGE, prot, ANON, -1, 0);
    madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
    return p;
}

// Resident pages of this program.
static long resident(void) {
    char text[64];
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || !fgets(text, sizeof text, file)) return -1;
    fclose(file);
    long all, pages;
    return sscanf(text, "%ld %ld", &all, &pages) == 2 ? pages : -1;
}

static void reading_fresh_memory_takes_none(void) {
    char *p = map(4096, RW);
    CHECK(p != MAP_FAILED);
    // The first call brings pages of the C library, up to 64 KiB around each that it uses.
    CHECK(resident() > 0);
    long before = resident();
    for (size_t i = 0; i < 4096; i++) CHECK(p[i * PAGE] == 0);
    CHECK(resident() == before);
    for (size_t i = 0; i < 4096; i += 2) p[i * PAGE] = 7;
    for (size_t i = 0; i < 4096; i++) CHECK(p[i * PAGE] == (i % 2 ? 0 : 7));
    long used = resident() - before;
    CHECK(used >= 2048 && used < 2048 + 64);
    CHECK(munmap(p, 4096 * PAGE) == 0);
    CHECK(resident() - before < 64);
}

static void a_run_of_stores_brings_little_in_advance(void) {
    char *p = map(4096, RW);
    long before = resident();
    for (size_t i = 0; i < 100; i++) p[i * PAGE] = 1;
    long run = resident() - before;
    CHECK(run >= 100 && run <= 100 + 40);
    before = resident();
    for (size_t i = 512; i < 4096; i += 16) p[i * PAGE] = 1;
    long scattered = resident() - before;
    CHECK(scattered >= 224 && scattered <= 224 + 40);
    CHECK(munmap(p, 4096 * PAGE) == 0);
}

static void zeros_keep_their_protection(void) {
    char *p = map(8, RW);
    for (size_t i = 0; i < 8; i++) CHECK(p[i * PAGE] == 0);
    CHECK(mprotect(p, 4 * PAGE, PROT_READ) == 0);
    CHECK(mprotect(p, 4 * PAGE, RW) == 0);
    for (size_t i = 0; i < 8; i++) p[i * PAGE + 5] = (char)(i + 1);
    char *other = map(8, RW);
    for (size_t i = 0; i < 8 * PAGE; i++) CHECK(other[i] == 0);
    CHECK(madvise(p, 8 * PAGE, MADV_DONTNEED) == 0);
    for (size_t i = 0; i < 8 * PAGE; i++) CHECK(p[i] == 0);
    p = mremap(p, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    CHECK(p != MAP_FAILED && p[0] == 0);
    p[0] = 3;
    CHECK(p[0] == 3 && other[0] == 0);
    CHECK(munmap(p, 16 * PAGE) == 0 && munmap(other, 8 * PAGE) == 0);
}

static void the_kernel_stores_to_zeros_too(void) {
    char *p = map(2, RW);
    CHECK(p[0] == 0 && p[PAGE] == 0);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "hello", 5) == 5);
    CHECK(read(ends[0], p + PAGE - 2, 5) == 5);
    CHECK(memcmp(p + PAGE - 2, "hello", 5) == 0);
    close(ends[0]), close(ends[1]);
    munmap(p, 2 * PAGE);
}

static void parent_and_child_share_zeros_and_store_apart(void) {
    char *p = map(64, RW);
    for (size_t i = 0; i < 64; i++) CHECK(p[i * PAGE] == 0);
    for (size_t i = 0; i < 32; i++) p[i * PAGE] = 1;
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < 64; i++) {
            if (p[i * PAGE] != (i < 32)) _exit(1);
            p[i * PAGE] = 9;
        }
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (size_t i = 0; i < 64; i++) CHECK(p[i * PAGE] == (i < 32));
    munmap(p, 64 * PAGE);
}

enum { THREADS = 4, SHARED_PAGES = 64, ROUNDS = 8 };
static _Atomic int *counters;

static void *count_everywhere(void *unused) {
    (void)unused;
    for (size_t i = 0; i < SHARED_PAGES; i++) counters[i * PAGE / sizeof *counters]++;
    return NULL;
}

static void threads_that_touch_one_page_first_see_one_page(void) {
    for (int round = 0; round < ROUNDS; round++) {
        counters = (void *)map(SHARED_PAGES, RW);
        // Half of the pages show zeros before the threads store.
        for (size_t i = 0; i < SHARED_PAGES; i += 2) CHECK(counters[i * PAGE / sizeof *counters] == 0);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, count_everywhere, NULL) == 0);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        for (size_t i = 0; i < SHARED_PAGES; i++) CHECK(counters[i * PAGE / sizeof *counters] == THREADS);
        CHECK(munmap((void *)counters, SHARED_PAGES * PAGE) == 0);
    }
}

static void a_last_owner_stores_without_a_copy(void) {
    char *p = map(256, RW);
    memset(p, 1, 256 * PAGE);
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(waitpid(child, NULL, 0) == child);
    long before = resident();
    memset(p, 2, 256 * PAGE);
    CHECK(resident() - before < 16);
    for (size_t i = 0; i < 256 * PAGE; i++) CHECK(p[i] == 2);
    munmap(p, 256 * PAGE);
}

static sigjmp_buf bus;
static void on_bus(int signal) { siglongjmp(bus, signal); }

static int signal_of_load(volatile char *at) {
    int raised = sigsetjmp(bus, 1);
    if (!raised) (void)*at;
    return raised;
}

static void what_a_file_has_lost_raises_sigbus_where_it_is_mapped(void) {
    char path[] = "/tmp/truncateXXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && unlink(path) == 0 && ftruncate(fd, 4 * PAGE) == 0);
    char *shared = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    char *own = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    memset(shared, 5, 4 * PAGE);
    for (size_t i = 0; i < 4; i++) CHECK(own[i * PAGE] == 5);
    CHECK(ftruncate(fd, PAGE + 10) == 0);
    signal(SIGBUS, on_bus);
    for (size_t i = 0; i < 4; i++) {
        int expected = i < 2 ? 0 : SIGBUS;
        CHECK(signal_of_load(shared + i * PAGE) == expected);
        CHECK(signal_of_load(own + i * PAGE) == expected);
    }
    CHECK(shared[PAGE + 9] == 5 && shared[PAGE + 10] == 0);
    CHECK(ftruncate(fd, 4 * PAGE) == 0);
    for (size_t i = 2; i < 4; i++) CHECK(signal_of_load(shared + i * PAGE) == 0 && shared[i * PAGE] == 0);
    signal(SIGBUS, SIG_DFL);
    close(fd);
    CHECK(munmap(shared, 4 * PAGE) == 0 && munmap(own, 4 * PAGE) == 0);
}

// Writes `len` bytes at `from` with known values in vector registers; whether they stay.
static int keeps_vectors(int fd, const char *from, size_t len, ssize_t *written) {
    uint64_t in[8], out[8];
    for (size_t i = 0; i < 8; i++) in[i] = 0x0102030405060708 * (i + 1);
    register long result __asm__("rax") = 1;
    __asm__ volatile(
        "movups (%[in]), %%xmm0\n movups 16(%[in]), %%xmm1\n"
        "movups 32(%[in]), %%xmm2\n movups 48(%[in]), %%xmm3\n"
        "syscall\n"
        "movups %%xmm0, (%[out])\n movups %%xmm1, 16(%[out])\n"
        "movups %%xmm2, 32(%[out])\n movups %%xmm3, 48(%[out])\n"
        : "+r"(result)
        : [in] "r"(in), [out] "r"(out), "D"((long)fd), "S"(from), "d"(len)
        : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3");
    *written = result;
    return !memcmp(in, out, sizeof in);
}

static void a_copy_ends_where_memory_does_and_leaves_vectors_alone(void) {
    static const size_t lens[] = {100, 511, 512, 600, 777, 4000, 3 * PAGE + 5};
    char path[] = "/tmp/copyXXXXXX", back[4 * PAGE];
    int fd = mkstemp(path);
    char *p = map(5, RW), *hole = p + 4 * PAGE;
    CHECK(fd >= 0 && unlink(path) == 0 && mprotect(hole, PAGE, PROT_NONE) == 0);
    for (size_t i = 0; i < 4 * PAGE; i++) p[i] = (char)(i * 7 ^ i / 256);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        size_t len = lens[i];
        char *from = hole - len;
        ssize_t written;
        CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
        CHECK(keeps_vectors(fd, from, len, &written) && written == (ssize_t)len);
        CHECK(pread(fd, back, sizeof back, 0) == (ssize_t)len && !memcmp(back, from, len));
        // Beyond memory's end nothing can be read; what was copied before may be told.
        CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
        CHECK(keeps_vectors(fd, from, len + 1000, &written));
        CHECK(written == -EFAULT || (written > 0 && written <= (ssize_t)len));
        if (written < 0) continue;
        CHECK(pread(fd, back, sizeof back, 0) == written && !memcmp(back, from, written));
    }
    close(fd);
    CHECK(munmap(p, 5 * PAGE) == 0);
}

int main(void) {
    TEST(reading_fresh_memory_takes_none);
    TEST(a_run_of_stores_brings_little_in_advance);
    TEST(zeros_keep_their_protection);
    TEST(the_kernel_stores_to_zeros_too);
    TEST(parent_and_child_share_zeros_and_store_apart);
    TEST(threads_that_touch_one_page_first_see_one_page);
    TEST(a_last_owner_stores_without_a_copy);
    TEST(what_a_file_has_lost_raises_sigbus_where_it_is_mapped);
    TEST(a_copy_ends_where_memory_does_and_leaves_vectors_alone);
    return check_status();
}
