// Mounts by descriptor: fsopen(2), fsconfig(2), fsmount(2), move_mount(2), open_tree(2), fspick(2),
// mount_setattr(2).
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define RDONLY 1
#define NODEV 4
#define RELATIME 0x1000
#define NOATIME 0x400

extern int umount(const char *);
extern int umount2(const char *, int);
extern int mount(const char *, const char *, const char *, unsigned long, const void *);

static char home[] = "/tmp/mount_descriptors.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static int make(const char *name) {
    int fd = open(name, O_CREAT | O_WRONLY, 0644);
    return fd >= 0 && close(fd) == 0;
}

static int exists(const char *name) { return access(name, F_OK) == 0; }

static int open_kind(const char *kind) { return (int)syscall(SYS_fsopen, kind, FSOPEN_CLOEXEC); }

static int config(int fd, unsigned command, const char *name, const void *value, int number) {
    return (int)syscall(SYS_fsconfig, fd, command, name, value, number);
}

static int as_mount(int fd, unsigned attributes) {
    return (int)syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attributes);
}

static int tree(const char *name, unsigned flags) {
    return (int)syscall(SYS_open_tree, AT_FDCWD, name, flags | OPEN_TREE_CLOEXEC);
}

static int put(int mount, const char *to) {
    return (int)syscall(SYS_move_mount, mount, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH);
}

static int set_attributes(const char *name, unsigned flags, struct mount_attr *wanted) {
    return (int)syscall(SYS_mount_setattr, AT_FDCWD, name, flags, wanted, sizeof *wanted);
}

static unsigned long flags_of(const char *place) {
    struct statfs fs;
    return statfs(place, &fs) == 0 ? (unsigned long)fs.f_flags : ~0ul;
}

static int lines(void) {
    FILE *list = fopen("/proc/self/mounts", "r");
    int count = 0;
    for (int c; list && (c = fgetc(list)) != EOF;) count += c == '\n';
    if (list) fclose(list);
    return count;
}

static void a_file_system_is_made_step_by_step(void) {
    int fs = open_kind("tmpfs");
    CHECK(fs >= 0 && fcntl(fs, F_GETFD) == FD_CLOEXEC && fails(as_mount(fs, 0), EINVAL));
    CHECK(config(fs, FSCONFIG_SET_STRING, "size", "64k", 0) == 0);
    CHECK(config(fs, FSCONFIG_SET_STRING, "mode", "700", 0) == 0);
    CHECK(config(fs, FSCONFIG_SET_STRING, "source", "of_mine", 0) == 0);
    CHECK(fails(config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0), EBUSY));
    CHECK(config(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
    CHECK(fails(config(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), EBUSY));
    CHECK(fails(config(fs, FSCONFIG_SET_STRING, "size", "1m", 0), EBUSY));
    CHECK(fails(as_mount(fs, 1 << 30), EINVAL));
    int top = as_mount(fs, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
    CHECK(top >= 0 && fails(as_mount(fs, 0), EBUSY) && mkdir("a", 0755) == 0);
    // It can be used before it has a place, and nobody else sees it.
    int before = lines(), file = openat(top, "early", O_CREAT | O_RDWR, 0644);
    CHECK(file >= 0 && close(file) == 0 && put(top, "a") == 0 && lines() == before + 1);
    CHECK(exists("a/early") && flags_of("a") & NODEV && flags_of("a") & NOATIME);
    struct statfs info;
    CHECK(statfs("a", &info) == 0 && info.f_blocks * info.f_bsize == 65536);
    struct stat at_top;
    CHECK(stat("a", &at_top) == 0 && (at_top.st_mode & 0777) == 0700 && close(top) == 0);
    CHECK(exists("a/early") && config(fs, FSCONFIG_SET_STRING, "size", "128k", 0) == 0);
    CHECK(config(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0);
    CHECK(config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0);
    CHECK(statfs("a", &info) == 0 && info.f_blocks * info.f_bsize == 131072);
    CHECK(fails(open("a/f", O_CREAT | O_RDWR, 0644), EROFS) && close(fs) == 0 && umount("a") == 0);
}

static void wrong_parameters_are_told(void) {
    char text[256] = "";
    int fs = open_kind("tmpfs");
    CHECK(fs >= 0 && fails(read(fs, text, sizeof text), ENODATA));
    CHECK(fails(config(fs, FSCONFIG_SET_STRING, "nonsense", "1", 0), EINVAL));
    ssize_t got = read(fs, text, sizeof text - 1);
    CHECK(got > 0 && strstr(text, "nonsense") && strncmp(text, "e tmpfs: ", 9) == 0);
    CHECK(fails(read(fs, text, sizeof text), ENODATA));
    CHECK(fails(config(fs, FSCONFIG_SET_FLAG, "ro", "value", 0), EINVAL));
    CHECK(fails(config(fs, FSCONFIG_SET_STRING, NULL, "value", 0), EINVAL));
    CHECK(fails(config(fs, FSCONFIG_SET_STRING, "size", "1m", 1), EINVAL));
    CHECK(fails(config(fs, FSCONFIG_SET_FD, "size", NULL, -1), EINVAL));
    CHECK(fails(config(fs, FSCONFIG_CMD_CREATE, "name", NULL, 0), EINVAL));
    CHECK(fails(config(fs, 99, NULL, NULL, 0), EOPNOTSUPP));
    CHECK(fails(config(-1, FSCONFIG_SET_FLAG, "ro", NULL, 0), EINVAL));
    CHECK(fails(config(0, FSCONFIG_SET_FLAG, "ro", NULL, 0), EINVAL));
    CHECK(fails(config(500, FSCONFIG_SET_FLAG, "ro", NULL, 0), EBADF));
    CHECK(fails(config(fs, FSCONFIG_SET_STRING, (char *)-1, "1", 0), EFAULT) && close(fs) == 0);
    CHECK(fails(open_kind("nosuchfs"), ENODEV) && fails(syscall(SYS_fsopen, "tmpfs", 16), EINVAL));
    CHECK(fails(mount("none", "a", "tmpfs", 0, "nonsense=1"), EINVAL));
}

static void a_copy_gets_its_place_later(void) {
    CHECK(mkdir("b", 0755) == 0 && mount("none", "a", "tmpfs", 0, NULL) == 0);
    CHECK(mkdir("a/sub", 0755) == 0 && mount("none", "a/sub", "tmpfs", 0, NULL) == 0);
    CHECK(make("a/f") && make("a/sub/f"));
    int one = tree("a", OPEN_TREE_CLONE), all = tree("a", OPEN_TREE_CLONE | AT_RECURSIVE);
    CHECK(one >= 0 && all >= 0 && faccessat(one, "sub/f", F_OK, 0) == -1);
    CHECK(faccessat(all, "sub/f", F_OK, 0) == 0);
    CHECK(put(one, "b") == 0 && exists("b/f") && !exists("b/sub/f") && umount("b") == -1);
    CHECK(close(one) == 0 && umount("b") == 0 && put(all, "b") == 0 && exists("b/sub/f"));
    CHECK(fails(put(all, "b/sub"), ELOOP) && close(all) == 0 && umount2("b", 2) == 0);
    int plain = tree("a", 0);
    CHECK(plain >= 0 && put(plain, "b") == 0 && exists("b/sub/f") && !exists("a/f"));
    CHECK(close(plain) == 0 && umount("b/sub") == 0 && umount("b") == 0);
    int directory = tree("a", 0);
    CHECK(fails(put(directory, "b"), EINVAL) && close(directory) == 0);
    CHECK(fails(tree("a", AT_RECURSIVE), EINVAL) && fails(tree("missing", 0), ENOENT));
    CHECK(fails(syscall(SYS_move_mount, AT_FDCWD, "a", AT_FDCWD, "b", 1 << 20), EINVAL));
    CHECK(fails(syscall(SYS_move_mount, AT_FDCWD, "", AT_FDCWD, "b", 0), ENOENT));
}

static void what_never_gets_a_place_goes(void) {
    CHECK(mount("none", "a", "tmpfs", 0, NULL) == 0 && mkdir("a/sub", 0755) == 0);
    CHECK(mount("none", "a/sub", "tmpfs", 0, NULL) == 0);
    int before = lines();
    // More than there can be at a time.
    for (int round = 0; round < 1500; round++) {
        int copy = tree("a", OPEN_TREE_CLONE | AT_RECURSIVE);
        CHECK(copy >= 0 && close(copy) == 0);
    }
    CHECK(lines() == before && umount("a/sub") == 0 && umount("a") == 0);
}

static void attributes_change_together_or_not_at_all(void) {
    CHECK(mount("none", "a", "tmpfs", 0, NULL) == 0 && mkdir("a/sub", 0755) == 0);
    CHECK(mount("none", "a/sub", "tmpfs", 0, NULL) == 0);
    struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV};
    int file = open("a/sub/f", O_CREAT | O_RDWR, 0644);
    CHECK(file >= 0 && fails(set_attributes("a", AT_RECURSIVE, &wanted), EBUSY));
    CHECK(!(flags_of("a") & RDONLY) && close(file) == 0);
    CHECK(set_attributes("a", AT_RECURSIVE, &wanted) == 0);
    CHECK(flags_of("a") & RDONLY && flags_of("a/sub") & RDONLY && flags_of("a/sub") & NODEV);
    wanted = (struct mount_attr){.attr_clr = MOUNT_ATTR_RDONLY};
    CHECK(set_attributes("a", 0, &wanted) == 0 && !(flags_of("a") & RDONLY));
    CHECK(flags_of("a") & NODEV && flags_of("a/sub") & RDONLY);
    wanted = (struct mount_attr){.attr_set = MOUNT_ATTR_NOATIME};
    CHECK(fails(set_attributes("a", 0, &wanted), EINVAL));
    wanted.attr_clr = MOUNT_ATTR__ATIME;
    CHECK(set_attributes("a", 0, &wanted) == 0 && flags_of("a") & NOATIME);
    CHECK(!(flags_of("a") & RELATIME));
    wanted = (struct mount_attr){.propagation = 3};
    CHECK(fails(set_attributes("a", 0, &wanted), EINVAL));
    wanted = (struct mount_attr){.attr_set = 1ull << 40};
    CHECK(fails(set_attributes("a", 0, &wanted), EINVAL));
    CHECK(mkdir("a/plain", 0755) == 0);
    wanted = (struct mount_attr){.attr_set = MOUNT_ATTR_RDONLY};
    CHECK(fails(set_attributes("a/plain", 0, &wanted), EINVAL));
    CHECK(fails(set_attributes("a", 1, &wanted), EINVAL));
    CHECK(fails(syscall(SYS_mount_setattr, AT_FDCWD, "a", 0, &wanted, 8), EINVAL));
    CHECK(fails(syscall(SYS_mount_setattr, AT_FDCWD, "a", 0, &wanted, 8192), E2BIG));
    char longer[64] = {1};
    longer[60] = 1;
    CHECK(fails(syscall(SYS_mount_setattr, AT_FDCWD, "a", 0, longer, sizeof longer), E2BIG));
    longer[60] = 0;
    CHECK(syscall(SYS_mount_setattr, AT_FDCWD, "a", 0, longer, sizeof longer) == 0);
    CHECK(flags_of("a") & RDONLY && umount("a/sub") == 0 && umount("a") == 0);
}

static void a_mounted_system_is_picked_up(void) {
    CHECK(mount("none", "a", "tmpfs", 0, "size=64k") == 0 && mkdir("a/in", 0755) == 0);
    CHECK(fails(syscall(SYS_fspick, AT_FDCWD, "a/in", 0), EINVAL));
    CHECK(fails(syscall(SYS_fspick, AT_FDCWD, "a", 1 << 20), EINVAL));
    int fs = (int)syscall(SYS_fspick, AT_FDCWD, "a", FSPICK_CLOEXEC);
    CHECK(fs >= 0 && config(fs, FSCONFIG_SET_STRING, "size", "256k", 0) == 0);
    CHECK(config(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0);
    struct statfs info;
    CHECK(statfs("a", &info) == 0 && info.f_blocks * info.f_bsize == 262144);
    CHECK(fails(config(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), EBUSY));
    CHECK(fails(as_mount(fs, 0), EBUSY) && close(fs) == 0 && umount("a") == 0);
}

static void only_administrators_may(void) {
    int status, child = fork();
    if (child == 0) {
        struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY};
        if (setuid(65534) != 0) _exit(1);
        if (!fails(open_kind("tmpfs"), EPERM)) _exit(2);
        if (!fails(tree("/", OPEN_TREE_CLONE), EPERM)) _exit(3);
        if (tree("/", 0) < 0) _exit(4);
        if (!fails(put(AT_FDCWD, "/tmp"), EPERM)) _exit(5);
        if (!fails(syscall(SYS_fspick, AT_FDCWD, "/", 0), EPERM)) _exit(6);
        if (!fails(set_attributes("/", 0, &wanted), EPERM)) _exit(7);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) != 0) return 1;
    TEST(a_file_system_is_made_step_by_step);
    TEST(wrong_parameters_are_told);
    TEST(a_copy_gets_its_place_later);
    TEST(what_never_gets_a_place_goes);
    TEST(attributes_change_together_or_not_at_all);
    TEST(a_mounted_system_is_picked_up);
    TEST(only_administrators_may);
    return check_status();
}
