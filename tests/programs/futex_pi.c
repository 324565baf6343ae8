// Locks with priority inheritance: words, waits, inheritance, deaths, condition variables.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

typedef _Atomic unsigned word;

static long futex(word *at, int op, unsigned value, const void *limit, word *other, unsigned last) {
    return syscall(SYS_futex, at, op, value, limit, other, last);
}

static long lock(word *at) { return futex(at, FUTEX_LOCK_PI_PRIVATE, 0, 0, 0, 0); }
static long unlock(word *at) { return futex(at, FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0); }
static unsigned self(void) { return (unsigned)syscall(SYS_gettid); }

static struct timespec soon(clockid_t clock, int millis) {
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += millis * 1000000L;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static int is_ok(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static word a, b, told;

static void *hold_a(void *nothing) {
    if (lock(&a)) return &a;
    told = self();
    while (told) usleep(1000);
    return unlock(&a) ? &a : nothing;
}

static pthread_t holder(void) {
    pthread_t thread;
    a = told = 0;
    pthread_create(&thread, 0, hold_a, 0);
    while (!told) usleep(1000);
    return thread;
}

static void let_go(pthread_t thread) {
    void *failed = &a;
    told = 0;
    CHECK(pthread_join(thread, &failed) == 0 && !failed);
}

static void the_word_names_the_owner(void) {
    a = 0;
    CHECK(lock(&a) == 0 && a == self());
    CHECK(lock(&a) == -1 && errno == EDEADLK);
    CHECK(futex(&a, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0) == -1 && errno == EDEADLK);
    CHECK(unlock(&a) == 0 && a == 0 && unlock(&a) == -1 && errno == EPERM);
    a = FUTEX_OWNER_DIED;
    CHECK(lock(&a) == 0 && a == (FUTEX_OWNER_DIED | self()) && unlock(&a) == 0 && a == 0);
    a = 0x3fffffff;
    CHECK(lock(&a) == -1 && errno == ESRCH);
    CHECK(lock((word *)((char *)&a + 1)) == -1 && errno == EINVAL);
    CHECK(lock((word *)8) == -1 && errno == EFAULT);
    CHECK(unlock((word *)8) == -1 && errno == EFAULT);
    a = 0;
    CHECK(futex(&a, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0) == 0 && a == self() && unlock(&a) == 0);
}

static void who_waits_gets_it_or_gives_up(void) {
    pthread_t thread = holder();
    unsigned owner = a;
    CHECK(owner == told);
    CHECK(futex(&a, FUTEX_TRYLOCK_PI_PRIVATE, 0, 0, 0, 0) == -1 && errno == EAGAIN);
    struct timespec at = soon(CLOCK_REALTIME, 20), past = {1, 0}, bad = {0, -1};
    CHECK(futex(&a, FUTEX_LOCK_PI_PRIVATE, 0, &at, 0, 0) == -1 && errno == ETIMEDOUT);
    CHECK(futex(&a, FUTEX_LOCK_PI_PRIVATE, 0, &past, 0, 0) == -1 && errno == ETIMEDOUT);
    CHECK(futex(&a, FUTEX_LOCK_PI_PRIVATE, 0, &bad, 0, 0) == -1 && errno == EINVAL);
    at = soon(CLOCK_MONOTONIC, 20);
    CHECK(futex(&a, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, &at, 0, 0) == -1 && errno == ETIMEDOUT);
    CHECK(a == (owner | FUTEX_WAITERS));
    CHECK(unlock(&a) == -1 && errno == EPERM);
    let_go(thread);
    CHECK(a == 0);
    thread = holder();
    told = 0;
    CHECK(lock(&a) == 0 && (a & FUTEX_TID_MASK) == self() && unlock(&a) == 0 && a == 0);
    CHECK(pthread_join(thread, 0) == 0);
}

static void on_alarm(int signal) { (void)signal, told = 0; }

static void signals_do_not_end_waits(void) {
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, 0);
    pthread_t thread = holder();
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGALRM);
    ualarm(30000, 0);
    CHECK(lock(&a) == 0 && (a & FUTEX_TID_MASK) == self() && unlock(&a) == 0);
    CHECK(pthread_join(thread, 0) == 0);
}

static void *wait_for_b(void *nothing) {
    if (lock(&a)) return &a;
    told = 1;
    long result = lock(&b);
    if (result == 0) unlock(&b);
    unlock(&a);
    return result ? &b : nothing;
}

static void circles_are_refused(void) {
    pthread_t thread;
    void *failed = &a;
    a = b = told = 0;
    CHECK(lock(&b) == 0 && pthread_create(&thread, 0, wait_for_b, 0) == 0);
    while (!(b & FUTEX_WAITERS)) usleep(1000);
    CHECK(lock(&a) == -1 && errno == EDEADLK);
    CHECK(unlock(&b) == 0 && pthread_join(thread, &failed) == 0 && !failed);
    CHECK(a == 0);
}

// ---- Inheritance: all on one CPU, by real-time priority.

static atomic_int order, finished[4];

// How much of each second real-time threads may have: without a bound the order is certain.
static void allow_runtime(const char *micros) {
    FILE *file = fopen("/proc/sys/kernel/sched_rt_runtime_us", "w");
    if (file) fputs(micros, file), fclose(file);
}

static void become(int priority) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
    struct sched_param param = {.sched_priority = priority};
    sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param);
}

static void work(int millis) {
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < millis);
}

// Has a, at first; what it does with it takes long.
static void *low(void *nothing) {
    become(1);
    lock(&a);
    told = 1;
    work(40);
    unlock(&a);
    finished[0] = ++order;
    return nothing;
}

// Has b and wants a.
static void *between(void *nothing) {
    become(2);
    lock(&b);
    told = 2;
    lock(&a);
    unlock(&a);
    unlock(&b);
    finished[1] = ++order;
    return nothing;
}

static void *middle(void *nothing) {
    become(10);
    work(40);
    finished[2] = ++order;
    return nothing;
}

static void *high(void *lock_of) {
    become(20);
    lock(lock_of);
    unlock(lock_of);
    finished[3] = ++order;
    return 0;
}

static void an_owner_runs_for_the_best_who_waits(void) {
    pthread_t threads[3];
    a = told = order = 0;
    become(30);
    CHECK(pthread_create(&threads[0], 0, low, 0) == 0);
    while (told != 1) usleep(1000);
    CHECK(pthread_create(&threads[1], 0, middle, 0) == 0);
    CHECK(pthread_create(&threads[2], 0, high, &a) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], 0) == 0);
    become(0);
    CHECK(finished[3] == 1 && finished[2] == 2 && finished[0] == 3 && a == 0);
}

static void inheritance_follows_a_chain(void) {
    pthread_t threads[4];
    a = b = told = order = 0;
    become(30);
    CHECK(pthread_create(&threads[0], 0, low, 0) == 0);
    while (told != 1) usleep(1000);
    CHECK(pthread_create(&threads[1], 0, between, 0) == 0);
    while (told != 2 || !(a & FUTEX_WAITERS)) usleep(1000);
    CHECK(pthread_create(&threads[2], 0, middle, 0) == 0);
    CHECK(pthread_create(&threads[3], 0, high, &b) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], 0) == 0);
    become(0);
    CHECK(finished[3] == 1 && finished[2] == 2 && finished[1] == 3 && finished[0] == 4);
}

static void *take_turn(void *priority) {
    int own = (int)(long)priority;
    become(own);
    lock(&a);
    finished[own - 1] = ++order;
    unlock(&a);
    return 0;
}

static void the_best_gets_it_first(void) {
    pthread_t threads[3];
    a = order = 0;
    CHECK(lock(&a) == 0);
    become(30);
    for (long i = 0; i < 3; i++) {
        CHECK(pthread_create(&threads[i], 0, take_turn, (void *)(i == 0 ? 2 : i == 1 ? 1L : 3)) == 0);
        usleep(10000);
    }
    CHECK(unlock(&a) == 0);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], 0) == 0);
    become(0);
    CHECK(finished[2] == 1 && finished[1] == 2 && finished[0] == 3 && a == 0);
}

// ---- Through the C library, and over processes.

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int count;
    word plain, lock;
} *common;

static void make_mutex(int is_robust) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == 0);
    CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) == 0);
    if (is_robust) CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0);
    CHECK(pthread_mutex_init(&common->mutex, &attr) == 0);
    pthread_condattr_t cond;
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    CHECK(pthread_cond_init(&common->cond, &cond) == 0);
    common->count = 0;
}

static void processes_count_together(void) {
    enum { CHILDREN = 4, ROUNDS = 2000 };
    pid_t children[CHILDREN];
    make_mutex(0);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int round = 0; round < ROUNDS; round++) {
                if (pthread_mutex_lock(&common->mutex)) _exit(1);
                int seen = common->count;
                if (round % 64 == 0) sched_yield();
                common->count = seen + 1;
                if (pthread_mutex_unlock(&common->mutex)) _exit(2);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++) CHECK(is_ok(children[i]));
    CHECK(common->count == CHILDREN * ROUNDS);
}

static void the_dead_leave_their_locks(void) {
    make_mutex(1);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&common->mutex);
        common->count = 1;
        usleep(50000);
        _exit(0);
    }
    while (!common->count) usleep(1000);
    CHECK(pthread_mutex_lock(&common->mutex) == EOWNERDEAD);
    CHECK(is_ok(child) && pthread_mutex_consistent(&common->mutex) == 0);
    CHECK(pthread_mutex_unlock(&common->mutex) == 0 && pthread_mutex_lock(&common->mutex) == 0);
    CHECK(pthread_mutex_unlock(&common->mutex) == 0);
    // Nobody waits meanwhile.
    child = fork();
    if (child == 0) pthread_mutex_lock(&common->mutex), _exit(0);
    CHECK(is_ok(child) && pthread_mutex_lock(&common->mutex) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&common->mutex) == 0);
    CHECK(pthread_mutex_unlock(&common->mutex) == 0);
    // One that is not robust goes to who waits, and says so in its word.
    common->lock = 0;
    common->count = 0;
    child = fork();
    if (child == 0) {
        futex(&common->lock, FUTEX_LOCK_PI, 0, 0, 0, 0);
        common->count = 1;
        usleep(50000);
        _exit(0);
    }
    while (!common->count) usleep(1000);
    CHECK(futex(&common->lock, FUTEX_LOCK_PI, 0, 0, 0, 0) == 0 && is_ok(child));
    CHECK((common->lock & ~FUTEX_WAITERS) == (FUTEX_OWNER_DIED | self()));
    CHECK(futex(&common->lock, FUTEX_UNLOCK_PI, 0, 0, 0, 0) == 0 && common->lock == 0);
}

static void conditions_work(void) {
    pid_t children[3];
    make_mutex(0);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            pthread_mutex_lock(&common->mutex);
            common->count++;
            while (common->count < 100) pthread_cond_wait(&common->cond, &common->mutex);
            _exit(pthread_mutex_unlock(&common->mutex));
        }
    }
    for (int seen = 0; seen < 3; usleep(1000)) {
        pthread_mutex_lock(&common->mutex);
        seen = common->count;
        pthread_mutex_unlock(&common->mutex);
    }
    pthread_mutex_lock(&common->mutex);
    common->count = 100;
    pthread_cond_broadcast(&common->cond);
    pthread_mutex_unlock(&common->mutex);
    for (int i = 0; i < 3; i++) CHECK(is_ok(children[i]));
    pthread_mutex_lock(&common->mutex);
    struct timespec at = soon(CLOCK_REALTIME, 20);
    CHECK(pthread_cond_timedwait(&common->cond, &common->mutex, &at) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&common->mutex) == 0);
}

static void *wait_to_be_moved(void *nothing) {
    long result = futex(&b, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, 0, &a, 0);
    if (result || (a & FUTEX_TID_MASK) != self()) return &b;
    told++;
    return unlock(&a) ? &a : nothing;
}

static long move_waiters(unsigned count, unsigned expected) {
    return futex(&b, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, (void *)(long)count, &a, expected);
}

static void waiters_are_moved_to_a_lock(void) {
    pthread_t threads[3];
    a = b = told = 0;
    CHECK(move_waiters(10, 1) == -1 && errno == EAGAIN && move_waiters(10, 0) == 0);
    CHECK(futex(&b, FUTEX_CMP_REQUEUE_PI_PRIVATE, 2, 0, &a, 0) == -1 && errno == EINVAL);
    CHECK(futex(&b, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, 0, &b, 0) == -1 && errno == EINVAL);
    CHECK(futex(&b, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 1, 0, &a, 0) == -1 && errno == EAGAIN);
    struct timespec at = soon(CLOCK_MONOTONIC, 20);
    CHECK(futex(&b, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, &at, &a, 0) == -1 && errno == ETIMEDOUT);
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], 0, wait_to_be_moved, 0) == 0);
    usleep(50000);
    CHECK(lock(&a) == 0 && move_waiters(10, 0) == 3 && a == (self() | FUTEX_WAITERS));
    usleep(20000);
    CHECK(told == 0 && unlock(&a) == 0);
    for (int i = 0; i < 3; i++) {
        void *failed = &a;
        CHECK(pthread_join(threads[i], &failed) == 0 && !failed);
    }
    CHECK(told == 3 && (a & FUTEX_TID_MASK) == 0);
    // One that is free goes to the first.
    a = told = 0;
    CHECK(pthread_create(&threads[0], 0, wait_to_be_moved, 0) == 0);
    usleep(50000);
    CHECK(move_waiters(0, 0) == 1);
    void *failed = &a;
    CHECK(pthread_join(threads[0], &failed) == 0 && !failed && told == 1);
}

int main(void) {
    common = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST(the_word_names_the_owner);
    TEST(who_waits_gets_it_or_gives_up);
    TEST(signals_do_not_end_waits);
    TEST(circles_are_refused);
    allow_runtime("-1");
    TEST(an_owner_runs_for_the_best_who_waits);
    TEST(inheritance_follows_a_chain);
    TEST(the_best_gets_it_first);
    allow_runtime("950000");
    TEST(processes_count_together);
    TEST(the_dead_leave_their_locks);
    TEST(conditions_work);
    TEST(waiters_are_moved_to_a_lock);
    return check_status();
}
