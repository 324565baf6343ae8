// A virtual function of a card, found as programs of others find it (/sys), with a table of messages
// (MSI-X) and a reset of its own; and two functions in one container. Only where the machine has them
// behind an IOMMU.
#define _GNU_SOURCE
#include <limits.h>

#include "vfio.h"

#define DEVICES "/sys/bus/pci/devices"
#define VF_BYTES 0x4000UL

// Registers of a virtual function of an 82576 (chapter 9 of its manual).
enum { STATUS = 0x08, EICS = 0x1520, EIMS = 0x1524, EIAC = 0x152c, EICR = 0x1580, IVAR = 0x1700,
       IVAR_MISC = 0x1740 };

static char names[2][64], nodes[2][64];
static int count;

static int is_function(const char *name, unsigned wanted) {
    char path[400], text[16] = "";
    snprintf(path, sizeof path, DEVICES "/%s/device", name);
    FILE *file = fopen(path, "r");
    if (file && !fgets(text, sizeof text, file)) text[0] = 0;
    if (file) fclose(file);
    return strtoul(text, NULL, 16) == wanted;
}

static int link_of(const char *name, const char *link, char *to) {
    char path[400];
    snprintf(path, sizeof path, DEVICES "/%s/%s", name, link);
    ssize_t bytes = readlink(path, to, PATH_MAX - 1);
    if (bytes < 0) return 0;
    to[bytes] = 0;
    return 1;
}

static void find_functions(void) {
    DIR *folder = opendir(DEVICES);
    for (struct dirent *entry; folder && count < 2 && (entry = readdir(folder));) {
        char to[PATH_MAX];
        if (!is_function(entry->d_name, 0x10ca) || !link_of(entry->d_name, "iommu_group", to))
            continue;
        snprintf(names[count], sizeof names[count], "%.60s", entry->d_name);
        snprintf(nodes[count], sizeof nodes[count], "/dev/vfio/%.40s", strrchr(to, '/') + 1);
        count++;
    }
    if (folder) closedir(folder);
}

static int take(struct edu *function, int which) {
    function->registers = NULL;
    function->device = ioctl(function->group, VFIO_GROUP_GET_DEVICE_FD, names[which]);
    uint16_t command = 0x6;
    if (function->device < 0 || pwrite(function->device, &command, 2, CONFIG + 4) != 2) return -1;
    void *at = mmap(NULL, VF_BYTES, RW, MAP_SHARED, function->device, 0);
    if (at == MAP_FAILED) return -1;
    function->registers = at;
    return 0;
}

static void put_away(struct edu *function) {
    if (function->registers) munmap((void *)function->registers, VF_BYTES);
    close(function->device);
    close(function->group);
    close(function->container);
}

static void a_function_is_found_by_its_group_and_its_driver(void) {
    for (int i = 0; i < 2; i++) {
        char to[PATH_MAX], path[400];
        CHECK(link_of(names[i], "driver", to) && strcmp(strrchr(to, '/'), "/vfio-pci") == 0);
        CHECK(link_of(names[i], "iommu_group", to));
        snprintf(path, sizeof path, DEVICES "/%s/iommu_group/devices/%s/vendor", names[i], names[i]);
        CHECK(access(path, R_OK) == 0);
        CHECK(access(nodes[i], R_OK | W_OK) == 0);
    }
    CHECK(strcmp(nodes[0], nodes[1]) != 0);
}

static void raises_all(struct edu *vf, int events[3]) {
    set(vf, IVAR, 0x81808180);
    set(vf, IVAR_MISC, 0x82);
    for (int round = 0; round < 9; round++) {
        set(vf, EICR, 7);
        set(vf, EIAC, 7);
        set(vf, EIMS, 7);
        set(vf, EICS, 1u << round % 3);
        CHECK(counted(events[round % 3], 2000) == 1);
        for (int i = 0; i < 3; i++) CHECK(counted(events[i], 0) == 0);
    }
}

static void each_message_counts_its_eventfd_up_also_after_a_reset(void) {
    struct edu vf;
    int events[3];
    CHECK(edu_group(&vf, nodes[0]) == 0 && take(&vf, 0) == 0);
    struct vfio_irq_info irq = {.argsz = sizeof irq, .index = VFIO_PCI_MSIX_IRQ_INDEX};
    CHECK(ioctl(vf.device, VFIO_DEVICE_GET_IRQ_INFO, &irq) == 0 && irq.count == 3);
    for (int i = 0; i < 3; i++) {
        events[i] = eventfd(0, EFD_NONBLOCK);
        CHECK(lead(&vf, VFIO_PCI_MSIX_IRQ_INDEX, i, events[i]) == 0);
    }
    CHECK(lead(&vf, VFIO_PCI_MSIX_IRQ_INDEX, 3, events[0]) == -1 && errno == EINVAL);
    raises_all(&vf, events);
    CHECK(ioctl(vf.device, VFIO_DEVICE_RESET) == 0);
    raises_all(&vf, events);
    // One that is led nowhere is silent, and the others are not.
    CHECK(lead(&vf, VFIO_PCI_MSIX_IRQ_INDEX, 1, -1) == 0);
    set(&vf, EICR, 7);
    set(&vf, EIMS, 7);
    set(&vf, EICS, 7);
    CHECK(counted(events[0], 2000) == 1 && counted(events[2], 2000) == 1);
    CHECK(counted(events[1], 100) == 0);
    for (int i = 0; i < 3; i++) close(events[i]);
    put_away(&vf);
}

static void the_table_of_messages_is_not_given(void) {
    struct edu vf;
    uint8_t table[48], zeros[48] = {0};
    CHECK(edu_group(&vf, nodes[0]) == 0 && take(&vf, 0) == 0);
    int event = eventfd(0, EFD_NONBLOCK);
    CHECK(lead(&vf, VFIO_PCI_MSIX_IRQ_INDEX, 0, event) == 0);
    struct vfio_region_info region = {.argsz = sizeof region, .index = 3};
    CHECK(ioctl(vf.device, VFIO_DEVICE_GET_REGION_INFO, &region) == 0 && region.size != 0);
    CHECK(!(region.flags & VFIO_REGION_INFO_FLAG_MMAP));
    CHECK(mmap(NULL, PAGE, RW, MAP_SHARED, vf.device, REGION(3)) == MAP_FAILED && errno == EINVAL);
    CHECK(pread(vf.device, table, 48, REGION(3)) == 48);
    for (int i = 0; i < 48; i++) CHECK(table[i] == 0xff);
    CHECK(pwrite(vf.device, zeros, 48, REGION(3)) == 48);
    for (int at = 0; at < 48; at++) CHECK(pwrite(vf.device, zeros, 1, REGION(3) + at) == 1);
    set(&vf, IVAR, 0x80808080);
    set(&vf, EICR, 7);
    set(&vf, EIMS, 7);
    set(&vf, EICS, 1);
    CHECK(counted(event, 2000) == 1);
    close(event);
    put_away(&vf);
}

static void a_function_that_is_put_away_is_had_again_at_once(void) {
    for (int round = 0; round < 8; round++) {
        struct edu vf;
        CHECK(edu_group(&vf, nodes[round % 2]) == 0 && take(&vf, round % 2) == 0);
        CHECK(get(&vf, STATUS) != 0xffffffff);
        put_away(&vf);
    }
}

static void functions_of_a_container_come_and_go(void) {
    struct edu one, two = {.container = container_open()};
    uint8_t *p = memory(64 * PAGE);
    CHECK(edu_group(&one, nodes[0]) == 0);
    CHECK(map_dma(&one, p, 0, 64 * PAGE) == 0);
    two.group = open(nodes[1], O_RDWR);
    CHECK(two.group >= 0 && ioctl(two.group, VFIO_GROUP_SET_CONTAINER, &one.container) == 0);
    CHECK(take(&one, 0) == 0 && take(&two, 1) == 0);
    CHECK(map_dma(&one, p, 1UL << 40, 64 * PAGE) == 0);
    // The first goes; what is mapped stays for the second.
    munmap((void *)one.registers, VF_BYTES);
    CHECK(close(one.device) == 0 && close(one.group) == 0);
    CHECK(map_dma(&one, p, 1UL << 40, PAGE) == -1 && errno == EEXIST);
    CHECK(unmap_dma(&one, 0, 64 * PAGE) == 64 * (long)PAGE);
    one.group = open(nodes[0], O_RDWR);
    CHECK(one.group >= 0 && ioctl(one.group, VFIO_GROUP_SET_CONTAINER, &one.container) == 0);
    CHECK(unmap_dma(&one, 1UL << 40, 64 * PAGE) == 64 * (long)PAGE);
    close(one.group);
    put_away(&two);
    CHECK(map_dma(&one, p, 0, PAGE) == -1 && errno == EINVAL);
    close(one.container);
    munmap(p, 64 * PAGE);
}

int main(void) {
    find_functions();
    if (count < 2) return 0;
    TEST(a_function_is_found_by_its_group_and_its_driver);
    TEST(each_message_counts_its_eventfd_up_also_after_a_reset);
    TEST(the_table_of_messages_is_not_given);
    TEST(a_function_that_is_put_away_is_had_again_at_once);
    TEST(functions_of_a_container_come_and_go);
    return check_status();
}
