// Each allocation of a scene is refused once: the call says so, and nothing is lost.
//
// A scene is run with its first refusable allocation failing, then its second, and so on
// until it runs through (`/proc/thread-self/fail-nth`, as Linux has it with fault injection;
// without, each scene runs once). A scene cleans up whatever it got. Each n is tried
// ROUNDS times, so that a loss shows beside what CPUs keep at hand.
#include "scenes/events.h"
#include "scenes/files.h"
#include "scenes/mounts.h"
#include "scenes/sockets.h"
#include "scenes/tasks.h"

#define ROUNDS 200
#define ROUNDS_SLOW 12
#define LOST_MAX 150
#define FAILURES_MAX 400

static const struct {
    const char *name;
    int (*run)(void);
    int rounds;
} SCENES[] = {
    {"a file is written", open_file, ROUNDS},
    {"names are made and moved", names, ROUNDS},
    {"a folder of processes is listed", listing, ROUNDS},
    {"memory is mapped and split", memory, ROUNDS},
    {"shared memory is written back", shared_memory, ROUNDS},
    {"a process is forked", child, ROUNDS_SLOW},
    {"a program is started", program, 2},
    {"a thread is started", thread, ROUNDS_SLOW},
    {"a pipe is filled and grows", pipes, ROUNDS},
    {"a pipe takes packets", packets_of_pipe, ROUNDS},
    {"a thousand pieces are moved", vectors, ROUNDS},
    {"a pair of sockets takes a stream", unix_stream, ROUNDS},
    {"a pair of sockets takes datagrams", unix_datagrams, ROUNDS},
    {"descriptors are sent", descriptors_in_messages, ROUNDS},
    {"a socket in the file system is connected to", unix_listener, ROUNDS},
    {"an epoll watches many", watched, ROUNDS},
    {"many descriptors are polled", polled, ROUNDS},
    {"timers are set", clocks, ROUNDS},
    {"signals wait in a queue", signals, ROUNDS},
    {"a folder is watched", notices, ROUNDS},
    {"a pipe tells by signals", signals_of_readiness, ROUNDS},
    {"a thousand groups are taken", groups, ROUNDS},
    {"the system tells about itself", told, ROUNDS_SLOW},
    {"records of a file are locked", record_locks, ROUNDS},
    {"a table of descriptors grows", many_descriptors, ROUNDS},
    {"bytes move from a file to a pipe and back", moved_bytes, ROUNDS},
    {"a futex is waited for", waited, ROUNDS},
    {"a lock with priority inheritance is contended", inheriting_lock, ROUNDS},
    {"a file system is mounted", mounted, ROUNDS},
    {"a directory is bound", bound, ROUNDS},
    {"a mount is told to others", told_mount, ROUNDS},
    {"a namespace is made and left", own_namespace, ROUNDS},
    {"a file system is configured", configured, ROUNDS},
    {"a message queue is filled", message_queue, ROUNDS},
    {"a transfer is handed over", overlapped, ROUNDS},
    {"a datagram socket is bound", datagrams, ROUNDS},
    {"a datagram is gathered and comes back", gathered_datagram, ROUNDS},
    {"a connection is put together", repaired_connection, ROUNDS},
    {"routes are asked for", netlink, ROUNDS},
    {"a thread is made while it is counted", counted_events, ROUNDS},
    {"a program is sampled", samples, ROUNDS},
    // Last: what it brings stays.
    {"calls are filtered", filtered_calls, ROUNDS},
};

// What a call may say that found no memory, or not enough: it moved less than it was to.
static int is_refusal(int why) {
    return why == 0 || why == ENOMEM || why == EAGAIN || why == ENOBUFS || why == ENOSPC || why == EMFILE ||
           why == EFAULT;
}

#define CLASSES_MAX 64

// The objects of each size that the kernel uses, and its free pages.
static int count_objects(long *used) {
    FILE *file = fopen("/proc/slabinfo", "r");
    char line[512];
    int classes = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file) && classes < CLASSES_MAX)
        if (sscanf(line, "kmalloc-%*d %ld", &used[classes]) == 1) classes++;
    fclose(file);
    return classes;
}

static long free_pages(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file)) sscanf(line, "MemFree: %ld", &kib);
    if (file) fclose(file);
    return kib * 1024 / PAGE;
}

// Runs the scene with its n-th allocation failing, for all n. Returns how many fail, or -1
// with the reason in `why`.
static int refuse_each(int scene, char *why, size_t room) {
    for (int n = 1; n < FAILURES_MAX; n++) {
        int ends = 0;
        for (int round = 0; round < SCENES[scene].rounds && !ends; round++) {
            errno = 0;
            arm(n);
            int result = SCENES[scene].run(), reason = errno;
            ends = SCENES[scene].run == program ? is_spared : is_armed();
            arm(0);
            if (result < 0 && (ends || !is_refusal(reason))) {
                snprintf(why, room, "with the %d. refused: %s", n, strerror(reason));
                return -1;
            }
        }
        if (ends) return n - 1;
    }
    snprintf(why, room, "it does not end");
    return -1;
}

static void try_scene(int scene) {
    static long before[CLASSES_MAX], after[CLASSES_MAX];
    char why[200] = "";
    const char *name = SCENES[scene].name;
    int failed = 0;
    for (int round = 0; round < 3; round++)
        if (SCENES[scene].run() < 0)
            failed = -1, snprintf(why, sizeof why, "it fails by itself: %s", strerror(errno));
    if (failed >= 0) failed = refuse_each(scene, why, sizeof why);
    int classes = count_objects(before);
    long pages = free_pages();
    if (failed >= 0) failed = refuse_each(scene, why, sizeof why);
    count_objects(after);
    long lost_pages = pages - free_pages();
    if (failed >= 0 && lost_pages > LOST_MAX && fail_nth >= 0)
        failed = -1, snprintf(why, sizeof why, "%ld pages are lost", lost_pages);
    for (int at = 0; at < classes && failed >= 0 && fail_nth >= 0; at++)
        if (after[at] - before[at] > LOST_MAX)
            failed = -1, snprintf(why, sizeof why, "%ld objects of size %d. are lost",
                                  after[at] - before[at], at + 1);
    if (failed < 0) printf("%s: %s\n", name, why);
    else fprintf(stderr, "%s: %d refused\n", name, failed);
    EXPECT(failed >= 0, "%s, or is refused without a loss", name);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return end_as_program();
    fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
    for (size_t scene = 0; scene < sizeof SCENES / sizeof *SCENES; scene++) try_scene((int)scene);
    return check_status();
}
