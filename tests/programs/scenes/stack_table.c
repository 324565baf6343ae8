// A program that shows sockets of a stack that it does not have, by /dev/stacktable.
//
//   stack_table refused      what it may not say is refused
//   stack_table honest       a row for a socket of its own, one for a number that is none, and one for nobody's
//   stack_table scribble     writes anything into its table for as long as it lives
//   stack_table unmapped     gives its table's memory up at once, and lives on
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct stack_table {
    uint8_t address[4];
    uint32_t rows;
    char link[16];
};
#define ATTACH _IOW(0xda, 16, struct stack_table)
#define ANSWER _IO(0xda, 17)

enum { HEAD = 4096, ROW = 128, TEXT = 16384, ROWS = 64, WORDS = (HEAD + ROWS * ROW + TEXT) / 4 };

static void fail(const char *what) {
    printf("failed: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int device(void) {
    int fd = open("/dev/stacktable", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        fail("open");
    return fd;
}

static int attach(int fd, const char *link, const char *address, uint32_t rows) {
    struct stack_table table = {.rows = rows};
    inet_pton(AF_INET, address, table.address);
    memcpy(table.link, link, strnlen(link, sizeof table.link));
    return ioctl(fd, ATTACH, &table);
}

static void refuses(int error, const char *link, const char *address, uint32_t rows) {
    int fd = device();
    if (attach(fd, link, address, rows) != -1 || errno != error) {
        printf("%s %s %u: ", link, address, rows);
        fail("not refused so");
    }
    close(fd);
}

static volatile uint32_t *table(const char *address) {
    int fd = device();
    if (attach(fd, "0000:00:1f.0", address, ROWS))
        fail("attach");
    volatile uint32_t *words = mmap(NULL, WORDS * 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        fail("mmap");
    return words;
}

static void refused(void) {
    const char *card = "0000:00:1f.0", *own = "10.0.2.77";
    refuses(EINVAL, card, own, 0);
    refuses(EINVAL, card, own, 16385);
    refuses(EINVAL, card, "127.0.0.1", ROWS);
    refuses(EINVAL, card, "0.0.0.0", ROWS);
    refuses(EINVAL, card, "224.0.0.1", ROWS);
    refuses(EINVAL, "", own, ROWS);
    refuses(EINVAL, "a b:c", own, ROWS);
    refuses(EINVAL, "a-name-too-long:for-it", own, ROWS);
    refuses(ENXIO, "none0", own, ROWS);
    refuses(EADDRINUSE, card, "10.0.2.15", ROWS);
    // A link of which it has no queue.
    refuses(EADDRINUSE, "vnic61", own, ROWS);
    refuses(EADDRINUSE, "eth0", own, ROWS);
    int fd = device();
    if (ioctl(fd, ANSWER) != -1 || errno != ENXIO)
        fail("an answer without a table");
    if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
        fail("a mapping without a table");
    if (ioctl(fd, ATTACH, (void *)8) != -1 || errno != EFAULT)
        fail("a bad pointer");
    if (attach(fd, card, own, ROWS))
        fail("attach");
    if (attach(fd, card, own, ROWS) != -1 || errno != EBUSY)
        fail("a second table");
    if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED)
        fail("a private mapping");
    if (mmap(NULL, WORDS * 8, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
        fail("a mapping beyond the end");
    int made = 1;
    while (made < 100 && !attach(device(), card, own, 1))
        made++;
    if (made >= 100 || errno != ENOBUFS)
        fail("tables without an end");
    pid_t child = fork();
    if (!child) {
        if (setuid(1000))
            _exit(1);
        _exit(attach(device(), card, own, ROWS) != -1 || errno != EPERM);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        fail("a table without a right");
    puts("refused all");
}

static void row(volatile uint32_t *words, int row, uint8_t state, uint16_t port, uint32_t number, uint16_t peer) {
    volatile uint32_t *at = words + HEAD / 4 + row * ROW / 4;
    at[1] = 1 | state << 8 | (uint32_t)port << 16;
    at[2] = number;
    at[3] = peer ? 10u << 24 | 2 << 8 | 2 : 0;
    at[4] = peer;
    words[2] = row + 1;
}

static void honest(void) {
    volatile uint32_t *words = table("10.0.2.77");
    int own = socket(AF_INET, SOCK_STREAM, 0);
    row(words, 0, 10, 7001, own, 0);
    row(words, 1, 1, 7002, 1000, 9);
    row(words, 2, 1, 7003, -1, 9);
    // What cannot be.
    row(words, 3, 10, 7004, own, 9);
    row(words, 4, 1, 7005, own, 0);
    row(words, 5, 77, 7006, own, 9);
    row(words, 6, 1, 0, own, 9);
    words[1] = words[0];
    puts("shown");
    fflush(stdout);
    pause();
}

static void scribble(void) {
    volatile uint32_t *words = table("10.0.2.77");
    uint64_t seed = 20261128;
    printf("scribbling, seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (;;) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t value = seed >> 32, at = (seed >> 20) % WORDS;
        // Often a row that could be, and versions that are even.
        if (at >= HEAD / 4 && at % 32 == 0)
            value &= ~1u;
        if (at >= HEAD / 4 && at % 32 == 1)
            value = (value & 0xffff0f03) | 1;
        words[at] = value;
        words[2] = ROWS;
    }
}

static void unmapped(void) {
    volatile uint32_t *words = table("10.0.2.77");
    munmap((void *)words, WORDS * 4);
    puts("unmapped");
    fflush(stdout);
    pause();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "refused"))
        refused();
    else if (!strcmp(what, "honest"))
        honest();
    else if (!strcmp(what, "scribble"))
        scribble();
    else if (!strcmp(what, "unmapped"))
        unmapped();
    return 0;
}
