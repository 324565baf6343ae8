// Mounts below /volume, whose names are asked for at each walk: ends with the line that failed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEED(condition) do { if (!(condition)) return perror(#condition), __LINE__; } while (0)

static int make(const char *name) {
    int fd = open(name, O_CREAT | O_WRONLY, 0644);
    return fd >= 0 && close(fd) == 0;
}

static int exists(const char *name) { return access(name, F_OK) == 0; }

int main(void) {
    NEED(mkdir("/volume/a", 0755) == 0 && mkdir("/volume/a/b", 0755) == 0);
    NEED(mkdir("/volume/a/b/c", 0755) == 0 && make("/volume/a/b/file") && make("/tmp/other"));
    NEED(mount("none", "/volume/a/b/c", "tmpfs", 0, NULL) == 0 && make("/volume/a/b/c/in"));
    NEED(mount("/tmp/other", "/volume/a/b/file", NULL, MS_BIND, NULL) == 0);
    NEED(chdir("/volume/a") == 0 && exists("b/c/in") && chdir("b/c/..") == 0 && exists("c/in"));
    NEED(rmdir("/volume/a/b/c") == -1 && errno == EBUSY && unlink("file") == -1 && errno == EBUSY);
    NEED(rename("/volume/a", "/volume/moved") == 0 && exists("/volume/moved/b/c/in"));
    NEED(!exists("/volume/a") && mkdir("/volume/a", 0755) == 0 && !exists("/volume/a/b"));
    NEED(chdir("/") == 0 && umount("/volume/moved/b/c") == 0 && !exists("/volume/moved/b/c/in"));
    NEED(exists("/volume/moved/b/c") && umount("/volume/moved/b/file") == 0);
    NEED(rmdir("/volume/moved/b/c") == 0 && unlink("/volume/moved/b/file") == 0);
    NEED(rmdir("/volume/moved/b") == 0 && rmdir("/volume/moved") == 0 && rmdir("/volume/a") == 0);
    NEED(mkdir("/volume/left", 0755) == 0 && mount("none", "/volume/left", "tmpfs", 0, NULL) == 0);
    NEED(umount("/volume") == -1 && errno == EBUSY);
    NEED(umount2("/volume", MNT_DETACH) == 0 && !exists("/volume/left"));
    return 0;
}
