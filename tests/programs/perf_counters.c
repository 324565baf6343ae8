// Performance events that count: threads, children, groups, who may know what.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int sys_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
    return syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}
static struct perf_event_attr software(int config) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = config};
    attr.exclude_kernel = attr.exclude_hv = 0;
    return attr;
}
static unsigned long value(int fd) {
    unsigned long count = -1UL;
    CHECK(read(fd, &count, 8) == 8);
    return count;
}
static void spin(long ns) {
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}
static void touch(int pages) {
    char *memory = mmap(NULL, pages * 4096UL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, pages * 4096UL, MADV_NOHUGEPAGE);
    for (int i = 0; i < pages; i++) memory[i * 4096UL] = 1;
    munmap(memory, pages * 4096UL);
}

static void a_clock_counts_while_it_is_on(void) {
    struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
    attr.disabled = 1;
    int fd = sys_open(&attr, 0, -1, -1, 0);
    CHECK(fd >= 0);
    spin(2000000);
    CHECK(value(fd) == 0);
    CHECK(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
    spin(5000000);
    CHECK(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
    unsigned long counted = value(fd);
    CHECK(counted >= 4000000);
    spin(2000000);
    CHECK(value(fd) == counted);
    CHECK(!ioctl(fd, PERF_EVENT_IOC_RESET, 0) && value(fd) == 0);
    close(fd);
}

static void faults_and_switches_are_counted(void) {
    struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
    int faults = sys_open(&attr, 0, -1, -1, 0);
    attr = software(PERF_COUNT_SW_CONTEXT_SWITCHES);
    int switches = sys_open(&attr, 0, -1, -1, 0);
    CHECK(faults >= 0 && switches >= 0);
    unsigned long before = value(faults);
    touch(64);
    // Faults may bring neighbours.
    CHECK(value(faults) > before && value(faults) <= before + 200);
    before = value(switches);
    for (int i = 0; i < 20; i++) usleep(1000);
    CHECK(value(switches) >= before + 20);
    close(faults), close(switches);
}

static void moves_to_another_cpu_are_counted(void) {
    cpu_set_t all, one;
    CHECK(!sched_getaffinity(0, sizeof all, &all));
    struct perf_event_attr attr = software(PERF_COUNT_SW_CPU_MIGRATIONS);
    int fd = sys_open(&attr, 0, -1, -1, 0);
    CHECK(fd >= 0);
    int cpus = 0, moves = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK(!sched_setaffinity(0, sizeof one, &one));
        cpus++;
    }
    moves = cpus - 1;
    CHECK((long)value(fd) >= moves);
    CHECK(!sched_setaffinity(0, sizeof all, &all));
    close(fd);
}

static void *touches(void *unused) { return touch(64), unused; }
static void children_and_threads_are_counted_where_an_event_is_inherited(void) {
    int fds[2];
    for (int inherit = 0; inherit < 2; inherit++) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
        attr.inherit = inherit;
        CHECK((fds[inherit] = sys_open(&attr, 0, -1, -1, 0)) >= 0);
    }
    pthread_t thread;
    unsigned long own = value(fds[0]), all = value(fds[1]);
    CHECK(!pthread_create(&thread, NULL, touches, NULL) && !pthread_join(thread, NULL));
    unsigned long after_own = value(fds[0]), after_all = value(fds[1]);
    CHECK(after_all - all > after_own - own);
    own = after_own, all = after_all;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) touch(64), _exit(0);
        waitpid(grandchild, NULL, 0);
        touch(64), _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(value(fds[1]) - all >= value(fds[0]) - own + 8);
    close(fds[0]), close(fds[1]);
}

static void an_event_starts_when_a_program_does(void) {
    struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
    int go[2], status;
    char byte;
    CHECK(!pipe(go));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) == 1) spin(3000000), execl("/proc/self/exe", "self", "spin", NULL);
        _exit(1);
    }
    attr.disabled = attr.inherit = attr.enable_on_exec = 1;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    int fd = sys_open(&attr, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
    CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    unsigned long words[3];
    CHECK(read(fd, words, sizeof words) == sizeof words && words[0] == 0 && words[1] == 0);
    CHECK(write(go[1], "g", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK(read(fd, words, sizeof words) == sizeof words);
    CHECK(words[0] >= 10000000 && words[1] == words[2] && words[1] > 0);
    close(fd), close(go[0]), close(go[1]);
}

static void a_group_is_read_and_switched_at_once(void) {
    struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
    attr.disabled = 1;
    attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
    int leader = sys_open(&attr, 0, -1, -1, 0);
    attr.config = PERF_COUNT_SW_PAGE_FAULTS;
    // It follows its leader.
    attr.disabled = 0;
    int member = sys_open(&attr, 0, -1, leader, 0);
    CHECK(leader >= 0 && member >= 0);
    unsigned long words[8], ids[2];
    CHECK(!ioctl(leader, PERF_EVENT_IOC_ID, &ids[0]) && !ioctl(member, PERF_EVENT_IOC_ID, &ids[1]));
    touch(16);
    CHECK(read(leader, words, sizeof words) == 48 && words[2] == 0 && words[4] == 0);
    CHECK(!ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
    spin(2000000), touch(16);
    CHECK(!ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
    CHECK(read(leader, words, sizeof words) == 48);
    CHECK(words[0] == 2 && words[1] > 0 && words[2] >= 2000000 && words[3] == ids[0]);
    CHECK(words[4] > 0 && words[5] == ids[1] && ids[0] != ids[1]);
    CHECK(read(leader, words, 40) < 0 && errno == ENOSPC);
    // A group has one level, and one target.
    CHECK(sys_open(&attr, 0, -1, member, 0) < 0 && errno == EINVAL);
    CHECK(sys_open(&attr, 0, -1, 0, 0) < 0);
    close(leader), close(member);
}

static void a_cpu_is_counted_whoever_runs_on_it(void) {
    struct perf_event_attr attr = software(PERF_COUNT_SW_CPU_CLOCK);
    int fd = sys_open(&attr, -1, 0, -1, 0);
    CHECK(fd >= 0);
    unsigned long before = value(fd);
    usleep(5000);
    CHECK(value(fd) - before >= 5000000);
    close(fd);
    CHECK(sys_open(&attr, -1, -1, -1, 0) < 0 && errno == EINVAL);
    CHECK(sys_open(&attr, -1, 4000, -1, 0) < 0 && (errno == EINVAL || errno == ENODEV));
}

static void what_is_asked_for_wrongly_is_refused(void) {
    struct perf_event_attr attr = software(PERF_COUNT_SW_CPU_CLOCK);
    unsigned char longer[256] = {0};
    CHECK(sys_open(&attr, 0, -1, -1, 1 << 9) < 0 && errno == EINVAL);
    CHECK(sys_open(&attr, 0, -1, 12345, 0) < 0 && errno == EBADF);
    CHECK(sys_open(&attr, 0x3ffffffe, -1, -1, 0) < 0 && errno == ESRCH);
    CHECK(sys_open(NULL, 0, -1, -1, 0) < 0 && errno == EFAULT);
    attr.config = 99;
    CHECK(sys_open(&attr, 0, -1, -1, 0) < 0 && errno == ENOENT);
    attr.config = 0, attr.read_format = 1 << 20;
    CHECK(sys_open(&attr, 0, -1, -1, 0) < 0 && errno == EINVAL);
    attr.read_format = 0, attr.size = 32;
    CHECK(sys_open(&attr, 0, -1, -1, 0) < 0 && errno == E2BIG && attr.size >= PERF_ATTR_SIZE_VER5);
    attr.size = sizeof longer;
    memcpy(longer, &attr, sizeof attr);
    int fd = sys_open((void *)longer, 0, -1, -1, 0);
    CHECK(fd >= 0 && !close(fd));
    longer[200] = 1;
    CHECK(sys_open((void *)longer, 0, -1, -1, 0) < 0 && errno == E2BIG);
    attr.size = 0;
    fd = sys_open(&attr, 0, -1, -1, 0);
    CHECK(fd >= 0);
    CHECK(ioctl(fd, 0x24ff, 0) < 0 && errno == ENOTTY);
    char byte;
    CHECK(read(fd, &byte, 1) < 0 && errno == ENOSPC);
    CHECK(write(fd, &byte, 1) < 0);
    close(fd);
}

static void who_has_no_rights_sees_its_own_programs_only(void) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
        if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) _exit(1);
        if (sys_open(&attr, 0, -1, -1, 0) != -1 || errno != EACCES) _exit(2);
        attr.exclude_kernel = 1;
        if (sys_open(&attr, 0, -1, -1, 0) < 0) _exit(3);
        if (sys_open(&attr, getppid(), -1, -1, 0) != -1 || errno != EACCES) _exit(4);
        if (sys_open(&attr, -1, 0, -1, 0) != -1 || errno != EACCES) _exit(5);
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void events_end_with_their_descriptors_however_many_threads_they_watch(void) {
    for (int turn = 0; turn < 200; turn++) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
        attr.inherit = 1;
        int fds[8];
        for (int i = 0; i < 8; i++) CHECK((fds[i] = sys_open(&attr, 0, -1, -1, 0)) >= 0);
        pid_t child = fork();
        if (child == 0) _exit(0);
        if (turn % 2) CHECK(waitpid(child, NULL, 0) == child);
        for (int i = 0; i < 8; i++) CHECK(!close(fds[i]));
        if (turn % 2 == 0) CHECK(waitpid(child, NULL, 0) == child);
    }
}

static void who_waits_is_told_that_the_program_has_ended(void) {
    int go[2], status;
    char byte;
    CHECK(!pipe(go));
    fflush(stdout);
    pid_t watched = fork();
    // Late enough that who watches it waits already, as a rule.
    if (watched == 0) _exit(read(go[0], &byte, 1) != 1 || usleep(200000));
    // Not its maker, whom a signal would wake.
    pid_t watcher = fork();
    if (watcher == 0) {
        struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
        struct pollfd wait = {.fd = sys_open(&attr, watched, -1, -1, 0)};
        alarm(60);
        if (poll(&wait, 1, 0) != 0 || write(go[1], "g", 1) != 1) _exit(1);
        _exit(poll(&wait, 1, -1) != 1 || wait.revents != POLLHUP);
    }
    CHECK(waitpid(watched, &status, 0) == watched && status == 0);
    CHECK(waitpid(watcher, &status, 0) == watcher && status == 0);
    close(go[0]), close(go[1]);
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "spin")) return spin(10000000), 3;
    TEST(a_clock_counts_while_it_is_on);
    TEST(faults_and_switches_are_counted);
    TEST(moves_to_another_cpu_are_counted);
    TEST(children_and_threads_are_counted_where_an_event_is_inherited);
    TEST(an_event_starts_when_a_program_does);
    TEST(a_group_is_read_and_switched_at_once);
    TEST(a_cpu_is_counted_whoever_runs_on_it);
    TEST(what_is_asked_for_wrongly_is_refused);
    TEST(who_has_no_rights_sees_its_own_programs_only);
    TEST(events_end_with_their_descriptors_however_many_threads_they_watch);
    TEST(who_waits_is_told_that_the_program_has_ended);
    return check_status();
}
