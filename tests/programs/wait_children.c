// Waiting for children: ends, stops, continuations, groups, and who inherits orphans.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static pid_t sleeper(void) {
    pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    return child;
}

static void millis(int count) {
    struct timespec span = {.tv_nsec = count * 1000000L};
    nanosleep(&span, NULL);
}

static void without_children_there_is_nothing_to_wait_for(void) {
    CHECK(wait(NULL) == -1 && errno == ECHILD);
    CHECK(waitpid(1 << 20, NULL, 0) == -1 && errno == ECHILD);
    CHECK(waitpid(-1, NULL, 0x100) == -1 && errno == EINVAL);
}

static void a_look_does_not_block(void) {
    pid_t child = sleeper();
    int status = 5;
    CHECK(waitpid(child, &status, WNOHANG) == 0 && status == 5);
    kill(child, SIGTERM);
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
}

static void stops_and_continuations_are_reported(void) {
    pid_t child = sleeper();
    int status;
    kill(child, SIGSTOP);
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    CHECK(waitpid(child, &status, WUNTRACED | WNOHANG) == 0);
    kill(child, SIGCONT);
    CHECK(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    kill(child, SIGSTOP);
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
}

static void waitid_can_leave_the_child_to_be_waited_for(void) {
    pid_t child = fork();
    if (child == 0) _exit(9);
    siginfo_t info = {0};
    CHECK(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    CHECK(info.si_pid == child && info.si_code == CLD_EXITED && info.si_status == 9);
    CHECK(info.si_signo == SIGCHLD);
    memset(&info, 0, sizeof info);
    CHECK(waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid == child);
    CHECK(waitid(P_ALL, 0, &info, WEXITED) == -1 && errno == ECHILD);
}

static volatile sig_atomic_t children, child_code, child_status;

static void on_child(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    children++;
    child_code = info->si_code;
    child_status = info->si_status;
}

static void the_parent_gets_a_signal(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    pid_t child = fork();
    if (child == 0) _exit(4);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(children == 1 && child_code == CLD_EXITED && child_status == 4);
    signal(SIGCHLD, SIG_DFL);
}

// Looks until the child has ended; whether SIGCHLD was there by then. (Of stops and continuations
// Linux tells before their signal.)
static int signal_came_first(pid_t child) {
    sigset_t waiting;
    while (waitpid(child, NULL, WNOHANG) == 0)
        ;
    sigpending(&waiting);
    struct timespec none = {0};
    sigset_t of_children;
    sigemptyset(&of_children);
    sigaddset(&of_children, SIGCHLD);
    sigtimedwait(&of_children, NULL, &none);
    return sigismember(&waiting, SIGCHLD);
}

// A shell that has waited starts its line anew at a signal, and would lose letters by a late one.
static void no_end_is_told_before_its_signal(void) {
    sigset_t of_children, before;
    sigemptyset(&of_children);
    sigaddset(&of_children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &of_children, &before);
    for (int round = 0; round < 200; round++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        CHECK(signal_came_first(child));
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void ignored_children_leave_nothing(void) {
    signal(SIGCHLD, SIG_IGN);
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(waitpid(child, NULL, 0) == -1 && errno == ECHILD);
    signal(SIGCHLD, SIG_DFL);
}

static void a_group_is_waited_for_and_killed_as_one(void) {
    pid_t first = sleeper(), second = sleeper();
    CHECK(setpgid(first, first) == 0 && setpgid(second, first) == 0);
    CHECK(getpgid(second) == first);
    CHECK(waitpid(0, NULL, WNOHANG) == -1 && errno == ECHILD);
    CHECK(kill(-first, SIGTERM) == 0);
    int status;
    pid_t one = waitpid(-first, &status, 0);
    CHECK((one == first || one == second) && WTERMSIG(status) == SIGTERM);
    CHECK(waitpid(-first, &status, 0) == first + second - one);
}

static void orphans_go_to_the_subreaper(void) {
    int ends[2], told = 0;
    CHECK(pipe(ends) == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            while (getppid() == child) millis(1);
            millis(20);
            _exit(6);
        }
        _exit(write(ends[1], &grandchild, sizeof grandchild) != sizeof grandchild);
    }
    CHECK(read(ends[0], &told, sizeof told) == sizeof told);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(waitpid(told, &status, 0) == told && WEXITSTATUS(status) == 6);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(ends[0]);
    close(ends[1]);
}

static void a_session_has_a_leader(void) {
    pid_t child = fork();
    if (child == 0) {
        if (setsid() != getpid() || getsid(0) != getpid() || getpgrp() != getpid()) _exit(1);
        if (setsid() != -1 || errno != EPERM) _exit(2);
        if (setpgid(0, 0) != -1 || errno != EPERM) _exit(3);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void used_time_is_told(void) {
    pid_t child = fork();
    if (child == 0) {
        struct timespec now;
        do {
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        } while (now.tv_sec == 0 && now.tv_nsec < 50000000);
        _exit(0);
    }
    struct rusage usage;
    int status;
    CHECK(wait4(child, &status, 0, &usage) == child && status == 0);
    long micros = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L +
                  usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    CHECK(micros >= 40000 && micros < 20000000);
    CHECK(getrusage(RUSAGE_CHILDREN, &usage) == 0);
    CHECK(usage.ru_utime.tv_sec > 0 || usage.ru_utime.tv_usec > 0 || usage.ru_stime.tv_usec > 0);
}

static void a_process_has_a_descriptor(void) {
    pid_t child = sleeper();
    int fd = syscall(SYS_pidfd_open, child, 0);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    CHECK(poll(&ready, 1, 0) == 0);
    CHECK(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0);
    CHECK(poll(&ready, 1, 5000) == 1 && ready.revents == POLLIN);
    siginfo_t info = {0};
    CHECK(waitid(3 /* P_PIDFD */, fd, &info, WEXITED) == 0);
    CHECK(info.si_pid == child && info.si_code == CLD_KILLED && info.si_status == SIGTERM);
    CHECK(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == -1 && errno == ESRCH);
    close(fd);
}

static void a_pidfd_that_may_not_block_is_not_waited_for(void) {
    pid_t child = sleeper();
    siginfo_t info = {0};
    int fd = syscall(SYS_pidfd_open, child, O_NONBLOCK);
    CHECK(fd >= 0 && waitid(P_PIDFD, fd, &info, WEXITED) == -1 && errno == EAGAIN);
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0);
    kill(child, SIGKILL);
    CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1) == 1);
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED) == 0 && info.si_pid == child);
    close(fd);
}

static void waitid_refuses_what_means_nothing(void) {
    siginfo_t info;
    CHECK(waitid(P_PID, 0, &info, WEXITED) == -1 && errno == EINVAL);
    CHECK(waitid(P_PID, -1, &info, WEXITED) == -1 && errno == EINVAL);
    CHECK(waitid(P_PGID, -1, &info, WEXITED) == -1 && errno == EINVAL);
    CHECK(waitid(P_PIDFD, -1, &info, WEXITED) == -1 && errno == EINVAL);
    CHECK(waitid(P_PIDFD, 999, &info, WEXITED) == -1 && errno == EBADF);
    CHECK(waitid(P_PIDFD, 0, &info, WEXITED) == -1 && errno == EBADF);
    CHECK(waitid(P_ALL, 0, &info, 0) == -1 && errno == EINVAL);
    CHECK(waitid(P_ALL, 0, &info, WEXITED | 0x10000) == -1 && errno == EINVAL);
    CHECK(waitid(9, 0, &info, WEXITED) == -1 && errno == EINVAL);
}

int main(void) {
    TEST(without_children_there_is_nothing_to_wait_for);
    TEST(a_look_does_not_block);
    TEST(stops_and_continuations_are_reported);
    TEST(waitid_can_leave_the_child_to_be_waited_for);
    TEST(the_parent_gets_a_signal);
    TEST(no_end_is_told_before_its_signal);
    TEST(ignored_children_leave_nothing);
    TEST(a_group_is_waited_for_and_killed_as_one);
    TEST(orphans_go_to_the_subreaper);
    TEST(a_session_has_a_leader);
    TEST(used_time_is_told);
    TEST(a_process_has_a_descriptor);
    TEST(a_pidfd_that_may_not_block_is_not_waited_for);
    TEST(waitid_refuses_what_means_nothing);
    return check_status();
}
