// Large pages: who gets them, and that nobody notices when they fall apart.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL
#define LARGE (2UL << 20)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define POLICY "/sys/kernel/mm/transparent_hugepage/enabled"

static long kib_of(const char *path, const char *key) {
    char line[256];
    long kib = 0, value;
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), " %ld", &value) == 1) kib += value;
    fclose(file);
    return kib;
}

// Large pages of this program.
static long large_pages(void) { return kib_of("/proc/self/smaps", "AnonHugePages:") / 2048; }

// `count` times 2 MiB at a multiple of 2 MiB.
static char *map_aligned(size_t count) {
    char *all = mmap(NULL, (count + 1) * LARGE, RW, ANON, -1, 0);
    if (all == MAP_FAILED) return NULL;
    char *start = (char *)(((uintptr_t)all + LARGE - 1) & ~(LARGE - 1));
    if (start > all) munmap(all, start - all);
    munmap(start + count * LARGE, all + LARGE - start);
    return start;
}

// The same, with a number in each page.
static char *map_large(size_t count) {
    char *start = map_aligned(count);
    if (!start || madvise(start, count * LARGE, MADV_HUGEPAGE)) return NULL;
    for (size_t i = 0; i < count * LARGE / PAGE; i++) *(uint32_t *)(start + i * PAGE) = (uint32_t)i + 1;
    return start;
}

static int holds_its_numbers(char *start, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        if (*(uint32_t *)(start + i * PAGE) != i + 1) return 0;
        if (*(uint32_t *)(start + i * PAGE + 2048) != 0) return 0;
    }
    return 1;
}

static int set_policy(const char *word) {
    int file = open(POLICY, O_WRONLY);
    int written = write(file, word, strlen(word)) == (ssize_t)strlen(word);
    close(file);
    return written;
}

static void who_asks_gets_large_pages(void) {
    long before = large_pages();
    char *p = map_large(4);
    CHECK(p && large_pages() - before == 4);
    CHECK(holds_its_numbers(p, 0, 2048));
    CHECK(kib_of("/proc/meminfo", "AnonHugePages:") >= 4 * 2048);
    CHECK(munmap(p, 4 * LARGE) == 0);
    CHECK(large_pages() == before);
}

static void who_refuses_gets_none(void) {
    long before = large_pages();
    char *p = map_aligned(2);
    CHECK(p && madvise(p, 2 * LARGE, MADV_NOHUGEPAGE) == 0);
    memset(p, 1, 2 * LARGE);
    CHECK(large_pages() == before);
    CHECK(munmap(p, 2 * LARGE) == 0);
    CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
    p = map_large(2);
    CHECK(p && large_pages() == before);
    CHECK(munmap(p, 2 * LARGE) == 0);
    CHECK(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) == 0);
}

static void the_policy_is_obeyed(void) {
    long before = large_pages();
    CHECK(set_policy("never"));
    char *p = map_large(2);
    CHECK(p && large_pages() == before);
    CHECK(munmap(p, 2 * LARGE) == 0);
    CHECK(set_policy("madvise"));
    p = map_large(2);
    CHECK(p && large_pages() - before == 2);
    CHECK(munmap(p, 2 * LARGE) == 0);
    CHECK(set_policy("always"));
}

static void memory_can_be_unmapped_in_the_middle(void) {
    char *p = map_large(2);
    CHECK(p && munmap(p + 100 * PAGE, 10 * PAGE) == 0);
    CHECK(holds_its_numbers(p, 0, 100) && holds_its_numbers(p, 110, 1024));
    unsigned char there;
    CHECK(mincore(p + 105 * PAGE, PAGE, &there) == -1 && errno == ENOMEM);
    CHECK(munmap(p + LARGE - PAGE, 2 * PAGE) == 0);
    CHECK(holds_its_numbers(p, 110, 511) && holds_its_numbers(p, 513, 1024));
    CHECK(munmap(p, 2 * LARGE) == 0);
}

static void memory_can_be_discarded_in_the_middle(void) {
    char *p = map_large(2);
    CHECK(p && madvise(p + 7 * PAGE, 3 * PAGE, MADV_DONTNEED) == 0);
    CHECK(holds_its_numbers(p, 0, 7) && holds_its_numbers(p, 10, 1024));
    for (size_t i = 7 * PAGE; i < 10 * PAGE; i++) CHECK(p[i] == 0);
    CHECK(madvise(p, 2 * LARGE, MADV_DONTNEED) == 0);
    for (size_t i = 0; i < 2 * LARGE; i += 512) CHECK(p[i] == 0);
    p[LARGE] = 1;
    CHECK(p[LARGE] == 1 && p[0] == 0 && p[LARGE + 1] == 0);
    CHECK(munmap(p, 2 * LARGE) == 0);
}

static sigjmp_buf out;
static void on_fault(int signal) { siglongjmp(out, signal); }

static int can_store(volatile char *at) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    if (sigsetjmp(out, 1)) return 0;
    *at = *at;
    return 1;
}

static void protection_is_by_page(void) {
    char *p = map_large(2);
    CHECK(p && mprotect(p, LARGE, PROT_READ) == 0);
    CHECK(!can_store(p) && can_store(p + LARGE));
    CHECK(mprotect(p, LARGE, RW) == 0 && can_store(p));
    CHECK(mprotect(p + 5 * PAGE, PAGE, PROT_NONE) == 0);
    CHECK(can_store(p + 4 * PAGE) && !can_store(p + 5 * PAGE) && can_store(p + 6 * PAGE));
    CHECK(mprotect(p, 2 * LARGE, PROT_NONE) == 0);
    CHECK(!can_store(p) && !can_store(p + LARGE));
    CHECK(mprotect(p, 2 * LARGE, RW) == 0);
    CHECK(holds_its_numbers(p, 0, 1024));
    CHECK(munmap(p, 2 * LARGE) == 0);
}

static void a_child_has_a_copy(void) {
    char *p = map_large(4);
    CHECK(p);
    long before = kib_of("/proc/self/status", "VmRSS:");
    pid_t child = fork();
    if (child == 0) {
        if (!holds_its_numbers(p, 0, 2048)) _exit(1);
        // A store copies 4 KiB and no more.
        long at_first = kib_of("/proc/meminfo", "MemFree:");
        for (size_t i = 0; i < 2048; i += 64) p[i * PAGE] = 99;
        long used = at_first - kib_of("/proc/meminfo", "MemFree:");
        _exit(used > 1024 ? 2 : 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(holds_its_numbers(p, 0, 2048));
    for (size_t i = 0; i < 2048; i++) *(uint32_t *)(p + i * PAGE) = (uint32_t)i + 1;
    CHECK(holds_its_numbers(p, 0, 2048));
    CHECK(kib_of("/proc/self/status", "VmRSS:") - before < 256);
    CHECK(munmap(p, 4 * LARGE) == 0);
}

static void large_pages_move(void) {
    char *p = map_large(2), *target = map_aligned(3);
    CHECK(p && target);
    char *moved = mremap(p, 2 * LARGE, 2 * LARGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + 3 * PAGE);
    CHECK(moved == target + 3 * PAGE && holds_its_numbers(moved, 0, 1024));
    CHECK(munmap(target, 3 * LARGE) == 0);
}

static void the_kernel_reads_and_writes_them(void) {
    char *p = map_large(1);
    CHECK(p);
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], p + PAGE - 2, 8) == 8);
    CHECK(read(ends[0], p + 3 * PAGE - 4, 8) == 8);
    CHECK(memcmp(p + 3 * PAGE - 4, "\0\0\2\0\0\0\0\0", 8) == 0);
    int own = open("/proc/self/mem", O_RDONLY);
    uint32_t number = 0;
    if (own >= 0) CHECK(pread(own, &number, 4, (off_t)(uintptr_t)(p + 300 * PAGE)) == 4 && number == 301);
    close(own), close(ends[0]), close(ends[1]);
    CHECK(munmap(p, LARGE) == 0);
}

static void a_long_run_gets_them_unasked(void) {
    long before = large_pages();
    char *p = map_aligned(8);
    CHECK(p);
    for (size_t i = 0; i < 8 * LARGE / PAGE; i++) *(uint32_t *)(p + i * PAGE) = (uint32_t)i + 1;
    long large = large_pages() - before;
    CHECK(large >= 6 && large <= 8);
    CHECK(holds_its_numbers(p, 0, 8 * 512));
    CHECK(munmap(p, 8 * LARGE) == 0);
}

static void all_of_it_comes_back(void) {
    long before = 0;
    for (int round = 0; round < 6; round++) {
        char *p = map_large(8);
        CHECK(p);
        if (round % 2) CHECK(munmap(p + 5 * PAGE, PAGE) == 0);
        pid_t child = fork();
        if (child == 0) _exit(p[0] != 1);
        CHECK(waitpid(child, NULL, 0) == child);
        CHECK(munmap(p, 8 * LARGE) == 0);
        if (round == 1) before = kib_of("/proc/meminfo", "MemFree:");
    }
    long lost = before - kib_of("/proc/meminfo", "MemFree:");
    CHECK(lost < 4096);
}

int main(void) {
    TEST(who_asks_gets_large_pages);
    TEST(who_refuses_gets_none);
    TEST(the_policy_is_obeyed);
    TEST(memory_can_be_unmapped_in_the_middle);
    TEST(memory_can_be_discarded_in_the_middle);
    TEST(protection_is_by_page);
    TEST(a_child_has_a_copy);
    TEST(large_pages_move);
    TEST(the_kernel_reads_and_writes_them);
    TEST(a_long_run_gets_them_unasked);
    TEST(all_of_it_comes_back);
    return check_status();
}
