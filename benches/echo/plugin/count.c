// A plugin of QEMU that counts how often each instruction of the guest is executed.
//
//     qemu-system-x86_64 -plugin count.so,counts=SOCKET
//
// Whoever connects to SOCKET gets the counts of that moment: pairs of 64-bit words in the
// host's order, an instruction's virtual address and how often it ran since the start. A repeated string instruction counts once, as on a processor.
//
// Translated code adds to the counters itself, without a call: the machine runs at a third of
// its speed, each processor of the machine to its own. Slots are added under a lock, and their number
// is published last, so the thread that answers reads finished ones.
//
// Debian has no header for plugins; what we need of QEMU's include/qemu/qemu-plugin.h, of any
// version of the interface from 3 on, is declared here.
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_INLINE_ADD_U64 };
typedef void on_translation(uint64_t id, struct qemu_plugin_tb *tb);

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned cpu);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, on_translation *callback);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int operation,
                                                         qemu_plugin_u64 entry, uint64_t operand);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

int qemu_plugin_num_vcpus(void);

int qemu_plugin_version = 3;

// More instructions than a boot and a server execute; hashed with open addressing, so half full.
enum { SLOTS_MAX = 1 << 20, BUCKETS = SLOTS_MAX * 2 };

static struct qemu_plugin_scoreboard *scores;
static uint64_t addresses[SLOTS_MAX];
static uint32_t buckets[BUCKETS]; // A slot's number plus one.
static uint32_t slots;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static int listener;

static uint32_t slot_of(uint64_t address) {
    uint32_t bucket = (uint32_t)((address * 0x9e3779b97f4a7c15) >> 32) % BUCKETS;
    for (; buckets[bucket]; bucket = (bucket + 1) % BUCKETS)
        if (addresses[buckets[bucket] - 1] == address) return buckets[bucket] - 1;
    if (slots == SLOTS_MAX) {
        fprintf(stderr, "count: more than %d instructions\n", SLOTS_MAX);
        exit(1);
    }
    addresses[slots] = address;
    buckets[bucket] = slots + 1;
    __atomic_store_n(&slots, slots + 1, __ATOMIC_RELEASE);
    return slots - 1;
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    for (size_t index = 0; index < qemu_plugin_tb_n_insns(tb); index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, index);
        pthread_mutex_lock(&adding);
        uint32_t slot = slot_of(qemu_plugin_insn_vaddr(insn));
        pthread_mutex_unlock(&adding);
        qemu_plugin_u64 entry = {scores, slot * sizeof(uint64_t)};
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry, 1);
    }
}

static uint64_t count_of(uint32_t slot) {
    uint64_t sum = 0;
    for (int cpu = 0; cpu < qemu_plugin_num_vcpus(); cpu++) {
        const volatile uint64_t *counts = qemu_plugin_scoreboard_find(scores, (unsigned)cpu);
        sum += counts[slot];
    }
    return sum;
}

static void write_counts(FILE *out) {
    uint32_t known = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
    for (uint32_t slot = 0; slot < known; slot++) {
        uint64_t pair[2] = {addresses[slot], count_of(slot)};
        if (pair[1]) fwrite(pair, sizeof pair, 1, out);
    }
}

static void *serve(void *unused) {
    (void)unused;
    for (int asker; (asker = accept(listener, 0, 0)) >= 0;) {
        FILE *out = fdopen(asker, "w");
        write_counts(out);
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
    static const char key[] = "counts=";
    if (argc != 1 || strncmp(argv[0], key, strlen(key)) || !listen_at(argv[0] + strlen(key))) return 1;
    scores = qemu_plugin_scoreboard_new(SLOTS_MAX * sizeof(uint64_t));
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    pthread_t server;
    return pthread_create(&server, 0, serve, 0);
}
