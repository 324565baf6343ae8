/* Single questions about pages of files, each asked of two threads at once or of an unusual order.
 *
 *   file_races cut FILE ROUNDS       a file is cut off and written anew while it is read and stored to by a mapping
 *   file_races nameless DIRECTORY    a file without a name is synchronized, then named, then written to
 *   file_races synced FILE ROUNDS    pages are stored to and synchronized by msync(2)
 *   file_races large FILE MEGABYTES  a file that is larger than memory is written by a mapping
 *   file_races removed DIRECTORY ROUNDS  a new file loses its name before it is written to, and another one gets it
 *   file_races room FILE PAGES       so many pages of a hole find room, of which the disk has little, by stores to a mapping
 *   file_races unmapped FILE         one mapping or unmapping ends others of a file with stores that nobody has brought down
 *   file_races ended FILE ROUNDS     programs end that stored to a mapping, while the file is brought down all the time
 *   file_races replaced DIRECTORY ROUNDS  a file is replaced that somebody still names, and a new one may have its number
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 16 };

static atomic_int is_over, is_asked, is_still;
static volatile unsigned char *mapped;
static __thread sigjmp_buf beyond;

static void on_bus(int signal)
{
    (void)signal;
    siglongjmp(beyond, 1);
}

static void fail(const char *what, int at)
{
    printf("%s (%d, errno %d)\n", what, at, errno);
    exit(1);
}

static void touch(unsigned at)
{
    if (sigsetjmp(beyond, 0) == 0) {
        if (at & 1)
            mapped[at / 2 % PAGES * PAGE + 8] = 0xee;
        else
            (void)mapped[at / 2 % PAGES * PAGE + 9];
    }
}

static void *touch_all(void *argument)
{
    (void)argument;
    for (unsigned at = 0; !is_over; at++) {
        while (is_asked && !is_over)
            is_still = 1;
        is_still = 0;
        touch(at * 7);
    }
    return NULL;
}

static void look(int fd, int round)
{
    unsigned char page[PAGE], wanted[PAGE];
    for (int i = 0; i < PAGES; i++) {
        memset(wanted, round & 0x7f, PAGE);
        if (pwrite(fd, wanted, PAGE, (off_t)i * PAGE) != PAGE)
            fail("write", round);
        for (int at = 0; at < PAGE; at++)
            if (mapped[i * PAGE + at] != wanted[at])
                fail("a mapping shows what is no more", round);
        mapped[i * PAGE + 5] = 0x99;
        if (pread(fd, page, PAGE, (off_t)i * PAGE) != PAGE || page[5] != 0x99)
            fail("a store is lost", round);
    }
}

static void cut(const char *name, int rounds)
{
    pthread_t toucher;
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || mapped == MAP_FAILED)
        fail("beginning", 0);
    pthread_create(&toucher, NULL, touch_all, NULL);
    for (int round = 1; round <= rounds; round++) {
        for (int twice = 0; twice < 4; twice++)
            if (ftruncate(fd, 0) != 0 || ftruncate(fd, PAGES * PAGE) != 0)
                fail("truncation", round);
        is_asked = 1;
        while (!is_still)
            sched_yield();
        look(fd, round);
        is_asked = 0;
        while (is_still)
            sched_yield();
    }
    is_over = 1;
    pthread_join(toucher, NULL);
}

static void nameless(const char *directory)
{
    char name[200], bytes[2 * PAGE];
    int fd = open(directory, O_TMPFILE | O_RDWR, 0644);
    memset(bytes, 'n', sizeof bytes);
    if (fd < 0 || write(fd, bytes, PAGE) != PAGE)
        fail("beginning", fd);
    void *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED || msync(map, PAGE, MS_SYNC) != 0 || munmap(map, PAGE) != 0)
        fail("msync", 0);
    snprintf(name, sizeof name, "%s/named", directory);
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0)
        fail("linkat", 0);
    if (pwrite(fd, bytes, sizeof bytes, 0) != sizeof bytes || close(fd) != 0)
        fail("write", 0);
}

static void synced(const char *name, int rounds)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, PAGES * PAGE) != 0 || fsync(fd) != 0)
        fail("beginning", fd);
    mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int round = 0; round < rounds; round++) {
        mapped[round % PAGES * PAGE] = (unsigned char)round;
        if (msync((void *)mapped, PAGES * PAGE, MS_SYNC) != 0)
            fail("msync", round);
    }
}

static void large(const char *name, size_t megabytes)
{
    size_t len = megabytes << 20, page = PAGE;
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)len) != 0)
        fail("beginning", fd);
    size_t *words = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (size_t at = 0; at < len; at += page)
        words[at / sizeof *words] = at + 1;
    for (size_t at = 0; at < len; at += page)
        if (words[at / sizeof *words] != at + 1)
            fail("a store is lost", (int)(at >> 20));
}

static void is_written(const char *name, const char *bytes, int round)
{
    char found[8] = "";
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || write(fd, bytes, strlen(bytes)) != (ssize_t)strlen(bytes) || close(fd) != 0)
        fail(name, round);
    fd = open(name, O_RDONLY);
    if (fd < 0 || read(fd, found, sizeof found - 1) < 0 || close(fd) != 0 || strcmp(found, bytes) != 0)
        fail(found, round);
}

static void replaced(const char *directory, int rounds)
{
    char old[200], other[200], new[200], found[8] = "";
    for (int round = 0; round < rounds; round++) {
        snprintf(old, sizeof old, "%s/old-%d", directory, round);
        snprintf(other, sizeof other, "%s/other-%d", directory, round);
        snprintf(new, sizeof new, "%s/new-%d", directory, round);
        is_written(old, "old", round);
        is_written(other, "other", round);
        int named = open(old, O_PATH);
        if (named < 0 || rename(other, old) != 0)
            fail("rename", round);
        is_written(new, "new", round);
        int fd = open(old, O_RDONLY);
        if (fd < 0 || read(fd, found, sizeof found - 1) != 5 || strcmp(found, "other") != 0)
            fail("another file was written to", round);
        close(fd);
        close(named);
    }
}

static void removed(const char *directory, int rounds)
{
    char name[200], found[8];
    snprintf(name, sizeof name, "%s/removed", directory);
    for (int round = 0; round < rounds; round++) {
        int gone = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (gone < 0 || unlink(name) != 0)
            fail("making and removing", round);
        int named = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (named < 0 || write(gone, "gone", 4) != 4 || write(named, "named", 5) != 5)
            fail("writing", round);
        // What cannot be done to a file without a name is not done to another one.
        if (ftruncate(gone, 2) != 0 && errno != ENOENT)
            fail("truncation", round);
        if (pread(named, found, sizeof found, 0) != 5 || memcmp(found, "named", 5) != 0)
            fail("the named one has other bytes", round);
        if (pread(gone, found, sizeof found, 0) < 2 || memcmp(found, "go", 2) != 0)
            fail("the one without a name has other bytes", round);
        if (close(gone) != 0 || close(named) != 0 || unlink(name) != 0)
            fail("end", round);
    }
}

static void map(char *at, const char *name, off_t offset, int rights)
{
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, 2 * PAGE) != 0)
        fail("beginning", fd);
    if (mmap(at, PAGE, rights, MAP_SHARED | MAP_FIXED, fd, offset) == MAP_FAILED)
        fail("mmap", 0);
    close(fd);
}

/* Two openings are mapped as one mapping of the file would be, at once and by their rights. */
static void joined(const char *name)
{
    char *at = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int by_rights = 0; by_rights < 2; by_rights++) {
        map(at + PAGE, name, PAGE, PROT_READ | PROT_WRITE);
        at[PAGE] = 'j';
        map(at, name, 0, by_rights ? PROT_READ : PROT_READ | PROT_WRITE);
        if (mprotect(at, PAGE, PROT_READ | PROT_WRITE) != 0)
            fail("mprotect", 0);
        at[0] = 'j';
    }
    if (munmap(at, 2 * PAGE) != 0)
        fail("munmap", 0);
}

/* Between the two lie so many areas that the kernel takes them out in several pieces. */
static void unmapped(const char *name)
{
    size_t apart = 1000 * PAGE;
    char *at = mmap(NULL, apart + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t place = PAGE; place < apart; place += 2 * PAGE)
        mprotect(at + place, PAGE, PROT_READ);
    for (size_t place = 0; place <= apart; place += apart) {
        int fd = open(name, O_RDWR | O_CREAT, 0644);
        if (fd < 0 || ftruncate(fd, PAGE) != 0)
            fail("beginning", fd);
        if (mmap(at + place, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
            fail("mmap", 0);
        close(fd);
    }
    at[0] = at[apart + 1] = 'u';
    if (munmap(at, apart + PAGE) != 0)
        fail("munmap", 0);
}

static void *bring_down(void *name)
{
    int fd = open(name, O_RDWR);
    if (fd < 0)
        fail("open", 0);
    while (!is_over)
        if (pwrite(fd, "b", 1, PAGE) != 1 || fsync(fd) != 0)
            fail("fsync", fd);
    return NULL;
}

static void ended(const char *name, int rounds)
{
    pthread_t thread;
    char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    map(at, name, 0, PROT_READ | PROT_WRITE);
    if (pthread_create(&thread, NULL, bring_down, (void *)name) != 0)
        fail("thread", 0);
    for (int round = 0; round < rounds; round++) {
        pid_t child = fork();
        if (child < 0)
            fail("fork", round);
        if (child == 0) {
            map(at, name, 0, PROT_READ | PROT_WRITE);
            at[0] = 'e';
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    is_over = 1;
    pthread_join(thread, NULL);
}

/* A page is stored to; false where there is no room for it. */
static int put(unsigned char *at, unsigned char byte)
{
    if (sigsetjmp(beyond, 0) != 0)
        return 0;
    *(volatile unsigned char *)at = byte;
    return 1;
}

static void room(const char *name, int pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), found = 0;
    if (fd < 0 || ftruncate(fd, 100 * PAGE) != 0)
        fail("beginning", fd);
    unsigned char *map = mmap(NULL, 100 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), bytes[PAGE];
    if (map == MAP_FAILED)
        fail("mmap", 0);
    while (found < 100 && put(map + found * PAGE, (unsigned char)(found + 1)))
        found++;
    if (found < pages || found == 100)
        fail("room for another number of pages", found);
    if (fsync(fd) != 0)
        fail("fsync", found);
    for (int page = 0; page < found; page++)
        if (pread(fd, bytes, PAGE, (off_t)page * PAGE) != PAGE || bytes[0] != page + 1)
            fail("a store is lost", page);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_bus, .sa_flags = SA_NODEFER};
    sigaction(SIGBUS, &action, NULL);
    int rounds = argc > 3 ? atoi(argv[3]) : 0;
    if (strcmp(argv[1], "cut") == 0)
        cut(argv[2], rounds);
    else if (strcmp(argv[1], "nameless") == 0)
        nameless(argv[2]);
    else if (strcmp(argv[1], "large") == 0)
        large(argv[2], (size_t)rounds);
    else if (strcmp(argv[1], "removed") == 0)
        removed(argv[2], rounds);
    else if (strcmp(argv[1], "unmapped") == 0)
        joined(argv[2]), unmapped(argv[2]);
    else if (strcmp(argv[1], "ended") == 0)
        ended(argv[2], rounds);
    else if (strcmp(argv[1], "room") == 0)
        room(argv[2], rounds);
    else if (strcmp(argv[1], "replaced") == 0)
        replaced(argv[2], rounds);
    else
        synced(argv[2], rounds);
    return 0;
}
