// Takes as much as it can get of one thing, named by its argument, and then ends: each
// way makes the kernel keep something until its memory, or a limit, is reached.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 200000
#define NAMES_MAX 400000
#define BUFFER_BYTES 65536

static char buffer[BUFFER_BYTES];

// Fills what `fd` sends through, until it would block or memory is out.
static void fill(int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, buffer, sizeof buffer) > 0) {
    }
}

static int make_sockets(void) { return socket(AF_INET, SOCK_STREAM, 0); }

static int make_datagrams(void) { return socket(AF_INET, SOCK_DGRAM, 0); }

static int make_unix(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) return -1;
    fill(ends[0]);
    return ends[1];
}

static int make_pipes(void) {
    int ends[2];
    if (pipe(ends) < 0) return -1;
    fill(ends[1]);
    return ends[0];
}

static int make_events(void) { return eventfd(0, 0); }

static int make_timers(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec later = {.it_value = {.tv_sec = 1000}};
    if (fd >= 0) timerfd_settime(fd, 0, &later, NULL);
    return fd;
}

static int make_watched(void) {
    static int epoll = -1;
    if (epoll < 0) epoll = epoll_create1(0);
    int fd = eventfd(0, 0);
    struct epoll_event event = {.events = EPOLLIN};
    if (fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) return -1;
    return fd;
}

static int make_memory_files(void) {
    int fd = memfd_create("x", 0);
    if (fd >= 0 && write(fd, buffer, sizeof buffer) < 0) return -1;
    return fd;
}

static int make_notifiers(void) {
    int fd = inotify_init1(0);
    if (fd >= 0) inotify_add_watch(fd, "/", IN_ALL_EVENTS);
    return fd;
}

static void descriptors(int (*make)(void)) {
    for (int count = 0; count < DESCRIPTORS_MAX && make() >= 0; count++) {
    }
}

// Children stand still until there can be no more of them.
static void forks(void) {
    int gate[2];
    if (pipe(gate) < 0) return;
    for (;;) {
        int child = fork();
        if (child < 0) break;
        if (child == 0) {
            close(gate[1]);
            _exit(read(gate[0], buffer, 1) != 0);
        }
    }
    close(gate[1]);
    while (wait(NULL) > 0) {
    }
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *stand_still(void *nothing) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return nothing;
}

static void threads(void) {
    static pthread_t all[DESCRIPTORS_MAX];
    int count = 0;
    pthread_mutex_lock(&held);
    while (count < DESCRIPTORS_MAX && pthread_create(&all[count], NULL, stand_still, NULL) == 0)
        count++;
    pthread_mutex_unlock(&held);
    while (count > 0) pthread_join(all[--count], NULL);
}

// Areas that can not be merged.
static void areas(void) {
    for (int count = 0;; count++) {
        int rights = count % 2 ? PROT_READ : PROT_NONE;
        if (mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) break;
    }
}

// One page in each 2 MiB: as many page tables as pages.
static void tables(void) {
    size_t bytes = (size_t)1 << 40;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    for (size_t at = 0; at < bytes; at += 2 << 20) memory[at] = 1;
}

static void files(void) {
    char name[64];
    mkdir("/tmp/many", 0700);
    int count = 0;
    for (; count < NAMES_MAX; count++) {
        snprintf(name, sizeof name, "/tmp/many/%d", count);
        int fd = open(name, O_CREAT | O_RDWR, 0600);
        if (fd < 0) break;
        close(fd);
    }
    while (count-- > 0) {
        snprintf(name, sizeof name, "/tmp/many/%d", count);
        unlink(name);
    }
    rmdir("/tmp/many");
}

// Each folder in the one before.
static void folders(void) {
    int depth = 0;
    chdir("/tmp");
    while (depth < NAMES_MAX && mkdir("d", 0700) == 0 && chdir("d") == 0) depth++;
    while (depth-- > 0 && chdir("..") == 0) rmdir("d");
    rmdir("d");
}

static void data(void) {
    int fd = open("/dev/shm/full", O_CREAT | O_RDWR | O_TRUNC, 0600);
    while (write(fd, buffer, sizeof buffer) > 0) {
    }
    close(fd);
    unlink("/dev/shm/full");
}

static void record_locks(void) {
    int fd = open("/tmp/locked", O_CREAT | O_RDWR, 0600);
    for (long at = 0; at < NAMES_MAX; at++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = at * 2, .l_len = 1};
        if (fcntl(fd, F_SETLK, &lock) < 0) break;
    }
    close(fd);
    unlink("/tmp/locked");
}

static void signals(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1}) == 0) {
    }
}

static void clocks(void) {
    timer_t timer;
    struct itimerspec later = {.it_value = {.tv_sec = 1000}};
    for (int count = 0; count < NAMES_MAX; count++) {
        struct sigevent none = {.sigev_notify = SIGEV_NONE};
        if (timer_create(CLOCK_MONOTONIC, &none, &timer) < 0) break;
        timer_settime(timer, 0, &later, NULL);
    }
}

#define MAPS_MAX 64
#define QUEUES_MAX 700
#define NOTIFIERS_MAX 128
#define FILES_MAX 5000
#define GROUPS_MAX 65536

// As somebody who has no rights beyond the ordinary.
static void become_somebody(void) {
    if (setgid(1000) < 0 || setuid(1000) < 0) exit(3);
}

// All that it says, each line once.
static int count_lines(const char *path) {
    int fd = open(path, O_RDONLY), lines = 0;
    if (fd < 0) return -1;
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
        for (ssize_t at = 0; at < got; at++) lines += buffer[at] == '\n';
    close(fd);
    return lines;
}

// As many areas as there may be, and their lists, each opened often and begun.
static void maps(void) {
    become_somebody();
    areas();
    for (int count = 0; count < MAPS_MAX; count++) {
        int fd = open(count % 2 ? "/proc/self/smaps" : "/proc/self/maps", O_RDONLY);
        if (fd >= 0) read(fd, buffer, 100);
    }
    int lines = count_lines("/proc/self/maps");
    if (lines < 1000) {
        fprintf(stderr, "exhaust: %d lines of maps\n", lines);
        exit(4);
    }
}

static pid_t queue_owners[QUEUES_MAX];

static void *own_queue(void *at) {
    *(pid_t *)at = (pid_t)syscall(SYS_gettid);
    return stand_still(NULL);
}

// Each thread has a queue of its own; what one user queues is limited all the same.
static void queues(void) {
    static pthread_t all[QUEUES_MAX];
    sigset_t blocked;
    int count = 0;
    become_somebody();
    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    pthread_mutex_lock(&held);
    while (count < QUEUES_MAX &&
           pthread_create(&all[count], NULL, own_queue, &queue_owners[count]) == 0)
        count++;
    for (int at = 0; at < count; at++) {
        while (__atomic_load_n(&queue_owners[at], __ATOMIC_ACQUIRE) == 0) sched_yield();
        siginfo_t info = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE};
        while (syscall(SYS_rt_tgsigqueueinfo, getpid(), queue_owners[at], SIGRTMIN, &info) == 0) {
        }
    }
    pthread_mutex_unlock(&held);
    while (count > 0) pthread_join(all[--count], NULL);
}

// Long names, told to all who watch, none of whom reads.
static void notices(void) {
    become_somebody();
    char name[256];
    mkdir("/tmp/watched", 0700);
    for (int count = 0; count < NOTIFIERS_MAX; count++) {
        int fd = inotify_init1(IN_NONBLOCK);
        if (fd >= 0) inotify_add_watch(fd, "/tmp/watched", IN_ALL_EVENTS);
    }
    for (int count = 0; count < FILES_MAX; count++) {
        snprintf(name, sizeof name, "/tmp/watched/%0200d", count);
        int fd = open(name, O_CREAT | O_RDWR, 0600);
        if (fd < 0) break;
        close(fd);
        unlink(name);
    }
    rmdir("/tmp/watched");
}

static gid_t group_list[GROUPS_MAX];

static void *take_groups(void *at) {
    group_list[0] = (gid_t)(size_t)at;
    syscall(SYS_setgroups, GROUPS_MAX, group_list);
    return stand_still(NULL);
}

// The longest list for each thread, none like another.
static void groups(void) {
    static pthread_t all[DESCRIPTORS_MAX];
    int count = 0;
    for (int at = 0; at < GROUPS_MAX; at++) group_list[at] = (gid_t)at;
    pthread_mutex_lock(&held);
    while (count < DESCRIPTORS_MAX &&
           pthread_create(&all[count], NULL, take_groups, (void *)(size_t)count) == 0)
        count++;
    pthread_mutex_unlock(&held);
    while (count > 0) pthread_join(all[--count], NULL);
}

static const struct {
    const char *name;
    void (*all)(void);
    int (*one)(void);
} WAYS[] = {
    {"forks", forks, NULL},
    {"threads", threads, NULL},
    {"sockets", NULL, make_sockets},
    {"datagrams", NULL, make_datagrams},
    {"unix", NULL, make_unix},
    {"pipes", NULL, make_pipes},
    {"events", NULL, make_events},
    {"timers", NULL, make_timers},
    {"watched", NULL, make_watched},
    {"memfiles", NULL, make_memory_files},
    {"notifiers", NULL, make_notifiers},
    {"areas", areas, NULL},
    {"tables", tables, NULL},
    {"files", files, NULL},
    {"folders", folders, NULL},
    {"data", data, NULL},
    {"locks", record_locks, NULL},
    {"signals", signals, NULL},
    {"clocks", clocks, NULL},
    {"maps", maps, NULL},
    {"queues", queues, NULL},
    {"notices", notices, NULL},
    {"groups", groups, NULL},
};

int main(int argc, char **argv) {
    struct rlimit most = {DESCRIPTORS_MAX, DESCRIPTORS_MAX};
    setrlimit(RLIMIT_NOFILE, &most);
    for (size_t index = 0; argc > 1 && index < sizeof WAYS / sizeof *WAYS; index++) {
        if (strcmp(argv[1], WAYS[index].name) != 0) continue;
        if (WAYS[index].all) WAYS[index].all();
        else descriptors(WAYS[index].one);
        return 0;
    }
    fprintf(stderr, "exhaust: a way is needed\n");
    return 2;
}
