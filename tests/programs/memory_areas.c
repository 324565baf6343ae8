// Many areas in one address space: each call finds its place among tens of thousands.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
// Every second page of a range becomes an area of its own.
#define SPLITS 15000UL

static char *range;

static void a_range_falls_into_tens_of_thousands_of_areas(void) {
    range = mmap(NULL, 2 * SPLITS * PAGE, PROT_NONE, ANON, -1, 0);
    CHECK(range != MAP_FAILED);
    for (size_t i = 0; i < SPLITS; i++) {
        char *page = range + 2 * i * PAGE;
        CHECK(mprotect(page, PAGE, RW) == 0);
        *page = (char)i;
    }
    for (size_t i = 0; i < SPLITS; i++) CHECK(range[2 * i * PAGE] == (char)i);
}

static void more_areas_than_the_limit_are_refused(void) {
    char *large = mmap(NULL, 80000 * PAGE, PROT_NONE, ANON, -1, 0);
    CHECK(large != MAP_FAILED);
    size_t made = 0;
    while (made < 40000 && mprotect(large + 2 * made * PAGE, PAGE, PROT_READ) == 0) made++;
    CHECK(made < 40000 && errno == ENOMEM);
    CHECK(munmap(large, 80000 * PAGE) == 0);
}

static void a_place_is_found_in_holes_and_below_all(void) {
    for (size_t i = 0; i < SPLITS; i += 100) CHECK(munmap(range + (2 * i + 1) * PAGE, PAGE) == 0);
    size_t inside = 0;
    for (size_t i = 0; i < SPLITS; i += 100) {
        char *one = mmap(NULL, PAGE, PROT_READ, ANON, -1, 0);
        CHECK(one != MAP_FAILED && *one == 0);
        inside += one > range && one < range + 2 * SPLITS * PAGE;
    }
    CHECK(inside > SPLITS / 100 - 20);
    char *two = mmap(NULL, 2 * PAGE, RW, ANON, -1, 0);
    CHECK(two != MAP_FAILED && (two < range || two >= range + 2 * SPLITS * PAGE));
    CHECK(munmap(two, 2 * PAGE) == 0);
}

static void a_child_inherits_all_of_them(void) {
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < SPLITS; i++)
            if (range[2 * i * PAGE] != (char)i) _exit(1);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void all_go_at_once(void) {
    CHECK(munmap(range, 2 * SPLITS * PAGE) == 0);
    unsigned char there;
    CHECK(mincore(range, PAGE, &there) == -1 && errno == ENOMEM);
}

// What comes and goes at random agrees with an array of pages.
static void random_calls_agree_with_a_list_of_pages(void) {
    enum { PAGES = 512 };
    static int prots[PAGES];
    char *at = mmap(NULL, PAGES * PAGE, PROT_NONE, ANON, -1, 0);
    CHECK(at != MAP_FAILED);
    unsigned seed = (unsigned)time(NULL);
    printf("# SEED=%u\n", seed);
    for (int step = 0; step < 20000; step++) {
        int from = rand_r(&seed) % PAGES, count = 1 + rand_r(&seed) % 8;
        if (from + count > PAGES) count = PAGES - from;
        int kind = rand_r(&seed) % 3, prot = kind == 0 ? -1 : kind == 1 ? PROT_READ : RW;
        char *start = at + from * PAGE;
        if (kind == 0) CHECK(munmap(start, count * PAGE) == 0);
        else CHECK(mmap(start, count * PAGE, prot, ANON | MAP_FIXED, -1, 0) == start);
        for (int i = from; i < from + count; i++) {
            prots[i] = prot;
            if (prot == RW) at[i * PAGE] = (char)i;
        }
        int look = rand_r(&seed) % PAGES;
        unsigned char there;
        int mapped = mincore(at + look * PAGE, PAGE, &there) == 0;
        CHECK(mapped == (prots[look] >= 0));
        if (prots[look] == RW) CHECK(at[look * PAGE] == (char)look);
        if (prots[look] == PROT_READ) CHECK(at[look * PAGE] == 0);
    }
}

int main(void) {
    TEST(a_range_falls_into_tens_of_thousands_of_areas);
    TEST(more_areas_than_the_limit_are_refused);
    TEST(a_place_is_found_in_holes_and_below_all);
    TEST(a_child_inherits_all_of_them);
    TEST(all_go_at_once);
    TEST(random_calls_agree_with_a_list_of_pages);
    return check_status();
}
