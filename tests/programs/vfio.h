// A device for programs: QEMU's `edu` (docs/specs/edu), taken through /dev/vfio. It copies between
// 4 KiB of its own and any address, takes 100 ms for that, and interrupts by MSI.
#ifndef VFIO_H_CHECKS
#define VFIO_H_CHECKS

#include <dirent.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define EDU_NAME "0000:00:1e.0"
#define EDU_ID 0x010000edu
#define EDU_BYTES (1UL << 20)
#define BOTH (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)
#define REGION(n) ((off_t)(n) << 40)
#define CONFIG REGION(VFIO_PCI_CONFIG_REGION_INDEX)

enum { LIVENESS = 0x04, RAISE = 0x60, ACKNOWLEDGE = 0x64, OWN = 0x40000 };

struct edu {
    int container, group, device;
    volatile uint8_t *registers;
};

static char edu_node[300];

static inline int container_open(void) { return open("/dev/vfio/vfio", O_RDWR); }

// A group in a new container with an IOMMU; 0, or -1 with what went wrong in errno.
static inline int edu_group(struct edu *edu, const char *node) {
    edu->container = container_open();
    edu->group = open(node, O_RDWR);
    if (edu->container < 0 || edu->group < 0 ||
        ioctl(edu->group, VFIO_GROUP_SET_CONTAINER, &edu->container) != 0 ||
        ioctl(edu->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) {
        int why = errno;
        if (edu->group >= 0) close(edu->group);
        if (edu->container >= 0) close(edu->container);
        errno = why;
        return -1;
    }
    return 0;
}

static inline void edu_close(struct edu *edu) {
    if (edu->registers) munmap((void *)edu->registers, EDU_BYTES);
    if (edu->device >= 0) close(edu->device);
    close(edu->group);
    close(edu->container);
}

static inline int edu_open(struct edu *edu) {
    edu->registers = NULL;
    if (edu_group(edu, edu_node) != 0) return -1;
    edu->device = ioctl(edu->group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME);
    void *registers = edu->device < 0
                          ? MAP_FAILED
                          : mmap(NULL, EDU_BYTES, RW, MAP_SHARED, edu->device, REGION(0));
    if (registers == MAP_FAILED) {
        int why = errno;
        edu_close(edu);
        errno = why;
        return -1;
    }
    edu->registers = registers;
    uint16_t command = 0x6;
    return pwrite(edu->device, &command, 2, CONFIG + 4) == 2 ? 0 : -1;
}

// Finds its group; 0 if this machine has none for programs.
static inline int edu_find(void) {
    DIR *folder = opendir("/dev/vfio");
    int found = 0;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        struct edu edu = {.device = -1};
        snprintf(edu_node, sizeof edu_node, "/dev/vfio/%s", entry->d_name);
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        if (edu_group(&edu, edu_node) != 0) continue;
        edu.device = ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME);
        found = edu.device >= 0;
        edu_close(&edu);
    }
    if (folder) closedir(folder);
    return found;
}

static inline uint32_t get(struct edu *edu, unsigned at) {
    return *(volatile uint32_t *)(edu->registers + at);
}

static inline void set(struct edu *edu, unsigned at, uint32_t value) {
    *(volatile uint32_t *)(edu->registers + at) = value;
}

static inline void set_long(struct edu *edu, unsigned at, uint64_t value) {
    *(volatile uint64_t *)(edu->registers + at) = value;
}

static inline void wait_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static inline int map_flags(struct edu *edu, void *at, uint64_t iova, uint64_t bytes, int flags) {
    struct vfio_iommu_type1_dma_map map = {sizeof map, flags, (uintptr_t)at, iova, bytes};
    return ioctl(edu->container, VFIO_IOMMU_MAP_DMA, &map);
}

static inline int map_dma(struct edu *edu, void *at, uint64_t iova, uint64_t bytes) {
    return map_flags(edu, at, iova, bytes, BOTH);
}

// How many bytes were unmapped, or -1.
static inline long unmap_dma(struct edu *edu, uint64_t iova, uint64_t bytes) {
    struct vfio_iommu_type1_dma_unmap unmap = {.argsz = sizeof unmap, .iova = iova, .size = bytes};
    return ioctl(edu->container, VFIO_IOMMU_UNMAP_DMA, &unmap) == 0 ? (long)unmap.size : -1;
}

// Begins a transfer between the device's memory and an address.
static inline void begin(struct edu *edu, uint64_t iova, unsigned bytes, int to_machine) {
    set_long(edu, 0x80, to_machine ? OWN : iova);
    set_long(edu, 0x88, to_machine ? iova : OWN);
    set_long(edu, 0x90, bytes);
    set_long(edu, 0x98, to_machine ? 3 : 1);
}

static inline int is_busy(struct edu *edu) { return get(edu, 0x98) & 1; }

static inline void transfer(struct edu *edu, uint64_t iova, unsigned bytes, int to_machine) {
    begin(edu, iova, bytes, to_machine);
    while (is_busy(edu)) wait_ms(5);
}

static inline void *memory(size_t bytes) {
    void *at = mmap(NULL, bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

// Sets what one interrupt of a kind counts up.
static inline int lead(struct edu *edu, unsigned index, unsigned number, int eventfd) {
    struct {
        struct vfio_irq_set set;
        int fd;
    } asked = {{sizeof asked, VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER, index,
                number, 1},
               eventfd};
    return ioctl(edu->device, VFIO_DEVICE_SET_IRQS, &asked);
}

// What an eventfd that does not block has counted, waiting for it for a while.
static inline uint64_t counted(int eventfd, int ms) {
    uint64_t count = 0;
    for (; ms >= 0; ms -= 10) {
        if (read(eventfd, &count, 8) == 8) return count;
        wait_ms(10);
    }
    return 0;
}

#endif
