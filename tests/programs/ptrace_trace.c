// A tracer and its tracees: stops at signals, calls and events, registers and memory.
#include "check.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/// Stops are told by waitpid: the signal, and the event above it.
static int stopped_by(int status, int code) { return (status & 0xff) == 0x7f && status >> 8 == code; }

static int wait_for(pid_t child) {
    int status = -1;
    CHECK(waitpid(child, &status, __WALL) == child);
    return status;
}

/// A child that runs `body` under our eyes, stopped before it.
static pid_t traced(void (*body)(void), long options) {
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(100);
        raise(SIGSTOP);
        body();
        _exit(7);
    }
    CHECK(stopped_by(wait_for(child), SIGSTOP));
    CHECK(!ptrace(PTRACE_SETOPTIONS, child, 0, options | PTRACE_O_EXITKILL));
    return child;
}

static void go(pid_t child, int how, long signal) { CHECK(!ptrace(how, child, 0, signal)); }

static void expect_exit(pid_t child, int code) {
    int status = wait_for(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

static volatile long cell = 41;
static volatile int handled;
static void handler(int signal) { handled = signal; }
static void nothing(void) {}

static void a_traced_child_stops_and_goes_on(void) {
    pid_t child = traced(nothing, 0);
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 7);
    CHECK(waitpid(child, NULL, __WALL) < 0 && errno == ECHILD);
}

static void raises_usr1(void) {
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    _exit(handled);
}

static void signals_are_seen_changed_and_taken_away(void) {
    pid_t child = traced(raises_usr1, 0);
    siginfo_t info;
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGUSR1));
    CHECK(!ptrace(PTRACE_GETSIGINFO, child, 0, &info) && info.si_signo == SIGUSR1 && info.si_pid == child);
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 0);
    child = traced(raises_usr1, 0);
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGUSR1));
    go(child, PTRACE_CONT, SIGUSR1);
    expect_exit(child, SIGUSR1);
    child = traced(raises_usr1, 0);
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGUSR1));
    go(child, PTRACE_CONT, SIGTERM);
    int status = wait_for(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void raises_ignored(void) {
    signal(SIGUSR2, SIG_IGN);
    raise(SIGUSR2);
}

static void ignored_signals_are_seen_too(void) {
    pid_t child = traced(raises_ignored, 0);
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGUSR2));
    go(child, PTRACE_CONT, SIGUSR2);
    expect_exit(child, 7);
}

static void exits_with_cell(void) { _exit(cell); }

static void memory_is_read_and_written(void) {
    pid_t child = traced(exits_with_cell, 0);
    errno = 0;
    CHECK(ptrace(PTRACE_PEEKDATA, child, &cell, 0) == 41 && errno == 0);
    CHECK(!ptrace(PTRACE_POKEDATA, child, &cell, 42L));
    CHECK(cell == 41);
    CHECK(ptrace(PTRACE_PEEKDATA, child, 8, 0) == -1 && errno == EIO);
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 42);
}

static __attribute__((noinline)) int answer(void) { return 3; }
static void exits_with_answer(void) { _exit(answer()); }

static void a_breakpoint_stops_the_child_and_not_its_parent(void) {
    pid_t child = traced(exits_with_answer, 0);
    struct user_regs_struct regs;
    errno = 0;
    long code = ptrace(PTRACE_PEEKTEXT, child, answer, 0);
    CHECK(errno == 0 && !ptrace(PTRACE_POKETEXT, child, answer, (code & ~0xffL) | 0xcc));
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGTRAP));
    CHECK(!ptrace(PTRACE_GETREGS, child, 0, &regs) && regs.rip == (unsigned long)answer + 1);
    CHECK(answer() == 3);
    CHECK(!ptrace(PTRACE_POKETEXT, child, answer, code));
    regs.rip--;
    CHECK(!ptrace(PTRACE_SETREGS, child, 0, &regs));
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 3);
}

static void steps_show_each_instruction(void) {
    pid_t child = traced(exits_with_answer, 0);
    unsigned long before = 0, now;
    for (int step = 0; step < 200; step++) {
        go(child, PTRACE_SINGLESTEP, 0);
        CHECK(stopped_by(wait_for(child), SIGTRAP));
        errno = 0;
        now = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), 0);
        CHECK(errno == 0 && now != before);
        before = now;
    }
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 3);
}

static void asks_for_its_parent(void) { _exit(syscall(SYS_getppid) == 1234 && syscall(SYS_getuid) == 99); }

/// To the next stop at a call; what it is about.
static struct user_regs_struct next_call(pid_t child) {
    struct user_regs_struct regs;
    go(child, PTRACE_SYSCALL, 0);
    CHECK(stopped_by(wait_for(child), SIGTRAP | 0x80));
    CHECK(!ptrace(PTRACE_GETREGS, child, 0, &regs));
    return regs;
}

static void calls_are_seen_changed_and_skipped(void) {
    pid_t child = traced(asks_for_its_parent, PTRACE_O_TRACESYSGOOD);
    struct user_regs_struct regs = next_call(child);
    // The rest of raise().
    while (regs.orig_rax != SYS_getppid) regs = next_call(child);
    CHECK((long)regs.rax == -ENOSYS);
    regs = next_call(child);
    CHECK(regs.rax == (unsigned long)getpid());
    regs.rax = 1234;
    CHECK(!ptrace(PTRACE_SETREGS, child, 0, &regs));
    regs = next_call(child);
    CHECK(regs.orig_rax == SYS_getuid);
    regs.orig_rax = -1, regs.rax = 99;
    CHECK(!ptrace(PTRACE_SETREGS, child, 0, &regs));
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 1);
}

static void calls_tell_their_number_and_answer(void) {
    pid_t child = traced(asks_for_its_parent, PTRACE_O_TRACESYSGOOD);
    struct __ptrace_syscall_info info;
    CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) == 24 && info.op == 0);
    do {
        next_call(child);
        CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 24);
    } while (info.op != 1 || info.entry.nr != SYS_getppid);
    next_call(child);
    CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) == 33);
    CHECK(info.op == 2 && !info.exit.is_error && info.exit.rval == getpid());
    kill(child, SIGKILL);
    int status = wait_for(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void forks(void) {
    pid_t child = fork();
    if (child == 0) _exit(5);
    int status;
    waitpid(child, &status, 0);
    _exit(WEXITSTATUS(status));
}

static void children_are_traced_with_their_parent(void) {
    pid_t parent = traced(forks, PTRACE_O_TRACEFORK | PTRACE_O_TRACEEXIT);
    unsigned long message, status_told;
    go(parent, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(parent), SIGTRAP | PTRACE_EVENT_FORK << 8));
    CHECK(!ptrace(PTRACE_GETEVENTMSG, parent, 0, &message));
    CHECK(stopped_by(wait_for(message), SIGSTOP));
    go(message, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(message), SIGTRAP | PTRACE_EVENT_EXIT << 8));
    CHECK(!ptrace(PTRACE_GETEVENTMSG, message, 0, &status_told) && status_told == 5 << 8);
    go(parent, PTRACE_CONT, 0);
    go(message, PTRACE_CONT, 0);
    expect_exit(message, 5);
    CHECK(stopped_by(wait_for(parent), SIGCHLD));
    go(parent, PTRACE_CONT, SIGCHLD);
    CHECK(stopped_by(wait_for(parent), SIGTRAP | PTRACE_EVENT_EXIT << 8));
    go(parent, PTRACE_CONT, 0);
    expect_exit(parent, 5);
}

static void *ends(void *unused) { return unused; }
static void makes_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, ends, NULL);
    pthread_join(thread, NULL);
}

static void threads_are_traced_and_their_end_is_told(void) {
    pid_t child = traced(makes_a_thread, PTRACE_O_TRACECLONE);
    unsigned long thread;
    int status;
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGTRAP | PTRACE_EVENT_CLONE << 8));
    CHECK(!ptrace(PTRACE_GETEVENTMSG, child, 0, &thread) && (pid_t)thread != child);
    CHECK(stopped_by(wait_for(thread), SIGSTOP));
    go(child, PTRACE_CONT, 0);
    go(thread, PTRACE_CONT, 0);
    status = wait_for(thread);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_exit(child, 7);
}

static void runs_itself(void) { execl("/proc/self/exe", "self", "quick", NULL); }

static void a_new_program_is_told(void) {
    pid_t child = traced(runs_itself, PTRACE_O_TRACEEXEC);
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGTRAP | PTRACE_EVENT_EXEC << 8));
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 9);
    child = traced(runs_itself, 0);
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGTRAP));
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 9);
}

static void sleeps(void) { for (;;) pause(); }

static pid_t sleeper(void) {
    pid_t child = fork();
    if (child == 0) sleeps();
    return child;
}

static void a_running_process_is_attached_and_let_go(void) {
    pid_t child = sleeper();
    int status;
    CHECK(!ptrace(PTRACE_ATTACH, child, 0, 0));
    CHECK(stopped_by(wait_for(child), SIGSTOP));
    CHECK(ptrace(PTRACE_ATTACH, child, 0, 0) < 0 && errno == EPERM);
    CHECK(!ptrace(PTRACE_DETACH, child, 0, 0));
    CHECK(waitpid(child, &status, WNOHANG | WUNTRACED) == 0);
    CHECK(ptrace(PTRACE_CONT, child, 0, 0) < 0 && errno == ESRCH);
    CHECK(!ptrace(PTRACE_ATTACH, child, 0, 0));
    CHECK(stopped_by(wait_for(child), SIGSTOP));
    CHECK(!ptrace(PTRACE_DETACH, child, 0, SIGTERM));
    status = wait_for(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void a_seized_process_is_interrupted_and_listens(void) {
    pid_t child = sleeper();
    CHECK(!ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_EXITKILL));
    CHECK(!ptrace(PTRACE_INTERRUPT, child, 0, 0));
    CHECK(stopped_by(wait_for(child), SIGTRAP | PTRACE_EVENT_STOP << 8));
    go(child, PTRACE_CONT, 0);
    kill(child, SIGSTOP);
    CHECK(stopped_by(wait_for(child), SIGSTOP));
    go(child, PTRACE_CONT, SIGSTOP);
    CHECK(stopped_by(wait_for(child), SIGSTOP | PTRACE_EVENT_STOP << 8));
    CHECK(!ptrace(PTRACE_LISTEN, child, 0, 0));
    kill(child, SIGCONT);
    CHECK(stopped_by(wait_for(child), SIGTRAP | PTRACE_EVENT_STOP << 8));
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGCONT));
    kill(child, SIGKILL);
    CHECK(WIFSIGNALED(wait_for(child)));
}

static void loads_vectors(void) {
    double value = 2.5;
    __asm__ volatile("movsd %0, %%xmm5\n int3\n movsd %%xmm5, %0" : "+m"(value) : : "xmm5");
    _exit(value == 4.0);
}

static void vector_registers_are_read_and_written(void) {
    pid_t child = traced(loads_vectors, 0);
    struct user_fpregs_struct vectors;
    static unsigned char all[16384], again[16384];
    struct iovec piece = {all, sizeof all};
    double value;
    go(child, PTRACE_CONT, 0);
    CHECK(stopped_by(wait_for(child), SIGTRAP));
    CHECK(!ptrace(PTRACE_GETFPREGS, child, 0, &vectors));
    memcpy(&value, &vectors.xmm_space[20], sizeof value);
    CHECK(value == 2.5);
    CHECK(!ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &piece) && piece.iov_len >= 512);
    CHECK(!memcmp(all + 160 + 80, &value, sizeof value));
    value = 4.0;
    memcpy(all + 160 + 80, &value, sizeof value);
    CHECK(!ptrace(PTRACE_SETREGSET, child, NT_X86_XSTATE, &piece));
    struct iovec second = {again, sizeof again};
    CHECK(!ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &second) && second.iov_len == piece.iov_len);
    CHECK(!memcmp(again + 160 + 80, &value, sizeof value));
    all[24 + 3] = 0xff;
    CHECK(ptrace(PTRACE_SETREGSET, child, NT_X86_XSTATE, &piece) < 0 && errno == EINVAL);
    go(child, PTRACE_CONT, 0);
    expect_exit(child, 1);
}

static void a_tracer_that_ends_lets_go_or_kills(void) {
    for (long options = 0; options <= PTRACE_O_EXITKILL; options += PTRACE_O_EXITKILL) {
        pid_t child = sleeper(), tracer = fork();
        int status;
        if (tracer == 0) {
            if (ptrace(PTRACE_SEIZE, child, 0, options)) _exit(1);
            _exit(0);
        }
        expect_exit(tracer, 0);
        if (options == 0) {
            CHECK(waitpid(child, &status, WNOHANG) == 0);
            kill(child, SIGTERM);
        }
        status = wait_for(child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == (options ? SIGKILL : SIGTERM));
    }
}

static void processes_of_others_are_not_traced(void) {
    pid_t child = sleeper(), tracer = fork();
    if (tracer == 0) {
        if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) _exit(1);
        _exit(ptrace(PTRACE_ATTACH, child, 0, 0) < 0 && errno == EPERM ? 0 : 2);
    }
    expect_exit(tracer, 0);
    CHECK(ptrace(PTRACE_ATTACH, getpid(), 0, 0) < 0 && errno == EPERM);
    CHECK(ptrace(PTRACE_PEEKDATA, child, &cell, 0) < 0 && errno == ESRCH);
    kill(child, SIGKILL);
    wait_for(child);
}

static void interrupted_calls_go_on(void) {
    int ends_of_pipe[2];
    CHECK(!pipe(ends_of_pipe));
    pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        _exit(read(ends_of_pipe[0], &byte, 1) == 1 ? byte : 1);
    }
    usleep(50000);
    for (int i = 0; i < 5; i++) {
        CHECK(!ptrace(PTRACE_ATTACH, child, 0, 0));
        CHECK(stopped_by(wait_for(child), SIGSTOP));
        CHECK(!ptrace(PTRACE_DETACH, child, 0, 0));
    }
    CHECK(write(ends_of_pipe[1], "A", 1) == 1);
    expect_exit(child, 'A');
    close(ends_of_pipe[0]), close(ends_of_pipe[1]);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "quick")) return 9;
    TEST(a_traced_child_stops_and_goes_on);
    TEST(signals_are_seen_changed_and_taken_away);
    TEST(ignored_signals_are_seen_too);
    TEST(memory_is_read_and_written);
    TEST(a_breakpoint_stops_the_child_and_not_its_parent);
    TEST(steps_show_each_instruction);
    TEST(calls_are_seen_changed_and_skipped);
    TEST(calls_tell_their_number_and_answer);
    TEST(children_are_traced_with_their_parent);
    TEST(threads_are_traced_and_their_end_is_told);
    TEST(a_new_program_is_told);
    TEST(a_running_process_is_attached_and_let_go);
    TEST(a_seized_process_is_interrupted_and_listens);
    TEST(vector_registers_are_read_and_written);
    TEST(a_tracer_that_ends_lets_go_or_kills);
    TEST(processes_of_others_are_not_traced);
    TEST(interrupted_calls_go_on);
    return check_status();
}
