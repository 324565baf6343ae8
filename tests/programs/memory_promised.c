// Promised memory: Committed_AS counts it exactly, and the policies of overcommitment refuse.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, KIB = 1024, MIB = 1024 * KIB, RW = PROT_READ | PROT_WRITE };
enum { ANON = MAP_PRIVATE | MAP_ANONYMOUS };

static char *map(size_t bytes, int access, int flags) { return mmap(NULL, bytes, access, flags, -1, 0); }

/// A line of /proc/meminfo, in KiB. Takes no memory.
static long meminfo(const char *name) {
    static char text[8192];
    int file = open("/proc/meminfo", O_RDONLY);
    ssize_t len = read(file, text, sizeof text - 1);
    close(file);
    text[len > 0 ? len : 0] = 0;
    char *line = strstr(text, name);
    return line ? atol(line + strlen(name)) : -1;
}

static long promised(void) { return meminfo("\nCommitted_AS:"); }

static int write_setting(const char *name, long value) {
    char path[64], text[32];
    snprintf(path, sizeof path, "/proc/sys/vm/%s", name);
    int file = open(path, O_WRONLY), len = snprintf(text, sizeof text, "%ld", value);
    int written = file >= 0 && write(file, text, len) == len;
    close(file);
    return written;
}

static long read_setting(const char *name) {
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/sys/vm/%s", name);
    int file = open(path, O_RDONLY);
    if (read(file, text, sizeof text - 1) <= 0) return -1;
    close(file);
    return atol(text);
}

static void private_memory_counts_while_it_may_be_written(void) {
    long before = promised();
    char *p = map(8 * MIB, RW, ANON);
    CHECK(promised() == before + 8 * KIB);
    CHECK(munmap(p + MIB, 2 * MIB) == 0 && promised() == before + 6 * KIB);
    CHECK(mprotect(p + 4 * MIB, MIB, PROT_NONE) == 0 && promised() == before + 6 * KIB);
    CHECK(munmap(p, 8 * MIB) == 0 && promised() == before);
    p = map(8 * MIB, PROT_READ, ANON);
    CHECK(promised() == before);
    CHECK(mprotect(p + MIB, 2 * MIB, RW) == 0 && promised() == before + 2 * KIB);
    CHECK(mprotect(p, 4 * MIB, RW) == 0 && promised() == before + 4 * KIB);
    CHECK(munmap(p, 8 * MIB) == 0 && promised() == before);
}

static void what_replaces_something_counts_once(void) {
    long before = promised();
    char *p = map(4 * MIB, RW, ANON);
    CHECK(mmap(p + MIB, MIB, RW, ANON | MAP_FIXED, -1, 0) == p + MIB);
    CHECK(promised() == before + 4 * KIB);
    CHECK(mmap(p + MIB, MIB, PROT_NONE, ANON | MAP_FIXED, -1, 0) == p + MIB);
    CHECK(promised() == before + 3 * KIB);
    munmap(p, 4 * MIB);
    CHECK(promised() == before);
}

static void a_mapping_counts_as_large_as_it_is_remapped(void) {
    long before = promised();
    char *p = map(4 * MIB, RW, ANON);
    p = mremap(p, 4 * MIB, 2 * MIB, 0);
    CHECK(p != MAP_FAILED && promised() == before + 2 * KIB);
    p = mremap(p, 2 * MIB, 16 * MIB, MREMAP_MAYMOVE);
    CHECK(p != MAP_FAILED && promised() == before + 16 * KIB);
    char *place = map(16 * MIB, PROT_NONE, ANON);
    p = mremap(p, 16 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    CHECK(p == place && promised() == before + 8 * KIB);
    munmap(place, 16 * MIB);
    CHECK(promised() == before);
}

static long __attribute__((noinline)) promised_deep_in_the_stack(void) {
    volatile char deep[2 * MIB];
    deep[0] = 0;
    return promised() + deep[0];
}

static void the_heap_and_the_stack_count(void) {
    long before = promised();
    char *end = sbrk(0);
    CHECK(brk(end + 4 * MIB) == 0 && labs(promised() - before - 4 * KIB) <= 4);
    CHECK(brk(end) == 0 && promised() == before);
    pid_t child = fork();
    if (child == 0) {
        long at_start = promised();
        _exit(promised_deep_in_the_stack() < at_start + 1900);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && promised() == before);
}

static void a_child_counts_until_it_ends_or_execs(void) {
    char *p = map(32 * MIB, RW, ANON);
    long before = promised();
    int go[2], ready[2], status;
    char byte;
    CHECK(pipe2(go, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        (void)!read(go[0], &byte, 1);
        execl("/bin/sh", "sh", "-c", "exit 0", NULL);
        _exit(1);
    }
    CHECK(promised() >= before + 32 * KIB);
    close(go[0]), close(go[1]), close(ready[1]);
    // At the exec the child's end of the pipe closes.
    CHECK(read(ready[0], &byte, 1) == 0);
    close(ready[0]);
    waitpid(child, &status, 0);
    CHECK(promised() == before);
    munmap(p, 32 * MIB);
    CHECK(promised() == before - 32 * KIB);
}

static void shared_memory_counts_once_and_as_a_whole(void) {
    long before = promised();
    char *p = map(8 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS);
    CHECK(promised() == before + 8 * KIB);
    CHECK(munmap(p + MIB, MIB) == 0 && promised() == before + 8 * KIB);
    munmap(p, 8 * MIB);
    CHECK(promised() == before);
}

static void a_file_in_memory_counts_by_its_pages(void) {
    long before = promised();
    int file = memfd_create("pages", 0);
    CHECK(ftruncate(file, 64 * MIB) == 0 && promised() == before);
    char *p = mmap(NULL, 64 * MIB, RW, MAP_SHARED, file, 0);
    CHECK(p != MAP_FAILED && promised() == before);
    for (int page = 0; page < 256; page++) p[page * PAGE] = 1;
    CHECK(promised() == before + MIB / KIB);
    CHECK(ftruncate(file, MIB / 2) == 0 && promised() == before + MIB / KIB / 2);
    munmap(p, 64 * MIB);
    p = mmap(NULL, MIB / 2, RW, MAP_PRIVATE, file, 0);
    CHECK(promised() == before + MIB / KIB);
    munmap(p, MIB / 2);
    close(file);
    CHECK(promised() == before);
}

static void unreserved_memory_counts_only_under_a_limit(void) {
    long before = promised(), mode = read_setting("overcommit_memory");
    char *p = map(8 * MIB, RW, ANON | MAP_NORESERVE);
    CHECK(promised() == before);
    munmap(p, 8 * MIB);
    CHECK(write_setting("overcommit_kbytes", before + 256 * KIB) && write_setting("overcommit_memory", 2));
    p = map(8 * MIB, RW, ANON | MAP_NORESERVE);
    long now = promised();
    munmap(p, 8 * MIB);
    CHECK(write_setting("overcommit_memory", mode) && write_setting("overcommit_ratio", 50));
    CHECK(now == before + 8 * KIB);
}

static void the_heuristic_refuses_more_than_there_is_at_once(void) {
    size_t total = meminfo("MemTotal:") * (size_t)KIB;
    CHECK(write_setting("overcommit_memory", 0));
    CHECK(map(total + MIB, RW, ANON) == MAP_FAILED && errno == ENOMEM);
    char *p = map(total + MIB, RW, ANON | MAP_NORESERVE);
    CHECK(p != MAP_FAILED && munmap(p, total + MIB) == 0);
    p = map(total + MIB, PROT_NONE, ANON);
    CHECK(p != MAP_FAILED && mprotect(p, total + MIB, RW) == -1 && errno == ENOMEM);
    munmap(p, total + MIB);
    p = map(total / 3 * 2, RW, ANON);
    char *q = map(total / 3 * 2, RW, MAP_SHARED | MAP_ANONYMOUS);
    CHECK(p != MAP_FAILED && q != MAP_FAILED);
    munmap(p, total / 3 * 2), munmap(q, total / 3 * 2);
}

static void nothing_is_refused_where_anything_goes(void) {
    size_t total = meminfo("MemTotal:") * (size_t)KIB;
    CHECK(write_setting("overcommit_memory", 1));
    char *p = map(4 * total, RW, ANON);
    CHECK(write_setting("overcommit_memory", 0));
    CHECK(p != MAP_FAILED && munmap(p, 4 * total) == 0);
}

/// 0 if the limit holds wherever memory is promised.
static int under_a_limit(void) {
    long bytes = 64 * MIB, too_many = 256 * MIB;
    char *p = map(bytes, RW, ANON), *none = map(too_many, PROT_NONE, ANON);
    if (p == MAP_FAILED || none == MAP_FAILED) return 1;
    if (map(too_many, RW, ANON) != MAP_FAILED || errno != ENOMEM) return 2;
    if (map(too_many, RW, MAP_SHARED | MAP_ANONYMOUS) != MAP_FAILED || errno != ENOMEM) return 3;
    if (mprotect(none, too_many, RW) != -1 || errno != ENOMEM) return 4;
    if (mremap(p, bytes, too_many, MREMAP_MAYMOVE) != MAP_FAILED || errno != ENOMEM) return 5;
    if (brk((char *)sbrk(0) + too_many) != -1) return 6;
    char *more = map(bytes, RW, ANON);
    if (more == MAP_FAILED) return 7;
    if (fork() != -1 || errno != ENOMEM) return 8;
    return munmap(more, bytes);
}

static void a_limit_for_the_sum_holds(void) {
    long before = promised();
    CHECK(write_setting("overcommit_kbytes", before + 220 * KIB));
    CHECK(meminfo("CommitLimit:") == before + 220 * KIB && read_setting("overcommit_ratio") == 0);
    CHECK(write_setting("overcommit_memory", 2));
    int failed = under_a_limit();
    CHECK(write_setting("overcommit_memory", 0) && write_setting("overcommit_ratio", 50));
    CHECK(failed == 0);
    CHECK(read_setting("overcommit_kbytes") == 0);
    CHECK(labs(meminfo("CommitLimit:") - meminfo("MemTotal:") / 2) <= 4);
    CHECK(!write_setting("overcommit_memory", 3));
}

static void all(void) {
    TEST(private_memory_counts_while_it_may_be_written);
    TEST(what_replaces_something_counts_once);
    TEST(a_mapping_counts_as_large_as_it_is_remapped);
    TEST(the_heap_and_the_stack_count);
    TEST(a_child_counts_until_it_ends_or_execs);
    TEST(shared_memory_counts_once_and_as_a_whole);
    TEST(a_file_in_memory_counts_by_its_pages);
    TEST(unreserved_memory_counts_only_under_a_limit);
    TEST(the_heuristic_refuses_more_than_there_is_at_once);
    TEST(nothing_is_refused_where_anything_goes);
    TEST(a_limit_for_the_sum_holds);
}

int main(void) {
    // Where the root is in memory, pages of programs count when they are first used.
    pid_t first = fork();
    if (first == 0) {
        if (!freopen("/dev/null", "w", stdout)) _exit(1);
        all();
        _exit(0);
    }
    waitpid(first, NULL, 0);
    all();
    return check_status();
}
