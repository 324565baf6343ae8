// Allocates memory and stores to it without end, in the way that its argument names:
// anonymous (the default), heap, shared, or tmpfs (a file in /dev/shm).
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP_BYTES (1 << 20)

static void hog_mappings(int sharing) {
    for (;;) {
        char *memory = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE,
                            sharing | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) memset(memory, 'x', STEP_BYTES);
    }
}

// By the call itself: musl's sbrk() always fails.
static void hog_heap(void) {
    char *end = (char *)syscall(SYS_brk, 0);
    for (;;) {
        if ((char *)syscall(SYS_brk, end + STEP_BYTES) != end + STEP_BYTES) continue;
        memset(end, 'x', STEP_BYTES);
        end += STEP_BYTES;
    }
}

// The file system has a limit of its own; the rest is taken as mappings.
static void hog_file(void) {
    static char bytes[STEP_BYTES];
    int file = open("/dev/shm/hog", O_RDWR | O_CREAT | O_TRUNC, 0600);
    unlink("/dev/shm/hog");
    while (write(file, bytes, sizeof bytes) > 0) {
    }
    hog_mappings(MAP_PRIVATE);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "anonymous";
    if (strcmp(way, "heap") == 0) hog_heap();
    if (strcmp(way, "shared") == 0) hog_mappings(MAP_SHARED);
    if (strcmp(way, "tmpfs") == 0) hog_file();
    hog_mappings(MAP_PRIVATE);
}
