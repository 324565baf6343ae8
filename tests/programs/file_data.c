// Bytes: read, write, positions, holes, sizes, mappings, copies, times.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/file_data.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static int fresh(void) { return open("f", O_CREAT | O_RDWR | O_TRUNC, 0644); }

static void positions_move_with_reads_and_writes(void) {
    char text[16] = {0};
    int fd = fresh();
    CHECK(write(fd, "hello", 5) == 5 && lseek(fd, 0, SEEK_CUR) == 5);
    CHECK(lseek(fd, 1, SEEK_SET) == 1 && read(fd, text, 3) == 3 && !strcmp(text, "ell"));
    CHECK(lseek(fd, -2, SEEK_END) == 3 && fails(lseek(fd, -1, SEEK_SET), EINVAL));
    CHECK(pread(fd, text, 5, 0) == 5 && !strcmp(text, "hello"));
    CHECK(lseek(fd, 0, SEEK_CUR) == 3 && pwrite(fd, "J", 1, 0) == 1);
    CHECK(pread(fd, text, 1, 0) == 1 && text[0] == 'J');
    CHECK(fails(pread(fd, text, 1, -1), EINVAL) && read(fd, text, 9) == 2 && read(fd, text, 9) == 0);
    close(fd);
}

static void a_write_beyond_the_end_leaves_zeroes(void) {
    char bytes[8192];
    struct stat st;
    int fd = fresh();
    CHECK(pwrite(fd, "x", 1, 100000) == 1 && fstat(fd, &st) == 0 && st.st_size == 100001);
    CHECK(st.st_blocks * 512 < 100000);
    CHECK(pread(fd, bytes, sizeof bytes, 4000) == sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) CHECK(bytes[i] == 0);
    CHECK(lseek(fd, 0, SEEK_DATA) > 0 && lseek(fd, 0, SEEK_HOLE) == 0);
    CHECK(fails(lseek(fd, 100001, SEEK_DATA), ENXIO));
    close(fd);
}

static void truncation_cuts_and_zeroes(void) {
    char bytes[64];
    struct stat st;
    int fd = fresh();
    memset(bytes, 'a', sizeof bytes);
    CHECK(write(fd, bytes, 64) == 64 && ftruncate(fd, 10) == 0 && ftruncate(fd, 64) == 0);
    CHECK(pread(fd, bytes, 64, 0) == 64 && bytes[9] == 'a' && bytes[10] == 0 && bytes[63] == 0);
    CHECK(truncate("f", 5) == 0 && fstat(fd, &st) == 0 && st.st_size == 5);
    CHECK(fails(ftruncate(fd, -1), EINVAL) && fails(truncate("/tmp", 0), EISDIR));
    int reader = open("f", O_RDONLY);
    CHECK(fails(ftruncate(reader, 0), EINVAL) || errno == EBADF);
    close(reader);
    close(fd);
}

static void appends_go_to_the_end(void) {
    char text[16] = {0};
    int fd = fresh(), other = open("f", O_WRONLY | O_APPEND);
    CHECK(write(fd, "one", 3) == 3 && write(other, "two", 3) == 3 && write(fd, "X", 1) == 1);
    CHECK(pread(fd, text, 16, 0) == 6 && !strcmp(text, "oneXwo"));
    CHECK(lseek(other, 0, SEEK_SET) == 0 && write(other, "!", 1) == 1);
    CHECK(lseek(other, 0, SEEK_CUR) == 7);
    close(fd);
    close(other);
}

static void vectors_are_one_transfer(void) {
    char a[4] = {0}, b[4] = {0};
    int fd = fresh();
    struct iovec out[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    struct iovec in[2] = {{a, 2}, {b, 3}};
    CHECK(writev(fd, out, 3) == 5 && preadv(fd, in, 2, 0) == 5);
    CHECK(!memcmp(a, "ab", 2) && !memcmp(b, "cde", 3));
    CHECK(fails(readv(fd, in, -1), EINVAL) && fails(writev(fd, out, 2000), EINVAL));
    CHECK(preadv2(fd, in, 2, 1, 0) == 4 && a[0] == 'b');
    close(fd);
}

static void bad_addresses_and_descriptors_are_refused(void) {
    int fd = fresh(), reader = open("f", O_RDONLY);
    char byte;
    CHECK(fails(write(fd, (void *)8, 4), EFAULT) && write(fd, "abcd", 4) == 4);
    CHECK(fails(pread(fd, (void *)8, 4, 0), EFAULT));
    CHECK(fails(write(reader, "x", 1), EBADF) && fails(read(-1, &byte, 1), EBADF));
    int dir = open(".", O_RDONLY);
    CHECK(fails(read(dir, &byte, 1), EISDIR) && fails(open(".", O_WRONLY), EISDIR));
    close(dir);
    close(reader);
    close(fd);
}

static void a_shared_mapping_is_the_file(void) {
    char text[8] = {0};
    int fd = fresh();
    CHECK(ftruncate(fd, 8192) == 0);
    char *map = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    memcpy(map + 4094, "span", 4);
    CHECK(pread(fd, text, 4, 4094) == 4 && !strcmp(text, "span"));
    CHECK(pwrite(fd, "back", 4, 10) == 4 && !memcmp(map + 10, "back", 4));
    CHECK(msync(map, 8192, MS_SYNC) == 0);
    char *own = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(own != MAP_FAILED && own[10] == 'b');
    own[10] = 'B';
    CHECK(map[10] == 'b' && pread(fd, text, 1, 10) == 1 && text[0] == 'b');
    close(fd);
    CHECK(map[4094] == 's' && munmap(map, 8192) == 0 && munmap(own, 8192) == 0);
}

static void a_program_writes_from_its_own_mapping(void) {
    char text[8] = {0};
    int fd = fresh();
    CHECK(write(fd, "abcdefgh", 8) == 8);
    char *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED && pwrite(fd, map + 4, 4, 0) == 4);
    CHECK(pread(fd, text, 4, 0) == 4 && !memcmp(text, "efgh", 4));
    CHECK(pread(fd, map, 4, 4) == 4 && munmap(map, 4096) == 0);
    close(fd);
}

static void space_is_reserved_and_punched(void) {
    char bytes[4] = {0};
    struct stat st;
    int fd = fresh();
    CHECK(fallocate(fd, 0, 0, 16384) == 0 && fstat(fd, &st) == 0 && st.st_size == 16384);
    CHECK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 16384, 4096) == 0 && fstat(fd, &st) == 0);
    CHECK(st.st_size == 16384 && pwrite(fd, "abcd", 4, 4094) == 4);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096) == 0);
    CHECK(pread(fd, bytes, 4, 4094) == 4 && !memcmp(bytes, "ab\0\0", 4));
    CHECK(fails(fallocate(fd, 0, 0, 0), EINVAL) && fails(fallocate(fd, 0, -1, 5), EINVAL));
    close(fd);
}

static void files_are_copied_without_the_program(void) {
    static char bytes[200000], back[200000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7 >> 3);
    int from = fresh(), to = open("g", O_CREAT | O_RDWR | O_TRUNC, 0644);
    CHECK(write(from, bytes, sizeof bytes) == sizeof bytes);
    off_t offset = 0;
    CHECK(sendfile(to, from, &offset, 1000) == 1000 && offset == 1000);
    CHECK(lseek(from, 0, SEEK_CUR) == sizeof bytes);
    while (offset < (off_t)sizeof bytes) CHECK(sendfile(to, from, &offset, sizeof bytes) > 0);
    CHECK(sendfile(to, from, &offset, 10) == 0);
    CHECK(pread(to, back, sizeof back, 0) == sizeof back && !memcmp(bytes, back, sizeof back));
    CHECK(ftruncate(to, 0) == 0);
    loff_t in = 100, out = 0;
    CHECK(copy_file_range(from, &in, to, &out, 5000, 0) == 5000 && in == 5100 && out == 5000);
    CHECK(pread(to, back, 5000, 0) == 5000 && !memcmp(bytes + 100, back, 5000));
    close(from);
    close(to);
    CHECK(unlink("g") == 0);
}

static void times_are_set_and_told(void) {
    struct stat st;
    struct timespec times[2] = {{1000, 5}, {2000, 999999999}};
    int fd = fresh();
    CHECK(futimens(fd, times) == 0 && fstat(fd, &st) == 0);
    CHECK(st.st_atim.tv_sec == 1000 && st.st_atim.tv_nsec == 5);
    CHECK(st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 999999999);
    times[0].tv_nsec = UTIME_OMIT;
    times[1].tv_nsec = UTIME_NOW;
    CHECK(utimensat(AT_FDCWD, "f", times, 0) == 0 && fstat(fd, &st) == 0);
    CHECK(st.st_atim.tv_sec == 1000 && st.st_mtim.tv_sec > 1000000);
    times[0].tv_nsec = 1000000000;
    CHECK(fails(utimensat(AT_FDCWD, "f", times, 0), EINVAL));
    CHECK(write(fd, "x", 1) == 1 && fstat(fd, &st) == 0 && st.st_mtim.tv_sec > 1000000);
    struct statx sx;
    CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &sx) == 0);
    CHECK(sx.stx_ino == st.st_ino && sx.stx_size == 1 && sx.stx_mode == st.st_mode);
    CHECK(sx.stx_mtime.tv_sec == st.st_mtim.tv_sec && sx.stx_nlink == 1);
    close(fd);
}

static void owner_and_mode_change(void) {
    struct stat st;
    int fd = fresh();
    CHECK(fchmod(fd, 06755) == 0 && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 06755);
    if (geteuid() == 0) {
        CHECK(fchown(fd, 33, 44) == 0 && fstat(fd, &st) == 0);
        CHECK(st.st_uid == 33 && st.st_gid == 44 && (st.st_mode & 07000) == 0);
        CHECK(chown("f", -1, 55) == 0 && fstat(fd, &st) == 0);
        CHECK(st.st_uid == 33 && st.st_gid == 55);
    }
    close(fd);
}

static void a_memfd_is_a_file_that_can_be_sealed(void) {
    struct stat st;
    int fd = memfd_create("box", MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && write(fd, "abc", 3) == 3 && fstat(fd, &st) == 0 && st.st_nlink == 0);
    CHECK(fcntl(fd, F_GET_SEALS) == 0);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    CHECK(fails(ftruncate(fd, 1), EPERM) && fails(ftruncate(fd, 100), EPERM));
    CHECK(fails(pwrite(fd, "abcd", 4, 2), EPERM) && pwrite(fd, "X", 1, 0) == 1);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0);
    CHECK(fails(pwrite(fd, "Y", 1, 0), EPERM));
    CHECK(fails(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM));
    close(fd);
}

static void the_memory_devices_do_as_they_are_named(void) {
    char bytes[32];
    memset(bytes, 1, sizeof bytes);
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR);
    int full = open("/dev/full", O_RDWR), dice = open("/dev/urandom", O_RDONLY);
    CHECK(write(null, bytes, 32) == 32 && read(null, bytes, 32) == 0);
    CHECK(read(zero, bytes, 32) == 32 && bytes[0] == 0 && bytes[31] == 0);
    CHECK(fails(write(full, bytes, 1), ENOSPC));
    CHECK(read(dice, bytes, 32) == 32);
    int sum = 0;
    for (int i = 0; i < 32; i++) sum |= bytes[i];
    CHECK(sum != 0);
    char *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    CHECK(map != MAP_FAILED && map[5] == 0);
    close(null);
    close(zero);
    close(full);
    close(dice);
}

static void everything_reaches_the_medium(void) {
    struct statfs fs;
    int fd = fresh(), dir = open(".", O_RDONLY);
    CHECK(fsync(fd) == 0 && fdatasync(fd) == 0 && fsync(dir) == 0);
    CHECK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) == 0);
    CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL) == 0);
    CHECK(fstatfs(fd, &fs) == 0 && fs.f_bsize > 0 && fs.f_namelen == 255);
    int ends[2];
    CHECK(pipe(ends) == 0 && fails(fsync(ends[0]), EINVAL) && fails(lseek(ends[0], 0, SEEK_SET), ESPIPE));
    close(ends[0]);
    close(ends[1]);
    close(fd);
    close(dir);
}

static void a_hole_may_be_larger_than_any_memory(void) {
    char byte = 1;
    int fd = memfd_create("huge", 0);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)1 << 50) == 0);
    CHECK(pwrite(fd, "x", 1, 4096 * 7 + 5) == 1 && pwrite(fd, "y", 1, 3) == 1);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4, (off_t)1 << 50) == 0);
    CHECK(pread(fd, &byte, 1, 4096 * 7 + 5) == 1 && byte == 0);
    CHECK(pread(fd, &byte, 1, 3) == 1 && byte == 'y');
    CHECK(close(fd) == 0);
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) != 0) return 2;
    TEST(positions_move_with_reads_and_writes);
    TEST(a_write_beyond_the_end_leaves_zeroes);
    TEST(truncation_cuts_and_zeroes);
    TEST(appends_go_to_the_end);
    TEST(vectors_are_one_transfer);
    TEST(bad_addresses_and_descriptors_are_refused);
    TEST(a_shared_mapping_is_the_file);
    TEST(a_program_writes_from_its_own_mapping);
    TEST(space_is_reserved_and_punched);
    TEST(a_hole_may_be_larger_than_any_memory);
    TEST(files_are_copied_without_the_program);
    TEST(times_are_set_and_told);
    TEST(owner_and_mode_change);
    TEST(a_memfd_is_a_file_that_can_be_sealed);
    TEST(the_memory_devices_do_as_they_are_named);
    TEST(everything_reaches_the_medium);
    unlink("f");
    rmdir(home);
    return check_status();
}
