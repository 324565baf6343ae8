// The tree: mounts, roots, limited walks, shared memory, what a user's program expects of it.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/file_tree.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static void a_mount_covers_and_uncovers(void) {
    struct statfs fs;
    CHECK(mkdir("m", 0755) == 0 && mkdir("m/under", 0755) == 0);
    if (mount("none", "m", "tmpfs", 0, "size=64k,mode=700") != 0) {
        CHECK(errno == EPERM);
    } else {
        struct stat top, sub;
        CHECK(fails(access("m/under", F_OK), ENOENT) && statfs("m", &fs) == 0);
        CHECK(fs.f_type == 0x01021994 && fs.f_blocks * fs.f_bsize == 65536);
        CHECK(stat(".", &top) == 0 && stat("m", &sub) == 0 && top.st_dev != sub.st_dev);
        CHECK((sub.st_mode & 0777) == 0700);
        int fd = open("m/f", O_CREAT | O_RDWR, 0644);
        static char bytes[100000];
        CHECK(fd >= 0 && write(fd, bytes, sizeof bytes) == 65536);
        CHECK(fails(write(fd, bytes, 1), ENOSPC));
        CHECK(fails(rename("m/f", "f"), EXDEV) && fails(link("m/f", "f"), EXDEV));
        CHECK(fails(rmdir("m"), EBUSY) && fails(umount("m"), EBUSY));
        CHECK(chdir("m/..") == 0 && access("m/f", F_OK) == 0);
        CHECK(close(fd) == 0 && umount("m") == 0 && access("m/under", F_OK) == 0);
    }
    CHECK(fails(mount("none", "m", "nosuchfs", 0, 0), ENODEV) || errno == EPERM);
    CHECK(rmdir("m/under") == 0 && rmdir("m") == 0);
}

static int open2(int dir, const char *path, unsigned long resolve) {
    struct open_how how = {.flags = O_RDONLY, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static void a_walk_can_be_limited(void) {
    CHECK(mkdir("jail", 0755) == 0 && mkdir("jail/in", 0755) == 0);
    CHECK(symlink("/in", "jail/absolute") == 0 && symlink("../..", "jail/in/up") == 0);
    int dir = open("jail", O_PATH | O_DIRECTORY);
    int fd = open2(dir, "in", RESOLVE_BENEATH);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(fails(open2(dir, "..", RESOLVE_BENEATH), EXDEV));
    CHECK(fails(open2(dir, "in/up", RESOLVE_BENEATH), EXDEV));
    CHECK(fails(open2(dir, "/in", RESOLVE_BENEATH), EXDEV));
    CHECK(fails(open2(dir, "absolute", RESOLVE_NO_SYMLINKS), ELOOP));
    fd = open2(dir, "absolute", RESOLVE_IN_ROOT);
    CHECK(fd >= 0 && close(fd) == 0);
    fd = open2(dir, "../../in", RESOLVE_IN_ROOT);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(fails(open2(dir, "in", 1 << 20), EINVAL));
    CHECK(close(dir) == 0 && unlink("jail/in/up") == 0 && unlink("jail/absolute") == 0);
    CHECK(rmdir("jail/in") == 0 && rmdir("jail") == 0);
}

static void a_program_can_get_another_root(void) {
    if (geteuid() != 0) return;
    CHECK(mkdir("root", 0755) == 0 && mkdir("root/etc", 0755) == 0);
    pid_t child = fork();
    if (child == 0) {
        char name[256];
        if (chroot("root") != 0 || chdir("/") != 0) _exit(1);
        if (access("/etc", F_OK) != 0 || access("/tmp", F_OK) == 0) _exit(2);
        if (chdir("../../..") != 0 || access("etc", F_OK) != 0) _exit(3);
        if (!getcwd(name, sizeof name) || strcmp(name, "/")) _exit(4);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(access("/tmp", F_OK) == 0 && rmdir("root/etc") == 0 && rmdir("root") == 0);
}

static void a_socket_has_a_name_in_the_tree(void) {
    struct stat st;
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "sock"};
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(server, (void *)&name, sizeof name) == 0 && listen(server, 1) == 0);
    CHECK(stat("sock", &st) == 0 && S_ISSOCK(st.st_mode) && fails(open("sock", O_RDWR), ENXIO));
    CHECK(fails(bind(client, (void *)&name, sizeof name), EADDRINUSE));
    CHECK(connect(client, (void *)&name, sizeof name) == 0);
    CHECK(fstat(client, &st) == 0 && S_ISSOCK(st.st_mode));
    CHECK(close(server) == 0 && close(client) == 0);
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fails(connect(client, (void *)&name, sizeof name), ECONNREFUSED));
    CHECK(close(client) == 0 && unlink("sock") == 0);
}

static void processes_share_memory_by_name(void) {
    int fd = shm_open("/file_tree", O_CREAT | O_RDWR | O_EXCL, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    int *word = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(word != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        int again = shm_open("/file_tree", O_RDWR, 0);
        int *mine = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
        *mine = 42;
        _exit(0);
    }
    CHECK(waitpid(child, 0, 0) == child && *word == 42);
    CHECK(munmap(word, 4096) == 0 && close(fd) == 0 && shm_unlink("/file_tree") == 0);
}

static void a_removed_directory_is_empty_and_stays_so(void) {
    CHECK(mkdir("gone", 0755) == 0);
    int dir = open("gone", O_RDONLY | O_DIRECTORY);
    CHECK(dir >= 0 && rmdir("gone") == 0);
    CHECK(fails(openat(dir, "x", O_CREAT | O_WRONLY, 0644), ENOENT));
    CHECK(fails(mkdirat(dir, "y", 0755), ENOENT));
    close(dir);
}

static void there_are_no_extended_attributes_here(void) {
    char byte;
    int fd = open("plain", O_CREAT | O_RDWR, 0644);
    CHECK(syscall(SYS_fgetxattr, fd, "user.nothing", &byte, 1) == -1);
    CHECK(errno == ENODATA || errno == EOPNOTSUPP);
    CHECK(syscall(SYS_flistxattr, fd, 0, 0) >= 0);
    CHECK(close(fd) == 0 && unlink("plain") == 0);
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) != 0) return 2;
    TEST(a_mount_covers_and_uncovers);
    TEST(a_walk_can_be_limited);
    TEST(a_program_can_get_another_root);
    TEST(a_socket_has_a_name_in_the_tree);
    TEST(processes_share_memory_by_name);
    TEST(a_removed_directory_is_empty_and_stays_so);
    TEST(there_are_no_extended_attributes_here);
    rmdir(home);
    return check_status();
}
