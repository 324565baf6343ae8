// What forgetting pages costs, by the number of pages and of others that are still wanted: the
// figures behind shootdown's ceiling (core/shootdown/src/local.rs), a table in docs/memory.md.
//
//     cc -O1 -static -o /tmp/flush_ceiling tests/harness/flush_ceiling.c
//     sietch run --net none /tmp/flush_ceiling
//
// Takes the right to store from some pages, then reads the others; the best of many times.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, PAGES_MAX = 64, OTHERS_MAX = 1024, ROUNDS = 400 };

static char *map(int pages) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *at = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    madvise(at, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    return at;
}

static double micros(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void store(char *at, int pages) {
    for (int page = 0; page < pages; page++) *(volatile char *)(at + page * PAGE) = 1;
}

static void load(char *at, int pages) {
    for (int page = 0; page < pages; page++) (void)*(volatile char *)(at + page * PAGE);
}

static double best(char *victims, int count, char *others, int wanted) {
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        load(others, wanted);
        double start = micros();
        mprotect(victims, (size_t)count * PAGE, PROT_READ);
        load(others, wanted);
        double took = micros() - start;
        if (took < least) least = took;
        mprotect(victims, (size_t)count * PAGE, PROT_READ | PROT_WRITE);
        store(victims, count);
    }
    return least;
}

int main(void) {
    static const int counts[] = {1, 8, 16, 32, 33, 64}, wanted[] = {0, 16, 64, 256};
    char *victims = map(PAGES_MAX), *others = map(OTHERS_MAX);
    store(victims, PAGES_MAX);
    store(others, OTHERS_MAX);
    for (int row = 0; row < 4; row++) {
        printf("%4d others:", wanted[row]);
        for (int column = 0; column < 6; column++) {
            double took = best(victims, counts[column], others, wanted[row]);
            printf("  %d pages %.1f us", counts[column], took);
        }
        printf("\n");
    }
    return 0;
}
