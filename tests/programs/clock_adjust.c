// adjtimex(2), clock_settime(2) and what they do to the clocks.
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long ns_by_call(clockid_t id) {
    struct timespec now;
    syscall(SYS_clock_gettime, id, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void pause_ms(long ms) {
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&span, &span)) {
    }
}

static int set_tick(long tick) {
    struct timex t = {.modes = ADJ_TICK, .tick = tick};
    return adjtimex(&t);
}

static void anybody_may_look_at_the_clock(void) {
    struct timex t = {.modes = 0};
    int state = adjtimex(&t);
    CHECK(state == TIME_ERROR || state == TIME_OK);
    CHECK(state == TIME_OK || t.status & STA_UNSYNC);
    CHECK(t.tick == 10000);
    CHECK(t.tolerance == 32768000);
    CHECK(t.precision == 1);
    CHECK(t.time.tv_sec > 1700000000);
}

static void bad_values_are_refused(void) {
    CHECK(set_tick(8999) == -1 && errno == EINVAL);
    CHECK(set_tick(11001) == -1 && errno == EINVAL);
    struct timex step = {.modes = ADJ_SETOFFSET, .time = {0, 1000000}};
    CHECK(adjtimex(&step) == -1 && errno == EINVAL);
    struct timex half = {.modes = 0x8000};
    CHECK(adjtimex(&half) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_adjtimex, NULL) == -1 && errno == EFAULT);
    struct timex look = {.modes = 0};
    CHECK(clock_adjtime(CLOCK_MONOTONIC, &look) == -1 && errno == EOPNOTSUPP);
    CHECK(clock_adjtime(99, &look) == -1 && errno == EINVAL);
    struct timespec bad = {0, 1000000000};
    CHECK(clock_settime(CLOCK_REALTIME, &bad) == -1 && errno == EINVAL);
    CHECK(clock_settime(CLOCK_MONOTONIC, &bad) == -1 && errno == EINVAL);
}

static int refusals(void) {
    struct timex tick = {.modes = ADJ_TICK, .tick = 10000};
    struct timex single = {.modes = ADJ_OFFSET_SINGLESHOT};
    struct timex left = {.modes = ADJ_OFFSET_SS_READ};
    struct timespec now = {1700000000, 0};
    if (adjtimex(&tick) != -1 || errno != EPERM) return 1;
    if (adjtimex(&single) != -1 || errno != EPERM) return 2;
    if (adjtimex(&left) == -1) return 3;
    if (clock_settime(CLOCK_REALTIME, &now) != -1 || errno != EPERM) return 4;
    return 0;
}

static void who_lacks_the_capability_may_not_adjust(void) {
    pid_t child = fork();
    if (child == 0) {
        if (setuid(65534)) _exit(9);
        _exit(refusals());
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

static void an_offset_moves_the_wall_clock_and_no_other(void) {
    long long lead = ns(CLOCK_REALTIME) - ns(CLOCK_MONOTONIC);
    struct timex on = {.modes = ADJ_SETOFFSET | ADJ_NANO, .time = {100, 500000000}};
    CHECK(adjtimex(&on) != -1);
    long long moved = ns(CLOCK_REALTIME) - ns(CLOCK_MONOTONIC) - lead;
    // Between two readings of a clock the host may pause.
    CHECK(moved > 100000000000 && moved < 101000000000);
    struct timex back = {.modes = ADJ_SETOFFSET | ADJ_NANO, .time = {-101, 500000000}};
    CHECK(adjtimex(&back) != -1);
    moved = ns(CLOCK_REALTIME) - ns(CLOCK_MONOTONIC) - lead;
    CHECK(moved > -500000000 && moved < 500000000);
    struct timex micros = {.modes = ADJ_MICRO};
    CHECK(adjtimex(&micros) != -1);
}

static void a_longer_tick_makes_the_clock_faster_than_the_raw_one(void) {
    CHECK(set_tick(10500) != -1);
    long long monotonic = ns(CLOCK_MONOTONIC), raw = ns(CLOCK_MONOTONIC_RAW);
    pause_ms(1000);
    monotonic = ns(CLOCK_MONOTONIC) - monotonic;
    raw = ns(CLOCK_MONOTONIC_RAW) - raw;
    CHECK(set_tick(10000) != -1);
    // What lies between two readings is small beside a second, and 5 % is not.
    CHECK(monotonic > raw * 1.03 && monotonic < raw * 1.07);
}

static void adjtime_works_off_its_millisecond(void) {
    struct timeval delta = {0, 1000}, left;
    CHECK(adjtime(&delta, NULL) == 0);
    CHECK(adjtime(NULL, &left) == 0);
    CHECK(left.tv_usec > 0 && left.tv_usec <= 1000);
    for (int tries = 0; tries < 100 && left.tv_usec; tries++) {
        pause_ms(200);
        CHECK(adjtime(NULL, &left) == 0);
    }
    CHECK(left.tv_sec == 0 && left.tv_usec == 0);
}

static void the_loop_works_off_an_offset(void) {
    struct timex t = {.modes = ADJ_STATUS | ADJ_TIMECONST | ADJ_OFFSET | ADJ_FREQUENCY | ADJ_MICRO,
                      .status = STA_PLL | STA_FREQHOLD, .constant = 0, .offset = 20000};
    CHECK(adjtimex(&t) == TIME_OK);
    CHECK(t.offset == 20000 && t.constant == 4);
    struct timex look = {.modes = 0};
    for (int tries = 0; tries < 100; tries++) {
        pause_ms(200);
        CHECK(adjtimex(&look) != -1);
        if (look.offset < 19900) break;
    }
    CHECK(look.offset < 19900 && look.offset > 0);
    struct timex off = {.modes = ADJ_STATUS | ADJ_OFFSET | ADJ_FREQUENCY, .status = STA_PLL};
    CHECK(adjtimex(&off) != -1);
    off = (struct timex){.modes = ADJ_STATUS, .status = 0};
    CHECK(adjtimex(&off) == TIME_OK);
}

static void setting_the_clock_makes_it_unsynchronised(void) {
    struct timex good = {.modes = ADJ_STATUS | ADJ_MAXERROR, .status = 0, .maxerror = 1000};
    CHECK(adjtimex(&good) == TIME_OK);
    long long lead = ns(CLOCK_REALTIME) - ns(CLOCK_MONOTONIC);
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    now.tv_sec += 1000;
    CHECK(clock_settime(CLOCK_REALTIME, &now) == 0);
    struct timex look = {.modes = 0};
    CHECK(adjtimex(&look) == TIME_ERROR);
    CHECK(look.status & STA_UNSYNC);
    long long moved = ns(CLOCK_REALTIME) - ns(CLOCK_MONOTONIC) - lead;
    CHECK(moved > 990000000000 && moved < 1001000000000);
    struct timex back = {.modes = ADJ_SETOFFSET, .time = {-1000, 0}};
    CHECK(adjtimex(&back) != -1);
}

static atomic_int reading_ends;
static atomic_int went_back;

static void *read_clocks(void *unused) {
    long long last = 0;
    while (!reading_ends) {
        long long now = ns(CLOCK_MONOTONIC), by_call = ns_by_call(CLOCK_MONOTONIC);
        if (now < last) went_back = 1;
        if (by_call < now) went_back = 2;
        last = by_call;
    }
    return unused;
}

static void no_reader_sees_the_clock_go_back_while_it_is_bent(void) {
    pthread_t readers[2];
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&readers[i], NULL, read_clocks, NULL) == 0);
    for (int i = 0; i < 400; i++) {
        CHECK(set_tick(i % 2 ? 9000 : 11000) != -1);
        pause_ms(1);
    }
    reading_ends = 1;
    for (int i = 0; i < 2; i++) pthread_join(readers[i], NULL);
    CHECK(set_tick(10000) != -1);
    CHECK(went_back == 0);
}

int main(void) {
    TEST(anybody_may_look_at_the_clock);
    TEST(bad_values_are_refused);
    TEST(who_lacks_the_capability_may_not_adjust);
    TEST(an_offset_moves_the_wall_clock_and_no_other);
    TEST(a_longer_tick_makes_the_clock_faster_than_the_raw_one);
    TEST(adjtime_works_off_its_millisecond);
    TEST(the_loop_works_off_an_offset);
    TEST(setting_the_clock_makes_it_unsynchronised);
    TEST(no_reader_sees_the_clock_go_back_while_it_is_bent);
    return check_status();
}
