// Mounts and namespaces.
#pragma once
#include "scene.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

// Below /proc, where names on the way to a mount have to be kept.
static int bound(void) {
    int result = mount("/tmp", "/proc/sys/vm", NULL, MS_BIND | MS_REC, NULL);
    if (result < 0) return errno == EPERM ? 0 : result;
    if ((result = mount("/proc/sys/vm", "/proc/sys/fs", NULL, MS_MOVE, NULL)) == 0) {
        if ((result = umount2("/proc/sys/fs", MNT_DETACH)) < 0)
            umount2("/proc/sys/fs", MNT_DETACH);
    } else {
        int why = errno;
        umount2("/proc/sys/vm", MNT_DETACH);
        errno = why;
    }
    return result;
}

static void unmount_surely(const char *name) {
    while (umount2(name, MNT_DETACH) < 0 && errno == ENOMEM);
}

static void make_surely(const char *name) {
    while (mkdir(name, 0755) < 0 && errno != EEXIST);
}

static int told_mount(void) {
    make_surely("/tmp/told.a"), make_surely("/tmp/told.b");
    int result = mount("none", "/tmp/told.a", "tmpfs", 0, NULL);
    if (result < 0 && errno == EPERM) return 0;
    if (result == 0) result = mount(NULL, "/tmp/told.a", NULL, MS_SHARED, NULL);
    if (result == 0) result = mount("/tmp/told.a", "/tmp/told.b", NULL, MS_BIND, NULL);
    if (result == 0) result = mkdir("/tmp/told.a/x", 0755);
    if (result == 0) result = mount("none", "/tmp/told.b/x", "tmpfs", 0, NULL);
    int why = errno;
    unmount_surely("/tmp/told.a/x"), unmount_surely("/tmp/told.b"), unmount_surely("/tmp/told.a");
    rmdir("/tmp/told.a"), rmdir("/tmp/told.b");
    errno = why;
    return result;
}

static int own_namespace(void) {
    int back = open("/proc/self/ns/mnt", O_RDONLY);
    if (back < 0) return -1;
    int result = unshare(CLONE_NEWNS | CLONE_NEWUTS), why = errno;
    while (result == 0 && setns(back, 0) < 0 && errno == ENOMEM);
    close(back);
    errno = why;
    return result < 0 && why == EPERM ? 0 : result;
}

static int configured(void) {
    int result = -1, copy = -1;
    int system = (int)syscall(SYS_fsopen, "tmpfs", 0);
    if (system < 0) return errno == EPERM ? 0 : -1;
    long done = syscall(SYS_fsconfig, system, FSCONFIG_SET_STRING, "size", "1m", 0);
    if (done == 0) done = syscall(SYS_fsconfig, system, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    int top = done == 0 ? (int)syscall(SYS_fsmount, system, 0, 0) : -1;
    if (top >= 0) copy = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc", OPEN_TREE_CLONE);
    if (copy >= 0) {
        struct mount_attr wanted = {.attr_set = MOUNT_ATTR_RDONLY};
        result = (int)syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &wanted, sizeof wanted);
    }
    int why = errno;
    for (int fds[] = {system, top, copy}, i = 0; i < 3; i++)
        if (fds[i] >= 0) close(fds[i]);
    errno = why;
    return result;
}

static int mounted(void) {
    if (mkdir("/tmp/mounted", 0700) < 0) return -1;
    int result = mount("none", "/tmp/mounted", "tmpfs", 0, NULL);
    if (result < 0 && errno == EPERM) result = 0;
    else if (!result && (result = umount2("/tmp/mounted", MNT_DETACH)) < 0)
        umount2("/tmp/mounted", MNT_DETACH);
    int why = errno;
    forget(rmdir, "/tmp/mounted");
    errno = why;
    return result;
}
