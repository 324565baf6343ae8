// A virtual function of an NVMe controller, taken through /dev/vfio, tries to reach what is not its own, while a
// neighbour on another function of the same controller moves blocks and looks whether they are right. Its arguments are
// the places of both. Namespace 1 is the kernel's, 2 is ours, 3 the neighbour's.
#include <signal.h>
#include <sys/wait.h>

#include "nvme.h"

enum { KERNELS = 1, OURS = 2, OTHERS = 3, BLOCKS = 8 };
#define NOWHERE 0x50000000UL

static const char *own_name, *other_name;
static struct nvme own;

static int moves(struct nvme *nvme, unsigned nsid, uint8_t seed) {
    uint8_t *data = page_of(nvme, DATA), *back = page_of(nvme, DATA + 1);
    for (unsigned at = 0; at < PAGE; at++) data[at] = (uint8_t)(at * 7 + seed);
    memset(back, 0, PAGE);
    return transfer_at(nvme, 1, nsid, seed * 8, BLOCKS, page_at(DATA)) == 0 &&
           transfer_at(nvme, 0, nsid, seed * 8, BLOCKS, page_at(DATA + 1)) == 0 &&
           memcmp(data, back, PAGE) == 0;
}

// Moves blocks until it is told to stop; ends with 0 if all were right.
static pid_t neighbour(int *stop) {
    int pipes[2], ready[2];
    char byte = 0;
    if (pipe2(pipes, O_NONBLOCK) != 0 || pipe(ready) != 0) return -1;
    pid_t child = fork();
    if (child != 0) {
        close(ready[1]);
        *stop = pipes[1];
        int is_ready = read(ready[0], &byte, 1) == 1;
        close(ready[0]);
        close(pipes[0]);
        return is_ready ? child : -1;
    }
    struct nvme nvme;
    if (nvme_open(&nvme, other_name) != 0 || !nvme_start(&nvme)) _exit(1);
    close(pipes[1]);
    uint8_t round = 0;
    do {
        if (!moves(&nvme, OTHERS, round++)) _exit(2);
        if (round == 1 && write(ready[1], "r", 1) != 1) _exit(3);
    } while (read(pipes[0], &byte, 1) != 0);
    _exit(0);
}

static void blocks_go_to_its_namespace_and_back(void) {
    for (unsigned seed = 0; seed < 20; seed++) CHECK(moves(&own, OURS, seed));
}

static void addresses_that_are_not_mapped_are_refused_and_told(void) {
    int told = eventfd(0, EFD_NONBLOCK);
    CHECK(lead(&own.vfio, VFIO_PCI_ERR_IRQ_INDEX, 0, told) == 0);
    uint8_t *data = page_of(&own, DATA);
    memset(data, 0x5a, 4 * PAGE);
    uint64_t *list = page_of(&own, LIST);
    const uint64_t wild[] = {NOWHERE, 0, AREA - PAGE, AREA + AREA_BYTES, 1UL << 38, 0x100000};
    for (unsigned i = 0; i < sizeof wild / sizeof *wild; i++)
        for (int is_write = 0; is_write < 2; is_write++) {
            transfer_at(&own, is_write, OURS, 0, BLOCKS, wild[i]);
            CHECK(counted(told, 5000) != 0);
        }
    // A second page, and a list of pages, that lie nowhere.
    struct command command = {.opcode = 2, .nsid = OURS, .prp1 = page_at(DATA), .prp2 = NOWHERE};
    command.words[2] = 2 * BLOCKS - 1;
    run(&own, 1, command);
    CHECK(counted(told, 5000) != 0);
    command.words[2] = 4 * BLOCKS - 1;
    CHECK(run(&own, 1, command) != 0 && counted(told, 5000) != 0);
    for (int i = 0; i < 8; i++) list[i] = NOWHERE + i * PAGE;
    command.prp2 = page_at(LIST);
    run(&own, 1, command);
    CHECK(counted(told, 5000) != 0);
    CHECK(lead(&own.vfio, VFIO_PCI_ERR_IRQ_INDEX, 0, -1) == 0);
    close(told);
    CHECK(moves(&own, OURS, 1));
}

static void memory_that_is_only_to_be_read_is_not_written(void) {
    uint8_t *page = memory(PAGE);
    CHECK(page && map_flags(&own.vfio, page, NOWHERE, PAGE, VFIO_DMA_MAP_FLAG_READ) == 0);
    memset(page, 0x77, PAGE);
    CHECK(transfer_at(&own, 1, OURS, 64, BLOCKS, NOWHERE) == 0);
    memset(page_of(&own, DATA), 0x11, PAGE);
    CHECK(transfer_at(&own, 1, OURS, 72, BLOCKS, page_at(DATA)) == 0);
    transfer_at(&own, 0, OURS, 72, BLOCKS, NOWHERE);
    for (unsigned at = 0; at < PAGE; at++) CHECK(page[at] == 0x77);
    CHECK(unmap_dma(&own.vfio, NOWHERE, PAGE) == (long)PAGE);
    // What was unmapped is not reached any more, though it is still the program's.
    transfer_at(&own, 0, OURS, 72, BLOCKS, NOWHERE);
    for (unsigned at = 0; at < PAGE; at++) CHECK(page[at] == 0x77);
    munmap(page, PAGE);
}

static void blocks_beyond_the_namespace_are_refused(void) {
    uint64_t blocks;
    CHECK(run(&own, 0, (struct command){.opcode = 6, .nsid = OURS, .prp1 = page_at(ANSWER)}) == 0);
    memcpy(&blocks, page_of(&own, ANSWER), 8);
    CHECK(blocks != 0);
    const uint64_t firsts[] = {blocks, blocks - 7, blocks + 1000, 1UL << 40, ~0UL, ~0UL - 6, 1UL << 63};
    for (unsigned i = 0; i < sizeof firsts / sizeof *firsts; i++)
        for (int is_write = 0; is_write < 2; is_write++)
            CHECK(transfer_at(&own, is_write, OURS, firsts[i], BLOCKS, page_at(DATA)) == 0x80);
    CHECK(transfer_at(&own, 0, OURS, blocks - 8, BLOCKS, page_at(DATA)) == 0);
}

static void namespaces_of_others_are_unknown(void) {
    const unsigned all[] = {0, KERNELS, OTHERS, 4, 255, 256, 257, 0x10002, 0xfffffffe, 0xffffffff};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        for (int is_write = 0; is_write < 2; is_write++) {
            int status = transfer_at(&own, is_write, all[i], 0, BLOCKS, page_at(DATA));
            CHECK(status == 0x0b || status == 0x02);
        }
    }
    CHECK(run(&own, 0, (struct command){.opcode = 6, .prp1 = page_at(ANSWER), .words = {2}}) == 0);
    uint32_t *active = page_of(&own, ANSWER);
    CHECK(active[0] == OURS && active[1] == 0);
}

static void registers_are_its_own_and_the_table_of_messages_nobodys(void) {
    struct {
        struct vfio_region_info region;
        struct vfio_region_info_cap_sparse_mmap sparse;
        struct vfio_region_sparse_mmap_area area;
    } info = {.region = {.argsz = sizeof info, .index = 0}};
    int device = own.vfio.device;
    CHECK(ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &info) == 0);
    CHECK(info.region.size == 2 * NVME_BYTES && info.region.cap_offset == sizeof info.region);
    CHECK(info.region.flags & VFIO_REGION_INFO_FLAG_MMAP);
    CHECK(info.sparse.header.id == VFIO_REGION_INFO_CAP_SPARSE_MMAP && info.sparse.nr_areas == 1);
    CHECK(info.area.offset == 0 && info.area.size == NVME_BYTES);
    for (unsigned long page = 0; page < 64; page++) {
        off_t at = REGION(0) + page * PAGE;
        void *mapped = mmap(NULL, PAGE, RW, MAP_SHARED, device, at);
        CHECK((mapped != MAP_FAILED) == (page < 2));
        if (mapped != MAP_FAILED) munmap(mapped, PAGE);
    }
    CHECK(mmap(NULL, 2 * NVME_BYTES, RW, MAP_SHARED, device, REGION(0)) == MAP_FAILED);
    uint32_t word = 0;
    CHECK(pread(device, &word, 4, REGION(0) + NVME_BYTES) == 4 && word == 0xffffffff);
    CHECK(pread(device, &word, 4, REGION(0) + 2 * NVME_BYTES) == -1 && errno == EINVAL);
    struct nvme other;
    CHECK(nvme_open(&other, other_name) == -1 && errno == EBUSY);
}

static void doorbells_of_queues_that_are_not_there_ring_for_nobody(void) {
    for (unsigned at = DOORBELLS + 16; at < NVME_BYTES; at += 4) set(&own.vfio, at, at);
    for (unsigned bell = 0; bell < 4; bell++) set(&own.vfio, DOORBELLS + 4 * bell, 0xffff);
    CHECK(moves(&own, OURS, 3));
}

static void commands_that_rule_others_are_refused(void) {
    for (unsigned controller = 0; controller < 4; controller++) {
        const unsigned actions[] = {1, 7, 8, 0x108, 9};
        for (unsigned i = 0; i < 5; i++) {
            struct command rule = {.opcode = 0x1c, .words = {controller << 16 | actions[i], 2}};
            CHECK(run(&own, 0, rule) > 0);
        }
    }
    // Queues beyond its share, those that only others have, and vectors beyond its table.
    for (unsigned queue = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) + 1; queue < 80; queue++) {
        uint32_t shape = (RING - 1) << 16 | queue;
        CHECK(run(&own, 0, (struct command){.opcode = 5, .prp1 = page_at(DATA), .words = {shape, 1}}) > 0);
        CHECK(run(&own, 0, (struct command){.opcode = 0, .words = {queue}}) > 0);
        CHECK(run(&own, 0, (struct command){.opcode = 4, .words = {queue}}) > 0);
    }
    // A namespace that somebody has is nobody else's.
    uint16_t *list = page_of(&own, LIST);
    memset(list, 0, PAGE);
    list[0] = list[1] = 1;
    const unsigned taken[] = {KERNELS, OTHERS};
    for (int i = 0; i < 2; i++) {
        struct command attach = {.opcode = 0x15, .nsid = taken[i], .prp1 = page_at(LIST)};
        CHECK(run(&own, 0, attach) > 0);
    }
    CHECK(moves(&own, OURS, 4));
}

static void a_reset_of_the_function_leaves_its_namespace_and_nothing_else(void) {
    struct command read = {.opcode = 2, .nsid = OURS, .prp1 = page_at(DATA), .words = {0, 0, BLOCKS - 1}};
    CHECK(ioctl(own.vfio.device, VFIO_DEVICE_RESET) == 0);
    CHECK((get(&own.vfio, CSTS) & 3) == 0);
    memset(page_of(&own, DATA), 0xee, PAGE);
    submit(&own, 1, &read);
    CHECK(ended(&own, 1, 100) == -1);
    uint8_t *data = page_of(&own, DATA);
    for (unsigned at = 0; at < PAGE; at++) CHECK(data[at] == 0xee);
    CHECK(nvme_start(&own) && moves(&own, OURS, 5));
}

static void ones_that_are_killed_leave_a_clean_function(void) {
    nvme_close(&own);
    for (int round = 0; round < 10; round++) {
        int pipes[2];
        char byte;
        CHECK(pipe(pipes) == 0);
        pid_t child = fork();
        if (child == 0) {
            struct nvme nvme;
            if (nvme_open(&nvme, own_name) != 0 || !nvme_start(&nvme)) _exit(1);
            struct command read = {.opcode = 2, .nsid = OURS, .prp1 = page_at(DATA), .prp2 = page_at(LIST)};
            uint64_t *list = page_of(&nvme, LIST);
            for (int page = 0; page < 55; page++) list[page] = page_at(DATA + 1 + page % 50);
            read.words[2] = 48 * BLOCKS - 1;
            for (int count = 0; count < RING - 1; count++) {
                submit(&nvme, 1, &read);
                if (count == round && write(pipes[1], "k", 1) != 1) _exit(1);
            }
            for (;;) pause();
        }
        close(pipes[1]);
        CHECK(read(pipes[0], &byte, 1) == 1);
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
        close(pipes[0]);
        CHECK(nvme_open(&own, own_name) == 0);
        CHECK(!(get(&own.vfio, CC) & 1) && (get(&own.vfio, CSTS) & 3) == 0);
        CHECK(nvme_start(&own) && moves(&own, OURS, (uint8_t)(10 + round)));
        nvme_close(&own);
    }
    CHECK(nvme_open(&own, own_name) == 0 && nvme_start(&own));
}

static int bind_to(const char *what) {
    char path[100];
    snprintf(path, sizeof path, "/sys/bus/pci/drivers/vfio-pci/%s", what);
    int file = open(path, O_WRONLY);
    int is_written = write(file, own_name, strlen(own_name)) == (ssize_t)strlen(own_name);
    close(file);
    return is_written;
}

static void what_is_mapped_after_it_was_taken_away_does_nothing(void) {
    struct command read = {.opcode = 2, .nsid = OURS, .prp1 = page_at(DATA), .words = {0, 0, BLOCKS - 1}};
    uint8_t *data = page_of(&own, DATA);
    CHECK(moves(&own, OURS, 6) && bind_to("unbind"));
    wait_ms(200);
    memset(data, 0xdd, PAGE);
    set(&own.vfio, CC, 6 << 16 | 4 << 20 | 1);
    submit(&own, 0, &read);
    submit(&own, 1, &read);
    CHECK(ended(&own, 1, 100) == -1);
    for (unsigned at = 0; at < PAGE; at++) CHECK(data[at] == 0xdd);
    CHECK(ioctl(own.vfio.device, VFIO_DEVICE_RESET) == -1 && errno == ENODEV);
    nvme_close(&own);
    struct nvme none;
    CHECK(nvme_open(&none, own_name) == -1);
    CHECK(bind_to("bind") && nvme_open(&own, own_name) == 0 && nvme_start(&own));
    CHECK(moves(&own, OURS, 7));
}

int main(int argc, char **argv) {
    int stop, status;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3) return 2;
    own_name = argv[1];
    other_name = argv[2];
    pid_t child = neighbour(&stop);
    if (child < 0 || nvme_open(&own, own_name) != 0 || !nvme_start(&own)) {
        printf("not ok the functions can be had (errno %d)\n", errno);
        return 1;
    }
    TEST(blocks_go_to_its_namespace_and_back);
    TEST(addresses_that_are_not_mapped_are_refused_and_told);
    TEST(memory_that_is_only_to_be_read_is_not_written);
    TEST(blocks_beyond_the_namespace_are_refused);
    TEST(namespaces_of_others_are_unknown);
    TEST(registers_are_its_own_and_the_table_of_messages_nobodys);
    TEST(doorbells_of_queues_that_are_not_there_ring_for_nobody);
    TEST(commands_that_rule_others_are_refused);
    TEST(a_reset_of_the_function_leaves_its_namespace_and_nothing_else);
    TEST(ones_that_are_killed_leave_a_clean_function);
    TEST(what_is_mapped_after_it_was_taken_away_does_nothing);
    close(stop);
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "a neighbour has its own blocks all the time");
    return check_status();
}
