// A driver for one queue of a virtual NVMe function that the program took through /dev/vfio: as little as it takes to say
// anything to the controller, also what no driver should. The kernel has the admin queue and all registers but the doorbells.
#ifndef NVME_H_CHECKS
#define NVME_H_CHECKS

#include "vfio.h"

#define BELL_BYTES 0x1000UL
#define AREA_BYTES (64 * PAGE)
// Where the device sees the area, in pages: the rings, a page for answers, and data from DATA on.
#define AREA 0x10000000UL
// Where it sees the rings of the kernel's admin queue.
#define KERNEL_SQ 0xfef00000UL
#define KERNEL_CQ 0xfef01000UL
enum { IO_SQ, IO_CQ, ANSWER, LIST, DATA = 8 };
enum { CAP = 0x00, CC = 0x14, CSTS = 0x1c, NSSR = 0x20, AQA = 0x24, ASQ = 0x28, ACQ = 0x30, DOORBELLS = 0x1000 };
enum { RING = 16, WORDS = 16 };

#define NVME_ENABLE _IO(';', 200)
#define NVME_ADMIN _IO(';', 201)

struct nvme {
    struct edu vfio;
    volatile uint32_t *bells;
    uint8_t *area;
    unsigned tail, head, phase;
    uint16_t next;
};

struct command {
    uint8_t opcode;
    uint32_t nsid;
    uint64_t prp1, prp2;
    uint32_t words[6];
};

static inline uint64_t page_at(unsigned page) { return AREA + page * PAGE; }

static inline void *page_of(struct nvme *nvme, unsigned page) { return nvme->area + page * PAGE; }

static inline uint32_t register_of(struct nvme *nvme, unsigned at) {
    uint32_t word = 0xffffffff;
    return pread(nvme->vfio.device, &word, 4, REGION(0) + at) == 4 ? word : 0xffffffff;
}

// Rings a doorbell, of which each queue has two.
static inline void ring(struct nvme *nvme, unsigned bell, uint32_t value) {
    __sync_synchronize();
    nvme->bells[bell] = value;
}

static inline void fill(uint32_t *entry, const struct command *command, uint16_t id) {
    memset(entry, 0, 64);
    entry[0] = command->opcode | (uint32_t)id << 16;
    entry[1] = command->nsid;
    memcpy(entry + 6, &command->prp1, 8);
    memcpy(entry + 8, &command->prp2, 8);
    memcpy(entry + 10, command->words, 24);
}

static inline void submit(struct nvme *nvme, const struct command *command) {
    fill((uint32_t *)page_of(nvme, IO_SQ) + nvme->tail * WORDS, command, nvme->next++);
    nvme->tail = (nvme->tail + 1) % RING;
    ring(nvme, 2, nvme->tail);
}

// The status of the next completion, without its phase; -1 if none comes within so many milliseconds.
static inline int ended(struct nvme *nvme, int ms) {
    volatile uint32_t *entry = (uint32_t *)page_of(nvme, IO_CQ) + nvme->head * 4;
    while ((entry[3] >> 16 & 1) != nvme->phase) {
        if (ms-- <= 0) return -1;
        wait_ms(1);
    }
    int status = entry[3] >> 17 & 0x7ff;
    nvme->head = (nvme->head + 1) % RING;
    if (nvme->head == 0) nvme->phase ^= 1;
    ring(nvme, 3, nvme->head);
    return status;
}

static inline int run(struct nvme *nvme, struct command command) {
    submit(nvme, &command);
    return ended(nvme, 5000);
}

// Has the kernel send an admin command; its status, or -1 with what the kernel says in errno.
static inline int admin(struct nvme *nvme, struct command command) {
    struct {
        uint32_t argsz, status, entry[16], result, reserved;
    } asked = {.argsz = sizeof asked};
    fill(asked.entry, &command, nvme->next++);
    return ioctl(nvme->vfio.device, NVME_ADMIN, &asked) == 0 ? (int)asked.status : -1;
}

static inline int enable(struct nvme *nvme, unsigned long is_on) {
    return ioctl(nvme->vfio.device, NVME_ENABLE, is_on);
}

// Begins with new rings; 0 if the controller does not.
static inline int nvme_start(struct nvme *nvme) {
    if (enable(nvme, 1) != 0 || (register_of(nvme, CSTS) & 3) != 1) return 0;
    memset(nvme->area, 0, DATA * PAGE);
    nvme->tail = nvme->head = 0;
    nvme->phase = 1;
    uint32_t shape = (RING - 1) << 16 | 1;
    return admin(nvme, (struct command){.opcode = 5, .prp1 = page_at(IO_CQ), .words = {shape, 1}}) == 0 &&
           admin(nvme, (struct command){.opcode = 1, .prp1 = page_at(IO_SQ), .words = {shape, 1 << 16 | 1}}) == 0;
}

// Takes the function at a place as in /sys/bus/pci/devices; 0, or -1 with what went wrong in errno.
static inline int nvme_open(struct nvme *nvme, const char *name) {
    char path[200], to[200], node[300];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/iommu_group", name);
    ssize_t bytes = readlink(path, to, sizeof to - 1);
    if (bytes < 0) return -1;
    to[bytes] = 0;
    snprintf(node, sizeof node, "/dev/vfio/%s", strrchr(to, '/') + 1);
    memset(nvme, 0, sizeof *nvme);
    struct edu *vfio = &nvme->vfio;
    if (edu_group(vfio, node) != 0) return -1;
    vfio->device = ioctl(vfio->group, VFIO_GROUP_GET_DEVICE_FD, name);
    void *bells = vfio->device < 0
                      ? MAP_FAILED
                      : mmap(NULL, BELL_BYTES, RW, MAP_SHARED, vfio->device, REGION(0) + DOORBELLS);
    uint16_t command = 0x6;
    nvme->area = memory(AREA_BYTES);
    if (bells == MAP_FAILED || !nvme->area || map_dma(vfio, nvme->area, AREA, AREA_BYTES) != 0 ||
        pwrite(vfio->device, &command, 2, CONFIG + 4) != 2) {
        int why = errno;
        if (vfio->device >= 0) close(vfio->device);
        close(vfio->group);
        close(vfio->container);
        errno = why;
        return -1;
    }
    nvme->bells = bells;
    return 0;
}

static inline void nvme_close(struct nvme *nvme) {
    munmap((void *)nvme->bells, BELL_BYTES);
    close(nvme->vfio.device);
    close(nvme->vfio.group);
    close(nvme->vfio.container);
    munmap(nvme->area, AREA_BYTES);
}

// Blocks of 512 bytes to or from an address of the device's.
static inline int transfer_at(struct nvme *nvme, int is_write, uint32_t nsid, uint64_t first,
                              unsigned blocks, uint64_t at) {
    struct command command = {.opcode = is_write ? 1 : 2,
                              .nsid = nsid,
                              .prp1 = at,
                              .words = {first, first >> 32, blocks - 1}};
    return run(nvme, command);
}

#endif
