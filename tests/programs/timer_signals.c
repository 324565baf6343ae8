// Clocks, sleeping, interval timers and POSIX timers.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count, last_value, last_code;

static void note(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    count++;
    last_value = info->si_value.sival_int;
    last_code = info->si_code;
}

static void handle(int signal) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(signal, &action, NULL);
    count = 0;
}

static long now_micros(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void sleep_millis(int count) {
    struct timespec span = {.tv_nsec = count * 1000000L};
    while (nanosleep(&span, &span) == -1 && errno == EINTR) {
    }
}

static void clocks_go_forward_together(void) {
    clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME};
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        long before = now_micros(clocks[i]);
        sleep_millis(10);
        long passed = now_micros(clocks[i]) - before;
        // The raw clock may be slower than the one that is slept by, by some parts in 10^4.
        CHECK(passed >= 9900 && passed < 2000000);
    }
    struct timespec resolution, direct, fast;
    CHECK(clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_nsec == 1);
    CHECK(clock_gettime(99, &resolution) == -1 && errno == EINVAL);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &direct);
    clock_gettime(CLOCK_MONOTONIC, &fast);
    CHECK(fast.tv_sec - direct.tv_sec <= 1);
    CHECK(labs(time(NULL) - now_micros(CLOCK_REALTIME) / 1000000) <= 1);
}

static void an_absolute_sleep_ends_at_its_moment(void) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == 0);
    CHECK(now_micros(CLOCK_MONOTONIC) >= until.tv_sec * 1000000L + until.tv_nsec / 1000);
    until.tv_nsec = 1000000000;
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &until, NULL) == EINVAL);
}

static void an_interval_timer_fires_again_and_again(void) {
    handle(SIGALRM);
    struct itimerval often = {{.tv_usec = 5000}, {.tv_usec = 5000}}, left;
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (count < 5) pause();
    CHECK(getitimer(ITIMER_REAL, &left) == 0 && left.it_interval.tv_usec == 5000);
    memset(&often, 0, sizeof often);
    CHECK(setitimer(ITIMER_REAL, &often, &left) == 0 && left.it_value.tv_usec > 0);
    int seen = count;
    sleep_millis(20);
    CHECK(count == seen);
}

static void a_timer_fires_while_the_input_is_waited_for(void) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    count = 0;
    struct itimerval often = {{.tv_usec = 50000}, {.tv_usec = 50000}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    char byte;
    while (count < 5) {
        // Nobody types; where there is no input at all the program waits without it.
        if (read(STDIN_FILENO, &byte, 1) == 0) pause();
    }
    memset(&often, 0, sizeof often);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void an_alarm_tells_what_was_left(void) {
    CHECK(alarm(100) == 0);
    unsigned left = alarm(0);
    CHECK(left == 100 || left == 99);
    CHECK(alarm(0) == 0);
}

static void a_timer_of_cpu_time_needs_work(void) {
    handle(SIGVTALRM);
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    CHECK(setitimer(ITIMER_VIRTUAL, &soon, NULL) == 0);
    sleep_millis(60);
    CHECK(count == 0);
    long end = now_micros(CLOCK_MONOTONIC) + 5000000;
    while (count == 0 && now_micros(CLOCK_MONOTONIC) < end) {
    }
    CHECK(count == 1);
}

static void a_posix_timer_carries_a_value(void) {
    handle(SIGRTMIN);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    event.sigev_value.sival_int = 77;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec once = {.it_value = {.tv_nsec = 10000000}}, left;
    CHECK(timer_settime(timer, 0, &once, NULL) == 0);
    CHECK(timer_gettime(timer, &left) == 0 && left.it_value.tv_nsec > 0);
    while (count == 0) pause();
    CHECK(count == 1 && last_value == 77 && last_code == SI_TIMER);
    CHECK(timer_gettime(timer, &left) == 0 && left.it_value.tv_nsec == 0);
    CHECK(timer_delete(timer) == 0 && timer_delete(timer) == -1 && errno == EINVAL);
}

static void missed_expirations_are_counted(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    CHECK(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
    struct itimerspec often = {{.tv_nsec = 1000000}, {.tv_nsec = 1000000}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0);
    sleep_millis(50);
    siginfo_t info;
    CHECK(sigwaitinfo(&set, &info) == SIGRTMIN && info.si_overrun >= 10);
    CHECK(timer_getoverrun(timer) >= 10);
    CHECK(timer_delete(timer) == 0);
    struct timespec none = {0};
    while (sigtimedwait(&set, NULL, &none) > 0) {
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int main(void) {
    TEST(clocks_go_forward_together);
    TEST(an_absolute_sleep_ends_at_its_moment);
    TEST(an_interval_timer_fires_again_and_again);
    TEST(a_timer_fires_while_the_input_is_waited_for);
    TEST(an_alarm_tells_what_was_left);
    TEST(a_timer_of_cpu_time_needs_work);
    TEST(a_posix_timer_carries_a_value);
    TEST(missed_expirations_are_counted);
    return check_status();
}
