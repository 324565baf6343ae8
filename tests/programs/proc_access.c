// Who may look into a process: ptrace(2), "Ptrace access mode checking", by the names in
// /proc and by the calls that ask the same.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { OWNER = 1001, OTHER = 1002 };

static const char *const FILES[] = {"auxv", "environ", "io", "maps", "mem", "smaps", "smaps_rollup"};
static const char *const LINKS[] = {"cwd", "exe", "root"};
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static volatile long word = 0x5ecde7;

static void become(unsigned id) {
    if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) _exit(99);
}

// A process of OWNER that only waits; dumpable or not.
static pid_t start_target(int dumpable) {
    int ready[2];
    if (pipe(ready) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        become(OWNER);
        prctl(PR_SET_DUMPABLE, dumpable);
        if (write(ready[1], "x", 1) != 1) _exit(98);
        for (;;) pause();
    }
    char byte;
    ssize_t got = read(ready[0], &byte, 1);
    close(ready[0]);
    close(ready[1]);
    return got == 1 ? child : -1;
}

static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

// What `look` says of `target` as the user `id`; 0 stands for root.
static int as(unsigned id, int (*look)(pid_t), pid_t target) {
    pid_t child = fork();
    if (child == 0) {
        if (id != 0) become(id);
        _exit(look(target));
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *path_of(pid_t pid, const char *name) {
    static char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return path;
}

// How many of the names refuse with EACCES, the links' targets and descriptors included.
static int refused(pid_t target) {
    int count = 0;
    for (size_t i = 0; i < COUNT(FILES); i++) {
        char byte;
        int fd = open(path_of(target, FILES[i]), O_RDONLY);
        if (fd < 0 || read(fd, &byte, 1) < 0) count += errno == EACCES;
        if (fd >= 0) close(fd);
    }
    char text[256];
    for (size_t i = 0; i < COUNT(LINKS); i++)
        count += readlink(path_of(target, LINKS[i]), text, sizeof text) < 0 && errno == EACCES;
    struct stat found;
    count += stat(path_of(target, "root/proc"), &found) != 0 && errno == EACCES;
    count += stat(path_of(target, "cwd/."), &found) != 0 && errno == EACCES;
    count += open(path_of(target, "exe"), O_RDONLY) < 0 && errno == EACCES;
    count += stat(path_of(target, "fd/0"), &found) != 0 && errno == EACCES;
    count += opendir(path_of(target, "fd")) == NULL && errno == EACCES;
    return count;
}

enum { ALL = COUNT(FILES) + COUNT(LINKS) + 5 };

// How many of the names that all may read can be read.
static int open_to_all(pid_t target) {
    static const char *const names[] = {"cmdline", "comm", "limits", "stat", "statm", "status"};
    int count = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        char byte;
        int fd = open(path_of(target, names[i]), O_RDONLY);
        count += fd >= 0 && read(fd, &byte, 1) == 1;
        close(fd);
    }
    return count;
}

static void another_user_sees_neither_files_nor_what_links_lead_to(void) {
    pid_t target = start_target(1);
    int other = as(OTHER, refused, target), free = as(OTHER, open_to_all, target);
    end(target);
    CHECK(other == ALL);
    CHECK(free == 6);
}

static void the_same_user_and_root_see_all(void) {
    pid_t target = start_target(1);
    int own = as(OWNER, refused, target), root = as(0, refused, target);
    end(target);
    CHECK(own == 0);
    CHECK(root == 0);
}

static int sum_of_owners(pid_t target) {
    struct stat maps, fd, top;
    if (stat(path_of(target, "maps"), &maps) || stat(path_of(target, "fd"), &fd)) return 77;
    if (stat(path_of(target, ""), &top) || top.st_uid != OWNER || top.st_gid != OWNER) return 78;
    return (maps.st_uid == 0) + (fd.st_uid == 0) + (maps.st_gid == 0) + (fd.st_gid == 0);
}

static void a_process_that_is_not_dumpable_is_seen_by_root_only(void) {
    pid_t target = start_target(0);
    int own = as(OWNER, refused, target), root = as(0, refused, target);
    int owners = as(0, sum_of_owners, target);
    end(target);
    CHECK(own == ALL);
    CHECK(root == 0);
    CHECK(owners == 4);
}

static int change_of_user(pid_t unused) {
    if (prctl(PR_GET_DUMPABLE) != 1) return 1;
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return 2;
    become(OWNER);
    int signal = -1;
    if (prctl(PR_GET_PDEATHSIG, &signal) != 0 || signal != 0) return 3;
    if (prctl(PR_GET_DUMPABLE) != 0) return 4;
    if (fork() == 0) _exit(prctl(PR_GET_DUMPABLE));
    int status;
    return wait(&status) < 0 || status != 0 ? 5 : 0;
}

static void a_change_of_user_ends_being_dumpable(void) {
    CHECK(as(0, change_of_user, 0) == 0);
}

static int loss_of_capabilities(pid_t unused) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capset, &header, data) != 0) return 1;
    return prctl(PR_GET_DUMPABLE) == 1 ? 0 : 2;
}

static void fewer_capabilities_do_not(void) {
    CHECK(as(0, loss_of_capabilities, 0) == 0);
}

static int exec_says(const char *program) {
    pid_t child = fork();
    if (child == 0) {
        become(OWNER);
        execl(program, program, "dumpable", (char *)0);
        _exit(97);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int copy_self(const char *to, mode_t mode) {
    char bytes[65536];
    int from = open("/proc/self/exe", O_RDONLY), copy = open(to, O_CREAT | O_TRUNC | O_WRONLY, 0700);
    ssize_t count;
    while ((count = read(from, bytes, sizeof bytes)) > 0)
        if (write(copy, bytes, count) != count) return -1;
    fchmod(copy, mode);
    close(from);
    return close(copy);
}

static void exec_makes_dumpable_unless_the_program_is_unreadable_or_set_id(void) {
    const char *program = "/tmp/proc_access_copy";
    CHECK(copy_self(program, 0755) == 0);
    int plain = exec_says(program);
    CHECK(chmod(program, 0711) == 0);
    int unreadable = exec_says(program);
    CHECK(chmod(program, 04755) == 0);
    int set_id = exec_says(program);
    unlink(program);
    CHECK(plain == 1);
    CHECK(unreadable == 0);
    CHECK(set_id == 0);
}

static int own_descriptors(pid_t unused) {
    become(OWNER);
    if (prctl(PR_GET_DUMPABLE) != 0) return 1;
    DIR *folder = opendir("/proc/self/fd");
    struct stat found;
    char text[64];
    if (folder == NULL || stat("/proc/self/fd/0", &found) != 0) return 2;
    if (readlink("/proc/self/exe", text, sizeof text) < 0) return 3;
    return open("/proc/self/environ", O_RDONLY) < 0 && errno == EACCES ? 0 : 4;
}

static void a_process_sees_its_own_descriptors_in_any_case(void) {
    CHECK(as(0, own_descriptors, 0) == 0);
}

// One of OWNER that holds a capability more than others of OWNER.
static void one_with_more_capabilities_is_not_seen(void) {
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t target = fork();
    if (target == 0) {
        prctl(PR_SET_KEEPCAPS, 1);
        become(OWNER);
        prctl(PR_SET_DUMPABLE, 1);
        if (write(ready[1], "x", 1) != 1) _exit(98);
        for (;;) pause();
    }
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    int own = as(OWNER, refused, target);
    end(target);
    // Ownership lets it into the directory of descriptors itself.
    CHECK(own == ALL - 1);
}

static int store_word(pid_t target) {
    long value = 0;
    int fd = open(path_of(target, "mem"), O_RDWR);
    off_t at = (off_t)&word;
    if (pread(fd, &value, sizeof value, at) != sizeof value || value != 0x5ecde7) return 1;
    value = 0x0bee;
    if (pwrite(fd, &value, sizeof value, at) != sizeof value) return 2;
    value = 0;
    if (pread(fd, &value, sizeof value, at) != sizeof value || value != 0x0bee) return 3;
    return pread(fd, &value, sizeof value, 64) < 0 && errno == EIO ? 0 : 4;
}

static void memory_is_read_and_written_as_a_file(void) {
    pid_t target = start_target(1);
    int stored = as(OWNER, store_word, target);
    end(target);
    CHECK(stored == 0);
    CHECK(word == 0x5ecde7);
}

static void an_opening_does_not_reach_the_next_program(void) {
    int go[2];
    CHECK(pipe(go) == 0);
    pid_t target = fork();
    if (target == 0) {
        char byte;
        if (read(go[0], &byte, 1) != 1) _exit(98);
        execl("/proc/self/exe", "proc_access", "wait", (char *)0);
        _exit(97);
    }
    int maps = open(path_of(target, "maps"), O_RDONLY), mem = open(path_of(target, "mem"), O_RDONLY);
    char before[64], after[4096];
    snprintf(before, sizeof before, "%s", path_of(target, "cmdline"));
    CHECK(maps >= 0 && mem >= 0 && write(go[1], "x", 1) == 1);
    for (int i = 0; i < 1000; i++) {
        int fd = open(before, O_RDONLY);
        ssize_t count = read(fd, after, sizeof after);
        close(fd);
        if (count > 5 && memmem(after, count, "wait", 5) != NULL) break;
        usleep(10000);
    }
    ssize_t texts = read(maps, after, sizeof after);
    ssize_t bytes = pread(mem, after, 1, (off_t)&word);
    end(target);
    close(maps), close(mem), close(go[0]), close(go[1]);
    CHECK(texts <= 0);
    CHECK(bytes <= 0);
}

static int read_by_call(pid_t target) {
    long value = 0;
    struct iovec here = {&value, sizeof value}, there = {(void *)&word, sizeof word};
    if (process_vm_readv(target, &here, 1, &there, 1, 0) != sizeof value) return errno;
    if (value != 0x5ecde7) return 101;
    value = 0x0bad;
    if (process_vm_writev(target, &here, 1, &there, 1, 0) != sizeof value) return errno;
    struct iovec bad[2] = {there, {(void *)64, 8}};
    char both[16];
    struct iovec wide = {both, sizeof both};
    if (process_vm_readv(target, &wide, 1, bad, 2, 0) != sizeof value) return 102;
    if (process_vm_readv(target, &wide, 1, bad + 1, 1, 0) != -1 || errno != EFAULT) return 103;
    return process_vm_readv(target, &wide, 1, bad, 1, 1) == -1 && errno == EINVAL ? 0 : 104;
}

static void calls_copy_from_and_to_another_process(void) {
    pid_t target = start_target(1);
    int other = as(OTHER, read_by_call, target), own = as(OWNER, read_by_call, target);
    end(target);
    CHECK(other == EPERM);
    CHECK(own == 0);
    CHECK(as(0, read_by_call, 999999) == ESRCH);
}

enum { PAGE = 4096, NEAR = 1500 };
static char *two_pages;
static volatile int is_over;

static void *forbid_and_permit(void *unused) {
    while (!is_over) {
        mprotect(two_pages + PAGE, PAGE, PROT_NONE);
        mprotect(two_pages + PAGE, PAGE, PROT_READ | PROT_WRITE);
    }
    return unused;
}

static void what_is_refused_in_between_moves_no_byte(void) {
    char bytes[2 * NEAR];
    pthread_t other;
    int moved = 0;
    two_pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec here = {bytes, sizeof bytes}, there = {two_pages + PAGE - NEAR, sizeof bytes};
    CHECK(pthread_create(&other, NULL, forbid_and_permit, NULL) == 0);
    for (int round = 0; round < 3000 && moved == 0; round++) {
        for (int i = 0; i < 2 * NEAR; i++) bytes[i] = (char)(round + i);
        ssize_t done = process_vm_writev(getpid(), &here, 1, &there, 1, 0);
        if (done < NEAR) moved++;
        char found = bytes[NEAR];
        struct iovec byte = {&found, 1}, second = {two_pages + PAGE, 1};
        while (done > NEAR && process_vm_readv(getpid(), &byte, 1, &second, 1, 0) != 1) continue;
        moved += found != bytes[NEAR];
    }
    is_over = 1;
    pthread_join(other, NULL);
    CHECK(moved == 0);
}

static void *drop_and_load(void *unused) {
    while (!is_over) {
        madvise(two_pages, PAGE, MADV_DONTNEED);
        (void)*(volatile char *)two_pages;
    }
    return unused;
}

// The page of the file that is mapped in between is not the program's.
static void what_is_written_to_a_private_mapping_never_reaches_its_file(void) {
    char name[] = "/tmp/read_only_XXXXXX", found = 0;
    pthread_t other;
    int fd = mkstemp(name), memory = open("/proc/self/mem", O_RDWR);
    CHECK(write(fd, "original", 8) == 8 && fchmod(fd, 0444) == 0 && close(fd) == 0);
    fd = open(name, O_RDONLY);
    two_pages = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    is_over = 0;
    CHECK(two_pages != MAP_FAILED && memory >= 0 && pthread_create(&other, NULL, drop_and_load, NULL) == 0);
    for (int round = 0; round < 20000; round++)
        if (pwrite(memory, "changed", 7, (off_t)(uintptr_t)two_pages) < 0) break;
    is_over = 1;
    pthread_join(other, NULL);
    CHECK(pread(fd, &found, 1, 0) == 1 && found == 'o');
    close(memory);
    close(fd);
    unlink(name);
}

static int take_descriptor(pid_t target) {
    int pid_fd = syscall(SYS_pidfd_open, target, 0);
    int taken = syscall(SYS_pidfd_getfd, pid_fd, 0, 0);
    if (taken < 0) return errno;
    struct stat mine, theirs;
    fstat(0, &mine);
    fstat(taken, &theirs);
    if (mine.st_ino != theirs.st_ino || !(fcntl(taken, F_GETFD) & FD_CLOEXEC)) return 101;
    if (syscall(SYS_pidfd_getfd, pid_fd, 0, 1) != -1 || errno != EINVAL) return 102;
    return syscall(SYS_pidfd_getfd, pid_fd, 4000, 0) == -1 && errno == EBADF ? 0 : 103;
}

static void a_descriptor_is_taken_by_who_may_look(void) {
    pid_t target = start_target(1);
    int other = as(OTHER, take_descriptor, target), own = as(OWNER, take_descriptor, target);
    end(target);
    CHECK(other == EPERM);
    CHECK(own == 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "dumpable") == 0) return prctl(PR_GET_DUMPABLE);
    if (argc > 1) pause();
    TEST(another_user_sees_neither_files_nor_what_links_lead_to);
    TEST(the_same_user_and_root_see_all);
    TEST(a_process_that_is_not_dumpable_is_seen_by_root_only);
    TEST(a_change_of_user_ends_being_dumpable);
    TEST(fewer_capabilities_do_not);
    TEST(exec_makes_dumpable_unless_the_program_is_unreadable_or_set_id);
    TEST(a_process_sees_its_own_descriptors_in_any_case);
    TEST(one_with_more_capabilities_is_not_seen);
    TEST(memory_is_read_and_written_as_a_file);
    TEST(an_opening_does_not_reach_the_next_program);
    TEST(calls_copy_from_and_to_another_process);
    TEST(what_is_refused_in_between_moves_no_byte);
    TEST(what_is_written_to_a_private_mapping_never_reaches_its_file);
    TEST(a_descriptor_is_taken_by_who_may_look);
    return check_status();
}
