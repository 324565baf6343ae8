/* Many threads at once on the same files, by all ways in, each with bytes of its own that lie between those of the others,
 * against a model in memory: write, shared mappings, another program's stores, children, direct transfers, holes, names that
 * are replaced. A file is as DIRECTORY.model has it at the end.
 *
 *   file_crowd DIRECTORY SEED STEPS THREADS [direct] [full] [short]
 *
 * With `full` the disk may have no room, with `short` memory: what was refused was not written, and nothing else fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 3, BYTES = 3 << 17, OWN = 200000, THREADS = 16, PAGE = 4096 };

/* Bytes that one thread has in a row: parts of a block, of a page, several pages. */
static const size_t slots[FILES] = {1024, 512, 3 * PAGE};
static unsigned char model[FILES][BYTES];
static int fds[FILES], direct_fds[FILES], threads, steps, is_direct, is_full, is_short;
static const char *directory;

struct worker {
    int me, step, own;
    uint64_t state;
    size_t size;
    /* What the own file was dated with; 0 if it was changed since. */
    time_t date;
    unsigned char bytes[3 * PAGE], *aligned, *model;
};

static __thread sigjmp_buf no_room;

static void on_bus(int signal)
{
    (void)signal;
    siglongjmp(no_room, 1);
}

static uint32_t below(struct worker *w, uint32_t limit)
{
    w->state ^= w->state << 13;
    w->state ^= w->state >> 7;
    w->state ^= w->state << 17;
    return (uint32_t)(w->state >> 32) % limit;
}

static void fail(struct worker *w, const char *what, int file, size_t at)
{
    printf("thread %d, step %d: %s of file %d at %zu (errno %d)\n", w->me, w->step, what, file, at, errno);
    exit(1);
}

static void compare(struct worker *w, const unsigned char *found, int file, const unsigned char *wanted, size_t at, size_t len,
                    const char *how)
{
    for (size_t i = 0; i < len; i++)
        if (found[i] != wanted[i]) {
            printf("found %02x instead of %02x\n", found[i], wanted[i]);
            fail(w, how, file, at + i);
        }
}

static void fill(struct worker *w, unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(1 + below(w, 255));
}

/* Bytes of the thread's own. */
static void some(struct worker *w, int *file, size_t *at, size_t *len)
{
    *file = (int)below(w, FILES);
    size_t slot = slots[*file], count = BYTES / slot / (size_t)threads;
    size_t from = below(w, (uint32_t)slot);
    *at = ((size_t)below(w, (uint32_t)count) * (size_t)threads + (size_t)w->me) * slot + from;
    *len = 1 + below(w, (uint32_t)(slot - from));
}

static int was_refused(struct worker *w, ssize_t done, const char *what, int file, size_t at)
{
    if (done >= 0)
        return 0;
    if (!(is_full && errno == ENOSPC) && !(is_short && errno == ENOMEM))
        fail(w, what, file, at);
    return 1;
}

static void do_write(struct worker *w, int file, size_t at, size_t len)
{
    fill(w, w->bytes, len);
    ssize_t done = pwrite(fds[file], w->bytes, len, (off_t)at);
    if (was_refused(w, done, "write", file, at))
        return;
    if (done != (ssize_t)len && !is_full && !is_short)
        fail(w, "write's length", file, at);
    memcpy(model[file] + at, w->bytes, (size_t)done);
}

/* Whether memory was missing, and is waited for. */
static int is_wanting(void)
{
    return is_short && errno == ENOMEM && usleep(10000) == 0;
}

static void do_read(struct worker *w, int file, size_t at, size_t len)
{
    ssize_t done;
    do
        done = pread(fds[file], w->bytes, len, (off_t)at);
    while (done < 0 && is_wanting());
    if (done < 0 || (done != (ssize_t)len && !is_short))
        fail(w, "read", file, at);
    len = (size_t)done;
    compare(w, w->bytes, file, model[file] + at, at, len, "read");
}

static unsigned char *map(struct worker *w, int file, size_t at, size_t len)
{
    size_t first = at / PAGE * PAGE;
    unsigned char *map;
    do
        map = mmap(NULL, at + len - first, PROT_READ | PROT_WRITE, MAP_SHARED, fds[file], (off_t)first);
    while (map == MAP_FAILED && is_wanting());
    if (map == MAP_FAILED)
        fail(w, "mmap", file, at);
    return map + (at - first);
}

static void unmap(unsigned char *at, size_t len)
{
    unsigned char *first = (unsigned char *)((uintptr_t)at / PAGE * PAGE);
    munmap(first, (size_t)(at - first) + len);
}

/* One store; false where there is no room for the page. */
static int store(volatile unsigned char *at, unsigned char byte)
{
    if (sigsetjmp(no_room, 0) != 0)
        return 0;
    *at = byte;
    return 1;
}

static void do_map(struct worker *w, int file, size_t at, size_t len)
{
    unsigned char *mapped = map(w, file, at, len);
    compare(w, mapped, file, model[file] + at, at, len, "mapping");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < len; i += 1 + below(w, 300)) {
            unsigned char byte = (unsigned char)below(w, 256);
            if (store(mapped + i, byte))
                model[file][at + i] = byte;
            else if (!is_full)
                fail(w, "store", file, at + i);
        }
        unsigned char *first = (unsigned char *)((uintptr_t)mapped / PAGE * PAGE);
        size_t all = (size_t)(mapped - first) + len;
        switch (round ? 9 : below(w, 6)) {
        case 0: if (msync(first, all, MS_SYNC) != 0) fail(w, "msync", file, at); break;
        case 1: if (fdatasync(fds[file]) != 0) fail(w, "fdatasync", file, at); break;
        case 2: madvise(first, all, MADV_DONTNEED); break;
        case 3: sched_yield(); break;
        }
    }
    unmap(mapped, len);
}

/* As a debugger does it. */
static void do_poke(struct worker *w, int file, size_t at, size_t len)
{
    unsigned char *mapped = map(w, file, at, len);
    fill(w, w->bytes, len);
    struct iovec from = {w->bytes, len}, to = {mapped, len};
    ssize_t done = process_vm_writev(getpid(), &from, 1, &to, 1, 0);
    if (done < 0 && (!is_full || errno != EFAULT))
        fail(w, "process_vm_writev", file, at);
    memcpy(model[file] + at, w->bytes, done < 0 ? 0 : (size_t)done);
    unmap(mapped, len);
}

/* A child stores where its parent has. */
static void do_fork(struct worker *w, int file, size_t at, size_t len)
{
    unsigned char *mapped = map(w, file, at, len), first = (unsigned char)below(w, 256), second = (unsigned char)below(w, 256);
    if (store(mapped, first)) {
        model[file][at] = first;
        pid_t child = fork();
        if (child < 0 && is_wanting()) {
            unmap(mapped, len);
            return;
        }
        if (child == 0)
            _exit(store(mapped, second) ? 0 : 7);
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
            fail(w, "fork", file, at);
        if (WEXITSTATUS(status) == 0)
            model[file][at] = second;
    }
    unmap(mapped, len);
}

static void do_direct(struct worker *w, int file, size_t at)
{
    size_t slot = slots[file];
    at = at / slot * slot;
    if (below(w, 2)) {
        ssize_t got;
        do
            got = pread(direct_fds[file], w->aligned, slot, (off_t)at);
        while (got < 0 && is_wanting());
        if (got != (ssize_t)slot)
            fail(w, "direct read", file, at);
        compare(w, w->aligned, file, model[file] + at, at, slot, "direct read");
        return;
    }
    fill(w, w->aligned, slot);
    ssize_t done = pwrite(direct_fds[file], w->aligned, slot, (off_t)at);
    if (was_refused(w, done, "direct write", file, at))
        return;
    if (done != (ssize_t)slot && !is_full && !is_short)
        fail(w, "direct write's length", file, at);
    memcpy(model[file] + at, w->aligned, (size_t)done);
}

static void do_hole(struct worker *w, int file, size_t at, size_t len)
{
    size_t slot = slots[file];
    if (below(w, 2))
        at = at / slot * slot, len = slot;
    if (below(w, 3) == 0) {
        int done = fallocate(fds[file], FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)len);
        if (done == 0 || errno != EOPNOTSUPP)
            was_refused(w, done, "fallocate", file, at);
        return;
    }
    if (fallocate(fds[file], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)len) != 0) {
        if (errno == EOPNOTSUPP)
            return;
        fail(w, "punch", file, at);
    }
    memset(model[file] + at, 0, len);
}

static void own_name(struct worker *w, char *name, const char *suffix)
{
    snprintf(name, 200, "%s/own-%d%s", directory, w->me, suffix);
}

static void check_own(struct worker *w)
{
    struct stat found;
    static __thread unsigned char bytes[OWN];
    if (fstat(w->own, &found) != 0 || (size_t)found.st_size != w->size)
        fail(w, "size", FILES, (size_t)found.st_size);
    if (w->date != 0 && found.st_mtime != w->date) {
        printf("dated %lld instead of %lld\n", (long long)found.st_mtime, (long long)w->date);
        fail(w, "time", FILES, 0);
    }
    ssize_t done;
    do
        done = pread(w->own, bytes, OWN, 0);
    while (done < 0 && is_wanting());
    if (done < 0 || (done != (ssize_t)w->size && !is_short))
        fail(w, "read's length", FILES, w->size);
    compare(w, bytes, FILES, w->model, 0, (size_t)done, "read");
}

/* A file of the thread's own, that grows, is cut off, replaced and dated. */
static void do_own(struct worker *w)
{
    char name[200], other[200];
    size_t at = below(w, (uint32_t)w->size + 5000), len = 1 + below(w, 3 * PAGE - 1);
    if (w->date != 0 || below(w, 3) == 0)
        check_own(w);
    switch (below(w, 8)) {
    case 0:
        at = below(w, OWN);
        w->date = 0;
        if (ftruncate(w->own, (off_t)at) != 0)
            fail(w, "truncation", FILES, at);
        if (at > w->size)
            memset(w->model + w->size, 0, at - w->size);
        w->size = at;
        break;
    case 1:
        if (is_full)
            break;
        close(w->own);
        own_name(w, name, "");
        own_name(w, other, ".new");
        w->own = open(other, O_RDWR | O_CREAT | O_TRUNC, 0644);
        if (w->own < 0)
            fail(w, "open", FILES, 0);
        w->size = 0;
        w->date = 0;
        fill(w, w->bytes, len);
        ssize_t first = write(w->own, w->bytes, len);
        if (!was_refused(w, first, "first write", FILES, 0)) {
            memcpy(w->model, w->bytes, (size_t)first);
            w->size = (size_t)first;
        }
        if (rename(other, name) != 0)
            fail(w, "rename", FILES, 0);
        break;
    default:
        if (at + len > OWN)
            break;
        fill(w, w->bytes, len);
        w->date = 0;
        ssize_t done = pwrite(w->own, w->bytes, len, (off_t)at);
        if (was_refused(w, done, "write", FILES, at))
            break;
        if (at > w->size)
            memset(w->model + w->size, 0, at - w->size);
        memcpy(w->model + at, w->bytes, (size_t)done);
        if (at + (size_t)done > w->size)
            w->size = at + (size_t)done;
        struct timespec times[2] = {{0, UTIME_OMIT}, {1000000000 + (long)below(w, 1000000), 0}};
        if (below(w, 2)) {
            if (futimens(w->own, times) != 0)
                fail(w, "dating", FILES, 0);
            w->date = times[1].tv_sec;
        }
    }
}

static void drop_caches(struct worker *w)
{
    int drop = open("/proc/sys/vm/drop_caches", O_WRONLY);
    char what = (char)('1' + below(w, 3));
    if (drop >= 0) {
        if (write(drop, &what, 1) != 1)
            fail(w, "drop_caches", 0, 0);
        close(drop);
    }
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (w->step = 0; w->step < steps; w->step++) {
        int file;
        size_t at, len;
        some(w, &file, &at, &len);
        switch (below(w, 24)) {
        case 0: case 1: case 2: case 3: do_write(w, file, at, len); break;
        case 4: case 5: case 6: do_read(w, file, at, len); break;
        case 7: case 8: case 9: do_map(w, file, at, len); break;
        case 10: case 11: do_poke(w, file, at, len); break;
        case 12: case 13: if (is_direct) do_direct(w, file, at); break;
        case 14: do_hole(w, file, at, len); break;
        case 15: if (below(w, 4) == 0) do_fork(w, file, at, len); break;
        case 16: if (fdatasync(fds[file]) != 0) fail(w, "fdatasync", file, 0); break;
        case 17: drop_caches(w); break;
        default: do_own(w);
        }
    }
    check_own(w);
    if (fsync(w->own) != 0)
        fail(w, "fsync", FILES, 0);
    return NULL;
}

static void begin(struct worker *w, int me, int seed)
{
    char name[200];
    w->me = me;
    w->state = 0x9e3779b97f4a7c15ull * (uint64_t)(seed * THREADS + me + 1);
    w->model = calloc(1, OWN);
    w->aligned = aligned_alloc(PAGE, 3 * PAGE);
    own_name(w, name, "");
    w->own = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (w->own < 0 || w->model == NULL || w->aligned == NULL)
        fail(w, "beginning", FILES, 0);
}

static void save(const char *name, const unsigned char *bytes, size_t len)
{
    int out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0 || write(out, bytes, len) != (ssize_t)len)
        exit(3);
    close(out);
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    pthread_t ids[THREADS];
    char name[200], copy[300];
    directory = argv[1];
    steps = atoi(argv[3]);
    threads = atoi(argv[4]);
    for (int i = 5; i < argc; i++) {
        is_direct |= strcmp(argv[i], "direct") == 0;
        is_full |= strcmp(argv[i], "full") == 0;
        is_short |= strcmp(argv[i], "short") == 0;
    }
    struct sigaction action = {.sa_handler = on_bus, .sa_flags = SA_NODEFER};
    sigaction(SIGBUS, &action, NULL);
    for (int file = 0; file < FILES; file++) {
        snprintf(name, sizeof name, "%s/file-%d", directory, file);
        fds[file] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        direct_fds[file] = is_direct ? open(name, O_RDWR | O_DIRECT) : -1;
        if (fds[file] < 0 || ftruncate(fds[file], BYTES) != 0)
            fail(workers, "beginning", file, 0);
    }
    for (int i = 0; i < threads; i++)
        begin(&workers[i], i, atoi(argv[2]));
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, &workers[i]);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    for (int file = 0; file < FILES; file++) {
        if (fsync(fds[file]) != 0)
            fail(workers, "fsync", file, 0);
        unsigned char *all = map(workers, file, 0, BYTES);
        compare(workers, all, file, model[file], 0, BYTES, "all");
        snprintf(copy, sizeof copy, "/tmp/models/file-%d", file);
        save(copy, model[file], BYTES);
    }
    for (int i = 0; i < threads; i++) {
        snprintf(copy, sizeof copy, "/tmp/models/own-%d", i);
        save(copy, workers[i].model, workers[i].size);
    }
    return 0;
}
