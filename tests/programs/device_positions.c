// What lseek(2) answers where there are no positions: devices and descriptors of events are
// always at their start, others refuse.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "check.h"

static const char *const DEVICES[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
enum { COUNT = sizeof DEVICES / sizeof *DEVICES };

static void every_seek_ends_at_the_start(void) {
    static const int WHENCE[] = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE};
    for (int i = 0; i < COUNT; i++) {
        int fd = open(DEVICES[i], O_RDWR);
        CHECK(fd >= 0);
        for (int j = 0; j < 5; j++) {
            CHECK(lseek(fd, 4096, WHENCE[j]) == 0);
            CHECK(lseek(fd, -1, WHENCE[j]) == 0);
        }
        CHECK(lseek(fd, 0, 5) == -1 && errno == EINVAL);
        CHECK(lseek(fd, 0, -1) == -1 && errno == EINVAL);
        close(fd);
    }
}

static void reads_and_writes_do_not_move(void) {
    char bytes[100];
    for (int i = 0; i < COUNT; i++) {
        int fd = open(DEVICES[i], O_RDWR | O_APPEND);
        ssize_t expected = i == 0 ? 0 : sizeof bytes;
        CHECK(read(fd, bytes, sizeof bytes) == expected);
        CHECK(pread(fd, bytes, sizeof bytes, 1000) == expected);
        if (i == 2)
            CHECK(write(fd, bytes, 10) == -1 && errno == ENOSPC);
        else
            CHECK(write(fd, bytes, 10) == 10 && pwrite(fd, bytes, 10, 1000) == 10);
        CHECK(lseek(fd, 0, SEEK_CUR) == 0);
        close(fd);
    }
}

static void seeks_in_descriptors_of_events_do_nothing(void) {
    sigset_t none;
    sigemptyset(&none);
    int fds[] = {eventfd(0, 0), timerfd_create(CLOCK_MONOTONIC, 0), epoll_create1(0),
                 signalfd(-1, &none, 0), inotify_init()};
    for (int i = 0; i < 5; i++) {
        for (int whence = SEEK_SET; whence <= SEEK_HOLE; whence++)
            CHECK(lseek(fds[i], -1, whence) == 0);
        CHECK(lseek(fds[i], 0, 5) == -1 && errno == EINVAL);
        close(fds[i]);
    }
}

static void pipes_and_processes_refuse_seeks(void) {
    int fds[3] = {-1, -1, syscall(SYS_pidfd_open, getpid(), 0)};
    CHECK(pipe(fds) == 0 && fds[2] >= 0);
    for (int i = 0; i < 3; i++) {
        for (int whence = SEEK_SET; whence <= SEEK_HOLE; whence++)
            CHECK(lseek(fds[i], 0, whence) == -1 && errno == ESPIPE);
        CHECK(lseek(fds[i], 0, 5) == -1 && errno == EINVAL);
        close(fds[i]);
    }
}

int main(void) {
    TEST(every_seek_ends_at_the_start);
    TEST(reads_and_writes_do_not_move);
    TEST(seeks_in_descriptors_of_events_do_nothing);
    TEST(pipes_and_processes_refuse_seeks);
    return check_status();
}
