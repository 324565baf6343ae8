// Lives of processes: fork, exit, wait; and with another program in between.
#include "measure.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPETITIONS = 101, MORE_PAGES = 1000 };

// `program` is what the child turns into, or null.
static uint64_t live(const char *program) {
    uint64_t start = instructions();
    pid_t child = fork();
    if (child == 0) {
        if (program) execl(program, program, (char *)0);
        _exit(program != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    uint64_t cost = since(start);
    need(child > 0 && status == 0, "the child's life");
    return cost;
}

static void measure_lives(const char *name, const char *program) {
    uint64_t samples[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) samples[i] = live(program);
    row(name, samples, REPETITIONS, 1);
}

void measure_processes(const char *child_program) {
    measure_lives("fork, exit, wait", 0);
    size_t bytes = (size_t)MORE_PAGES * PAGE;
    char *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED, "mmap");
    need(madvise(memory, bytes, MADV_NOHUGEPAGE) == 0, "madvise");
    for (int i = 0; i < MORE_PAGES; i++) memory[i * PAGE] = 1;
    measure_lives("fork, exit, wait with 1000 more pages", 0);
    munmap(memory, bytes);
    measure_lives("fork, exec of a static program, exit, wait", child_program);
}
