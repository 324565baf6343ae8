// A program drives a device through /dev/vfio: registers, memory for it, interrupts, and what the
// IOMMU refuses. Only where the machine has the device behind an IOMMU.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "vfio.h"

static struct edu edu;

static void registers_are_mapped_and_read_and_written_by_calls(void) {
    uint32_t value = 0;
    CHECK(get(&edu, 0) == EDU_ID);
    set(&edu, LIVENESS, 0x12345678);
    CHECK(get(&edu, LIVENESS) == ~0x12345678u);
    CHECK(pread(edu.device, &value, 4, REGION(0)) == 4 && value == EDU_ID);
    value = 0xdeadbeef;
    CHECK(pwrite(edu.device, &value, 4, REGION(0) + LIVENESS) == 4);
    CHECK(get(&edu, LIVENESS) == ~0xdeadbeefu);
    CHECK(pread(edu.device, &value, 4, REGION(0) + EDU_BYTES) == -1 && errno == EINVAL);
    CHECK(pread(edu.device, &value, 4, REGION(1)) == -1 && errno == EINVAL);
    CHECK(pread(edu.device, &value, 4, REGION(9)) == -1 && errno == EINVAL);
}

static void a_device_copies_to_and_from_memory_that_is_mapped(void) {
    uint8_t *p = memory(4 * PAGE);
    CHECK(map_dma(&edu, p, 0x10000, 4 * PAGE) == 0);
    for (unsigned i = 0; i < PAGE; i++) p[PAGE + i] = (uint8_t)(i * 7 + 3);
    transfer(&edu, 0x10000 + PAGE, PAGE, 0);
    transfer(&edu, 0x10000 + 3 * PAGE - 16, PAGE / 2, 1);
    CHECK(memcmp(p + PAGE, p + 3 * PAGE - 16, PAGE / 2) == 0);
    CHECK(p[3 * PAGE - 17] == 0 && p[3 * PAGE - 16 + PAGE / 2] == 0);
    CHECK(unmap_dma(&edu, 0x10000, 4 * PAGE) == 4 * PAGE);
    munmap(p, 4 * PAGE);
}

static long refused(void) {
    char line[200], *at;
    long count = -1;
    FILE *file = fopen("/proc/iommu", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, EDU_NAME + 5, 7) && (at = strstr(line, "refused ")))
            count = atol(at + 8);
    if (file) fclose(file);
    return count;
}

static void what_is_not_mapped_is_refused_and_an_eventfd_tells(void) {
    uint8_t *p = memory(3 * PAGE);
    int errors = eventfd(0, EFD_NONBLOCK);
    CHECK(lead(&edu, VFIO_PCI_ERR_IRQ_INDEX, 0, errors) == 0);
    CHECK(map_dma(&edu, p + PAGE, 0x20000, PAGE) == 0);
    long before = refused();
    memset(p, 0xee, 3 * PAGE);
    transfer(&edu, 0x20000, 64, 1);
    CHECK(p[PAGE] != 0xee && counted(errors, 50) == 0);
    p[PAGE] = 0xee;
    uint64_t beside[] = {0x20000 + PAGE, 0x20000 - PAGE, (uintptr_t)p, 0xc000, 1UL << 38};
    for (unsigned i = 0; i < 5; i++) {
        transfer(&edu, beside[i], 64, 1);
        CHECK(counted(errors, 2000) >= 1);
    }
    CHECK(refused() == before + 5);
    for (unsigned i = 0; i < PAGE; i++) CHECK(p[i] == 0xee && p[2 * PAGE + i] == 0xee);
    CHECK(lead(&edu, VFIO_PCI_ERR_IRQ_INDEX, 0, -1) == 0);
    transfer(&edu, 0xc000, 64, 1);
    CHECK(counted(errors, 300) == 0);
    CHECK(unmap_dma(&edu, 0x20000, PAGE) == PAGE);
    munmap(p, 3 * PAGE);
    close(errors);
}

static void what_was_unmapped_is_refused(void) {
    uint8_t *p = memory(PAGE);
    CHECK(map_dma(&edu, p, 0x30000, PAGE) == 0);
    transfer(&edu, 0x30000, 64, 0);
    CHECK(unmap_dma(&edu, 0x30000, PAGE) == PAGE);
    memset(p, 0x77, PAGE);
    transfer(&edu, 0x30000, 64, 1);
    for (unsigned i = 0; i < PAGE; i++) CHECK(p[i] == 0x77);
    munmap(p, PAGE);
}

static void a_device_writes_only_where_its_mapping_says(void) {
    uint8_t *p = memory(PAGE);
    memset(p, 0x55, PAGE);
    CHECK(map_flags(&edu, p, 0x40000, PAGE, VFIO_DMA_MAP_FLAG_READ) == 0);
    transfer(&edu, 0x40000, 64, 0);
    memset(p, 0x66, PAGE);
    transfer(&edu, 0x40000, 64, 1);
    CHECK(p[0] == 0x66);
    CHECK(unmap_dma(&edu, 0x40000, PAGE) == PAGE);
    CHECK(map_flags(&edu, p, 0x40000, PAGE, VFIO_DMA_MAP_FLAG_WRITE) == 0);
    transfer(&edu, 0x40000, 64, 1);
    CHECK(p[0] == 0x55 && p[63] == 0x55 && p[64] == 0x66);
    CHECK(unmap_dma(&edu, 0x40000, PAGE) == PAGE);
    munmap(p, PAGE);
}

static void an_interrupt_counts_an_eventfd_up(void) {
    int event = eventfd(0, EFD_NONBLOCK);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event) == 0);
    for (unsigned round = 1; round <= 20; round++) {
        set(&edu, RAISE, round);
        CHECK(counted(event, 2000) == 1);
        CHECK(get(&edu, 0x24) == round);
        set(&edu, ACKNOWLEDGE, round);
    }
    int other = eventfd(0, EFD_NONBLOCK);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, other) == 0);
    set(&edu, RAISE, 1);
    CHECK(counted(other, 2000) == 1 && counted(event, 0) == 0);
    set(&edu, ACKNOWLEDGE, 1);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, -1) == 0);
    set(&edu, RAISE, 1);
    set(&edu, ACKNOWLEDGE, 1);
    CHECK(counted(other, 100) == 0);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, other) == 0);
    struct vfio_irq_set off = {sizeof off, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
                               VFIO_PCI_MSI_IRQ_INDEX, 0, 1};
    CHECK(ioctl(edu.device, VFIO_DEVICE_SET_IRQS, &off) == 0 && counted(other, 0) == 1);
    off.count = 0;
    CHECK(ioctl(edu.device, VFIO_DEVICE_SET_IRQS, &off) == 0);
    CHECK(ioctl(edu.device, VFIO_DEVICE_SET_IRQS, &off) == -1 && errno == EINVAL);
    close(event);
    close(other);
}

// The CPU to which the device's message goes; -1 if it cannot go to another one.
static int cpu_of_message(void) {
    char path[64], line[100];
    int cpu = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", edu.device);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "vfio-interrupt-cpus: %d", &cpu);
    if (file) fclose(file);
    return cpu;
}

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

static int event_of_waiter;
static atomic_int rounds_heard;

static void *waits_on_the_last_cpu(void *unused) {
    uint64_t count;
    run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
    while (read(event_of_waiter, &count, sizeof count) == sizeof count && count < 1000)
        atomic_fetch_add(&rounds_heard, 1);
    return unused;
}

// Interrupts go where the thread waits that they wake, after some that had to call another CPU.
static void an_interrupt_follows_its_program(void) {
    pthread_t waiter;
    int last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    uint64_t end = 1000;
    cpu_set_t all;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    run_on(0);
    event_of_waiter = eventfd(0, 0);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event_of_waiter) == 0);
    int first = cpu_of_message();
    CHECK(first == 0 || first == -1);
    CHECK(pthread_create(&waiter, NULL, waits_on_the_last_cpu, NULL) == 0);
    for (int round = 1; round <= 2000 && first == 0 && cpu_of_message() != last; round++) {
        wait_ms(1);
        set(&edu, RAISE, 1);
        for (int ms = 0; ms < 20000 && atomic_load(&rounds_heard) < round; ms++) wait_ms(1);
        CHECK(atomic_load(&rounds_heard) == round);
        set(&edu, ACKNOWLEDGE, 1);
    }
    CHECK(first == -1 || cpu_of_message() == last);
    CHECK(write(event_of_waiter, &end, sizeof end) == sizeof end);
    CHECK(pthread_join(waiter, NULL) == 0);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    struct vfio_irq_set off = {sizeof off, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
                               VFIO_PCI_MSI_IRQ_INDEX, 0, 0};
    CHECK(ioctl(edu.device, VFIO_DEVICE_SET_IRQS, &off) == 0);
    close(event_of_waiter);
}

// Refused requests of functions that nobody knows, if interrupts are remapped; else -1.
static long strange(void) {
    char line[200] = "", *at;
    FILE *file = fopen("/proc/iommu", "r");
    if (file && !fgets(line, sizeof line, file)) line[0] = 0;
    if (file) fclose(file);
    at = strstr(line, "strange ");
    return strstr(line, "interrupts remapped") && at ? atol(at + 8) : -1;
}

// What a device writes to the interrupt range is an interrupt, and names an entry of the IOMMU's
// table. QEMU's `edu` makes such a write in nobody's name.
static void a_device_that_names_an_entry_of_nobody_raises_no_interrupt(void) {
    uint32_t *p = memory(PAGE);
    uint32_t entries[] = {0, 1, 3, 8, 31, 0xfe, 0xff};
    long count = sizeof entries / sizeof *entries, before = strange();
    CHECK(map_dma(&edu, p, 0x80000, PAGE) == 0);
    transfer(&edu, 0x80000, 4, 0);
    for (long i = 0; i < count; i++) transfer(&edu, 0xfee00010 | entries[i] << 5, 4, 1);
    for (int i = 0; before >= 0 && strange() != before + count && i < 200; i++) wait_ms(10);
    CHECK(before < 0 || strange() == before + count);
    CHECK(unmap_dma(&edu, 0x80000, PAGE) == PAGE);
    munmap(p, PAGE);
}

static void configuration_space_is_shown_and_not_given(void) {
    uint32_t word, bar, value;
    uint16_t command;
    CHECK(pread(edu.device, &word, 4, CONFIG) == 4 && word == 0x11e81234);
    CHECK(pread(edu.device, &bar, 4, CONFIG + 0x10) == 4);
    value = 0xffffffff;
    CHECK(pwrite(edu.device, &value, 4, CONFIG + 0x10) == 4);
    CHECK(pread(edu.device, &value, 4, CONFIG + 0x10) == 4 && value == 0xfff00000);
    CHECK(get(&edu, 0) == EDU_ID);
    value = 0;
    CHECK(pwrite(edu.device, &value, 4, CONFIG + 0x10) == 4 && get(&edu, 0) == EDU_ID);
    CHECK(pread(edu.device, &command, 2, CONFIG + 4) == 2 && command == 0x406);
    command = 0xffff;
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2);
    CHECK(pread(edu.device, &command, 2, CONFIG + 4) == 2 && command == 0x406);
    // Each byte, in pieces that lie across registers.
    uint8_t all[300], again[256];
    CHECK(pread(edu.device, all, 300, CONFIG) == 256);
    for (unsigned at = 0; at < 256; at += 3) {
        ssize_t some = pread(edu.device, again + at, 3, CONFIG + at);
        CHECK(some == (at + 3 <= 256 ? 3 : 256 - at));
    }
    CHECK(memcmp(all, again, 256) == 0);
    for (unsigned at = 0x40; at < 256; at++) CHECK(pwrite(edu.device, "\xff", 1, CONFIG + at) == 1);
    CHECK(pread(edu.device, again, 256, CONFIG) == 256 && memcmp(all, again, 256) == 0);
    CHECK(pread(edu.device, all, 1, CONFIG + 256) == -1 && errno == EINVAL);
}

static void a_device_that_may_not_reach_out_reaches_nothing(void) {
    uint8_t *p = memory(PAGE);
    uint16_t command = 0x2;
    CHECK(map_dma(&edu, p, 0x50000, PAGE) == 0);
    p[0] = 0x11;
    transfer(&edu, 0x50000, 64, 0);
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2);
    p[0] = 0x22;
    transfer(&edu, 0x50000, 64, 1);
    CHECK(p[0] == 0x22);
    command = 0x6;
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2);
    transfer(&edu, 0x50000, 64, 1);
    CHECK(p[0] == 0x11);
    command = 0x4;
    uint32_t value;
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2);
    CHECK(pread(edu.device, &value, 4, REGION(0)) == -1 && errno == EIO);
    command = 0x6;
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2 && get(&edu, 0) == EDU_ID);
    CHECK(unmap_dma(&edu, 0x50000, PAGE) == PAGE);
    munmap(p, PAGE);
}

static void the_program_and_not_its_child_shares_memory_with_the_device(void) {
    uint8_t *p = memory(PAGE);
    CHECK(map_dma(&edu, p, 0x60000, PAGE) == 0);
    memset(p, 0x31, 64);
    transfer(&edu, 0x60000, 64, 0);
    pid_t child = fork();
    if (child == 0) {
        memset(p, 0x32, 64);
        transfer(&edu, 0x60000, 32, 1);
        _exit(p[0] == 0x32 && p[63] == 0x32 ? 0 : 1);
    }
    int status;
    memset(p, 0x33, 64);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(p[0] == 0x31 && p[31] == 0x31 && p[32] == 0x33);
    CHECK(unmap_dma(&edu, 0x60000, PAGE) == PAGE);
    munmap(p, PAGE);
}

static void a_device_goes_on_with_pages_that_their_program_gave_up(void) {
    uint8_t *p = memory(4 * PAGE);
    CHECK(map_dma(&edu, p, 0x70000, 4 * PAGE) == 0);
    for (unsigned i = 0; i < 4; i++) memset(p + i * PAGE, 0x41 + i, PAGE);
    CHECK(munmap(p, PAGE) == 0);
    uint8_t *other = mmap(p, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(other == p && madvise(p + PAGE, PAGE, MADV_DONTNEED) == 0);
    uint8_t *moved = mremap(p + 2 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                            memory(PAGE));
    CHECK(moved != MAP_FAILED);
    // The device still has what was there, and writes where nobody sees it.
    for (unsigned i = 0; i < 2; i++) {
        transfer(&edu, 0x70000 + i * PAGE, 64, 0);
        transfer(&edu, 0x70000 + 3 * PAGE, 64, 1);
        CHECK(p[3 * PAGE] == 0x41 + i && p[i * PAGE] == 0);
        transfer(&edu, 0x70000 + i * PAGE + 128, 64, 1);
        CHECK(p[i * PAGE + 128] == 0);
    }
    transfer(&edu, 0x70000 + 2 * PAGE + 64, 64, 1);
    CHECK(moved[0] == 0x43 && moved[64] == 0x42 && moved[128] == 0x43);
    CHECK(mprotect(moved, PAGE, PROT_READ) == 0);
    transfer(&edu, 0x70000 + 2 * PAGE + 128, 64, 1);
    CHECK(moved[128] == 0x42);
    CHECK(unmap_dma(&edu, 0x70000, 4 * PAGE) == 4 * PAGE);
    munmap(p, 4 * PAGE);
    munmap(moved, PAGE);
}

static void nobody_else_gets_a_device_that_somebody_has(void) {
    CHECK(open(edu_node, O_RDWR) == -1 && errno == EBUSY);
    pid_t child = fork();
    if (child == 0) {
        struct edu own;
        _exit(edu_open(&own) == -1 && errno == EBUSY ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(ioctl(edu.group, VFIO_GROUP_UNSET_CONTAINER) == -1 && errno == EBUSY);
    int again = ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME);
    uint32_t id;
    CHECK(again >= 0 && pread(again, &id, 4, REGION(0)) == 4 && id == EDU_ID);
    CHECK(fcntl(again, F_GETFD) == FD_CLOEXEC);
    close(again);
    CHECK(get(&edu, 0) == EDU_ID);
}

static void mapped_registers_keep_the_device(void) {
    volatile uint8_t *registers = edu.registers;
    edu.registers = NULL;
    edu_close(&edu);
    CHECK(*(volatile uint32_t *)registers == EDU_ID);
    struct edu own;
    CHECK(edu_open(&own) == -1 && errno == EBUSY);
    CHECK(munmap((void *)registers, EDU_BYTES) == 0);
    CHECK(edu_open(&edu) == 0);
}

int main(void) {
    if (!edu_find() || edu_open(&edu) != 0) return 0;
    TEST(registers_are_mapped_and_read_and_written_by_calls);
    TEST(a_device_copies_to_and_from_memory_that_is_mapped);
    TEST(what_is_not_mapped_is_refused_and_an_eventfd_tells);
    TEST(what_was_unmapped_is_refused);
    TEST(a_device_writes_only_where_its_mapping_says);
    TEST(an_interrupt_counts_an_eventfd_up);
    TEST(an_interrupt_follows_its_program);
    TEST(a_device_that_names_an_entry_of_nobody_raises_no_interrupt);
    TEST(configuration_space_is_shown_and_not_given);
    TEST(a_device_that_may_not_reach_out_reaches_nothing);
    TEST(the_program_and_not_its_child_shares_memory_with_the_device);
    TEST(a_device_goes_on_with_pages_that_their_program_gave_up);
    TEST(nobody_else_gets_a_device_that_somebody_has);
    TEST(mapped_registers_keep_the_device);
    edu_close(&edu);
    return check_status();
}
