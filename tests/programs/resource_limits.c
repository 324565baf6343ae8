// Limits of setrlimit(2) hold, and whose limits a process may change.
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1003, OTHER = 1005, PAGE = 4096 };

static void become(unsigned id) {
    if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) _exit(99);
}

static int limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit both = {soft, hard};
    return setrlimit(resource, &both);
}

// How a child ends that does `work`; as the user `id`.
static int status_of(unsigned id, int (*work)(void)) {
    pid_t child = fork();
    if (child == 0) {
        if (id != 0) become(id);
        _exit(work());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int result_of(unsigned id, int (*work)(void)) {
    int status = status_of(id, work);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { LIMIT = 10000 };
static char bytes[3 * PAGE];

static int file(void) { return memfd_create("limited", 0); }

static int writes_end_at_the_limit(void) {
    int fd = file();
    signal(SIGXFSZ, SIG_IGN);
    if (limit(RLIMIT_FSIZE, LIMIT, LIMIT) != 0) return 1;
    if (write(fd, bytes, sizeof bytes) != LIMIT) return 2;
    if (write(fd, bytes, 1) != -1 || errno != EFBIG) return 3;
    if (pwrite(fd, bytes, 10, LIMIT - 4) != 4 || pwrite(fd, bytes, 10, LIMIT) != -1) return 4;
    if (ftruncate(fd, LIMIT) != 0 || ftruncate(fd, LIMIT + 1) != -1 || errno != EFBIG) return 5;
    if (posix_fallocate(fd, 0, LIMIT + 1) != EFBIG) return 6;
    if (fcntl(fd, F_SETFL, O_APPEND) != 0 || pwrite(fd, bytes, 1, 0) != -1 || errno != EFBIG) return 7;
    struct iovec pieces[2] = {{bytes, 6000}, {bytes, 6000}};
    int other = file();
    if (writev(other, pieces, 2) != LIMIT) return 8;
    int third = file();
    lseek(fd, 0, SEEK_SET);
    if (lseek(third, LIMIT - 8, SEEK_SET) != LIMIT - 8 || sendfile(third, fd, NULL, 100) != 8) return 9;
    int ends[2];
    return pipe(ends) != 0 || write(ends[1], bytes, sizeof bytes) != sizeof bytes ? 10 : 0;
}

static void a_file_ends_at_its_limit(void) {
    CHECK(result_of(0, writes_end_at_the_limit) == 0);
    CHECK(result_of(USER, writes_end_at_the_limit) == 0);
}

static int write_beyond(void) {
    int fd = file();
    limit(RLIMIT_FSIZE, 0, RLIM_INFINITY);
    if (write(fd, bytes, 0) != 0) return 1;
    return write(fd, bytes, 1) == 1 ? 2 : 3;
}

static int cut_beyond(void) {
    int fd = file();
    limit(RLIMIT_FSIZE, 0, RLIM_INFINITY);
    return ftruncate(fd, 1) == 0 ? 2 : 3;
}

static void who_goes_beyond_it_is_killed(void) {
    int wrote = status_of(0, write_beyond), cut = status_of(0, cut_beyond);
    CHECK(WIFSIGNALED(wrote) && WTERMSIG(wrote) == SIGXFSZ);
    CHECK(WIFSIGNALED(cut) && WTERMSIG(cut) == SIGXFSZ);
}

static volatile int warnings;
static void warn(int signal) { warnings++; }

static int burn(void) {
    signal(SIGXCPU, warn);
    int ends[2];
    if (pipe(ends) != 0) return 1;
    pid_t child = fork();
    if (child == 0) {
        limit(RLIMIT_CPU, 1, 3);
        for (int told = 0;;)
            if (warnings != told && write(ends[1], "x", ++told != 0) != 1) _exit(2);
    }
    close(ends[1]);
    char told[8];
    int status, count = 0;
    for (ssize_t more; (more = read(ends[0], told, sizeof told)) > 0;) count += more;
    if (waitpid(child, &status, 0) != child) return 3;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return 4;
    return count == 2 || count == 3 ? 0 : 100 + count;
}

static void cpu_time_ends_with_warnings_each_second(void) { CHECK(result_of(0, burn) == 0); }

static int inherited_burn(void) {
    limit(RLIMIT_CPU, 1, RLIM_INFINITY);
    pid_t child = fork();
    if (child == 0)
        for (;;) {}
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU ? 0 : 1;
}

static void a_child_inherits_the_limit_but_not_the_time(void) { CHECK(result_of(0, inherited_burn) == 0); }

static void *idle(void *unused) {
    pause();
    return NULL;
}

static int make_many(void) {
    if (limit(RLIMIT_NPROC, 3, 3) != 0) return 1;
    pid_t first = fork();
    if (first == 0) for (;;) pause();
    pthread_t thread;
    if (first < 0 || pthread_create(&thread, NULL, idle, NULL) != 0) return 2;
    pid_t third = fork();
    if (third == 0) _exit(0);
    if (third != -1 || errno != EAGAIN) return 3;
    if (pthread_create(&thread, NULL, idle, NULL) != EAGAIN) return 4;
    kill(first, SIGKILL);
    siginfo_t info;
    waitid(P_PID, first, &info, WEXITED | WNOWAIT);
    if (fork() != -1) return 5;
    waitpid(first, NULL, 0);
    third = fork();
    if (third == 0) _exit(0);
    return third > 0 && waitpid(third, NULL, 0) == third ? 0 : 6;
}

static void a_user_has_no_more_threads_than_its_limit(void) {
    CHECK(result_of(USER, make_many) == 0);
    CHECK(result_of(USER, make_many) == 0);
}

static int make_as_root(void) {
    limit(RLIMIT_NPROC, 1, 1);
    pid_t child = fork();
    if (child == 0) _exit(0);
    return child < 0 ? 1 : waitpid(child, NULL, 0) != child;
}

static void root_has_as_many_as_it_likes(void) { CHECK(result_of(0, make_as_root) == 0); }

static int run_as_one_too_many(void) {
    int ready[2];
    if (pipe(ready) != 0) return 1;
    pid_t first = fork();
    if (first == 0) {
        become(OTHER);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1) return 2;
    limit(RLIMIT_NPROC, 1, 1);
    become(OTHER);
    execl("/proc/self/exe", "resource_limits", "run", (char *)0);
    int refused = errno == EAGAIN;
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    if (!refused) return 3;
    execl("/proc/self/exe", "resource_limits", "run", (char *)0);
    return 4;
}

static void one_too_many_may_become_the_user_but_run_nothing(void) {
    CHECK(result_of(0, run_as_one_too_many) == 42);
}

static void *map(size_t size, int rights, int flags) {
    return mmap(NULL, size, rights, flags | MAP_ANONYMOUS, -1, 0);
}

static int map_data(void) {
    enum { RW = PROT_READ | PROT_WRITE, BIG = 64 << 20 };
    if (limit(RLIMIT_DATA, 32 << 20, RLIM_INFINITY) != 0) return 1;
    if (map(BIG, RW, MAP_PRIVATE) != MAP_FAILED || errno != ENOMEM) return 2;
    if (map(BIG, RW, MAP_SHARED) == MAP_FAILED) return 3;
    char *text = map(BIG, PROT_READ, MAP_PRIVATE);
    if (text == MAP_FAILED || mprotect(text, BIG, RW) != -1 || errno != ENOMEM) return 4;
    char *small = map(PAGE, RW, MAP_PRIVATE);
    if (small == MAP_FAILED || mremap(small, PAGE, BIG, MREMAP_MAYMOVE) != MAP_FAILED) return 5;
    return mprotect(text, PAGE, RW) == 0 && sbrk(BIG) == (void *)-1 ? 0 : 6;
}

static void data_does_not_grow_beyond_its_limit(void) { CHECK(result_of(USER, map_data) == 0); }

static int map_much(void) {
    limit(RLIMIT_AS, 256 << 20, RLIM_INFINITY);
    if (map(512 << 20, PROT_NONE, MAP_PRIVATE) != MAP_FAILED || errno != ENOMEM) return 1;
    return map(16 << 20, PROT_READ, MAP_PRIVATE) == MAP_FAILED;
}

static void addresses_do_not_grow_beyond_theirs(void) { CHECK(result_of(USER, map_much) == 0); }

static int lock_much(void) {
    enum { RW = PROT_READ | PROT_WRITE, ALL = 16 * PAGE };
    if (limit(RLIMIT_MEMLOCK, ALL, ALL) != 0) return 1;
    char *at = map(2 * ALL, RW, MAP_PRIVATE);
    if (mlock(at, ALL) != 0 || mlock(at, ALL) != 0) return 2;
    if (mlock(at + ALL, PAGE) != -1 || errno != ENOMEM) return 3;
    if (map(PAGE, RW, MAP_PRIVATE | MAP_LOCKED) != MAP_FAILED || errno != EAGAIN) return 4;
    if (mlockall(MCL_CURRENT) != -1 || errno != ENOMEM) return 5;
    if (munlock(at, PAGE) != 0 || mlock(at + ALL, PAGE) != 0) return 6;
    if (limit(RLIMIT_MEMLOCK, 0, 0) != 0 || mlock(at, PAGE) != -1 || errno != EPERM) return 7;
    if (map(PAGE, RW, MAP_PRIVATE | MAP_LOCKED) != MAP_FAILED || errno != EPERM) return 8;
    return mlockall(MCL_CURRENT) == -1 && errno == EPERM ? 0 : 9;
}

static int lock_as_root(void) {
    limit(RLIMIT_MEMLOCK, 0, 0);
    char *at = map(PAGE, PROT_READ, MAP_PRIVATE);
    return mlock(at, PAGE);
}

static void locked_memory_does_not_grow_beyond_its_limit(void) {
    CHECK(result_of(USER, lock_much) == 0);
    CHECK(result_of(0, lock_as_root) == 0);
}

static int become_nicer(void) {
    limit(RLIMIT_NICE, 25, 25);
    if (setpriority(PRIO_PROCESS, 0, -6) != -1 || errno != EACCES) return 1;
    return setpriority(PRIO_PROCESS, 0, -5) != 0;
}

static void a_nice_value_goes_down_to_its_limit(void) {
    struct rlimit old;
    CHECK(getrlimit(RLIMIT_NICE, &old) == 0);
    CHECK(limit(RLIMIT_NICE, 25, 25) == 0);
    int result = result_of(USER, become_nicer);
    setrlimit(RLIMIT_NICE, &old);
    CHECK(result == 0);
}

static pid_t target;

static int change_anothers(void) {
    struct rlimit both;
    if (prlimit(target, RLIMIT_CORE, NULL, &both) != 0) return errno;
    both.rlim_cur = 0;
    return prlimit(target, RLIMIT_CORE, &both, NULL) == 0 ? 0 : errno;
}

static int raise_own(void) {
    struct rlimit both = {5, 5};
    if (setrlimit(RLIMIT_FSIZE, &both) != 0) return 100;
    both.rlim_max = 6;
    if (setrlimit(RLIMIT_FSIZE, &both) != -1 || errno != EPERM) return 101;
    both.rlim_cur = 7;
    return setrlimit(RLIMIT_FSIZE, &both) == -1 && errno == EINVAL ? 0 : 102;
}

static void limits_of_another_user_are_not_to_be_changed(void) {
    int ready[2];
    CHECK(pipe(ready) == 0);
    target = fork();
    if (target == 0) {
        become(USER);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    int own = result_of(USER, change_anothers), other = result_of(OTHER, change_anothers);
    int root = result_of(0, change_anothers);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    CHECK(own == 0);
    CHECK(other == EPERM);
    CHECK(root == 0);
    CHECK(result_of(USER, raise_own) == 0);
}

int main(int argc, char **argv) {
    if (argc > 1) return 42;
    TEST(a_file_ends_at_its_limit);
    TEST(who_goes_beyond_it_is_killed);
    TEST(cpu_time_ends_with_warnings_each_second);
    TEST(a_child_inherits_the_limit_but_not_the_time);
    TEST(a_user_has_no_more_threads_than_its_limit);
    TEST(root_has_as_many_as_it_likes);
    TEST(one_too_many_may_become_the_user_but_run_nothing);
    TEST(data_does_not_grow_beyond_its_limit);
    TEST(addresses_do_not_grow_beyond_theirs);
    TEST(locked_memory_does_not_grow_beyond_its_limit);
    TEST(a_nice_value_goes_down_to_its_limit);
    TEST(limits_of_another_user_are_not_to_be_changed);
    return check_status();
}
