// Memory, processes, threads, and what counts and locks them.
#pragma once
#include "scene.h"
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

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

static int groups(void) {
    static gid_t all[1000];
    for (int at = 0; at < 1000; at++) all[at] = (gid_t)at;
    if (syscall(SYS_setgroups, 1000, all) < 0) return errno == EPERM ? 0 : -1;
    return (int)syscall(SYS_setgroups, 0, all);
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
