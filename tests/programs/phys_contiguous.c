// Physical memory for programs that drive devices: /dev/phys_contiguous, the registers
// in /sys/bus/pci/devices, and what /dev/mem refuses. Sietch's own; elsewhere nothing is
// tested.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define PHYS_CONTIGUOUS_ADDRESS _IOR('p', 0x40, uint64_t)
#define PHYS_CONTIGUOUS_CACHING _IO('p', 0x41)
#define PCI "/sys/bus/pci/devices"

static int device(int flags) { return open("/dev/phys_contiguous", O_RDWR | flags); }

static uint64_t *map(int fd, size_t bytes, off_t at) {
    return mmap(NULL, bytes, RW, MAP_SHARED, fd, at);
}

static uint64_t address_of(int fd) {
    uint64_t address = 0;
    return ioctl(fd, PHYS_CONTIGUOUS_ADDRESS, &address) == 0 ? address : 0;
}

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

static void memory_is_zero_aligned_and_keeps_what_is_stored(void) {
    int fd = device(0);
    CHECK(fd >= 0);
    uint64_t *p = map(fd, 64 << 10, 0);
    CHECK(p != MAP_FAILED);
    uint64_t at = address_of(fd);
    CHECK(at != 0 && at % (64 << 10) == 0);
    for (size_t i = 0; i < 8192; i++) CHECK(p[i] == 0);
    for (size_t i = 0; i < 8192; i++) p[i] = i;
    for (size_t i = 0; i < 8192; i++) CHECK(p[i] == i);
    CHECK(munmap(p, 64 << 10) == 0);
    CHECK(close(fd) == 0);
}

static void two_mappings_of_an_opening_show_the_same_memory(void) {
    int fd = device(0);
    uint64_t *p = map(fd, 8 * PAGE, 0);
    uint64_t *tail = map(fd, 4 * PAGE, 4 * PAGE);
    CHECK(p != MAP_FAILED && tail != MAP_FAILED);
    p[4 * PAGE / 8] = 77;
    CHECK(tail[0] == 77);
    CHECK(map(fd, 9 * PAGE, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(munmap(p, 8 * PAGE) == 0);
    CHECK(tail[0] == 77 && address_of(fd) != 0);
    CHECK(munmap(tail, 4 * PAGE) == 0);
    CHECK(address_of(fd) == 0 && errno == ENXIO);
    close(fd);
}

static void a_child_shares_it(void) {
    int fd = device(0);
    uint64_t *p = map(fd, 2 * PAGE, 0);
    CHECK(p != MAP_FAILED);
    p[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        p[600] = p[0] + 1;
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(p[600] == 2);
    CHECK(munmap(p, 2 * PAGE) == 0);
    close(fd);
}

// Odd sizes are rounded up to a power of two inside; the tail must come back as well.
static void it_goes_back_with_its_mapping(void) {
    int fd = device(0);
    CHECK(fd >= 0);
    long before = free_kib();
    for (int round = 0; round < 600; round++) {
        size_t bytes = (size_t)(round % 37 + 1) * PAGE;
        uint64_t *p = map(fd, bytes, 0);
        CHECK(p != MAP_FAILED);
        p[bytes / 8 - 1] = 1;
        CHECK(munmap(p, bytes) == 0);
    }
    CHECK(before - free_kib() < 1024);
    close(fd);
}

static void memory_can_be_uncached_or_combining(void) {
    int fd = device(O_SYNC);
    uint64_t *p = map(fd, 16 * PAGE, 0);
    CHECK(p != MAP_FAILED);
    for (size_t i = 0; i < 16 * PAGE / 8; i++) CHECK(p[i] == 0);
    p[5] = 5;
    CHECK(p[5] == 5);
    CHECK(ioctl(fd, PHYS_CONTIGUOUS_CACHING, 0) == -1 && errno == EBUSY);
    CHECK(mprotect(p, PAGE, PROT_READ) == 0 && p[5] == 5);
    CHECK(munmap(p, 16 * PAGE) == 0);
    CHECK(ioctl(fd, PHYS_CONTIGUOUS_CACHING, 1) == 0);
    p = map(fd, PAGE, 0);
    CHECK(p != MAP_FAILED);
    p[511] = 9;
    CHECK(p[511] == 9);
    CHECK(munmap(p, PAGE) == 0);
    CHECK(ioctl(fd, PHYS_CONTIGUOUS_CACHING, 3) == -1 && errno == EINVAL);
    close(fd);
}

static void what_cannot_be_is_refused(void) {
    int fd = device(0);
    CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(map(fd, 1UL << 40, 0) == MAP_FAILED && errno == ENOMEM);
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        int own = device(0);
        map(own, PAGE, 0);
        if (setuid(1000) != 0) _exit(2);
        uint64_t address;
        int refused = ioctl(own, PHYS_CONTIGUOUS_ADDRESS, &address) == -1 && errno == EPERM;
        _exit(!refused || device(0) != -1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void frames_of_the_allocator_cannot_be_borrowed(void) {
    int fd = device(0);
    uint64_t *p = map(fd, 4 * PAGE, 0);
    CHECK(p != MAP_FAILED);
    uint64_t at = address_of(fd);
    int mem = open("/dev/mem", O_RDWR);
    CHECK(mem >= 0);
    CHECK(map(mem, PAGE, (off_t)at) == MAP_FAILED && errno == EPERM);
    CHECK(munmap(p, 4 * PAGE) == 0);
    CHECK(map(mem, PAGE, (off_t)at) == MAP_FAILED && errno == EPERM);
    CHECK(map(mem, PAGE, 0xfee00000) == MAP_FAILED && errno == EPERM);
    CHECK(map(mem, PAGE, 0) == MAP_FAILED && errno == EPERM);
    close(mem);
    close(fd);
}

// Reads the first number in a file of a function.
static unsigned long long number_in(const char *function, const char *name) {
    char path[512];
    unsigned long long number = 0;
    snprintf(path, sizeof path, PCI "/%s/%s", function, name);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%llx", &number) != 1) number = 0;
        fclose(file);
    }
    return number;
}

// Copies the name of the first function for which `fits` holds.
static int find(int (*fits)(const char *), char *name, size_t bytes) {
    int found = 0;
    DIR *directory = opendir(PCI);
    struct dirent *entry;
    while (directory && !found && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.' || !fits(entry->d_name)) continue;
        snprintf(name, bytes, "%s", entry->d_name);
        found = 1;
    }
    if (directory) closedir(directory);
    return found;
}

static int is_ahci(const char *function) { return number_in(function, "class") == 0x010601; }
static int is_virtio(const char *function) { return number_in(function, "vendor") == 0x1af4; }

// Start of base address `index`, from the lines of `resource`.
static unsigned long long start_of(const char *function, int index) {
    char path[512], line[128] = "";
    snprintf(path, sizeof path, PCI "/%s/resource", function);
    FILE *file = fopen(path, "r");
    for (int i = 0; file && i <= index; i++)
        if (!fgets(line, sizeof line, file)) break;
    if (file) fclose(file);
    return strtoull(line, NULL, 16);
}

#define AHCI_VERSION 0x10

static void the_registers_of_a_function_without_a_driver_can_be_mapped(void) {
    char function[64], path[512];
    if (!find(is_ahci, function, sizeof function)) return;
    snprintf(path, sizeof path, PCI "/%s/resource5", function);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    volatile uint32_t *registers = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    CHECK(registers != MAP_FAILED);
    uint32_t version = registers[AHCI_VERSION / 4];
    CHECK(version >> 16 == 1);
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, fd, PAGE) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == EINVAL);
    int mem = open("/dev/mem", O_RDWR);
    off_t at = (off_t)start_of(function, 5);
    volatile uint32_t *same = mmap(NULL, PAGE, RW, MAP_SHARED, mem, at);
    CHECK(same != MAP_FAILED && same[AHCI_VERSION / 4] == version);
    CHECK(mmap(NULL, 2 * PAGE, RW, MAP_SHARED, mem, at) == MAP_FAILED && errno == EPERM);
    // A system call may read them, too, and a child sees them.
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    CHECK(write(pipes[1], (void *)(registers + AHCI_VERSION / 4), 4) == 4);
    uint32_t read_back = 0;
    CHECK(read(pipes[0], &read_back, 4) == 4 && read_back == version);
    pid_t child = fork();
    if (child == 0) _exit(registers[AHCI_VERSION / 4] != version);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(munmap((void *)registers, PAGE) == 0 && munmap((void *)same, PAGE) == 0);
    close(pipes[0]), close(pipes[1]), close(mem), close(fd);
}

static void the_registers_of_a_driven_function_cannot(void) {
    char function[64], path[512];
    if (!find(is_virtio, function, sizeof function)) return;
    int refused = 0;
    for (int bar = 0; bar < 6; bar++) {
        snprintf(path, sizeof path, PCI "/%s/resource%d", function, bar);
        if (access(path, F_OK) != 0) continue;
        CHECK(open(path, O_RDWR) == -1 && errno == EBUSY);
        refused++;
        int mem = open("/dev/mem", O_RDWR);
        off_t at = (off_t)start_of(function, bar);
        CHECK(map(mem, PAGE, at) == MAP_FAILED && errno == EPERM);
        close(mem);
    }
    CHECK(refused > 0);
}

int main(void) {
    if (access("/dev/phys_contiguous", F_OK) != 0) return 0;
    TEST(memory_is_zero_aligned_and_keeps_what_is_stored);
    TEST(two_mappings_of_an_opening_show_the_same_memory);
    TEST(a_child_shares_it);
    TEST(it_goes_back_with_its_mapping);
    TEST(memory_can_be_uncached_or_combining);
    TEST(what_cannot_be_is_refused);
    TEST(frames_of_the_allocator_cannot_be_borrowed);
    TEST(the_registers_of_a_function_without_a_driver_can_be_mapped);
    TEST(the_registers_of_a_driven_function_cannot);
    return check_status();
}
