// Performance events that sample: what a ring says of the program that maps it.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAMED __attribute__((noinline, aligned(4096), optimize("no-omit-frame-pointer")))
#define PAGES 8
#define DATA (PAGES * 4096UL)

static int sys_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
    return syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}
static struct perf_event_attr clock_event(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr};
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.sample_freq = 500, attr.freq = 1;
    attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
    attr.exclude_kernel = attr.exclude_hv = 1;
    attr.disabled = 1;
    return attr;
}
static struct perf_event_mmap_page *map_ring(int fd) {
    void *ring = mmap(NULL, DATA + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(ring != MAP_FAILED);
    return ring;
}
static unsigned long head_of(struct perf_event_mmap_page *ring) {
    return __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
}

// The next record, or none.
union record {
    struct perf_event_header header;
    struct { struct perf_event_header header; unsigned long ip; unsigned pid, tid; unsigned long period, callers, chain[128]; } sample;
    struct { struct perf_event_header header; unsigned pid, tid; unsigned long start, length, offset; char name[256]; } map;
    struct { struct perf_event_header header; unsigned pid, tid; char name[16]; } comm;
    struct { struct perf_event_header header; unsigned pid, parent; unsigned tid, ptid; unsigned long at; } life;
    struct { struct perf_event_header header; unsigned long id, lost; } lost;
    char bytes[4096];
};
static int next_record(struct perf_event_mmap_page *ring, union record *record) {
    unsigned long tail = ring->data_tail;
    if (tail == head_of(ring)) return 0;
    const char *data = (char *)ring + ring->data_offset;
    memcpy(&record->header, data + tail % DATA, 8);
    CHECK(record->header.size >= 8 && record->header.size <= sizeof *record && record->header.size % 8 == 0);
    for (unsigned at = 8; at < record->header.size; at++) record->bytes[at] = data[(tail + at) % DATA];
    __atomic_store_n(&ring->data_tail, tail + record->header.size, __ATOMIC_RELEASE);
    return 1;
}
static int find_record(struct perf_event_mmap_page *ring, union record *record, unsigned kind) {
    while (next_record(ring, record))
        if (record->header.type == kind) return 1;
    return 0;
}

static volatile unsigned long sink;
// Each is alone in its page, so that its addresses are known. The first calls nobody and keeps no
// frame, so that its caller is left out of chains.
FRAMED static void hot(void) {
    for (int i = 0; i < 1000000; i++) sink += i;
}
FRAMED static void its_caller(int turns) {
    while (turns--) hot(), sink++;
}
FRAMED static void the_callers_caller(int turns) {
    its_caller(turns), sink++;
}
static int is_within(unsigned long ip, void *from) { return ip - (unsigned long)from < 4096; }
// Works until the ring has so many bytes, or for long.
static void work_until(struct perf_event_mmap_page *ring, unsigned long bytes) {
    for (int turn = 0; turn < 3000 && head_of(ring) - ring->data_tail < bytes; turn++) the_callers_caller(4);
}

static void samples_fall_where_the_program_works(void) {
    struct perf_event_attr attr = clock_event();
    union record record;
    int fd = sys_open(&attr, 0, -1, -1, 0), all = 0, in_hot = 0;
    CHECK(fd >= 0);
    struct perf_event_mmap_page *ring = map_ring(fd);
    CHECK(ring->data_offset == 4096 && ring->data_size == DATA && head_of(ring) == 0);
    its_caller(10);
    CHECK(head_of(ring) == 0);
    CHECK(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
    work_until(ring, 40 * 32);
    CHECK(!ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
    while (next_record(ring, &record)) {
        if (record.header.type != PERF_RECORD_SAMPLE) continue;
        CHECK(record.header.size == 32 && (record.header.misc & 7) == PERF_RECORD_MISC_USER);
        CHECK(record.sample.pid == (unsigned)getpid() && record.sample.tid == (unsigned)gettid());
        CHECK(record.sample.period >= 1000000000 / 1000);
        all++, in_hot += is_within(record.sample.ip, hot);
    }
    CHECK(all >= 30 && in_hot * 2 > all);
    unsigned long head = head_of(ring);
    its_caller(50);
    CHECK(head_of(ring) == head);
    munmap(ring, DATA + 4096), close(fd);
}

static void a_sample_names_the_callers(void) {
    struct perf_event_attr attr = clock_event();
    union record record;
    attr.sample_type |= PERF_SAMPLE_CALLCHAIN, attr.disabled = 0, attr.exclude_callchain_kernel = 1;
    int fd = sys_open(&attr, 0, -1, -1, 0), found = 0;
    CHECK(fd >= 0);
    struct perf_event_mmap_page *ring = map_ring(fd);
    work_until(ring, 30 * 64);
    while (find_record(ring, &record, PERF_RECORD_SAMPLE)) {
        CHECK(record.sample.callers <= 128 && record.sample.chain[0] == PERF_CONTEXT_USER);
        CHECK(record.sample.chain[1] == record.sample.ip);
        for (unsigned i = 2; i < record.sample.callers; i++) found += is_within(record.sample.chain[i], the_callers_caller);
    }
    CHECK(found >= 10);
    munmap(ring, DATA + 4096), close(fd);
}

static void who_waits_for_records_is_woken(void) {
    struct perf_event_attr attr = clock_event();
    attr.disabled = 0, attr.wakeup_events = 5;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        for (;;) its_caller(1);
    int fd = sys_open(&attr, child, -1, -1, 0);
    CHECK(fd >= 0);
    struct perf_event_mmap_page *ring = map_ring(fd);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    CHECK(poll(&wait, 1, 60000) == 1 && wait.revents == POLLIN);
    CHECK(head_of(ring) >= 5 * 32);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(poll(&wait, 1, 60000) == 1 && wait.revents & POLLHUP);
    munmap(ring, DATA + 4096), close(fd);
}

static void a_mapped_file_is_named(void) {
    struct perf_event_attr attr = clock_event();
    union record record;
    attr.config = PERF_COUNT_SW_DUMMY, attr.freq = 0, attr.sample_freq = 0;
    attr.mmap = attr.comm = attr.task = 1, attr.disabled = 0;
    int fd = sys_open(&attr, 0, -1, -1, 0);
    CHECK(fd >= 0);
    struct perf_event_mmap_page *ring = map_ring(fd);
    char own[256] = {0};
    CHECK(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
    int file = open("/proc/self/exe", O_RDONLY);
    void *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 4096);
    CHECK(code != MAP_FAILED);
    CHECK(find_record(ring, &record, PERF_RECORD_MMAP));
    CHECK(record.map.start == (unsigned long)code && record.map.length == 8192 && record.map.offset == 4096);
    CHECK(record.map.pid == (unsigned)getpid() && !strcmp(record.map.name, own));
    CHECK(!prctl(PR_SET_NAME, "another") && find_record(ring, &record, PERF_RECORD_COMM));
    CHECK(record.comm.tid == (unsigned)gettid() && !strcmp(record.comm.name, "another"));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(waitpid(child, NULL, 0) == child && find_record(ring, &record, PERF_RECORD_FORK));
    CHECK(record.life.pid == (unsigned)child && record.life.parent == (unsigned)getpid());
    munmap(code, 8192), munmap(ring, DATA + 4096), close(file), close(fd);
}

static void a_tail_may_say_anything(void) {
    unsigned long tails[] = {1, 3, -1UL, -8UL, 1UL << 63, DATA, DATA + 1, 12345678901};
    struct perf_event_attr attr = clock_event();
    attr.disabled = 0;
    int fd = sys_open(&attr, 0, -1, -1, 0);
    CHECK(fd >= 0);
    struct perf_event_mmap_page *ring = map_ring(fd);
    for (unsigned i = 0; i < sizeof tails / sizeof *tails; i++) {
        ring->data_tail = tails[i];
        ring->data_head = -5UL, ring->data_offset = -1UL, ring->data_size = 3;
        memset((char *)ring + 4096, 0xff, DATA);
        its_caller(20);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        CHECK(poll(&wait, 1, 0) >= 0);
    }
    munmap(ring, DATA + 4096), close(fd);
}

static void what_does_not_fit_is_counted(void) {
    struct perf_event_attr attr = clock_event();
    union record record;
    attr.disabled = 0;
    int fd = sys_open(&attr, 0, -1, -1, 0);
    void *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    struct perf_event_mmap_page *ring = memory;
    for (int turn = 0; turn < 3000 && head_of(ring) + 32 < 4096; turn++) its_caller(4);
    CHECK(head_of(ring) + 32 >= 4096 && head_of(ring) <= 4096);
    unsigned long before = head_of(ring);
    its_caller(40);
    CHECK(head_of(ring) == before);
    ring->data_tail = before;
    for (int turn = 0; turn < 3000 && head_of(ring) == before; turn++) its_caller(4);
    const char *data = (char *)memory + 4096;
    for (unsigned at = 0; at < 24; at++) record.bytes[at] = data[(before + at) % 4096];
    CHECK(record.header.type == PERF_RECORD_LOST && record.header.size == 24 && record.lost.lost > 0);
    munmap(memory, 8192), close(fd);
}

static void rings_are_made_as_they_must_be(void) {
    struct perf_event_attr attr = clock_event();
    int fd = sys_open(&attr, 0, -1, -1, 0), other = sys_open(&attr, 0, -1, -1, 0);
    CHECK(mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096) == MAP_FAILED && errno == EINVAL);
    struct perf_event_mmap_page *ring = map_ring(fd);
    CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(!ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd) && !ioctl(other, PERF_EVENT_IOC_ENABLE, 0));
    work_until(ring, 64);
    CHECK(head_of(ring) >= 64);
    CHECK(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, other) < 0 && errno == EINVAL);
    CHECK(!ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, -1));
    unsigned long period = 0;
    CHECK(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) < 0 && errno == EINVAL);
    munmap(ring, DATA + 4096), close(fd), close(other);
    attr.inherit = 1;
    fd = sys_open(&attr, 0, -1, -1, 0);
    CHECK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EINVAL);
    close(fd);
    attr.inherit = 0, attr.sample_freq = 1 << 30;
    CHECK(sys_open(&attr, 0, -1, -1, 0) < 0 && errno == EINVAL);
    attr.sample_freq = 100, attr.sample_type = 1UL << 40;
    CHECK(sys_open(&attr, 0, -1, -1, 0) < 0 && errno == EINVAL);
}

static void rings_outlive_their_events_and_events_their_rings(void) {
    for (int turn = 0; turn < 100; turn++) {
        struct perf_event_attr attr = clock_event();
        attr.disabled = 0;
        int fd = sys_open(&attr, 0, -1, -1, 0);
        struct perf_event_mmap_page *ring = map_ring(fd);
        if (turn % 2) close(fd);
        its_caller(1);
        munmap(ring, DATA + 4096);
        its_caller(1);
        if (turn % 2 == 0) close(fd);
    }
}

static void one_user_has_only_so_many_rings(void) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct perf_event_attr attr = clock_event();
        if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) _exit(1);
        for (int i = 0; i < 4000; i++) {
            int fd = sys_open(&attr, 0, -1, -1, 0);
            if (fd < 0) _exit(errno == EMFILE ? 7 : 2);
            if (mmap(NULL, 129 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) _exit(errno == EPERM ? 7 : 3);
        }
        _exit(4);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void) {
    TEST(samples_fall_where_the_program_works);
    TEST(a_sample_names_the_callers);
    TEST(who_waits_for_records_is_woken);
    TEST(a_mapped_file_is_named);
    TEST(a_tail_may_say_anything);
    TEST(what_does_not_fit_is_counted);
    TEST(rings_are_made_as_they_must_be);
    TEST(rings_outlive_their_events_and_events_their_rings);
    TEST(one_user_has_only_so_many_rings);
    return check_status();
}
