// RLIMIT_RTTIME: how long a thread with a real-time policy may run without waiting.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { MS = 1000, SECOND = 1000 * MS };

static int limit(rlim_t soft, rlim_t hard) {
    struct rlimit both = {soft, hard};
    return setrlimit(RLIMIT_RTTIME, &both);
}

static int set(int policy) {
    struct sched_param param = {.sched_priority = policy == SCHED_OTHER ? 0 : 5};
    return sched_setscheduler(0, policy, &param);
}

static long used_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void burn(long ms) {
    for (long end = used_ms() + ms; used_ms() < end;) {}
}

static int status_of(void (*work)(void)) {
    pid_t child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int is_killed_by(int signal, int status) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

static int told[2];

static void warn(int signal) {
    (void)signal;
    struct rlimit now;
    getrlimit(RLIMIT_RTTIME, &now);
    if (write(told[1], &now.rlim_cur, sizeof now.rlim_cur) != sizeof now.rlim_cur) _exit(1);
}

static void run_on(void) {
    signal(SIGXCPU, warn);
    if (limit(100 * MS, 1500 * MS) != 0 || set(SCHED_FIFO) != 0) _exit(1);
    for (;;) {}
}

static void warnings_each_second_and_then_the_end(void) {
    CHECK(pipe(told) == 0);
    int status = status_of(run_on);
    CHECK(is_killed_by(SIGKILL, status));
    close(told[1]);
    rlim_t soft;
    CHECK(read(told[0], &soft, sizeof soft) == sizeof soft && soft == 1100 * MS);
    CHECK(read(told[0], &soft, sizeof soft) == sizeof soft && soft == 2100 * MS);
    CHECK(read(told[0], &soft, sizeof soft) == 0);
    close(told[0]);
}

static void yield_on(void) {
    if (limit(100 * MS, RLIM_INFINITY) != 0 || set(SCHED_RR) != 0) _exit(1);
    for (;;) sched_yield();
}

static void who_only_yields_does_not_wait(void) { CHECK(is_killed_by(SIGXCPU, status_of(yield_on))); }

static void work_in_parts(void) {
    if (limit(2 * SECOND, 2 * SECOND) != 0 || set(SCHED_FIFO) != 0) _exit(1);
    for (int i = 0; i < 20; i++) {
        burn(150);
        usleep(1000);
    }
}

static void every_wait_begins_anew(void) { CHECK(status_of(work_in_parts) == 0); }

static void work_fairly(void) {
    if (limit(0, 0) != 0) _exit(1);
    burn(500);
}

static void others_are_not_limited(void) { CHECK(status_of(work_fairly) == 0); }

static void *become_realtime(void *unused) {
    (void)unused;
    if (set(SCHED_FIFO) != 0) _exit(1);
    for (;;) {}
}

static void run_threads(void) {
    pthread_t thread;
    if (limit(50 * MS, 100 * MS) != 0) _exit(1);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXCPU, SIG_IGN);
        pthread_create(&thread, NULL, become_realtime, NULL);
        pthread_join(thread, NULL);
    }
    int status;
    waitpid(child, &status, 0);
    if (!is_killed_by(SIGKILL, status)) _exit(2);
}

static void a_child_inherits_the_limit_and_each_thread_counts(void) { CHECK(status_of(run_threads) == 0); }

int main(void) {
    TEST(warnings_each_second_and_then_the_end);
    TEST(who_only_yields_does_not_wait);
    TEST(every_wait_begins_anew);
    TEST(others_are_not_limited);
    TEST(a_child_inherits_the_limit_and_each_thread_counts);
    return check_status();
}
