// The program's end of a ring to an area (core/vsa/src/ring.rs), without any of the library's care.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SETUP = 0xda10, REGISTER, BELL, RENEW, GEOMETRY, BELL_AND_WAIT };
enum { READ = 1, WRITE = 2, FLUSH = 3, DISCARD = 4, FORCED = 0x100 };
enum { DONE, UNKNOWN, OUT_OF_AREA, OUT_OF_MEMORY, FAILED, REVOKED };
enum { BLOCK = 512, ENTRIES = 64, MEMORY = 256 << 10 };

struct submission { uint16_t operation, zero; uint32_t count; uint64_t first, memory, cookie; };
struct completion { uint64_t cookie; uint32_t outcome, zero; };

struct ring {
    int fd;
    volatile char *words;
    struct submission *submissions;
    struct completion *completions;
    char *memory;
    uint32_t tail, head;
};

static volatile uint32_t *word(struct ring *ring, int number) { return (volatile uint32_t *)(ring->words + 64 * number); }

// Sets a ring up on an open area; -1 with the reason in `errno`.
static int ring_over(struct ring *ring, int fd) {
    size_t bytes = (512 + ENTRIES * 48 + 4095) & ~4095;
    *ring = (struct ring){.fd = fd};
    if (ioctl(fd, SETUP, (long)ENTRIES) < 0) return -1;
    ring->words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring->words == MAP_FAILED) return -1;
    ring->submissions = (struct submission *)(ring->words + 512);
    ring->completions = (struct completion *)(ring->submissions + ENTRIES);
    ring->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t range[2] = {(uintptr_t)ring->memory, MEMORY};
    return ioctl(fd, REGISTER, range);
}

static int ring_open(struct ring *ring, const char *path) {
    int fd = open(path, O_RDWR);
    return fd < 0 ? -1 : ring_over(ring, fd);
}

static void ring_close(struct ring *ring) {
    munmap((void *)ring->words, (512 + ENTRIES * 48 + 4095) & ~4095);
    munmap(ring->memory, MEMORY);
    close(ring->fd);
}

static void put(struct ring *ring, struct submission what) {
    ring->submissions[ring->tail % ENTRIES] = what;
    ring->tail++;
}

static void show(struct ring *ring) {
    __atomic_store_n(word(ring, 0), ring->tail, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(word(ring, 4), __ATOMIC_SEQ_CST)) ioctl(ring->fd, BELL, 0L);
}

// Takes a completion, waiting for it by calls; its outcome, or -1.
static int take(struct ring *ring, uint64_t *cookie) {
    for (;;) {
        if (__atomic_load_n(word(ring, 2), __ATOMIC_ACQUIRE) != ring->head) {
            struct completion *done = &ring->completions[ring->head % ENTRIES];
            if (cookie) *cookie = done->cookie;
            int outcome = done->outcome;
            ring->head++;
            __atomic_store_n(word(ring, 3), ring->head, __ATOMIC_RELEASE);
            return outcome;
        }
        __atomic_store_n(word(ring, 5), 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(word(ring, 2), __ATOMIC_SEQ_CST) == ring->head && ioctl(ring->fd, BELL_AND_WAIT, -1L) < 0 &&
            errno != EINTR)
            return -1;
        *word(ring, 5) = 0;
    }
}

// One request, and its outcome.
static int ask(struct ring *ring, int operation, uint64_t first, uint32_t count, uint64_t memory) {
    put(ring, (struct submission){.operation = operation, .count = count, .first = first, .memory = memory, .cookie = 7});
    show(ring);
    return take(ring, NULL);
}

// The disk with the areas, as in /dev.
static const char *disk_name;

// One line to /dev/vsa/control, in which DISK stands for the disk; 0 or -1.
static int control(const char *line) {
    char text[200];
    const char *disk = strstr(line, "DISK");
    int front = disk ? disk - line : (int)strlen(line);
    int len = snprintf(text, sizeof text, "%.*s%s%s", front, line, disk ? disk_name : "", disk ? disk + 4 : "");
    int fd = open("/dev/vsa/control", O_WRONLY);
    int done = fd < 0 || write(fd, text, len) < 0 ? -1 : 0, why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return done;
}
