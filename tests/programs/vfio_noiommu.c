// /dev/vfio/noiommu-N: a device that no IOMMU is before, for who may do everything anyway. Only where
// the kernel was told to allow that.
#define _GNU_SOURCE
#include <grp.h>
#include <sys/wait.h>

#include "vfio.h"

static struct edu edu = {-1, -1, -1, NULL};
static char node[300];

static int find(void) {
    DIR *folder = opendir("/dev/vfio");
    int found = 0;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, "noiommu-", 8)) continue;
        snprintf(node, sizeof node, "/dev/vfio/%s", entry->d_name);
        edu.container = container_open();
        edu.group = open(node, O_RDWR);
        if (ioctl(edu.group, VFIO_GROUP_SET_CONTAINER, &edu.container) == 0 &&
            ioctl(edu.container, VFIO_SET_IOMMU, VFIO_NOIOMMU_IOMMU) == 0)
            edu.device = ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME);
        found = edu.device >= 0;
        if (found) continue;
        close(edu.group);
        close(edu.container);
    }
    if (folder) closedir(folder);
    return found;
}

static void there_is_no_iommu_to_map_by(void) {
    void *p = memory(PAGE);
    CHECK(ioctl(edu.container, VFIO_CHECK_EXTENSION, VFIO_NOIOMMU_IOMMU) == 1);
    CHECK(ioctl(edu.container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) == 0);
    CHECK(map_dma(&edu, p, 0, PAGE) == -1 && errno == ENOTTY);
    CHECK(unmap_dma(&edu, 0, PAGE) == -1 && errno == ENOTTY);
    CHECK(ioctl(edu.container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == -1 && errno == EINVAL);
    munmap(p, PAGE);
}

static void a_device_reaches_physical_memory_and_interrupts(void) {
    edu.registers = mmap(NULL, EDU_BYTES, RW, MAP_SHARED, edu.device, 0);
    CHECK(edu.registers != MAP_FAILED && get(&edu, 0) == EDU_ID);
    uint16_t command = 0x6;
    uint64_t at = 0;
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2);
    int fd = open("/dev/phys_contiguous", O_RDWR);
    uint8_t *p = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED && ioctl(fd, _IOR('p', 0x40, uint64_t), &at) == 0);
    memset(p, 0x5a, 64);
    transfer(&edu, at, 64, 0);
    transfer(&edu, at + 256, 64, 1);
    CHECK(memcmp(p, p + 256, 64) == 0);
    int event = eventfd(0, EFD_NONBLOCK);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event) == 0);
    set(&edu, RAISE, 1);
    CHECK(counted(event, 2000) == 1);
    set(&edu, ACKNOWLEDGE, 1);
    munmap(p, PAGE);
    close(fd);
    close(event);
}

static int tries_without_capability(void) {
    if (setgroups(0, NULL) || setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000)) return 2;
    return open(node, O_RDWR) == -1 && errno == EPERM ? 0 : 1;
}

static void it_is_for_one_who_may_do_everything(void) {
    int status;
    CHECK(open(node, O_RDWR) == -1 && errno == EBUSY);
    munmap((void *)edu.registers, EDU_BYTES);
    CHECK(close(edu.device) == 0 && close(edu.group) == 0 && close(edu.container) == 0);
    CHECK(chown(node, 1000, 1000) == 0);
    pid_t child = fork();
    if (child == 0) _exit(tries_without_capability());
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(chown(node, 0, 0) == 0 && find());
}

int main(void) {
    if (!find()) return 0;
    TEST(there_is_no_iommu_to_map_by);
    TEST(a_device_reaches_physical_memory_and_interrupts);
    TEST(it_is_for_one_who_may_do_everything);
    return check_status();
}
