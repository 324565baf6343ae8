// mlock, mlockall, and what brings pages in before they are touched.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#define READ_WRITE (PROT_READ | PROT_WRITE)

enum { PAGE = 4096, POPULATE_READ = 22, POPULATE_WRITE = 23 };

static int fails(long result, int why) { return result == -1 && errno == why; }

static char *map(int pages, int access) {
    char *at = mmap(0, pages * PAGE, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static int resident(char *at, int pages) {
    unsigned char there[64];
    CHECK(mincore(at, pages * PAGE, there) == 0);
    int sum = 0;
    for (int i = 0; i < pages; i++) sum += there[i] & 1;
    return sum;
}

static long locked_kib(void) {
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    char line[256];
    long kib = -1;
    while (fgets(line, sizeof line, file)) sscanf(line, "VmLck: %ld", &kib);
    fclose(file);
    return kib;
}

static void what_is_mapped_later_is_locked(void) {
    CHECK(locked_kib() == 0 && mlockall(MCL_FUTURE) == 0);
    char *at = map(4, READ_WRITE);
    CHECK(resident(at, 4) == 4 && locked_kib() >= 16);
    CHECK(fails(madvise(at, PAGE, MADV_DONTNEED), EINVAL));
    char *heap = sbrk(4 * PAGE);
    CHECK(heap != (void *)-1 && resident((char *)(((long)heap + PAGE - 1) & -PAGE), 3) == 3);
    CHECK(munlockall() == 0 && locked_kib() == 0);
    CHECK(madvise(at, PAGE, MADV_DONTNEED) == 0);
    char *other = map(4, READ_WRITE);
    CHECK(resident(other, 4) == 0);
    CHECK(munmap(at, 4 * PAGE) == 0 && munmap(other, 4 * PAGE) == 0);
}

static void what_is_locked_on_fault_waits_for_its_use(void) {
    CHECK(mlockall(MCL_FUTURE | MCL_ONFAULT) == 0);
    char *at = map(4, READ_WRITE);
    CHECK(resident(at, 4) == 0 && fails(madvise(at, PAGE, MADV_DONTNEED), EINVAL));
    CHECK(munlockall() == 0 && munmap(at, 4 * PAGE) == 0);
    at = map(4, READ_WRITE);
    CHECK(syscall(SYS_mlock2, at, 4 * PAGE, 1) == 0 && resident(at, 4) == 0);
    at[PAGE] = 7;
    CHECK(resident(at, 4) == 1 && fails(madvise(at, 4 * PAGE, MADV_DONTNEED), EINVAL));
    CHECK(madvise(at, 4 * PAGE, MADV_DONTNEED_LOCKED) == 0 && at[PAGE] == 0);
    CHECK(fails(syscall(SYS_mlock2, at, PAGE, 2), EINVAL));
    CHECK(munmap(at, 4 * PAGE) == 0);
}

static void what_is_mapped_now_is_locked(void) {
    char *at = map(4, READ_WRITE);
    char *forbidden = map(1, PROT_NONE);
    CHECK(mlockall(MCL_CURRENT) == 0 && resident(at, 4) == 4 && resident(forbidden, 1) == 0);
    CHECK(fails(madvise(at, PAGE, MADV_DONTNEED), EINVAL));
    char *later = map(4, READ_WRITE);
    CHECK(resident(later, 4) == 0 && madvise(later, PAGE, MADV_DONTNEED) == 0);
    CHECK(munlockall() == 0 && madvise(at, PAGE, MADV_DONTNEED) == 0);
    munmap(at, 4 * PAGE), munmap(forbidden, PAGE), munmap(later, 4 * PAGE);
}

static void a_child_locks_nothing(void) {
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    pid_t child = fork();
    if (child == 0) {
        int is_free = locked_kib() == 0 && resident(map(4, READ_WRITE), 4) == 0;
        _exit(!is_free);
    }
    int status;
    CHECK(munlockall() == 0 && waitpid(child, &status, 0) == child && status == 0);
}

static int lock_within_limit(void) {
    struct rlimit limit = {4 * PAGE, 4 * PAGE};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setuid(65534) != 0) return 1;
    if (!fails(mlockall(MCL_CURRENT), ENOMEM) || mlockall(MCL_FUTURE) != 0) return 2;
    if (mmap(0, 3 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 3;
    if (mmap(0, 2 * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return 4;
    if (errno != EAGAIN) return 5;
    char *before = sbrk(0);
    if (sbrk(8 * PAGE) != (void *)-1 || sbrk(0) != before) return 6;
    return munlockall() == 0 && sbrk(8 * PAGE) == before ? 0 : 7;
}

static void later_mappings_obey_the_limit(void) {
    pid_t child = fork();
    if (child == 0) _exit(lock_within_limit());
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && (errno = WEXITSTATUS(status)) == 0);
}

static void populating_says_why_it_cannot(void) {
    char *at = map(4, READ_WRITE);
    CHECK(mprotect(at + 2 * PAGE, PAGE, PROT_READ) == 0);
    CHECK(fails(madvise(at, 4 * PAGE, POPULATE_WRITE), EINVAL) && resident(at, 4) == 2);
    CHECK(madvise(at, 4 * PAGE, POPULATE_READ) == 0 && resident(at, 4) == 4);
    CHECK(mprotect(at, PAGE, PROT_NONE) == 0 && fails(madvise(at, PAGE, POPULATE_READ), EINVAL));
    CHECK(munmap(at + PAGE, PAGE) == 0);
    CHECK(fails(madvise(at + PAGE, 2 * PAGE, POPULATE_READ), ENOMEM));
    CHECK(munmap(at, 4 * PAGE) == 0);
}

static void populating_beyond_the_end_of_a_file_fails(void) {
    int fd = open("locks", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
    char *at = mmap(0, 2 * PAGE, READ_WRITE, MAP_SHARED, fd, 0);
    CHECK(madvise(at, PAGE, POPULATE_WRITE) == 0);
    CHECK(fails(madvise(at, 2 * PAGE, POPULATE_WRITE), EFAULT));
    CHECK(fails(madvise(at, 2 * PAGE, POPULATE_READ), EFAULT));
    CHECK(fails(mlock(at, 2 * PAGE), ENOMEM) && mlock(at, PAGE) == 0);
    CHECK(munmap(at, 2 * PAGE) == 0 && close(fd) == 0 && unlink("locks") == 0);
}

static void each_area_is_locked_by_its_own_rights(void) {
    char *at = map(3, PROT_NONE);
    CHECK(fails(mlock(at, PAGE), ENOMEM) && munlock(at, PAGE) == 0);
    CHECK(mprotect(at, PAGE, PROT_READ) == 0 && mprotect(at + PAGE, 2 * PAGE, READ_WRITE) == 0);
    CHECK(mlock(at, 3 * PAGE) == 0 && resident(at, 3) == 3);
    CHECK(fails(madvise(at, PAGE, MADV_COLD), EINVAL));
    CHECK(fails(madvise(at, PAGE, MADV_PAGEOUT), EINVAL));
    CHECK(munlock(at, 3 * PAGE) == 0 && madvise(at, PAGE, MADV_COLD) == 0);
    CHECK(munmap(at, 3 * PAGE) == 0);
}

static void pages_of_a_file_in_memory_are_resident(void) {
    int fd = open("locks", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char page[PAGE] = "a";
    CHECK(fd >= 0 && write(fd, page, PAGE) == PAGE && write(fd, page, PAGE) == PAGE);
    for (int i = 0; i < 2; i++) {
        char *at = mmap(0, 2 * PAGE, READ_WRITE, i ? MAP_SHARED : MAP_PRIVATE, fd, 0);
        CHECK(resident(at, 2) == 2 && munmap(at, 2 * PAGE) == 0);
    }
    char *at = map(1, READ_WRITE);
    CHECK(fails(mincore(at, PAGE, (unsigned char *)-PAGE), EFAULT));
    CHECK(munmap(at, PAGE) == 0 && close(fd) == 0 && unlink("locks") == 0);
}

static void nothing_is_passed_to_nobody(void) {
    char byte;
    struct iovec one = {&byte, 1};
    CHECK(process_vm_readv(999999, 0, 0, &one, 1, 0) == 0);
    CHECK(process_vm_writev(999999, &one, 1, 0, 0, 0) == 0);
    CHECK(fails(process_vm_readv(999999, &one, 1, &one, 1, 0), ESRCH));
    CHECK(fails(process_vm_readv(999999, 0, 0, 0, 0, 1), EINVAL));
}

int main(void) {
    TEST(what_is_mapped_later_is_locked);
    TEST(what_is_locked_on_fault_waits_for_its_use);
    TEST(what_is_mapped_now_is_locked);
    TEST(a_child_locks_nothing);
    TEST(later_mappings_obey_the_limit);
    TEST(populating_says_why_it_cannot);
    TEST(populating_beyond_the_end_of_a_file_fails);
    TEST(each_area_is_locked_by_its_own_rights);
    TEST(pages_of_a_file_in_memory_are_resident);
    TEST(nothing_is_passed_to_nobody);
    return check_status();
}
