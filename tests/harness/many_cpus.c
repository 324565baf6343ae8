// A machine with many CPUs: each runs a program, threads run on all of them at once and lose
// memory at once, and what programs are told of CPUs has room for all.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CPUS_MAX = 256, PAGE = 4096, ROUNDS = 10 };

static int cpus;

static int pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

static void a_program_runs_on_each_cpu(void) {
    for (int cpu = 0; cpu < cpus; cpu++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(pin(cpu) != 0 || sched_getcpu() != cpu);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
}

static pthread_barrier_t together;
static atomic_int astray;
static char *_Atomic page;

// Touches the page of each round on a CPU of its own.
static void *visit(void *number) {
    int cpu = (long)number;
    if (pin(cpu) != 0) astray++;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        if (page[0] != round || sched_getcpu() != cpu) astray++;
        pthread_barrier_wait(&together);
    }
    return NULL;
}

// Each page lies where the one before it lay, which all CPUs have to forget.
static void threads_on_all_cpus_see_each_new_page(void) {
    static pthread_t threads[CPUS_MAX];
    CHECK(pthread_barrier_init(&together, NULL, cpus + 1) == 0);
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    for (long cpu = 0; cpu < cpus; cpu++)
        CHECK(pthread_create(&threads[cpu], NULL, visit, (void *)cpu) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                   0) == page);
        page[0] = round;
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
    }
    for (int cpu = 0; cpu < cpus; cpu++) pthread_join(threads[cpu], NULL);
    CHECK(astray == 0);
}

static void masks_hold_all_cpus_and_may_be_longer(void) {
    static unsigned char mask[4096];
    CHECK(pin(cpus - 1) == 0);
    memset(mask, 0xff, sizeof mask);
    CHECK(syscall(SYS_sched_setaffinity, 0, sizeof mask, mask) == 0);
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    CHECK(bytes == (cpus + 63) / 64 * 8);
    int members = 0;
    for (int cpu = 0; cpu < bytes * 8; cpu++) members += mask[cpu / 8] >> cpu % 8 & 1;
    CHECK(members == cpus);
    CHECK(syscall(SYS_sched_getaffinity, 0, 4L, mask) == -1 && errno == EINVAL);
    memset(mask, 0, sizeof mask);
    mask[cpus / 8] = 1 << cpus % 8;
    CHECK(syscall(SYS_sched_setaffinity, 0, sizeof mask, mask) == -1 && errno == EINVAL);
}

static int status_has(const char *line) {
    static char text[8192];
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return strstr(text, line) != NULL;
}

static void proc_shows_which_cpus_are_allowed(void) {
    char line[64];
    CHECK(pin(cpus - 1) == 0);
    snprintf(line, sizeof line, "\nCpus_allowed_list:\t%d\n", cpus - 1);
    CHECK(status_has(line));
    if (cpus == 64) CHECK(status_has("\nCpus_allowed:\t80000000,00000000\n"));
}

int main(int count, char **words) {
    if (count != 2) return 2;
    cpus = atoi(words[1]);
    if (sysconf(_SC_NPROCESSORS_ONLN) != cpus) {
        printf("not ok the machine has %ld CPUs\n", sysconf(_SC_NPROCESSORS_ONLN));
        return 1;
    }
    TEST(a_program_runs_on_each_cpu);
    TEST(threads_on_all_cpus_see_each_new_page);
    TEST(masks_hold_all_cpus_and_may_be_longer);
    TEST(proc_shows_which_cpus_are_allowed);
    return check_status();
}
