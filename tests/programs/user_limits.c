// What is limited for a user is limited for all processes of the user together, and is free
// again when it is given back.
#include "check.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USER 54321
#define SIGNALS 10
#define PIPES 1040

static int ends[2 * PIPES];

// Runs `work` as an ordinary user in a process of its own; its result is that of the test.
static int as_user(int (*work)(void)) {
    int status, child = fork();
    if (child == 0) {
        if (setgid(USER) < 0 || setuid(USER) < 0) _exit(99);
        _exit(work());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int queue_signals(int count) {
    for (int done = 0; done < count; done++)
        if (sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = done}) < 0) return done;
    return count;
}

static void block_all(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){SIGNALS, SIGNALS});
}

// A second process of the user, while the first has six.
static int queue_the_rest(void) {
    int got = queue_signals(6);
    return got == 4 && errno == EAGAIN ? 0 : 10 + got;
}

static int two_queues(void) {
    block_all();
    if (queue_signals(6) != 6) return 1;
    int status, child = fork();
    if (child == 0) _exit(queue_the_rest());
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) return WEXITSTATUS(status);
    // What the other had is free, now that it has ended; its SIGCHLD may count as one.
    return queue_signals(6) >= 3 ? 0 : 2;
}

static void signals_queued_are_limited_for_all_processes_of_a_user(void) {
    CHECK(as_user(two_queues) == 0);
}

static int kill_beyond(void) {
    block_all();
    if (queue_signals(SIGNALS + 1) != SIGNALS) return 1;
    if (kill(getpid(), SIGRTMIN + 1) < 0) return 2;
    if (kill(getpid(), SIGUSR1) < 0) return 3;
    sigset_t one, usual;
    sigemptyset(&one), sigaddset(&one, SIGRTMIN + 1);
    sigemptyset(&usual), sigaddset(&usual, SIGUSR1);
    siginfo_t info;
    if (sigwaitinfo(&usual, &info) != SIGUSR1 || info.si_pid != getpid()) return 4;
    return sigwaitinfo(&one, &info) == SIGRTMIN + 1 && info.si_code == SI_USER ? 0 : 5;
}

static void kill_is_not_refused_where_sigqueue_is(void) { CHECK(as_user(kill_beyond) == 0); }

static int timers_beyond(void) {
    block_all();
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    timer_t timer;
    for (int count = 0; count < SIGNALS; count++)
        if (timer_create(CLOCK_MONOTONIC, &none, &timer) < 0) return 10 + count;
    if (timer_create(CLOCK_MONOTONIC, &none, &(timer_t){0}) == 0 || errno != EAGAIN) return 1;
    timer_delete(timer);
    return queue_signals(2) == 1 ? 0 : 2;
}

static void a_timer_counts_as_a_signal(void) { CHECK(as_user(timers_beyond) == 0); }

static int instances_max(void) {
    FILE *file = fopen("/proc/sys/fs/inotify/max_user_instances", "r");
    int most = 0;
    if (file && fscanf(file, "%d", &most) != 1) most = 0;
    if (file) fclose(file);
    return most;
}

static int open_instances(int count) {
    for (int done = 0; done < count; done++)
        if (inotify_init() < 0) return done;
    return count;
}

static int two_watchers(void) {
    int most = instances_max(), status, child, rest = most - most / 2;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){most + 100, most + 100});
    if (open_instances(most / 2) != most / 2) return 1;
    if ((child = fork()) == 0) {
        int got = open_instances(most);
        _exit(got == rest && errno == EMFILE ? 0 : 2);
    }
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) return 3;
    return open_instances(most) == rest ? 0 : 4;
}

static void inotify_descriptors_are_limited_for_all_processes_of_a_user(void) {
    CHECK(as_user(two_watchers) == 0);
}

static int many_pipes(void) {
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3 * PIPES, 3 * PIPES});
    for (int at = 0; at < PIPES; at++)
        if (pipe(ends + 2 * at) < 0) return 1;
    int last = ends[2 * PIPES - 1];
    if (fcntl(ends[1], F_GETPIPE_SZ) != 65536) return 2;
    if (fcntl(last, F_GETPIPE_SZ) != 8192) return 3;
    if (fcntl(last, F_SETPIPE_SZ, 1 << 18) >= 0 || errno != EPERM) return 4;
    for (int at = 0; at < 2 * PIPES; at++) close(ends[at]);
    if (pipe(ends) < 0) return 5;
    return fcntl(ends[1], F_GETPIPE_SZ) == 65536 ? 0 : 6;
}

static void a_user_with_many_pipes_gets_small_ones(void) { CHECK(as_user(many_pipes) == 0); }

int main(void) {
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3 * PIPES, 3 * PIPES});
    TEST(signals_queued_are_limited_for_all_processes_of_a_user);
    TEST(kill_is_not_refused_where_sigqueue_is);
    TEST(a_timer_counts_as_a_signal);
    TEST(inotify_descriptors_are_limited_for_all_processes_of_a_user);
    TEST(a_user_with_many_pipes_gets_small_ones);
    return check_status();
}
