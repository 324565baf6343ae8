// When the times of a file change (inode(7)), which reads set the access time (mount(2)), and who
// may set times (utimensat(2)).
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1009, ACCESS = 1, MODIFY = 2, CHANGE = 4 };

static char home[] = "/tmp/file_times.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static int put(const char *name) {
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    return fd >= 0 && write(fd, "some bytes", 10) == 10 && close(fd) == 0;
}

static struct stat told(const char *name) {
    struct stat file = {0};
    lstat(name, &file);
    return file;
}

// Sets both times far back; the clock is then surely beyond the change's own time.
static void age(const char *name) {
    struct timespec times[2] = {{1000, 0}, {2000, 0}};
    utimensat(AT_FDCWD, name, times, AT_SYMLINK_NOFOLLOW);
    usleep(20000);
}

static int differ(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
}

// Which times are others than they were.
static int since(struct stat before, const char *name) {
    struct stat now = told(name);
    return differ(before.st_atim, now.st_atim) * ACCESS |
           differ(before.st_mtim, now.st_mtim) * MODIFY |
           differ(before.st_ctim, now.st_ctim) * CHANGE;
}

static int look(const char *name, int flags) {
    char bytes[8];
    int fd = open(name, O_RDONLY | flags);
    return fd >= 0 && read(fd, bytes, sizeof bytes) > 0 && close(fd) == 0;
}

static int list(const char *name) {
    DIR *directory = opendir(name);
    while (directory && readdir(directory));
    return directory && closedir(directory) == 0;
}

static void the_first_read_after_a_change_sets_the_access_time(void) {
    CHECK(put("f"));
    age("f");
    struct stat file = told("f");
    CHECK(look("f", 0) && since(file, "f") == ACCESS && told("f").st_atim.tv_sec > 2000);
    file = told("f");
    usleep(20000);
    CHECK(look("f", 0) && since(file, "f") == 0);
    CHECK(put("f"));
    file = told("f");
    usleep(20000);
    CHECK(look("f", 0) && since(file, "f") == ACCESS);
    CHECK(chmod("f", 0600) == 0);
    file = told("f");
    usleep(20000);
    CHECK(look("f", 0) && since(file, "f") == ACCESS);
}

static void every_way_to_read_sets_the_access_time(void) {
    char bytes[16];
    CHECK(put("f"));
    int fd = open("f", O_RDWR), pipes[2], out = open("out", O_CREAT | O_RDWR, 0644);
    CHECK(fd >= 0 && out >= 0 && pipe(pipes) == 0);
    age("f");
    struct stat file = told("f");
    CHECK(pread(fd, bytes, 1, 0) == 1 && since(file, "f") == ACCESS);
    age("f"), file = told("f");
    CHECK(sendfile(out, fd, &(off_t){0}, 4) == 4 && since(file, "f") == ACCESS);
    age("f"), file = told("f");
    CHECK(splice(fd, &(off_t){0}, pipes[1], NULL, 4, 0) == 4 && since(file, "f") == ACCESS);
    age("f"), file = told("f");
    CHECK(pread(fd, bytes, 4, 1000) == 0 && since(file, "f") == ACCESS);
    age("f"), file = told("f");
    void *at = mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED && since(file, "f") == ACCESS && munmap(at, 10) == 0);
    CHECK(close(fd) == 0 && close(out) == 0 && close(pipes[0]) == 0 && close(pipes[1]) == 0);
}

static void a_directory_is_read_by_listing_it(void) {
    CHECK(mkdir("d", 0755) == 0 && put("d/f"));
    age("d");
    struct stat file = told("d");
    CHECK(look("d/f", 0) && since(file, "d") == 0);
    CHECK(list("d") && since(file, "d") == ACCESS);
}

static void a_link_is_read_by_following_it(void) {
    char text[8];
    CHECK(symlink("f", "l") == 0);
    age("l");
    struct stat file = told("l");
    CHECK(told("l").st_atim.tv_sec == 1000 && since(file, "l") == 0);
    CHECK(access("l", F_OK) == 0 && since(file, "l") == ACCESS);
    age("l"), file = told("l");
    CHECK(readlink("l", text, sizeof text) == 1 && since(file, "l") == ACCESS);
}

static void mounts_say_which_reads_count(void) {
    CHECK(mkdir("m", 0755) == 0 && mount("none", "m", "tmpfs", MS_NOATIME, NULL) == 0);
    CHECK(mkdir("m/d", 0755) == 0 && put("m/d/f"));
    age("m/d"), age("m/d/f");
    struct stat file = told("m/d/f"), directory = told("m/d");
    CHECK(look("m/d/f", 0) && list("m/d"));
    CHECK(since(file, "m/d/f") == 0 && since(directory, "m/d") == 0);
    CHECK(mount("none", "m", NULL, MS_REMOUNT | MS_NODIRATIME, NULL) == 0);
    CHECK(look("m/d/f", 0) && list("m/d"));
    CHECK(since(file, "m/d/f") == ACCESS && since(directory, "m/d") == 0);
    CHECK(mount("none", "m", NULL, MS_REMOUNT | MS_STRICTATIME, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        file = told("m/d/f"), directory = told("m/d");
        usleep(20000);
        CHECK(look("m/d/f", 0) && list("m/d"));
        CHECK(since(file, "m/d/f") == ACCESS && since(directory, "m/d") == ACCESS);
    }
    age("m/d/f"), file = told("m/d/f");
    CHECK(mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK(look("m/d/f", 0) && since(file, "m/d/f") == 0);
    CHECK(umount("m") == 0 && rmdir("m") == 0);
}

static void only_the_owner_reads_without_a_trace(void) {
    CHECK(put("f") && chmod("f", 0644) == 0);
    age("f");
    struct stat file = told("f");
    CHECK(look("f", O_NOATIME) && since(file, "f") == 0);
    pid_t child = fork();
    if (child == 0) {
        int fd = setuid(USER) == 0 ? open("f", O_RDONLY) : -1;
        int refused = fails(open("f", O_RDONLY | O_NOATIME), EPERM) &&
                      fails(fcntl(fd, F_SETFL, O_NOATIME), EPERM);
        _exit(!(fd >= 0 && refused && fcntl(fd, F_SETFL, O_NONBLOCK) == 0));
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    int fd = open("f", O_RDONLY);
    char byte;
    CHECK(fcntl(fd, F_SETFL, O_NOATIME) == 0 && read(fd, &byte, 1) == 1 && since(file, "f") == 0);
    CHECK(fcntl(fd, F_SETFL, 0) == 0 && read(fd, &byte, 1) == 1 && since(file, "f") == ACCESS);
    CHECK(close(fd) == 0);
}

static void changes_of_bytes_set_two_times(void) {
    int fd = open("f", O_RDWR);
    CHECK(fd >= 0);
    age("f");
    struct stat file = told("f");
    CHECK(write(fd, "", 0) == 0 && since(file, "f") == 0);
    CHECK(pwrite(fd, "x", 1, 0) == 1 && since(file, "f") == (MODIFY | CHANGE));
    age("f"), file = told("f");
    CHECK(truncate("f", file.st_size) == 0 && since(file, "f") == (MODIFY | CHANGE));
    age("f"), file = told("f");
    CHECK(ftruncate(fd, file.st_size) == 0 && since(file, "f") == (MODIFY | CHANGE));
    age("f"), file = told("f");
    CHECK(truncate("f", 5) == 0 && since(file, "f") == (MODIFY | CHANGE));
    age("f"), file = told("f");
    CHECK(fallocate(fd, 0, 0, 4096) == 0 && since(file, "f") == (MODIFY | CHANGE));
    age("f"), file = told("f");
    CHECK(close(open("f", O_RDWR | O_TRUNC)) == 0 && since(file, "f") == (MODIFY | CHANGE));
    age("f"), file = told("f");
    CHECK(close(open("f", O_RDWR | O_TRUNC)) == 0 && since(file, "f") == (MODIFY | CHANGE));
    CHECK(ftruncate(fd, 4096) == 0);
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED);
    age("f"), file = told("f");
    at[0] = 'x';
    CHECK(msync(at, 4096, MS_SYNC) == 0 && since(file, "f") == (MODIFY | CHANGE));
    CHECK(munmap(at, 4096) == 0 && close(fd) == 0);
}

static void changes_of_names_set_the_times_of_directories(void) {
    CHECK(mkdir("from", 0755) == 0 && mkdir("to", 0755) == 0 && put("f"));
    age("f"), age("to");
    struct stat file = told("f"), to = told("to");
    CHECK(link("f", "to/g") == 0 && since(file, "f") == CHANGE);
    CHECK(since(to, "to") == (MODIFY | CHANGE));
    age("f"), age("to"), file = told("f"), to = told("to");
    CHECK(unlink("to/g") == 0 && since(file, "f") == CHANGE);
    CHECK(since(to, "to") == (MODIFY | CHANGE) && put("from/f") && put("to/f"));
    age("from"), age("to"), age("from/f"), age("to/f");
    struct stat from = told("from");
    file = told("from/f"), to = told("to");
    struct stat other = told("to/f");
    CHECK(renameat2(AT_FDCWD, "from/f", AT_FDCWD, "to/f", RENAME_EXCHANGE) == 0);
    CHECK(since(file, "to/f") == CHANGE && since(other, "from/f") == CHANGE);
    CHECK(since(from, "from") == (MODIFY | CHANGE) && since(to, "to") == (MODIFY | CHANGE));
    age("from"), age("to"), age("from/f"), from = told("from"), to = told("to");
    file = told("from/f");
    CHECK(rename("from/f", "to/f") == 0 && since(file, "to/f") == CHANGE);
    CHECK(since(from, "from") == (MODIFY | CHANGE) && since(to, "to") == (MODIFY | CHANGE));
}

static void changes_of_rights_set_one_time(void) {
    CHECK(put("f"));
    age("f");
    struct stat file = told("f");
    CHECK(chmod("f", file.st_mode & 07777) == 0 && since(file, "f") == CHANGE);
    age("f"), file = told("f");
    CHECK(chown("f", -1, -1) == 0 && since(file, "f") == CHANGE);
    age("f"), file = told("f");
    CHECK(setxattr("f", "user.a", "b", 1, 0) == 0 && since(file, "f") == CHANGE);
    age("f"), file = told("f");
    CHECK(removexattr("f", "user.a") == 0 && since(file, "f") == CHANGE);
}

static void a_fifo_is_read_and_written_as_a_file(void) {
    char byte;
    CHECK(mkfifo("p", 0644) == 0);
    int fd = open("p", O_RDWR);
    CHECK(fd >= 0);
    age("p");
    struct stat file = told("p");
    CHECK(write(fd, "x", 1) == 1 && since(file, "p") == (MODIFY | CHANGE));
    age("p"), file = told("p");
    CHECK(read(fd, &byte, 1) == 1 && since(file, "p") == ACCESS && close(fd) == 0);
}

static int set(const char *name, long access, long modify) {
    struct timespec times[2] = {{7, access}, {8, modify}};
    return utimensat(AT_FDCWD, name, times, 0);
}

static void who_may_write_sets_times_to_now_only(void) {
    CHECK(put("f") && chmod("f", 0666) == 0 && put("g") && chmod("g", 0644) == 0);
    pid_t child = fork();
    if (child == 0) {
        check_name = "another user";
        if (setuid(USER)) _exit(1);
        int sets = utimensat(AT_FDCWD, "f", NULL, 0) == 0 && set("f", UTIME_NOW, UTIME_NOW) == 0;
        int refused = fails(set("f", 1, 2), EPERM) && fails(set("f", UTIME_NOW, UTIME_OMIT), EPERM) &&
                      fails(set("f", UTIME_OMIT, UTIME_NOW), EPERM) && fails(set("g", 1, 2), EPERM) &&
                      fails(set("g", UTIME_NOW, UTIME_NOW), EACCES) &&
                      fails(utimensat(AT_FDCWD, "g", NULL, 0), EACCES);
        _exit(!(sets && refused && set("g", UTIME_OMIT, UTIME_OMIT) == 0));
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void times_are_kept_or_set_one_by_one(void) {
    age("f");
    struct stat file = told("f");
    CHECK(set("f", UTIME_OMIT, 5) == 0 && told("f").st_atim.tv_sec == 1000);
    CHECK(told("f").st_mtim.tv_sec == 8 && told("f").st_mtim.tv_nsec == 5);
    CHECK(set("f", UTIME_NOW, UTIME_OMIT) == 0 && told("f").st_mtim.tv_sec == 8);
    CHECK(told("f").st_atim.tv_sec > 2000);
    age("f"), file = told("f");
    CHECK(set("f", UTIME_OMIT, UTIME_OMIT) == 0 && since(file, "f") == 0);
    CHECK(fails(set("f", 1000000000, 0), EINVAL) && fails(set("f", 0, -1), EINVAL));
    CHECK(since(file, "f") == 0);
}

// glibc itself refuses the null path that stands for the descriptor.
static void arguments_are_checked_before_the_path(void) {
    struct timespec none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    int fd = open("f", O_RDONLY);
    CHECK(utimensat(AT_FDCWD, "missing", none, 0) == 0);
    CHECK(fails(syscall(SYS_utimensat, AT_FDCWD, "missing", 1L, 0), EFAULT));
    CHECK(fails(syscall(SYS_utimensat, fd, NULL, NULL, AT_SYMLINK_NOFOLLOW), EINVAL));
    CHECK(syscall(SYS_utimensat, fd, NULL, NULL, 0) == 0 && close(fd) == 0);
    CHECK(fails(syscall(SYS_utimensat, AT_FDCWD, NULL, NULL, 0), EFAULT));
}

static void nobody_sets_what_is_read_only(void) {
    CHECK(mkdir("r", 0755) == 0 && mount("none", "r", "tmpfs", 0, NULL) == 0 && put("r/f"));
    CHECK(mount("none", "r", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        int held = setuid(USER) == 0 && fails(set("r/f", 1, 2), EROFS) &&
                   fails(chmod("r/f", 0600), EROFS) && fails(chown("r/f", 0, 0), EROFS);
        _exit(!held);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(umount("r") == 0 && rmdir("r") == 0);
}

int main(void) {
    if (!mkdtemp(home) || mount("none", home, "tmpfs", 0, NULL) || chdir(home) || chmod(".", 0755))
        return 1;
    umask(022);
    TEST(the_first_read_after_a_change_sets_the_access_time);
    TEST(every_way_to_read_sets_the_access_time);
    TEST(a_directory_is_read_by_listing_it);
    TEST(a_link_is_read_by_following_it);
    TEST(mounts_say_which_reads_count);
    TEST(only_the_owner_reads_without_a_trace);
    TEST(changes_of_bytes_set_two_times);
    TEST(changes_of_names_set_the_times_of_directories);
    TEST(changes_of_rights_set_one_time);
    TEST(a_fifo_is_read_and_written_as_a_file);
    TEST(who_may_write_sets_times_to_now_only);
    TEST(times_are_kept_or_set_one_by_one);
    TEST(arguments_are_checked_before_the_path);
    TEST(nobody_sets_what_is_read_only);
    if (chdir("/") || umount(home) || rmdir(home)) return 1;
    return check_status();
}
