// build: static
// Runs programs one after the other: sequence PROGRAM...
//
// Each program reports its tests as lines `ok NAME` or `not ok NAME: why`. What a
// program cannot report itself, a signal or a status, becomes such a line here. A
// program that takes too long is killed. A line `took` says how long each was, and what
// of that it had a CPU.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS_MAX = 150 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// What the programs that have ended used of the CPUs.
static double used(void) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void run(char *program) {
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    printf("# %s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS_MAX);
        execl(program, program, (char *)0);
        perror(program);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        printf("not ok %s: it cannot be started or waited for\n", name);
    else if (WIFSIGNALED(status))
        printf("not ok %s: killed by signal %d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) > 1)
        printf("not ok %s: exit status %d\n", name, WEXITSTATUS(status));
    fflush(stdout);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        double began = now(), before = used();
        run(argv[i]);
        printf("took %.1f s, %.1f s of CPU\n", now() - began, used() - before);
    }
    puts("# end of sequence");
    return 0;
}
