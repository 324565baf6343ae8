// Names: create, link, rename, remove, walk. Works in a fresh directory below /tmp.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/file_names.XXXXXX";

static int fails(int result, int why) { return result == -1 && errno == why; }

static void put(const char *name, const char *text) {
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static int holds(const char *name, const char *text) {
    char bytes[64] = {0};
    int fd = open(name, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t count = read(fd, bytes, sizeof bytes - 1);
    close(fd);
    return count == (ssize_t)strlen(text) && strcmp(bytes, text) == 0;
}

static void exclusive_creation_fails_on_an_existing_name(void) {
    put("a", "1");
    CHECK(fails(open("a", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST));
    CHECK(symlink("nowhere", "dangling") == 0);
    CHECK(fails(open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST));
    CHECK(unlink("dangling") == 0 && unlink("a") == 0);
}

static void creation_follows_a_dangling_link(void) {
    CHECK(symlink("born", "to_born") == 0);
    put("to_born", "x");
    CHECK(holds("born", "x"));
    CHECK(unlink("born") == 0 && unlink("to_born") == 0);
}

static void the_umask_takes_bits_from_the_mode(void) {
    struct stat st;
    mode_t old = umask(027);
    int fd = open("masked", O_CREAT | O_WRONLY, 0777);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0750);
    CHECK(mkdir("masked_dir", 0777) == 0 && stat("masked_dir", &st) == 0);
    CHECK((st.st_mode & 07777) == 0750);
    CHECK(umask(old) == 027);
    close(fd);
    CHECK(unlink("masked") == 0 && rmdir("masked_dir") == 0);
}

static void a_removed_file_lives_until_it_is_closed(void) {
    struct stat st;
    put("gone", "still here");
    int fd = open("gone", O_RDWR);
    CHECK(fd >= 0 && unlink("gone") == 0);
    CHECK(fails(access("gone", F_OK), ENOENT));
    CHECK(fstat(fd, &st) == 0 && st.st_nlink == 0 && st.st_size == 10);
    char text[16] = {0};
    CHECK(read(fd, text, sizeof text) == 10 && strcmp(text, "still here") == 0);
    close(fd);
}

static void two_names_of_one_file_count_as_links(void) {
    struct stat one, two;
    put("one", "same");
    CHECK(link("one", "two") == 0);
    CHECK(stat("one", &one) == 0 && stat("two", &two) == 0);
    CHECK(one.st_ino == two.st_ino && one.st_nlink == 2);
    CHECK(fails(link("one", "two"), EEXIST));
    CHECK(unlink("one") == 0 && holds("two", "same"));
    CHECK(stat("two", &two) == 0 && two.st_nlink == 1);
    CHECK(unlink("two") == 0);
    CHECK(mkdir("d", 0755) == 0 && fails(link("d", "d2"), EPERM));
    CHECK(rmdir("d") == 0);
}

static void rename_replaces_a_file_at_once(void) {
    put("old", "old");
    put("new", "new");
    CHECK(rename("new", "old") == 0);
    CHECK(holds("old", "new") && fails(access("new", F_OK), ENOENT));
    CHECK(rename("old", "old") == 0);
    CHECK(fails(rename("absent", "old"), ENOENT));
    CHECK(unlink("old") == 0);
}

static void rename_keeps_to_the_kinds(void) {
    put("f", "");
    CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0 && mkdir("empty", 0755) == 0);
    CHECK(fails(rename("f", "d"), EISDIR));
    CHECK(fails(rename("d", "f"), ENOTDIR));
    CHECK(fails(rename("empty", "d"), ENOTEMPTY) || errno == EEXIST);
    CHECK(fails(rename("d", "d/e/x"), EINVAL));
    CHECK(rename("d", "empty") == 0 && access("empty/e", F_OK) == 0);
    CHECK(rmdir("empty/e") == 0 && rmdir("empty") == 0 && unlink("f") == 0);
}

static void renameat2_exchanges_or_refuses(void) {
    put("x", "x");
    put("y", "y");
    CHECK(fails(syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "y", RENAME_NOREPLACE), EEXIST));
    CHECK(syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "y", RENAME_EXCHANGE) == 0);
    CHECK(holds("x", "y") && holds("y", "x"));
    CHECK(unlink("x") == 0 && unlink("y") == 0);
}

static void rename_noreplace_replaces_not_even_the_same_file(void) {
    CHECK(close(open("one", O_CREAT | O_WRONLY, 0600)) == 0 && link("one", "two") == 0);
    CHECK(fails(syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, "one", RENAME_NOREPLACE), EEXIST));
    CHECK(fails(syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, "two", RENAME_NOREPLACE), EEXIST));
    CHECK(fails(syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, ".", RENAME_NOREPLACE), EEXIST));
    CHECK(fails(syscall(SYS_renameat2, AT_FDCWD, "no", AT_FDCWD, "two", RENAME_NOREPLACE), ENOENT));
    CHECK(rename("one", "two") == 0 && access("one", F_OK) == 0);
    CHECK(unlink("one") == 0 && unlink("two") == 0);
}

static mode_t mode_of(int fd) {
    struct stat file;
    fstat(fd, &file);
    return file.st_mode & 07777;
}

// As an ordinary user; then the file gets its bits back.
#define LOSES(fd, mode, left, call) \
    do { \
        CHECK(fchmod(fd, mode) == 0 && seteuid(12345) == 0); \
        int done = (call); \
        CHECK(seteuid(0) == 0 && done && mode_of(fd) == (left)); \
    } while (0)

static void what_another_changes_no_longer_acts_for_its_owner(void) {
    int fd = open("tool", O_CREAT | O_RDWR, 0666);
    CHECK(fd >= 0 && write(fd, "#!", 2) == 2 && fchmod(fd, 06777) == 0);
    CHECK(pwrite(fd, "#!", 2, 0) == 2 && ftruncate(fd, 1) == 0 && mode_of(fd) == 06777);
    CHECK(chmod(".", 0755) == 0);
    LOSES(fd, 06777, 0777, pwrite(fd, "#!", 2, 0) == 2);
    LOSES(fd, 06777, 0777, write(fd, "x", 1) == 1);
    LOSES(fd, 06777, 0777, ftruncate(fd, 1) == 0);
    LOSES(fd, 06777, 0777, truncate("tool", 1) == 0);
    LOSES(fd, 06777, 0777, close(open("tool", O_WRONLY | O_TRUNC)) == 0);
    LOSES(fd, 06777, 0777, posix_fallocate(fd, 0, 100) == 0);
    // Without execution by the group the bit means mandatory locks, not rights.
    CHECK(setegid(0) == 0);
    LOSES(fd, 06767, 02767, pwrite(fd, "x", 1, 0) == 1);
    CHECK(fchmod(fd, 06777) == 0 && fchown(fd, 12345, 12345) == 0 && mode_of(fd) == 0777);
    CHECK(close(fd) == 0 && unlink("tool") == 0);
}

static void rights_over_files_go_and_come_with_the_user_for_files(void) {
    int fd = open("private", O_CREAT | O_RDWR, 0600);
    CHECK(fd >= 0 && chmod(".", 0755) == 0);
    CHECK(setfsuid(12345) == 0);
    CHECK(fails(open("private", O_RDONLY), EACCES));
    CHECK(fails(chmod("private", 0644), EPERM));
    CHECK(fails(chown("private", 1, 1), EPERM));
    CHECK(fails(mknod("device", S_IFCHR | 0600, 0x103), EPERM) || errno == EACCES);
    CHECK(setfsuid(0) == 12345);
    CHECK(close(open("private", O_RDONLY)) == 0 && chmod("private", 0644) == 0);
    CHECK(close(fd) == 0 && unlink("private") == 0);
}

static void directories_count_their_children_as_links(void) {
    struct stat st;
    CHECK(mkdir("p", 0755) == 0 && mkdir("p/q", 0755) == 0);
    CHECK(stat("p", &st) == 0 && st.st_nlink == 3);
    CHECK(fails(rmdir("p"), ENOTEMPTY));
    CHECK(rmdir("p/q") == 0 && stat("p", &st) == 0 && st.st_nlink == 2);
    CHECK(fails(rmdir("p/."), EINVAL));
    CHECK(fails(unlink("p"), EISDIR));
    CHECK(rmdir("p") == 0);
    CHECK(fails(rmdir("p"), ENOENT));
}

static void a_slash_at_the_end_demands_a_directory(void) {
    struct stat st;
    put("plain", "");
    CHECK(fails(stat("plain/", &st), ENOTDIR));
    CHECK(fails(open("absent/", O_CREAT | O_WRONLY, 0644), EISDIR));
    CHECK(mkdir("made/", 0755) == 0 && stat("made/", &st) == 0);
    CHECK(symlink("made", "to_made") == 0);
    CHECK(lstat("to_made", &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(lstat("to_made/", &st) == 0 && S_ISDIR(st.st_mode));
    CHECK(unlink("to_made") == 0 && rmdir("made") == 0 && unlink("plain") == 0);
}

static void links_are_followed_forty_times_at_most(void) {
    CHECK(symlink("loop", "loop") == 0);
    CHECK(fails(open("loop", O_RDONLY), ELOOP));
    CHECK(unlink("loop") == 0);
    CHECK(mkdir("deep", 0755) == 0 && symlink("../deep", "deep/again") == 0);
    char path[PATH_MAX] = "deep";
    for (int i = 0; i < 30; i++) strcat(path, "/again");
    CHECK(access(path, F_OK) == 0);
    for (int i = 0; i < 15; i++) strcat(path, "/again");
    CHECK(fails(access(path, F_OK), ELOOP));
    CHECK(unlink("deep/again") == 0 && rmdir("deep") == 0);
}

static void o_nofollow_and_o_path_stop_at_a_link(void) {
    struct stat st;
    put("t", "");
    CHECK(symlink("t", "l") == 0);
    CHECK(fails(open("l", O_RDONLY | O_NOFOLLOW), ELOOP));
    int fd = open("l", O_PATH | O_NOFOLLOW);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode));
    char text[8] = {0};
    CHECK(readlinkat(fd, "", text, sizeof text) == 1 && text[0] == 't');
    CHECK(fails(read(fd, text, 1), EBADF));
    close(fd);
    CHECK(fails(open("t", O_RDONLY | O_DIRECTORY), ENOTDIR));
    CHECK(unlink("t") == 0 && unlink("l") == 0);
}

static void names_and_paths_have_limits(void) {
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = 0;
    CHECK(fails(open(name, O_CREAT | O_WRONLY, 0644), ENAMETOOLONG));
    name[255] = 0;
    int fd = open(name, O_CREAT | O_WRONLY, 0644);
    CHECK(fd >= 0 && close(fd) == 0 && unlink(name) == 0);
    static char path[PATH_MAX + 10];
    memset(path, '/', sizeof path - 1);
    CHECK(fails(access(path, F_OK), ENAMETOOLONG));
    CHECK(fails(access("", F_OK), ENOENT));
    CHECK(fails(syscall(SYS_access, (char *)8, F_OK), EFAULT));
}

static void calls_start_at_a_directory_descriptor(void) {
    struct stat st;
    CHECK(mkdir("base", 0755) == 0);
    int base = open("base", O_RDONLY | O_DIRECTORY);
    CHECK(base >= 0 && mkdirat(base, "in", 0755) == 0);
    int fd = openat(base, "in/f", O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK(fstatat(base, "in/f", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(fstatat(base, "", &st, AT_EMPTY_PATH) == 0 && S_ISDIR(st.st_mode));
    CHECK(fails(fstatat(base, "", &st, 0), ENOENT));
    CHECK(unlinkat(base, "in/f", 0) == 0 && unlinkat(base, "in", AT_REMOVEDIR) == 0);
    CHECK(fails(fstatat(99, "x", &st, 0), EBADF));
    CHECK(fstatat(99, home, &st, 0) == 0);
    close(base);
    CHECK(rmdir("base") == 0);
}

static void the_working_directory_moves_and_is_named(void) {
    char name[PATH_MAX];
    CHECK(mkdir("w", 0755) == 0 && mkdir("w/v", 0755) == 0 && chdir("w/v") == 0);
    CHECK(getcwd(name, sizeof name) && strcmp(name + strlen(home), "/w/v") == 0);
    CHECK(rename("../../w", "../../u") == 0);
    CHECK(getcwd(name, sizeof name) && strcmp(name + strlen(home), "/u/v") == 0);
    CHECK(syscall(SYS_getcwd, name, 3) == -1 && errno == ERANGE);
    CHECK(rmdir("../v") == 0 && fails(syscall(SYS_getcwd, name, sizeof name), ENOENT));
    CHECK(chdir(home) == 0 && rmdir("u") == 0);
    CHECK(chdir("/..") == 0 && getcwd(name, sizeof name) && strcmp(name, "/") == 0);
    CHECK(chdir(home) == 0);
}

static void a_listing_shows_each_name_once(void) {
    CHECK(mkdir("many", 0755) == 0 && chdir("many") == 0);
    char name[16];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "f%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0644);
        CHECK(fd >= 0 && close(fd) == 0);
    }
    DIR *dir = opendir(".");
    CHECK(dir);
    int names = 0, dots = 0;
    for (struct dirent *entry; (entry = readdir(dir)); names++) {
        dots += entry->d_name[0] == '.';
        // Names that go while the list is read must not disturb it.
        if (entry->d_name[0] == 'f') CHECK(unlink(entry->d_name) == 0);
    }
    closedir(dir);
    CHECK(names == 502 && dots == 2);
    CHECK(chdir(home) == 0 && rmdir("many") == 0);
}

static void a_deep_tree_goes_with_its_last_descriptor(void) {
    for (int i = 0; i < 2000; i++) CHECK(mkdir("d", 0755) == 0 && chdir("d") == 0);
    int bottom = open(".", O_RDONLY | O_DIRECTORY);
    CHECK(bottom >= 0);
    for (int i = 0; i < 2000; i++) CHECK(chdir("..") == 0 && rmdir("d") == 0);
    CHECK(close(bottom) == 0);
    char name[PATH_MAX];
    CHECK(getcwd(name, sizeof name) && !strcmp(name, home));
}

static void permissions_bind_an_ordinary_user(void) {
    if (geteuid() != 0) return;
    put("secret", "s");
    CHECK(chmod("secret", 0600) == 0 && chmod(home, 0755) == 0);
    CHECK(seteuid(12345) == 0);
    int denied = fails(open("secret", O_RDONLY), EACCES);
    int no_create = fails(open("mine", O_CREAT | O_WRONLY, 0644), EACCES);
    int no_chmod = fails(chmod("secret", 0666), EPERM);
    int no_chown = fails(chown("secret", 12345, -1), EPERM);
    CHECK(seteuid(0) == 0);
    CHECK(denied && no_create && no_chmod && no_chown);
    CHECK(access("secret", X_OK) == -1 && errno == EACCES);
    CHECK(unlink("secret") == 0);
}

static void in_a_sticky_directory_only_owners_remove(void) {
    if (geteuid() != 0) return;
    CHECK(mkdir("sticky", 0755) == 0 && chmod("sticky", 01777) == 0);
    put("sticky/root", "");
    CHECK(seteuid(12345) == 0);
    int refused = fails(unlink("sticky/root"), EPERM);
    int fd = open("sticky/mine", O_CREAT | O_WRONLY, 0600);
    int own = fd >= 0 && unlink("sticky/mine") == 0;
    CHECK(seteuid(0) == 0);
    CHECK(refused && own);
    CHECK(unlink("sticky/root") == 0 && rmdir("sticky") == 0);
}

static void a_file_without_a_name_gets_one_by_its_descriptor(void) {
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    if (fd < 0 && errno == EOPNOTSUPP) return;
    CHECK(fd >= 0 && write(fd, "late", 4) == 4);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW) == 0);
    CHECK(holds("named", "late"));
    close(fd);
    CHECK(unlink("named") == 0);
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) != 0) return 2;
    TEST(exclusive_creation_fails_on_an_existing_name);
    TEST(creation_follows_a_dangling_link);
    TEST(the_umask_takes_bits_from_the_mode);
    TEST(a_removed_file_lives_until_it_is_closed);
    TEST(two_names_of_one_file_count_as_links);
    TEST(rename_replaces_a_file_at_once);
    TEST(rename_keeps_to_the_kinds);
    TEST(renameat2_exchanges_or_refuses);
    TEST(rename_noreplace_replaces_not_even_the_same_file);
    if (geteuid() == 0) {
        TEST(what_another_changes_no_longer_acts_for_its_owner);
        TEST(rights_over_files_go_and_come_with_the_user_for_files);
    }
    TEST(directories_count_their_children_as_links);
    TEST(a_slash_at_the_end_demands_a_directory);
    TEST(links_are_followed_forty_times_at_most);
    TEST(o_nofollow_and_o_path_stop_at_a_link);
    TEST(names_and_paths_have_limits);
    TEST(calls_start_at_a_directory_descriptor);
    TEST(the_working_directory_moves_and_is_named);
    TEST(a_listing_shows_each_name_once);
    TEST(a_deep_tree_goes_with_its_last_descriptor);
    TEST(permissions_bind_an_ordinary_user);
    TEST(in_a_sticky_directory_only_owners_remove);
    TEST(a_file_without_a_name_gets_one_by_its_descriptor);
    rmdir(home);
    return check_status();
}
