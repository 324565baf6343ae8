// eventfd, timerfd, signalfd, poll and select.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static short ready(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    poll(&p, 1, 0);
    return p.revents;
}

static void an_eventfd_adds_up(void) {
    uint64_t value;
    int fd = eventfd(3, EFD_NONBLOCK);
    CHECK(fd >= 0 && !eventfd_write(fd, 4) && !eventfd_read(fd, &value) && value == 7);
    CHECK(eventfd_read(fd, &value) == -1 && errno == EAGAIN && ready(fd) == POLLOUT);
    CHECK(!eventfd_write(fd, UINT64_MAX - 1) && ready(fd) == POLLIN);
    CHECK(eventfd_write(fd, 1) == -1 && errno == EAGAIN);
    value = UINT64_MAX;
    CHECK(write(fd, &value, 8) == -1 && errno == EINVAL);
    CHECK(write(fd, &value, 4) == -1 && errno == EINVAL);
    close(fd);
    CHECK(eventfd(0, 0x10000) == -1 && errno == EINVAL);
}

static void a_semaphore_gives_one_at_a_time(void) {
    eventfd_t value;
    int fd = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    CHECK(!eventfd_read(fd, &value) && value == 1 && !eventfd_read(fd, &value) && value == 1);
    CHECK(eventfd_read(fd, &value) == -1 && errno == EAGAIN);
    close(fd);
}

static void *add_one(void *fd) {
    usleep(50 * 1000);
    eventfd_write(*(int *)fd, 1);
    return NULL;
}

static void a_reader_waits_for_a_writer(void) {
    eventfd_t value = 0;
    pthread_t thread;
    int fd = eventfd(0, 0);
    pthread_create(&thread, NULL, add_one, &fd);
    CHECK(!eventfd_read(fd, &value) && value == 1);
    pthread_join(thread, NULL);
    close(fd);
}

static void a_timer_counts_its_expirations(void) {
    uint64_t count;
    struct itimerspec every = {{0, 20000000}, {0, 20000000}}, left;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    CHECK(fd >= 0 && read(fd, &count, 8) == -1 && errno == EAGAIN && ready(fd) == 0);
    CHECK(!timerfd_settime(fd, 0, &every, NULL) && !timerfd_gettime(fd, &left));
    CHECK(left.it_interval.tv_nsec == 20000000 && left.it_value.tv_nsec <= 20000000);
    usleep(110 * 1000);
    CHECK(ready(fd) == POLLIN && read(fd, &count, 8) == 8 && count >= 5 && count < 100);
    struct pollfd p = {fd, POLLIN, 0};
    CHECK(poll(&p, 1, 1000) == 1 && read(fd, &count, 8) == 8 && count >= 1);
    struct itimerspec never = {{0, 0}, {0, 0}};
    CHECK(!timerfd_settime(fd, 0, &never, &left) && left.it_interval.tv_nsec == 20000000);
    usleep(30 * 1000);
    CHECK(ready(fd) == 0);
    close(fd);
}

static void a_timer_knows_absolute_times(void) {
    uint64_t count;
    struct timespec now;
    for (int i = 0; i < 2; i++) {
        int clock = i ? CLOCK_REALTIME : CLOCK_MONOTONIC, fd = timerfd_create(clock, 0);
        clock_gettime(clock, &now);
        long nanos = now.tv_nsec + 50000000;
        struct itimerspec then = {{0, 0}, {now.tv_sec + nanos / 1000000000, nanos % 1000000000}};
        CHECK(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &then, NULL));
        CHECK(read(fd, &count, 8) == 8 && count == 1);
        then.it_value = (struct timespec){0, 1};
        CHECK(!timerfd_settime(fd, TFD_TIMER_ABSTIME, &then, NULL));
        CHECK(read(fd, &count, 8) == 8 && count == 1);
        close(fd);
    }
    CHECK(timerfd_create(99, 0) == -1 && errno == EINVAL);
}

static void signals_come_as_records(void) {
    struct signalfd_siginfo info[2];
    sigset_t wanted;
    sigemptyset(&wanted), sigaddset(&wanted, SIGUSR1), sigaddset(&wanted, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    int fd = signalfd(-1, &wanted, SFD_NONBLOCK);
    CHECK(fd >= 0 && read(fd, info, sizeof info) == -1 && errno == EAGAIN && ready(fd) == 0);
    union sigval value = {.sival_int = 42};
    CHECK(!kill(getpid(), SIGUSR1) && !sigqueue(getpid(), SIGRTMIN, value));
    CHECK(ready(fd) == POLLIN && read(fd, info, sizeof info) == sizeof info);
    CHECK(info[0].ssi_signo == SIGUSR1 && info[0].ssi_pid == (uint32_t)getpid());
    CHECK(info[1].ssi_signo == (uint32_t)SIGRTMIN && info[1].ssi_int == 42 && ready(fd) == 0);
    sigprocmask(SIG_UNBLOCK, &wanted, NULL);
    close(fd);
}

static void poll_knows_bad_and_negative_numbers(void) {
    int fd = eventfd(0, 0);
    struct pollfd p[3] = {{fd, POLLIN | POLLOUT, 0}, {-5, POLLIN, 7}, {999, POLLIN, 0}};
    CHECK(poll(p, 3, -1) == 2 && p[0].revents == POLLOUT && p[1].revents == 0);
    CHECK(p[2].revents == POLLNVAL && poll(NULL, 0, 10) == 0);
    close(fd);
}

static void poll_waits(void) {
    pthread_t thread;
    int fds[2] = {eventfd(0, 0), eventfd(0, 0)};
    struct pollfd p[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    struct timespec limit = {0, 20000000};
    CHECK(ppoll(p, 2, &limit, NULL) == 0);
    pthread_create(&thread, NULL, add_one, &fds[1]);
    CHECK(poll(p, 2, 3000) == 1 && p[1].revents == POLLIN && p[0].revents == 0);
    pthread_join(thread, NULL);
    close(fds[0]), close(fds[1]);
}

static void select_fills_its_sets(void) {
    fd_set in, out;
    struct timeval limit = {0, 20000};
    int empty = eventfd(0, 0), full = eventfd(1, 0), high = fcntl(full, F_DUPFD, 200);
    FD_ZERO(&in); FD_SET(empty, &in); FD_SET(high, &in);
    FD_ZERO(&out); FD_SET(empty, &out);
    CHECK(select(high + 1, &in, &out, NULL, NULL) == 2);
    CHECK(!FD_ISSET(empty, &in) && FD_ISSET(high, &in) && FD_ISSET(empty, &out));
    FD_ZERO(&in); FD_SET(empty, &in);
    CHECK(select(empty + 1, &in, NULL, NULL, &limit) == 0 && !FD_ISSET(empty, &in));
    FD_SET(50, &in);
    CHECK(select(51, &in, NULL, NULL, NULL) == -1 && errno == EBADF);
    CHECK(select(-1, NULL, NULL, NULL, NULL) == -1 && errno == EINVAL);
    close(empty), close(full), close(high);
}

static volatile sig_atomic_t caught;
static void catch(int number) { caught = number; }

static void ppoll_and_pselect_exchange_the_mask(void) {
    sigset_t usr1, none;
    struct timespec limit = {5, 0};
    signal(SIGUSR1, catch);
    sigemptyset(&none), sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    raise(SIGUSR1);
    CHECK(caught == 0 && ppoll(NULL, 0, &limit, &none) == -1 && errno == EINTR && caught);
    caught = 0;
    raise(SIGUSR1);
    CHECK(caught == 0 && pselect(0, NULL, NULL, NULL, &limit, &none) == -1 && errno == EINTR);
    CHECK(caught == SIGUSR1);
    raise(SIGUSR1), caught = 0;
    sigprocmask(SIG_BLOCK, NULL, &none);
    CHECK(sigismember(&none, SIGUSR1) && !caught);
    sigprocmask(SIG_UNBLOCK, &usr1, NULL);
}

int main(void) {
    TEST(an_eventfd_adds_up);
    TEST(a_semaphore_gives_one_at_a_time);
    TEST(a_reader_waits_for_a_writer);
    TEST(a_timer_counts_its_expirations);
    TEST(a_timer_knows_absolute_times);
    TEST(signals_come_as_records);
    TEST(poll_knows_bad_and_negative_numbers);
    TEST(poll_waits);
    TEST(select_fills_its_sets);
    TEST(ppoll_and_pselect_exchange_the_mask);
    return check_status();
}
