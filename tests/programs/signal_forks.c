// Signals to a process group whose members fork at that time: no child is missed, none gets a
// signal that its parent had taken before, and signals keep nobody from forking.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 100, FORKERS = 2, CHILDREN = 20, MEMBERS = 20, SECONDS_MAX = 20 };

// fork(3) may block all signals around the call, and what its caller is sent then is not for the
// child.
static pid_t plain_fork(void) {
    return syscall(SYS_fork);
}

static void micros(long count) {
    struct timespec span = {.tv_nsec = count * 1000};
    nanosleep(&span, NULL);
}

static void sleep_forever(void) {
    for (;;) pause();
}

// A process in a group of its own, which does `act` and ends.
static pid_t in_new_group(void (*act)(void)) {
    pid_t leader = fork();
    if (leader == 0) {
        act();
        _exit(0);
    }
    setpgid(leader, leader);
    return leader;
}

static void fork_sleepers(void) {
    setpgid(0, 0);
    for (int forker = 1; forker < FORKERS; forker++) {
        if (plain_fork() == 0) break;
    }
    for (int child = 0; child < CHILDREN; child++) {
        if (plain_fork() == 0) sleep_forever();
    }
    sleep_forever();
}

// Waits for all of a group whose members have no parent but this process.
static int all_end(pid_t group) {
    time_t end = time(NULL) + SECONDS_MAX;
    while (time(NULL) < end) {
        pid_t ended = waitpid(-group, NULL, WNOHANG);
        if (ended < 0) return errno == ECHILD;
        if (ended == 0) micros(500);
    }
    return 0;
}

static void a_signal_to_a_group_misses_no_child_that_is_forked_meanwhile(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int missed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t group = in_new_group(fork_sleepers);
        micros(round * 97 % 3000);
        kill(-group, SIGTERM);
        if (!all_end(group)) {
            missed++;
            kill(-group, SIGKILL);
            all_end(group);
        }
    }
    CHECK(missed == 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void nothing(int signal) {
    (void)signal;
}

static void fork_under_signals(void) {
    setpgid(0, 0);
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    pid_t sender = fork();
    if (sender == 0) {
        for (;;) kill(0, SIGUSR1);
    }
    for (int child = 0; child < CHILDREN; child++) {
        pid_t forked = fork();
        if (forked == 0) _exit(0);
        if (waitpid(forked, NULL, 0) != forked) _exit(1);
    }
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
}

static void signals_to_a_group_keep_nobody_from_forking(void) {
    pid_t group = in_new_group(fork_under_signals);
    int status = -1;
    CHECK(waitpid(group, &status, 0) == group && status == 0);
}

// The handler blocks the signal: if the child was sent it too, it is pending there.
static void fork_who_looks(int signal) {
    pid_t child = fork();
    if (child == 0) {
        sigset_t pending;
        sigpending(&pending);
        _exit(sigismember(&pending, signal));
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child) status = -1;
    _exit(status == 0 ? 0 : 1);
}

static void a_child_that_a_handler_forks_is_not_sent_the_signal_again(void) {
    struct sigaction action = {.sa_handler = fork_who_looks}, before;
    sigaction(SIGHUP, &action, &before);
    pid_t group = 0;
    for (int member = 0; member < MEMBERS; member++) {
        pid_t forked = fork();
        if (forked == 0) sleep_forever();
        if (member == 0) group = forked;
        CHECK(setpgid(forked, group) == 0);
    }
    CHECK(kill(-group, SIGHUP) == 0);
    sigaction(SIGHUP, &before, NULL);
    for (int member = 0; member < MEMBERS; member++) {
        int status = -1;
        CHECK(waitpid(-group, &status, 0) > 0 && status == 0);
    }
}

int main(void) {
    TEST(a_signal_to_a_group_misses_no_child_that_is_forked_meanwhile);
    TEST(signals_to_a_group_keep_nobody_from_forking);
    TEST(a_child_that_a_handler_forks_is_not_sent_the_signal_again);
    return check_status();
}
