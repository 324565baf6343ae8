// /proc/TID of a thread that is not the first one, and folders of /proc as pidfds.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static volatile int tid;
static pthread_barrier_t barrier;

static void *live(void *unused) {
    prctl(PR_SET_NAME, "another");
    tid = syscall(SYS_gettid);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static pthread_t start(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, live, NULL) == 0);
    pthread_barrier_wait(&barrier);
    return thread;
}

static void end(pthread_t thread) {
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

// The text of /proc/ID/NAME.
static const char *text(int id, const char *name) {
    static char bytes[4096];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", id, name);
    int fd = open(path, O_RDONLY);
    ssize_t count = read(fd, bytes, sizeof bytes - 1);
    close(fd);
    bytes[count < 0 ? 0 : count] = 0;
    return bytes;
}

static int entries(const char *path, int id) {
    DIR *folder = opendir(path);
    if (folder == NULL) return -1;
    int found = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) found += atoi(entry->d_name) == id;
    closedir(folder);
    return found;
}

static int is_there(int id) {
    char path[64];
    struct stat stat_now;
    snprintf(path, sizeof path, "/proc/%d", id);
    return stat(path, &stat_now) == 0 && S_ISDIR(stat_now.st_mode);
}

static void a_thread_is_found_by_its_number(void) {
    pthread_t thread = start();
    CHECK(tid != getpid() && is_there(tid));
    CHECK(strcmp(text(tid, "comm"), "another\n") == 0);
    CHECK(atoi(text(tid, "stat")) == tid);
    char line[32];
    const char *status = text(tid, "status");
    snprintf(line, sizeof line, "\nTgid:\t%d\n", getpid());
    CHECK(strstr(status, line) != NULL);
    snprintf(line, sizeof line, "\nPid:\t%d\n", tid);
    CHECK(strstr(status, line) != NULL);
    end(thread);
}

static void its_folder_is_that_of_a_process_but_not_listed(void) {
    pthread_t thread = start();
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", tid);
    CHECK(entries(path, tid) == 1 && entries(path, getpid()) == 1);
    CHECK(entries("/proc", tid) == 0 && entries("/proc", getpid()) == 1);
    end(thread);
}

static void a_thread_that_has_ended_is_not_found(void) {
    pthread_t thread = start();
    int ended = tid;
    end(thread);
    // The kernel forgets it soon after pthread_join(3) has returned.
    while (is_there(ended)) usleep(1000);
    CHECK(!is_there(0) && !is_there(99999999));
}

static int folder_of(const char *format, int pid, int flags) {
    char path[64];
    snprintf(path, sizeof path, format, pid, pid);
    return open(path, flags | O_DIRECTORY);
}

static int send_to(int fd, int signal) { return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0); }

static void signals_go_through_the_folder_of_a_process(void) {
    pid_t child = fork();
    if (child == 0) for (;;) pause();
    int fd = folder_of("/proc/%d", child, O_RDONLY);
    CHECK(send_to(fd, 0) == 0 && send_to(fd, SIGTERM) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(send_to(fd, 0) == -1 && errno == ESRCH);
    close(fd);
}

static void other_folders_stand_for_no_process(void) {
    int fds[] = {
        folder_of("/proc/%d", getpid(), O_PATH),
        folder_of("/proc/%d/task/%d", getpid(), O_RDONLY),
        folder_of("/proc/%d/task", getpid(), O_RDONLY),
        folder_of("/proc", 0, O_RDONLY),
    };
    for (int i = 0; i < 4; i++) {
        CHECK(fds[i] >= 0 && send_to(fds[i], 0) == -1 && errno == EBADF);
        close(fds[i]);
    }
}

static void only_signals_take_a_folder(void) {
    int fd = folder_of("/proc/%d", getpid(), O_RDONLY);
    CHECK(syscall(SYS_pidfd_getfd, fd, 0, 0) == -1 && errno == EBADF);
    siginfo_t info;
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG) == -1 && errno == EBADF);
    close(fd);
}

int main(void) {
    TEST(a_thread_is_found_by_its_number);
    TEST(its_folder_is_that_of_a_process_but_not_listed);
    TEST(a_thread_that_has_ended_is_not_found);
    TEST(signals_go_through_the_folder_of_a_process);
    TEST(other_folders_stand_for_no_process);
    TEST(only_signals_take_a_folder);
    return check_status();
}
