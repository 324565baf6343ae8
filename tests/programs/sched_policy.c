// Scheduling policies: who may set which, what they say, and who goes first.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t clamp_min, clamp_max;
};

enum { FIRST_BYTES = 48 };

static long setattr(pid_t pid, struct attributes *attr, unsigned flags) {
    return syscall(SYS_sched_setattr, pid, attr, flags);
}

static long getattr(pid_t pid, struct attributes *attr, unsigned size, unsigned flags) {
    return syscall(SYS_sched_getattr, pid, attr, size, flags);
}

static int set(int policy, int priority) {
    struct sched_param param = {.sched_priority = priority};
    return sched_setscheduler(0, policy, &param);
}

static int is_ok(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void become_nobody(void) {
    if (getuid() == 0 && (setgid(12345) || setuid(12345))) _exit(99);
}

static void policies_are_kept_and_told(void) {
    struct sched_param param;
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    static const int POLICIES[] = {SCHED_FIFO, SCHED_RR, SCHED_BATCH, SCHED_IDLE, SCHED_OTHER};
    for (int i = 0; i < 5; i++) {
        int priority = i < 2 ? 7 + i : 0;
        CHECK(set(POLICIES[i], priority) == 0 && sched_getscheduler(0) == POLICIES[i]);
        CHECK(sched_getparam(0, &param) == 0 && param.sched_priority == priority);
    }
    CHECK(set(SCHED_FIFO, 0) == -1 && errno == EINVAL);
    CHECK(set(SCHED_FIFO, 100) == -1 && errno == EINVAL);
    CHECK(set(SCHED_OTHER, 1) == -1 && errno == EINVAL);
    CHECK(set(4, 0) == -1 && errno == EINVAL && set(-1, 0) == -1 && errno == EINVAL);
    CHECK(set(17, 0) == -1 && errno == EINVAL);
    CHECK(sched_setscheduler(0, SCHED_FIFO, NULL) == -1 && errno == EINVAL);
    CHECK(sched_setscheduler(-1, SCHED_OTHER, &param) == -1 && errno == EINVAL);
    param.sched_priority = 0;
    CHECK(sched_setscheduler(99999999, SCHED_OTHER, &param) == -1 && errno == ESRCH);
    CHECK(sched_getscheduler(-1) == -1 && errno == EINVAL);
    CHECK(sched_getscheduler(99999999) == -1 && errno == ESRCH);
    CHECK(syscall(SYS_sched_getparam, 0, NULL) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_sched_setparam, 0, NULL) == -1 && errno == EINVAL);
    CHECK(set(SCHED_RR, 3) == 0);
    param.sched_priority = 9;
    CHECK(sched_setparam(0, &param) == 0 && sched_getscheduler(0) == SCHED_RR);
    param.sched_priority = 0;
    CHECK(sched_setparam(0, &param) == -1 && errno == EINVAL && set(SCHED_OTHER, 0) == 0);
}

static void bounds_and_turns_are_told(void) {
    CHECK(sched_get_priority_max(SCHED_FIFO) == 99 && sched_get_priority_min(SCHED_RR) == 1);
    CHECK(sched_get_priority_max(SCHED_OTHER) == 0 && sched_get_priority_min(SCHED_IDLE) == 0);
    CHECK(sched_get_priority_max(77) == -1 && errno == EINVAL);
    struct timespec turn;
    CHECK(set(SCHED_RR, 1) == 0 && sched_rr_get_interval(0, &turn) == 0);
    CHECK(turn.tv_sec == 0 && turn.tv_nsec == 100000000);
    CHECK(set(SCHED_FIFO, 1) == 0 && sched_rr_get_interval(0, &turn) == 0);
    CHECK(turn.tv_sec == 0 && turn.tv_nsec == 0 && set(SCHED_OTHER, 0) == 0);
    CHECK(sched_rr_get_interval(0, &turn) == 0 && turn.tv_sec == 0);
    CHECK(sched_rr_get_interval(-1, &turn) == -1 && errno == EINVAL);
}

static void attributes_are_kept_and_told(void) {
    struct attributes attr = {.size = sizeof attr, .policy = SCHED_OTHER, .nice = 5}, got;
    CHECK(setattr(0, &attr, 0) == 0 && getattr(0, &got, sizeof got, 0) == 0);
    CHECK(got.size == sizeof got && got.policy == SCHED_OTHER && got.nice == 5 && !got.flags);
    CHECK(getpriority(PRIO_PROCESS, 0) == 5);
    attr = (struct attributes){.size = FIRST_BYTES, .policy = SCHED_FIFO, .priority = 42, .flags = 1};
    CHECK(setattr(0, &attr, 0) == 0 && getattr(0, &got, FIRST_BYTES, 0) == 0);
    CHECK(got.size == FIRST_BYTES && got.policy == SCHED_FIFO && got.priority == 42);
    CHECK(got.flags == 1 && got.nice == 0);
    CHECK(sched_getscheduler(0) == (SCHED_FIFO | SCHED_RESET_ON_FORK));
    // Flags: the policy stays, or it and the parameters.
    attr = (struct attributes){.size = FIRST_BYTES, .policy = 0, .priority = 43, .flags = 8};
    CHECK(setattr(0, &attr, 0) == 0 && getattr(0, &got, sizeof got, 0) == 0);
    CHECK(got.policy == SCHED_FIFO && got.priority == 43 && got.flags == 1);
    attr = (struct attributes){.size = 0, .policy = SCHED_RR, .priority = 1, .flags = 16};
    CHECK(setattr(0, &attr, 0) == 0 && getattr(0, &got, sizeof got, 0) == 0);
    CHECK(got.policy == SCHED_FIFO && got.priority == 43 && !got.flags);
    attr = (struct attributes){.size = FIRST_BYTES, .policy = SCHED_OTHER};
    CHECK(setattr(0, &attr, 0) == 0);
    CHECK(setattr(0, &attr, 1) == -1 && errno == EINVAL);
    CHECK(setattr(0, NULL, 0) == -1 && errno == EINVAL);
    CHECK(setattr(-1, &attr, 0) == -1 && errno == EINVAL);
    attr.policy = 4;
    CHECK(setattr(0, &attr, 0) == -1 && errno == EINVAL);
    attr.policy = SCHED_OTHER, attr.flags = 1 << 20;
    CHECK(setattr(0, &attr, 0) == -1 && errno == EINVAL);
    attr.flags = 0, attr.size = 47;
    CHECK(setattr(0, &attr, 0) == -1 && errno == E2BIG && attr.size >= 56);
    struct {
        struct attributes known;
        char more[64];
    } longer = {.known = {.size = sizeof longer, .policy = SCHED_OTHER}};
    CHECK(setattr(0, &longer.known, 0) == 0);
    longer.more[63] = 1;
    CHECK(setattr(0, &longer.known, 0) == -1 && errno == E2BIG && longer.known.size >= 56);
    CHECK(getattr(0, &got, 47, 0) == -1 && errno == EINVAL);
    CHECK(getattr(0, &got, sizeof got, 1) == -1 && errno == EINVAL);
    CHECK(getattr(0, NULL, sizeof got, 0) == -1 && errno == EINVAL);
}

static void users_need_a_limit(void) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {0, 0};
        struct attributes attr = {.size = FIRST_BYTES, .policy = SCHED_OTHER, .nice = -1};
        setrlimit(RLIMIT_RTPRIO, &limit), setrlimit(RLIMIT_NICE, &limit);
        become_nobody();
        if (set(SCHED_FIFO, 1) != -1 || errno != EPERM) _exit(1);
        if (setattr(0, &attr, 0) != -1 || errno != EPERM) _exit(2);
        if (set(SCHED_BATCH, 0) || set(SCHED_OTHER, 0) || set(SCHED_IDLE, 0)) _exit(3);
        if (set(SCHED_OTHER, 0) != -1 || errno != EPERM) _exit(4);
        if (sched_setscheduler(getppid(), SCHED_BATCH, &(struct sched_param){0}) != -1) _exit(5);
        _exit(errno != EPERM ? 6 : 0);
    }
    CHECK(is_ok(child));
    child = fork();
    if (child == 0) {
        struct rlimit limit = {10, 10};
        // Where root itself is bound, there is no more to be seen.
        if (setrlimit(RLIMIT_RTPRIO, &limit)) _exit(errno != EPERM);
        if (set(SCHED_FIFO, 12)) _exit(1);
        become_nobody();
        if (set(SCHED_RR, 12) || set(SCHED_FIFO, 11)) _exit(2);
        if (set(SCHED_FIFO, 12) != -1 || errno != EPERM) _exit(3);
        if (set(SCHED_OTHER, 0) || set(SCHED_FIFO, 10)) _exit(4);
        if (set(SCHED_FIFO, 11) != -1 || errno != EPERM) _exit(5);
        if (set(SCHED_FIFO | SCHED_RESET_ON_FORK, 1)) _exit(6);
        _exit(set(SCHED_FIFO, 1) != -1 || errno != EPERM ? 7 : 0);
    }
    CHECK(is_ok(child));
}

static void children_inherit_or_start_anew(void) {
    CHECK(set(SCHED_FIFO, 5) == 0);
    pid_t child = fork();
    if (child == 0) _exit(sched_getscheduler(0) != SCHED_FIFO);
    CHECK(is_ok(child) && set(SCHED_FIFO | SCHED_RESET_ON_FORK, 5) == 0);
    child = fork();
    if (child == 0) _exit(sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0));
    CHECK(is_ok(child) && set(SCHED_BATCH | SCHED_RESET_ON_FORK, 0) == 0);
    CHECK(setpriority(PRIO_PROCESS, 0, -3) == 0);
    child = fork();
    if (child == 0) _exit(sched_getscheduler(0) != SCHED_BATCH || getpriority(PRIO_PROCESS, 0));
    CHECK(is_ok(child) && setpriority(PRIO_PROCESS, 0, 0) == 0 && set(SCHED_OTHER, 0) == 0);
}

static void proc_shows_policies(void) {
    CHECK(set(SCHED_RR, 30) == 0);
    char line[1024] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    CHECK(file && fgets(line, sizeof line, file));
    fclose(file);
    CHECK(set(SCHED_OTHER, 0) == 0);
    char *field = strrchr(line, ')');
    long values[60] = {0};
    for (int i = 3; i < 52 && (field = strchr(field, ' ')); i++) values[i] = atol(++field);
    CHECK(values[18] == -31 && values[40] == 30 && values[41] == SCHED_RR);
}

// What threads on one CPU did, in order.
static struct {
    _Atomic int count;
    int who[64];
    _Atomic int go, done;
} *scene;

static void note(int who) {
    int at = scene->count++;
    if (at < 64) scene->who[at] = who;
}

static void pin(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void work(int millis) {
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < millis);
}

// A child that shares the CPU: waits until it is told, then works and notes that.
static pid_t worker(int who, int policy, int priority, int millis, int turns) {
    pid_t child = fork();
    if (child) return child;
    if (set(policy, priority)) _exit(1);
    scene->done++;
    while (!scene->go) usleep(1000);
    for (int i = 0; i < turns; i++) work(millis), note(who);
    _exit(0);
}

static const char *const RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us";

// How much of each second real-time threads may have: without a bound the order is certain, even
// if the machine is given little time itself.
static void allow_runtime(const char *micros) {
    FILE *file = fopen(RUNTIME, "w");
    if (file) fputs(micros, file), fclose(file);
}

static void begin(void) {
    pin(0);
    scene->count = scene->go = scene->done = 0;
}

// All are ready and sleep; then this one, which is better, lets them go together.
static void release(int count) {
    while (scene->done < count) usleep(1000);
    set(SCHED_FIFO, 90);
    scene->go = 1;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 20);
    set(SCHED_OTHER, 0);
}

static void higher_priorities_run_first(void) {
    begin();
    pid_t low = worker(1, SCHED_FIFO, 10, 5, 1), high = worker(3, SCHED_FIFO, 30, 5, 1);
    pid_t fair = worker(0, SCHED_OTHER, 0, 1, 1), middle = worker(2, SCHED_RR, 20, 5, 1);
    release(4);
    CHECK(is_ok(low) && is_ok(high) && is_ok(fair) && is_ok(middle) && scene->count == 4);
    CHECK(scene->who[0] == 3 && scene->who[1] == 2 && scene->who[2] == 1 && scene->who[3] == 0);
}

static void equals_go_on_or_take_turns(void) {
    begin();
    pid_t one = worker(1, SCHED_FIFO, 10, 60, 3), two = worker(2, SCHED_FIFO, 10, 60, 3);
    release(2);
    CHECK(is_ok(one) && is_ok(two) && scene->count == 6);
    int changes = 0;
    for (int i = 1; i < 6; i++) changes += scene->who[i] != scene->who[i - 1];
    CHECK(changes == 1);
    begin();
    one = worker(1, SCHED_RR, 10, 60, 5), two = worker(2, SCHED_RR, 10, 60, 5);
    release(2);
    CHECK(is_ok(one) && is_ok(two) && scene->count == 10);
    for (int i = 1, at = changes = 0; i < 10; i++, at++) changes += scene->who[i] != scene->who[at];
    CHECK(changes > 1);
}

static void a_sleeper_preempts(void) {
    begin();
    pid_t child = fork();
    if (child == 0) {
        if (set(SCHED_FIFO, 2)) _exit(1);
        scene->done++;
        usleep(50000);
        note(1);
        _exit(0);
    }
    while (!scene->done) usleep(1000);
    CHECK(set(SCHED_FIFO, 1) == 0);
    work(150);
    note(2);
    CHECK(set(SCHED_OTHER, 0) == 0 && is_ok(child) && scene->who[0] == 1 && scene->who[1] == 2);
}

static void a_yield_is_for_equals(void) {
    begin();
    pid_t equal = worker(1, SCHED_FIFO, 10, 1, 1), fair = worker(2, SCHED_OTHER, 0, 1, 1);
    while (scene->done < 2) usleep(1000);
    CHECK(set(SCHED_FIFO, 10) == 0);
    scene->go = 1;
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 20);
    for (int i = 0; i < 100; i++) sched_yield();
    note(3);
    CHECK(set(SCHED_OTHER, 0) == 0 && is_ok(equal) && is_ok(fair));
    CHECK(scene->who[0] == 1 && scene->who[1] == 3 && scene->who[2] == 2);
}

static void a_new_priority_counts_at_once(void) {
    begin();
    pid_t child = worker(1, SCHED_OTHER, 0, 1, 1);
    while (scene->done < 1) usleep(1000);
    CHECK(set(SCHED_FIFO, 10) == 0);
    scene->go = 1;
    work(20);
    struct sched_param param = {.sched_priority = 11};
    CHECK(sched_setscheduler(child, SCHED_FIFO, &param) == 0);
    note(2);
    work(1);
    note(3);
    CHECK(set(SCHED_OTHER, 0) == 0 && is_ok(child) && scene->count == 3);
    CHECK(scene->who[0] == 1 && scene->who[1] == 2 && scene->who[2] == 3);
}

static void a_thread_that_never_waits_leaves_others_a_part(void) {
    pid_t hogs[8];
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (cpus > 8) cpus = 8;
    int ready[2];
    CHECK(pipe(ready) == 0);
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i < cpus; i++) CPU_SET(i, &all);
    sched_setaffinity(0, sizeof all, &all);
    for (int i = 0; i < cpus; i++) {
        hogs[i] = fork();
        if (hogs[i] == 0) {
            pin(i);
            char byte = 0;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (write(ready[1], &byte, 1) != 1 || set(SCHED_FIFO, 99)) _exit(1);
            for (;;) {
            }
        }
    }
    char bytes[8];
    for (int got = 0; got < cpus;) got += (int)read(ready[0], bytes, sizeof bytes);
    for (int i = 0; i < 3; i++) usleep(10000), work(5);
    for (int i = 0; i < cpus; i++) {
        int status;
        CHECK(kill(hogs[i], SIGKILL) == 0 && waitpid(hogs[i], &status, 0) == hogs[i]);
        CHECK(WIFSIGNALED(status));
    }
    close(ready[0]), close(ready[1]);
    allow_runtime("950000");
}

int main(void) {
    if (set(SCHED_FIFO, 1)) return printf("ok this needs a privilege\n"), 0;
    set(SCHED_OTHER, 0);
    scene = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST(policies_are_kept_and_told);
    TEST(bounds_and_turns_are_told);
    TEST(attributes_are_kept_and_told);
    TEST(users_need_a_limit);
    TEST(children_inherit_or_start_anew);
    TEST(proc_shows_policies);
    allow_runtime("-1");
    TEST(higher_priorities_run_first);
    TEST(equals_go_on_or_take_turns);
    TEST(a_sleeper_preempts);
    TEST(a_yield_is_for_equals);
    TEST(a_new_priority_counts_at_once);
    allow_runtime("500000");
    TEST(a_thread_that_never_waits_leaves_others_a_part);
    return check_status();
}
