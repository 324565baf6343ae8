// Whom an unmapping interrupts, by the kernel's own counters: nobody who does not have to be.
// The threads pin themselves, so the counts are exact on two CPUs; on one there is nobody
// to interrupt, and all of them are 0.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, MANY = 512, ROUNDS = 20 };

// The counter `name` of /proc/vmstat, or -1.
static long counter(const char *name) {
    static char text[8192];
    int file = open("/proc/vmstat", O_RDONLY);
    long bytes = read(file, text, sizeof text - 1);
    close(file);
    if (bytes < 0) return -1;
    text[bytes] = 0;
    size_t length = strlen(name);
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ') return atol(line + length);
        if (*line == 0) break;
    }
    return -1;
}

static long interrupts(void) { return counter("nr_tlb_ipi_sent"); }

static int cpus(void) { return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1; }

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % cpus(), &set);
    sched_setaffinity(0, sizeof set, &set);
}

static char *map(int pages) {
    return mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void touch(char *at, int pages) {
    for (int page = 0; page < pages; page++) at[(size_t)page * PAGE] = 1;
}

// What a thread on the other CPU does while the test looks.
static atomic_int started, finish;
static int wait_pipe[2];

static void *spin(void *unused) {
    pin(1);
    atomic_store(&started, 1);
    while (!atomic_load(&finish)) sched_getcpu();
    return unused;
}

static void *sleep_in_read(void *unused) {
    pin(1);
    atomic_store(&started, 1);
    char byte;
    CHECK(read(wait_pipe[0], &byte, 1) == 1);
    return unused;
}

static pthread_t start(void *(*part)(void *)) {
    pthread_t thread;
    atomic_store(&started, 0);
    atomic_store(&finish, 0);
    pthread_create(&thread, NULL, part, NULL);
    while (!atomic_load(&started)) sched_yield();
    usleep(20000);
    return thread;
}

static void stop(pthread_t thread) {
    atomic_store(&finish, 1);
    pthread_join(thread, NULL);
}

static void the_kernel_counts_its_interrupts(void) {
    CHECK(interrupts() >= 0);
    CHECK(counter("nr_tlb_local_flush_one") >= 0 && counter("nr_tlb_local_flush_all") >= 0);
    long before = counter("nr_tlb_flush_pages");
    char *memory = map(3);
    touch(memory, 3);
    CHECK(munmap(memory, 3 * PAGE) == 0);
    CHECK(counter("nr_tlb_flush_pages") == before + 3);
}

static void only_pages_that_were_there_count_as_forgotten(void) {
    enum { FAR = 1 << 13 };
    char *memory = map(FAR);
    long before = counter("nr_tlb_flush_pages");
    touch(memory, 1);
    touch(memory + (FAR - 1L) * PAGE, 1);
    CHECK(munmap(memory, FAR * (long)PAGE) == 0);
    CHECK(counter("nr_tlb_flush_pages") == before + 2);
}

static void nobody_is_interrupted_for_the_memory_of_one_thread(void) {
    pin(0);
    // The CPU that the program was started on may be on its way to rest.
    long sent = 1;
    for (int round = 0; round < 20 && sent != 0; round++) {
        long before = interrupts();
        char *memory = map(MANY);
        touch(memory, MANY);
        CHECK(mprotect(memory, MANY * PAGE, PROT_READ) == 0);
        CHECK(munmap(memory, MANY * PAGE) == 0);
        sent = interrupts() - before;
        usleep(1000);
    }
    CHECK(sent == 0);
}

static void nobody_is_interrupted_for_new_mappings(void) {
    pin(0);
    pthread_t other = start(spin);
    long before = interrupts();
    for (int round = 0; round < 20; round++) touch(map(MANY / 8), MANY / 8);
    long sent = interrupts() - before;
    stop(other);
    CHECK(sent == 0);
}

static void a_running_thread_is_interrupted_once_for_512_pages(void) {
    pin(0);
    pthread_t other = start(spin);
    char *memory = map(MANY);
    touch(memory, MANY);
    long before = interrupts();
    CHECK(munmap(memory, MANY * PAGE) == 0);
    long sent = interrupts() - before;
    stop(other);
    CHECK(sent == cpus() - 1);
}

static void a_running_thread_is_interrupted_once_for_lost_rights(void) {
    pin(0);
    pthread_t other = start(spin);
    char *memory = map(MANY);
    touch(memory, MANY);
    long before = interrupts();
    CHECK(mprotect(memory, MANY * PAGE, PROT_READ) == 0);
    long sent = interrupts() - before;
    CHECK(mprotect(memory, MANY * PAGE, PROT_READ | PROT_WRITE) == 0);
    long sent_for_more_rights = interrupts() - before - sent;
    stop(other);
    CHECK(sent == cpus() - 1);
    CHECK(sent_for_more_rights == 0);
}

// Once for all the pages, and once for each page that the two threads store to afterwards
// (stacks, the counter's buffer), for it is copied.
static void a_fork_interrupts_a_running_thread_once_for_all_pages(void) {
    pin(0);
    char *memory = map(MANY);
    touch(memory, MANY);
    pthread_t other = start(spin);
    long before = interrupts();
    pid_t child = fork();
    if (child == 0) _exit(0);
    long sent = interrupts() - before;
    waitpid(child, NULL, 0);
    stop(other);
    CHECK(munmap(memory, MANY * PAGE) == 0);
    CHECK(cpus() == 1 ? sent == 0 : sent >= 1 && sent < MANY / 32);
}

// What many unmappings count: the interrupts, and those that were spared for the reason of the
// counter `reason`.
struct counted {
    long sent, spared;
};

static struct counted unmap_often(const char *reason) {
    struct counted before = {interrupts(), counter(reason)};
    for (int round = 0; round < ROUNDS; round++) {
        char *memory = map(MANY);
        touch(memory, MANY);
        CHECK(munmap(memory, MANY * PAGE) == 0);
    }
    return (struct counted){interrupts() - before.sent, counter(reason) - before.spared};
}

static void an_idle_cpu_is_not_interrupted(void) {
    pin(0);
    CHECK(pipe(wait_pipe) == 0);
    pthread_t other = start(sleep_in_read);
    struct counted counted = unmap_often("nr_tlb_ipi_avoided_idle");
    CHECK(write(wait_pipe[1], "x", 1) == 1);
    stop(other);
    CHECK(counted.sent == 0);
    CHECK(cpus() == 1 || counted.spared >= ROUNDS);
}

static void a_cpu_in_another_space_is_not_interrupted(void) {
    pin(0);
    CHECK(pipe(wait_pipe) == 0);
    pthread_t other = start(sleep_in_read);
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        pin(1);
        CHECK(write(ready[1], "x", 1) == 1);
        for (;;) sched_getcpu();
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    usleep(20000);
    struct counted counted = unmap_often("nr_tlb_ipi_avoided_other_space");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(write(wait_pipe[1], "x", 1) == 1);
    stop(other);
    CHECK(counted.sent == 0);
    CHECK(cpus() == 1 || counted.spared >= ROUNDS);
}

// Two CPUs take pages from each other, by turns running, sleeping and in other spaces. A page
// that is mapped anew must read as zero: a stale translation would show the old frame's bytes,
// or write to a frame that has another owner.
static char *shared_page;
static atomic_int turn;

static void *reuse(void *number) {
    int me = *(int *)number;
    pin(me);
    for (int round = 0; round < 500; round++) {
        while (atomic_load(&turn) % 2 != me) {
            if (round % 3 != 0) sched_yield();
            if (round % 16 == 0) usleep(100);
        }
        if (shared_page[0] != 0 || shared_page[PAGE] != 0) return "a page came back with its old bytes";
        shared_page[0] = shared_page[PAGE] = (char)(1 + me);
        madvise(shared_page, 2 * PAGE, MADV_DONTNEED);
        atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

static void no_stale_translation_is_used(void) {
    shared_page = map(2);
    int numbers[2] = {0, 1};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, reuse, &numbers[i]);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        CHECK(result == NULL);
    }
}

int main(void) {
    TEST(the_kernel_counts_its_interrupts);
    TEST(only_pages_that_were_there_count_as_forgotten);
    TEST(nobody_is_interrupted_for_the_memory_of_one_thread);
    TEST(nobody_is_interrupted_for_new_mappings);
    TEST(a_running_thread_is_interrupted_once_for_512_pages);
    TEST(a_running_thread_is_interrupted_once_for_lost_rights);
    TEST(a_fork_interrupts_a_running_thread_once_for_all_pages);
    TEST(an_idle_cpu_is_not_interrupted);
    TEST(a_cpu_in_another_space_is_not_interrupted);
    TEST(no_stale_translation_is_used);
    return check_status();
}
