// Threads that do one thing each, and what /proc/microstates says of them. Times are compared
// within one life only, so that a busy host changes nothing.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "cpu_use.h"

enum { USR, SYS, TRP, TFL, DFL, LCK, SLP, LAT, STATES };
enum { VCX = STATES, ICX, SCL, SIG, FIGURES };
enum { WORK_MICROS = 400000 };

/// What a line of the file says: the age, the states, the counts.
struct life {
    long age, of[FIGURES];
};

static char text[1 << 18];

static void read_file(void) {
    int file = open("/proc/microstates", O_RDONLY);
    ssize_t done = 0, got;
    while ((got = read(file, text + done, sizeof text - 1 - done)) > 0) done += got;
    text[done] = 0;
    close(file);
}

/// Reads a line; the number of the thread, or 0.
static int parse(const char *line, struct life *life) {
    int thread, used;
    if (sscanf(line, "%*d %d %*d %ld%n", &thread, &life->age, &used) != 2) return 0;
    for (int at = 0; at < FIGURES; at++) {
        int more;
        line += used;
        if (sscanf(line, "%ld%n", &life->of[at], &more) != 1) return 0;
        used = more;
    }
    return thread;
}

static struct life of_thread(int wanted) {
    struct life life;
    read_file();
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        if (parse(line + 1, &life) == wanted) return life;
    }
    CHECK(!"the thread is not there");
    return life;
}

static struct life own(void) { return of_thread(gettid()); }

static struct life since(struct life before) {
    struct life now = own();
    now.age -= before.age;
    for (int at = 0; at < FIGURES; at++) now.of[at] -= before.of[at];
    return now;
}

/// Whether four fifths of the time that was not spent waiting for a CPU went there.
static int is_mostly(struct life *life, int state) {
    long sum = -life->of[LAT];
    for (int at = 0; at < STATES; at++) sum += life->of[at];
    return life->of[state] * 5 > sum * 4;
}

static long cpu_micros(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void fault_a_little(void) {
    enum { BYTES = 1 << 20 };
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, BYTES, MADV_NOHUGEPAGE);
    // Backwards, so that no run of pages is foreseen.
    for (int page = BYTES / 4096 - 1; page >= 0; page--) memory[page * 4096] = 1;
    munmap(memory, BYTES);
}

static void trap_a_little(void) {
    for (int step = 0; step < 1000; step++) __asm__ volatile("int3");
}

static struct life work(void (*a_little)(void)) {
    struct life before = own();
    long start = cpu_micros();
    while (cpu_micros() - start < WORK_MICROS) a_little();
    return since(before);
}

static void computing_is_USR(void) {
    struct life life = work(compute_a_little);
    CHECK(is_mostly(&life, USR));
}

static void system_calls_are_SYS(void) {
    struct life life = work(call_a_little);
    CHECK(is_mostly(&life, SYS));
}

static void new_pages_are_DFL(void) {
    struct life life = work(fault_a_little);
    CHECK(life.of[DFL] > life.of[USR] && life.of[DFL] > life.of[TFL] && life.of[TRP] == 0);
}

/// A file of a volume, whose pages the host has to be asked for.
static const char *distant;

static void waiting_for_a_page_of_a_file_is_DFL(void) {
    int file = open(distant, O_RDONLY);
    long bytes = 4 << 20, sum = 0;
    volatile char *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(lseek(file, 0, SEEK_END) >= bytes && memory != MAP_FAILED);
    struct life before = own();
    for (long at = 0; at < bytes; at += 4096) sum += memory[at];
    struct life life = since(before);
    CHECK(sum != 0 && life.of[DFL] > 0);
    CHECK(life.of[DFL] > life.of[SLP] && life.of[DFL] > life.of[TFL]);
    CHECK(life.of[DFL] > life.of[USR]);
}

static void ignore(int number) { (void)number; }

static void exceptions_are_TRP(void) {
    signal(SIGTRAP, ignore);
    struct life life = work(trap_a_little);
    CHECK(life.of[TRP] > 0 && life.of[TRP] > life.of[DFL]);
}

static void sleeping_is_SLP(void) {
    struct life before = own();
    for (int round = 0; round < 5; round++) usleep(100000);
    struct life life = since(before);
    CHECK(is_mostly(&life, SLP));
    CHECK(life.of[VCX] >= 5);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_ready;

static void *fight(void *result) {
    pthread_barrier_wait(&both_ready);
    struct life before = own();
    pthread_mutex_lock(&mutex);
    *(struct life *)result = since(before);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void waiting_for_another_thread_is_LCK(void) {
    struct life life;
    pthread_t thread;
    pthread_barrier_init(&both_ready, NULL, 2);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, fight, &life);
    pthread_barrier_wait(&both_ready);
    usleep(500000);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    CHECK(is_mostly(&life, LCK));
}

static int stay_on_first_cpu(void) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    return sched_setaffinity(0, sizeof first, &first) == 0;
}

static void *compute_beside_another(void *result) {
    stay_on_first_cpu();
    pthread_barrier_wait(&both_ready);
    *(struct life *)result = work(compute_a_little);
    return NULL;
}

static void two_that_compute_on_one_cpu_are_LAT_by_turns(void) {
    struct life lives[2];
    pthread_t threads[2];
    pthread_barrier_init(&both_ready, NULL, 2);
    for (int at = 0; at < 2; at++) {
        pthread_create(&threads[at], NULL, compute_beside_another, &lives[at]);
    }
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    // The one that begins first may have been alone for a while.
    long waited = lives[0].of[LAT] + lives[1].of[LAT];
    CHECK(waited > WORK_MICROS * 1000L / 2);
    CHECK(lives[0].of[ICX] + lives[1].of[ICX] > 10);
    CHECK(is_mostly(&lives[0], USR) && is_mostly(&lives[1], USR));
}

static void calls_and_signals_are_counted(void) {
    signal(SIGUSR1, ignore);
    struct life before = own();
    for (int step = 0; step < 1000; step++) syscall(SYS_getppid);
    for (int step = 0; step < 10; step++) raise(SIGUSR1);
    struct life life = since(before);
    CHECK(life.of[SIG] == 10);
    CHECK(life.of[SCL] >= 1020 && life.of[SCL] < 1200);
}

static void states_add_up_to_the_age_and_none_shrinks(void) {
    struct life before = own();
    for (int round = 0; round < 200; round++) {
        (round % 2 ? compute_a_little : call_a_little)();
        if (round % 10 == 0) usleep(1000);
        struct life life = own();
        for (int state = 0; state < STATES; state++) CHECK(life.of[state] >= before.of[state]);
        before = life;
        for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
            long sum = 0;
            CHECK(parse(line + 1, &life) != 0);
            for (int state = 0; state < STATES; state++) sum += life.of[state];
            CHECK(sum == life.age);
        }
    }
}

static void run_in_child(void (*scene)(void)) {
    pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        if (setjmp(check_out) == 0) scene();
        _exit(check_failures);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void a_new_process_begins_at_nothing(void) {
    run_in_child(sleeping_is_SLP);
    run_in_child(computing_is_USR);
}

int main(int count, char **arguments) {
    distant = arguments[count - 1];
    TEST(computing_is_USR);
    TEST(system_calls_are_SYS);
    TEST(new_pages_are_DFL);
    TEST(waiting_for_a_page_of_a_file_is_DFL);
    TEST(exceptions_are_TRP);
    TEST(sleeping_is_SLP);
    TEST(waiting_for_another_thread_is_LCK);
    TEST(two_that_compute_on_one_cpu_are_LAT_by_turns);
    TEST(calls_and_signals_are_counted);
    TEST(states_add_up_to_the_age_and_none_shrinks);
    TEST(a_new_process_begins_at_nothing);
    return check_status();
}
