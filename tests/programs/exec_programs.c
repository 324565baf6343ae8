// execve: arguments, scripts, descriptors, threads, what is refused, and what a new
// program finds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char *self[] = {"self", NULL, NULL};
static char *environment[] = {"ONE=1", "EMPTY=", NULL};

// Runs this program again; `what` says what it is to look at.
static int again(char *what) {
    pid_t child = fork();
    if (child == 0) {
        self[1] = what;
        execve("/proc/self/exe", self, environment);
        _exit(99);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static int look(char **argv) {
    extern char **environ;
    if (strcmp(argv[1], "environment") == 0) {
        return !(strcmp(environ[0], "ONE=1") == 0 && strcmp(environ[1], "EMPTY=") == 0 &&
                 environ[2] == NULL && strcmp(argv[0], "self") == 0 && argv[2] == NULL);
    }
    if (strcmp(argv[1], "vector") == 0) {
        unsigned char *random = (unsigned char *)getauxval(AT_RANDOM);
        int differs = 0;
        for (int i = 1; i < 16; i++) differs |= random[i] != random[0];
        if (getauxval(AT_PAGESZ) != 4096 || !differs) return 1;
        if (strcmp((char *)getauxval(AT_PLATFORM), "x86_64") != 0) return 2;
        if (getauxval(AT_SYSINFO_EHDR) == 0 || getauxval(AT_PHNUM) == 0) return 3;
        if (getauxval(AT_CLKTCK) != 100 || getauxval(AT_SECURE) != 0) return 4;
        if (memcmp((void *)getauxval(AT_SYSINFO_EHDR), "\177ELF", 4) != 0) return 5;
        return 0;
    }
    if (strcmp(argv[1], "descriptors") == 0) {
        return !(fcntl(200, F_GETFD) == 0 && fcntl(201, F_GETFD) == -1);
    }
    if (strcmp(argv[1], "signals") == 0) {
        struct sigaction one, two;
        sigset_t mask;
        sigaction(SIGUSR1, NULL, &one);
        sigaction(SIGUSR2, NULL, &two);
        sigprocmask(SIG_BLOCK, NULL, &mask);
        return !(one.sa_handler == SIG_DFL && two.sa_handler == SIG_IGN &&
                 sigismember(&mask, SIGHUP) && !sigismember(&mask, SIGINT));
    }
    if (strcmp(argv[1], "leader") == 0) return !(getpid() == gettid());
    return 98;
}

static void arguments_and_environment_arrive(void) { CHECK(again("environment") == 0); }

static void the_auxiliary_vector_is_complete(void) { CHECK(again("vector") == 0); }

static void descriptors_are_closed_as_asked(void) {
    CHECK(dup2(1, 200) == 200 && dup3(1, 201, O_CLOEXEC) == 201);
    CHECK(again("descriptors") == 0);
    close(200);
    close(201);
}

static void on_signal(int signal) { (void)signal; }

static void handlers_go_and_masks_stay(void) {
    sigset_t hup;
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, SIG_IGN);
    sigprocmask(SIG_BLOCK, &hup, NULL);
    CHECK(again("signals") == 0);
    sigprocmask(SIG_UNBLOCK, &hup, NULL);
}

static void *exec_in_thread(void *unused) {
    (void)unused;
    self[1] = "leader";
    execve("/proc/self/exe", self, environment);
    _exit(97);
}

static void *sleep_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

static void a_thread_can_replace_the_program(void) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, sleep_for_ever, NULL);
        pthread_create(&thread, NULL, exec_in_thread, NULL);
        sleep_for_ever(NULL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void make_file(const char *path, const char *text, int mode) {
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0700);
    ssize_t written = write(fd, text, strlen(text));
    (void)written;
    close(fd);
    chmod(path, mode);
}

static int run_script(const char *path, char *argument) {
    pid_t child = fork();
    if (child == 0) {
        char *values[] = {"script", argument, NULL};
        execve(path, values, environment);
        _exit(errno == ENOEXEC ? 90 : errno == ELOOP ? 91 : errno == EACCES ? 92 : 93);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static void scripts_run_with_their_interpreter(void) {
    make_file("/tmp/exec.sh", "#! /bin/sh -e\ntest \"$1\" = word && exit 5\nexit 6\n", 0755);
    CHECK(run_script("/tmp/exec.sh", "word") == 5);
    CHECK(run_script("/tmp/exec.sh", "other") != 5);
    make_file("/tmp/exec.sh", "no program\n", 0755);
    CHECK(run_script("/tmp/exec.sh", "word") == 90);
    make_file("/tmp/exec.sh", "#!/tmp/exec.sh\n", 0755);
    CHECK(run_script("/tmp/exec.sh", "word") == 91);
    make_file("/tmp/exec.sh", "#!/bin/sh\n", 0644);
    CHECK(run_script("/tmp/exec.sh", "word") == 92);
    unlink("/tmp/exec.sh");
}

static void what_cannot_run_is_refused(void) {
    char *values[] = {"x", NULL};
    CHECK(execve("/no/such/program", values, environment) == -1 && errno == ENOENT);
    CHECK(execve("/tmp", values, environment) == -1 && errno == EACCES);
    size_t len = 1 << 20;
    char *huge = malloc(len);
    memset(huge, 'a', len - 1);
    huge[len - 1] = 0;
    char *long_values[] = {"x", huge, NULL};
    CHECK(execve("/proc/self/exe", long_values, environment) == -1 && errno == E2BIG);
    free(huge);
    char **volatile nowhere = (char **)8;
    CHECK(execve("/proc/self/exe", nowhere, environment) == -1 && errno == EFAULT);
}

static void a_program_is_run_by_its_descriptor(void) {
    pid_t child = fork();
    if (child == 0) {
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        self[1] = "environment";
        fexecve(fd, self, environment);
        _exit(99);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv) {
    if (argc > 1) return look(argv);
    TEST(arguments_and_environment_arrive);
    TEST(the_auxiliary_vector_is_complete);
    TEST(descriptors_are_closed_as_asked);
    TEST(handlers_go_and_masks_stay);
    TEST(a_thread_can_replace_the_program);
    TEST(scripts_run_with_their_interpreter);
    TEST(what_cannot_run_is_refused);
    TEST(a_program_is_run_by_its_descriptor);
    return check_status();
}
