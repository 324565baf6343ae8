// A plugin of QEMU that tells the stages of a durable request apart, by the system calls of the only program that is busy.
//
//     qemu-system-x86_64 -plugin stages.so,totals=SOCKET[,counts=on]
//
// A server waits, reads a request, works on it, writes a log, has it made durable, and answers. Each of these but the third is
// begun by a system call, on any system, unless a program looks for its transfers' ends itself, so the instruction that calls the kernel is where one stage ends and the next
// begins. All that the machine does until then is the stage's, interrupts among it. Whoever connects to SOCKET gets lines:
//
//     time STAGE NANOSECONDS TIMES      by the host's clock; how often it was entered
//     count STAGE ADDRESS INSTRUCTIONS  with `counts=on`: of 64 KiB from ADDRESS on; the kernel's have the address 0
//
// Counting slows the machine down, so times mean something without it only.
//
// The machine has one processor. Debian has no header for plugins; what we need of QEMU's include/qemu/qemu-plugin.h,
// version 4, and of glib is declared here.
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;

typedef struct {
    uint8_t *data;
    unsigned len;
} GByteArray;

typedef struct {
    char *data;
    unsigned len;
} GArray;

typedef struct {
    struct qemu_plugin_register *handle;
    const char *name;
    const char *feature;
} qemu_plugin_reg_descriptor;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_INLINE_ADD_U64 };
enum { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS };
typedef void on_translation(uint64_t id, struct qemu_plugin_tb *tb);
typedef void on_cpu(uint64_t id, unsigned cpu);
typedef void on_execution(unsigned cpu, void *data);

GByteArray *g_byte_array_new(void);
GByteArray *g_byte_array_set_size(GByteArray *array, unsigned length);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned cpu);
void qemu_plugin_register_vcpu_init_cb(uint64_t id, on_cpu *callback);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, on_translation *callback);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, on_execution *callback, int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int operation,
                                                         qemu_plugin_u64 entry, uint64_t operand);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t length);
GArray *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *to);

int qemu_plugin_version = 4;

enum { WAIT, RECEIVE, PARSE, LOG, PERSIST, SEND, STAGES };
static const char *const names[STAGES] = {"wait", "receive", "parse", "log", "persist", "send"};

// Parts of 64 KiB of programs' addresses; more than a few programs have.
enum { PARTS_MAX = 1024, PART_SHIFT = 16 };
// Addresses behind instructions that call the kernel.
enum { RETURNS_MAX = 4096 };

static struct qemu_plugin_register *rax;
static GByteArray *value;
static struct qemu_plugin_scoreboard *scores;
static uint64_t part_addresses[PARTS_MAX];
static int parts = 1;
static uint64_t returns[RETURNS_MAX];
static int return_count;
static bool is_counting;
static int listener;

// All below is read and written under this lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stage = WAIT;
static uint64_t entered_ns;
static uint64_t times[STAGES];
static uint64_t nanos[STAGES];
static uint64_t counted[PARTS_MAX];
static uint64_t counts[STAGES][PARTS_MAX];

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void enter(int next) {
    if (next == stage) return;
    pthread_mutex_lock(&lock);
    uint64_t now = now_ns();
    nanos[stage] += now - entered_ns;
    entered_ns = now;
    times[next]++;
    const volatile uint64_t *all = qemu_plugin_scoreboard_find(scores, 0);
    for (int part = 0; is_counting && part < parts; part++) {
        counts[stage][part] += all[part] - counted[part];
        counted[part] = all[part];
    }
    stage = next;
    pthread_mutex_unlock(&lock);
}

static int stage_of(uint64_t call) {
    bool is_begun = stage == LOG || stage == PERSIST;
    switch (call) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
        // Of a bell, once the log is under way.
        return is_begun || stage == SEND ? stage : RECEIVE;
    case SYS_write:
    case SYS_writev:
        return stage == PARSE ? LOG : stage == PERSIST ? SEND : stage;
    case SYS_sendto:
    case SYS_sendmsg:
        return SEND;
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_ioctl:
        return is_begun || stage == PARSE ? PERSIST : stage;
    case SYS_poll:
    case SYS_ppoll:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
        // For the disk, as long as nothing is answered.
        return is_begun || stage == PARSE ? PERSIST : WAIT;
    default:
        return stage;
    }
}

static void calls(unsigned cpu, void *unused) {
    (void)cpu, (void)unused;
    uint64_t call = 0;
    g_byte_array_set_size(value, 0);
    qemu_plugin_read_register(rax, value);
    if (value->len >= sizeof call) memcpy(&call, value->data, sizeof call);
    enter(stage_of(call));
}

static void has_returned(unsigned cpu, void *unused) {
    (void)cpu, (void)unused;
    if (stage == RECEIVE) enter(PARSE);
}

static int part_of(uint64_t address) {
    if (address >> 63) return 0;
    uint64_t first = address >> PART_SHIFT << PART_SHIFT;
    for (int part = 1; part < parts; part++)
        if (part_addresses[part] == first) return part;
    if (parts == PARTS_MAX) {
        fprintf(stderr, "stages: programs execute more than %d parts of 64 KiB\n", PARTS_MAX);
        exit(1);
    }
    part_addresses[parts] = first;
    return parts++;
}

static bool is_return(uint64_t address) {
    for (int index = 0; index < return_count; index++)
        if (returns[index] == address) return true;
    return false;
}

static void add_return(uint64_t address) {
    if (is_return(address) || return_count == RETURNS_MAX) return;
    returns[return_count++] = address;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t index = 0; index < qemu_plugin_tb_n_insns(tb); index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, index);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (is_counting) {
            qemu_plugin_u64 entry = {scores, (size_t)part_of(address) * sizeof(uint64_t)};
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry, 1);
        }
        if (address >> 63) continue;
        if (is_return(address))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, has_returned, QEMU_PLUGIN_CB_NO_REGS, 0);
        uint8_t bytes[2] = {0};
        qemu_plugin_insn_data(insn, bytes, sizeof bytes);
        if (bytes[0] == 0x0f && bytes[1] == 0x05) {
            add_return(address + 2);
            qemu_plugin_register_vcpu_insn_exec_cb(insn, calls, QEMU_PLUGIN_CB_R_REGS, 0);
        }
    }
}

static void started(uint64_t id, unsigned cpu) {
    (void)id;
    if (cpu != 0) return;
    GArray *all = qemu_plugin_get_registers();
    const qemu_plugin_reg_descriptor *registers = (void *)all->data;
    for (unsigned index = 0; index < all->len; index++)
        if (!strcmp(registers[index].name, "rax")) rax = registers[index].handle;
    if (!rax) {
        fprintf(stderr, "stages: QEMU does not show rax\n");
        exit(1);
    }
}

static void *serve(void *unused) {
    (void)unused;
    for (int asker; (asker = accept(listener, 0, 0)) >= 0;) {
        FILE *out = fdopen(asker, "w");
        pthread_mutex_lock(&lock);
        for (int of = 0; of < STAGES; of++) {
            fprintf(out, "time %s %llu %llu\n", names[of], (unsigned long long)nanos[of], (unsigned long long)times[of]);
            for (int part = 0; part < parts; part++)
                if (counts[of][part])
                    fprintf(out, "count %s %llu %llu\n", names[of], (unsigned long long)part_addresses[part],
                            (unsigned long long)counts[of][part]);
        }
        pthread_mutex_unlock(&lock);
        fclose(out);
    }
    return 0;
}

static bool listen_at(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path) return false;
    strcpy(name.sun_path, path);
    unlink(path);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    return !bind(listener, (struct sockaddr *)&name, sizeof name) && !listen(listener, 1);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    static const char key[] = "totals=";
    if (argc < 1 || strncmp(argv[0], key, strlen(key)) || !listen_at(argv[0] + strlen(key))) return 1;
    is_counting = argc > 1 && !strcmp(argv[1], "counts=on");
    value = g_byte_array_new();
    scores = qemu_plugin_scoreboard_new(PARTS_MAX * sizeof(uint64_t));
    entered_ns = now_ns();
    qemu_plugin_register_vcpu_init_cb(id, started);
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    pthread_t server;
    return pthread_create(&server, 0, serve, 0);
}
