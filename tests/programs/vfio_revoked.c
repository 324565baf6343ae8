// A device is taken from its program, by whoever runs the machine and at any moment: the program hears of it, and
// whatever it does then reaches nothing. Only where the machine has the device behind an IOMMU.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "vfio.h"

#define DRIVER "/sys/bus/pci/drivers/vfio-pci/"

static int tell(const char *file, const char *name) {
    int fd = open(file, O_WRONLY);
    ssize_t count = fd < 0 ? -1 : write(fd, name, strlen(name));
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return count == (ssize_t)strlen(name) ? 0 : -1;
}

static int unbind(void) { return tell(DRIVER "unbind", EDU_NAME "\n"); }
static int bind_again(void) { return tell(DRIVER "bind", EDU_NAME "\n"); }

static void a_program_hears_that_its_device_is_taken(void) {
    struct edu edu;
    int request = eventfd(0, EFD_NONBLOCK);
    CHECK(edu_open(&edu) == 0);
    CHECK(lead(&edu, VFIO_PCI_REQ_IRQ_INDEX, 0, request) == 0);
    CHECK(counted(request, 0) == 0);
    CHECK(unbind() == 0);
    CHECK(counted(request, 0) == 1);
    edu_close(&edu);
    close(request);
    CHECK(bind_again() == 0);
}

static void a_transfer_that_is_under_way_reaches_no_memory(void) {
    struct edu edu;
    CHECK(edu_open(&edu) == 0);
    uint8_t *p = memory(2 * PAGE);
    CHECK(map_dma(&edu, p, 0, 2 * PAGE) == 0);
    memset(p, 0x5a, PAGE);
    transfer(&edu, 0, PAGE, 0);
    begin(&edu, PAGE, PAGE, 1);
    CHECK(unbind() == 0);
    wait_ms(300);
    for (unsigned at = 0; at < PAGE; at++) CHECK(p[PAGE + at] == 0);
    edu_close(&edu);
    CHECK(bind_again() == 0);
}

static void whatever_its_program_does_reaches_nothing(void) {
    struct edu edu;
    int event = eventfd(0, EFD_NONBLOCK);
    uint16_t command = 0x6;
    uint32_t word;
    CHECK(edu_open(&edu) == 0);
    uint8_t *p = memory(PAGE);
    CHECK(map_dma(&edu, p, 0, PAGE) == 0);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event) == 0);
    CHECK(unbind() == 0);
    CHECK(pwrite(edu.device, &command, 2, CONFIG + 4) == 2);
    CHECK(pread(edu.device, &command, 2, CONFIG + 4) == 2 && (command & 6) == 0);
    CHECK(pread(edu.device, &word, 4, REGION(0)) == -1 && errno == EIO);
    CHECK(lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event) == -1 && errno == ENODEV);
    CHECK(ioctl(edu.device, VFIO_DEVICE_RESET) == -1);
    CHECK(mmap(NULL, EDU_BYTES, RW, MAP_SHARED, edu.device, REGION(0)) == MAP_FAILED);
    CHECK(ioctl(edu.group, VFIO_GROUP_GET_DEVICE_FD, EDU_NAME) == -1 && errno == ENODEV);
    CHECK(ioctl(edu.group, VFIO_GROUP_SET_CONTAINER, &edu.container) == -1 && errno == ENODEV);
    // Its registers are mapped still, and nobody is behind them.
    set(&edu, RAISE, 1);
    begin(&edu, 0, PAGE, 1);
    set(&edu, LIVENESS, 5);
    CHECK(get(&edu, LIVENESS) != ~5U);
    CHECK(counted(event, 200) == 0);
    edu_close(&edu);
    close(event);
    CHECK(bind_again() == 0);
}

static void nobody_has_it_until_it_is_given_back(void) {
    struct edu edu, next;
    CHECK(edu_open(&edu) == 0);
    CHECK(unbind() == 0);
    CHECK(edu_open(&next) == -1 && errno == EBUSY);
    edu_close(&edu);
    CHECK(edu_open(&next) == -1 && errno == ENODEV);
    CHECK(bind_again() == 0);
    CHECK(edu_open(&next) == 0);
    uint8_t *p = memory(PAGE);
    CHECK(map_dma(&next, p, 0x1000, PAGE) == 0);
    memset(p, 7, PAGE);
    transfer(&next, 0x1000, PAGE, 0);
    memset(p, 0, PAGE);
    transfer(&next, 0x1000, PAGE, 1);
    CHECK(p[0] == 7 && p[PAGE - 1] == 7);
    edu_close(&next);
}

static void names_of_what_is_not_offered_are_refused(void) {
    CHECK(tell(DRIVER "unbind", "0000:00:00.0") == -1 && errno == ENODEV);
    CHECK(tell(DRIVER "bind", "vfio-pci") == -1 && errno == ENODEV);
}

static void only_root_takes_a_device(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (setgid(1000) != 0 || setuid(1000) != 0) _exit(2);
        _exit(unbind() == -1 && errno == EACCES ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct edu edu;
    CHECK(edu_open(&edu) == 0);
    edu_close(&edu);
}

static volatile int is_over;

static void *take_and_give(void *unused) {
    while (!is_over) {
        unbind();
        bind_again();
    }
    return unused;
}

static void it_may_be_taken_at_any_moment(void) {
    pthread_t other;
    unsigned had = 0;
    CHECK(pthread_create(&other, NULL, take_and_give, NULL) == 0);
    // The other thread may be where nobody has it, many times in a row.
    for (unsigned round = 0; round < 100 || (had == 0 && round < 100000); round++) {
        struct edu edu;
        if (edu_open(&edu) != 0) continue;
        uint8_t *p = memory(PAGE);
        int event = eventfd(0, EFD_NONBLOCK);
        map_dma(&edu, p, 0, PAGE);
        lead(&edu, VFIO_PCI_MSI_IRQ_INDEX, 0, event);
        begin(&edu, 0, PAGE, 1);
        had++;
        edu_close(&edu);
        close(event);
        munmap(p, PAGE);
    }
    is_over = 1;
    pthread_join(other, NULL);
    CHECK(bind_again() == 0);
    struct edu edu;
    CHECK(edu_open(&edu) == 0);
    edu_close(&edu);
    CHECK(had != 0);
}

int main(void) {
    if (!edu_find()) return 0;
    TEST(a_program_hears_that_its_device_is_taken);
    TEST(a_transfer_that_is_under_way_reaches_no_memory);
    TEST(whatever_its_program_does_reaches_nothing);
    TEST(nobody_has_it_until_it_is_given_back);
    TEST(names_of_what_is_not_offered_are_refused);
    TEST(only_root_takes_a_device);
    TEST(it_may_be_taken_at_any_moment);
    return check_status();
}
