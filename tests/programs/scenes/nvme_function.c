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
    run(&own, command);
    CHECK(counted(told, 5000) != 0);
    command.words[2] = 4 * BLOCKS - 1;
    CHECK(run(&own, command) != 0 && counted(told, 5000) != 0);
    for (int i = 0; i < 8; i++) list[i] = NOWHERE + i * PAGE;
    command.prp2 = page_at(LIST);
    run(&own, command);
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
    CHECK(admin(&own, (struct command){.opcode = 6, .nsid = OURS, .prp1 = page_at(ANSWER)}) == 0);
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
    CHECK(admin(&own, (struct command){.opcode = 6, .prp1 = page_at(ANSWER), .words = {2}}) == 0);
    uint32_t *active = page_of(&own, ANSWER);
    CHECK(active[0] == OURS && active[1] == 0);
}

static void of_its_registers_the_doorbells_alone_are_its_own(void) {
    struct {
        struct vfio_region_info region;
        struct vfio_region_info_cap_sparse_mmap sparse;
        struct vfio_region_sparse_mmap_area area;
    } info = {.region = {.argsz = sizeof info, .index = 0}};
    int device = own.vfio.device;
    CHECK(ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &info) == 0);
    CHECK(info.region.size == 0x4000 && info.region.cap_offset == sizeof info.region);
    CHECK(info.region.flags & VFIO_REGION_INFO_FLAG_MMAP);
    CHECK(info.sparse.header.id == VFIO_REGION_INFO_CAP_SPARSE_MMAP && info.sparse.nr_areas == 1);
    CHECK(info.area.offset == DOORBELLS && info.area.size == BELL_BYTES);
    for (unsigned long page = 0; page < 64; page++)
        for (int protection = PROT_NONE; protection <= RW; protection++) {
            void *mapped = mmap(NULL, PAGE, protection, MAP_SHARED, device, REGION(0) + page * PAGE);
            CHECK((mapped != MAP_FAILED) == (page == 1));
            if (mapped != MAP_FAILED) munmap(mapped, PAGE);
        }
    CHECK(mmap(NULL, 2 * PAGE, RW, MAP_SHARED, device, REGION(0)) == MAP_FAILED);
    CHECK(mmap(NULL, 2 * PAGE, RW, MAP_SHARED, device, REGION(0) + DOORBELLS) == MAP_FAILED);
    uint32_t word = 0;
    CHECK(pread(device, &word, 4, REGION(0) + 0x2000) == 4 && word == 0xffffffff);
    CHECK(pread(device, &word, 4, REGION(0) + 0x4000) == -1 && errno == EINVAL);
    struct nvme other;
    CHECK(nvme_open(&other, other_name) == -1 && errno == EBUSY);
}

static void registers_of_the_kernels_are_read_and_not_written(void) {
    CHECK(register_of(&own, ASQ) == KERNEL_SQ && register_of(&own, ACQ) == KERNEL_CQ);
    uint8_t before[0x40], after[0x40], zeroes[0x1100] = {0};
    CHECK(pread(own.vfio.device, before, sizeof before, REGION(0)) == sizeof before);
    const uint32_t words[] = {0, 1, 0x460001, 0x4e564d65, 0xffffffff, AREA};
    for (unsigned at = 0; at < DOORBELLS; at += at < 0x100 ? 4 : 0x7c)
        for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
            for (unsigned bytes = 1; bytes <= 4; bytes++)
                CHECK(pwrite(own.vfio.device, &words[i], bytes, REGION(0) + at) == -1 && errno == EPERM);
    CHECK(pwrite(own.vfio.device, zeroes, sizeof zeroes, REGION(0)) == -1 && errno == EPERM);
    CHECK(pwrite(own.vfio.device, zeroes, 8, REGION(0) + DOORBELLS - 4) == -1 && errno == EPERM);
    CHECK(pwrite(own.vfio.device, zeroes, 4, REGION(0) + DOORBELLS + 0x800) == 4);
    CHECK(pread(own.vfio.device, after, sizeof after, REGION(0)) == sizeof after);
    CHECK(memcmp(before, after, sizeof before) == 0 && moves(&own, OURS, 2));
    // It goes on answering to the kernel.
    uint16_t none = 0, both = 6;
    CHECK(pwrite(own.vfio.device, &none, 2, CONFIG + 4) == 2);
    CHECK(enable(&own, 0) == 0 && enable(&own, 1) == 0);
    CHECK(pwrite(own.vfio.device, &both, 2, CONFIG + 4) == 2);
    CHECK(register_of(&own, ASQ) == KERNEL_SQ && nvme_start(&own) && moves(&own, OURS, 2));
    CHECK(enable(&own, 2) == -1 && errno == EINVAL);
    CHECK(ioctl(own.vfio.device, NVME_ADMIN, NULL) == -1 && errno == EFAULT);
}

static void doorbells_of_queues_that_are_not_there_ring_for_nobody(void) {
    for (unsigned bell = 4; bell < BELL_BYTES / 4; bell++) ring(&own, bell, bell);
    for (unsigned bell = 0; bell < 4; bell++) ring(&own, bell, 0xffff);
    CHECK(moves(&own, OURS, 3));
}

static void commands_that_are_no_programs_are_not_sent(void) {
    uint16_t *list = page_of(&own, LIST);
    memset(list, 0, PAGE);
    for (unsigned controller = 0; controller < 4; controller++) {
        list[0] = 1;
        list[1] = (uint16_t)controller;
        for (unsigned nsid = 0; nsid < 5; nsid++)
            for (unsigned action = 0; action < 3; action++) {
                struct command move = {.opcode = 0x15, .nsid = nsid, .prp1 = page_at(LIST), .words = {action}};
                CHECK(admin(&own, move) == -1 && errno == EPERM);
            }
        for (unsigned action = 0; action < 0x10a; action++) {
            struct command rule = {.opcode = 0x1c, .words = {controller << 16 | action, 2}};
            CHECK(admin(&own, rule) == -1 && errno == EPERM);
        }
    }
    // Whatever it is: to delete, to create, to ask and to set are let through, with a queue or the feature of their number.
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        int is_known = opcode < 2 || opcode == 4 || opcode == 5 || opcode == 6 || opcode == 9 || opcode == 0x7c;
        for (unsigned word = 0; word < 32; word++) {
            struct command command = {.opcode = (uint8_t)opcode, .nsid = OURS, .prp1 = page_at(ANSWER), .words = {word}};
            if (!is_known || (opcode == 6 && word > 2) || (opcode == 9 && word != 7))
                CHECK(admin(&own, command) == -1 && errno == EPERM);
        }
    }
    const struct command wrong[] = {
        {.opcode = 0},
        {.opcode = 4},
        {.opcode = 5, .prp1 = page_at(DATA), .words = {15 << 16, 1}},
        {.opcode = 1, .prp1 = page_at(DATA), .words = {15 << 16 | 1, 1}},
        {.opcode = 9, .words = {0x80000007, 0x10001}},
        {.opcode = 9, .words = {7, 0x10001, 1}},
        {.opcode = 6, .prp1 = page_at(ANSWER), .words = {1 << 16 | 1}},
        {.opcode = 6, .prp1 = page_at(ANSWER), .prp2 = page_at(LIST), .words = {1}},
        {.opcode = 0x7c, .prp1 = page_at(ANSWER), .prp2 = page_at(LIST), .words = {1}},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(admin(&own, wrong[i]) == -1 && errno == EPERM);
    CHECK(moves(&own, OURS, 4));
}

static void queues_beyond_its_share_are_refused(void) {
    for (unsigned queue = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) + 1; queue < 80; queue++) {
        uint32_t shape = (RING - 1) << 16 | queue;
        CHECK(admin(&own, (struct command){.opcode = 5, .prp1 = page_at(DATA), .words = {shape, 1}}) > 0);
        CHECK(admin(&own, (struct command){.opcode = 0, .words = {queue}}) > 0);
        CHECK(admin(&own, (struct command){.opcode = 4, .words = {queue}}) > 0);
    }
    CHECK(moves(&own, OURS, 4));
}

// What would take the kernel's namespace from it, for all entries of a ring.
static void forge(void) {
    uint16_t *list = page_of(&own, LIST);
    memset(list, 0, PAGE);
    list[0] = 1;
    struct command detach = {.opcode = 0x15, .nsid = KERNELS, .prp1 = page_at(LIST), .words = {1}};
    for (unsigned place = 0; place < PAGE / 64; place++)
        fill((uint32_t *)page_of(&own, DATA) + place * WORDS, &detach, (uint16_t)place);
}

// Whether blocks of our namespace, as many as a page has, are zeroes.
static int are_zeroes_at(uint64_t first) {
    uint8_t *data = page_of(&own, DATA);
    memset(data, 0xff, PAGE);
    if (transfer_at(&own, 0, OURS, first, BLOCKS, page_at(DATA)) != 0) return 0;
    for (unsigned at = 0; at < PAGE; at++)
        if (data[at] != 0) return 0;
    return 1;
}

static void ring_the_kernels(void) {
    for (uint32_t tail = 1; tail <= 40; tail++) ring(&own, 0, tail % 33);
    ring(&own, 0, 0xffff);
    ring(&own, 0, 0);
}

static void the_kernels_commands_are_not_forged(void) {
    forge();
    CHECK(transfer_at(&own, 1, OURS, 4096, BLOCKS, page_at(DATA)) == 0);
    // Neither the controller nor QEMU's IOMMU says so where a page may be read; but the commands are not there.
    transfer_at(&own, 0, OURS, 4096, BLOCKS, KERNEL_SQ);
    ring_the_kernels();
    CHECK(transfer_at(&own, 1, OURS, 4104, BLOCKS, KERNEL_SQ) == 0);
    CHECK(are_zeroes_at(4104));
    // Completions instead of data.
    uint32_t shape = (RING - 1) << 16 | 1;
    CHECK(nvme_start(&own));
    CHECK(admin(&own, (struct command){.opcode = 0, .words = {1}}) == 0);
    CHECK(admin(&own, (struct command){.opcode = 4, .words = {1}}) == 0);
    CHECK(admin(&own, (struct command){.opcode = 5, .prp1 = KERNEL_SQ, .words = {shape, 1}}) == 0);
    CHECK(admin(&own, (struct command){.opcode = 1, .prp1 = page_at(IO_SQ), .words = {shape, 1 << 16 | 1}}) == 0);
    own.tail = own.head = 0;
    submit(&own, &(struct command){.opcode = 0, .nsid = OURS});
    wait_ms(50);
    ring_the_kernels();
    CHECK(map_dma(&own.vfio, page_of(&own, DATA), KERNEL_SQ, PAGE) == -1 && errno == EINVAL);
    CHECK(map_dma(&own.vfio, page_of(&own, DATA), KERNEL_SQ - PAGE, 2 * PAGE) == -1);
    CHECK(unmap_dma(&own.vfio, KERNEL_SQ, 2 * PAGE) <= 0);
    CHECK(nvme_start(&own) && moves(&own, OURS, 6));
}

static void completions_that_it_forges_hurt_itself_alone(void) {
    struct command ask = {.opcode = 6, .prp1 = page_at(ANSWER), .words = {1}};
    for (unsigned seed = 0; seed < 8; seed++) {
        uint32_t *data = page_of(&own, DATA);
        for (unsigned at = 0; at < PAGE / 4; at++) data[at] = seed < 4 ? seed << 16 | at / 4 : 0x9e3779b9 * (at + seed);
        CHECK(transfer_at(&own, 1, OURS, 4096, BLOCKS, page_at(DATA)) == 0);
        CHECK(transfer_at(&own, 0, OURS, 4096, BLOCKS, KERNEL_CQ) == 0);
        for (int turn = 0; turn < 3; turn++) admin(&own, ask);
        CHECK(nvme_start(&own) && admin(&own, ask) == 0 && moves(&own, OURS, (uint8_t)seed));
    }
    ring_the_kernels();
    admin(&own, ask);
    CHECK(nvme_start(&own) && moves(&own, OURS, 9));
    // Queues of its own that make no sense: the controller is brought up again.
    uint32_t random = 1;
    for (int round = 0; round < 20; round++) {
        uint32_t *words = page_of(&own, IO_SQ);
        for (unsigned at = 0; at < 2 * PAGE / 4; at++) words[at] = random = random * 1664525 + 1013904223;
        for (unsigned place = 0; place < RING; place++) {
            // Not to write anywhere but to a namespace that is not ours.
            ((uint8_t *)words)[place * 64] = (uint8_t)(place % 3);
            words[place * WORDS + 1] = place % 2 ? KERNELS : OTHERS;
        }
        ring(&own, 2, (uint32_t)round % RING);
        CHECK(nvme_start(&own));
    }
    CHECK(moves(&own, OURS, 10));
}

static void a_reset_of_the_function_leaves_its_namespace_and_nothing_else(void) {
    struct command read = {.opcode = 2, .nsid = OURS, .prp1 = page_at(DATA), .words = {0, 0, BLOCKS - 1}};
    CHECK(ioctl(own.vfio.device, VFIO_DEVICE_RESET) == 0);
    CHECK((register_of(&own, CSTS) & 3) == 0);
    CHECK(admin(&own, (struct command){.opcode = 6, .prp1 = page_at(ANSWER), .words = {1}}) == -1 && errno == EIO);
    memset(page_of(&own, DATA), 0xee, PAGE);
    submit(&own, &read);
    CHECK(ended(&own, 100) == -1);
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
            // Every other one in the middle of what the kernel does for it, the others with reads under way.
            if (round % 2 && write(pipes[1], "k", 1) != 1) _exit(1);
            while (round % 2) nvme_start(&nvme);
            struct command read = {.opcode = 2, .nsid = OURS, .prp1 = page_at(DATA), .prp2 = page_at(LIST)};
            uint64_t *list = page_of(&nvme, LIST);
            for (int page = 0; page < 55; page++) list[page] = page_at(DATA + 1 + page % 50);
            read.words[2] = 48 * BLOCKS - 1;
            for (int count = 0; count < RING - 1; count++) {
                submit(&nvme, &read);
                if (count == round && write(pipes[1], "k", 1) != 1) _exit(1);
            }
            for (;;) pause();
        }
        close(pipes[1]);
        CHECK(read(pipes[0], &byte, 1) == 1);
        if (round % 2) wait_ms(3 * round);
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child);
        close(pipes[0]);
        CHECK(nvme_open(&own, own_name) == 0);
        CHECK(!(register_of(&own, CC) & 1) && (register_of(&own, CSTS) & 3) == 0);
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
    submit(&own, &read);
    ring(&own, 0, 1);
    CHECK(ended(&own, 100) == -1);
    for (unsigned at = 0; at < PAGE; at++) CHECK(data[at] == 0xdd);
    CHECK(ioctl(own.vfio.device, VFIO_DEVICE_RESET) == -1 && errno == ENODEV);
    CHECK(enable(&own, 1) == -1 && errno == ENODEV && enable(&own, 0) == -1);
    CHECK(admin(&own, (struct command){.opcode = 6, .prp1 = page_at(ANSWER), .words = {1}}) == -1 && errno == ENODEV);
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
    TEST(of_its_registers_the_doorbells_alone_are_its_own);
    TEST(registers_of_the_kernels_are_read_and_not_written);
    TEST(doorbells_of_queues_that_are_not_there_ring_for_nobody);
    TEST(commands_that_are_no_programs_are_not_sent);
    TEST(queues_beyond_its_share_are_refused);
    TEST(the_kernels_commands_are_not_forged);
    TEST(completions_that_it_forges_hurt_itself_alone);
    TEST(a_reset_of_the_function_leaves_its_namespace_and_nothing_else);
    TEST(ones_that_are_killed_leave_a_clean_function);
    TEST(what_is_mapped_after_it_was_taken_away_does_nothing);
    close(stop);
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "a neighbour has its own blocks all the time");
    return check_status();
}
