// Memory policies and pages' nodes, on a machine of one node.
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, DEFAULT = 0, PREFERRED, BIND, INTERLEAVE, LOCAL, MANY };
enum { STATIC = 1 << 15, RELATIVE = 1 << 14, BALANCING = 1 << 13 };
enum { NODE = 1, ADDRESS = 2 };
enum { STRICT = 1, MOVE = 2, MOVE_ALL = 4 };
#define BITS 65UL

static unsigned long first = 1, second = 2, none;

static long set(int mode, const unsigned long *mask) { return syscall(SYS_set_mempolicy, mode, mask, BITS); }

static int is_set(int mode, unsigned long nodes) {
    int now = -1;
    unsigned long mask = 99;
    return syscall(SYS_get_mempolicy, &now, &mask, BITS, NULL, 0) == 0 && now == mode && mask == nodes;
}

static long bind_to(void *at, unsigned long bytes, int mode, const unsigned long *mask, int flags) {
    return syscall(SYS_mbind, at, bytes, mode, mask, BITS, flags);
}

static char *pages(int count) {
    return mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void every_policy_over_the_only_node_can_be_set(void) {
    static const int MODES[] = {PREFERRED, BIND, INTERLEAVE, MANY, BIND | STATIC, INTERLEAVE | RELATIVE};
    for (int i = 0; i < 6; i++) CHECK(set(MODES[i], &first) == 0 && is_set(MODES[i], 1));
    CHECK(set(LOCAL, NULL) == 0 && is_set(LOCAL, 0));
    CHECK(set(PREFERRED, &none) == 0 && is_set(LOCAL, 0));
    CHECK(set(DEFAULT, NULL) == 0 && is_set(DEFAULT, 0));
}

static void what_names_no_node_is_refused(void) {
    static const int MODES[] = {PREFERRED, BIND, INTERLEAVE, MANY};
    for (int i = 0; i < 4; i++) CHECK(set(MODES[i], &second) == -1 && errno == EINVAL);
    for (int i = 1; i < 4; i++) CHECK(set(MODES[i], NULL) == -1 && errno == EINVAL);
    CHECK(set(DEFAULT, &first) == -1 && errno == EINVAL);
    CHECK(set(LOCAL, &first) == -1 && errno == EINVAL);
    CHECK(set(BIND | STATIC | RELATIVE, &first) == -1 && errno == EINVAL);
    CHECK(set(INTERLEAVE | BALANCING, &first) == -1 && errno == EINVAL);
    CHECK(set(PREFERRED | STATIC, NULL) == -1 && errno == EINVAL);
    CHECK(set(50, &first) == -1 && errno == EINVAL);
    CHECK(set(BIND, (void *)8) == -1 && errno == EFAULT);
    CHECK(is_set(DEFAULT, 0));
}

static void a_child_inherits_the_policy(void) {
    CHECK(set(INTERLEAVE, &first) == 0);
    pid_t child = fork();
    if (child == 0) {
        int next = -1;
        _exit(is_set(INTERLEAVE, 1) && syscall(SYS_get_mempolicy, &next, NULL, 0, NULL, NODE) == 0 && next == 0 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(set(DEFAULT, NULL) == 0);
    int next;
    CHECK(syscall(SYS_get_mempolicy, &next, NULL, 0, NULL, NODE) == -1 && errno == EINVAL);
}

static void memory_can_be_bound_to_the_only_node(void) {
    char *at = pages(4);
    at[0] = 1;
    CHECK(bind_to(at, 4 * PAGE, BIND, &first, 0) == 0);
    CHECK(bind_to(at, 4 * PAGE, INTERLEAVE, &first, STRICT | MOVE) == 0);
    CHECK(bind_to(at, 1, DEFAULT, NULL, 0) == 0 && bind_to(at, 0, DEFAULT, NULL, 0) == 0);
    CHECK(bind_to(at + 1, PAGE, BIND, &first, 0) == -1 && errno == EINVAL);
    CHECK(bind_to(at, PAGE, BIND, &first, 1 << 6) == -1 && errno == EINVAL);
    CHECK(bind_to(at, PAGE, BIND, &second, 0) == -1 && errno == EINVAL);
    CHECK(bind_to(at, PAGE, BIND, NULL, 0) == -1 && errno == EINVAL);
    CHECK(bind_to(at, -(unsigned long)at, BIND, &first, 0) == -1);
    munmap(at + PAGE, PAGE);
    CHECK(bind_to(at, 4 * PAGE, BIND, &first, 0) == -1 && errno == EFAULT);
    munmap(at, 4 * PAGE);
}

static void only_the_privileged_move_what_others_share(void) {
    pid_t child = fork();
    if (child == 0) {
        char *at = pages(1);
        if (getuid() == 0 && bind_to(at, PAGE, BIND, &first, MOVE_ALL) != 0) _exit(1);
        if (setuid(12345) != 0 && getuid() == 0) _exit(2);
        if (bind_to(at, PAGE, BIND, &first, MOVE_ALL) != -1 || errno != EPERM) _exit(3);
        if (syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, MOVE_ALL) != -1 || errno != EPERM) _exit(4);
        if (syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, MOVE) != -1 || errno != EPERM) _exit(5);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void each_page_tells_its_node(void) {
    char *at = pages(3);
    at[0] = at[2 * PAGE] = 1;
    void *all[] = {at, at + PAGE, at + 2 * PAGE + 5, NULL};
    int status[4] = {99, 99, 99, 99}, nodes[4] = {0, 0, 0, 0};
    CHECK(syscall(SYS_move_pages, 0, 4, all, NULL, status, 0) == 0);
    CHECK(status[0] == 0 && status[1] == -ENOENT && status[2] == 0 && status[3] == -EFAULT);
    memset(status, 99, sizeof status);
    CHECK(syscall(SYS_move_pages, getpid(), 4, all, nodes, status, MOVE) == 0);
    CHECK(status[0] == 0 && status[1] == -ENOENT && status[2] == 0 && status[3] == -EFAULT);
    munmap(at, 3 * PAGE);
}

static void moves_are_checked(void) {
    char *at = pages(1);
    at[0] = 1;
    void *all[] = {at};
    int status = 99, node = 1;
    CHECK(syscall(SYS_move_pages, 0, 1, all, &node, &status, MOVE) == -1 && errno == ENODEV);
    node = -1;
    CHECK(syscall(SYS_move_pages, 0, 1, all, &node, &status, MOVE) == -1 && errno == ENODEV);
    CHECK(syscall(SYS_move_pages, 0, 1, all, NULL, &status, STRICT) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_move_pages, 0, 1, 8, NULL, &status, 0) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_move_pages, 0, 1, all, NULL, 8, 0) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_move_pages, 99999999, 1, all, NULL, &status, 0) == -1 && errno == ESRCH);
    CHECK(syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0) == 0);
    munmap(at, PAGE);
}

static void processes_stay_on_the_only_node(void) {
    CHECK(syscall(SYS_migrate_pages, 0, BITS, &first, &first) == 0);
    CHECK(syscall(SYS_migrate_pages, getpid(), BITS, &second, &first) == 0);
    CHECK(syscall(SYS_migrate_pages, 0, BITS, &first, &none) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_migrate_pages, 99999999, BITS, &first, &first) == -1 && errno == ESRCH);
    CHECK(syscall(SYS_migrate_pages, 0, BITS, 8, &first) == -1 && errno == EFAULT);
}

int main(void) {
    TEST(every_policy_over_the_only_node_can_be_set);
    TEST(what_names_no_node_is_refused);
    TEST(a_child_inherits_the_policy);
    TEST(memory_can_be_bound_to_the_only_node);
    TEST(only_the_privileged_move_what_others_share);
    TEST(each_page_tells_its_node);
    TEST(moves_are_checked);
    TEST(processes_stay_on_the_only_node);
    return check_status();
}
