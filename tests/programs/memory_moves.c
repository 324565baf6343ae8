// mremap moves a mapping as a whole or leaves it where it is: when memory for the move runs out
// on the way (`/proc/thread-self/fail-nth`, where there is fault injection), and to the eyes of
// other threads.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096ul
#define MIB (1ul << 20)
// One page in each is touched.
#define SPREAD (2 * MIB)
#define SPREADS 16ul
#define BYTES (SPREADS * SPREAD)
#define FAILURES_MAX 100
#define MOVES 300

enum { RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS };

static int fail_nth = -1;

static void arm(int n) {
    char text[16];
    int len = snprintf(text, sizeof text, "%d", n);
    if (fail_nth >= 0 && pwrite(fail_nth, text, len, 0) != len) abort();
}

// A place where nothing was before, so that it has no tables either. They start off the ends of
// tables.
static char *fresh_place(void) {
    static char *next = (char *)0x100000000000 + 8 * PAGE;
    return next += 1ul << 30;
}

static long promised(void) {
    static char text[8192];
    int file = open("/proc/meminfo", O_RDONLY);
    ssize_t len = read(file, text, sizeof text - 1);
    close(file);
    text[len > 0 ? len : 0] = 0;
    char *line = strstr(text, "\nCommitted_AS:");
    return line ? atol(line + 14) : -1;
}

static char *filled(void) {
    char *at = mmap(fresh_place(), BYTES, RW, ANON, -1, 0);
    if (at == MAP_FAILED) return NULL;
    for (size_t spread = 0; spread < SPREADS; spread++) at[spread * SPREAD] = (char)(spread + 1);
    return at;
}

static int is_whole(const char *at, size_t bytes) {
    for (size_t spread = 0; spread * SPREAD < bytes; spread++)
        if (at[spread * SPREAD] != (char)(spread + 1)) return 0;
    return 1;
}

static int is_mapped(char *at, size_t bytes) { return msync(at, bytes, MS_ASYNC) == 0; }

// Moves with the n-th allocation failing, for all n. The first that need not fail ends it.
static void move_with_each_failing(size_t new_bytes, int flags) {
    int failed = 0;
    for (int n = 1; n < FAILURES_MAX; n++) {
        char *old = filled(), *place = fresh_place();
        CHECK(old);
        size_t left = new_bytes < BYTES ? new_bytes : BYTES;
        long before = promised();
        arm(n);
        char *new = mremap(old, BYTES, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED | flags, place);
        int why = errno;
        arm(0);
        if (new != MAP_FAILED) {
            CHECK(new == place && is_whole(new, left));
            CHECK(munmap(new, new_bytes) == 0 && munmap(old, BYTES) == 0);
            CHECK(fail_nth < 0 || failed > 0);
            return;
        }
        failed++;
        CHECK(why == ENOMEM);
        CHECK(is_whole(old, left) && !is_mapped(place, PAGE));
        CHECK(promised() == before - (long)(BYTES - left) / 1024);
        new = mremap(old, left, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        CHECK(new == place && is_whole(new, left) && !is_mapped(old, PAGE));
        CHECK(munmap(new, new_bytes) == 0 && promised() == before - (long)(BYTES / 1024));
    }
    CHECK(!"it ends");
}

static void a_move_without_memory_leaves_all_where_it_was(void) { move_with_each_failing(BYTES, 0); }

static void a_growing_move_without_memory_leaves_all_where_it_was(void) {
    move_with_each_failing(2 * BYTES, 0);
}

static void a_shrinking_move_without_memory_leaves_what_is_left_where_it_was(void) {
    move_with_each_failing(BYTES / 2, 0);
}

#ifdef MREMAP_DONTUNMAP
static void a_move_that_keeps_the_old_place_leaves_all_where_it_was(void) {
    move_with_each_failing(BYTES, MREMAP_DONTUNMAP);
}
#endif

static void a_target_that_cannot_be_leaves_all_where_it_was(void) {
    char *old = filled();
    long before = promised();
    char *bad[] = {(char *)1, old + 1, old + PAGE, (char *)0x7fffffffe000};
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        char *new = mremap(old, BYTES, BYTES / 2, MREMAP_MAYMOVE | MREMAP_FIXED, bad[at]);
        CHECK(new == MAP_FAILED && errno == EINVAL);
        CHECK(is_whole(old, BYTES) && promised() == before);
    }
    munmap(old, BYTES);
}

static char *places[2];
static volatile int is_over;
static __thread sigjmp_buf unmapped;

static void on_fault(int signal) {
    (void)signal;
    siglongjmp(unmapped, 1);
}

// Looks at both places: each shows all that was ever stored, or nothing at all.
static void *look(void *strange) {
    while (!is_over)
        for (size_t spread = 0; spread < 2 * SPREADS; spread++) {
            char *at = places[spread % 2] + spread / 2 * SPREAD;
            if (sigsetjmp(unmapped, 1) == 0 && *(volatile char *)at != (char)(spread / 2 + 1))
                ++*(long *)strange;
        }
    return NULL;
}

static void nobody_sees_a_mapping_that_has_moved_in_part(void) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    long strange[2] = {0, 0};
    pthread_t threads[2];
    places[0] = filled(), places[1] = fresh_place();
    for (int at = 0; at < 2; at++) CHECK(pthread_create(&threads[at], NULL, look, &strange[at]) == 0);
    int moved = 1;
    for (int round = 0; round < MOVES && moved; round++) {
        char *from = places[round % 2], *to = places[1 - round % 2];
        moved = mremap(from, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
    }
    is_over = 1;
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    CHECK(moved && is_whole(places[MOVES % 2], BYTES));
    CHECK(strange[0] == 0 && strange[1] == 0);
    signal(SIGSEGV, SIG_DFL);
    munmap(places[MOVES % 2], BYTES);
}

int main(void) {
    fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
    TEST(a_move_without_memory_leaves_all_where_it_was);
    TEST(a_growing_move_without_memory_leaves_all_where_it_was);
    TEST(a_shrinking_move_without_memory_leaves_what_is_left_where_it_was);
#ifdef MREMAP_DONTUNMAP
    TEST(a_move_that_keeps_the_old_place_leaves_all_where_it_was);
#endif
    TEST(a_target_that_cannot_be_leaves_all_where_it_was);
    TEST(nobody_sees_a_mapping_that_has_moved_in_part);
    return check_status();
}
