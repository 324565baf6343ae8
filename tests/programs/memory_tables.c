// Page tables go when what they mapped has gone: a program may touch any number of places in
// turn, and `VmPTE` says what it has. Faults and unmappings of neighbours do not meet.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096ul
#define MIB (1ul << 20)
#define GIB (1ul << 30)
#define TIB (1ul << 40)
// What a table of the last level maps.
#define SPAN (2 * MIB)
// Tables more or less, which other things may take.
#define SLACK_KIB 200

enum { RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

// A line of /proc/self/status, in KiB. Takes no memory.
static long status(const char *name) {
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY);
    ssize_t len = read(file, text, sizeof text - 1);
    close(file);
    text[len > 0 ? len : 0] = 0;
    char *line = strstr(text, name);
    return line ? atol(line + strlen(name)) : -1;
}

static long tables(void) { return status("\nVmPTE:"); }

static char *map_at(char *at, size_t bytes) {
    char *got = mmap(at, bytes, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    return got == at ? got : NULL;
}

static void a_hundred_thousand_places_leave_no_tables(void) {
    enum { PLACES = 100000 };
    long before = tables();
    CHECK(before > 0);
    for (size_t place = 0; place < PLACES; place++) {
        char *at = map_at((char *)(16 * TIB + place * SPAN), PAGE);
        CHECK(at && *at == 0);
        *at = 1;
        CHECK(munmap(at, PAGE) == 0);
        if (place % 10000 == 0) CHECK(tables() < before + SLACK_KIB);
    }
    CHECK(tables() < before + SLACK_KIB);
}

static void tables_count_while_they_are_there(void) {
    enum { PLACES = 2000 };
    char *start = (char *)(24 * TIB);
    long before = tables();
    CHECK(map_at(start, PLACES * SPAN));
    CHECK(tables() < before + SLACK_KIB);
    for (size_t place = 0; place < PLACES; place++) start[place * SPAN + PAGE] = 1;
    CHECK(tables() >= before + PLACES * 4 && tables() < before + PLACES * 4 + SLACK_KIB);
    CHECK(munmap(start, PLACES / 2 * SPAN) == 0);
    CHECK(tables() >= before + PLACES / 2 * 4 && tables() < before + PLACES / 2 * 4 + SLACK_KIB);
    for (size_t place = PLACES / 2; place < PLACES; place++) CHECK(start[place * SPAN + PAGE] == 1);
    CHECK(munmap(start + PLACES / 2 * SPAN, PLACES / 2 * SPAN) == 0);
    CHECK(tables() < before + SLACK_KIB);
}

static void places_far_apart_leave_no_tables(void) {
    long before = tables();
    for (size_t round = 0; round < 20; round++)
        for (size_t place = 1; place < 100; place++) {
            char *at = map_at((char *)(place * TIB + round * GIB), SPAN + PAGE);
            CHECK(at);
            at[0] = at[SPAN] = 1;
            CHECK(munmap(at, SPAN + PAGE) == 0);
        }
    CHECK(tables() < before + SLACK_KIB);
}

static void a_neighbour_keeps_its_table(void) {
    char *start = (char *)(32 * TIB);
    char *low = map_at(start, PAGE), *high = map_at(start + SPAN - PAGE, 2 * PAGE);
    CHECK(low && high);
    low[0] = 1, high[0] = 2, high[PAGE] = 3;
    CHECK(munmap(low, PAGE) == 0);
    CHECK(high[0] == 2 && high[PAGE] == 3);
    CHECK(map_at(start, PAGE) && low[0] == 0);
    low[0] = 4;
    CHECK(munmap(high, 2 * PAGE) == 0 && low[0] == 4);
    CHECK(munmap(low, PAGE) == 0);
}

static void moves_leave_no_tables(void) {
    enum { PLACES = 64 };
    char *at = map_at((char *)(40 * TIB), PLACES * SPAN);
    CHECK(at);
    for (size_t place = 0; place < PLACES; place++) at[place * SPAN] = (char)place;
    long before = tables();
    for (size_t round = 1; round <= 100; round++) {
        char *to = (char *)(40 * TIB + round * GIB);
        CHECK(mremap(at, PLACES * SPAN, PLACES * SPAN, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        at = to;
    }
    for (size_t place = 0; place < PLACES; place++) CHECK(at[place * SPAN] == (char)place);
    CHECK(tables() < before + SLACK_KIB);
    CHECK(munmap(at, PLACES * SPAN) == 0 && tables() < before - PLACES * 4 + SLACK_KIB);
}

static void moves_without_memory_leave_no_tables(void) {
    enum { PLACES = 64 };
    int fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
    if (fail_nth < 0) return;
    char *at = map_at((char *)(44 * TIB), PLACES * SPAN);
    CHECK(at);
    for (size_t place = 0; place < PLACES; place++) at[place * SPAN] = (char)place;
    long before = tables();
    for (size_t round = 1; round <= 100; round++) {
        char *to = (char *)(44 * TIB + round * GIB);
        CHECK(pwrite(fail_nth, "50", 2, 0) == 2);
        CHECK(mremap(at, PLACES * SPAN, PLACES * SPAN, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED);
        CHECK(errno == ENOMEM);
    }
    close(fail_nth);
    CHECK(tables() < before + SLACK_KIB);
    CHECK(munmap(at, PLACES * SPAN) == 0);
}

static void a_child_has_tables_of_its_own(void) {
    enum { PLACES = 500 };
    char *start = map_at((char *)(48 * TIB), PLACES * SPAN);
    CHECK(start);
    for (size_t place = 0; place < PLACES; place++) start[place * SPAN] = 1;
    int pid = fork(), ended;
    if (pid == 0) {
        int counts = tables() >= PLACES * 4;
        munmap(start, PLACES * SPAN);
        _exit(counts && tables() < PLACES * 4 ? 0 : 1);
    }
    CHECK(waitpid(pid, &ended, 0) == pid && ended == 0);
    for (size_t place = 0; place < PLACES; place++) CHECK(start[place * SPAN] == 1);
    CHECK(munmap(start, PLACES * SPAN) == 0);
}

static void huge_empty_ranges_are_unmapped_and_advised(void) {
    size_t bytes = 64 * TIB;
    for (int round = 0; round < 50; round++) {
        char *at = mmap(NULL, bytes, RW, ANON, -1, 0);
        CHECK(at != MAP_FAILED);
        at[0] = at[bytes / 2] = at[bytes - PAGE] = 1;
        CHECK(madvise(at, bytes, MADV_DONTNEED) == 0);
        CHECK(at[bytes / 2] == 0);
        CHECK(madvise(at, bytes, MADV_FREE) == 0);
        CHECK(mprotect(at, bytes, PROT_READ) == 0);
        CHECK(munmap(at, bytes) == 0);
    }
}

// Threads go through the same spans, each at a place of its own in them. Each step waits for the other CPUs to forget a
// translation, which takes as long as a busy host keeps one of them waiting.
enum { THREADS = 4, SPANS = 100, TURNS = 4 };
static atomic_int wrong;

static void *come_and_go(void *number) {
    size_t own = (size_t)number;
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t span = 0; span < SPANS; span++) {
            char *at = (char *)(56 * TIB + span * SPAN + own * SPAN / THREADS);
            if (!map_at(at, 2 * PAGE)) return (void)wrong++, NULL;
            if (at[0] != 0 || at[PAGE] != 0) wrong++;
            at[0] = (char)(own + 1), at[PAGE] = (char)(span + 1);
            if (turn % 4 == 1) madvise(at, PAGE, MADV_DONTNEED);
            if (at[0] != (turn % 4 == 1 ? 0 : (char)(own + 1)) || at[PAGE] != (char)(span + 1)) wrong++;
            if (munmap(at, 2 * PAGE) < 0) wrong++;
        }
    return NULL;
}

static atomic_int is_over;

// Stays in a span while its neighbours come and go.
static void *stay(void *unused) {
    (void)unused;
    char *at = (char *)(56 * TIB + SPAN / 2 + SPAN / THREADS / 2);
    if (!map_at(at, 16 * PAGE)) return (void)wrong++, NULL;
    while (!is_over)
        for (size_t page = 0; page < 16; page++) {
            if (at[page * PAGE] != 0) wrong++;
            at[page * PAGE] = (char)(page + 1);
            if (at[page * PAGE] != (char)(page + 1)) wrong++;
            madvise(at + page * PAGE, PAGE, MADV_DONTNEED);
        }
    munmap(at, 16 * PAGE);
    return NULL;
}

static void faults_and_unmappings_of_neighbours_do_not_meet(void) {
    pthread_t threads[THREADS + 1];
    long before = tables();
    CHECK(pthread_create(&threads[THREADS], NULL, stay, NULL) == 0);
    for (size_t at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, come_and_go, (void *)at) == 0);
    for (size_t at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    is_over = 1;
    pthread_join(threads[THREADS], NULL);
    CHECK(wrong == 0);
    CHECK(tables() < before + SLACK_KIB);
}

int main(void) {
    TEST(a_hundred_thousand_places_leave_no_tables);
    TEST(tables_count_while_they_are_there);
    TEST(places_far_apart_leave_no_tables);
    TEST(a_neighbour_keeps_its_table);
    TEST(moves_leave_no_tables);
    TEST(moves_without_memory_leave_no_tables);
    TEST(a_child_has_tables_of_its_own);
    TEST(huge_empty_ranges_are_unmapped_and_advised);
    TEST(faults_and_unmappings_of_neighbours_do_not_meet);
    return check_status();
}
