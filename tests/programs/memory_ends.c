// Where memory ends: files that shrink under their mappings, and areas that are moved or doubled.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096 };

static sigjmp_buf back;
static volatile int caught;

static void on_fault(int signal) {
    caught = signal;
    siglongjmp(back, 1);
}

// The signal that a load or a store there brings, 0 for none.
static int fault_of(volatile char *at, int stores) {
    caught = 0;
    if (sigsetjmp(back, 1) == 0) {
        if (stores) *at = 1;
        else (void)*at;
    }
    return caught;
}

static int file_of(int pages) {
    int fd = open("/tmp/memory_ends", O_CREAT | O_TRUNC | O_RDWR, 0600);
    CHECK(fd >= 0 && ftruncate(fd, pages * PAGE) == 0 && unlink("/tmp/memory_ends") == 0);
    return fd;
}

static char *map(int fd, int pages, int flags) {
    char *at = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static void what_was_cut_off_is_gone(void) {
    int fd = file_of(3);
    char *shared = map(fd, 4, MAP_SHARED), *copied = map(fd, 4, MAP_PRIVATE);
    char *looked_at = map(fd, 4, MAP_PRIVATE);
    for (int page = 0; page < 3; page++) {
        shared[page * PAGE] = 'a', copied[page * PAGE] = 'b';
        CHECK(fault_of(&looked_at[page * PAGE], 0) == 0);
    }
    CHECK(fault_of(&shared[3 * PAGE], 0) == SIGBUS && fault_of(&copied[3 * PAGE], 1) == SIGBUS);
    CHECK(ftruncate(fd, PAGE + 100) == 0);
    CHECK(shared[0] == 'a' && copied[0] == 'b' && shared[PAGE] == 'a' && copied[PAGE] == 'b');
    CHECK(fault_of(&shared[2 * PAGE], 0) == SIGBUS && fault_of(&shared[2 * PAGE], 1) == SIGBUS);
    // A copy of its own goes with the file's page.
    CHECK(fault_of(&copied[2 * PAGE], 0) == SIGBUS && fault_of(&copied[2 * PAGE], 1) == SIGBUS);
    CHECK(fault_of(&looked_at[2 * PAGE], 0) == SIGBUS);
    // The file grows again: what comes is new.
    CHECK(ftruncate(fd, 3 * PAGE) == 0);
    CHECK(shared[2 * PAGE] == 0 && copied[2 * PAGE] == 0 && looked_at[2 * PAGE] == 0);
    CHECK(shared[PAGE + 99] == 0 && shared[PAGE + 100] == 0);
    close(fd), munmap(shared, 4 * PAGE), munmap(copied, 4 * PAGE), munmap(looked_at, 4 * PAGE);
}

static void the_rest_of_the_last_page_is_cleared(void) {
    int fd = file_of(1);
    char *shared = map(fd, 1, MAP_SHARED);
    memset(shared, 'x', PAGE);
    CHECK(ftruncate(fd, 100) == 0 && shared[99] == 'x' && shared[100] == 0 && shared[PAGE - 1] == 0);
    close(fd), munmap(shared, PAGE);
}

static void a_size_of_nothing_doubles_shared_memory(void) {
    char *at = map(-1, 2, MAP_SHARED | MAP_ANONYMOUS), *own = map(-1, 1, MAP_PRIVATE | MAP_ANONYMOUS);
    at[0] = 'a', at[PAGE] = 'b';
    char *again = mremap(at, 0, 2 * PAGE, MREMAP_MAYMOVE);
    CHECK(again != MAP_FAILED && again != at && again[0] == 'a' && again[PAGE] == 'b');
    again[PAGE] = 'c';
    CHECK(at[PAGE] == 'c');
    char *second = mremap(at + PAGE, 0, PAGE, MREMAP_MAYMOVE);
    CHECK(second != MAP_FAILED && second[0] == 'c');
    CHECK(mremap(own, 0, PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap(at, 0, PAGE, 0) == MAP_FAILED);
    CHECK(mremap(at, PAGE, 0, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    munmap(at, 2 * PAGE), munmap(again, 2 * PAGE), munmap(second, PAGE), munmap(own, PAGE);
}

static void areas_are_moved_one_at_a_time(void) {
    char *at = map(-1, 4, MAP_PRIVATE | MAP_ANONYMOUS);
    CHECK(mprotect(at + PAGE, PAGE, PROT_READ) == 0);
    CHECK(mremap(at, 3 * PAGE, 6 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    CHECK(munmap(at + 2 * PAGE, PAGE) == 0);
    CHECK(mremap(at + PAGE, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    CHECK(mremap(at + 2 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    // Less of several areas is none of that.
    CHECK(mremap(at, 2 * PAGE, PAGE, 0) == at && fault_of(at + PAGE, 0) == SIGSEGV);
    munmap(at, 4 * PAGE);
}

int main(void) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGBUS, &action, 0), sigaction(SIGSEGV, &action, 0);
    TEST(what_was_cut_off_is_gone);
    TEST(the_rest_of_the_last_page_is_cleared);
    TEST(a_size_of_nothing_doubles_shared_memory);
    TEST(areas_are_moved_one_at_a_time);
    return check_status();
}
