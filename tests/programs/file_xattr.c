// Extended attributes: names, values, limits, and who may do what with them (xattr(7)).
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1007, LARGE = 65536 };

static const char *const FILE_NAME = "/tmp/xattr/file";
static char bytes[LARGE + 1];

static int make(const char *name) {
    int fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0644);
    return fd;
}

static int result_of(int (*work)(void)) {
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) != 0 || setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0)
            _exit(99);
        _exit(work());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_value_is_set_read_replaced_and_removed(void) {
    char value[16];
    int fd = make(FILE_NAME);
    CHECK(getxattr(FILE_NAME, "user.a", value, sizeof value) == -1 && errno == ENODATA);
    CHECK(setxattr(FILE_NAME, "user.a", "one", 3, XATTR_REPLACE) == -1 && errno == ENODATA);
    CHECK(setxattr(FILE_NAME, "user.a", "one", 3, XATTR_CREATE) == 0);
    CHECK(setxattr(FILE_NAME, "user.a", "two", 3, XATTR_CREATE) == -1 && errno == EEXIST);
    CHECK(fgetxattr(fd, "user.a", value, sizeof value) == 3 && memcmp(value, "one", 3) == 0);
    CHECK(fsetxattr(fd, "user.a", "", 0, XATTR_REPLACE) == 0);
    CHECK(getxattr(FILE_NAME, "user.a", value, sizeof value) == 0);
    CHECK(lsetxattr(FILE_NAME, "user.a", "three", 5, 0) == 0);
    CHECK(getxattr(FILE_NAME, "user.a", NULL, 0) == 5);
    CHECK(getxattr(FILE_NAME, "user.a", value, 4) == -1 && errno == ERANGE);
    CHECK(fremovexattr(fd, "user.a") == 0);
    CHECK(removexattr(FILE_NAME, "user.a") == -1 && errno == ENODATA);
    CHECK(setxattr(FILE_NAME, "user.a", "x", 1, 4) == -1 && errno == EINVAL);
    close(fd);
}

static void names_are_listed(void) {
    char names[64];
    int fd = make(FILE_NAME);
    CHECK(flistxattr(fd, names, sizeof names) == 0);
    CHECK(fsetxattr(fd, "user.a", "1", 1, 0) == 0 && fsetxattr(fd, "user.bc", "2", 1, 0) == 0);
    CHECK(listxattr(FILE_NAME, NULL, 0) == 15);
    CHECK(listxattr(FILE_NAME, names, 14) == -1 && errno == ERANGE);
    CHECK(llistxattr(FILE_NAME, names, sizeof names) == 15);
    CHECK(memmem(names, 15, "user.a", 7) != NULL && memmem(names, 15, "user.bc", 8) != NULL);
    CHECK(fremovexattr(fd, "user.a") == 0 && listxattr(FILE_NAME, names, sizeof names) == 8);
    CHECK(fremovexattr(fd, "user.bc") == 0);
    close(fd);
}

static void names_and_values_have_limits(void) {
    char name[300] = "user.";
    memset(name + 5, 'n', 251);
    int fd = make(FILE_NAME);
    CHECK(fsetxattr(fd, name, "x", 1, 0) == -1 && errno == ERANGE);
    name[255] = 0;
    CHECK(fsetxattr(fd, name, "x", 1, 0) == 0 && fremovexattr(fd, name) == 0);
    CHECK(fsetxattr(fd, "", "x", 1, 0) == -1 && errno == ERANGE);
    CHECK(fsetxattr(fd, "user.a", bytes, LARGE + 1, 0) == -1 && errno == E2BIG);
    int error = 0;
    for (int i = 0; i < 4096 && error == 0; i++) {
        snprintf(name, sizeof name, "user.%d", i);
        if (fsetxattr(fd, name, bytes, LARGE / 2, 0) != 0) error = errno;
    }
    CHECK(error == 0 || error == ENOSPC);
    for (int i = 0; i < 4096; i++) {
        snprintf(name, sizeof name, "user.%d", i);
        fremovexattr(fd, name);
    }
    CHECK(fsetxattr(fd, "user.a", bytes, LARGE / 2, 0) == 0 && fremovexattr(fd, "user.a") == 0);
    close(fd);
}

static void spaces_of_names_have_their_rules(void) {
    int fd = make(FILE_NAME);
    CHECK(fsetxattr(fd, "plain", "x", 1, 0) == -1 && errno == EOPNOTSUPP);
    CHECK(fsetxattr(fd, "other.a", "x", 1, 0) == -1 && errno == EOPNOTSUPP);
    CHECK(fsetxattr(fd, "trusted.a", "x", 1, 0) == 0 && fsetxattr(fd, "security.a", "x", 1, 0) == 0);
    CHECK(symlink("file", "/tmp/xattr/link") == 0 && mkfifo("/tmp/xattr/fifo", 0666) == 0);
    CHECK(setxattr("/tmp/xattr/link", "user.a", "x", 1, 0) == 0);
    CHECK(getxattr(FILE_NAME, "user.a", NULL, 0) == 1);
    CHECK(lsetxattr("/tmp/xattr/link", "user.a", "x", 1, 0) == -1 && errno == EPERM);
    CHECK(lgetxattr("/tmp/xattr/link", "user.a", NULL, 0) == -1 && errno == ENODATA);
    CHECK(setxattr("/tmp/xattr/fifo", "user.a", "x", 1, 0) == -1 && errno == EPERM);
    CHECK(setxattr("/tmp/xattr", "user.a", "x", 1, 0) == 0 && removexattr("/tmp/xattr", "user.a") == 0);
    int path = open(FILE_NAME, O_PATH);
    CHECK(fgetxattr(path, "user.a", NULL, 0) == -1 && errno == EBADF);
    close(path), close(fd);
    unlink("/tmp/xattr/link"), unlink("/tmp/xattr/fifo");
}

static int as_another(void) {
    char names[64];
    if (getxattr(FILE_NAME, "trusted.a", NULL, 0) != -1 || errno != ENODATA) return 1;
    if (setxattr(FILE_NAME, "trusted.a", "y", 1, 0) != -1 || errno != EPERM) return 2;
    if (getxattr(FILE_NAME, "security.a", NULL, 0) != 1) return 3;
    if (setxattr(FILE_NAME, "security.a", "y", 1, 0) != -1 || errno != EPERM) return 4;
    if (setxattr(FILE_NAME, "user.a", "y", 1, 0) != -1 || errno != EACCES) return 5;
    if (getxattr(FILE_NAME, "user.a", NULL, 0) != 1) return 6;
    ssize_t listed = listxattr(FILE_NAME, names, sizeof names);
    if (listed < 0 || memmem(names, listed, "trusted", 7) != NULL) return 7;
    if (setxattr("/tmp/xattr/sticky", "user.a", "y", 1, 0) != -1 || errno != EPERM) return 8;
    return 0;
}

static int as_reader_of_nothing(void) {
    return getxattr(FILE_NAME, "user.a", NULL, 0) == -1 && errno == EACCES ? 0 : 1;
}

static void another_user_sees_and_sets_what_is_for_everybody(void) {
    CHECK(mkdir("/tmp/xattr/sticky", 0) == 0 && chmod("/tmp/xattr/sticky", 01777) == 0);
    int result = result_of(as_another);
    chmod(FILE_NAME, 0600);
    int nothing = result_of(as_reader_of_nothing);
    rmdir("/tmp/xattr/sticky");
    CHECK(result == 0);
    CHECK(nothing == 0);
}

int main(void) {
    mkdir("/tmp/xattr", 0755);
    mount("xattr", "/tmp/xattr", "tmpfs", 0, NULL);
    TEST(a_value_is_set_read_replaced_and_removed);
    TEST(names_are_listed);
    TEST(names_and_values_have_limits);
    TEST(spaces_of_names_have_their_rules);
    TEST(another_user_sees_and_sets_what_is_for_everybody);
    umount("/tmp/xattr");
    rmdir("/tmp/xattr");
    return check_status();
}
