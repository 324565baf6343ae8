// CPUs that the host stops in the midst of the kernel: who waits for one of them naps. Meanwhile
// no addition is lost, no timer is forgotten, and no other CPU waits for a service in vain.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { CPUS_MAX = 16, ADDITIONS = 20000, NAPS = 100, ROUNDS_MAX = 500, PAGE = 4096 };

static int cpus, sum;
static atomic_int busy, failures;
static atomic_long sleeps, forgotten_pages;

static long naps(void) {
    long waits, turns, naps = -1;
    FILE *file = fopen("/proc/lock_stat", "r");
    if (file == NULL) return -1;
    if (fscanf(file, "%ld %ld %ld total", &waits, &turns, &naps) != 3) naps = -1;
    fclose(file);
    return naps;
}

static void pin(long cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) failures++;
}

// All CPUs want the counter's lock at all times.
static void *add(void *cpu) {
    uint64_t one = 1;
    pin((long)cpu);
    for (int i = 0; i < ADDITIONS; i++)
        if (write(sum, &one, sizeof one) != sizeof one) failures++;
    busy--;
    return NULL;
}

// The CPU's timer is lent to the nap, and has to fire for this thread all the same.
static void *sleep_again_and_again(void *cpu) {
    pin((long)cpu);
    for (; busy > 0; sleeps++) usleep(500);
    return NULL;
}

// Has the other CPUs forget a page, and waits until they have.
static void *forget_pages(void *cpu) {
    pin((long)cpu);
    for (; busy > 0; forgotten_pages++) {
        char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED) page[0] = 1;
        if (page == MAP_FAILED || munmap(page, PAGE) != 0) failures++;
        usleep(500);
    }
    return NULL;
}

static void load_all_cpus(void) {
    static pthread_t threads[3 * CPUS_MAX];
    void *(*const parts[])(void *) = {add, sleep_again_and_again, forget_pages};
    busy = cpus;
    for (long i = 0; i < 3 * cpus; i++)
        CHECK(pthread_create(&threads[i], NULL, parts[i % 3], (void *)(i / 3)) == 0);
    for (int i = 0; i < 3 * cpus; i++) pthread_join(threads[i], NULL);
}

static void cpus_nap_and_lose_nothing(void) {
    int rounds = 0;
    uint64_t added = 0;
    long before = naps();
    CHECK(before >= 0);
    while (naps() - before < NAPS && rounds < ROUNDS_MAX) {
        load_all_cpus();
        CHECK(read(sum, &added, sizeof added) == sizeof added);
        CHECK(added == (uint64_t)cpus * ADDITIONS);
        rounds++;
    }
    printf("# %ld naps, %d rounds, %ld sleeps, %ld pages\n", naps() - before, rounds, sleeps,
           forgotten_pages);
    CHECK(naps() - before >= NAPS);
    CHECK(failures == 0 && sleeps > 0 && forgotten_pages > 0);
}

int main(void) {
    cpus = sysconf(_SC_NPROCESSORS_ONLN);
    sum = eventfd(0, 0);
    if (cpus < 2 || cpus > CPUS_MAX || sum < 0) return 2;
    TEST(cpus_nap_and_lose_nothing);
    return check_status();
}
