// Filters over system calls: who may bring one, what each verdict does, who inherits them.
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(verdict) BPF_STMT(BPF_RET | BPF_K, verdict)
#define IF_CALL(number, verdict) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(verdict)

static long install(unsigned flags, struct sock_filter *code, size_t count) {
    struct sock_fprog program = {count, code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
#define INSTALL(flags, ...) \
    install(flags, (struct sock_filter[]){__VA_ARGS__}, sizeof((struct sock_filter[]){__VA_ARGS__}) / 8)

/// What becomes of a child that runs `body`.
static int in_child(void (*body)(void)) {
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(99);
        body();
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}
static int exits(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
static int dies(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
#define NEED(condition) do { if (!(condition)) (printf("line %d errno %d\n", __LINE__, errno), fflush(stdout), _exit(98)); } while (0)

/// A number of /proc/thread-self/status.
static long status_of(const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/thread-self/status", "r");
    size_t len = strlen(name);
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, len) && line[len] == ':') value = atol(line + len + 1);
    if (file) fclose(file);
    return value;
}

static void fails_with_errno(void) {
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_ERRNO | EPROTO),
                  IF_CALL(SYS_getuid, SECCOMP_RET_ERRNO), IF_CALL(SYS_getgid, SECCOMP_RET_ERRNO | 0xffff),
                  RETURN(SECCOMP_RET_ALLOW)));
    NEED(syscall(SYS_getpid) == -1 && errno == EPROTO);
    NEED(syscall(SYS_getuid) == 0);
    NEED(syscall(SYS_getgid) == -1 && errno == 4095);
    NEED(getppid() > 0 && prctl(PR_GET_SECCOMP) == 2);
    NEED(status_of("Seccomp") == 2 && status_of("Seccomp_filters") == 1 && status_of("NoNewPrivs") == 1);
}
static void a_call_fails_with_the_number_that_a_filter_chose(void) {
    CHECK(prctl(PR_GET_SECCOMP) == 0 && status_of("Seccomp") == 0 && status_of("Seccomp_filters") == 0);
    CHECK(exits(in_child(fails_with_errno), 7));
}

static void looks_at_arguments(void) {
    NEED(!INSTALL(0, NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup, 0, 6),
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x89abcdef, 0, 4),
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 20), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x01234567, 0, 2),
                  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                  RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_ERRNO | ENOTTY)));
    NEED(syscall(SYS_dup, 0x0123456789abcdefL) == -1 && errno == ENOTTY);
    NEED(syscall(SYS_dup, 0x0123456689abcdefL) == -1 && errno == EBADF);
    NEED(syscall(SYS_dup, -1) == -1 && errno == EBADF);
}
static void arguments_are_seen_whole_and_in_the_order_of_the_machine(void) {
    CHECK(exits(in_child(looks_at_arguments), 7));
}

static volatile siginfo_t seen;
static volatile long seen_rax, seen_rip;
static void note(int signal, siginfo_t *info, void *context) {
    (void)signal;
    ucontext_t *at = context;
    seen = *info;
    seen_rax = at->uc_mcontext.gregs[REG_RAX];
    seen_rip = at->uc_mcontext.gregs[REG_RIP];
    at->uc_mcontext.gregs[REG_RAX] = 4711;
}
static void traps(void) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_TRAP | 77), RETURN(SECCOMP_RET_ALLOW)));
    NEED(syscall(SYS_getpid) == 4711);
    NEED(seen.si_signo == SIGSYS && seen.si_code == 1 && seen.si_errno == 77 && seen_rax == SYS_getpid);
    NEED(seen.si_syscall == SYS_getpid && seen.si_arch == AUDIT_ARCH_X86_64);
    NEED((long)seen.si_call_addr == seen_rip);
}
static void traps_blocked(void) {
    sigset_t set;
    sigfillset(&set);
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_TRAP), RETURN(SECCOMP_RET_ALLOW)));
    syscall(SYS_getpid);
}
static void a_trap_tells_the_handler_of_the_call_that_it_replaces(void) {
    CHECK(exits(in_child(traps), 7));
    CHECK(dies(in_child(traps_blocked), SIGSYS));
}

static void kills_process(void) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)));
    syscall(SYS_getpid);
}
static void kills_by_unknown(void) {
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, 0x12340000), RETURN(SECCOMP_RET_ALLOW)));
    syscall(SYS_getpid);
}
static void *calls_getpid(void *unused) { return syscall(SYS_getpid), unused; }
static void kills_one_thread(void) {
    pthread_t thread;
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_KILL_THREAD), RETURN(SECCOMP_RET_ALLOW)));
    NEED(!pthread_create(&thread, NULL, calls_getpid, NULL));
    // The word that a thread clears at its end is cleared for one that is killed, too.
    NEED(!pthread_join(thread, NULL));
}
static void kills_the_only_thread(void) {
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_KILL_THREAD), RETURN(SECCOMP_RET_ALLOW)));
    syscall(SYS_getpid);
}
static void kills_end_a_thread_or_the_process_as_by_sigsys(void) {
    CHECK(dies(in_child(kills_process), SIGSYS));
    CHECK(dies(in_child(kills_by_unknown), SIGSYS));
    CHECK(dies(in_child(kills_the_only_thread), SIGSYS));
    CHECK(exits(in_child(kills_one_thread), 7));
}

static void stacks(void) {
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_ERRNO | 1), IF_CALL(SYS_getuid, SECCOMP_RET_ERRNO | 1),
                  RETURN(SECCOMP_RET_ALLOW)));
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_ERRNO | 2), IF_CALL(SYS_getuid, SECCOMP_RET_ALLOW),
                  IF_CALL(SYS_getgid, SECCOMP_RET_TRACE), RETURN(SECCOMP_RET_ALLOW)));
    NEED(syscall(SYS_getpid) == -1 && errno == 2);
    NEED(syscall(SYS_getuid) == -1 && errno == 1);
    NEED(syscall(SYS_getgid) == -1 && errno == ENOSYS);
    NEED(status_of("Seccomp_filters") == 2);
    pid_t child = fork();
    if (child == 0) _exit(syscall(SYS_getpid) == -1 && errno == 2 ? 3 : 4);
    int status;
    NEED(waitpid(child, &status, 0) == child && exits(status, 3));
}
static void the_strictest_of_several_filters_holds_and_of_equals_the_newest(void) {
    CHECK(exits(in_child(stacks), 7));
}

static void runs_itself(void) {
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_ERRNO | 5), RETURN(SECCOMP_RET_ALLOW)));
    execl("/proc/self/exe", "self", "filtered", NULL);
}
static void filters_survive_exec(void) { CHECK(exits(in_child(runs_itself), 9)); }

static void strict_exits(void) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) _exit(1);
    char byte;
    syscall(SYS_read, -1, &byte, 1);
    syscall(SYS_write, -1, &byte, 1);
    syscall(SYS_exit, 8);
}
static void strict_calls(void) {
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)) _exit(1);
    syscall(SYS_getpid);
}
static void a_strict_thread_has_four_calls_left(void) {
    CHECK(exits(in_child(strict_exits), 8));
    CHECK(dies(in_child(strict_calls), SIGKILL));
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, &seen) == -1 && errno == EINVAL);
}

static void refusals(void) {
    struct sock_filter allow = RETURN(SECCOMP_RET_ALLOW);
    NEED(install(0, &allow, 0) == -1 && errno == EINVAL);
    NEED(install(0, &allow, 4097) == -1 && errno == EINVAL);
    NEED(install(0, NULL, 1) == -1 && errno == EINVAL);
    NEED(install(0, (struct sock_filter *)8, 1) == -1 && errno == EFAULT);
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
    NEED(install(1u << 30, &allow, 1) == -1 && errno == EINVAL);
    NEED(syscall(SYS_seccomp, 99, 0, NULL) == -1 && errno == EINVAL);
    NEED(prctl(PR_SET_SECCOMP, 99, NULL) == -1 && errno == EINVAL);
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
    // No return, a load of bytes, beyond the data, not aligned, an extension, a remainder.
    NEED(INSTALL(0, NUMBER) == -1 && errno == EINVAL);
    NEED(INSTALL(0, BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), allow) == -1 && errno == EINVAL);
    NEED(INSTALL(0, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), allow) == -1 && errno == EINVAL);
    NEED(INSTALL(0, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), allow) == -1 && errno == EINVAL);
    NEED(INSTALL(0, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, -0x1000), allow) == -1 && errno == EINVAL);
    NEED(INSTALL(0, BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 2), allow) == -1 && errno == EINVAL);
    NEED(prctl(PR_GET_SECCOMP) == 0);
    // The remains of an older way in.
    NEED(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){1, &allow}));
    NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == -1 && errno == EINVAL);
}
static void filters_that_are_none_are_refused(void) { CHECK(exits(in_child(refusals), 7)); }

static void a_program_without_rights_must_promise_to_gain_none(void) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        NEED(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000));
        NEED(INSTALL(0, RETURN(SECCOMP_RET_ALLOW)) == -1 && errno == EACCES);
        NEED(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == -1 && errno == EINVAL);
        NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0) == -1 && errno == EINVAL);
        NEED(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 && errno == EINVAL);
        NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
        NEED(!INSTALL(0, RETURN(SECCOMP_RET_ALLOW)));
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child && exits(status, 7));
}

static void what_is_available_is_told(void) {
    unsigned known[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO,
                        SECCOMP_RET_TRACE, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW};
    unsigned unknown = 0x12340000;
    struct seccomp_notif_sizes sizes;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(!syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &known[i]));
    CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &unknown) == -1 && errno == EOPNOTSUPP);
    CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, known) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, NULL) == -1 && errno == EFAULT);
    CHECK(!syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes));
    CHECK(sizes.seccomp_notif == 80 && sizes.seccomp_notif_resp == 24 && sizes.seccomp_data == 64);
}

static int go_on[2], answers[2];
static void *waits_then_calls(void *filtered) {
    char byte;
    if (filtered) NEED(!INSTALL(0, RETURN(SECCOMP_RET_ALLOW)));
    NEED(write(answers[1], "r", 1) == 1);
    NEED(read(go_on[0], &byte, 1) == 1);
    return (void *)(long)(syscall(SYS_getpid) == -1 && errno == 6);
}
static void synchronizes(void) {
    pthread_t thread;
    void *told;
    char byte;
    NEED(!pipe(go_on) && !pipe(answers));
    NEED(!pthread_create(&thread, NULL, waits_then_calls, NULL));
    NEED(read(answers[0], &byte, 1) == 1);
    NEED(!INSTALL(SECCOMP_FILTER_FLAG_TSYNC, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_ERRNO | 6),
                  RETURN(SECCOMP_RET_ALLOW)));
    NEED(write(go_on[1], "g", 1) == 1);
    NEED(!pthread_join(thread, &told) && told == (void *)1);
}
static void diverges(void) {
    pthread_t thread;
    void *told;
    char byte;
    NEED(!pipe(go_on) && !pipe(answers));
    NEED(!pthread_create(&thread, NULL, waits_then_calls, go_on));
    NEED(read(answers[0], &byte, 1) == 1);
    long other = INSTALL(SECCOMP_FILTER_FLAG_TSYNC, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_ERRNO | 6),
                         RETURN(SECCOMP_RET_ALLOW));
    NEED(other > 0 && other != getpid());
    NEED(INSTALL(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, RETURN(SECCOMP_RET_ALLOW)) == -1 &&
         errno == ESRCH);
    NEED(status_of("Seccomp") == 0);
    NEED(write(go_on[1], "g", 1) == 1);
    NEED(!pthread_join(thread, &told) && told == NULL);
}
static void all_threads_get_a_filter_at_once_or_none_does(void) {
    CHECK(exits(in_child(synchronizes), 7));
    CHECK(exits(in_child(diverges), 7));
}

static void fills(void) {
    static struct sock_filter code[4096];
    for (int i = 0; i < 4096; i++) code[i] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    int large = 0, small = 0;
    while (!install(0, code, 4096)) large++;
    // Linux counts the instructions that it makes of these.
    NEED(errno == ENOMEM && large >= 3 && large <= 7);
    while (!install(0, code, 1)) small++;
    NEED(errno == ENOMEM && small > 100 && small < 4096);
    pid_t child = fork();
    if (child == 0) _exit(install(0, code, 1) == -1 && errno == ENOMEM ? 3 : 4);
    int status;
    NEED(waitpid(child, &status, 0) == child && exits(status, 3));
}
static void the_filters_of_a_thread_are_bounded(void) { CHECK(exits(in_child(fills), 7)); }

static void traced_calls(void) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    NEED(!INSTALL(0, NUMBER, IF_CALL(SYS_getpid, SECCOMP_RET_TRACE | 0x123), IF_CALL(SYS_getuid, SECCOMP_RET_ERRNO | 3),
                  RETURN(SECCOMP_RET_ALLOW)));
    NEED(syscall(SYS_getpid) == 55);
    NEED(syscall(SYS_getpid) == -1 && errno == 3);
    NEED(syscall(SYS_getpid) == getppid());
}
static void a_tracer_decides_over_a_call(void) {
    struct __ptrace_syscall_info info;
    struct { unsigned long words[27]; } regs;
    unsigned long message;
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(99);
        traced_calls();
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    CHECK(!ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL));
    for (int turn = 0; turn < 3; turn++) {
        CHECK(!ptrace(PTRACE_CONT, child, 0, 0));
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8));
        CHECK(!ptrace(PTRACE_GETEVENTMSG, child, 0, &message) && message == 0x123);
        CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) >= 84);
        CHECK(info.op == PTRACE_SYSCALL_INFO_SECCOMP && info.seccomp.nr == SYS_getpid);
        CHECK(info.seccomp.ret_data == 0x123);
        CHECK(!ptrace(PTRACE_GETREGS, child, 0, &regs));
        // Skipped with an answer; another call, which is judged too; another that runs.
        if (turn == 0) regs.words[15] = -1, regs.words[10] = 55;
        if (turn == 1) regs.words[15] = SYS_getuid;
        if (turn == 2) regs.words[15] = SYS_getppid;
        CHECK(!ptrace(PTRACE_SETREGS, child, 0, &regs));
    }
    CHECK(!ptrace(PTRACE_CONT, child, 0, 0));
    CHECK(waitpid(child, &status, 0) == child && exits(status, 7));
}

int main(int count, char **arguments) {
    if (count == 2 && !strcmp(arguments[1], "filtered")) return syscall(SYS_getpid) == -1 && errno == 5 ? 9 : 1;
    TEST(a_call_fails_with_the_number_that_a_filter_chose);
    TEST(arguments_are_seen_whole_and_in_the_order_of_the_machine);
    TEST(a_trap_tells_the_handler_of_the_call_that_it_replaces);
    TEST(kills_end_a_thread_or_the_process_as_by_sigsys);
    TEST(the_strictest_of_several_filters_holds_and_of_equals_the_newest);
    TEST(filters_survive_exec);
    TEST(a_strict_thread_has_four_calls_left);
    TEST(filters_that_are_none_are_refused);
    TEST(a_program_without_rights_must_promise_to_gain_none);
    TEST(what_is_available_is_told);
    TEST(all_threads_get_a_filter_at_once_or_none_does);
    TEST(the_filters_of_a_thread_are_bounded);
    TEST(a_tracer_decides_over_a_call);
    return check_status();
}
