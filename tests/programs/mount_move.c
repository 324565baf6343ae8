// Mounts that go: moved, taken away at once or lazily or when nobody comes, and exchanged with
// the root (mount(2): MS_MOVE, umount2(2), pivot_root(2)).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/mount_move.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static int make(const char *name) {
    int fd = open(name, O_CREAT | O_WRONLY, 0644);
    return fd >= 0 && close(fd) == 0;
}

static int exists(const char *name) { return access(name, F_OK) == 0; }

static int tmpfs(const char *at) { return mount("none", at, "tmpfs", 0, NULL); }

static int lines(const char *file) {
    FILE *list = fopen(file, "r");
    int count = 0;
    for (int c; list && (c = fgetc(list)) != EOF;) count += c == '\n';
    if (list) fclose(list);
    return count;
}

static int pivot(const char *new, const char *old) { return (int)syscall(SYS_pivot_root, new, old); }

static void a_mount_moves_with_all_below(void) {
    CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && tmpfs("a") == 0);
    CHECK(mkdir("a/sub", 0755) == 0 && tmpfs("a/sub") == 0 && make("a/sub/f"));
    int inside = open("a/sub", O_DIRECTORY);
    CHECK(fails(mount("a", "a/sub", NULL, MS_MOVE, NULL), ELOOP));
    CHECK(mount("a", "b", NULL, MS_MOVE, NULL) == 0 && exists("b/sub/f") && !exists("a/sub"));
    char name[512];
    CHECK(fchdir(inside) == 0 && getcwd(name, sizeof name));
    CHECK(strcmp(name + strlen(home), "/b/sub") == 0);
    CHECK(chdir("../..") == 0 && exists("b/sub/f") && close(inside) == 0);
    CHECK(make("file") && fails(mount("b", "file", NULL, MS_MOVE, NULL), EINVAL));
    CHECK(fails(mount("a", "b", NULL, MS_MOVE, NULL), EINVAL) && unlink("file") == 0);
    CHECK(fails(mount("", "b", NULL, MS_MOVE, NULL), EINVAL));
    CHECK(mount("b", "a", NULL, MS_MOVE, NULL) == 0 && exists("a/sub/f"));
    CHECK(umount("a/sub") == 0 && umount("a") == 0);
}

static void mounts_lie_on_top_of_each_other(void) {
    CHECK(tmpfs("a") == 0 && make("a/one") && tmpfs("a") == 0 && make("a/two"));
    CHECK(!exists("a/one") && exists("a/two") && exists("a/../b"));
    CHECK(umount("a") == 0 && exists("a/one") && !exists("a/two") && umount("a") == 0);
    CHECK(fails(umount("a"), EINVAL));
}

static void a_mount_in_use_goes_lazily_only(void) {
    CHECK(tmpfs("a") == 0 && mkdir("a/sub", 0755) == 0 && tmpfs("a/sub") == 0);
    int dir = open("a", O_DIRECTORY);
    CHECK(make("a/f") && umount("a/sub") == 0 && fails(umount("a"), EBUSY));
    CHECK(fails(umount2("a", MNT_FORCE), EBUSY) && tmpfs("a/sub") == 0);
    int before = lines("/proc/self/mounts");
    CHECK(umount2("a", MNT_DETACH) == 0 && lines("/proc/self/mounts") == before - 2);
    CHECK(!exists("a/f") && faccessat(dir, "f", F_OK, 0) == 0);
    int fd = openat(dir, "g", O_CREAT | O_RDWR, 0644);
    CHECK(fd >= 0 && write(fd, "late", 4) == 4 && close(fd) == 0);
    CHECK(fchdir(dir) == 0 && tmpfs("sub") == -1 && (errno == EINVAL || errno == ENOENT));
    CHECK(fails(umount("."), EINVAL) && chdir(home) == 0 && close(dir) == 0);
    CHECK(tmpfs("a") == 0 && chdir("a") == 0 && fails(umount("../a"), EBUSY) && chdir("..") == 0);
    CHECK(umount("a") == 0);
}

static void a_mount_expires_if_nobody_enters_it(void) {
    CHECK(tmpfs("a") == 0 && fails(umount2("a", MNT_EXPIRE | MNT_DETACH), EINVAL));
    CHECK(fails(umount2("a", MNT_EXPIRE | MNT_FORCE), EINVAL));
    CHECK(fails(umount2("a", MNT_EXPIRE), EAGAIN) && exists("a"));
    CHECK(fails(umount2("a", MNT_EXPIRE), EAGAIN));
    int fd = open("a", O_DIRECTORY);
    CHECK(fails(umount2("a", MNT_EXPIRE), EBUSY) && close(fd) == 0);
    CHECK(fails(umount2("a", MNT_EXPIRE), EAGAIN) && umount2("a", MNT_EXPIRE) == 0);
}

static void only_the_top_of_a_mount_is_unmounted(void) {
    CHECK(tmpfs("a") == 0 && mkdir("a/sub", 0755) == 0 && symlink("a", "link") == 0);
    CHECK(fails(umount("a/sub"), EINVAL) && fails(umount("a/none"), ENOENT));
    CHECK(fails(umount2("a", 1 << 20), EINVAL) && fails(umount2("link", UMOUNT_NOFOLLOW), EINVAL));
    CHECK(fails(umount((char *)-1), EFAULT));
    CHECK(umount2("link", 0) == 0 && unlink("link") == 0);
}

// In a root of its own that is a mount: gives the line where it fails.
#define NEED(condition) do { if (!(condition)) return __LINE__; } while (0)

static int exchange_roots(void) {
    NEED(chroot("root") == 0 && chdir("/") == 0 && mkdir("new", 0755) == 0);
    NEED(mkdir("plain", 0755) == 0 && make("in_old"));
    NEED(fails(pivot("missing", "new"), ENOENT) && fails(pivot("in_old", "new"), ENOTDIR));
    NEED(fails(pivot("plain", "plain"), EBUSY) && tmpfs("new") == 0);
    NEED(fails(pivot("new", "plain"), EBUSY) && mkdir("new/old", 0755) == 0);
    NEED(mkdir("new/deep", 0755) == 0 && make("new/in_new"));
    NEED(fails(pivot("new/deep", "new/old"), EINVAL) && tmpfs("plain") == 0);
    NEED(fails(pivot("new", "plain"), EINVAL));
    NEED(umount("plain") == 0 && pivot("new", "new/old") == 0);
    NEED(exists("/in_new") && exists("/old/in_old") && exists("in_new") && !exists("/in_old"));
    NEED(lines("/old/proc/self/mounts") == 3);
    NEED(fails(umount("/old"), EBUSY) && umount("/old/proc") == 0 && umount("/old") == 0);
    NEED(!exists("/old/in_old") && exists("/../in_new"));
    return 0;
}

static int exchange_on_one_spot(void) {
    NEED(chroot("root") == 0 && chdir("/") == 0 && mkdir("new", 0755) == 0 && tmpfs("new") == 0);
    NEED(make("new/in_new") && chdir("new") == 0 && pivot(".", ".") == 0);
    NEED(umount2(".", MNT_DETACH) == 0 && chdir("/") == 0 && exists("in_new"));
    return 0;
}

static int in_a_new_root(int (*what)(void)) {
    int status, child;
    if (mkdir("root", 0755) != 0 || tmpfs("root") != 0 || mkdir("root/proc", 0755) != 0) return -1;
    if (what == exchange_roots && mount("none", "root/proc", "proc", 0, NULL) != 0) return -2;
    if ((child = fork()) == 0) {
        int line = what();
        if (line) printf("# line %d: errno %d\n", line, errno), fflush(stdout);
        _exit(line != 0);
    }
    if (waitpid(child, &status, 0) != child) return -3;
    // Where it was, the new root is mounted now.
    if (umount2("root", MNT_DETACH) != 0 || rmdir("root") != 0) return -4;
    return status;
}

static void a_new_root_takes_the_place_of_the_old(void) {
    CHECK(in_a_new_root(exchange_roots) == 0 && exists(home) && exists("a"));
}

static void the_old_root_can_be_put_on_the_new(void) {
    CHECK(in_a_new_root(exchange_on_one_spot) == 0);
}

static void a_root_that_is_no_mount_stays(void) {
    CHECK(mkdir("root", 0755) == 0 && mkdir("root/new", 0755) == 0 && tmpfs("root/new") == 0);
    CHECK(mkdir("root/new/old", 0755) == 0);
    int status, child = fork();
    if (child == 0) {
        if (chroot("root") != 0 || chdir("/") != 0) _exit(1);
        _exit(fails(pivot("new", "new/old"), EINVAL) ? 0 : 2);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(umount("root/new") == 0 && rmdir("root/new") == 0 && rmdir("root") == 0);
}

static int set_most(const char *text) {
    int fd = open("/proc/sys/fs/mount-max", O_WRONLY);
    int done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return fd >= 0 && close(fd) == 0 && done;
}

static int fill_three_times(void) {
    int before = lines("/proc/self/mounts");
    for (int round = 0; round < 3; round++) {
        int made = 0;
        // Half on top of each other, half side by side.
        for (; tmpfs(made % 2 ? "a" : "b") == 0; made++) {}
        NEED(errno == ENOSPC && made > 100 && made < 200);
        NEED(fails(mount("/", "a", NULL, MS_BIND | MS_REC, NULL), ENOSPC));
        NEED(lines("/proc/self/mountinfo") == before + made);
        for (int left = made; left > 0; left--) NEED(umount(left % 2 ? "b" : "a") == 0);
        NEED(lines("/proc/self/mounts") == before);
    }
    // A tree that grows by being bound below itself.
    int grown = 0;
    for (; mkdir("a/x", 0755), mount(".", "a", NULL, MS_BIND | MS_REC, NULL) == 0; grown++) {}
    NEED(errno == ENOSPC && grown > 0);
    while (umount2("a", MNT_DETACH) == 0) {}
    NEED(lines("/proc/self/mounts") == before);
    return 0;
}

static void mounts_end_where_the_system_says_and_come_again(void) {
    char usual[32] = "";
    int fd = open("/proc/sys/fs/mount-max", O_RDONLY);
    CHECK(fd >= 0 && read(fd, usual, sizeof usual - 1) > 0 && close(fd) == 0);
    CHECK(!set_most("0") && errno == EINVAL && set_most("200"));
    int line = fill_three_times(), why = errno;
    CHECK(set_most(usual));
    errno = why;
    CHECK(line == 0);
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) != 0) return 1;
    TEST(a_mount_moves_with_all_below);
    TEST(mounts_lie_on_top_of_each_other);
    TEST(a_mount_in_use_goes_lazily_only);
    TEST(a_mount_expires_if_nobody_enters_it);
    TEST(only_the_top_of_a_mount_is_unmounted);
    TEST(a_new_root_takes_the_place_of_the_old);
    TEST(the_old_root_can_be_put_on_the_new);
    TEST(a_root_that_is_no_mount_stays);
    TEST(mounts_end_where_the_system_says_and_come_again);
    return check_status();
}
