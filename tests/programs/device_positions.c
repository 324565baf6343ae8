// What lseek(2) answers for devices that have no positions: always the start.
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

static const char *const DEVICES[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
enum { COUNT = sizeof DEVICES / sizeof *DEVICES };

static void every_seek_ends_at_the_start(void) {
    static const int WHENCE[] = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE};
    for (int i = 0; i < COUNT; i++) {
        int fd = open(DEVICES[i], O_RDWR);
        CHECK(fd >= 0);
        for (int j = 0; j < 5; j++) {
            CHECK(lseek(fd, 4096, WHENCE[j]) == 0);
            CHECK(lseek(fd, -1, WHENCE[j]) == 0);
        }
        CHECK(lseek(fd, 0, 5) == -1 && errno == EINVAL);
        CHECK(lseek(fd, 0, -1) == -1 && errno == EINVAL);
        close(fd);
    }
}

static void reads_and_writes_do_not_move(void) {
    char bytes[100];
    for (int i = 0; i < COUNT; i++) {
        int fd = open(DEVICES[i], O_RDWR | O_APPEND);
        ssize_t expected = i == 0 ? 0 : sizeof bytes;
        CHECK(read(fd, bytes, sizeof bytes) == expected);
        CHECK(pread(fd, bytes, sizeof bytes, 1000) == expected);
        if (i == 2)
            CHECK(write(fd, bytes, 10) == -1 && errno == ENOSPC);
        else
            CHECK(write(fd, bytes, 10) == 10 && pwrite(fd, bytes, 10, 1000) == 10);
        CHECK(lseek(fd, 0, SEEK_CUR) == 0);
        close(fd);
    }
}

int main(void) {
    TEST(every_seek_ends_at_the_start);
    TEST(reads_and_writes_do_not_move);
    return check_status();
}
