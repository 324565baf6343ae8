// How long the kernel keeps a CPU from everybody else: stretch COUNT
//
// Does things whose length a program chooses, and then reads in /proc/resched how long the
// longest stretch between two chances to reschedule was. It means something only where the
// clock counts instructions. COUNT is how many processes, names and waiters there are.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { MIB = 1 << 20, PAGE = 4096, BIG = 256 * MIB, TICKS_MAX = 1000000, STACK = 65536 };

static int count;
// Causes that were named, with their longest stretches.
static struct {
    char cause[32];
    long long ticks;
} named[64];

// Whether this is the longest one of its cause so far; then it is remembered.
static int is_news(const char *cause, long long ticks) {
    int i = 0;
    while (i < 63 && named[i].cause[0] && strcmp(named[i].cause, cause)) i++;
    snprintf(named[i].cause, sizeof named[i].cause, "%s", cause);
    int news = ticks > named[i].ticks;
    if (news) named[i].ticks = ticks;
    return news;
}

// Says which causes have had stretches that are too long, longer than before; returns how many,
// and the longest one of all.
static int look(const char *what, long long *most) {
    static char text[65536];
    *most = 0;
    int fd = open("/proc/resched", O_RDONLY);
    if (fd < 0) return 0;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    CHECK(len > 0);
    text[len] = 0;
    int found = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(0, "\n")) {
        char cause[32];
        long long ticks;
        if (sscanf(line, "longest %lld %31[^\n]", &ticks, cause) != 2) continue;
        if (ticks > *most) *most = ticks;
        if (ticks <= TICKS_MAX || !is_news(cause, ticks)) continue;
        printf("not ok %s: %lld ticks, %s\n", what, ticks, cause);
        found++;
    }
    return found;
}

// Runs `act`, then looks whether all stretches have been short so far.
static void bounded(const char *what, void (*act)(void)) {
    check_name = what;
    errno = 0;
    if (setjmp(check_out) != 0) return;
    act();
    long long most;
    int found = look(what, &most);
    check_failures += found;
    if (!found) printf("ok %s (%lld)\n", what, most);
    fflush(stdout);
}

static char *map(size_t bytes, int flags) {
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static void reap(void) {
    while (wait(0) > 0) {
    }
}

static char *big;

static void populate(void) {
    big = map(BIG, MAP_POPULATE);
    CHECK(big[BIG - 1] == 0);
}

static void populate_small(void) {
    char *at = map(BIG / 2, 0);
    CHECK(madvise(at, BIG / 2, MADV_NOHUGEPAGE) == 0);
    CHECK(madvise(at, BIG / 2, 23 /* MADV_POPULATE_WRITE */) == 0);
    CHECK(munmap(at, BIG / 2) == 0);
}

static void fork_big(void) {
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(0);
        reap();
    }
}

static void protect_big(void) {
    CHECK(mprotect(big, BIG, PROT_READ) == 0);
    CHECK(mprotect(big, BIG, PROT_NONE) == 0);
    CHECK(mprotect(big, BIG, PROT_READ | PROT_WRITE) == 0);
}

static void move_big(void) {
    char *moved = mremap(big, BIG, 2L * BIG, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    moved = mremap(moved, 2L * BIG, BIG, 0);
    CHECK(moved != MAP_FAILED);
    big = moved;
}

static void mincore_big(void) {
    unsigned char *pages = malloc(BIG / PAGE);
    CHECK(mincore(big, BIG, pages) == 0 && pages[5] == 1);
    free(pages);
}

static void read_maps(void) {
    static char text[65536];
    int fd = open("/proc/self/smaps", O_RDONLY);
    CHECK(fd >= 0);
    while (read(fd, text, sizeof text) > 0) {
    }
    close(fd);
}

static void read_zeros(void) {
    int fd = open("/dev/zero", O_RDONLY);
    CHECK(read(fd, big, BIG) == BIG);
    close(fd);
}

static void read_random(void) {
    int fd = open("/dev/urandom", O_RDONLY);
    CHECK(read(fd, big, 16 * MIB) == 16 * MIB);
    close(fd);
}

static void write_file(void) {
    int fd = open("/tmp/stretch", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK(write(fd, big, BIG / 4) == BIG / 4);
    CHECK(pread(fd, big, BIG / 4, 0) == BIG / 4);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BIG / 8) == 0);
    CHECK(ftruncate(fd, PAGE) == 0);
    CHECK(fallocate(fd, 0, 0, BIG / 4) == 0);
    char *shared = mmap(0, BIG / 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    CHECK(shared != MAP_FAILED);
    CHECK(msync(shared, BIG / 4, MS_SYNC) == 0);
    CHECK(ftruncate(fd, 0) == 0);
    CHECK(munmap(shared, BIG / 4) == 0);
    CHECK(fallocate(fd, 0, 0, BIG / 4) == 0);
    unlink("/tmp/stretch");
    close(fd);
}

static void discard_big(void) {
    CHECK(madvise(big, BIG, MADV_DONTNEED) == 0);
    CHECK(madvise(big, BIG, 23) == 0);
}

static void unmap_big(void) { CHECK(munmap(big, BIG) == 0); }

static void exit_big(void) {
    pid_t child = fork();
    if (child == 0) {
        map(BIG, MAP_POPULATE);
        map(4L << 40, MAP_NORESERVE)[1L << 40] = 1;
        _exit(0);
    }
    CHECK(child > 0);
    reap();
}

static void many_areas(void) {
    size_t pages = 60000;
    char *at = map(pages * PAGE, MAP_NORESERVE);
    for (size_t i = 0; i < pages; i += 2)
        CHECK(mprotect(at + i * PAGE, PAGE, PROT_READ) == 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    reap();
    CHECK(mprotect(at, pages * PAGE, PROT_READ | PROT_WRITE) == 0);
    CHECK(munmap(at, pages * PAGE) == 0);
}

static void vforks(void) {
    volatile int left = count;
    pid_t first = fork();
    CHECK(first >= 0);
    if (first == 0) {
        while (left-- > 0 && vfork() == 0) {
        }
        _exit(0);
    }
    reap();
}

static void kill_many(void) {
    pid_t leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        for (int i = 0; i < count; i++) {
            pid_t child = fork();
            if (child == 0) pause();
            if (child < 0) _exit(1);
        }
        kill(0, SIGKILL);
    }
    int status;
    CHECK(waitpid(leader, &status, 0) == leader && WIFSIGNALED(status));
    usleep(100000);
}

static void orphan_many(void) {
    pid_t leader = fork();
    if (leader == 0) {
        for (int i = 0; i < count; i++)
            if (fork() == 0) _exit(0);
        _exit(0);
    }
    CHECK(waitpid(leader, 0, 0) == leader);
}

static void list_many(void) {
    CHECK(mkdir("/tmp/many", 0700) == 0);
    char name[64];
    for (int i = 0; i < 20 * count; i++) {
        snprintf(name, sizeof name, "/tmp/many/a-name-of-some-length-%d", i);
        CHECK(mknod(name, S_IFREG | 0600, 0) == 0);
    }
    DIR *dir = opendir("/tmp/many");
    int found = 0;
    while (readdir(dir)) found++;
    closedir(dir);
    CHECK(found == 20 * count + 2);
    dir = opendir("/proc");
    while (readdir(dir)) {
    }
    closedir(dir);
    for (int i = 0; i < 20 * count; i++) {
        snprintf(name, sizeof name, "/tmp/many/a-name-of-some-length-%d", i);
        CHECK(unlink(name) == 0);
    }
    CHECK(rmdir("/tmp/many") == 0);
}

static void many_files(void) {
    struct rlimit limit = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &limit);
    int events = eventfd(1, EFD_NONBLOCK);
    int epoll = epoll_create1(0);
    int files = 16 * count < 60000 ? 16 * count : 60000;
    struct epoll_event event = {.events = EPOLLIN};
    for (int i = 0; i < files; i++) {
        int fd = dup(events);
        CHECK(fd >= 0);
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    }
    struct pollfd *polled = calloc(files, sizeof *polled);
    for (int i = 0; i < files; i++) polled[i] = (struct pollfd){i + 5, POLLOUT, 0};
    CHECK(poll(polled, files, 0) == files);
    for (int i = 0; i < files; i++) polled[i] = (struct pollfd){events, POLLPRI, 0};
    CHECK(poll(polled, files < 4096 ? files : 4096, 1) == 0);
    struct epoll_event *got = calloc(files, sizeof *got);
    CHECK(epoll_wait(epoll, got, files, 0) == files);
    pid_t child = fork();
    if (child == 0) _exit(0);
    reap();
    CHECK(close_range(5, ~0U, 0) == 0);
    close(events);
    close(epoll);
    free(polled);
    free(got);
}

static uint32_t word;

static int wait_for_word(void *unused) {
    (void)unused;
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    syscall(SYS_exit, 0);
    return 0;
}

static void wake_many(void) {
    static uint32_t other;
    char *stacks = map((size_t)count * PAGE, MAP_NORESERVE);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    for (int i = 0; i < count; i++)
        CHECK(clone(wait_for_word, stacks + (i + 1) * PAGE, flags, 0) > 0);
    usleep(200000);
    CHECK(syscall(SYS_futex, &word, FUTEX_REQUEUE_PRIVATE, 1, INT32_MAX, &other, 0) > count / 2);
    CHECK(syscall(SYS_futex, &other, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0, 0) > count / 2);
    usleep(300000);
}

static void read_proc(void) {
    static char text[65536];
    static const char *const files[] = {"/proc/stat",        "/proc/meminfo",   "/proc/vmstat",
                                        "/proc/microstates", "/proc/self/maps", "/proc/slabinfo",
                                        "/proc/net/tcp",     "/proc/net/unix"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int fd = open(files[i], O_RDONLY);
        while (fd >= 0 && read(fd, text, sizeof text) > 0) {
        }
        close(fd);
    }
}

static void whole_suite(void) {}

int main(int argc, char **argv) {
    count = argc > 1 ? atoi(argv[1]) : 500;
    bounded("what ran before had chances to reschedule", whole_suite);
    bounded("populating memory lets others run", populate);
    bounded("populating memory page by page lets others run", populate_small);
    bounded("a fork of a large process lets others run", fork_big);
    bounded("protecting much memory lets others run", protect_big);
    bounded("moving much memory lets others run", move_big);
    bounded("asking for resident pages lets others run", mincore_big);
    bounded("reading smaps of a large process lets others run", read_maps);
    bounded("reading many zeros lets others run", read_zeros);
    bounded("reading much randomness lets others run", read_random);
    bounded("a large file in memory lets others run", write_file);
    bounded("discarding much memory lets others run", discard_big);
    bounded("unmapping much memory lets others run", unmap_big);
    bounded("the end of a large process lets others run", exit_big);
    bounded("many areas let others run", many_areas);
    bounded("nested vforks let others run", vforks);
    bounded("killing many processes lets others run", kill_many);
    bounded("many orphans let others run", orphan_many);
    bounded("a large directory lets others run", list_many);
    bounded("many descriptors let others run", many_files);
    bounded("waking many threads lets others run", wake_many);
    bounded("files of /proc let others run", read_proc);
    return check_status();
}
