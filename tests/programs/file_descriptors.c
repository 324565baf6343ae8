// Descriptors: dup, fcntl, locks, close_range, inotify, FIFOs, /proc/self.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/file_fds.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static void duplicates_share_the_position(void) {
    int fd = open("f", O_CREAT | O_RDWR | O_TRUNC, 0644), copy = dup(fd);
    CHECK(copy > fd && write(fd, "abc", 3) == 3 && lseek(copy, 0, SEEK_CUR) == 3);
    CHECK(fcntl(copy, F_SETFL, O_APPEND) == 0 && (fcntl(fd, F_GETFL) & O_APPEND));
    CHECK(dup2(fd, copy) == copy && dup2(fd, fd) == fd && fails(dup2(99, fd), EBADF));
    CHECK(fails(dup3(fd, fd, 0), EINVAL) && dup3(fd, copy, O_CLOEXEC) == copy);
    CHECK(fcntl(copy, F_GETFD) == FD_CLOEXEC && fcntl(fd, F_GETFD) == 0);
    CHECK(fcntl(copy, F_SETFD, 0) == 0 && fcntl(copy, F_GETFD) == 0);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    CHECK(high >= 50 && fcntl(high, F_GETFD) == FD_CLOEXEC);
    CHECK(close(fd) == 0 && close(copy) == 0 && close(high) == 0 && fails(close(fd), EBADF));
}

static void the_lowest_free_number_is_given(void) {
    int a = open("/dev/null", O_RDONLY), b = open("/dev/null", O_RDONLY);
    CHECK(b == a + 1 && close(a) == 0 && open("/dev/null", O_RDONLY) == a);
    CHECK(close(a) == 0 && close(b) == 0);
}

static void a_range_of_numbers_is_closed(void) {
    for (int fd = 60; fd < 70; fd++) CHECK(dup2(0, fd) == fd);
    CHECK(syscall(SYS_close_range, 62, 65, 0) == 0);
    CHECK(fcntl(61, F_GETFD) == 0 && fails(fcntl(63, F_GETFD), EBADF) && fcntl(66, F_GETFD) == 0);
    CHECK(syscall(SYS_close_range, 60, ~0U, 1 << 2) == 0 && fcntl(66, F_GETFD) == FD_CLOEXEC);
    CHECK(syscall(SYS_close_range, 60, ~0U, 0) == 0 && fails(fcntl(66, F_GETFD), EBADF));
    CHECK(fails(syscall(SYS_close_range, 5, 4, 0), EINVAL));
}

static struct flock range(short kind, off_t start, off_t len) {
    return (struct flock){.l_type = kind, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
}

static void record_locks_keep_processes_apart(void) {
    int fd = open("locked", O_CREAT | O_RDWR, 0644);
    struct flock mine = range(F_WRLCK, 0, 100);
    CHECK(fcntl(fd, F_SETLK, &mine) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock want = range(F_RDLCK, 50, 10);
        if (fcntl(fd, F_GETLK, &want) != 0 || want.l_type != F_WRLCK) _exit(1);
        if (want.l_pid != getppid() || want.l_start != 0 || want.l_len != 100) _exit(2);
        want = range(F_RDLCK, 50, 10);
        if (!fails(fcntl(fd, F_SETLK, &want), EAGAIN)) _exit(3);
        want = range(F_WRLCK, 100, 0);
        if (fcntl(fd, F_SETLK, &want) != 0) _exit(4);
        want = range(F_WRLCK, 0, 10);
        _exit(fcntl(fd, F_SETLKW, &want) == 0 ? 0 : 5);
    }
    usleep(50000);
    struct flock hole = range(F_UNLCK, 0, 100);
    CHECK(fcntl(fd, F_SETLK, &hole) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct flock all = range(F_WRLCK, 0, 0);
    CHECK(fcntl(fd, F_SETLK, &all) == 0);
    close(fd);
}

static void a_circle_of_waiting_processes_is_refused(void) {
    int fd = open("circle", O_CREAT | O_RDWR, 0644), ends[2];
    struct flock first = range(F_WRLCK, 0, 1), second = range(F_WRLCK, 1, 1);
    CHECK(pipe(ends) == 0 && fcntl(fd, F_SETLK, &first) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (fcntl(fd, F_SETLK, &second) != 0 || write(ends[1], "x", 1) != 1) _exit(1);
        first = range(F_WRLCK, 0, 1);
        _exit(fcntl(fd, F_SETLKW, &first) == 0 ? 0 : 2);
    }
    char byte;
    CHECK(read(ends[0], &byte, 1) == 1);
    usleep(100000);
    CHECK(fails(fcntl(fd, F_SETLKW, &second), EDEADLK));
    close(fd);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
}

static void locks_of_openings_keep_descriptors_apart(void) {
    int a = open("ofd", O_CREAT | O_RDWR, 0644), b = open("ofd", O_RDWR);
    struct flock want = range(F_WRLCK, 0, 0);
    CHECK(fcntl(a, F_OFD_SETLK, &want) == 0 && fails(fcntl(b, F_OFD_SETLK, &want), EAGAIN));
    CHECK(flock(a, LOCK_EX) == 0 && fails(flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK));
    CHECK(flock(a, LOCK_SH) == 0 && flock(b, LOCK_SH | LOCK_NB) == 0);
    CHECK(close(a) == 0 && fcntl(b, F_OFD_SETLK, &want) == 0 && flock(b, LOCK_EX | LOCK_NB) == 0);
    close(b);
}

static void a_fifo_joins_two_programs(void) {
    CHECK(mkfifo("fifo", 0600) == 0);
    CHECK(fails(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO));
    pid_t child = fork();
    if (child == 0) {
        int out = open("fifo", O_WRONLY);
        _exit(write(out, "through", 7) == 7 ? 0 : 1);
    }
    int in = open("fifo", O_RDONLY), status;
    char text[16] = {0};
    CHECK(in >= 0 && read(in, text, 16) == 7 && !strcmp(text, "through") && read(in, text, 16) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct stat st;
    CHECK(fstat(in, &st) == 0 && S_ISFIFO(st.st_mode));
    close(in);
    CHECK(unlink("fifo") == 0);
}

static void changes_of_a_directory_are_told(void) {
    char buffer[4096] __attribute__((aligned(8)));
    int watcher = inotify_init1(IN_NONBLOCK);
    CHECK(mkdir("watched", 0755) == 0);
    int id = inotify_add_watch(watcher, "watched", IN_CREATE | IN_CLOSE_WRITE | IN_MOVE | IN_DELETE);
    CHECK(id > 0 && fails(read(watcher, buffer, sizeof buffer), EAGAIN));
    int fd = open("watched/a", O_CREAT | O_WRONLY, 0644);
    CHECK(write(fd, "x", 1) == 1 && close(fd) == 0);
    CHECK(rename("watched/a", "watched/b") == 0 && unlink("watched/b") == 0);
    ssize_t count = read(watcher, buffer, sizeof buffer);
    uint32_t want[] = {IN_CREATE, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_DELETE};
    ssize_t at = 0;
    for (int i = 0; i < 5; i++) {
        struct inotify_event *event = (void *)(buffer + at);
        CHECK(at < count && event->mask == want[i] && event->wd == id);
        CHECK(!strcmp(event->name, i < 3 ? "a" : "b"));
        at += sizeof *event + event->len;
    }
    CHECK(at == count && fails(read(watcher, buffer, 4), EAGAIN));
    CHECK(inotify_rm_watch(watcher, id) == 0 && fails(inotify_rm_watch(watcher, id), EINVAL));
    CHECK(rmdir("watched") == 0);
    close(watcher);
}

static void what_waits_of_events_is_counted_and_listings_are_reads(void) {
    char buffer[4096] __attribute__((aligned(8)));
    int watcher = inotify_init1(IN_NONBLOCK), waiting = -1;
    CHECK(mkdir("watched", 0755) == 0 && ioctl(watcher, FIONREAD, &waiting) == 0 && waiting == 0);
    CHECK(inotify_add_watch(watcher, "watched", IN_CREATE | IN_ACCESS) > 0);
    close(open("watched/name", O_CREAT | O_WRONLY, 0644));
    CHECK(ioctl(watcher, FIONREAD, &waiting) == 0 && waiting == sizeof(struct inotify_event) + 16);
    CHECK(read(watcher, buffer, sizeof buffer) == waiting);
    int fd = open("watched", O_RDONLY | O_DIRECTORY);
    CHECK(syscall(SYS_getdents64, fd, buffer, sizeof buffer) > 0);
    CHECK(read(watcher, buffer, sizeof buffer) >= (ssize_t)sizeof(struct inotify_event));
    CHECK(((struct inotify_event *)buffer)->mask == (IN_ACCESS | IN_ISDIR));
    close(fd), close(watcher);
    CHECK(unlink("watched/name") == 0 && rmdir("watched") == 0);
}

static int has_line(const char *path, const char *text) {
    static char bytes[65536];
    int fd = open(path, O_RDONLY);
    ssize_t total = 0, count;
    while ((count = read(fd, bytes + total, sizeof bytes - 1 - total)) > 0) total += count;
    close(fd);
    if (total < 0) return 0;
    bytes[total] = 0;
    return strstr(bytes, text) != 0;
}

static void proc_tells_of_this_program(void) {
    char path[256] = {0}, want[64];
    CHECK(readlink("/proc/self/exe", path, 255) > 0 && strstr(path, "file_descriptors"));
    snprintf(want, sizeof want, "%d (", getpid());
    CHECK(has_line("/proc/self/stat", want) && has_line("/proc/self/stat", "file_descriptor) R"));
    CHECK(has_line("/proc/self/status", "Threads:\t1\n") && has_line("/proc/self/status", "VmRSS:"));
    CHECK(has_line("/proc/self/maps", "[stack]") && has_line("/proc/self/maps", "r-xp"));
    CHECK(has_line("/proc/self/smaps", "Private_Dirty:") && has_line("/proc/self/limits", "Max open files"));
    CHECK(has_line("/proc/meminfo", "MemAvailable:") && has_line("/proc/cpuinfo", "processor\t: 0"));
    CHECK(has_line("/proc/mounts", " /proc proc ") && has_line("/proc/self/mountinfo", " - "));
    CHECK(has_line("/proc/sys/kernel/ostype", "Linux") && has_line("/proc/uptime", "."));
    CHECK(has_line("/sys/devices/system/cpu/online", "0"));
    int fd = open("f", O_CREAT | O_RDWR, 0644);
    snprintf(want, sizeof want, "/proc/self/fd/%d", fd);
    memset(path, 0, sizeof path);
    CHECK(readlink(want, path, 255) > 0 && !strcmp(path + strlen(home), "/f"));
    int again = open(want, O_RDONLY);
    CHECK(again >= 0 && close(again) == 0);
    snprintf(want, sizeof want, "/proc/self/fdinfo/%d", fd);
    CHECK(has_line(want, "pos:\t0\n") && has_line(want, "flags:\t0"));
    CHECK(close(fd) == 0 && fails(open(want, O_RDONLY), ENOENT));
    CHECK(fails(open("/proc/999999", O_RDONLY), ENOENT));
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) != 0) return 2;
    TEST(duplicates_share_the_position);
    TEST(the_lowest_free_number_is_given);
    TEST(a_range_of_numbers_is_closed);
    TEST(record_locks_keep_processes_apart);
    TEST(a_circle_of_waiting_processes_is_refused);
    TEST(locks_of_openings_keep_descriptors_apart);
    TEST(a_fifo_joins_two_programs);
    TEST(changes_of_a_directory_are_told);
    TEST(what_waits_of_events_is_counted_and_listings_are_reads);
    TEST(proc_tells_of_this_program);
    return check_status();
}
