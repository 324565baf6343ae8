// Whole lives of anonymous memory: mapped, each page stored to, unmapped.
#include "measure.h"

#include <stdio.h>
#include <sys/mman.h>

enum { REPETITIONS = 101 };

struct life {
    int pages, advice;
};

static uint64_t live(void *argument) {
    int pages = ((struct life *)argument)->pages, advice = ((struct life *)argument)->advice;
    size_t bytes = (size_t)pages * PAGE;
    uint64_t start = instructions();
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (advice) madvise(memory, bytes, advice);
    for (int i = 0; i < pages; i++) *(volatile char *)(memory + i * PAGE) = 1;
    munmap(memory, bytes);
    return since(start);
}

static void measure_lives(const char *name, int pages, int advice) {
    uint64_t samples[REPETITIONS];
    undisturbed(samples, REPETITIONS, live, &(struct life){pages, advice});
    row(name, samples, REPETITIONS, 1);
}

void measure_mappings(void) {
    measure_lives("mmap, touch, munmap of 1 page", 1, 0);
    measure_lives("mmap, touch, munmap of 32 pages", 32, 0);
    measure_lives("mmap, touch, munmap of 512 pages", 512, 0);
    measure_lives("the same with MADV_NOHUGEPAGE", 512, MADV_NOHUGEPAGE);
}
