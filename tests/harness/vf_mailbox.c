// A driver of a virtual function that breaks the rules: vf_mailbox RESOURCE [FLOOD]
//
// Maps the function's registers, says hello as Linux's igbvf does, and prints the address that it
// was given. Then it floods the mailbox with FLOOD messages that mean nothing or ask for what is
// others', without waiting, and says hello again, which must be answered.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum {
    BYTES = 0x4000,
    CTRL = 0x0,
    MAILBOX = 0xc40,
    MEMORY = 0x800,
    REQUEST = 1 << 0,
    TAKEN = 1 << 1,
    HOLDS = 1 << 2,
    PF_SENT = 1 << 4,
    PF_TAKEN = 1 << 5,
};

static volatile uint32_t *registers;
static uint32_t seen;

static uint32_t mailbox(void) {
    uint32_t state = registers[MAILBOX / 4];
    seen |= state;
    return state;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// Waits until the other side did both: it took the message, and sent one.
static int is_answered(void) {
    double end = now() + 20;
    while ((seen & (PF_SENT | PF_TAKEN)) != (PF_SENT | PF_TAKEN)) {
        if (now() > end)
            return 0;
        mailbox();
    }
    return 1;
}

static int hold(void) {
    double end = now() + 20;
    do
        registers[MAILBOX / 4] = HOLDS;
    while (!(mailbox() & HOLDS) && now() < end);
    return mailbox() & HOLDS;
}

static int hello(void) {
    registers[CTRL / 4] = 1 << 26;
    mailbox();
    if (!hold())
        return 0;
    seen = 0;
    registers[MEMORY / 4] = 1;
    registers[MAILBOX / 4] = REQUEST;
    if (!is_answered() || !hold())
        return 0;
    uint32_t answer = registers[MEMORY / 4];
    uint32_t low = registers[MEMORY / 4 + 1], high = registers[MEMORY / 4 + 2];
    registers[MAILBOX / 4] = TAKEN;
    if (answer != (1u | 1u << 31))
        return 0;
    printf("address %02x:%02x:%02x:%02x:%02x:%02x\n", low & 255, low >> 8 & 255,
           low >> 16 & 255, low >> 24, high & 255, high >> 8 & 255);
    fflush(stdout);
    return 1;
}

int main(int count, char **arguments) {
    int file = open(arguments[1], O_RDWR);
    registers = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (count < 2 || file < 0 || registers == MAP_FAILED) {
        perror("map");
        return 1;
    }
    if (!hello())
        return 2;
    int flood = count > 2 ? atoi(arguments[2]) : 0;
    uint32_t random = 1;
    for (int message = 0; message < flood; message++) {
        if (message % 7)
            registers[MAILBOX / 4] = HOLDS;
        for (int word = 0; word < 3; word++) {
            random = random * 1664525 + 1013904223;
            registers[MEMORY / 4 + word] = word ? random : random >> 24 & 7;
        }
        registers[MAILBOX / 4] = REQUEST | (message % 3 ? 0 : HOLDS);
    }
    printf("flooded %d\n", flood);
    fflush(stdout);
    // What is answered first may be the last message of the flood.
    for (int turn = 0; turn < 10; turn++)
        if (hello())
            return 0;
    return 3;
}
