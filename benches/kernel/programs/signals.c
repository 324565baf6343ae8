// A signal that a program sends itself: the call, delivery, an empty handler, return.
#include "measure.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REPETITIONS = 1001 };

static uint64_t samples[REPETITIONS];
static volatile int received;

static void handler(int signal) { received += signal == SIGUSR1; }

static void measure_kills(const char *name, int signal) {
    pid_t self = getpid();
    for (int i = 0; i < REPETITIONS; i++) {
        uint64_t start = instructions();
        syscall(SYS_kill, self, signal);
        samples[i] = since(start);
    }
    row(name, samples, REPETITIONS, 1);
}

void measure_signals(void) {
    struct sigaction action = {.sa_handler = handler};
    need(sigaction(SIGUSR1, &action, 0) == 0, "sigaction");
    measure_kills("kill of itself, delivery, handler, return", SIGUSR1);
    need(received == REPETITIONS, "a signal was lost");
    measure_kills("kill of itself with signal 0", 0);
}
