// CPU time: exact in sum, divided into what the program did and what the kernel did for it.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "cpu_use.h"

enum { WORK_MICROS = 400000, TRIES = 5 };

struct parts {
    long user, system;
};

static long micros(struct timeval time) { return time.tv_sec * 1000000L + time.tv_usec; }

static struct parts parts_of(struct rusage *usage) {
    return (struct parts){micros(usage->ru_utime), micros(usage->ru_stime)};
}

static struct parts used_by(int whom) {
    struct rusage usage;
    getrusage(whom, &usage);
    return parts_of(&usage);
}

static long sum(struct parts parts) { return parts.user + parts.system; }

static long clock_micros(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void call_shortly(void) {
    for (int step = 0; step < 20; step++) {
        char *memory = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int page = 0; page < 64; page++) memory[page << 12] = 1;
        munmap(memory, 1 << 18);
    }
}

/// Does `a_little` again and again for a good while; returns the CPU time it took.
static struct parts work(void (*a_little)(void)) {
    struct parts before = used_by(RUSAGE_SELF), now;
    do {
        a_little();
        now = used_by(RUSAGE_SELF);
    } while (sum(now) - sum(before) < WORK_MICROS);
    return (struct parts){now.user - before.user, now.system - before.system};
}

static int holds_in_child(int (*scene)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(!scene());
    int status;
    return waitpid(child, &status, 0) == child && status == 0;
}

/// A host that is busy stops the machine anywhere, also in the kernel, whose time it then is:
/// so one try of several counts.
static void run_in_child(int (*scene)(void)) {
    int holds = 0;
    for (int tries = 0; tries < TRIES && !holds; tries++) holds = holds_in_child(scene);
    CHECK(holds);
}

static int computing(void) {
    struct parts parts = work(compute_a_little);
    return parts.user > 4 * parts.system;
}

static void computing_is_the_programs_time(void) { run_in_child(computing); }

static int long_calls(void) {
    struct parts parts = work(call_a_little);
    return parts.system > 4 * parts.user;
}

static void long_calls_are_the_kernels_time(void) { run_in_child(long_calls); }

static int short_calls(void) {
    struct parts parts = work(call_shortly);
    return parts.system > parts.user;
}

static void faults_and_short_calls_are_the_kernels_time(void) { run_in_child(short_calls); }

static void both_parts_add_up_to_the_exact_cpu_time(void) {
    for (int round = 0; round < 50; round++) {
        long least = clock_micros(CLOCK_PROCESS_CPUTIME_ID);
        long own = sum(used_by(RUSAGE_SELF));
        long most = clock_micros(CLOCK_PROCESS_CPUTIME_ID);
        // Either part is cut to whole microseconds.
        CHECK(own >= least - 2 && own <= most);
        least = clock_micros(CLOCK_THREAD_CPUTIME_ID);
        own = sum(used_by(RUSAGE_THREAD));
        most = clock_micros(CLOCK_THREAD_CPUTIME_ID);
        CHECK(own >= least - 2 && own <= most);
        compute_a_little();
    }
}

static void neither_part_ever_shrinks(void) {
    struct parts before = used_by(RUSAGE_SELF);
    for (int round = 0; round < 400; round++) {
        (round / 40 % 2 ? compute_a_little : call_a_little)();
        struct parts now = used_by(RUSAGE_SELF);
        CHECK(now.user >= before.user && now.system >= before.system);
        before = now;
    }
}

static void stat_of_self(struct parts *own, struct parts *children) {
    char line[1024] = "";
    int file = open("/proc/self/stat", O_RDONLY);
    CHECK(read(file, line, sizeof line - 1) > 0);
    close(file);
    long ticks[4];
    int found = sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %ld %ld",
                       ticks, ticks + 1, ticks + 2, ticks + 3);
    CHECK(found == 4);
    *own = (struct parts){ticks[0] * 10000, ticks[1] * 10000};
    *children = (struct parts){ticks[2] * 10000, ticks[3] * 10000};
}

static int is_between(long low, long value, long high) {
    // Ticks are cut.
    return value + 10000 > low && value <= high;
}

static void all_files_and_calls_tell_the_same(void) {
    struct parts least = used_by(RUSAGE_SELF), own, children;
    struct tms ticks;
    times(&ticks);
    stat_of_self(&own, &children);
    struct parts most = used_by(RUSAGE_SELF), waited = used_by(RUSAGE_CHILDREN);
    CHECK(is_between(least.user, ticks.tms_utime * 10000, most.user));
    CHECK(is_between(least.system, ticks.tms_stime * 10000, most.system));
    CHECK(is_between(least.user, own.user, most.user));
    CHECK(is_between(least.system, own.system, most.system));
    CHECK(sum(waited) > 0);
    CHECK(is_between(waited.user, ticks.tms_cutime * 10000, waited.user));
    CHECK(is_between(waited.system, ticks.tms_cstime * 10000, waited.system));
    CHECK(is_between(waited.user, children.user, waited.user));
    CHECK(is_between(waited.system, children.system, waited.system));
}

static void a_parent_hears_both_parts_of_its_child(void) {
    struct parts before = used_by(RUSAGE_CHILDREN);
    pid_t child = fork();
    if (child == 0) {
        work(call_a_little);
        _exit(0);
    }
    struct rusage usage;
    int status;
    CHECK(wait4(child, &status, 0, &usage) == child && status == 0);
    struct parts parts = parts_of(&usage), after = used_by(RUSAGE_CHILDREN);
    CHECK(sum(parts) >= WORK_MICROS && parts.system > 4 * parts.user);
    CHECK(labs(after.user - before.user - parts.user) <= 1);
    CHECK(labs(after.system - before.system - parts.system) <= 1);
}

static volatile sig_atomic_t alarms;

static void note(int signal) { (void)signal, alarms++; }

static int kernel_only(void) {
    signal(SIGVTALRM, note);
    signal(SIGPROF, note);
    struct itimerval own = {.it_value = {.tv_usec = WORK_MICROS / 2}}, left;
    struct itimerval both = {.it_value = {.tv_usec = WORK_MICROS / 2}};
    if (setitimer(ITIMER_VIRTUAL, &own, NULL) != 0) return 0;
    work(call_a_little);
    if (alarms != 0 || getitimer(ITIMER_VIRTUAL, &left) != 0) return 0;
    if (micros(left.it_value) <= WORK_MICROS / 4 || setitimer(ITIMER_PROF, &both, NULL) != 0) return 0;
    work(call_a_little);
    if (alarms != 1) return 0;
    work(compute_a_little);
    return alarms == 2;
}

static void the_virtual_timer_ignores_the_kernels_time(void) { run_in_child(kernel_only); }

/// User, system and idle time of all CPUs.
static void whole_machine(long *user, long *system, long *idle) {
    FILE *file = fopen("/proc/stat", "r");
    int found = fscanf(file, "cpu %ld %*d %ld %ld", user, system, idle);
    fclose(file);
    CHECK(found == 3);
}

static void the_machine_tells_what_its_programs_used(void) {
    long user[4], system[4], idle[4];
    whole_machine(&user[0], &system[0], &idle[0]);
    run_in_child(computing);
    whole_machine(&user[1], &system[1], &idle[1]);
    run_in_child(long_calls);
    whole_machine(&user[2], &system[2], &idle[2]);
    usleep(300000);
    whole_machine(&user[3], &system[3], &idle[3]);
    long half = WORK_MICROS / 10000 / 2;
    CHECK(user[1] - user[0] > half && system[2] - system[1] > half);
    CHECK(idle[3] - idle[2] >= 15);
}

int main(void) {
    TEST(computing_is_the_programs_time);
    TEST(long_calls_are_the_kernels_time);
    TEST(faults_and_short_calls_are_the_kernels_time);
    TEST(both_parts_add_up_to_the_exact_cpu_time);
    TEST(neither_part_ever_shrinks);
    TEST(all_files_and_calls_tell_the_same);
    TEST(a_parent_hears_both_parts_of_its_child);
    TEST(the_virtual_timer_ignores_the_kernels_time);
    TEST(the_machine_tells_what_its_programs_used);
    return check_status();
}
