// Calls that newer ones have replaced, and the priority of transfers.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1008, PROCESS = 1, GROUP = 2, OWNER = 3, NONE = 0, REALTIME = 1, BEST = 2, IDLE = 3 };

struct old_entry {
    unsigned long number;
    long next;
    unsigned short length;
    char name[];
};

static int get(int which, int who) { return syscall(SYS_ioprio_get, which, who); }
static int set(int which, int who, int class, int level) {
    return syscall(SYS_ioprio_set, which, who, class << 13 | level);
}

static void getdents_tells_names_and_kinds(void) {
    char entries[4096];
    CHECK(mkdir("/tmp/old_calls", 0755) == 0 && mkdir("/tmp/old_calls/folder", 0755) == 0);
    close(open("/tmp/old_calls/file", O_CREAT | O_WRONLY, 0644));
    int fd = open("/tmp/old_calls", O_RDONLY | O_DIRECTORY), seen = 0;
    long count = syscall(SYS_getdents, fd, entries, sizeof entries);
    CHECK(count > 0);
    for (long at = 0; at < count;) {
        struct old_entry *entry = (void *)(entries + at);
        char kind = entries[at + entry->length - 1];
        seen += strcmp(entry->name, "folder") == 0 && kind == DT_DIR;
        seen += strcmp(entry->name, "file") == 0 && kind == DT_REG;
        at += entry->length;
    }
    CHECK(seen == 2);
    CHECK(syscall(SYS_getdents, fd, entries, sizeof entries) == 0);
    lseek(fd, 0, SEEK_SET);
    CHECK(syscall(SYS_getdents, fd, entries, 10) == -1 && errno == EINVAL);
    close(fd);
    unlink("/tmp/old_calls/file"), rmdir("/tmp/old_calls/folder"), rmdir("/tmp/old_calls");
}

static void futimesat_sets_times(void) {
    struct timeval times[2] = {{1000, 5}, {2000, 7}};
    struct stat found;
    int fd = open("/tmp/old_calls_file", O_CREAT | O_RDWR, 0644), folder = open("/tmp", O_RDONLY);
    CHECK(syscall(SYS_futimesat, folder, "old_calls_file", times) == 0);
    CHECK(fstat(fd, &found) == 0 && found.st_atim.tv_sec == 1000 && found.st_mtim.tv_nsec == 7000);
    times[0].tv_sec = 3000;
    CHECK(syscall(SYS_futimesat, fd, NULL, times) == 0);
    CHECK(fstat(fd, &found) == 0 && found.st_atim.tv_sec == 3000);
    CHECK(syscall(SYS_futimesat, AT_FDCWD, "/tmp/old_calls_file", NULL) == 0);
    CHECK(fstat(fd, &found) == 0 && found.st_mtim.tv_sec > 100000);
    times[0].tv_usec = 1000000;
    CHECK(syscall(SYS_futimesat, folder, "old_calls_file", times) == -1 && errno == EINVAL);
    close(fd), close(folder);
    unlink("/tmp/old_calls_file");
}

static void a_priority_of_transfers_is_kept_and_inherited(void) {
    CHECK(set(PROCESS, 0, BEST, 3) == 0);
    CHECK(get(PROCESS, 0) == (BEST << 13 | 3));
    pid_t child = fork();
    if (child == 0) _exit(get(PROCESS, 0) == (BEST << 13 | 3) ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(set(PROCESS, 0, IDLE, 0) == 0 && get(PROCESS, getpid()) == IDLE << 13);
    CHECK(set(PROCESS, 0, 7, 0) == -1 && errno == EINVAL);
    CHECK(set(PROCESS, 0, NONE, 1) == -1 && errno == EINVAL);
    CHECK(set(9, 0, BEST, 1) == -1 && errno == EINVAL);
    CHECK(set(PROCESS, 999999, BEST, 1) == -1 && errno == ESRCH);
    CHECK(set(GROUP, 0, BEST, 2) == 0 && get(GROUP, 0) == (BEST << 13 | 2));
}

static void the_priority_of_others_needs_a_capability(void) {
    pid_t child = fork();
    if (child == 0) {
        pid_t root = getppid();
        if (setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0) _exit(9);
        if (set(PROCESS, root, BEST, 1) != -1 || errno != EPERM) _exit(1);
        if (set(PROCESS, 0, REALTIME, 1) != -1 || errno != EPERM) _exit(2);
        _exit(set(OWNER, USER, BEST, 5) == 0 && get(OWNER, USER) == (BEST << 13 | 5) ? 0 : 3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    TEST(getdents_tells_names_and_kinds);
    TEST(futimesat_sets_times);
    TEST(a_priority_of_transfers_is_kept_and_inherited);
    TEST(the_priority_of_others_needs_a_capability);
    return check_status();
}
