// The end of a program that drives a device, whichever way and whenever it comes: nothing of it is
// left, and the next program can have the device at once. Who may have it, and how much memory for
// it. Only where the machine has the device behind an IOMMU.
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "vfio.h"

#define SHARED_BYTES (8UL << 20)

// KiB free in the machine.
static long free_kib(void) {
    char line[128];
    long kib = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemFree: %ld", &kib) == 1) break;
    if (file) fclose(file);
    return kib;
}

// A program that has the device write all the time, and goes on mapping; it never returns.
static void drive(int ready) {
    struct edu edu;
    if (edu_open(&edu) != 0) _exit(errno == EBUSY ? 3 : 2);
    uint8_t *p = memory(SHARED_BYTES);
    int event = eventfd(0, EFD_NONBLOCK);
    if (map_dma(&edu, p, 0, SHARED_BYTES) != 0) _exit(4);
    if (lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event) != 0) _exit(5);
    begin(&edu, 0x1000, PAGE, 1);
    if (write(ready, "r", 1) != 1) _exit(6);
    for (uint64_t step = 0;; step++) {
        set(&edu, RAISE, 1);
        set(&edu, ACKNOWLEDGE, 1);
        if (!is_busy(&edu)) begin(&edu, step % 2000 * PAGE, PAGE, 1);
        uint64_t iova = (1UL << 32) + step % 500 * (3UL << 20);
        if (map_dma(&edu, p, iova, 16 * PAGE) == 0 && step % 3) unmap_dma(&edu, iova, 16 * PAGE);
    }
}

static int round_of_killing(unsigned wait) {
    int ready[2], status;
    char byte;
    if (pipe(ready) != 0) return -1;
    pid_t child = fork();
    if (child == 0) drive(ready[1]);
    close(ready[1]);
    ssize_t told = read(ready[0], &byte, 1);
    close(ready[0]);
    wait_ms(wait);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return told == 1 && WIFSIGNALED(status) ? 0 : status;
}

static void a_program_that_is_killed_leaves_nothing_behind(void) {
    // Caches of each CPU are filled first.
    for (unsigned round = 0; round < 20; round++) CHECK(round_of_killing(round * 9) == 0);
    wait_ms(200);
    long before = free_kib();
    for (unsigned round = 0; round < 20; round++) CHECK(round_of_killing(round * 9) == 0);
    wait_ms(200);
    long lost = before - free_kib();
    if (lost >= 2048) printf("# %ld KiB are gone\n", lost);
    CHECK(lost < 2048);
}

static void the_next_program_can_have_the_device(void) {
    struct edu edu;
    CHECK(round_of_killing(10) == 0);
    CHECK(edu_open(&edu) == 0);
    // What the one before had begun ends first.
    while (is_busy(&edu)) wait_ms(5);
    uint8_t *p = memory(PAGE);
    CHECK(map_dma(&edu, p, 0x1000, PAGE) == 0);
    memset(p, 0x5a, 64);
    transfer(&edu, 0x1000, 64, 0);
    transfer(&edu, 0x1100, 64, 1);
    CHECK(memcmp(p, p + 0x100, 64) == 0);
    edu_close(&edu);
    munmap(p, PAGE);
}

static void files_may_be_closed_in_any_order(void) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    uint8_t *p = memory(PAGE);
    for (int i = 0; i < 6; i++) {
        struct edu edu;
        CHECK(edu_open(&edu) == 0 && map_dma(&edu, p, 0, PAGE) == 0);
        munmap((void *)edu.registers, EDU_BYTES);
        int files[3] = {edu.container, edu.group, edu.device};
        for (int k = 0; k < 3; k++) {
            CHECK(close(files[orders[i][k]]) == 0);
            int is_free = k == 2;
            int again = open(edu_node, O_RDWR);
            // The group is had as long as its file or its device is open.
            if (orders[i][2] == 0 && k == 1) is_free = 1;
            CHECK((again >= 0) == is_free);
            if (again >= 0) close(again);
        }
    }
    munmap(p, PAGE);
}

static volatile int is_over;
static struct edu shared;

static void *change(void *argument) {
    uint8_t *p = memory(64 * PAGE);
    uint64_t base = (uintptr_t)argument << 30;
    for (unsigned step = 0; !is_over; step++) {
        uint64_t iova = base + step % 64 * (2UL << 20);
        if (map_dma(&shared, p, iova, 64 * PAGE) == 0) unmap_dma(&shared, iova, 64 * PAGE);
    }
    return NULL;
}

static void threads_change_mappings_while_groups_come_and_go(void) {
    CHECK(edu_group(&shared, edu_node) == 0);
    pthread_t threads[3];
    is_over = 0;
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, change, (void *)(i + 1)) == 0);
    for (unsigned round = 0; round < 60; round++) {
        int device = ioctl(shared.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME);
        CHECK(device >= 0);
        close(device);
        if (round % 2) CHECK(ioctl(shared.group, VFIO_GROUP_UNSET_CONTAINER) == 0);
        close(shared.group);
        do shared.group = open(edu_node, O_RDWR);
        while (shared.group < 0 && errno == EBUSY);
        CHECK(ioctl(shared.group, VFIO_GROUP_SET_CONTAINER, &shared.container) == 0);
        CHECK(ioctl(shared.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0);
        wait_ms(5);
    }
    is_over = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    close(shared.group);
    close(shared.container);
}

// Runs `act` as a user that is nobody special, with so much memory that may be locked.
static int as_user(int (*act)(void), rlim_t locked) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {locked, locked};
        if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgroups(0, NULL)) _exit(20);
        if (setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) _exit(21);
        _exit(act());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int has_no_right(void) {
    int container = container_open();
    return container >= 0 && open(edu_node, O_RDWR) == -1 && errno == EACCES ? 0 : 1;
}

static int uses_it(void) {
    struct edu edu;
    if (edu_open(&edu) != 0) return 1;
    uint8_t *p = memory(64 * PAGE);
    // 16 pages may be locked.
    if (map_dma(&edu, p, 0, 17 * PAGE) == 0 || errno != ENOMEM) return 2;
    if (map_dma(&edu, p, 0, 10 * PAGE) != 0) return 3;
    if (map_dma(&edu, p, 1UL << 30, 7 * PAGE) == 0 || errno != ENOMEM) return 4;
    if (map_dma(&edu, p, 1UL << 30, 6 * PAGE) != 0) return 5;
    if (unmap_dma(&edu, 0, 10 * PAGE) != 10 * (long)PAGE) return 6;
    if (map_dma(&edu, p, 2UL << 30, 10 * PAGE) != 0) return 7;
    memset(p, 0x21, 64);
    transfer(&edu, 2UL << 30, 64, 0);
    transfer(&edu, (2UL << 30) + 64, 64, 1);
    return p[64] == 0x21 && p[127] == 0x21 && p[128] == 0 ? 0 : 8;
}

static void a_user_has_what_root_gave_to_it(void) {
    CHECK(as_user(has_no_right, RLIM_INFINITY) == 0);
    CHECK(chown(edu_node, 1000, 1000) == 0);
    for (int round = 0; round < 3; round++) CHECK(as_user(uses_it, 16 * PAGE) == 0);
    CHECK(chown(edu_node, 0, 0) == 0);
    CHECK(as_user(has_no_right, RLIM_INFINITY) == 0);
    struct stat status;
    CHECK(stat(edu_node, &status) == 0 && (status.st_mode & 0777) == 0600);
    CHECK(stat("/dev/vfio/vfio", &status) == 0 && (status.st_mode & 0777) == 0666);
}

static void all_devices_together_have_half_of_memory_at_most(void) {
    struct edu edu;
    CHECK(edu_open(&edu) == 0);
    size_t bytes = 1UL << 20;
    uint8_t *p = memory(bytes);
    uint64_t count = 0;
    // The same pages, mapped again and again, count each time.
    while (count < 60000 && map_dma(&edu, p, count * bytes, bytes) == 0) count++;
    CHECK(errno == ENOMEM && count > 16);
    CHECK(unmap_dma(&edu, 0, bytes) == (long)bytes && map_dma(&edu, p, 0, bytes) == 0);
    edu_close(&edu);
    CHECK(edu_open(&edu) == 0 && map_dma(&edu, p, 0, bytes) == 0);
    edu_close(&edu);
    munmap(p, bytes);
}

int main(void) {
    if (!edu_find()) return 0;
    TEST(a_program_that_is_killed_leaves_nothing_behind);
    TEST(the_next_program_can_have_the_device);
    TEST(files_may_be_closed_in_any_order);
    TEST(threads_change_mappings_while_groups_come_and_go);
    TEST(a_user_has_what_root_gave_to_it);
    TEST(all_devices_together_have_half_of_memory_at_most);
    return check_status();
}
