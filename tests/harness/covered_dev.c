// A pseudo terminal opens wherever /dev/ptmx is, and whatever covers /dev: ends with the line that
// failed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NEED(condition) do { if (!(condition)) return perror(#condition), __LINE__; } while (0)

int main(void) {
    char byte = 0;
    NEED(mknod("/tmp/ptmx", S_IFCHR | 0666, makedev(5, 2)) == 0);
    NEED(mkdir("/tmp/dev", 0755) == 0 && mount("none", "/tmp/dev", "devtmpfs", 0, NULL) == 0);
    NEED(mount("none", "/dev", "tmpfs", 0, NULL) == 0);
    int master = open("/tmp/ptmx", O_RDWR | O_NOCTTY);
    NEED(master >= 0 && unlockpt(master) == 0 && access("/tmp/dev/pts/0", F_OK) == 0);
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    NEED(slave >= 0 && write(master, "x\n", 2) == 2 && read(slave, &byte, 1) == 1 && byte == 'x');
    NEED(close(master) == 0 && access("/tmp/dev/pts/0", F_OK) == -1);
    return 0;
}
