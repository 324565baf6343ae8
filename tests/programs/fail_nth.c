// Each allocation of a scene is refused once: the call says so, and nothing is lost.
//
// A scene is run with its first refusable allocation failing, then its second, and so on
// until it runs through (`/proc/thread-self/fail-nth`, as Linux has it with fault injection;
// without, each scene runs once). A scene cleans up whatever it got. Each n is tried
// ROUNDS times, so that a loss shows beside what CPUs keep at hand.
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200
#define ROUNDS_SLOW 12
#define LOST_MAX 150
#define FAILURES_MAX 400
#define PAGE 4096

static char buffer[1 << 16];
static int fail_nth = -1;
// What fails now, and for a scene that arms its child: whether that one was spared.
static int armed, is_spared;

static void arm(int n) {
    char text[16];
    armed = n;
    int len = snprintf(text, sizeof text, "%d", n);
    if (fail_nth >= 0 && pwrite(fail_nth, text, len, 0) != len) abort();
}

// Whether the allocation that was to fail is still to come. Reading the file allocates, too:
// if that failed, the scene had come to its end.
static int is_armed(void) {
    char text[16] = "1";
    return fail_nth < 0 || pread(fail_nth, text, sizeof text - 1, 0) <= 0 || atoi(text) > 0;
}

static int give_up(int fd) {
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return -1;
}

static int close_both(const int *ends, int result) {
    int why = errno;
    close(ends[0]), close(ends[1]);
    errno = why;
    return result;
}

// Removes a name; what was refused memory gets it the second time. Keeps `errno`.
static void forget(int (*remove_name)(const char *), const char *path) {
    int why = errno;
    if (remove_name(path) < 0 && errno == ENOMEM) remove_name(path);
    errno = why;
}

static int open_file(void) {
    int fd = open("/tmp/scene", O_CREAT | O_RDWR, 0600);
    if (fd < 0) return -1;
    int result = write(fd, buffer, 10000) == 10000 && !ftruncate(fd, 20000) ? 0 : -1;
    give_up(fd);
    forget(unlink, "/tmp/scene");
    return result;
}

static int names(void) {
    if (mkdir("/tmp/dir", 0700) < 0) return -1;
    int result = symlink("a/b/c", "/tmp/dir/link");
    if (!result) result = rename("/tmp/dir/link", "/tmp/dir/new");
    if (!result) result = readlink("/tmp/dir/new", buffer, 100) < 0 ? -1 : 0;
    if (!result) result = mkfifo("/tmp/dir/fifo", 0600);
    if (!result) result = link("/tmp/dir/fifo", "/tmp/dir/again");
    int why = errno;
    forget(unlink, "/tmp/dir/link"), forget(unlink, "/tmp/dir/new");
    forget(unlink, "/tmp/dir/fifo"), forget(unlink, "/tmp/dir/again");
    forget(rmdir, "/tmp/dir");
    errno = why;
    return result;
}

static int listing(void) {
    int fd = open("/proc/self", O_RDONLY | O_DIRECTORY);
    if (fd < 0) return -1;
    long got;
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
    }
    return give_up(fd), got < 0 ? -1 : 0;
}

static int memory(void) {
    char *at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return -1;
    at[0] = at[3 * PAGE] = 1;
    int result = mprotect(at + PAGE, PAGE, PROT_READ);
    if (!result) result = madvise(at, PAGE, MADV_DONTNEED);
    unsigned char there[8];
    if (!result) result = mincore(at, 8 * PAGE, there);
    if (!result) {
        char *shorter = mremap(at + 4 * PAGE, 2 * PAGE, PAGE, 0);
        result = shorter == MAP_FAILED ? -1 : 0;
    }
    int why = errno;
    // In the midst of other areas it takes memory to give memory back.
    if (munmap(at, 8 * PAGE) < 0) munmap(at, 8 * PAGE);
    errno = why;
    return result;
}

static int shared_memory(void) {
    int fd = memfd_create("scene", 0);
    if (fd < 0) return -1;
    if (ftruncate(fd, 4 * PAGE) < 0) return give_up(fd);
    char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return give_up(fd);
    at[PAGE] = 1;
    int result = msync(at, 4 * PAGE, MS_SYNC);
    int why = errno;
    munmap(at, 4 * PAGE), close(fd);
    errno = why;
    return result;
}

static int child(void) {
    int status, pid = fork();
    if (pid < 0) return -1;
    if (pid == 0) _exit(0);
    return waitpid(pid, &status, 0) == pid ? 0 : -1;
}

// A child starts this program anew, and the n-th allocation from its execve on fails. It may
// be told, or be killed once there is no way back.
static int program(void) {
    int status, n = armed;
    arm(0);
    int pid = fork();
    if (pid < 0) return -1;
    if (pid == 0) {
        if (fail_nth >= 0) fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
        arm(n);
        execl("/proc/self/exe", "fail_nth", "end", NULL);
        _exit(errno == ENOMEM ? 4 : 5);
    }
    if (waitpid(pid, &status, 0) != pid) return -1;
    is_spared = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    int is_refused = !WIFEXITED(status) || WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 4 ||
                     WEXITSTATUS(status) == 127;
    return errno = EINVAL, is_spared || is_refused ? 0 : -1;
}

static int end_as_program(void) {
    int fd = open("/proc/thread-self/fail-nth", O_RDONLY);
    char text[16] = "1";
    return fd < 0 || read(fd, text, sizeof text - 1) <= 0 || atoi(text) > 0 ? 0 : 3;
}

static int filtered_calls(void) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, allow};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void *end_at_once(void *nothing) { return nothing; }

static int thread(void) {
    pthread_t one;
    int why = pthread_create(&one, NULL, end_at_once, NULL);
    if (why) return errno = why, -1;
    return pthread_join(one, NULL);
}

static int counted_events(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .inherit = 1};
    int fds[2] = {-1, -1}, result = -1;
    if ((fds[0] = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)) < 0) return -1;
    if ((fds[1] = syscall(SYS_perf_event_open, &attr, 0, -1, fds[0], 0)) >= 0) result = thread();
    int why = errno;
    close(fds[0]);
    if (fds[1] >= 0) close(fds[1]);
    return errno = why, result;
}

static int samples(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .disabled = 1};
    attr.sample_period = 1000000, attr.sample_type = PERF_SAMPLE_IP;
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), result = -1;
    if (fd < 0) return -1;
    void *ring = mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring != MAP_FAILED) result = munmap(ring, 5 * 4096);
    int why = errno;
    close(fd);
    return errno = why, result;
}

static int pipes(void) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) < 0) return -1;
    int result = write(ends[1], buffer, 20000) == 20000 ? 0 : -1;
    if (!result) result = fcntl(ends[1], F_SETPIPE_SZ, 1 << 17) < 0 ? -1 : 0;
    if (!result) result = read(ends[0], buffer, sizeof buffer) == 20000 ? 0 : -1;
    return close_both(ends, result);
}

static int packets_of_pipe(void) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_DIRECT) < 0) return -1;
    int result = 0;
    for (int count = 0; count < 5 && !result; count++)
        result = write(ends[1], buffer, 100) == 100 ? 0 : -1;
    return close_both(ends, result);
}

static int vectors(void) {
    static struct iovec all[1024];
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) < 0) return -1;
    for (int at = 0; at < 1024; at++) all[at] = (struct iovec){buffer + at, 1};
    int result = writev(ends[1], all, 1024) == 1024 ? 0 : -1;
    if (!result) result = readv(ends[0], all, 1024) == 1024 ? 0 : -1;
    return close_both(ends, result);
}

static int unix_stream(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) return -1;
    int result = send(ends[0], buffer, 5000, 0) == 5000 ? 0 : -1;
    if (!result) result = recv(ends[1], buffer, 5000, 0) == 5000 ? 0 : -1;
    return close_both(ends, result);
}

static int unix_datagrams(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) < 0) return -1;
    int result = 0;
    for (int count = 0; count < 5 && !result; count++)
        result = send(ends[0], buffer, 300, 0) == 300 ? 0 : -1;
    return close_both(ends, result);
}

static int descriptors_in_messages(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) return -1;
    char space[CMSG_SPACE(3 * sizeof(int))] = {0};
    struct iovec one = {buffer, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(3 * sizeof(int));
    memcpy(CMSG_DATA(control), (int[]){ends[0], ends[1], ends[0]}, 3 * sizeof(int));
    int result = sendmsg(ends[0], &message, 0) == 1 ? 0 : -1;
    if (!result && recvmsg(ends[1], &message, 0) != 1) result = -1;
    int why = errno, got[3];
    control = CMSG_FIRSTHDR(&message);
    if (!result && control && control->cmsg_len > CMSG_LEN(0)) {
        int count = (int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(got, CMSG_DATA(control), count * sizeof(int));
        for (int at = 0; at < count; at++) close(got[at]);
    }
    errno = why;
    return close_both(ends, result);
}

static int unix_listener(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0scene"};
    socklen_t len = sizeof(sa_family_t) + 6;
    int result = -1, server = -1, client = -1;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (listener < 0) return -1;
    if (bind(listener, (void *)&name, len) < 0 || listen(listener, 4) < 0) goto out;
    if ((client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0) goto out;
    if (connect(client, (void *)&name, len) < 0) goto out;
    if ((server = accept(listener, NULL, NULL)) < 0) goto out;
    result = 0;
out:
    give_up(server), give_up(client), give_up(listener);
    return result;
}

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

static int groups(void) {
    static gid_t all[1000];
    for (int at = 0; at < 1000; at++) all[at] = (gid_t)at;
    if (syscall(SYS_setgroups, 1000, all) < 0) return errno == EPERM ? 0 : -1;
    return (int)syscall(SYS_setgroups, 0, all);
}

static int read_all(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) return errno == ENOENT ? 0 : -1;
    ssize_t got;
    while ((got = read(fd, buffer, 1000)) > 0) {
    }
    return give_up(fd), got < 0 ? -1 : 0;
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

static int told(void) {
    static const char *const PATHS[] = {
        "/proc/self/maps",    "/proc/self/smaps",   "/proc/self/status", "/proc/self/stat",
        "/proc/self/cmdline", "/proc/self/environ", "/proc/self/mounts", "/proc/self/limits",
        "/proc/net/tcp",      "/proc/net/udp6",     "/proc/net/unix",    "/proc/net/netlink",
        "/proc/meminfo",      "/proc/stat",         "/proc/vmstat",      "/proc/self/fdinfo/0",
        "/proc/cpuinfo",      "/proc/net/dev",      "/proc/net/route",   "/proc/loadavg"};
    for (size_t at = 0; at < sizeof PATHS / sizeof *PATHS; at++)
        if (read_all(PATHS[at]) < 0) return -1;
    return 0;
}

static int record_locks(void) {
    int fd = open("/tmp/locked", O_CREAT | O_RDWR, 0600), result = 0;
    if (fd < 0) return -1;
    for (long at = 0; at < 8 && !result; at++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = at * 2, .l_len = 1};
        result = fcntl(fd, F_SETLK, &lock);
    }
    if (!result) result = flock(fd, LOCK_EX | LOCK_NB);
    give_up(fd);
    forget(unlink, "/tmp/locked");
    return result;
}

static int many_descriptors(void) {
    int fd = dup2(0, 3000);
    if (fd < 0) return -1;
    close(fd);
    return 0;
}

static int moved_bytes(void) {
    int ends[2], fd = memfd_create("scene", 0), result = -1;
    if (fd < 0) return -1;
    if (pipe2(ends, O_NONBLOCK) < 0) return give_up(fd);
    if (pwrite(fd, buffer, 3 * PAGE, 0) != 3 * PAGE) goto out;
    off_t at = 0;
    if (sendfile(ends[1], fd, &at, 2 * PAGE) != 2 * PAGE) goto out;
    if (splice(ends[0], NULL, fd, &(loff_t){0}, PAGE, SPLICE_F_NONBLOCK) <= 0) goto out;
    result = 0;
out:
    give_up(fd);
    return close_both(ends, result);
}

static int waited(void) {
    int word = 0;
    struct timespec soon = {0, 1000};
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &soon, NULL, 0);
    return result == 0 || errno == ETIMEDOUT ? 0 : -1;
}

// A lock with priority inheritance that a child has for ever.
static int inheriting_lock(void) {
    static volatile int *word;
    if (!word) {
        word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            syscall(SYS_futex, word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
            for (;;) pause();
        }
        while (!*word) usleep(1000);
    }
    struct timespec past = {1, 0};
    long result = syscall(SYS_futex, word, FUTEX_LOCK_PI, 0, &past, NULL, 0);
    return result < 0 && errno == ETIMEDOUT ? 0 : -1;
}

// Below /proc, where names on the way to a mount have to be kept.
static int bound(void) {
    int result = mount("/tmp", "/proc/sys/vm", NULL, MS_BIND | MS_REC, NULL);
    if (result < 0) return errno == EPERM ? 0 : result;
    if ((result = mount("/proc/sys/vm", "/proc/sys/fs", NULL, MS_MOVE, NULL)) == 0) {
        if ((result = umount2("/proc/sys/fs", MNT_DETACH)) < 0)
            umount2("/proc/sys/fs", MNT_DETACH);
    } else {
        int why = errno;
        umount2("/proc/sys/vm", MNT_DETACH);
        errno = why;
    }
    return result;
}

static void unmount_surely(const char *name) {
    while (umount2(name, MNT_DETACH) < 0 && errno == ENOMEM);
}

static void make_surely(const char *name) {
    while (mkdir(name, 0755) < 0 && errno != EEXIST);
}

static int told_mount(void) {
    make_surely("/tmp/told.a"), make_surely("/tmp/told.b");
    int result = mount("none", "/tmp/told.a", "tmpfs", 0, NULL);
    if (result < 0 && errno == EPERM) return 0;
    if (result == 0) result = mount(NULL, "/tmp/told.a", NULL, MS_SHARED, NULL);
    if (result == 0) result = mount("/tmp/told.a", "/tmp/told.b", NULL, MS_BIND, NULL);
    if (result == 0) result = mkdir("/tmp/told.a/x", 0755);
    if (result == 0) result = mount("none", "/tmp/told.b/x", "tmpfs", 0, NULL);
    int why = errno;
    unmount_surely("/tmp/told.a/x"), unmount_surely("/tmp/told.b"), unmount_surely("/tmp/told.a");
    rmdir("/tmp/told.a"), rmdir("/tmp/told.b");
    errno = why;
    return result;
}

static int own_namespace(void) {
    int back = open("/proc/self/ns/mnt", O_RDONLY);
    if (back < 0) return -1;
    int result = unshare(CLONE_NEWNS | CLONE_NEWUTS), why = errno;
    while (result == 0 && setns(back, 0) < 0 && errno == ENOMEM);
    close(back);
    errno = why;
    return result < 0 && why == EPERM ? 0 : result;
}

static int configured(void) {
    int result = -1, copy = -1;
    int system = (int)syscall(SYS_fsopen, "tmpfs", 0);
    if (system < 0) return errno == EPERM ? 0 : -1;
    long done = syscall(SYS_fsconfig, system, FSCONFIG_SET_STRING, "size", "1m", 0);
    if (done == 0) done = syscall(SYS_fsconfig, system, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    int top = done == 0 ? (int)syscall(SYS_fsmount, system, 0, 0) : -1;
    if (top >= 0) copy = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc", OPEN_TREE_CLONE);
    if (copy >= 0) {
        struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY};
        result = (int)syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &wanted, sizeof wanted);
    }
    int why = errno;
    for (int fds[] = {system, top, copy}, i = 0; i < 3; i++)
        if (fds[i] >= 0) close(fds[i]);
    errno = why;
    return result;
}

static int mounted(void) {
    if (mkdir("/tmp/mounted", 0700) < 0) return -1;
    int result = mount("none", "/tmp/mounted", "tmpfs", 0, NULL);
    if (result < 0 && errno == EPERM) result = 0;
    else if (!result && (result = umount2("/tmp/mounted", MNT_DETACH)) < 0)
        umount2("/tmp/mounted", MNT_DETACH);
    int why = errno;
    forget(rmdir, "/tmp/mounted");
    errno = why;
    return result;
}

static int message_queue(void) {
    struct mq_attr attr = {.mq_maxmsg = 10, .mq_msgsize = 64};
    mqd_t q = mq_open("/scene", O_CREAT | O_RDWR | O_NONBLOCK, 0600, &attr);
    if (q < 0) return -1;
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    int result = mq_notify(q, &none);
    for (int count = 0; count < 10 && !result; count++) result = mq_send(q, buffer, 64, count % 3);
    if (!result) result = mq_receive(q, buffer, 64, NULL) == 64 ? 0 : -1;
    give_up(q);
    forget(mq_unlink, "/scene");
    return result;
}

static int datagrams(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int result = bind(fd, (void *)&name, sizeof name);
    return give_up(fd), result;
}

// In two pieces, for a port that nobody has: it comes back in the queue of errors.
static int gathered_datagram(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0) return -1;
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons(9),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char space[200];
    struct iovec one = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int result = setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    if (!result) result = connect(fd, (void *)&name, sizeof name);
    if (!result) result = send(fd, buffer, 3000, MSG_MORE) == 3000 ? 0 : -1;
    if (!result) result = send(fd, buffer, 3000, 0) == 3000 ? 0 : -1;
    if (!result) result = recvmsg(fd, &message, MSG_ERRQUEUE) > 0 ? 0 : -1;
    return give_up(fd), result;
}

static int netlink(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW, 0);
    if (fd < 0) return -1;
    struct {
        unsigned len;
        unsigned short type, flags;
        unsigned serial, port;
        unsigned char family, pad[15];
    } ask = {32, 18, 0x301, 1, 0, 0, {0}};
    int result = send(fd, &ask, sizeof ask, 0) == sizeof ask ? 0 : -1;
    if (!result) result = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0 ? 0 : -1;
    return give_up(fd), result;
}

static const struct {
    const char *name;
    int (*run)(void);
    int rounds;
} SCENES[] = {
    {"a file is written", open_file, ROUNDS},
    {"names are made and moved", names, ROUNDS},
    {"a folder of processes is listed", listing, ROUNDS},
    {"memory is mapped and split", memory, ROUNDS},
    {"shared memory is written back", shared_memory, ROUNDS},
    {"a process is forked", child, ROUNDS_SLOW},
    {"a program is started", program, 2},
    {"a thread is started", thread, ROUNDS_SLOW},
    {"a pipe is filled and grows", pipes, ROUNDS},
    {"a pipe takes packets", packets_of_pipe, ROUNDS},
    {"a thousand pieces are moved", vectors, ROUNDS},
    {"a pair of sockets takes a stream", unix_stream, ROUNDS},
    {"a pair of sockets takes datagrams", unix_datagrams, ROUNDS},
    {"descriptors are sent", descriptors_in_messages, ROUNDS},
    {"a socket in the file system is connected to", unix_listener, ROUNDS},
    {"an epoll watches many", watched, ROUNDS},
    {"many descriptors are polled", polled, ROUNDS},
    {"timers are set", clocks, ROUNDS},
    {"signals wait in a queue", signals, ROUNDS},
    {"a folder is watched", notices, ROUNDS},
    {"a pipe tells by signals", signals_of_readiness, ROUNDS},
    {"a thousand groups are taken", groups, ROUNDS},
    {"the system tells about itself", told, ROUNDS_SLOW},
    {"records of a file are locked", record_locks, ROUNDS},
    {"a table of descriptors grows", many_descriptors, ROUNDS},
    {"bytes move from a file to a pipe and back", moved_bytes, ROUNDS},
    {"a futex is waited for", waited, ROUNDS},
    {"a lock with priority inheritance is contended", inheriting_lock, ROUNDS},
    {"a file system is mounted", mounted, ROUNDS},
    {"a directory is bound", bound, ROUNDS},
    {"a mount is told to others", told_mount, ROUNDS},
    {"a namespace is made and left", own_namespace, ROUNDS},
    {"a file system is configured", configured, ROUNDS},
    {"a message queue is filled", message_queue, ROUNDS},
    {"a datagram socket is bound", datagrams, ROUNDS},
    {"a datagram is gathered and comes back", gathered_datagram, ROUNDS},
    {"routes are asked for", netlink, ROUNDS},
    {"a thread is made while it is counted", counted_events, ROUNDS},
    {"a program is sampled", samples, ROUNDS},
    // Last: what it brings stays.
    {"calls are filtered", filtered_calls, ROUNDS},
};

// What a call may say that found no memory, or not enough: it moved less than it was to.
static int is_refusal(int why) {
    return why == 0 || why == ENOMEM || why == EAGAIN || why == ENOBUFS || why == ENOSPC || why == EMFILE ||
           why == EFAULT;
}

#define CLASSES_MAX 64

// The objects of each size that the kernel uses, and its free pages.
static int count_objects(long *used) {
    FILE *file = fopen("/proc/slabinfo", "r");
    char line[512];
    int classes = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file) && classes < CLASSES_MAX)
        if (sscanf(line, "kmalloc-%*d %ld", &used[classes]) == 1) classes++;
    fclose(file);
    return classes;
}

static long free_pages(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "MemFree: %ld", &kib);
    if (file) fclose(file);
    return kib * 1024 / PAGE;
}

// Runs the scene with its n-th allocation failing, for all n. Returns how many fail, or -1
// with the reason in `why`.
static int refuse_each(int scene, char *why, size_t room) {
    for (int n = 1; n < FAILURES_MAX; n++) {
        int ends = 0;
        for (int round = 0; round < SCENES[scene].rounds && !ends; round++) {
            errno = 0;
            arm(n);
            int result = SCENES[scene].run(), reason = errno;
            ends = SCENES[scene].run == program ? is_spared : is_armed();
            arm(0);
            if (result < 0 && (ends || !is_refusal(reason))) {
                snprintf(why, room, "with the %d. refused: %s", n, strerror(reason));
                return -1;
            }
        }
        if (ends) return n - 1;
    }
    snprintf(why, room, "it does not end");
    return -1;
}

static void try_scene(int scene) {
    static long before[CLASSES_MAX], after[CLASSES_MAX];
    char why[200] = "";
    const char *name = SCENES[scene].name;
    int failed = 0;
    for (int round = 0; round < 3; round++)
        if (SCENES[scene].run() < 0)
            failed = -1, snprintf(why, sizeof why, "it fails by itself: %s", strerror(errno));
    if (failed >= 0) failed = refuse_each(scene, why, sizeof why);
    int classes = count_objects(before);
    long pages = free_pages();
    if (failed >= 0) failed = refuse_each(scene, why, sizeof why);
    count_objects(after);
    long lost_pages = pages - free_pages();
    if (failed >= 0 && lost_pages > LOST_MAX && fail_nth >= 0)
        failed = -1, snprintf(why, sizeof why, "%ld pages are lost", lost_pages);
    for (int at = 0; at < classes && failed >= 0 && fail_nth >= 0; at++)
        if (after[at] - before[at] > LOST_MAX)
            failed = -1, snprintf(why, sizeof why, "%ld objects of size %d. are lost",
                                  after[at] - before[at], at + 1);
    if (failed < 0) printf("%s: %s\n", name, why);
    else fprintf(stderr, "%s: %d refused\n", name, failed);
    EXPECT(failed >= 0, "%s, or is refused without a loss", name);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return end_as_program();
    fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
    for (size_t scene = 0; scene < sizeof SCENES / sizeof *SCENES; scene++) try_scene((int)scene);
    return check_status();
}
