// Processes: fork, execve, wait, exit status, pipes between them.
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int status_of(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void a_child_exits_with_its_status(void) {
    pid_t child = fork();
    if (child == 0) _exit(42);
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void a_killed_child_shows_its_signal(void) {
    pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    CHECK(kill(child, SIGKILL) == 0);
    int status = status_of(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void private_memory_is_copied_on_write(void) {
    volatile int value = 1;
    pid_t child = fork();
    if (child == 0) {
        value = 2;
        _exit(value);
    }
    CHECK(WEXITSTATUS(status_of(child)) == 2);
    CHECK(value == 1);
}

static void shared_memory_survives_fork(void) {
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        *shared = 7;
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(*shared == 7);
}

static void a_pipe_carries_bytes_between_processes(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) _exit(write(ends[1], "hello", 5) != 5);
    close(ends[1]);
    char text[8] = {0};
    CHECK(read(ends[0], text, sizeof text) == 5);
    CHECK(strcmp(text, "hello") == 0);
    CHECK(read(ends[0], text, sizeof text) == 0);
    CHECK(status_of(child) == 0);
    close(ends[0]);
}

static void a_program_can_execute_itself(void) {
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "process", "again", (char *)0);
        _exit(1);
    }
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 23);
}

static void a_thousand_children_come_and_go(void) {
    for (int i = 0; i < 1000; i++) {
        pid_t child = fork();
        if (child == 0) _exit(i & 0x7f);
        CHECK(child > 0);
        CHECK(WEXITSTATUS(status_of(child)) == (i & 0x7f));
    }
}

int main(int argc, char **argv) {
    if (argc > 1) return 23;
    TEST(a_child_exits_with_its_status);
    TEST(a_killed_child_shows_its_signal);
    TEST(private_memory_is_copied_on_write);
    TEST(shared_memory_survives_fork);
    TEST(a_pipe_carries_bytes_between_processes);
    TEST(a_program_can_execute_itself);
    TEST(a_thousand_children_come_and_go);
    return check_status();
}
