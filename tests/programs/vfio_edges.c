// /dev/vfio's requests with arguments that make no sense, and limits: each is refused as on Linux,
// and afterwards everything works. Only where the machine has the device behind an IOMMU.
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>

#include "vfio.h"

static struct edu edu;
static void *volatile nowhere = NULL;

#define REFUSED(call, why) CHECK((call) == -1 && errno == (why))

static int map_raw(uint32_t argsz, uint32_t flags, uint64_t vaddr, uint64_t iova, uint64_t size) {
    struct vfio_iommu_type1_dma_map map = {argsz, flags, vaddr, iova, size};
    return ioctl(edu.container, VFIO_IOMMU_MAP_DMA, &map);
}

static int unmap_raw(uint32_t argsz, uint32_t flags, uint64_t iova, uint64_t size) {
    struct vfio_iommu_type1_dma_unmap unmap = {argsz, flags, iova, size};
    return ioctl(edu.container, VFIO_IOMMU_UNMAP_DMA, &unmap);
}

static void a_container_says_what_it_can_do(void) {
    int container = container_open();
    CHECK(container >= 0 && ioctl(container, VFIO_GET_API_VERSION) == VFIO_API_VERSION);
    CHECK(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_TYPE1_IOMMU) == 1);
    CHECK(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) == 1);
    CHECK(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_UNMAP_ALL) == 1);
    CHECK(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_NOIOMMU_IOMMU) == 0);
    CHECK(ioctl(container, VFIO_CHECK_EXTENSION, VFIO_TYPE1_NESTING_IOMMU) == 0);
    CHECK(ioctl(container, VFIO_CHECK_EXTENSION, -1UL) == 0);
    REFUSED(ioctl(container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), EINVAL);
    REFUSED(ioctl(container, VFIO_IOMMU_MAP_DMA, NULL), EINVAL);
    REFUSED(ioctl(container, VFIO_IOMMU_GET_INFO, NULL), EINVAL);
    close(container);
    REFUSED(ioctl(edu.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), EINVAL);
    REFUSED(ioctl(edu.container, VFIO_GROUP_GET_STATUS, NULL), ENOTTY);
}

static void a_container_tells_pages_and_addresses(void) {
    struct {
        struct vfio_iommu_type1_info info;
        uint8_t rest[200];
    } all = {.info.argsz = sizeof all};
    CHECK(ioctl(edu.container, VFIO_IOMMU_GET_INFO, &all) == 0);
    CHECK(all.info.flags == (VFIO_IOMMU_INFO_PGSIZES | VFIO_IOMMU_INFO_CAPS));
    CHECK(all.info.iova_pgsizes & PAGE && all.info.cap_offset == sizeof all.info);
    struct vfio_iommu_type1_info_cap_iova_range *ranges =
        (void *)((uint8_t *)&all + all.info.cap_offset);
    CHECK(ranges->header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE && ranges->nr_iovas == 2);
    CHECK(ranges->iova_ranges[0].start == 0 && ranges->iova_ranges[0].end == 0xfedfffff);
    CHECK(ranges->iova_ranges[1].start == 0xff000000);
    struct vfio_iommu_type1_info_dma_avail *avail =
        (void *)((uint8_t *)&all + ranges->header.next);
    CHECK(avail->header.id == VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL && avail->header.next == 0);
    CHECK(avail->avail == 65535);
    uint32_t wanted = all.info.argsz;
    for (uint32_t argsz = 0; argsz < 200; argsz++) {
        memset(&all, 0xab, sizeof all);
        all.info.argsz = argsz;
        int told = ioctl(edu.container, VFIO_IOMMU_GET_INFO, &all);
        CHECK(told == (argsz < 16 ? -1 : 0));
        if (told) continue;
        // Nothing is written beyond what the program has.
        for (uint32_t at = argsz < 16 ? 16 : argsz; at < sizeof all; at++)
            CHECK(((uint8_t *)&all)[at] == 0xab);
        CHECK(argsz >= wanted ? all.info.cap_offset != 0 : all.info.argsz > argsz);
        wanted = argsz >= wanted ? wanted : all.info.argsz;
    }
}

static void mappings_that_make_no_sense_are_refused(void) {
    uint64_t p = (uintptr_t)memory(4 * PAGE);
    uint32_t bytes = sizeof(struct vfio_iommu_type1_dma_map);
    REFUSED(map_raw(bytes - 1, BOTH, p, 0, PAGE), EINVAL);
    REFUSED(map_raw(0, BOTH, p, 0, PAGE), EINVAL);
    REFUSED(map_raw(bytes, 0, p, 0, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH | VFIO_DMA_MAP_FLAG_VADDR, p, 0, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH | 1u << 31, p, 0, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0, 0), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p + 1, 0, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 1, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0, PAGE + 1), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0, 100), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, -PAGE, 2 * PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, -PAGE, 0, 2 * PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 1UL << 63, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 1UL << 48, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, (1UL << 48) - PAGE, 2 * PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0xfee00000, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0xfedff000, 2 * PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0xfeeff000, PAGE), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0, 1UL << 46), EINVAL);
    REFUSED(map_raw(bytes, BOTH, p, 0x100000000, 1UL << 46), ENOMEM);
    REFUSED(map_raw(bytes, BOTH, 0, 0, PAGE), EFAULT);
    REFUSED(map_raw(bytes, BOTH, p, 0, 64 * PAGE), EFAULT);
    REFUSED(map_raw(bytes, BOTH, 1UL << 47, 0, PAGE), EFAULT);
    REFUSED(map_raw(bytes, BOTH, 0xffffffff80000000, 0, PAGE), EFAULT);
    REFUSED(ioctl(edu.container, VFIO_IOMMU_MAP_DMA, NULL), EFAULT);
    REFUSED(ioctl(edu.container, VFIO_IOMMU_MAP_DMA, -8L), EFAULT);
    // Registers, read-only memory and files are no memory for devices.
    REFUSED(map_raw(bytes, BOTH, (uintptr_t)edu.registers, 0, PAGE), EFAULT);
    void *fixed = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REFUSED(map_raw(bytes, BOTH, (uintptr_t)fixed, 0, PAGE), EFAULT);
    int file = open("/tests/vfio_edges", O_RDONLY);
    void *text = mmap(NULL, PAGE, RW, MAP_PRIVATE, file, 0);
    CHECK(text != MAP_FAILED);
    REFUSED(map_raw(bytes, BOTH, (uintptr_t)text, 0, PAGE), EFAULT);
    close(file);
    CHECK(map_raw(4096, BOTH, p, (1UL << 48) - PAGE, PAGE) == 0);
    CHECK(map_raw(bytes, BOTH, p, 0, 4 * PAGE) == 0);
    CHECK(unmap_dma(&edu, 0, 4 * PAGE) == 4 * PAGE);
    CHECK(unmap_dma(&edu, (1UL << 48) - PAGE, PAGE) == PAGE);
    munmap((void *)p, 4 * PAGE);
}

static void ranges_are_mapped_once_and_go_as_a_whole(void) {
    uint8_t *p = memory(8 * PAGE);
    uint32_t bytes = sizeof(struct vfio_iommu_type1_dma_unmap);
    CHECK(map_dma(&edu, p, 8 * PAGE, 4 * PAGE) == 0);
    CHECK(map_dma(&edu, p, 12 * PAGE, 4 * PAGE) == 0);
    REFUSED(map_dma(&edu, p, 8 * PAGE, PAGE), EEXIST);
    REFUSED(map_dma(&edu, p, 7 * PAGE, 2 * PAGE), EEXIST);
    REFUSED(map_dma(&edu, p, 15 * PAGE, PAGE), EEXIST);
    REFUSED(map_dma(&edu, p, 4 * PAGE, 8 * PAGE), EEXIST);
    REFUSED(unmap_raw(bytes, 0, 8 * PAGE, PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, 0, 9 * PAGE, 3 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, 0, 8 * PAGE, 6 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, 0, 0, 9 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes - 1, 0, 8 * PAGE, 4 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, 0, 8 * PAGE, 0), EINVAL);
    REFUSED(unmap_raw(bytes, 0, 8 * PAGE + 1, PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, 0, 8 * PAGE, PAGE - 1), EINVAL);
    REFUSED(unmap_raw(bytes, 0, -PAGE, 2 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP, 8 * PAGE, 4 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, VFIO_DMA_UNMAP_FLAG_VADDR, 8 * PAGE, 4 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, VFIO_DMA_UNMAP_FLAG_ALL, 8 * PAGE, 4 * PAGE), EINVAL);
    REFUSED(unmap_raw(bytes, 1u << 31, 8 * PAGE, 4 * PAGE), EINVAL);
    CHECK(unmap_dma(&edu, 0, 4 * PAGE) == 0);
    CHECK(unmap_dma(&edu, 1UL << 60, 4 * PAGE) == 0);
    CHECK(unmap_dma(&edu, 0, 64 * PAGE) == 8 * PAGE);
    for (int i = 0; i < 8; i++) CHECK(map_dma(&edu, p + i * PAGE, i * 37 * PAGE, PAGE) == 0);
    struct vfio_iommu_type1_dma_unmap all = {bytes, VFIO_DMA_UNMAP_FLAG_ALL, 0, 0};
    CHECK(ioctl(edu.container, VFIO_IOMMU_UNMAP_DMA, &all) == 0 && all.size == 8 * PAGE);
    munmap(p, 8 * PAGE);
}

static void groups_take_containers_and_give_devices_in_order(void) {
    struct vfio_group_status status = {.argsz = sizeof status};
    CHECK(ioctl(edu.group, VFIO_GROUP_GET_STATUS, &status) == 0);
    CHECK(status.flags == (VFIO_GROUP_FLAGS_VIABLE | VFIO_GROUP_FLAGS_CONTAINER_SET));
    status.argsz = 7;
    REFUSED(ioctl(edu.group, VFIO_GROUP_GET_STATUS, &status), EINVAL);
    REFUSED(ioctl(edu.group, VFIO_GROUP_GET_STATUS, NULL), EFAULT);
    REFUSED(ioctl(edu.group, VFIO_GROUP_SET_CONTAINER, &edu.container), EINVAL);
    REFUSED(ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, "0000:00:1f.0"), ENODEV);
    REFUSED(ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, ""), ENODEV);
    REFUSED(ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, NULL), EFAULT);
    char *long_name = memory(PAGE);
    memset(long_name, 'a', PAGE);
    CHECK(ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, long_name) == -1);
    REFUSED(ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD + 1000, NULL), ENOTTY);
    edu_close(&edu);

    struct edu own = {container_open(), open(edu_node, O_RDWR), -1, NULL};
    int null = open("/dev/null", O_RDWR), none = -1, closed = 999;
    status.argsz = sizeof status;
    CHECK(ioctl(own.group, VFIO_GROUP_GET_STATUS, &status) == 0);
    CHECK(status.flags == VFIO_GROUP_FLAGS_VIABLE);
    REFUSED(ioctl(own.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME), EINVAL);
    REFUSED(ioctl(own.group, VFIO_GROUP_UNSET_CONTAINER), EINVAL);
    REFUSED(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, &null), EINVAL);
    REFUSED(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, &own.group), EINVAL);
    REFUSED(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, &none), EINVAL);
    REFUSED(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, &closed), EBADF);
    REFUSED(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, NULL), EFAULT);
    CHECK(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, &own.container) == 0);
    REFUSED(ioctl(own.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME), EINVAL);
    REFUSED(ioctl(own.container, VFIO_SET_IOMMU, 7), ENODEV);
    REFUSED(ioctl(own.container, VFIO_SET_IOMMU, VFIO_NOIOMMU_IOMMU), ENODEV);
    CHECK(ioctl(own.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0);
    void *p = memory(PAGE);
    CHECK(map_dma(&own, p, 0, PAGE) == 0);
    // With the last group everything goes.
    CHECK(ioctl(own.group, VFIO_GROUP_UNSET_CONTAINER) == 0);
    REFUSED(map_dma(&own, p, PAGE, PAGE), EINVAL);
    CHECK(ioctl(own.group, VFIO_GROUP_SET_CONTAINER, &own.container) == 0);
    CHECK(ioctl(own.container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU) == 0);
    CHECK(map_dma(&own, p, 0, PAGE) == 0);
    close(null);
    edu_close(&own);
    CHECK(edu_open(&edu) == 0);
}

static void a_device_is_described_and_not_otherwise(void) {
    struct vfio_device_info info = {.argsz = sizeof info};
    CHECK(ioctl(edu.device, VFIO_DEVICE_GET_INFO, &info) == 0);
    CHECK(info.flags == VFIO_DEVICE_FLAGS_PCI && info.num_regions == 9 && info.num_irqs == 5);
    info.argsz = 15;
    REFUSED(ioctl(edu.device, VFIO_DEVICE_GET_INFO, &info), EINVAL);
    REFUSED(ioctl(edu.device, VFIO_DEVICE_GET_INFO, NULL), EFAULT);
    REFUSED(ioctl(edu.device, VFIO_DEVICE_RESET), EINVAL);
    for (uint32_t index = 0; index < 10; index++) {
        struct vfio_region_info region = {.argsz = sizeof region, .index = index};
        int told = ioctl(edu.device, VFIO_DEVICE_GET_REGION_INFO, &region);
        CHECK(told == (index < 8 ? 0 : -1));
        if (told) continue;
        uint64_t size = index == 0 ? EDU_BYTES : index == 7 ? 256 : 0;
        uint32_t both = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
        CHECK(region.size == size && region.offset == (uint64_t)REGION(index));
        CHECK(region.flags == (size ? both | (index ? 0 : VFIO_REGION_INFO_FLAG_MMAP) : 0));
        region.argsz = 31;
        REFUSED(ioctl(edu.device, VFIO_DEVICE_GET_REGION_INFO, &region), EINVAL);
    }
    for (uint32_t index = 0; index < 6; index++) {
        struct vfio_irq_info irq = {.argsz = sizeof irq, .index = index};
        int told = ioctl(edu.device, VFIO_DEVICE_GET_IRQ_INFO, &irq);
        CHECK(told == (index < 5 ? 0 : -1));
        CHECK(told || (irq.count == (index != VFIO_PCI_INTX_IRQ_INDEX &&
                                     index != VFIO_PCI_MSIX_IRQ_INDEX) &&
                       irq.flags & VFIO_IRQ_INFO_EVENTFD));
        irq.argsz = 15;
        REFUSED(ioctl(edu.device, VFIO_DEVICE_GET_IRQ_INFO, &irq), EINVAL);
    }
}

static void registers_are_mapped_shared_and_within_them(void) {
    size_t all = EDU_BYTES;
    CHECK(mmap(NULL, PAGE, RW, MAP_PRIVATE, edu.device, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, all + PAGE, RW, MAP_SHARED, edu.device, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, edu.device, all) == MAP_FAILED && errno == EINVAL);
    for (int region = 1; region < 12; region++)
        CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, edu.device, REGION(region)) == MAP_FAILED &&
              errno == EINVAL);
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, edu.group, 0) == MAP_FAILED);
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, edu.container, 0) == MAP_FAILED);
    uint8_t *last = mmap(NULL, PAGE, RW, MAP_SHARED, edu.device, all - PAGE);
    CHECK(last != MAP_FAILED);
    uint8_t *moved = mremap(last, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved == MAP_FAILED || munmap(moved, 2 * PAGE) == 0);
    munmap(last, PAGE);
    uint8_t byte = 0;
    CHECK(pread(edu.device, &byte, 1, -1) == -1);
    CHECK(pread(edu.device, nowhere, 4, 0) == -1 && errno == EFAULT);
    CHECK(pwrite(edu.device, nowhere, 4, CONFIG) == -1 && errno == EFAULT);
}

static int set_irqs(uint32_t argsz, uint32_t flags, uint32_t index, uint32_t start,
                    uint32_t count, int32_t fd) {
    struct {
        struct vfio_irq_set set;
        int32_t fd;
    } asked = {{argsz, flags, index, start, count}, fd};
    return ioctl(edu.device, VFIO_DEVICE_SET_IRQS, &asked);
}

static void requests_for_interrupts_are_checked(void) {
    enum { FDS = VFIO_IRQ_SET_DATA_EVENTFD, SET = VFIO_IRQ_SET_ACTION_TRIGGER, MSI = 1 };
    int event = eventfd(0, EFD_NONBLOCK);
    REFUSED(set_irqs(19, FDS | SET, MSI, 0, 1, event), EINVAL);
    REFUSED(set_irqs(20, FDS | SET, MSI, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, MSI, 0, 2, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, MSI, 1, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, MSI, UINT32_MAX, 1, event), EINVAL);
    REFUSED(set_irqs(UINT32_MAX, FDS | SET, MSI, 0, UINT32_MAX, event), EINVAL);
    REFUSED(set_irqs(UINT32_MAX, FDS | SET, MSI, 1, UINT32_MAX, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, VFIO_PCI_INTX_IRQ_INDEX, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, VFIO_PCI_MSIX_IRQ_INDEX, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, 5, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET, UINT32_MAX, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS, MSI, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, SET, MSI, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET | VFIO_IRQ_SET_DATA_BOOL, MSI, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | SET | 1u << 31, MSI, 0, 1, event), EINVAL);
    REFUSED(set_irqs(24, FDS | VFIO_IRQ_SET_ACTION_MASK, MSI, 0, 1, event), ENOTTY);
    REFUSED(set_irqs(24, FDS | SET, MSI, 0, 1, 999), EBADF);
    REFUSED(set_irqs(24, FDS | SET, MSI, 0, 1, -2), EBADF);
    REFUSED(set_irqs(24, FDS | SET, MSI, 0, 1, edu.device), EINVAL);
    REFUSED(set_irqs(20, VFIO_IRQ_SET_DATA_NONE | SET, MSI, 0, 1, 0), EINVAL);
    REFUSED(ioctl(edu.device, VFIO_DEVICE_SET_IRQS, NULL), EFAULT);
    // An eventfd that its program closed is still counted up, and kept until it is replaced.
    CHECK(set_irqs(24, FDS | SET, MSI, 0, 1, event) == 0);
    int kept = dup(event);
    close(event);
    set(&edu, RAISE, 1);
    CHECK(counted(kept, 2000) == 1);
    set(&edu, ACKNOWLEDGE, 1);
    // A counter that is full takes no more, and stops nobody.
    uint64_t full = UINT64_MAX - 1;
    CHECK(write(kept, &full, 8) == 8);
    set(&edu, RAISE, 1);
    set(&edu, ACKNOWLEDGE, 1);
    wait_ms(50);
    CHECK(read(kept, &full, 8) == 8 && full == UINT64_MAX - 1);
    CHECK(set_irqs(20, VFIO_IRQ_SET_DATA_NONE | SET, MSI, 0, 0, 0) == 0);
    close(kept);
}

static void there_are_as_many_mappings_as_on_linux(void) {
    uint8_t *p = memory(PAGE);
    uint64_t count = 0;
    while (map_dma(&edu, p, 2 * count * PAGE, PAGE) == 0) count++;
    CHECK(errno == ENOSPC && count == 65535);
    CHECK(unmap_dma(&edu, 2 * 77 * PAGE, PAGE) == PAGE);
    CHECK(map_dma(&edu, p, PAGE, PAGE) == 0);
    REFUSED(map_dma(&edu, p, 2 * 77 * PAGE, PAGE), ENOSPC);
    struct vfio_iommu_type1_dma_unmap all = {sizeof all, VFIO_DMA_UNMAP_FLAG_ALL, 0, 0};
    CHECK(ioctl(edu.container, VFIO_IOMMU_UNMAP_DMA, &all) == 0 && all.size == 65535 * PAGE);
    munmap(p, PAGE);
}

int main(void) {
    if (!edu_find() || edu_open(&edu) != 0) return 0;
    TEST(a_container_says_what_it_can_do);
    TEST(a_container_tells_pages_and_addresses);
    TEST(mappings_that_make_no_sense_are_refused);
    TEST(ranges_are_mapped_once_and_go_as_a_whole);
    TEST(groups_take_containers_and_give_devices_in_order);
    TEST(a_device_is_described_and_not_otherwise);
    TEST(registers_are_mapped_shared_and_within_them);
    TEST(requests_for_interrupts_are_checked);
    TEST(there_are_as_many_mappings_as_on_linux);
    edu_close(&edu);
    return check_status();
}
