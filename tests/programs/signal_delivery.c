// Signals: handlers and what they see, masks, queues, stacks, interrupted calls.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t count, last_signal, last_code, last_value, order[64];
static void *volatile last_address;
static volatile pid_t last_pid;

static void note(int signal, siginfo_t *info, void *context) {
    (void)context;
    if (count < 64) order[count] = signal;
    count++;
    last_signal = signal;
    last_code = info->si_code;
    last_address = info->si_addr;
    last_pid = info->si_pid;
    last_value = info->si_value.sival_int;
}

static void handle(int signal, int flags) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
    count = 0;
}

static sigset_t set_of(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

static void a_handler_learns_who_sent_the_signal(void) {
    handle(SIGUSR1, 0);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    CHECK(count == 1 && last_signal == SIGUSR1 && last_code == SI_USER && last_pid == getpid());
    CHECK(raise(SIGUSR1) == 0);
    CHECK(count == 2 && last_code == SI_TKILL);
}

static void a_blocked_signal_waits_and_is_delivered_once(void) {
    handle(SIGUSR1, 0);
    sigset_t set = set_of(SIGUSR1), pending;
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 3; i++) kill(getpid(), SIGUSR1);
    CHECK(count == 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(count == 1);
}

static void realtime_signals_queue_in_order_with_values(void) {
    handle(SIGRTMIN + 1, 0);
    sigset_t set = set_of(SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 5; i++) {
        union sigval value = {.sival_int = i};
        CHECK(sigqueue(getpid(), SIGRTMIN + 1, value) == 0);
    }
    for (int i = 0; i < 5; i++) {
        siginfo_t info;
        CHECK(sigwaitinfo(&set, &info) == SIGRTMIN + 1);
        CHECK(info.si_value.sival_int == i && info.si_code == SI_QUEUE);
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    CHECK(count == 0);
}

static void a_wait_for_a_signal_ends_at_its_time_limit(void) {
    sigset_t set = set_of(SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct timespec limit = {.tv_nsec = 20000000};
    CHECK(sigtimedwait(&set, NULL, &limit) == -1 && errno == EAGAIN);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void a_reset_handler_runs_once(void) {
    handle(SIGUSR1, SA_RESETHAND);
    raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    CHECK(count == 1 && now.sa_handler == SIG_DFL);
}

static void a_handler_that_returns_from_a_fault_faults_again(void) {
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        handle(SIGSEGV, 0);
        alarm(1);
        *(volatile char *)page = 1;
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGALRM);
    munmap(page, 4096);
}

static sigjmp_buf fault_out;
static volatile long fault_trap, fault_error;

static void on_fault(int signal, siginfo_t *info, void *context) {
    ucontext_t *at = context;
    last_signal = signal;
    last_code = info->si_code;
    last_address = info->si_addr;
    fault_trap = at->uc_mcontext.gregs[REG_TRAPNO];
    fault_error = at->uc_mcontext.gregs[REG_ERR];
    siglongjmp(fault_out, 1);
}

static void faults_have_codes_and_addresses(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(fault_out, 1) == 0) *(volatile char *)(page + 7) = 1;
    CHECK(last_signal == SIGSEGV && last_code == SEGV_ACCERR && last_address == page + 7);
    CHECK(fault_trap == 14 && (fault_error & 6) == 6);
    munmap(page, 4096);
    if (sigsetjmp(fault_out, 1) == 0) *(volatile char *)(page + 9) = 1;
    CHECK(last_code == SEGV_MAPERR && last_address == page + 9);
    if (sigsetjmp(fault_out, 1) == 0) {
        volatile int zero = 0, one = 1;
        one = one / zero;
    }
    CHECK(last_signal == SIGFPE && last_code == FPE_INTDIV);
    if (sigsetjmp(fault_out, 1) == 0) __asm__ volatile("ud2");
    CHECK(last_signal == SIGILL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    signal(SIGILL, SIG_DFL);
}

static char *volatile handler_stack;

static void note_stack(int signal) {
    char here;
    (void)signal;
    handler_stack = &here;
    count++;
}

static void a_handler_runs_on_the_alternate_stack(void) {
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, now;
    CHECK(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = note_stack, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    count = 0;
    raise(SIGUSR1);
    CHECK(count == 1 && handler_stack > stack && handler_stack < stack + sizeof stack);
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == stack && now.ss_flags == 0);
    stack_t none = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&none, NULL) == 0);
}

static void alarm_in_10_ms(void) {
    struct itimerval soon = {.it_value = {.tv_usec = 10000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void a_read_is_interrupted_or_restarted_as_asked(void) {
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    handle(SIGALRM, 0);
    alarm_in_10_ms();
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && count == 1);
    handle(SIGALRM, SA_RESTART);
    pid_t child = fork();
    if (child == 0) {
        struct timespec pause = {.tv_nsec = 60000000};
        nanosleep(&pause, NULL);
        _exit(write(ends[1], "x", 1) != 1);
    }
    alarm_in_10_ms();
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && count == 1);
    CHECK(waitpid(child, NULL, 0) == child);
    close(ends[0]);
    close(ends[1]);
}

static void a_sleep_tells_what_is_left(void) {
    handle(SIGALRM, SA_RESTART);
    struct timespec span = {.tv_sec = 5}, left = {0};
    alarm_in_10_ms();
    CHECK(nanosleep(&span, &left) == -1 && errno == EINTR);
    CHECK(left.tv_sec == 4 && left.tv_nsec > 0);
}

static void suspending_exchanges_the_mask_for_a_moment(void) {
    handle(SIGUSR1, 0);
    sigset_t set = set_of(SIGUSR1), empty, now;
    sigemptyset(&empty);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    CHECK(count == 0);
    CHECK(sigsuspend(&empty) == -1 && errno == EINTR && count == 1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK(sigismember(&now, SIGUSR1));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void a_handler_s_mask_is_undone_when_it_returns(void) {
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    sigset_t now;
    raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));
}

static void clobber(int signal) {
    (void)signal;
    __asm__ volatile("vpxor %%ymm7, %%ymm7, %%ymm7; xorl %%r15d, %%r15d" ::: "xmm7", "r15");
    count++;
}

static void registers_survive_a_handler(void) {
    if (!__builtin_cpu_supports("avx")) return;
    struct sigaction action = {.sa_handler = clobber};
    sigaction(SIGUSR1, &action, NULL);
    uint64_t in[4] = {1, 2, 3, 4}, out[4] = {0}, r15 = 0;
    long pid = getpid();
    count = 0;
    __asm__ volatile(
        "vmovdqu %[in], %%ymm7\n movq $77, %%r15\n movl $62, %%eax\n movq %[pid], %%rdi\n"
        "movl $10, %%esi\n syscall\n vmovdqu %%ymm7, %[out]\n movq %%r15, %[r15]"
        : [out] "=m"(out), [r15] "=m"(r15)
        : [in] "m"(in), [pid] "r"(pid)
        : "rax", "rcx", "r11", "rdi", "rsi", "r15", "xmm7", "memory");
    CHECK(count == 1 && memcmp(in, out, sizeof in) == 0 && r15 == 77);
}

static void an_ignored_signal_does_nothing(void) {
    signal(SIGUSR1, SIG_IGN);
    CHECK(raise(SIGUSR1) == 0);
    pid_t child = fork();
    if (child == 0) _exit(raise(SIGUSR1));
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void *wait_for_it(void *set) {
    int signal = 0;
    sigwait(set, &signal);
    return (void *)(intptr_t)signal;
}

static void a_process_signal_goes_to_the_thread_that_waits(void) {
    sigset_t set = set_of(SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_it, &set) == 0);
    struct timespec pause = {.tv_nsec = 10000000};
    nanosleep(&pause, NULL);
    CHECK(kill(getpid(), SIGUSR2) == 0);
    void *result;
    CHECK(pthread_join(thread, &result) == 0 && (intptr_t)result == SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void a_blocked_fault_kills(void) {
    pid_t child = fork();
    if (child == 0) {
        sigset_t set = set_of(SIGSEGV);
        handle(SIGSEGV, 0);
        sigprocmask(SIG_BLOCK, &set, NULL);
        *(volatile int *)8 = 1;
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void nobody_catches_kill_and_stop(void) {
    struct sigaction action = {.sa_handler = SIG_IGN};
    CHECK(sigaction(SIGKILL, &action, NULL) == -1 && errno == EINVAL);
    CHECK(sigaction(SIGSTOP, &action, NULL) == -1 && errno == EINVAL);
    CHECK(kill(getpid(), 65) == -1 && errno == EINVAL);
    CHECK(kill(0x7ffffff, 0) == -1 && errno == ESRCH);
}

int main(void) {
    TEST(a_handler_learns_who_sent_the_signal);
    TEST(a_blocked_signal_waits_and_is_delivered_once);
    TEST(realtime_signals_queue_in_order_with_values);
    TEST(a_wait_for_a_signal_ends_at_its_time_limit);
    TEST(a_reset_handler_runs_once);
    TEST(a_handler_that_returns_from_a_fault_faults_again);
    TEST(faults_have_codes_and_addresses);
    TEST(a_handler_runs_on_the_alternate_stack);
    TEST(a_read_is_interrupted_or_restarted_as_asked);
    TEST(a_sleep_tells_what_is_left);
    TEST(suspending_exchanges_the_mask_for_a_moment);
    TEST(a_handler_s_mask_is_undone_when_it_returns);
    TEST(registers_survive_a_handler);
    TEST(an_ignored_signal_does_nothing);
    TEST(a_process_signal_goes_to_the_thread_that_waits);
    TEST(a_blocked_fault_kills);
    TEST(nobody_catches_kill_and_stop);
    return check_status();
}
