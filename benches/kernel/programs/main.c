// Counts the instructions of what programs ask of a kernel. Argument: a program that
// exits at once. Each row goes to standard output as `figure NAME: INSTRUCTIONS`.
#include "measure.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { REPETITIONS = 1001, LOOP = 1000, LOOP_INSTRUCTIONS = 2 * LOOP, SLACK = 16, TRIES_MAX = 20 };

uint64_t clock_cost;

void need(int condition, const char *what) {
    if (condition) return;
    perror(what);
    exit(1);
}

static int ascending(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static uint64_t median(uint64_t *samples, int count) {
    qsort(samples, count, sizeof *samples, ascending);
    return samples[count / 2];
}

void row(const char *name, uint64_t *samples, int count, double parts) {
    printf("figure %s: %.1f\n", name, median(samples, count) / parts);
    fflush(stdout);
}

static long forced_switches(void) {
    struct rusage usage;
    need(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
    return usage.ru_nivcsw;
}

static void follow(int policy, int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    need(sched_setscheduler(0, policy, &parameter) == 0, "sched_setscheduler");
}

void undisturbed(uint64_t *samples, int count, uint64_t (*sample)(void *), void *argument) {
    follow(SCHED_FIFO, 1);
    for (int i = 0, tries = 0; i < count; tries++) {
        need(tries < count * TRIES_MAX, "nearly every sample is disturbed");
        long before = forced_switches();
        samples[i] = sample(argument);
        i += forced_switches() == before;
    }
    follow(SCHED_OTHER, 0);
}

void calibrate(void) {
    uint64_t empty[REPETITIONS], loop[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
        uint64_t start = instructions();
        empty[i] = since(start);
    }
    clock_cost = median(empty, REPETITIONS);
    for (int i = 0; i < REPETITIONS; i++) {
        uint64_t start = instructions();
        uint64_t left = LOOP;
        asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
        loop[i] = since(start);
    }
    uint64_t counted = median(loop, REPETITIONS);
    need(counted >= LOOP_INSTRUCTIONS && counted < LOOP_INSTRUCTIONS + SLACK,
         "the clock does not count instructions");
}

int main(int count, char **arguments) {
    need(count == 2, "a program that exits at once must be named");
    calibrate();
    measure_calls();
    measure_faults();
    measure_mappings();
    measure_processes(arguments[1]);
    measure_signals();
    measure_switches();
    measure_streams();
}
