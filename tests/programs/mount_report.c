// What is mounted, mount by mount (statmount(2), listmount(2), statx(2)).
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { STATMOUNT = 457, LISTMOUNT = 458, REVERSE = 1 };
enum { SB_BASIC = 1, MNT_BASIC = 2, MNT_ROOT = 8, MNT_POINT = 16, FS_TYPE = 32 };
enum { UNIQUE = 0x4000, TMPFS = 0x01021994, ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NOATIME = 0x10 };
#define ROOT (~0ul)

typedef unsigned long word;

struct request {
    unsigned size, spare;
    word mount, param, namespace;
};

struct report {
    unsigned size, options;
    word mask;
    unsigned major, minor;
    word magic;
    unsigned flags, type;
    word id, parent;
    unsigned old_id, old_parent;
    word attributes, propagation, group, master, from;
    unsigned root, point;
    word rest[50];
    char text[512];
};

static char home[] = "/tmp/mount_report.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static word id_of(const char *name, unsigned mask) {
    struct statx file = {0};
    statx(AT_FDCWD, name, 0, mask, &file);
    return file.stx_mask & mask ? file.stx_mnt_id : 0;
}

static long told(word mount, word what, struct report *report, size_t room) {
    struct request request = {sizeof request, 0, mount, what, 0};
    memset(report, 0xff, sizeof *report);
    return syscall(STATMOUNT, &request, report, room, 0);
}

static long list(word mount, word after, word *ids, size_t room, int flags) {
    struct request request = {sizeof request, 0, mount, after, 0};
    return syscall(LISTMOUNT, &request, ids, room, flags);
}

static void a_mount_tells_of_itself_and_its_system(void) {
    struct report report;
    struct stat file;
    word id = id_of("m", UNIQUE), parent = id_of(".", UNIQUE);
    CHECK(id > 1ul << 31 && parent > 1ul << 31 && id != parent && stat("m", &file) == 0);
    CHECK(told(id, SB_BASIC | MNT_BASIC, &report, sizeof report) == 0);
    CHECK(report.mask == (SB_BASIC | MNT_BASIC) && report.size == 512);
    CHECK(report.magic == TMPFS && report.major << 8 == (file.st_dev & 0xff00));
    CHECK(report.id == id && report.parent == parent && report.old_id == id_of("m", STATX_MNT_ID));
    CHECK(report.attributes == (ATTR_NOSUID | ATTR_NOATIME) && report.propagation == MS_PRIVATE);
    CHECK(report.group == 0 && report.master == 0 && report.rest[40] == 0);
    CHECK(mount(NULL, "m", NULL, MS_SHARED, NULL) == 0);
    CHECK(told(id, MNT_BASIC, &report, 96) == 0 && report.size == 96 && report.group);
    CHECK(report.propagation == MS_SHARED && report.from == ~0ul);
    CHECK(mount(NULL, "m", NULL, MS_PRIVATE, NULL) == 0);
}

static void strings_follow(void) {
    struct report report;
    char place[64];
    snprintf(place, sizeof place, "%s/b", home);
    CHECK(mkdir("m/d", 0755) == 0 && mkdir("b", 0755) == 0);
    CHECK(mount("m/d", "b", NULL, MS_BIND, NULL) == 0);
    word id = id_of("b", UNIQUE);
    CHECK(told(id, MNT_ROOT | MNT_POINT | FS_TYPE, &report, sizeof report) == 0);
    CHECK(report.mask == (MNT_ROOT | MNT_POINT | FS_TYPE) && report.size > 512);
    CHECK(strcmp(report.text + report.type, "tmpfs") == 0);
    CHECK(strcmp(report.text + report.root, "/d") == 0);
    CHECK(strcmp(report.text + report.point, place) == 0 && report.id == 0);
    CHECK(fails(told(id, FS_TYPE, &report, 512), EOVERFLOW));
    CHECK(fails(told(id, FS_TYPE, &report, 514), EOVERFLOW));
    CHECK(umount("b") == 0 && rmdir("b") == 0);
    CHECK(fails(told(id, MNT_BASIC, &report, sizeof report), ENOENT));
}

static void mounts_are_listed_by_age(void) {
    word ids[64], all[256], first = id_of("m", UNIQUE);
    CHECK(mkdir("m/x", 0755) == 0 && mount("none", "m/x", "tmpfs", 0, NULL) == 0);
    CHECK(mkdir("m/y", 0755) == 0 && mount("none", "m/y", "tmpfs", 0, NULL) == 0);
    word x = id_of("m/x", UNIQUE), y = id_of("m/y", UNIQUE);
    CHECK(x < y && list(first, 0, ids, 64, 0) == 2 && ids[0] == x && ids[1] == y);
    CHECK(list(first, 0, ids, 64, REVERSE) == 2 && ids[0] == y && ids[1] == x);
    CHECK(list(first, x, ids, 64, 0) == 1 && ids[0] == y);
    CHECK(list(first, 0, ids, 1, 0) == 1 && ids[0] == x && list(first, y, ids, 64, 0) == 0);
    long count = list(ROOT, 0, all, 256, 0), found = 0;
    CHECK(count > 3);
    for (long i = 0; i < count; i++) {
        CHECK(i == 0 || all[i - 1] < all[i]);
        found += all[i] == first || all[i] == x || all[i] == y;
    }
    CHECK(found == 3 && umount("m/x") == 0 && umount("m/y") == 0);
}

static void wrong_requests_are_refused(void) {
    struct report report;
    word ids[4], id = id_of("m", UNIQUE);
    struct request small = {16, 0, id, MNT_BASIC, 0}, spare = {32, 7, id, MNT_BASIC, 0};
    CHECK(fails(syscall(STATMOUNT, &small, &report, sizeof report, 0), EINVAL));
    CHECK(syscall(STATMOUNT, &spare, &report, sizeof report, 0) == -1);
    CHECK(fails(told(id_of("m", STATX_MNT_ID), MNT_BASIC, &report, sizeof report), EINVAL));
    CHECK(fails(told(1ul << 40, MNT_BASIC, &report, sizeof report), ENOENT));
    CHECK(fails(list(1ul << 40, 0, ids, 4, 0), ENOENT) && fails(list(id, 0, ids, 4, 0x80), EINVAL));
    CHECK(fails(list(id, 0, ids, 2000000, 0), EOVERFLOW));
    CHECK(fails(syscall(STATMOUNT, (void *)1, &report, sizeof report, 0), EFAULT));
}

static void who_cannot_reach_a_mount_is_not_told_of_it(void) {
    word id = id_of("m", UNIQUE);
    pid_t child = fork();
    if (child == 0) {
        struct report report;
        word ids[64];
        int held = mkdir("root", 0755) == 0 && chroot("root") == 0 && chdir("/") == 0 &&
                   setuid(1011) == 0 && told(id, MNT_BASIC, &report, sizeof report) == -1 &&
                   list(ROOT, 0, ids, 64, 0) == 0;
        _exit(!held);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0 && rmdir("root") == 0);
}

int main(void) {
    if (!mkdtemp(home) || chmod(home, 0755) || mount("none", home, "tmpfs", 0, NULL)) return 1;
    if (chdir(home) || mount(NULL, home, NULL, MS_PRIVATE, NULL)) return 1;
    if (mkdir("m", 0755) || mount("none", "m", "tmpfs", MS_NOSUID | MS_NOATIME, NULL)) return 1;
    TEST(a_mount_tells_of_itself_and_its_system);
    TEST(strings_follow);
    TEST(mounts_are_listed_by_age);
    TEST(wrong_requests_are_refused);
    TEST(who_cannot_reach_a_mount_is_not_told_of_it);
    if (umount("m") || chdir("/") || umount(home) || rmdir(home)) return 1;
    return check_status();
}
