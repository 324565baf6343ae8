// clone, fork, vfork: what parent and child share.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char stack[65536] __attribute__((aligned(16)));
static volatile int shared;

static int wait_for(pid_t child) {
    int status = -1;
    return waitpid(child, &status, __WALL) == child ? status : -1;
}

static int set_shared(void *value) {
    shared = (int)(intptr_t)value;
    return 3;
}

static void memory_is_shared_if_asked(void) {
    shared = 0;
    pid_t child = clone(set_shared, stack + sizeof stack, CLONE_VM | SIGCHLD, (void *)5);
    CHECK(child > 0 && WEXITSTATUS(wait_for(child)) == 3 && shared == 5);
    child = clone(set_shared, stack + sizeof stack, SIGCHLD, (void *)6);
    CHECK(child > 0 && WEXITSTATUS(wait_for(child)) == 3 && shared == 5);
}

static int close_it(void *fd) { return close((int)(intptr_t)fd); }

static void descriptors_are_shared_if_asked(void) {
    int fd = dup(1);
    pid_t child = clone(close_it, stack + sizeof stack, CLONE_FILES | SIGCHLD, (void *)(intptr_t)fd);
    CHECK(wait_for(child) == 0 && fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    fd = dup(1);
    child = clone(close_it, stack + sizeof stack, SIGCHLD, (void *)(intptr_t)fd);
    CHECK(wait_for(child) == 0 && fcntl(fd, F_GETFD) == 0);
    close(fd);
}

static int go_to_tmp(void *unused) { return chdir("/tmp") + (int)(intptr_t)unused; }

static void the_folder_is_shared_if_asked(void) {
    char folder[64];
    CHECK(chdir("/") == 0);
    CHECK(wait_for(clone(go_to_tmp, stack + sizeof stack, SIGCHLD, NULL)) == 0);
    CHECK(getcwd(folder, sizeof folder) && strcmp(folder, "/") == 0);
    CHECK(wait_for(clone(go_to_tmp, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL)) == 0);
    CHECK(getcwd(folder, sizeof folder) && strcmp(folder, "/tmp") == 0);
    CHECK(chdir("/") == 0);
}

static void a_child_without_a_signal_is_waited_for_with_all(void) {
    pid_t child = clone(set_shared, stack + sizeof stack, CLONE_VM, (void *)1);
    int status;
    CHECK(waitpid(child, &status, 0) == -1 && errno == ECHILD);
    CHECK(waitpid(child, &status, __WALL) == child && WEXITSTATUS(status) == 3);
}

static void a_vforked_child_runs_first(void) {
    shared = 0;
    pid_t child = vfork();
    if (child == 0) {
        shared = 9;
        _exit(4);
    }
    CHECK(shared == 9 && WEXITSTATUS(wait_for(child)) == 4);
}

static void a_program_is_spawned(void) {
    extern char **environ;
    char *values[] = {"sh", "-c", "exit 21", NULL};
    pid_t child;
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, values, environ) == 0);
    CHECK(WEXITSTATUS(wait_for(child)) == 21);
    CHECK(posix_spawn(&child, "/no/such", NULL, NULL, values, environ) == ENOENT);
}

static void numbers_are_stored_where_asked(void) {
    pid_t parent_tid = 0;
    pid_t *child_tid =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct clone_args args = {
        .flags = CLONE_PARENT_SETTID | CLONE_CHILD_SETTID,
        .parent_tid = (uintptr_t)&parent_tid,
        .child_tid = (uintptr_t)child_tid,
        .exit_signal = SIGCHLD,
    };
    pid_t child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0) _exit(*child_tid != getpid());
    CHECK(child > 0 && parent_tid == child && wait_for(child) == 0 && *child_tid == child);
    munmap(child_tid, 4096);
}

static void contradictions_are_refused(void) {
    CHECK(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_clone, CLONE_THREAD | SIGCHLD, 0, 0, 0, 0) == -1 && errno == EINVAL);
    struct clone_args args = {.exit_signal = 65};
    CHECK(syscall(SYS_clone3, &args, sizeof args) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_clone3, &args, 8) == -1 && errno == EINVAL);
}

static void a_large_memory_is_forked_and_forked_again(void) {
    size_t len = 8 << 20;
    char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, len);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        if (child == 0) {
            pid_t grandchild = fork();
            memset(memory, 2, len);
            if (grandchild == 0) _exit(memory[len - 1] != 2);
            _exit(wait_for(grandchild) != 0);
        }
        memory[round * 4096] = 3;
        CHECK(wait_for(child) == 0 && memory[round * 4096] == 3 && memory[len - 1] == 1);
    }
    munmap(memory, len);
}

int main(void) {
    TEST(memory_is_shared_if_asked);
    TEST(descriptors_are_shared_if_asked);
    TEST(the_folder_is_shared_if_asked);
    TEST(a_child_without_a_signal_is_waited_for_with_all);
    TEST(a_vforked_child_runs_first);
    TEST(a_program_is_spawned);
    TEST(numbers_are_stored_where_asked);
    TEST(contradictions_are_refused);
    TEST(a_large_memory_is_forked_and_forked_again);
    return check_status();
}
