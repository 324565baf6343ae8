/* Random operations on a file by all ways in, against a model in memory: read, write, vectors,
 * shared mappings, truncation, allocation and holes, fsync. Ends with the file as FILE.model has it.
 *
 *   file_model FILE SEED OPERATIONS [direct]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 600000 };

static unsigned char model[MOST], bytes[MOST];
static size_t size;
static uint64_t state;
static int step;

static uint32_t below(uint32_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % limit;
}

static void fail(const char *what, size_t at)
{
    printf("step %d: %s at %zu (errno %d), size %zu\n", step, what, at, errno, size);
    exit(1);
}

static void compare(const unsigned char *found, size_t at, size_t len, const char *how)
{
    for (size_t i = 0; i < len; i++)
        if (found[i] != model[at + i]) {
            printf("found %02x instead of %02x\n", found[i], model[at + i]);
            fail(how, at + i);
        }
}

static void some(size_t *at, size_t *len)
{
    *at = below(MOST - 1);
    *len = 1 + below(below(4) ? 9000 : 200000);
    if (*at + *len > MOST)
        *len = MOST - *at;
}

static void do_write(int fd)
{
    size_t at, len;
    some(&at, &len);
    if (!below(3))
        at = size < MOST - len ? size : at;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)below(256);
    size_t half = len / 2;
    struct iovec parts[2] = {{bytes, half}, {bytes + half, len - half}};
    ssize_t wrote = below(2) ? pwrite(fd, bytes, len, (off_t)at) : pwritev(fd, parts, 2, (off_t)at);
    if (wrote != (ssize_t)len)
        fail("write", at);
    if (at > size)
        memset(model + size, 0, at - size);
    memcpy(model + at, bytes, len);
    if (at + len > size)
        size = at + len;
}

static void do_read(int fd)
{
    size_t at, len;
    some(&at, &len);
    size_t left = at < size ? size - at : 0;
    ssize_t got = pread(fd, bytes, len, (off_t)at);
    if (got != (ssize_t)(len < left ? len : left))
        fail("read's length", at);
    compare(bytes, at, (size_t)got, "read");
}

static void do_map(int fd, int stores)
{
    if (size == 0)
        return;
    size_t at = below((uint32_t)size), page = at / 4096 * 4096;
    size_t len = 1 + below(20000);
    if (at + len > size)
        len = size - at;
    unsigned char *map = mmap(NULL, at - page + len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)page);
    if (map == MAP_FAILED)
        fail("mmap", at);
    compare(map + (at - page), at, len, "mapping");
    for (int round = 0; stores && round < 2; round++) {
        for (size_t i = 0; i < len; i += 1 + below(50))
            map[at - page + i] = model[at + i] = (unsigned char)below(256);
        /* What comes after a synchronization counts too. */
        if (round == 0 && below(2) && fsync(fd) != 0)
            fail("fsync", at);
        if (round == 0 && !below(3) && msync(map, at - page + len, MS_SYNC) != 0)
            fail("msync", at);
    }
    munmap(map, at - page + len);
}

static void do_truncate(int fd)
{
    size_t to = below(MOST);
    if (ftruncate(fd, (off_t)to) != 0)
        fail("ftruncate", to);
    if (to > size)
        memset(model + size, 0, to - size);
    size = to;
}

static void do_allocate(int fd)
{
    static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};
    size_t at, len;
    some(&at, &len);
    int mode = modes[below(3)];
    if (fallocate(fd, mode, (off_t)at, (off_t)len) != 0) {
        if (errno == EOPNOTSUPP)
            return;
        fail("fallocate", at);
    }
    if (mode & FALLOC_FL_PUNCH_HOLE) {
        size_t end = at + len < size ? at + len : size;
        if (at < end)
            memset(model + at, 0, end - at);
    } else if (mode == 0 && at + len > size) {
        memset(model + size, 0, at + len - size);
        size = at + len;
    }
}

static void do_direct(const char *name)
{
    static unsigned char block[65536] __attribute__((aligned(4096)));
    int fd = open(name, O_RDWR | O_DIRECT);
    size_t at = below(MOST / 4096 - 17) * 4096u, len = (1 + below(16)) * 4096u;
    if (fd < 0)
        fail("open for direct transfers", 0);
    if (below(2)) {
        for (size_t i = 0; i < len; i++)
            block[i] = (unsigned char)below(256);
        if (pwrite(fd, block, len, (off_t)at) != (ssize_t)len)
            fail("direct write", at);
        if (at > size)
            memset(model + size, 0, at - size);
        memcpy(model + at, block, len);
        if (at + len > size)
            size = at + len;
    } else {
        size_t left = at < size ? size - at : 0;
        ssize_t got = pread(fd, block, len, (off_t)at);
        if (got != (ssize_t)(len < left ? len : left))
            fail("direct read's length", at);
        compare(block, at, (size_t)got, "direct read");
    }
    close(fd);
}

static void check_all(int fd)
{
    struct stat found;
    if (fstat(fd, &found) != 0 || (size_t)found.st_size != size)
        fail("the size", (size_t)found.st_size);
    if (pread(fd, bytes, MOST, 0) != (ssize_t)size)
        fail("reading all", 0);
    compare(bytes, 0, size, "all");
}

int main(int argc, char **argv)
{
    const char *name = argv[1];
    int is_direct = argc > 4;
    state = 0x9e3779b97f4a7c15ull * (uint64_t)(atoi(argv[2]) + 1);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), count = atoi(argv[3]);
    if (fd < 0)
        fail("open", 0);
    for (step = 0; step < count; step++) {
        switch (below(16)) {
        case 0: case 1: case 2: case 3: do_write(fd); break;
        case 4: case 5: case 6: do_read(fd); break;
        case 7: case 8: do_map(fd, 1); break;
        case 9: do_map(fd, 0); break;
        case 10: do_truncate(fd); break;
        case 11: do_allocate(fd); break;
        case 12: if (fdatasync(fd) != 0) fail("fdatasync", 0); break;
        case 13: if (is_direct) do_direct(name); break;
        case 14:
            close(fd);
            fd = open(name, O_RDWR);
            int drop = open("/proc/sys/vm/drop_caches", O_WRONLY);
            if (drop >= 0) {
                if (write(drop, "1", 1) != 1)
                    fail("drop_caches", 0);
                close(drop);
            }
            break;
        default: check_all(fd);
        }
    }
    check_all(fd);
    close(fd);
    char copy[4096];
    snprintf(copy, sizeof copy, "/tmp/%s.model", strrchr(name, '/') + 1);
    int out = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0 || write(out, model, size) != (ssize_t)size)
        fail("the model", 0);
    return 0;
}
