// The same files at a second place, and what a mount alone may forbid (mount(2): MS_BIND,
// MS_REMOUNT).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/mount_bind.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static int put(const char *name, const char *text) {
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0;
}

static int holds(const char *name, const char *text) {
    char bytes[256] = "";
    int fd = open(name, O_RDONLY);
    return fd >= 0 && read(fd, bytes, sizeof bytes - 1) >= 0 && close(fd) == 0 &&
           strcmp(bytes, text) == 0;
}

// The line of /proc/self/FILE that speaks of `place`; empty if there is none.
static char *line_of(const char *file, const char *place) {
    static char line[1024];
    char wanted[512], path[64];
    snprintf(wanted, sizeof wanted, " %s/%s ", home, place);
    snprintf(path, sizeof path, "/proc/self/%s", file);
    FILE *list = fopen(path, "r");
    int found = 0;
    while (list && !found && fgets(line, sizeof line, list)) found = strstr(line, wanted) != NULL;
    if (list) fclose(list);
    if (!found) line[0] = 0;
    return line;
}

static unsigned long flags_of(const char *place) {
    struct statfs fs;
    return statfs(place, &fs) == 0 ? (unsigned long)fs.f_flags : ~0ul;
}

static void a_directory_is_seen_at_two_places(void) {
    CHECK(mkdir("a", 0755) == 0 && mkdir("b", 0755) == 0 && put("a/f", "one"));
    CHECK(mount("a", "b", NULL, MS_BIND, NULL) == 0 && holds("b/f", "one"));
    CHECK(put("b/g", "two") && holds("a/g", "two"));
    CHECK(rename("a/g", "a/h") == 0 && fails(access("b/g", F_OK), ENOENT) && holds("b/h", "two"));
    struct stat a, b;
    CHECK(stat("a", &a) == 0 && stat("b", &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev);
    CHECK(fails(link("a/f", "b/l"), EXDEV) && fails(rename("a/f", "b/l"), EXDEV));
    CHECK(unlink("b/h") == 0 && fails(access("a/h", F_OK), ENOENT));
    char name[512];
    CHECK(chdir("b") == 0 && getcwd(name, sizeof name) && strcmp(name + strlen(home), "/b") == 0);
    CHECK(chdir("..") == 0 && access("b", F_OK) == 0);
    CHECK(umount("b") == 0 && fails(access("b/f", F_OK), ENOENT) && holds("a/f", "one"));
}

static void a_file_is_seen_at_two_places(void) {
    CHECK(put("one", "1") && put("two", "2"));
    CHECK(mount("one", "two", NULL, MS_BIND, NULL) == 0 && holds("two", "1"));
    CHECK(fails(unlink("two"), EBUSY) && fails(rename("two", "three"), EBUSY));
    CHECK(fails(rename("one", "two"), EBUSY));
    CHECK(fails(mount("a", "two", NULL, MS_BIND, NULL), ENOTDIR));
    CHECK(fails(mount("one", "a", NULL, MS_BIND, NULL), ENOTDIR));
    CHECK(fails(mount("none", "one", "tmpfs", 0, NULL), ENOTDIR));
    CHECK(umount("two") == 0 && holds("two", "2") && unlink("two") == 0 && unlink("one") == 0);
}

static void what_is_mounted_below_is_bound_if_asked_for(void) {
    CHECK(mkdir("a/sub", 0755) == 0 && mount("none", "a/sub", "tmpfs", 0, NULL) == 0);
    CHECK(put("a/sub/f", "deep") && mount("a", "b", NULL, MS_BIND, NULL) == 0);
    CHECK(fails(access("b/sub/f", F_OK), ENOENT) && umount("b") == 0);
    CHECK(mount("a", "b", NULL, MS_BIND | MS_REC, NULL) == 0 && holds("b/sub/f", "deep"));
    CHECK(fails(umount("b"), EBUSY) && umount("b/sub") == 0 && holds("a/sub/f", "deep"));
    CHECK(umount("b") == 0);
    CHECK(mount("none", "a/sub", NULL, MS_UNBINDABLE, NULL) == 0);
    CHECK(fails(mount("a/sub", "b", NULL, MS_BIND, NULL), EINVAL));
    CHECK(strstr(line_of("mountinfo", "a/sub"), " unbindable "));
    CHECK(mount("a", "b", NULL, MS_BIND | MS_REC, NULL) == 0);
    CHECK(fails(access("b/sub/f", F_OK), ENOENT) && umount("b") == 0);
    CHECK(mount("none", "a/sub", NULL, MS_PRIVATE, NULL) == 0);
    CHECK(mount("a/sub", "b", NULL, MS_BIND, NULL) == 0 && umount("b") == 0);
    CHECK(fails(mount("none", "a", NULL, MS_PRIVATE, NULL), EINVAL));
    CHECK(fails(mount("none", "a/sub", NULL, MS_PRIVATE | MS_UNBINDABLE, NULL), EINVAL));
    CHECK(umount("a/sub") == 0 && rmdir("a/sub") == 0);
}

static void a_mount_alone_becomes_read_only(void) {
    CHECK(mount("a", "b", NULL, MS_BIND, NULL) == 0);
    int fd = open("b/f", O_WRONLY);
    CHECK(fd >= 0 && fails(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), EBUSY));
    CHECK(close(fd) == 0);
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0);
    CHECK(fails(open("b/f", O_WRONLY), EROFS) && fails(open("b/new", O_CREAT | O_RDWR, 0644), EROFS));
    CHECK(fails(mkdir("b/d", 0755), EROFS) && fails(unlink("b/f"), EROFS));
    CHECK(fails(chmod("b/f", 0600), EROFS) && fails(truncate("b/f", 0), EROFS));
    CHECK(fails(access("b/f", W_OK), EROFS) && fails(open("b", O_TMPFILE | O_RDWR, 0600), EROFS));
    CHECK(holds("b/f", "one") && put("a/f", "changed") && holds("b/f", "changed"));
    CHECK(flags_of("b") & ST_RDONLY && !(flags_of("a") & ST_RDONLY));
    CHECK(strstr(line_of("mountinfo", "b"), " ro,") && strstr(line_of("mounts", "b"), " ro,"));
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND, NULL) == 0 && put("b/f", "one"));
    CHECK(umount("b") == 0);
    CHECK(fails(mount("none", "a", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), EINVAL));
}

static void a_whole_file_system_becomes_read_only(void) {
    CHECK(mount("none", "b", "tmpfs", 0, "size=64k") == 0 && put("b/f", "one"));
    CHECK(mkdir("c", 0755) == 0 && mount("b", "c", NULL, MS_BIND, NULL) == 0);
    int fd = open("c/f", O_RDWR);
    CHECK(fails(mount("none", "b", NULL, MS_REMOUNT | MS_RDONLY, NULL), EBUSY) && close(fd) == 0);
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK(fails(open("b/f", O_WRONLY), EROFS) && fails(open("c/f", O_WRONLY), EROFS));
    CHECK(mount("none", "b", NULL, MS_REMOUNT, "size=128k") == 0 && put("c/f", "two"));
    struct statfs fs;
    CHECK(statfs("c", &fs) == 0 && fs.f_blocks * fs.f_bsize == 131072);
    CHECK(umount("c") == 0 && umount("b") == 0 && rmdir("c") == 0);
    CHECK(mount("none", "b", "tmpfs", MS_RDONLY, NULL) == 0);
    CHECK(fails(mkdir("b/d", 0755), EROFS) && umount("b") == 0);
}

static int copied(const char *from, const char *to) {
    int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_WRONLY, 0755);
    ssize_t moved = 1;
    while (moved > 0) moved = sendfile(out, in, NULL, 1 << 20);
    return moved == 0 && close(in) == 0 && close(out) == 0;
}

static int run(const char *program) {
    int status, child = fork();
    if (child == 0) {
        execl(program, program, "report", NULL);
        _exit(100 + (errno == EACCES));
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Run by `run`: says whether the set-user-ID bit counted.
static int report(void) { return geteuid() == 65534 ? 1 : 0; }

static void programs_devices_and_rights_can_be_shut_out(void) {
    CHECK(mount("none", "b", "tmpfs", 0, NULL) == 0);
    CHECK(copied("/proc/self/exe", "b/program") && chown("b/program", 65534, 65534) == 0);
    CHECK(chmod("b/program", 04755) == 0 && run("b/program") == 1);
    CHECK(mknod("b/null", S_IFCHR | 0666, makedev(1, 3)) == 0);
    int fd = open("b/null", O_RDWR);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(symlink("program", "b/link") == 0);

    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_NOSUID, NULL) == 0);
    CHECK(run("b/program") == 0 && flags_of("b") & ST_NOSUID);
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_NODEV, NULL) == 0);
    CHECK(fails(open("b/null", O_RDWR), EACCES) && !(flags_of("b") & ST_NOSUID));
    CHECK(run("b/program") == 1);
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL) == 0);
    CHECK(run("b/program") == 101 && fails(access("b/program", X_OK), EACCES));
    fd = open("b/program", O_RDONLY);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    CHECK(errno == EPERM && close(fd) == 0);
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_NOSYMFOLLOW, NULL) == 0);
    CHECK(fails(access("b/link", F_OK), ELOOP) && run("b/program") == 1);
    CHECK(umount("b") == 0);
}

static void access_times_follow_the_flags(void) {
    CHECK(mount("none", "b", "tmpfs", 0, NULL) == 0 && flags_of("b") & ST_RELATIME);
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_NOATIME, NULL) == 0);
    CHECK(flags_of("b") & ST_NOATIME && !(flags_of("b") & ST_RELATIME));
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_NODEV, NULL) == 0);
    CHECK(flags_of("b") & ST_NOATIME && strstr(line_of("mounts", "b"), " rw,nodev,noatime"));
    CHECK(mount("none", "b", NULL, MS_REMOUNT | MS_BIND | MS_STRICTATIME, NULL) == 0);
    CHECK(!(flags_of("b") & (ST_NOATIME | ST_RELATIME)) && umount("b") == 0);
}

static void statx_and_mountinfo_agree(void) {
    CHECK(mkdir("a/part", 0755) == 0 && mount("a/part", "b", NULL, MS_BIND, NULL) == 0);
    struct statx top, inside, outside;
    CHECK(put("a/part/f", "x") && statx(AT_FDCWD, "b", 0, STATX_MNT_ID, &top) == 0);
    CHECK(statx(AT_FDCWD, "b/f", 0, STATX_MNT_ID, &inside) == 0);
    CHECK(statx(AT_FDCWD, "a/part/f", 0, STATX_MNT_ID, &outside) == 0);
    CHECK(top.stx_mask & STATX_MNT_ID && top.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
    CHECK(top.stx_attributes & STATX_ATTR_MOUNT_ROOT && top.stx_mnt_id == inside.stx_mnt_id);
    CHECK(!(inside.stx_attributes & STATX_ATTR_MOUNT_ROOT));
    CHECK(inside.stx_mnt_id != outside.stx_mnt_id && inside.stx_ino == outside.stx_ino);
    unsigned long long id, parent;
    CHECK(sscanf(line_of("mountinfo", "b"), "%llu %llu", &id, &parent) == 2);
    CHECK(id == top.stx_mnt_id && parent == outside.stx_mnt_id);
    char root[512];
    snprintf(root, sizeof root, "%s/a/part ", home);
    CHECK(strstr(line_of("mountinfo", "b"), root) != NULL);
    CHECK(umount("b") == 0 && unlink("a/part/f") == 0 && rmdir("a/part") == 0);
    CHECK(*line_of("mountinfo", "b") == 0);
}

static void a_mount_hides_where_nobody_looks_its_names_up_twice(void) {
    CHECK(put("mask", "masked") && mount("mask", "/proc/version", NULL, MS_BIND, NULL) == 0);
    CHECK(holds("/proc/version", "masked"));
    int dir = open("/proc", O_DIRECTORY), fd = openat(dir, "version", O_RDONLY);
    char bytes[16];
    CHECK(read(fd, bytes, sizeof bytes) == 6 && close(fd) == 0 && close(dir) == 0);
    CHECK(mount("a", "/proc/sys/vm", NULL, MS_BIND, NULL) == 0);
    CHECK(holds("/proc/sys/vm/f", "one") && access("/proc/sys/fs/file-max", F_OK) == 0);
    CHECK(umount("/proc/sys/vm") == 0 && umount("/proc/version") == 0);
    CHECK(!holds("/proc/version", "masked") && access("/proc/sys/vm/swappiness", F_OK) == 0);
    CHECK(unlink("mask") == 0);
}

static void wrong_arguments_are_told_apart(void) {
    CHECK(fails(mount("none", "missing", "tmpfs", 0, NULL), ENOENT));
    CHECK(fails(mount("none", "a/f/x", "tmpfs", 0, NULL), ENOTDIR));
    CHECK(fails(mount("none", "b", "nosuchfs", 0, NULL), ENODEV));
    CHECK(fails(mount("none", "b", NULL, 0, NULL), EINVAL));
    CHECK(fails(mount((char *)-1, "b", "tmpfs", 0, NULL), EFAULT));
    CHECK(fails(mount("none", (char *)-1, "tmpfs", 0, NULL), EFAULT));
    CHECK(fails(mount("none", "b", (char *)-1, 0, NULL), EFAULT));
    CHECK(fails(mount("none", "b", "tmpfs", 0, (void *)-1), EFAULT));
    CHECK(fails(mount(NULL, "b", NULL, MS_BIND, NULL), EINVAL));
    CHECK(fails(mount("", "b", NULL, MS_BIND, NULL), EINVAL));
    CHECK(fails(mount("missing", "b", NULL, MS_BIND, NULL), ENOENT));
    CHECK(symlink("loop", "loop") == 0 && fails(mount("none", "loop", "tmpfs", 0, NULL), ELOOP));
    CHECK(unlink("loop") == 0);
    int status, child = fork();
    if (child == 0) {
        if (setuid(65534) != 0) _exit(1);
        if (!fails(mount("none", "/proc", "tmpfs", 0, NULL), EPERM)) _exit(2);
        if (!fails(mount("/tmp", "/proc", NULL, MS_BIND, NULL), EPERM)) _exit(3);
        if (!fails(umount("/proc"), EPERM)) _exit(4);
        if (!fails(mount("none", "/missing", "tmpfs", 0, NULL), ENOENT)) _exit(5);
        if (!fails(syscall(SYS_pivot_root, "/missing", "/missing"), EPERM)) _exit(6);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "report") == 0) return report();
    if (!mkdtemp(home) || chdir(home) != 0) return 1;
    TEST(a_directory_is_seen_at_two_places);
    TEST(a_file_is_seen_at_two_places);
    TEST(what_is_mounted_below_is_bound_if_asked_for);
    TEST(a_mount_alone_becomes_read_only);
    TEST(a_whole_file_system_becomes_read_only);
    TEST(programs_devices_and_rights_can_be_shut_out);
    TEST(access_times_follow_the_flags);
    TEST(statx_and_mountinfo_agree);
    TEST(a_mount_hides_where_nobody_looks_its_names_up_twice);
    TEST(wrong_arguments_are_told_apart);
    return check_status();
}
