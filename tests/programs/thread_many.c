// Threads: many of them, their locks, their ends, and where they run.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 16
#define ROUNDS 2000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_over = PTHREAD_COND_INITIALIZER;
static long total;
static int turn;
static __thread long own;

static void *add(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
        own++;
    }
    return (void *)own + (long)unused;
}

static void a_lock_excludes(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, add, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == (void *)ROUNDS);
    }
    CHECK(total == THREADS * ROUNDS && own == 0);
}

static void *play(void *side) {
    int mine = (int)(long)side;
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&lock);
        while (turn != mine) pthread_cond_wait(&turn_over, &lock);
        turn = !mine;
        pthread_cond_signal(&turn_over);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void two_threads_take_turns(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, play, (void *)0);
    pthread_create(&two, NULL, play, (void *)1);
    CHECK(pthread_join(one, NULL) == 0 && pthread_join(two, NULL) == 0);
}

static void *nothing(void *unused) { return unused; }

static void a_thousand_threads_come_and_go(void) {
    for (int i = 0; i < 1000; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void *tell_name(void *name) {
    prctl(PR_SET_NAME, "a name too long for it");
    prctl(PR_GET_NAME, name);
    return (void *)(long)gettid();
}

static void a_thread_has_a_number_and_a_name(void) {
    pthread_t thread;
    char name[16];
    void *id;
    pthread_create(&thread, NULL, tell_name, name);
    CHECK(pthread_join(thread, &id) == 0);
    CHECK((long)id != getpid() && strcmp(name, "a name too long") == 0);
}

static void *end_the_process(void *unused) {
    (void)unused;
    exit(12);
}

static void any_thread_ends_the_process(void) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end_the_process, NULL);
        for (;;) pause();
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 12);
}

static void *outlive(void *unused) {
    (void)unused;
    usleep(30000);
    _exit(13);
}

static void the_first_thread_may_end_before_the_others(void) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, outlive, NULL);
        syscall(SYS_exit, 0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 13);
}

static void threads_stay_on_their_cpus(void) {
    cpu_set_t all, one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) >= 1);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
        for (int i = 0; i < 20; i++) {
            CHECK(sched_getcpu() == cpu);
            sched_yield();
        }
    }
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == -1 && errno == EINVAL);
}

static void niceness_is_kept(void) {
    CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0);
    errno = 0;
    CHECK(getpriority(PRIO_PROCESS, 0) == 5 && errno == 0);
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    CHECK(sched_get_priority_max(SCHED_FIFO) == 99 && sched_get_priority_min(SCHED_FIFO) == 1);
}

static atomic_int spinning;

static void *spin(void *unused) {
    spinning = 1;
    while (spinning) {
    }
    return unused;
}

static void a_spinning_thread_lets_others_run(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, spin, NULL);
    while (!spinning) sched_yield();
    usleep(20000);
    CHECK(syscall(SYS_membarrier, 16, 0, 0) == 0 && syscall(SYS_membarrier, 8, 0, 0) == 0);
    spinning = 0;
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void) {
    TEST(a_lock_excludes);
    TEST(two_threads_take_turns);
    TEST(a_thousand_threads_come_and_go);
    TEST(a_thread_has_a_number_and_a_name);
    TEST(any_thread_ends_the_process);
    TEST(the_first_thread_may_end_before_the_others);
    TEST(threads_stay_on_their_cpus);
    TEST(niceness_is_kept);
    TEST(a_spinning_thread_lets_others_run);
    return check_status();
}
