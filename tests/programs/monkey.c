// The system-call monkey: random calls with random arguments, from several threads of
// short-lived processes. It finds kernels that panic or hang, not wrong answers.
//
//   monkey SEED CALLS THREADS
//
// A run is named by its seed. Each batch of calls runs in a child with a seed of its own,
// derived from it; a child may kill itself in any way it likes. The parent ends a
// child that hangs, and adds up what the children count until CALLS are made. Calls may
// write over a child's count, so it lies apart from the arena and is taken for no more
// than a batch can be.
//
// Arguments come from pools of interesting values: small numbers, descriptors that are
// open, addresses inside and outside an arena, sizes around page and word limits.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH_CALLS = 4000,
    CHILD_SECONDS = 3,
    ARENA_BYTES = 1 << 20,
    GAP_BYTES = 1 << 20,    // more than an unmapping of the arena reaches over its end
    CALL_LIMIT = 464,
};

static const double IDLE_SECONDS = 0.1;
static volatile uint64_t *made;    // shared with the child: calls of this batch
static uint8_t *arena;    // shared memory that pointers point into
static __thread uint64_t state;

static uint64_t next(void) {    // splitmix64
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static long call(long number, const uint64_t a[6]) {
    long result;
    register uint64_t r10 __asm__("r10") = a[3];
    register uint64_t r8 __asm__("r8") = a[4];
    register uint64_t r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall" : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static uint64_t address(void) {
    switch (next() % 16) {
    case 0: return 0;
    case 1: return next();
    case 2: return 0xffff800000000000u + next() % ARENA_BYTES;
    case 3: return 0x7fffffffe000u + next() % 0x3000;
    case 4: return (uint64_t)arena + ARENA_BYTES - next() % 32;
    case 5: return (uint64_t)arena + (next() % (ARENA_BYTES / 4096)) * 4096;
    default: return (uint64_t)arena + next() % ARENA_BYTES / 8 * 8;
    }
}

static uint64_t number(void) {
    static const uint64_t edges[] = {0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 127, 128, 255, 4095, 4096,
        4097, 65535, 65536, 0x7fffffff, 0x80000000u, 0xffffffffu, 0x7fffffffffffffffu,
        0x8000000000000000u, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 4095, (uint64_t)AT_FDCWD};
    switch (next() % 8) {
    case 0: return next();
    case 1: return edges[next() % (sizeof edges / sizeof *edges)];
    case 2: return UINT64_C(1) << next() % 64;
    case 3: return (next() % 16) * 4096;
    default: return next() % 24;
    }
}

static uint64_t argument(void) {
    switch (next() % 3) {
    case 0: return address();
    case 1: return number();
    default: return next() % 24;    // a descriptor, most likely
    }
}

// Calls that would end the experiment instead of testing it.
static int is_excluded(long number) {
    switch (number) {
    case SYS_reboot: case SYS_exit: case SYS_exit_group: case SYS_vfork: case SYS_clone:
    case SYS_clone3: case SYS_kexec_load: case SYS_kexec_file_load: case SYS_init_module:
    case SYS_finit_module: case SYS_delete_module: case SYS_iopl: case SYS_ioperm:
    case SYS_swapon: case SYS_swapoff: case SYS_settimeofday: case SYS_clock_settime:
    case SYS_adjtimex: case SYS_clock_adjtime: case SYS_vhangup: case SYS_ptrace:
    case SYS_process_vm_writev: case SYS_process_madvise: case SYS_setsid: case SYS_setpgid:
        return 1;
    case SYS_rt_sigreturn: return next() % 64 != 0;
    case SYS_execve: case SYS_execveat: return next() % 8 != 0;
    default: return 0;
    }
}

// Mostly one that a handler or nobody hears, or a child would not live for long.
static uint64_t some_signal(void) {
    static const uint64_t gentle[] = {0, SIGALRM, SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    return next() % 64 ? gentle[next() % (sizeof gentle / sizeof *gentle)] : number();
}

// Signals go to the caller only; munmap and friends mostly hit the arena.
static void tame(long number, uint64_t a[6]) {
    switch (number) {
    case SYS_kill: case SYS_rt_sigqueueinfo: case SYS_tkill:
        a[0] = (uint64_t)(number == SYS_tkill ? syscall(SYS_gettid) : getpid());
        a[1] = some_signal();
        break;
    case SYS_tgkill: case SYS_rt_tgsigqueueinfo:
        a[0] = (uint64_t)getpid(), a[1] = (uint64_t)syscall(SYS_gettid), a[2] = some_signal();
        break;
    case SYS_pidfd_send_signal: a[0] = UINT64_MAX; break;
    case SYS_fcntl:
        if (a[1] == F_SETOWN) a[2] = (uint64_t)getpid();
        break;
    case SYS_setpriority: case SYS_prlimit64: a[number == SYS_setpriority] = 0; break;
    case SYS_munmap: case SYS_mprotect: case SYS_mremap: case SYS_mmap: case SYS_madvise:
    case SYS_pkey_mprotect: case SYS_remap_file_pages:
        if (next() % 32) {
            a[0] = (uint64_t)arena + (next() % (ARENA_BYTES / 4096)) * 4096;
            a[1] = (next() % 64) * 4096;
        }
        break;
    default: break;
    }
}

static __thread sigjmp_buf before_store;

static void on_fault(int signal) {
    (void)signal;
    siglongjmp(before_store, 1);
}

// A store that faults is skipped: the page was unmapped by an earlier call.
static void store(uint64_t at, uint64_t value) {
    if (sigsetjmp(before_store, 1) == 0) memcpy(arena + at, &value, sizeof value);
}

static void scribble(void) {
    for (int i = 0; i < 8; i++) store(next() % (ARENA_BYTES / 8) * 8, next() % 4 ? number() : address());
}

static void on_alarm(int signal) { (void)signal; }

// Ends whatever this thread waits for, every few milliseconds.
static void arm_alarm(void) {
    struct sigevent wake = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    struct itimerspec tick = {{0, 2000000}, {0, 2000000}};
    timer_t timer;
    wake._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &wake, &timer) == 0) timer_settime(timer, 0, &tick, NULL);
}

static void *run_batch(void *seed) {
    arm_alarm();
    state = (uint64_t)seed;
    pid_t self = getpid();
    for (int i = 0; i < BATCH_CALLS; i++) {
        long chosen = (long)(next() % CALL_LIMIT);
        uint64_t a[6];
        for (int k = 0; k < 6; k++) a[k] = argument();
        if (is_excluded(chosen)) continue;
        tame(chosen, a);
        if (i % 16 == 0) scribble();
        call(chosen, a);
        __atomic_fetch_add(made, 1, __ATOMIC_RELAXED);
        if (syscall(SYS_getpid) != self) _exit(0);    // a fork
    }
    return NULL;
}

static void open_things(void) {
    int pair[2];
    (void)!pipe2(pair, O_NONBLOCK);
    (void)!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    (void)!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    epoll_create1(0);
    eventfd(0, EFD_NONBLOCK);
    open("/tmp/monkey", O_RDWR | O_CREAT, 0600);
    open("/tmp", O_RDONLY | O_DIRECTORY);
    open("/proc/self/maps", O_RDONLY);
    open("/dev/zero", O_RDWR);
    strcpy((char *)arena, "/tmp/monkey");
    strcpy((char *)arena + 64, "/proc/self/exe");
}

static void child(uint64_t seed, int threads) {
    struct rlimit files = {256, 256};
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    open_things();
    setrlimit(RLIMIT_NOFILE, &files);
    struct sigaction wake = {.sa_handler = on_alarm}, fault = {.sa_handler = on_fault};
    sigaction(SIGALRM, &wake, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGBUS, &fault, NULL);
    pthread_t other[16];
    for (int i = 1; i < threads; i++) {
        pthread_create(&other[i], NULL, run_batch, (void *)(seed ^ (uint64_t)i << 56));
    }
    run_batch((void *)seed);
    _exit(0);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// A child whose threads all wait makes no more calls: most random waits have no end.
static void reap(pid_t pid) {
    double start = seconds(), moved = start;
    uint64_t seen = 0;
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        double now = seconds();
        if (*made != seen) seen = *made, moved = now;
        if (now - start > CHILD_SECONDS || now - moved > IDLE_SECONDS) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
        }
        usleep(1000);
    }
    kill(-pid, SIGKILL);    // what it forked
    while (waitpid(-1, &status, WNOHANG) > 0) {}
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: monkey SEED CALLS THREADS\n");
        return 2;
    }
    uint64_t seed = strtoull(argv[1], NULL, 0), calls = strtoull(argv[2], NULL, 0);
    int threads = atoi(argv[3]);
    char *counter = mmap(NULL, GAP_BYTES + 4096, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counter == MAP_FAILED || arena == MAP_FAILED || threads < 1 || threads > 16) return 2;
    mprotect(counter, GAP_BYTES, PROT_NONE);
    made = (uint64_t *)(counter + GAP_BYTES);
    printf("monkey: SEED=%llu, %llu calls, %d threads\n", (unsigned long long)seed,
           (unsigned long long)calls, threads);
    fflush(stdout);
    uint64_t total = 0, shown = 0, most = (uint64_t)(BATCH_CALLS * threads);
    for (uint64_t batch = 0; total < calls; batch++) {
        uint64_t own = seed * 0x9e3779b97f4a7c15u + batch;
        *made = 0;
        pid_t pid = fork();
        if (pid == 0) child(own, threads);
        if (pid > 0) reap(pid);
        total += *made < most ? *made : most;
        if (total / (calls / 10 + 1) != shown) {
            shown = total / (calls / 10 + 1);
            printf("monkey: %llu calls, batch %llu\n", (unsigned long long)total,
                   (unsigned long long)batch);
            fflush(stdout);
        }
    }
    printf("ok the monkey made %llu calls with SEED=%llu\n", (unsigned long long)total,
           (unsigned long long)seed);
    return 0;
}
