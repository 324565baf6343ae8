// A little work of the program, and a little of the kernel.
#ifndef CPU_USE_H
#define CPU_USE_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static inline void compute_a_little(void) {
    static volatile unsigned sink;
    for (unsigned step = 0; step < 300000; step++) sink += step;
}

static inline void call_a_little(void) {
    static char buffer[1 << 18];
    int zero = open("/dev/zero", O_RDONLY);
    for (int step = 0; step < 8; step++) {
        if (read(zero, buffer, sizeof buffer) != sizeof buffer) abort();
    }
    close(zero);
}

#endif
