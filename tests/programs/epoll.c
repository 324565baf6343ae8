// epoll: triggers, lifetimes, nesting.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int add(int set, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

static int change(int set, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_MOD, fd, &event);
}

static unsigned events_now(int set) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 0) == 1 ? event.events : 0;
}

static void level_triggered_reports_as_long_as_it_is_true(void) {
    int set = epoll_create1(EPOLL_CLOEXEC), ends[2];
    char byte;
    CHECK(set >= 0 && !pipe(ends) && !add(set, ends[0], EPOLLIN));
    CHECK(events_now(set) == 0 && write(ends[1], "xy", 2) == 2);
    CHECK(events_now(set) == EPOLLIN && events_now(set) == EPOLLIN);
    CHECK(read(ends[0], &byte, 1) == 1 && events_now(set) == EPOLLIN);
    CHECK(read(ends[0], &byte, 1) == 1 && events_now(set) == 0);
    close(ends[1]);
    CHECK(events_now(set) == EPOLLHUP);
    close(ends[0]), close(set);
}

static void edge_triggered_reports_each_change_once(void) {
    int set = epoll_create1(0), ends[2];
    CHECK(!pipe(ends) && !add(set, ends[0], EPOLLIN | EPOLLET));
    CHECK(write(ends[1], "x", 1) == 1 && events_now(set) == EPOLLIN && events_now(set) == 0);
    CHECK(write(ends[1], "y", 1) == 1 && events_now(set) == EPOLLIN && events_now(set) == 0);
    CHECK(!change(set, ends[0], EPOLLIN | EPOLLET) && events_now(set) == EPOLLIN);
    close(ends[0]), close(ends[1]), close(set);
}

static void one_shot_is_silent_until_modified(void) {
    int set = epoll_create1(0), event = eventfd(1, 0);
    CHECK(!add(set, event, EPOLLIN | EPOLLONESHOT));
    CHECK(events_now(set) == EPOLLIN && events_now(set) == 0);
    CHECK(eventfd_write(event, 1) == 0 && events_now(set) == 0);
    CHECK(!change(set, event, EPOLLIN | EPOLLONESHOT));
    CHECK(events_now(set) == EPOLLIN && events_now(set) == 0);
    close(event), close(set);
}

static void wrong_uses_have_their_errors(void) {
    int set = epoll_create1(0), event = eventfd(0, 0), file = open("/proc/self/exe", O_RDONLY);
    struct epoll_event room;
    CHECK(!add(set, event, EPOLLIN));
    CHECK(add(set, event, EPOLLIN) == -1 && errno == EEXIST);
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, event, NULL) == 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, event, NULL) == -1 && errno == ENOENT);
    CHECK(change(set, event, EPOLLIN) == -1 && errno == ENOENT);
    CHECK(file >= 0 && add(set, file, EPOLLIN) == -1 && errno == EPERM);
    CHECK(add(set, set, EPOLLIN) == -1 && errno == EINVAL);
    CHECK(add(event, set, EPOLLIN) == -1 && errno == EINVAL);
    CHECK(add(set, 999, EPOLLIN) == -1 && errno == EBADF);
    CHECK(epoll_wait(set, &room, 0, 0) == -1 && errno == EINVAL);
    CHECK(epoll_wait(event, &room, 1, 0) == -1 && errno == EINVAL);
    CHECK(epoll_create1(1) == -1 && errno == EINVAL);
    CHECK(epoll_create(0) == -1 && errno == EINVAL);
    close(set), close(event), close(file);
}

static void an_entry_lives_as_long_as_its_open_file(void) {
    int set = epoll_create1(0), event = eventfd(1, 0), copy = dup(event);
    CHECK(!add(set, event, EPOLLIN));
    int number = event;
    close(event);
    CHECK(events_now(set) == EPOLLIN);
    close(copy);
    CHECK(events_now(set) == 0);
    int next = eventfd(1, 0);
    CHECK(next == number && !add(set, next, EPOLLIN) && events_now(set) == EPOLLIN);
    close(next), close(set);
}

static void a_set_may_watch_a_set_but_not_in_a_circle(void) {
    int inner = epoll_create1(0), outer = epoll_create1(0), event = eventfd(0, 0);
    CHECK(!add(inner, event, EPOLLIN) && !add(outer, inner, EPOLLIN));
    CHECK(add(inner, outer, EPOLLIN) == -1 && errno == ELOOP);
    CHECK(events_now(outer) == 0 && !eventfd_write(event, 1));
    CHECK(events_now(outer) == EPOLLIN && events_now(inner) == EPOLLIN);
    struct pollfd p = {outer, POLLIN, 0};
    CHECK(poll(&p, 1, 0) == 1);
    eventfd_t value;
    CHECK(!eventfd_read(event, &value) && events_now(outer) == 0 && poll(&p, 1, 0) == 0);
    int chain[8], long_enough = 0;
    for (int i = 0; i < 8; i++) chain[i] = epoll_create1(0);
    for (int i = 1; i < 8; i++)
        if (add(chain[i], chain[i - 1], EPOLLIN)) long_enough = errno == ELOOP;
    CHECK(long_enough);
    for (int i = 0; i < 8; i++) close(chain[i]);
    close(inner), close(outer), close(event);
}

static void *write_later(void *fd) {
    usleep(100 * 1000);
    eventfd_write(*(int *)fd, 1);
    return NULL;
}

static long millis(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void waiting_ends_with_an_event_or_the_time(void) {
    int set = epoll_create1(0), event = eventfd(0, 0);
    struct epoll_event got;
    pthread_t thread;
    long start = millis();
    CHECK(!add(set, event, EPOLLIN) && epoll_wait(set, &got, 1, 50) == 0);
    CHECK(millis() - start >= 49 && millis() - start < 2000);
    pthread_create(&thread, NULL, write_later, &event);
    CHECK(epoll_wait(set, &got, 1, -1) == 1 && got.data.fd == event);
    pthread_join(thread, NULL);
    struct timespec limit = {0, 20000000};
    eventfd_t value;
    eventfd_read(event, &value);
    start = millis();
    CHECK(epoll_pwait2(set, &got, 1, &limit, NULL) == 0 && millis() - start >= 19);
    close(set), close(event);
}

static void on_alarm(int number) { (void)number; }

static void a_signal_ends_waiting_and_the_mask_holds_meanwhile(void) {
    int set = epoll_create1(0);
    struct epoll_event got;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigset_t alarm_only, none;
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    CHECK(epoll_wait(set, &got, 1, -1) == -1 && errno == EINTR);
    sigemptyset(&none), sigemptyset(&alarm_only), sigaddset(&alarm_only, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm_only, NULL);
    raise(SIGALRM);
    CHECK(epoll_wait(set, &got, 1, 10) == 0);
    CHECK(epoll_pwait(set, &got, 1, -1, &none) == -1 && errno == EINTR);
    sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
    close(set);
}

static void a_thousand_files_take_turns(void) {
    enum { FILES = 1000 };
    static struct epoll_event got[FILES];
    static int fds[FILES];
    int set = epoll_create1(0), total = 0, seen[3] = {0};
    for (int i = 0; i < FILES; i++) {
        fds[i] = eventfd(1, EFD_NONBLOCK);
        CHECK(fds[i] >= 0 && !add(set, fds[i], EPOLLIN));
    }
    CHECK(epoll_wait(set, got, FILES, 0) == FILES);
    for (int round = 0; round < 3; round++) {
        CHECK(epoll_wait(set, got, 400, 0) == 400);
        for (int i = 0; i < 400; i++) seen[round] += got[i].data.fd >= 0, total++;
    }
    eventfd_t value;
    for (int i = 40; i < FILES; i++) eventfd_read(fds[i], &value);
    CHECK(epoll_wait(set, got, FILES, 0) == 40);
    eventfd_write(fds[500], 1);
    for (int i = 0; i < 40; i++) eventfd_read(fds[i], &value);
    CHECK(total == 1200 && epoll_wait(set, got, FILES, 0) == 1 && got[0].data.fd == fds[500]);
    for (int i = 0; i < FILES; i++) close(fds[i]);
    close(set);
}

static void a_socket_reports_its_peers_steps(void) {
    int set = epoll_create1(0), pair[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    CHECK(!add(set, pair[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET));
    CHECK(events_now(set) == EPOLLOUT && events_now(set) == 0);
    CHECK(write(pair[1], "x", 1) == 1 && events_now(set) == (EPOLLIN | EPOLLOUT));
    shutdown(pair[1], SHUT_WR);
    CHECK(events_now(set) == (EPOLLIN | EPOLLOUT | EPOLLRDHUP));
    close(pair[1]);
    CHECK(events_now(set) & EPOLLHUP);
    close(pair[0]), close(set);
}

static int shared_set;
static void *wait_once(void *count) {
    struct epoll_event got;
    if (epoll_wait(shared_set, &got, 1, 3000) == 1) __sync_fetch_and_add((int *)count, 1);
    return NULL;
}

static void several_threads_wait_for_one_set(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int events[THREADS], woken = 0;
    shared_set = epoll_create1(0);
    for (int i = 0; i < THREADS; i++) {
        events[i] = eventfd(0, 0);
        CHECK(!add(shared_set, events[i], EPOLLIN | EPOLLET));
        pthread_create(&threads[i], NULL, wait_once, &woken);
    }
    usleep(50 * 1000);
    for (int i = 0; i < THREADS; i++) eventfd_write(events[i], 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL), close(events[i]);
    CHECK(woken == THREADS);
    close(shared_set);
}

int main(void) {
    TEST(level_triggered_reports_as_long_as_it_is_true);
    TEST(edge_triggered_reports_each_change_once);
    TEST(one_shot_is_silent_until_modified);
    TEST(wrong_uses_have_their_errors);
    TEST(an_entry_lives_as_long_as_its_open_file);
    TEST(a_set_may_watch_a_set_but_not_in_a_circle);
    TEST(waiting_ends_with_an_event_or_the_time);
    TEST(a_signal_ends_waiting_and_the_mask_holds_meanwhile);
    TEST(a_thousand_files_take_turns);
    TEST(a_socket_reports_its_peers_steps);
    TEST(several_threads_wait_for_one_set);
    return check_status();
}
