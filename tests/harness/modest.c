// build: static
// Takes a little memory, touches it and gives it back, without end.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#define BYTES (4 << 20)

int main(void) {
    for (;;) {
        char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) continue;
        memset(memory, 'x', BYTES);
        munmap(memory, BYTES);
    }
}
