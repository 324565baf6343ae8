// Page faults: a program's first touch of a page, measured page by page.
#include "measure.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 1024, RUNS = 9 };

static uint64_t samples[PAGES];

static char *private_memory(size_t bytes) {
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED, "mmap");
    // The row is about single pages; `mappings.c` has the huge ones.
    need(madvise(memory, bytes, MADV_NOHUGEPAGE) == 0, "madvise");
    return memory;
}

static void store_to_each_page(char *memory) {
    for (int i = 0; i < PAGES; i++) {
        uint64_t start = instructions();
        *(volatile char *)(memory + i * PAGE) = 1;
        samples[i] = since(start);
    }
}

// A mapping of one page has no neighbours that the same fault could fill.
static void measure_single_faults(void) {
    for (int i = 0; i < PAGES; i++) {
        char *page = private_memory(PAGE);
        uint64_t start = instructions();
        *(volatile char *)page = 1;
        samples[i] = since(start);
        munmap(page, PAGE);
    }
    row("anonymous write fault, one page mapped", samples, PAGES, 1);
}

static uint64_t anonymous_run(void *argument) {
    (void)argument;
    char *memory = private_memory(PAGES * PAGE);
    uint64_t start = instructions();
    for (int i = 0; i < PAGES; i++) *(volatile char *)(memory + i * PAGE) = 1;
    uint64_t cost = since(start);
    munmap(memory, PAGES * PAGE);
    return cost;
}

static void measure_anonymous_runs(void) {
    undisturbed(samples, RUNS, anonymous_run, 0);
    row("anonymous memory stored to page by page, per page", samples, RUNS, PAGES);
}

// The stores after `fork` copy: the child, which does nothing, owns the pages as well.
static void measure_copies(char *memory) {
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    need(child > 0, "fork");
    store_to_each_page(memory);
    row("copy-on-write fault", samples, PAGES, 1);
    kill(child, SIGKILL);
    need(waitpid(child, 0, 0) == child, "waitpid");
}

static int file_in_memory(void) {
    char path[] = "/tmp/costs-XXXXXX";
    int file = mkstemp(path);
    need(file >= 0, path);
    static const char page[PAGE] = {1};
    for (int i = 0; i < PAGES; i++) need(write(file, page, PAGE) == PAGE, "write");
    unlink(path);
    return file;
}

// A mapping of one page has no neighbours that the same fault could map.
static void measure_single_file_faults(int file) {
    for (int i = 0; i < PAGES; i++) {
        char *page = mmap(0, PAGE, PROT_READ, MAP_PRIVATE, file, (off_t)i * PAGE);
        need(page != MAP_FAILED, "mmap");
        uint64_t start = instructions();
        (void)*(volatile char *)page;
        samples[i] = since(start);
        munmap(page, PAGE);
    }
    row("file fault, one page mapped", samples, PAGES, 1);
}

static void measure_file_run(int file) {
    for (int run = 0; run < RUNS; run++) {
        char *memory = mmap(0, PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
        need(memory != MAP_FAILED, "mmap");
        uint64_t start = instructions();
        for (int i = 0; i < PAGES; i++) (void)*(volatile char *)(memory + i * PAGE);
        samples[run] = since(start);
        munmap(memory, PAGES * PAGE);
    }
    row("file read page by page, per page", samples, RUNS, PAGES);
}

void measure_faults(void) {
    char *memory = private_memory(PAGES * PAGE);
    measure_single_faults();
    measure_anonymous_runs();
    store_to_each_page(memory);
    measure_copies(memory);
    munmap(memory, PAGES * PAGE);
    int file = file_in_memory();
    measure_single_file_faults(file);
    measure_file_run(file);
    close(file);
}
