// Wake-ups from one CPU to another: none is lost and none waits for chance. A test that hangs is
// ended by an alarm. On one CPU the same scenes run by turns.
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 300 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void pin(int cpu) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % cpus, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static atomic_int finish;
static int channel[2];

static void *spin(void *unused) {
    pin(1);
    while (!atomic_load(&finish)) {}
    return unused;
}

static _Atomic double woken_at;

static void *wait_for_byte(void *unused) {
    pin(1);
    char byte;
    while (read(channel[0], &byte, 1) != 1) {}
    atomic_store(&woken_at, now());
    return unused;
}

static void a_thread_that_wakes_on_a_busy_cpu_runs_within_some_slices(void) {
    pin(0);
    CHECK(pipe(channel) == 0);
    pthread_t waiter, spinner;
    atomic_store(&woken_at, 0);
    atomic_store(&finish, 0);
    pthread_create(&waiter, NULL, wait_for_byte, NULL);
    usleep(20000);
    pthread_create(&spinner, NULL, spin, NULL);
    usleep(200000);
    double sent_at = now();
    CHECK(write(channel[1], "x", 1) == 1);
    while (atomic_load(&woken_at) == 0 && now() < sent_at + 2) {}
    double took = atomic_load(&woken_at) == 0 ? 2 : atomic_load(&woken_at) - sent_at;
    atomic_store(&finish, 1);
    pthread_join(spinner, NULL);
    pthread_join(waiter, NULL);
    CHECK(took < 0.5);
}

static int ends[2];

static void *close_soon(void *unused) {
    pin(1);
    usleep(50000);
    close(ends[0]);
    return unused;
}

static void ignore(int unused) { (void)unused; }

static void a_sender_that_waits_hears_that_the_receiver_is_gone(void) {
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    while (send(ends[1], "x", 1, MSG_DONTWAIT) == 1) {}
    CHECK(errno == EAGAIN);
    struct sigaction action = {.sa_handler = ignore};
    sigaction(SIGALRM, &action, NULL);
    pthread_t closer;
    pthread_create(&closer, NULL, close_soon, NULL);
    alarm(5);
    ssize_t sent = send(ends[1], "x", 1, 0);
    int why = errno;
    alarm(0);
    pthread_join(closer, NULL);
    signal(SIGALRM, SIG_DFL);
    close(ends[1]);
    CHECK(sent == -1);
    CHECK(why == ECONNREFUSED);
}

// Each of two threads waits for the other, some thousand times, on different CPUs. The kind of
// waiting is the test's; a wake-up that is lost stops both.
typedef struct {
    int read_end, write_end;
} Side;

static void *pass_bytes(void *argument) {
    Side *side = argument;
    pin(side->read_end & 1);
    for (int round = 0; round < ROUNDS; round++) {
        char byte = 1;
        if (read(side->read_end, &byte, 1) != 1) return "read";
        if (write(side->write_end, &byte, 1) != 1) return "write";
    }
    return NULL;
}

static void *poll_bytes(void *argument) {
    Side *side = argument;
    pin(side->read_end & 1);
    for (int round = 0; round < ROUNDS; round++) {
        struct pollfd one = {.fd = side->read_end, .events = POLLIN};
        char byte = 1;
        if (poll(&one, 1, -1) != 1) return "poll";
        if (read(side->read_end, &byte, 1) != 1) return "read";
        if (write(side->write_end, &byte, 1) != 1) return "write";
    }
    return NULL;
}

static void *epoll_bytes(void *argument) {
    Side *side = argument;
    pin(side->read_end & 1);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    epoll_ctl(epoll, EPOLL_CTL_ADD, side->read_end, &event);
    for (int round = 0; round < ROUNDS; round++) {
        char byte = 1;
        if (epoll_wait(epoll, &event, 1, -1) != 1) return "epoll_wait";
        if (read(side->read_end, &byte, 1) != 1) return "read";
        if (write(side->write_end, &byte, 1) != 1) return "write";
    }
    close(epoll);
    return NULL;
}

static void *play(void *(*part)(void *), int there[2], int back[2]) {
    Side sides[2] = {{there[0], back[1]}, {back[0], there[1]}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, part, &sides[i]);
    char byte = 1;
    if (write(there[1], &byte, 1) != 1) return "write";
    void *first, *second;
    pthread_join(threads[0], &first);
    pthread_join(threads[1], &second);
    for (int i = 0; i < 2; i++) close(there[i]), close(back[i]);
    return first ? first : second;
}

static void play_over_pipes(void *(*part)(void *)) {
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    CHECK(play(part, there, back) == NULL);
}

static void readers_of_pipes_wake_each_other(void) { play_over_pipes(pass_bytes); }

static void pollers_of_pipes_wake_each_other(void) { play_over_pipes(poll_bytes); }

static void epolls_of_pipes_wake_each_other(void) { play_over_pipes(epoll_bytes); }

static void readers_of_sockets_wake_each_other(void) {
    static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int kind = 0; kind < 3; kind++) {
        int there[2], back[2];
        CHECK(socketpair(AF_UNIX, kinds[kind], 0, there) == 0);
        CHECK(socketpair(AF_UNIX, kinds[kind], 0, back) == 0);
        CHECK(play(pass_bytes, there, back) == NULL);
    }
}

static atomic_int lines, failures;

static void *read_lines(void *number) {
    pin((int)(intptr_t)number);
    for (;;) {
        char line[16];
        ssize_t count = read(ends[1], line, sizeof line);
        if (count <= 0) {
            atomic_fetch_add(&failures, 1);
            return NULL;
        }
        if (line[0] == 'q') return NULL;
        atomic_fetch_add(&lines, 1);
    }
}

static void readers_of_one_terminal_share_its_lines(void) {
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(ends[0] >= 0 && grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
    struct termios settings;
    CHECK(tcgetattr(ends[1], &settings) == 0);
    settings.c_lflag &= ~ECHO;
    CHECK(tcsetattr(ends[1], TCSANOW, &settings) == 0);
    pthread_t readers[2];
    for (intptr_t i = 0; i < 2; i++) pthread_create(&readers[i], NULL, read_lines, (void *)i);
    for (int round = 0; round < ROUNDS; round++) CHECK(write(ends[0], "x\n", 2) == 2);
    CHECK(write(ends[0], "q\nq\n", 4) == 4);
    for (int i = 0; i < 2; i++) pthread_join(readers[i], NULL);
    close(ends[0]);
    close(ends[1]);
    CHECK(atomic_load(&failures) == 0);
    CHECK(atomic_load(&lines) == ROUNDS);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int whose_turn;

static void *take_turns(void *number) {
    int me = (int)(intptr_t)number;
    pin(me);
    pthread_mutex_lock(&lock);
    for (int round = 0; round < ROUNDS; round++) {
        while (whose_turn != me) pthread_cond_wait(&changed, &lock);
        whose_turn = 1 - me;
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void threads_at_a_condition_wake_each_other(void) {
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, take_turns, (void *)i);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void parents_wake_when_children_end_or_exec(void) {
    for (int round = 0; round < 100; round++) {
        pin(0);
        pid_t child = round % 2 ? vfork() : fork();
        if (child == 0) _exit(7);
        CHECK(child > 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    }
}

static void *signal_back_and_forth(void *other) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (int round = 0; round < ROUNDS; round++) {
        int number;
        if (sigwait(&set, &number) != 0) return "sigwait";
        pthread_kill(*(pthread_t *)other, SIGUSR1);
    }
    return NULL;
}

static void threads_that_wait_for_signals_wake_each_other(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t me = pthread_self(), other;
    pin(1);
    pthread_create(&other, NULL, signal_back_and_forth, &me);
    pin(0);
    for (int round = 0; round < ROUNDS; round++) {
        int number;
        pthread_kill(other, SIGUSR1);
        CHECK(sigwait(&set, &number) == 0);
    }
    CHECK(pthread_join(other, NULL) == 0);
}

static void a_stopped_process_goes_on_each_time(void) {
    pid_t child = fork();
    if (child == 0) {
        pin(1);
        for (;;) sched_yield();
    }
    for (int round = 0; round < 100; round++) {
        int status;
        CHECK(kill(child, SIGSTOP) == 0);
        CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        CHECK(kill(child, SIGCONT) == 0);
        CHECK(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    }
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
}

int main(void) {
    TEST(a_thread_that_wakes_on_a_busy_cpu_runs_within_some_slices);
    TEST(a_sender_that_waits_hears_that_the_receiver_is_gone);
    alarm(120);
    TEST(readers_of_pipes_wake_each_other);
    TEST(pollers_of_pipes_wake_each_other);
    TEST(epolls_of_pipes_wake_each_other);
    TEST(readers_of_sockets_wake_each_other);
    TEST(readers_of_one_terminal_share_its_lines);
    TEST(threads_at_a_condition_wake_each_other);
    TEST(parents_wake_when_children_end_or_exec);
    TEST(threads_that_wait_for_signals_wake_each_other);
    TEST(a_stopped_process_goes_on_each_time);
    return check_status();
}
