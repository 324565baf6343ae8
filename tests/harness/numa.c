// A machine whose CPUs and memory `sietch run --nodes` divided: whose frames a program gets,
// by the node of each page and by the kernel's counters.
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, PAGES = 8192, NODE_OF_PAGE = 3, MEMS_ALLOWED = 4 };

static int nodes;

static int cpus(void) { return sysconf(_SC_NPROCESSORS_ONLN); }

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

// How the command divides them.
static int node_of_cpu(int cpu) {
    for (int node = nodes - 1; node > 0; node--)
        if (cpu >= cpus() * node / nodes) return node;
    return 0;
}

static int node_of_page(void *page) {
    int node = -1;
    syscall(SYS_get_mempolicy, &node, NULL, 0L, page, NODE_OF_PAGE);
    return node;
}

// The number behind `name` in a node's file, or -1.
static long number(int node, const char *file, const char *name) {
    static char path[128], line[256];
    long found = -1;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/%s", node, file);
    FILE *text = fopen(path, "r");
    while (text != NULL && fgets(line, sizeof line, text) != NULL) {
        char *at = strstr(line, name);
        if (at != NULL) found = atol(at + strlen(name) + 1);
    }
    if (text != NULL) fclose(text);
    return found;
}

static long counted(const char *name) {
    long sum = 0;
    for (int node = 0; node < nodes; node++) sum += number(node, "numastat", name);
    return sum;
}

static char *map(size_t pages) {
    return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Touches pages on `cpu`; returns how many of them are not on its node.
static size_t far_pages(int cpu, char *at, size_t pages) {
    pin(cpu);
    size_t far = 0;
    for (size_t page = 0; page < pages; page++) {
        at[page * PAGE] = 1;
        far += node_of_page(at + page * PAGE) != node_of_cpu(cpu);
    }
    return far;
}

static void getcpu_tells_the_node(void) {
    for (int cpu = 0; cpu < cpus(); cpu++) {
        unsigned seen = -1, node = -1, called = -1;
        pin(cpu);
        CHECK(getcpu(&seen, &node) == 0);
        CHECK(seen == (unsigned)cpu && node == (unsigned)node_of_cpu(cpu));
        CHECK(syscall(SYS_getcpu, &seen, &called, NULL) == 0);
        CHECK(seen == (unsigned)cpu && called == node);
    }
}

static void the_policy_is_the_default_and_allows_all_nodes(void) {
    unsigned long mask[2] = {-1UL, -1UL};
    int mode = -1;
    CHECK(syscall(SYS_get_mempolicy, &mode, mask, 128L, NULL, 0) == 0);
    CHECK(mode == 0 && mask[0] == 0 && mask[1] == 0);
    CHECK(syscall(SYS_get_mempolicy, NULL, mask, 128L, NULL, MEMS_ALLOWED) == 0);
    CHECK(mask[0] == (1UL << nodes) - 1 && mask[1] == 0);
    CHECK(syscall(SYS_get_mempolicy, NULL, mask, 1L, NULL, 0) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_get_mempolicy, &mode, NULL, 0L, NULL, 1 << 20) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_get_mempolicy, &mode, NULL, 0L, 8L, NODE_OF_PAGE) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_set_mempolicy, 0, NULL, 0L) == 0);
    CHECK(syscall(SYS_set_mempolicy, 1, (unsigned long[]){0}, 65L) == 0);
    CHECK(syscall(SYS_set_mempolicy, 0, (unsigned long[]){1}, 65L) == -1 && errno == EINVAL);
}

static void memory_comes_from_the_node_of_the_cpu(void) {
    for (int cpu = 0; cpu < cpus(); cpu++) {
        int node = node_of_cpu(cpu);
        long hits = number(node, "numastat", "numa_hit");
        long misses = counted("numa_miss"), foreign = counted("numa_foreign");
        char *at = map(PAGES);
        CHECK(at != MAP_FAILED);
        CHECK(far_pages(cpu, at, PAGES) == 0);
        // A CPU keeps up to four huge pages and some single ones at hand.
        CHECK(number(node, "numastat", "numa_hit") >= hits + PAGES / 2);
        CHECK(counted("numa_miss") == misses && counted("numa_foreign") == foreign);
        munmap(at, (size_t)PAGES * PAGE);
    }
}

static void what_another_cpu_gives_back_goes_home(void) {
    if (cpus() == 1) return;
    char *theirs = map(PAGES), *own = map(PAGES);
    CHECK(far_pages(0, theirs, PAGES) == 0);
    pin(cpus() - 1);
    munmap(theirs, (size_t)PAGES * PAGE);
    CHECK(far_pages(cpus() - 1, own, PAGES) == 0);
    munmap(own, (size_t)PAGES * PAGE);
}

// Which pages are borrowed is open: what anybody frees meanwhile comes from the own node again.
static void a_full_node_borrows_and_it_is_counted(void) {
    int own = node_of_cpu(0), other = !own;
    long misses = number(other, "numastat", "numa_miss");
    long foreign = number(own, "numastat", "numa_foreign");
    long borrowed = (8 << 20) / PAGE;
    size_t pages = number(own, "meminfo", "MemFree:") * 1024 / PAGE + borrowed;
    char *at = map(pages);
    CHECK(at != MAP_FAILED);
    CHECK(far_pages(0, at, pages) >= borrowed / 2);
    CHECK(number(other, "numastat", "numa_miss") >= misses + borrowed / 2);
    CHECK(number(own, "numastat", "numa_foreign") >= foreign + borrowed / 2);
    munmap(at, pages * PAGE);
}

int main(int argc, char **argv) {
    nodes = argc > 1 ? atoi(argv[1]) : 1;
    TEST(getcpu_tells_the_node);
    TEST(the_policy_is_the_default_and_allows_all_nodes);
    TEST(memory_comes_from_the_node_of_the_cpu);
    TEST(what_another_cpu_gives_back_goes_home);
    TEST(a_full_node_borrows_and_it_is_counted);
    return check_status();
}
