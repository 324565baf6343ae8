// A driver for one queue of an NVMe function that the program took through /dev/vfio: as little as it takes to say
// anything to the controller, also what no driver should.
#ifndef NVME_H_CHECKS
#define NVME_H_CHECKS

#include "vfio.h"

#define NVME_BYTES 0x2000UL
#define AREA_BYTES (64 * PAGE)
// Where the device sees the area, in pages: the rings, a page for answers, and data from DATA on.
#define AREA 0x10000000UL
enum { ADMIN_SQ, ADMIN_CQ, IO_SQ, IO_CQ, ANSWER, LIST, DATA = 8 };
enum { CAP = 0x00, CC = 0x14, CSTS = 0x1c, AQA = 0x24, ASQ = 0x28, ACQ = 0x30, DOORBELLS = 0x1000 };
enum { RING = 16, WORDS = 16 };

struct nvme {
    struct edu vfio;
    uint8_t *area;
    unsigned tail[2], head[2], phase[2];
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

// Waits until the lowest bits of the status are so; 0 if they are not within two seconds.
static inline int becomes(struct nvme *nvme, uint32_t status) {
    for (int turn = 0; turn < 2000; turn++) {
        if ((get(&nvme->vfio, CSTS) & 3) == status) return 1;
        wait_ms(1);
    }
    return 0;
}

static inline void submit(struct nvme *nvme, int queue, const struct command *command) {
    uint32_t *entry = (uint32_t *)page_of(nvme, queue ? IO_SQ : ADMIN_SQ) + nvme->tail[queue] * WORDS;
    memset(entry, 0, 64);
    entry[0] = command->opcode | (uint32_t)nvme->next++ << 16;
    entry[1] = command->nsid;
    memcpy(entry + 6, &command->prp1, 8);
    memcpy(entry + 8, &command->prp2, 8);
    memcpy(entry + 10, command->words, 24);
    nvme->tail[queue] = (nvme->tail[queue] + 1) % RING;
    __sync_synchronize();
    set(&nvme->vfio, DOORBELLS + 8 * queue, nvme->tail[queue]);
}

// The status of the next completion, without its phase; -1 if none comes within so many milliseconds.
static inline int ended(struct nvme *nvme, int queue, int ms) {
    volatile uint32_t *entry =
        (uint32_t *)page_of(nvme, queue ? IO_CQ : ADMIN_CQ) + nvme->head[queue] * 4;
    while ((entry[3] >> 16 & 1) != nvme->phase[queue]) {
        if (ms-- <= 0) return -1;
        wait_ms(1);
    }
    int status = entry[3] >> 17 & 0x7ff;
    nvme->head[queue] = (nvme->head[queue] + 1) % RING;
    if (nvme->head[queue] == 0) nvme->phase[queue] ^= 1;
    set(&nvme->vfio, DOORBELLS + 8 * queue + 4, nvme->head[queue]);
    return status;
}

static inline int run(struct nvme *nvme, int queue, struct command command) {
    submit(nvme, queue, &command);
    return ended(nvme, queue, 5000);
}

// Begins with new rings; 0 if the controller does not.
static inline int nvme_start(struct nvme *nvme) {
    struct edu *vfio = &nvme->vfio;
    set(vfio, CC, 0);
    if (!becomes(nvme, 0)) return 0;
    memset(nvme->area, 0, DATA * PAGE);
    for (int queue = 0; queue < 2; queue++) {
        nvme->tail[queue] = nvme->head[queue] = 0;
        nvme->phase[queue] = 1;
    }
    set(vfio, AQA, (RING - 1) << 16 | (RING - 1));
    set(vfio, ASQ, page_at(ADMIN_SQ));
    set(vfio, ASQ + 4, 0);
    set(vfio, ACQ, page_at(ADMIN_CQ));
    set(vfio, ACQ + 4, 0);
    set(vfio, CC, 6 << 16 | 4 << 20 | 1);
    if (!becomes(nvme, 1)) return 0;
    uint32_t shape = (RING - 1) << 16 | 1;
    return run(nvme, 0, (struct command){.opcode = 5, .prp1 = page_at(IO_CQ), .words = {shape, 1}}) == 0 &&
           run(nvme, 0, (struct command){.opcode = 1, .prp1 = page_at(IO_SQ), .words = {shape, 1 << 16 | 1}}) == 0;
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
    void *registers = vfio->device < 0
                          ? MAP_FAILED
                          : mmap(NULL, NVME_BYTES, RW, MAP_SHARED, vfio->device, REGION(0));
    uint16_t command = 0x6;
    nvme->area = memory(AREA_BYTES);
    if (registers == MAP_FAILED || !nvme->area || map_dma(vfio, nvme->area, AREA, AREA_BYTES) != 0 ||
        pwrite(vfio->device, &command, 2, CONFIG + 4) != 2) {
        int why = errno;
        if (vfio->device >= 0) close(vfio->device);
        close(vfio->group);
        close(vfio->container);
        errno = why;
        return -1;
    }
    vfio->registers = registers;
    return 0;
}

static inline void nvme_close(struct nvme *nvme) {
    munmap((void *)nvme->vfio.registers, NVME_BYTES);
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
    return run(nvme, 1, command);
}

#endif
