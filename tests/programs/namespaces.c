// Parts of the system that some programs have for themselves: mounts and names (namespaces(7),
// unshare(2), setns(2), clone(2)).
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1010, GET_TYPE = 0xb703 };

static char home[] = "/tmp/namespaces.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }
static int mark(const char *name) { return mkdir(name, 0755) == 0; }
static int is(const char *name) { return access(name, F_OK) == 0; }
static int fresh(const char *name) { return mount("none", name, "tmpfs", 0, NULL) == 0; }

// Ends a test that failed in a child.
static int report(int holds, int line) {
    if (!holds) printf("# line %d: errno %d (%s)\n", line, errno, strerror(errno)), fflush(stdout);
    return holds;
}
#define HOLDS(condition) report(condition, __LINE__)

// Whether `act` holds in a child.
static int in_child(int (*act)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(act() ? 0 : 1);
    int status;
    return waitpid(child, &status, 0) == child && status == 0;
}

// No mount here is told of changes elsewhere, nor the other way.
static int apart(void) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static unsigned long number(const char *link) {
    struct stat file = {0};
    stat(link, &file);
    return file.st_ino;
}

static int called(const char *name) {
    struct utsname names;
    return uname(&names) == 0 && strcmp(names.nodename, name) == 0;
}

static int own_mounts(void) {
    char cwd[256], before[256];
    unsigned long old = number("/proc/self/ns/mnt");
    return HOLDS(getcwd(before, sizeof before) != NULL) && HOLDS(apart()) &&
           HOLDS(getcwd(cwd, sizeof cwd) && strcmp(cwd, before) == 0) &&
           HOLDS(number("/proc/self/ns/mnt") != old) && HOLDS(fresh("m") && mark("m/own")) &&
           HOLDS(is("m/own"));
}
static void what_is_mounted_in_a_new_namespace_is_seen_there_only(void) {
    CHECK(mark("m") && in_child(own_mounts) && !is("m/own") && rmdir("m") == 0);
}

static int unmounts_there(void) {
    return HOLDS(apart()) && HOLDS(is("m/here") && umount("m") == 0 && !is("m/here"));
}
static void what_is_unmounted_in_it_stays_elsewhere(void) {
    CHECK(mark("m") && fresh("m") && mark("m/here") && in_child(unmounts_there));
    CHECK(is("m/here") && umount("m") == 0 && rmdir("m") == 0);
}

static int told(void) {
    return HOLDS(unshare(CLONE_NEWNS) == 0) && HOLDS(fresh("m/in") && mark("m/in/told"));
}
static int listens(void) {
    return HOLDS(unshare(CLONE_NEWNS) == 0) &&
           HOLDS(mount(NULL, "m", NULL, MS_SLAVE, NULL) == 0) && HOLDS(fresh("m/in")) &&
           HOLDS(mark("m/in/own"));
}
static void copies_of_shared_mounts_are_told_of_each_other(void) {
    CHECK(mark("m") && fresh("m") && mark("m/in") && mount(NULL, "m", NULL, MS_SHARED, NULL) == 0);
    CHECK(in_child(told) && is("m/in/told") && umount("m/in") == 0);
    CHECK(in_child(listens) && !is("m/in/own"));
    CHECK(umount("m") == 0 && rmdir("m") == 0);
}

static int with_namespaces_of(pid_t child, int (*act)(void)) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/ns/mnt", child);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    return HOLDS(fd >= 0) && HOLDS(ioctl(fd, GET_TYPE) == CLONE_NEWNS) &&
           HOLDS(fails(setns(fd, CLONE_NEWUTS), EINVAL)) && HOLDS(setns(fd, CLONE_NEWNS) == 0) &&
           HOLDS(number("/proc/self/ns/mnt") == number(name)) && close(fd) == 0 && act();
}

static pid_t guide;
static int told_of[2], done[2];
static int sees_there(void) {
    char cwd[64], path[64];
    snprintf(path, sizeof path, "%s/m/own", home);
    return HOLDS(getcwd(cwd, sizeof cwd) && strcmp(cwd, "/") == 0) && HOLDS(is(path));
}
static int by_link(void) { return with_namespaces_of(guide, sees_there); }
static int by_pidfd(void) {
    int fd = syscall(SYS_pidfd_open, guide, 0);
    return HOLDS(fd >= 0 && fails(setns(fd, 0), EINVAL)) &&
           HOLDS(setns(fd, CLONE_NEWNS | CLONE_NEWUTS) == 0) && HOLDS(called("guide")) &&
           sees_there();
}
static int by_root(void) {
    char path[128], file[64];
    snprintf(path, sizeof path, "/proc/%d/root%s/m/own", guide, home);
    snprintf(file, sizeof file, "%s/m/own", home);
    int fd = open(path, O_PATH);
    return HOLDS(fd >= 0) && HOLDS(!is(file)) &&
           HOLDS(chdir(path) == 0) &&
           HOLDS(fails(mount("none", ".", "tmpfs", 0, NULL), EINVAL));
}
static void a_program_enters_the_namespaces_of_another(void) {
    char byte;
    CHECK(mark("m") && pipe(told_of) == 0 && pipe(done) == 0);
    guide = fork();
    if (guide == 0) {
        int made = apart() && fresh("m") && mark("m/own") && unshare(CLONE_NEWUTS) == 0 &&
                   sethostname("guide", 5) == 0;
        if (!made || write(told_of[1], "x", 1) != 1) _exit(1);
        close(done[1]);
        _exit(read(done[0], &byte, 1) != 0);
    }
    close(told_of[1]);
    CHECK(read(told_of[0], &byte, 1) == 1);
    CHECK(in_child(by_link) && in_child(by_pidfd) && in_child(by_root) && !called("guide"));
    int status;
    CHECK(close(done[1]) == 0 && waitpid(guide, &status, 0) == guide && status == 0);
    CHECK(close(done[0]) == 0 && close(told_of[0]) == 0 && rmdir("m") == 0);
}

static int holds_open(void) {
    int fd = open("/proc/self/ns/mnt", O_RDONLY);
    char path[64];
    snprintf(path, sizeof path, "%s/m/own", home);
    return HOLDS(fd >= 0) && HOLDS(apart() && fresh("m") && mark("m/own")) &&
           HOLDS(setns(fd, 0) == 0 && !is(path)) && close(fd) == 0;
}
static void a_descriptor_leads_back(void) {
    CHECK(mark("m") && in_child(holds_open) && rmdir("m") == 0);
}

static int own_names(void) {
    unsigned long old = number("/proc/self/ns/uts");
    char text[64] = "", label[64], wanted[64];
    if (!HOLDS(unshare(CLONE_NEWUTS) == 0 && sethostname("other", 5) == 0)) return 0;
    int fd = open("/proc/sys/kernel/domainname", O_RDWR);
    int told = fd >= 0 && write(fd, "example", 7) == 7;
    ssize_t len = readlink("/proc/self/ns/uts", label, sizeof label - 1);
    label[len > 0 ? len : 0] = 0;
    snprintf(wanted, sizeof wanted, "uts:[%lu]", number("/proc/self/ns/uts"));
    return HOLDS(told) && HOLDS(getdomainname(text, sizeof text) == 0) &&
           HOLDS(strcmp(text, "example") == 0 && called("other")) &&
           HOLDS(number("/proc/self/ns/uts") != old && strcmp(label, wanted) == 0);
}
static void names_are_changed_for_a_namespace_only(void) {
    struct utsname before, after;
    CHECK(uname(&before) == 0 && in_child(own_names) && uname(&after) == 0);
    CHECK(strcmp(before.nodename, after.nodename) == 0);
    CHECK(strcmp(before.domainname, after.domainname) == 0);
}

static int born(void *own) {
    return !(HOLDS(number("/proc/self/ns/mnt") != *(unsigned long *)own) &&
             HOLDS(sethostname("born", 4) == 0) && HOLDS(called("born")));
}
static void a_child_is_made_in_new_namespaces(void) {
    static char stack[65536];
    unsigned long own = number("/proc/self/ns/mnt");
    pid_t child = clone(born, stack + sizeof stack, CLONE_NEWNS | CLONE_NEWUTS | SIGCHLD, &own);
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0 && !called("born"));
    CHECK(fails(clone(born, stack + sizeof stack, CLONE_NEWNS | CLONE_FS | SIGCHLD, &own), EINVAL));
}

static int refused(void) {
    int fd = open("/proc/self/ns/mnt", O_RDONLY), uts = open("/proc/self/ns/uts", O_RDONLY);
    static char stack[65536];
    return HOLDS(fd >= 0 && uts >= 0 && setuid(USER) == 0) &&
           HOLDS(fails(unshare(CLONE_NEWNS), EPERM)) && HOLDS(fails(unshare(CLONE_NEWUTS), EPERM)) &&
           HOLDS(fails(setns(fd, 0), EPERM)) && HOLDS(fails(setns(uts, 0), EPERM)) &&
           HOLDS(fails(clone(born, stack + sizeof stack, CLONE_NEWUTS | SIGCHLD, NULL), EPERM)) &&
           HOLDS(unshare(0) == 0 && unshare(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM) == 0) &&
           HOLDS(unshare(CLONE_VM | CLONE_THREAD | CLONE_SIGHAND) == 0);
}
static void only_administrators_make_namespaces(void) {
    CHECK(in_child(refused));
    int fd = open("/", O_RDONLY);
    CHECK(fails(setns(fd, 0), EINVAL) && fails(setns(-1, 0), EBADF) && close(fd) == 0);
    CHECK(fails(unshare(0x1), EINVAL));
}

static int pipes[2];
static void *parts(void *unused) {
    (void)unused;
    struct stat file;
    int fd = open("/", O_RDONLY);
    long holds = HOLDS(unshare(CLONE_FILES | CLONE_FS) == 0) && HOLDS(close(pipes[0]) == 0) &&
                 HOLDS(chdir("/") == 0) && HOLDS(fstat(fd, &file) == 0) && HOLDS(umask(0) == 077) &&
                 HOLDS(fails(unshare(CLONE_VM), EINVAL)) && HOLDS(fails(unshare(CLONE_THREAD), EINVAL));
    return (void *)holds;
}
static int threads_part(void) {
    char cwd[256], before[256];
    pthread_t thread;
    void *held;
    struct stat file;
    umask(077);
    return HOLDS(pipe(pipes) == 0) && HOLDS(getcwd(before, sizeof before) != NULL) &&
           HOLDS(pthread_create(&thread, NULL, parts, NULL) == 0) &&
           HOLDS(pthread_join(thread, &held) == 0 && held) &&
           HOLDS(fstat(pipes[0], &file) == 0 && getcwd(cwd, sizeof cwd)) &&
           HOLDS(strcmp(cwd, before) == 0 && umask(0) == 077);
}
static void threads_stop_to_share_descriptors_and_places(void) { CHECK(in_child(threads_part)); }

static void *waits(void *unused) {
    char byte;
    (void)unused;
    return (void *)(long)read(pipes[0], &byte, 1);
}
static int shares_its_root(void) {
    pthread_t thread;
    int fd = open("/proc/self/ns/mnt", O_RDONLY);
    return HOLDS(pipe(pipes) == 0 && pthread_create(&thread, NULL, waits, NULL) == 0) &&
           HOLDS(fails(setns(fd, 0), EINVAL)) && HOLDS(write(pipes[1], "x", 1) == 1) &&
           HOLDS(pthread_join(thread, NULL) == 0);
}
static void threads_that_share_their_root_enter_no_mounts(void) { CHECK(in_child(shares_its_root)); }

static int set;
static int takes_back(void) {
    struct sembuf add = {0, 3, SEM_UNDO};
    return HOLDS(semop(set, &add, 1) == 0 && semctl(set, 0, GETVAL) == 3) &&
           HOLDS(unshare(CLONE_SYSVSEM) == 0 && semctl(set, 0, GETVAL) == 0);
}
static void what_was_done_with_undo_is_taken_back(void) {
    set = semget(IPC_PRIVATE, 1, 0600);
    CHECK(set >= 0 && in_child(takes_back) && semctl(set, 0, IPC_RMID) == 0);
}

static int gives_up(void) { return apart() && fresh("m") && mark("m/x") && fresh("m/x"); }
static void namespaces_go_with_their_programs(void) {
    CHECK(mark("m"));
    for (int i = 0; i < 300; i++) CHECK(in_child(gives_up));
    CHECK(rmdir("m") == 0);
}

int main(void) {
    if (!mkdtemp(home) || mount("none", home, "tmpfs", 0, NULL) || chdir(home)) return 1;
    if (mount(NULL, home, NULL, MS_PRIVATE, NULL)) return 1;
    TEST(what_is_mounted_in_a_new_namespace_is_seen_there_only);
    TEST(what_is_unmounted_in_it_stays_elsewhere);
    TEST(copies_of_shared_mounts_are_told_of_each_other);
    TEST(a_program_enters_the_namespaces_of_another);
    TEST(a_descriptor_leads_back);
    TEST(names_are_changed_for_a_namespace_only);
    TEST(a_child_is_made_in_new_namespaces);
    TEST(only_administrators_make_namespaces);
    TEST(threads_stop_to_share_descriptors_and_places);
    TEST(threads_that_share_their_root_enter_no_mounts);
    TEST(what_was_done_with_undo_is_taken_back);
    TEST(namespaces_go_with_their_programs);
    if (chdir("/") || umount(home) || rmdir(home)) return 1;
    return check_status();
}
