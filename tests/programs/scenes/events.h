// What waits, tells and rings: epoll, poll, timers, signals, inotify.
#pragma once
#include "scene.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

static int watched(void) {
    int fds[20], count = 0, epoll = epoll_create1(0), result = -1;
    if (epoll < 0) return -1;
    for (; count < 20; count++) {
        if ((fds[count] = eventfd(1, 0)) < 0) goto out;
        struct epoll_event event = {.events = EPOLLIN};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[count], &event) < 0) {
            give_up(fds[count]);
            goto out;
        }
    }
    struct epoll_event events[20];
    result = epoll_wait(epoll, events, 20, 0) == 20 ? 0 : -1;
out:
    while (count > 0) give_up(fds[--count]);
    give_up(epoll);
    return result;
}

static int polled(void) {
    static struct pollfd all[600];
    for (int at = 0; at < 600; at++) all[at] = (struct pollfd){0, POLLNVAL, 0};
    if (poll(all, 600, 0) < 0) return -1;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(0, &set);
    struct timeval now = {0, 0};
    return select(1, &set, NULL, NULL, &now) < 0 ? -1 : 0;
}

static int clocks(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    if (fd < 0) return -1;
    struct itimerspec soon = {.it_value = {.tv_sec = 100}};
    if (timerfd_settime(fd, 0, &soon, NULL) < 0) return give_up(fd);
    close(fd);
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    int id;
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &none, &id) < 0) return -1;
    int result = (int)syscall(SYS_timer_settime, id, 0, &soon, NULL);
    int why = errno;
    syscall(SYS_timer_delete, id);
    errno = why;
    return result;
}

static int signals(void) {
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    int fd = signalfd(-1, &all, SFD_NONBLOCK), result = fd < 0 ? -1 : 0;
    for (int count = 0; count < 3 && !result; count++)
        result = sigqueue(getpid(), SIGRTMIN + 5, (union sigval){.sival_int = 1});
    if (!result) result = kill(getpid(), SIGUSR1);
    int why = errno;
    struct timespec now = {0, 0};
    while (sigtimedwait(&all, NULL, &now) > 0) {
    }
    errno = why;
    give_up(fd);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return result;
}

static int notices(void) {
    int fd = inotify_init1(IN_NONBLOCK);
    if (fd < 0) return -1;
    if (inotify_add_watch(fd, "/tmp", IN_ALL_EVENTS) < 0) return give_up(fd);
    int made = open("/tmp/noticed", O_CREAT | O_RDWR, 0600);
    give_up(made);
    forget(unlink, "/tmp/noticed");
    // An event that found no memory is an overflow, no error.
    int result = made >= 0 && read(fd, buffer, sizeof buffer) > 0 ? 0 : -1;
    give_up(fd);
    return result;
}

// An opening that is to send signals gets an object for them.
static int signals_of_readiness(void) {
    int ends[2];
    if (pipe(ends) < 0) return -1;
    int result = fcntl(ends[0], F_SETSIG, SIGURG);
    if (!result) result = fcntl(ends[0], F_SETOWN, getpid());
    if (!result) result = fcntl(ends[0], F_SETFL, O_ASYNC);
    if (!result) result = write(ends[1], "x", 1) == 1 ? 0 : -1;
    return close_both(ends, result);
}
