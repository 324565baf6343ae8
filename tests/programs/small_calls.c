// Calls that few programs make: kcmp(2), remap_file_pages(2), pkey_mprotect(2), syslog(2),
// openat2(2), advice about memory that not all memory takes, the auxiliary vector.
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1012, PAGE = 4096 };
enum { FILE_OF, VM, FILES, FS, SIGHAND, IO, SYSVSEM };

static char home[] = "/tmp/small_calls.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static long same(pid_t one, pid_t other, int what, long a, long b) {
    return syscall(SYS_kcmp, one, other, what, a, b);
}

static void openings_are_compared(void) {
    int fd = open("/", O_RDONLY), copy = dup(fd), other = open("/", O_RDONLY), me = getpid();
    CHECK(same(me, me, FILE_OF, fd, copy) == 0 && same(me, me, FILE_OF, fd, fd) == 0);
    long one = same(me, me, FILE_OF, fd, other), two = same(me, me, FILE_OF, other, fd);
    CHECK((one == 1 && two == 2) || (one == 2 && two == 1));
    CHECK(same(me, me, FILE_OF, fd, other) == one);
    CHECK(fails(same(me, me, FILE_OF, fd, 999), EBADF) && fails(same(me, me, 99, 0, 0), EINVAL));
    CHECK(fails(same(me, 99999999, VM, 0, 0), ESRCH));
    CHECK(fcntl(fd, 1027, copy) == 1 && fcntl(fd, 1027, other) == 0);
    CHECK(fails(fcntl(fd, 1027, 999), EBADF));
    CHECK(close(fd) == 0 && close(copy) == 0 && close(other) == 0);
}

static int waits(void *unused) {
    (void)unused;
    pause();
    return 0;
}

static void what_clone_shares_is_the_same(void) {
    static char stack[65536];
    int what[] = {VM, FILES, FS, SIGHAND}, flags[] = {CLONE_VM, CLONE_FILES, CLONE_FS,
                                                      CLONE_VM | CLONE_SIGHAND};
    for (int i = 0; i < 4; i++) {
        pid_t child = clone(waits, stack + sizeof stack, flags[i] | SIGCHLD, NULL), me = getpid();
        CHECK(child > 0);
        for (int k = 0; k < 4; k++) {
            int is_shared = k == i || (i == 3 && k == 0);
            CHECK((same(me, child, what[k], 0, 0) == 0) == is_shared);
        }
        CHECK(same(me, me, what[i], 0, 0) == 0 && same(me, me, SYSVSEM, 0, 0) == 0);
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    }
}

static void others_processes_are_not_compared(void) {
    pid_t child = fork(), parent = getppid();
    if (child == 0) {
        parent = getppid();
        _exit(!(setuid(USER) == 0 && fails(same(parent, getpid(), VM, 0, 0), EPERM)));
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void pages_of_a_mapping_are_exchanged(void) {
    int fd = open("f", O_CREAT | O_RDWR, 0644);
    CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
    for (int i = 0; i < 4; i++) CHECK(pwrite(fd, &"abcd"[i], 1, i * PAGE) == 1);
    char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED && at[0] == 'a');
    CHECK(remap_file_pages(at, PAGE, 0, 3, 0) == 0 && at[0] == 'd' && at[PAGE] == 'b');
    CHECK(remap_file_pages(at + 2 * PAGE, 2 * PAGE, 0, 0, 0) == 0);
    CHECK(at[2 * PAGE] == 'a' && at[3 * PAGE] == 'b');
    at[0] = 'D';
    char byte;
    CHECK(pread(fd, &byte, 1, 3 * PAGE) == 1 && byte == 'D');
    CHECK(fails(remap_file_pages(at, PAGE, PROT_READ, 0, 0), EINVAL));
    CHECK(fails(remap_file_pages(at, 8 * PAGE, 0, 0, 0), EINVAL));
    CHECK(munmap(at, 4 * PAGE) == 0 && fails(remap_file_pages(at, PAGE, 0, 0, 0), EINVAL));
    at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(fails(remap_file_pages(at, PAGE, 0, 1, 0), EINVAL));
    CHECK(munmap(at, PAGE) == 0 && close(fd) == 0);
}

static void no_memory_has_a_key_unless_the_processor_does(void) {
    char *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(syscall(SYS_pkey_mprotect, at, PAGE, PROT_READ | PROT_WRITE, -1) == 0);
    at[0] = 1;
    CHECK(fails(syscall(SYS_pkey_mprotect, at, PAGE, PROT_READ, 99), EINVAL));
    CHECK(fails(syscall(SYS_pkey_alloc, 1, 0), EINVAL) && fails(syscall(SYS_pkey_free, 99), EINVAL));
    CHECK(munmap(at, PAGE) == 0);
}

static void advice_is_refused_where_it_means_nothing(void) {
    int fd = open("f", O_CREAT | O_RDWR, 0644);
    CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
    char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(fails(madvise(at, PAGE, MADV_FREE), EINVAL) && fails(madvise(own, PAGE, MADV_FREE), EINVAL));
    CHECK(fails(madvise(at, PAGE, MADV_WIPEONFORK), EINVAL));
    CHECK(fails(madvise(own, PAGE, MADV_WIPEONFORK), EINVAL));
    CHECK(madvise(mine, PAGE, MADV_FREE) == 0 && madvise(mine, PAGE, MADV_WIPEONFORK) == 0);
    CHECK(madvise(at, PAGE, MADV_DONTNEED) == 0);
    CHECK(mlock(at, PAGE) == 0 && fails(msync(at, PAGE, MS_INVALIDATE), EBUSY));
    CHECK(munlock(at, PAGE) == 0 && msync(at, PAGE, MS_INVALIDATE) == 0);
    CHECK(fails(mlockall(MCL_ONFAULT), EINVAL) && fails(mlockall(0), EINVAL));
    CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 0x1000000, fd, 0) == MAP_FAILED);
    CHECK(errno == EOPNOTSUPP);
    CHECK(munmap(at, PAGE) == 0 && munmap(own, PAGE) == 0 && munmap(mine, PAGE) == 0);
    CHECK(close(fd) == 0);
}

static long open_how(int dir, const char *name, unsigned long flags, unsigned long resolve,
                     size_t size) {
    struct {
        struct open_how how;
        char more[64];
    } asked = {{flags, 0, resolve}, {0}};
    if (size > 64) asked.more[10] = 1;
    return syscall(SYS_openat2, dir, name, &asked, size ? size : sizeof asked.how);
}

static void a_directory_is_the_root_of_a_walk(void) {
    int dir = open(".", O_RDONLY | O_DIRECTORY), fd;
    CHECK(dir >= 0 && symlink("/f", "up") == 0);
    CHECK((fd = open_how(dir, "/f", O_RDONLY, RESOLVE_IN_ROOT, 0)) >= 0 && close(fd) == 0);
    CHECK((fd = open_how(dir, "../../f", O_RDONLY, RESOLVE_IN_ROOT, 0)) >= 0 && close(fd) == 0);
    CHECK((fd = open_how(dir, "up", O_RDONLY, RESOLVE_IN_ROOT, 0)) >= 0 && close(fd) == 0);
    CHECK(fails(open_how(dir, "up", O_RDONLY, 0, 0), ENOENT));
    CHECK(fails(open_how(dir, "/f", O_RDONLY, RESOLVE_BENEATH, 0), EXDEV));
    CHECK(fails(open_how(dir, "f", O_RDONLY, RESOLVE_BENEATH | RESOLVE_IN_ROOT, 0), EINVAL));
    CHECK(fails(open_how(dir, "f", O_PATH | O_RDWR, 0, 0), EINVAL));
    CHECK((fd = open_how(dir, "f", O_RDONLY, 0, 40)) >= 0 && close(fd) == 0);
    CHECK(fails(open_how(dir, "f", O_RDONLY, 0, 80), E2BIG) && fails(open_how(dir, "f", 0, 0, 8), EINVAL));
    CHECK(unlink("up") == 0 && close(dir) == 0);
}

static void files_say_what_they_are_not(void) {
    int pipes[2], event = eventfd(0, 0), fd = open("f", O_RDWR);
    struct statx told;
    CHECK(pipe(pipes) == 0 && event >= 0 && fd >= 0);
    CHECK(fails(sync_file_range(pipes[0], 0, 1, SYNC_FILE_RANGE_WRITE), ESPIPE));
    CHECK(fails(fallocate(event, 0, 0, 1), ENODEV) && fails(fallocate(pipes[1], 0, 0, 1), ESPIPE));
    CHECK(posix_fadvise(fd, 0, -1, POSIX_FADV_NORMAL) == EINVAL);
    struct statfs system;
    CHECK(fstatfs(pipes[0], &system) == 0 && system.f_type == 0x50495045 && system.f_bsize == PAGE);
    CHECK(fstatfs(event, &system) == 0 && system.f_type == 0x09041934 && system.f_namelen == 255);
    int dir = open("/dev/shm", O_RDONLY | O_DIRECTORY);
    dir = dir >= 0 ? dir : open(".", O_RDONLY | O_DIRECTORY);
    CHECK(fails(lseek(dir, 0, SEEK_DATA), EINVAL) && fails(lseek(dir, 0, SEEK_HOLE), EINVAL));
    CHECK(close(dir) == 0);
    CHECK(fails(statx(fd, "", AT_EMPTY_PATH | 0x6000, STATX_BASIC_STATS, &told), EINVAL));
    CHECK(close(pipes[0]) == 0 && close(pipes[1]) == 0 && close(event) == 0 && close(fd) == 0);
}

static void the_log_checks_what_it_is_asked(void) {
    char bytes[64];
    CHECK(fails(klogctl(3, NULL, 10), EINVAL) && fails(klogctl(3, bytes, -1), EINVAL));
    CHECK(fails(klogctl(8, NULL, 0), EINVAL) && fails(klogctl(8, NULL, 9), EINVAL));
    CHECK(fails(klogctl(99, NULL, 0), EINVAL) && klogctl(3, bytes, 0) == 0);
    CHECK(klogctl(10, NULL, 0) > 0 && klogctl(9, NULL, 0) >= 0);
    pid_t child = fork();
    if (child == 0) _exit(!(setuid(USER) == 0 && fails(klogctl(4, bytes, 0), EPERM)));
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// linux/prctl.h of this host may not know it yet.
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

static void the_auxiliary_vector_is_told_as_far_as_there_is_room(void) {
    unsigned long told[128] = {0}, listed[128];
    int fd = open("/proc/self/auxv", O_RDONLY);
    long bytes = read(fd, listed, sizeof listed);
    CHECK(bytes > 0 && close(fd) == 0);
    // Linux counts the room that it has for one, not what is in it.
    CHECK(prctl(PR_GET_AUXV, told, sizeof *told, 0, 0) >= bytes && told[0] == listed[0] && !told[1]);
    CHECK(prctl(PR_GET_AUXV, told, sizeof told, 0, 0) >= bytes && !memcmp(told, listed, bytes));
    CHECK(fails(prctl(PR_GET_AUXV, told, sizeof told, 1, 0), EINVAL));
    CHECK(fails(prctl(PR_GET_AUXV, NULL, sizeof told, 0, 0), EFAULT));
}

int main(void) {
    if (!mkdtemp(home) || chdir(home)) return 1;
    TEST(openings_are_compared);
    TEST(what_clone_shares_is_the_same);
    TEST(others_processes_are_not_compared);
    TEST(pages_of_a_mapping_are_exchanged);
    TEST(no_memory_has_a_key_unless_the_processor_does);
    TEST(advice_is_refused_where_it_means_nothing);
    TEST(a_directory_is_the_root_of_a_walk);
    TEST(files_say_what_they_are_not);
    TEST(the_log_checks_what_it_is_asked);
    TEST(the_auxiliary_vector_is_told_as_far_as_there_is_room);
    if (unlink("f") || chdir("/") || rmdir(home)) return 1;
    return check_status();
}
