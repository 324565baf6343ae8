// System calls that do next to nothing: the price of asking.
#include "measure.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REPETITIONS = 2001, INVALID_CALL = 1000, BESIDE_THE_CALL = 4 };

// The instructions of one call: `syscall`, the kernel and its return. Three moves and the
// second reading of the clock are BESIDE_THE_CALL.
static inline uint64_t cost_of(long number, long a, long b, long c) {
    register long call asm("r8") = number, third asm("r9") = c;
    register uint64_t start asm("r12");
    uint32_t end;
    asm volatile("rdtsc\n\tmov %%rax, %[start]\n\tmov %[call], %%rax\n\tmov %[third], %%rdx\n\t"
                 "syscall\n\trdtsc"
                 : "=&a"(end), [start] "=&r"(start)
                 : [call] "r"(call), [third] "r"(third), "D"(a), "S"(b)
                 : "rcx", "r11", "rdx", "memory");
    return end - (uint32_t)start - BESIDE_THE_CALL;
}

static void measure_call(const char *name, long number, long a, long b, long c) {
    uint64_t samples[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) samples[i] = cost_of(number, a, b, c);
    row(name, samples, REPETITIONS, 1);
}

void measure_calls(void) {
    int zero = open("/dev/zero", O_RDONLY);
    need(zero >= 0, "/dev/zero");
    char byte;
    measure_call("null call (a number that no call has)", INVALID_CALL, 0, 0, 0);
    measure_call("getpid", SYS_getpid, 0, 0, 0);
    measure_call("getppid", SYS_getppid, 0, 0, 0);
    measure_call("read of 1 byte from /dev/zero", SYS_read, zero, (long)&byte, 1);
    close(zero);
}
