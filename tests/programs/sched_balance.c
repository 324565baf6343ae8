// Threads that only compute, as many as there are CPUs for twice over: no CPU is ever idle, so none
// steals, and yet none of them serves three while another serves one. A test that hangs is ended by
// an alarm. On one CPU there is nothing to share.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, CPUS = 2 };

static atomic_int finish, crowded, runs_on[THREADS];

static void allow(int first, int last) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = first; cpu <= last; cpu++) CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

// Three begin on the first CPU and one on the other; then all may go anywhere.
static void *spin(void *number) {
    long me = (long)number;
    int first = me == THREADS - 1;
    allow(first, first);
    atomic_fetch_add(&crowded, 1);
    while (atomic_load(&crowded) < THREADS) {}
    allow(0, CPUS - 1);
    while (!atomic_load(&finish)) atomic_store(&runs_on[me], sched_getcpu());
    return NULL;
}

static int threads_on(int cpu) {
    int count = 0;
    for (int i = 0; i < THREADS; i++) count += atomic_load(&runs_on[i]) == cpu;
    return count;
}

static void busy_cpus_come_to_serve_equally_many_threads(void) {
    if (sysconf(_SC_NPROCESSORS_ONLN) < CPUS) return;
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        atomic_store(&runs_on[i], -1);
        CHECK(pthread_create(&threads[i], NULL, spin, (void *)i) == 0);
    }
    alarm(60);
    while (threads_on(0) != THREADS / CPUS || threads_on(1) != THREADS / CPUS) usleep(10000);
    alarm(0);
    atomic_store(&finish, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    TEST(busy_cpus_come_to_serve_equally_many_threads);
    return check_status();
}
