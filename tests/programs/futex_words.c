// futex(2): waiting for a word of memory, waking, moving waiters, sharing, robust locks.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const void *limit,
                  _Atomic uint32_t *other, uint32_t third) {
    return syscall(SYS_futex, word, operation, value, limit, other, third);
}

static void millis(int count) {
    struct timespec span = {.tv_nsec = count * 1000000L};
    nanosleep(&span, NULL);
}

static void another_value_ends_the_wait_at_once(void) {
    _Atomic uint32_t word = 1;
    CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0) == -1 && errno == EAGAIN);
    CHECK(futex((void *)((char *)&word + 1), FUTEX_WAIT, 2, NULL, NULL, 0) == -1 &&
          errno == EINVAL);
    CHECK(futex((void *)4096, FUTEX_WAIT, 2, NULL, NULL, 0) == -1 && errno == EFAULT);
    CHECK(futex(&word, FUTEX_WAIT_BITSET, 1, NULL, NULL, 0) == -1 && errno == EINVAL);
}

static void a_wait_ends_at_its_time_limit(void) {
    _Atomic uint32_t word = 1;
    struct timespec limit = {.tv_nsec = 20000000}, before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0) == -1 && errno == ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec >= 20000000);
    CHECK(futex(&word, FUTEX_WAIT_BITSET, 1, &before, NULL, 1) == -1 && errno == ETIMEDOUT);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec -= 1;
    CHECK(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &limit, NULL, 1) == -1 &&
          errno == ETIMEDOUT);
}

static _Atomic uint32_t first, second, awake;

static void *wait_for_first(void *bits) {
    futex(&first, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(uintptr_t)bits);
    awake++;
    return NULL;
}

static void start(pthread_t *threads, int count, uint32_t bits) {
    first = second = awake = 0;
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, wait_for_first, (void *)(uintptr_t)bits);
    }
    millis(50);
}

static void as_many_wake_as_were_asked_for(void) {
    pthread_t threads[4];
    start(threads, 4, ~0u);
    CHECK(futex(&first, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
    millis(20);
    CHECK(awake == 1);
    CHECK(futex(&first, FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 1) == 3);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK(futex(&first, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0);
}

static void only_matching_bits_wake(void) {
    pthread_t thread;
    start(&thread, 1, 4);
    CHECK(futex(&first, FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 3) == 0);
    CHECK(futex(&first, FUTEX_WAKE_BITSET_PRIVATE, 9, NULL, NULL, 6) == 1);
    pthread_join(thread, NULL);
}

static void waiters_move_to_another_word(void) {
    pthread_t threads[3];
    start(threads, 3, ~0u);
    CHECK(futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)9, &second, 5) == -1 &&
          errno == EAGAIN);
    CHECK(futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)9, &second, 0) == 3);
    millis(20);
    CHECK(awake == 1);
    CHECK(futex(&first, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0) == 0);
    CHECK(futex(&second, FUTEX_WAKE_PRIVATE, 9, NULL, NULL, 0) == 2);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static void a_word_is_changed_and_two_are_woken(void) {
    pthread_t thread;
    start(&thread, 1, ~0u);
    second = 5;
    int operation = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 5);
    CHECK(futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &second, operation) == 1);
    CHECK(second == 8);
    pthread_join(thread, NULL);
}

static void processes_share_a_word(void) {
    _Atomic uint32_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) _exit(futex(shared, FUTEX_WAIT, 0, NULL, NULL, 0) != 0);
    millis(50);
    *shared = 1;
    CHECK(futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    munmap(shared, 4096);
}

static void on_signal(int signal) { (void)signal; }

static void *interrupt(void *thread) {
    millis(50);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void a_handler_interrupts_the_wait(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    _Atomic uint32_t word = 0;
    pthread_t me = pthread_self(), thread;
    pthread_create(&thread, NULL, interrupt, &me);
    CHECK(futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == -1 && errno == EINTR);
    pthread_join(thread, NULL);
}

static pthread_mutex_t robust;

static void *die_with_the_lock(void *unused) {
    pthread_mutex_lock(&robust);
    return unused;
}

static void a_dead_owner_gives_the_lock_back(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, die_with_the_lock, NULL);
    pthread_join(thread, NULL);
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&robust) == 0 && pthread_mutex_unlock(&robust) == 0);
}

int main(void) {
    TEST(another_value_ends_the_wait_at_once);
    TEST(a_wait_ends_at_its_time_limit);
    TEST(as_many_wake_as_were_asked_for);
    TEST(only_matching_bits_wake);
    TEST(waiters_move_to_another_word);
    TEST(a_word_is_changed_and_two_are_woken);
    TEST(processes_share_a_word);
    TEST(a_handler_interrupts_the_wait);
    TEST(a_dead_owner_gives_the_lock_back);
    return check_status();
}
