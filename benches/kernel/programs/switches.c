// Switches between two that answer each other on one CPU: processes over pipes, and
// threads over a futex. A row is one way: the wake-up, the sleep and the switch.
#include "measure.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 1001, WAYS = 2 };

static uint64_t samples[ROUNDS];

static void answer(int from, int to) {
    char byte;
    while (read(from, &byte, 1) == 1) write(to, &byte, 1);
    _exit(0);
}

static void measure_pipes(void) {
    int there[2], back[2];
    need(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        close(there[1]);
        answer(there[0], back[1]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        char byte = 0;
        uint64_t start = instructions();
        need(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "ping");
        samples[i] = since(start);
    }
    row("switch of processes by pipe, one way", samples, ROUNDS, WAYS);
    close(there[1]);
    need(waitpid(child, 0, 0) == child, "waitpid");
}

// Whose turn it is: 0 the first thread's, 1 the second's, 2 is the end.
static atomic_int turn;

static void give(int to) {
    atomic_store(&turn, to);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void await(int not_me) {
    while (atomic_load(&turn) == not_me)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, not_me, 0, 0, 0);
}

static void *second_thread(void *unused) {
    for (;;) {
        await(0);
        if (atomic_load(&turn) == 2) return unused;
        give(0);
    }
}

static void measure_futexes(void) {
    pthread_t second;
    need(pthread_create(&second, 0, second_thread, 0) == 0, "pthread_create");
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = instructions();
        give(1);
        await(1);
        samples[i] = since(start);
    }
    row("switch of threads by futex, one way", samples, ROUNDS, WAYS);
    give(2);
    pthread_join(second, 0);
}

void measure_switches(void) {
    measure_pipes();
    measure_futexes();
}
