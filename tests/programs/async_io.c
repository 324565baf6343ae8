// Signals of readiness: O_ASYNC, and who gets which (F_SETOWN, F_SETOWN_EX, F_SETSIG).
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const struct timespec MOMENT = {5, 0}, NO_TIME;
static sigset_t all;

/// Waits for one of the blocked signals; its number, or -1.
static int next(siginfo_t *info) { return sigtimedwait(&all, info, &MOMENT); }
static int is_quiet(void) { return sigtimedwait(&all, NULL, &NO_TIME) == -1 && errno == EAGAIN; }

static void make_async(int fd) {
    CHECK(!fcntl(fd, F_SETOWN, getpid()));
    CHECK(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
}

static void a_pipe_with_something_to_read_sends_sigio(void) {
    int ends[2];
    siginfo_t info;
    CHECK(!pipe(ends));
    make_async(ends[0]);
    CHECK(fcntl(ends[0], F_GETFL) & O_ASYNC && is_quiet());
    CHECK(write(ends[1], "x", 1) == 1 && next(&info) == SIGIO && info.si_code == SI_KERNEL);
    CHECK(info.si_fd == 0 && is_quiet());
    CHECK(!fcntl(ends[0], F_SETFL, 0) && write(ends[1], "x", 1) == 1 && is_quiet());
    close(ends[0]), close(ends[1]);
}

static void a_chosen_signal_says_which_descriptor_and_why(void) {
    int ends[2];
    siginfo_t info;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    make_async(ends[0]);
    CHECK(fcntl(ends[0], F_GETSIG) == 0 && !fcntl(ends[0], F_SETSIG, SIGRTMIN));
    CHECK(fcntl(ends[0], F_GETSIG) == SIGRTMIN);
    CHECK(write(ends[1], "x", 1) == 1 && next(&info) == SIGRTMIN && info.si_fd == ends[0]);
    CHECK(info.si_code == POLL_IN && info.si_band == (POLLIN | POLLRDNORM) && is_quiet());
    CHECK(!fcntl(ends[0], F_SETSIG, SIGIO));
    CHECK(write(ends[1], "x", 1) == 1 && next(&info) == SIGIO && info.si_fd == ends[0] && info.si_code == POLL_IN);
    CHECK(!fcntl(ends[0], F_SETSIG, SIGCHLD));
    CHECK(write(ends[1], "x", 1) == 1 && next(&info) == SIGCHLD && info.si_code == SI_SIGIO);
    CHECK(!fcntl(ends[0], F_SETSIG, SIGRTMIN) && !close(ends[1]));
    CHECK(next(&info) == SIGRTMIN && info.si_code == POLL_HUP && info.si_band & POLLHUP);
    CHECK(fcntl(ends[0], F_SETSIG, 65) == -1 && errno == EINVAL);
    CHECK(fcntl(ends[0], F_SETSIG, -1) == -1 && errno == EINVAL);
    CHECK(!fcntl(ends[0], F_SETSIG, 0) && fcntl(ends[0], F_GETSIG) == 0);
    close(ends[0]);
}

static void a_pipe_with_room_again_sends_sigio_to_its_writer(void) {
    static char many[1 << 16];
    int ends[2];
    siginfo_t info;
    CHECK(!pipe2(ends, O_NONBLOCK));
    while (write(ends[1], many, sizeof many) > 0) {
    }
    make_async(ends[1]);
    CHECK(!fcntl(ends[1], F_SETSIG, SIGRTMIN) && is_quiet());
    CHECK(read(ends[0], many, sizeof many) > 0 && next(&info) == SIGRTMIN && info.si_fd == ends[1]);
    CHECK(info.si_code == POLL_OUT && info.si_band == (POLLOUT | POLLWRNORM | POLLWRBAND));
    while (!is_quiet()) {
    }
    close(ends[0]), close(ends[1]);
}

static void an_owner_is_a_thread_a_process_or_a_group(void) {
    int ends[2];
    struct f_owner_ex owner = {7, 7};
    CHECK(!pipe(ends) && fcntl(ends[0], F_GETOWN) == 0);
    CHECK(!fcntl(ends[0], F_GETOWN_EX, &owner) && owner.pid == 0);
    CHECK(!fcntl(ends[0], F_SETOWN, getpid()) && fcntl(ends[0], F_GETOWN) == getpid());
    CHECK(!fcntl(ends[0], F_GETOWN_EX, &owner) && owner.type == F_OWNER_PID && owner.pid == getpid());
    CHECK(!fcntl(ends[0], F_SETOWN, -getpgrp()) && !fcntl(ends[0], F_GETOWN_EX, &owner));
    CHECK(owner.type == F_OWNER_PGRP && owner.pid == getpgrp());
    CHECK(fcntl(ends[0], F_GETOWN) == -getpgrp());
    owner = (struct f_owner_ex){F_OWNER_TID, gettid()};
    CHECK(!fcntl(ends[0], F_SETOWN_EX, &owner) && !fcntl(ends[0], F_GETOWN_EX, &owner));
    CHECK(owner.type == F_OWNER_TID && owner.pid == gettid());
    owner.pid = 0;
    CHECK(!fcntl(ends[0], F_SETOWN_EX, &owner) && fcntl(ends[0], F_GETOWN) == 0);
    close(ends[0]), close(ends[1]);
}

static void owners_that_do_not_exist_are_refused(void) {
    int ends[2];
    CHECK(!pipe(ends));
    struct f_owner_ex owner = {F_OWNER_PID, 1 << 22};
    CHECK(fcntl(ends[0], F_SETOWN, 1 << 22) == -1 && errno == ESRCH);
    CHECK(fcntl(ends[0], F_SETOWN, -(1 << 22)) == -1 && errno == ESRCH);
    CHECK(fcntl(ends[0], F_SETOWN, 1 << 31) == -1 && errno == EINVAL);
    CHECK(fcntl(ends[0], F_SETOWN_EX, &owner) == -1 && errno == ESRCH);
    owner.type = 3;
    CHECK(fcntl(ends[0], F_SETOWN_EX, &owner) == -1 && errno == EINVAL);
    CHECK(fcntl(ends[0], F_SETOWN_EX, NULL) == -1 && errno == EFAULT);
    int child = fork();
    if (!child) pause();
    CHECK(child > 0 && !fcntl(ends[0], F_SETOWN, child) && fcntl(ends[0], F_GETOWN) == child);
    CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child && fcntl(ends[0], F_GETOWN) == 0);
    while (!is_quiet()) {
    }
    close(ends[0]), close(ends[1]);
}

static void *thread(void *arg) {
    siginfo_t info;
    *(volatile int *)arg = gettid();
    return (void *)(long)next(&info);
}

static void a_thread_alone_may_own_it(void) {
    int ends[2];
    volatile int id = 0;
    void *got;
    pthread_t other;
    CHECK(!pipe(ends) && !pthread_create(&other, NULL, thread, (void *)&id));
    while (!id) sched_yield();
    struct f_owner_ex owner = {F_OWNER_TID, id};
    CHECK(!fcntl(ends[0], F_SETOWN_EX, &owner) && !fcntl(ends[0], F_SETFL, O_ASYNC));
    CHECK(write(ends[1], "x", 1) == 1 && !pthread_join(other, &got) && (long)got == SIGIO && is_quiet());
    close(ends[0]), close(ends[1]);
}

static void a_descriptor_that_was_copied_keeps_its_owner_and_number(void) {
    int ends[2];
    siginfo_t info;
    CHECK(!pipe(ends));
    make_async(ends[0]);
    CHECK(!fcntl(ends[0], F_SETSIG, SIGRTMIN));
    int copy = dup(ends[0]);
    CHECK(fcntl(copy, F_GETOWN) == getpid() && fcntl(copy, F_GETSIG) == SIGRTMIN && !close(ends[0]));
    CHECK(write(ends[1], "x", 1) == 1 && next(&info) == SIGRTMIN && info.si_fd == ends[0]);
    CHECK(!close(copy) && is_quiet());
    close(ends[1]);
}

static void what_others_may_not_be_sent_is_not_sent(void) {
    int ends[2], status;
    if (geteuid() != 0) return;
    CHECK(!pipe(ends));
    int parent = getpid(), child = fork();
    if (!child) {
        // Ids of the kernel's task alone, as glibc would tell other threads.
        if (syscall(SYS_setresuid, 4242, 4242, 4242)) _exit(1);
        _exit(fcntl(ends[0], F_SETOWN, parent) || fcntl(ends[0], F_SETFL, O_ASYNC));
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && next(NULL) == SIGCHLD);
    CHECK(write(ends[1], "x", 1) == 1 && is_quiet());
    CHECK(!fcntl(ends[0], F_SETOWN, parent) && write(ends[1], "x", 1) == 1 && next(NULL) == SIGIO);
    close(ends[0]), close(ends[1]);
}

static void a_full_queue_leaves_a_plain_sigio(void) {
    int ends[2];
    struct rlimit old;
    siginfo_t info;
    CHECK(!pipe(ends) && !getrlimit(RLIMIT_SIGPENDING, &old));
    make_async(ends[0]);
    CHECK(!fcntl(ends[0], F_SETSIG, SIGRTMIN));
    CHECK(!setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){0, old.rlim_max}));
    CHECK(write(ends[1], "x", 1) == 1 && next(&info) == SIGIO);
    CHECK(!setrlimit(RLIMIT_SIGPENDING, &old) && is_quiet());
    close(ends[0]), close(ends[1]);
}

static void ioctls_say_the_same(void) {
    int ends[2], pipes[2], on = 1, off = 0, who = getpid(), group = -getpgrp(), owner = 0;
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    CHECK(!ioctl(ends[0], FIOSETOWN, &who) && !ioctl(ends[0], FIOGETOWN, &owner) && owner == who);
    CHECK(!ioctl(ends[0], SIOCSPGRP, &group) && !ioctl(ends[0], SIOCGPGRP, &owner) && owner == group);
    CHECK(fcntl(ends[0], F_GETOWN) == group && !ioctl(ends[0], SIOCSPGRP, &who));
    CHECK(!ioctl(ends[0], FIOASYNC, &on) && fcntl(ends[0], F_GETFL) & O_ASYNC);
    CHECK(write(ends[1], "x", 1) == 1 && next(NULL) == SIGIO);
    CHECK(!ioctl(ends[0], FIOASYNC, &off) && !(fcntl(ends[0], F_GETFL) & O_ASYNC));
    CHECK(write(ends[1], "x", 1) == 1 && is_quiet());
    who = 1 << 22;
    CHECK(ioctl(ends[0], FIOSETOWN, &who) == -1 && errno == ESRCH);
    CHECK(!pipe(pipes) && ioctl(pipes[0], SIOCGPGRP, &owner) == -1 && errno == ENOTTY);
    int event = eventfd(0, 0);
    CHECK(ioctl(event, FIOASYNC, &on) == -1 && errno == ENOTTY);
    CHECK(!fcntl(event, F_SETFL, O_ASYNC) && !close(event));
    close(ends[0]), close(ends[1]), close(pipes[0]), close(pipes[1]);
}

static void a_terminal_tells_its_owner(void) {
    siginfo_t info;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && !grantpt(master) && !unlockpt(master));
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0 && !fcntl(slave, F_SETSIG, SIGRTMIN) && fcntl(slave, F_GETOWN) == 0);
    CHECK(!fcntl(slave, F_SETFL, O_ASYNC) && fcntl(slave, F_GETOWN) == getpid());
    CHECK(write(master, "line\n", 5) == 5 && next(&info) == SIGRTMIN && info.si_code == POLL_IN);
    close(slave), close(master);
    while (!is_quiet()) {
    }
}

static void inotify_tells_its_owner(void) {
    int fd = inotify_init();
    CHECK(fd >= 0 && inotify_add_watch(fd, "/tmp", IN_CREATE) > 0);
    make_async(fd);
    int file = open("/tmp/async-io", O_CREAT | O_RDWR, 0600);
    CHECK(file >= 0 && next(NULL) == SIGIO && !close(file) && !unlink("/tmp/async-io"));
    close(fd);
    CHECK(is_quiet());
}

int main(void) {
    sigemptyset(&all);
    sigaddset(&all, SIGIO), sigaddset(&all, SIGCHLD), sigaddset(&all, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &all, NULL);
    TEST(a_pipe_with_something_to_read_sends_sigio);
    TEST(a_chosen_signal_says_which_descriptor_and_why);
    TEST(a_pipe_with_room_again_sends_sigio_to_its_writer);
    TEST(an_owner_is_a_thread_a_process_or_a_group);
    TEST(owners_that_do_not_exist_are_refused);
    TEST(a_thread_alone_may_own_it);
    TEST(a_descriptor_that_was_copied_keeps_its_owner_and_number);
    TEST(what_others_may_not_be_sent_is_not_sent);
    TEST(a_full_queue_leaves_a_plain_sigio);
    TEST(ioctls_say_the_same);
    TEST(a_terminal_tells_its_owner);
    TEST(inotify_tells_its_owner);
    return check_status();
}
