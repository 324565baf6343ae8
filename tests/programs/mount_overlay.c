// Trees over each other: what programs see of an overlay, and what they leave of its lower layer.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

static char home[] = "/tmp/mount_overlay.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static char *text(const char *format, ...) {
    static char texts[4][256];
    static unsigned next;
    char *to = texts[next++ % 4];
    va_list words;
    va_start(words, format);
    vsnprintf(to, sizeof texts[0], format, words);
    va_end(words);
    return to;
}

static int put(const char *name, const char *bytes, int how) {
    int fd = open(name, O_CREAT | O_WRONLY | how, 0644);
    if (fd < 0) return -1;
    int result = write(fd, bytes, strlen(bytes)) == (ssize_t)strlen(bytes) ? 0 : -1;
    return close(fd) == 0 ? result : -1;
}

static char *bytes_of(const char *name) {
    static char bytes[2][4096];
    static int next;
    char *to = bytes[next ^= 1];
    int fd = open(name, O_RDONLY);
    ssize_t len = fd < 0 ? -1 : read(fd, to, sizeof bytes[0] - 1);
    to[len < 0 ? 0 : len] = 0;
    if (fd >= 0) close(fd);
    return to;
}

static int holds(const char *name, const char *wanted) { return strcmp(bytes_of(name), wanted) == 0; }

// An overlay `m` over a new tree `low`; the upper layer is a file system of its own.
static int begin(void) {
    return mkdir("low", 0755) == 0 && mkdir("up", 0755) == 0 && mkdir("m", 0755) == 0 &&
           mount("up", "up", "tmpfs", 0, "size=1m,nr_inodes=10000") == 0 && mkdir("up/u", 0755) == 0 && mkdir("up/w", 0755) == 0;
}

static int put_over(void) {
    return mount("overlay", "m", "overlay", 0, "lowerdir=low,upperdir=up/u,workdir=up/w") == 0;
}

static int remove_one(const char *name, const struct stat *found, int kind, struct FTW *at) {
    (void)found, (void)kind, (void)at;
    return remove(name);
}

static void end(void) {
    umount2("m", MNT_DETACH), umount2("up", MNT_DETACH);
    const char *all[] = {"low", "up", "m", "plain"};
    for (int i = 0; i < 4; i++)
        if (nftw(all[i], remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT) abort();
}

static int is_name(const struct dirent *entry) { return strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."); }

static int count(const char *name) {
    struct dirent **list;
    int names = scandir(name, &list, is_name, alphasort), twice = 0;
    for (int i = 0; i < names; i++) {
        twice += i > 0 && strcmp(list[i - 1]->d_name, list[i]->d_name) == 0;
        if (i > 0) free(list[i - 1]);
    }
    return twice ? -twice : names;
}

static void a_change_leaves_the_lower_file_as_it_was(void) {
    CHECK(begin() && mkdir("low/d", 0751) == 0 && put("low/d/f", "one", 0) == 0);
    CHECK(put("low/g", "two", 0) == 0 && symlink("g", "low/l") == 0 && put_over());
    struct stat before, after, directory;
    CHECK(holds("m/d/f", "one") && stat("m/d/f", &before) == 0 && stat("m/d", &directory) == 0);
    int reader = open("m/d/f", O_RDONLY);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, reader, 0);
    CHECK(reader >= 0 && mapped != MAP_FAILED && memcmp(mapped, "one", 3) == 0);
    CHECK(put("m/d/f", "more", O_APPEND) == 0 && holds("m/d/f", "onemore") && holds("low/d/f", "one"));
    CHECK(stat("m/d/f", &after) == 0 && after.st_ino == before.st_ino && after.st_dev == before.st_dev);
    // An open file reads the copy, a mapping made before stays.
    char bytes[16] = "";
    CHECK(pread(reader, bytes, sizeof bytes, 0) == 7 && memcmp(mapped, "one\0", 4) == 0 && close(reader) == 0);
    CHECK(munmap(mapped, 4096) == 0 && stat("m/d", &after) == 0);
    CHECK((after.st_mode & 0777) == 0751 && after.st_mtim.tv_nsec == directory.st_mtim.tv_nsec);
    CHECK(chmod("m/g", 0600) == 0 && stat("m/g", &after) == 0 && (after.st_mode & 0777) == 0600);
    CHECK(truncate("m/g", 1) == 0 && holds("m/l", "t") && holds("low/g", "two"));
    CHECK(setxattr("m/d/f", "trusted.own", "x", 1, 0) == 0 && lchown("m/l", 1, 1) == 0);
    CHECK(lstat("m/l", &after) == 0 && after.st_uid == 1 && lstat("low/l", &after) == 0 && after.st_uid == 0);
    CHECK(link("m/g", "m/h") == 0 && stat("m/h", &after) == 0 && after.st_nlink == 2);
    struct statfs system;
    CHECK(statfs("m", &system) == 0 && system.f_type == 0x794c7630);
}

static void a_name_that_was_removed_stays_away(void) {
    CHECK(begin() && mkdir("low/d", 0755) == 0 && put("low/d/f", "one", 0) == 0 && put("low/g", "two", 0) == 0);
    CHECK(put_over() && fails(rmdir("m/d"), ENOTEMPTY) && unlink("m/g") == 0 && fails(access("m/g", F_OK), ENOENT));
    CHECK(unlink("m/d/f") == 0 && rmdir("m/d") == 0 && count("m") == 0 && holds("low/d/f", "one"));
    CHECK(mkdir("m/d", 0700) == 0 && count("m/d") == 0 && put("m/d/new", "", 0) == 0 && count("m/d") == 1);
    CHECK(put("m/g", "again", O_EXCL) == 0 && holds("m/g", "again") && count("m") == 2);
    CHECK(unlink("m/d/new") == 0 && rmdir("m/d") == 0 && put("m/d", "file", 0) == 0 && holds("m/d", "file"));
    // The same after a new mount.
    CHECK(unlink("m/g") == 0 && umount("m") == 0 && put_over() && count("m") == 1 && holds("m/d", "file"));
}

static void what_is_below_a_directory_of_the_lower_layer_stays_with_its_name(void) {
    CHECK(begin() && mkdir("low/d", 0755) == 0 && put("low/d/f", "one", 0) == 0 && mkdir("low/e", 0755) == 0);
    CHECK(put("low/g", "two", 0) == 0 && put_over() && fails(rename("m/d", "m/x"), EXDEV));
    CHECK(mkdir("m/own", 0755) == 0 && put("m/own/k", "own", 0) == 0 && rename("m/own", "m/moved") == 0);
    CHECK(rename("m/moved", "m/e") == 0 && count("m/e") == 1 && holds("m/e/k", "own") && fails(access("m/moved", F_OK), ENOENT));
    // A directory that takes the place of one that was removed shows nothing of that.
    CHECK(unlink("m/d/f") == 0 && rmdir("m/d") == 0 && rename("m/e", "m/d") == 0 && count("m/d") == 1 && count("m") == 2);
    CHECK(rename("m/g", "m/d/g") == 0 && holds("m/d/g", "two") && fails(access("m/g", F_OK), ENOENT));
    CHECK(umount("m") == 0 && put_over() && count("m") == 1 && count("m/d") == 2 && holds("m/d/k", "own"));
}

// Removes each second name as it is read, and copies up others.
static int changed_while_read(const char *name) {
    DIR *list = opendir(name);
    int seen = 0;
    if (!list) return -1;
    for (struct dirent *entry; (entry = readdir(list));) {
        if (!is_name(entry)) continue;
        if (seen++ % 2 && unlinkat(dirfd(list), entry->d_name, 0) < 0) return -1;
        fchmodat(dirfd(list), text("f%d", seen * 13 % 1000), 0600, 0);
    }
    return closedir(list) == 0 ? seen : -1;
}

static void each_name_of_all_layers_is_listed_once(void) {
    CHECK(begin() && mkdir("low/d", 0755) == 0);
    for (int i = 0; i < 1000; i++) CHECK(put(text("low/d/f%d", i), "", 0) == 0);
    CHECK(put_over() && count("m/d") == 1000);
    for (int i = 0; i < 500; i++) CHECK(put(text("m/d/f%d", 800 + i), "", 0) == 0);
    CHECK(count("m/d") == 1300);
    for (int i = 0; i < 100; i++) CHECK(unlink(text("m/d/f%d", i * 5)) == 0);
    CHECK(count("m/d") == 1200 && changed_while_read("m/d") == 1200 && count("m/d") == 600);
}

static void a_full_upper_layer_changes_nothing_and_gives_room_back(void) {
    static char large[1 << 20];
    memset(large, 'x', sizeof large - 1);
    CHECK(begin() && put("low/large", large, 0) == 0 && put("low/small", "s", 0) == 0 && put_over());
    CHECK(put("m/part", large + sizeof large / 2, 0) == 0 && fails(open("m/large", O_RDWR), ENOSPC));
    struct stat found;
    CHECK(stat("m/large", &found) == 0 && found.st_size == sizeof large - 1 && holds("m/small", "s"));
    CHECK(count("m") == 3 && unlink("m/part") == 0 && truncate("m/large", 5) == 0 && holds("m/large", "xxxxx"));
    CHECK(put("m/large", large, 0) == 0 && unlink("m/large") == 0 && put("m/part", large, 0) == 0);
}

static void overlays_are_over_each_other_twice_at_the_most(void) {
    CHECK(begin() && put("low/f", "one", 0) == 0 && put_over());
    const char *names[] = {"m", "two", "three"};
    CHECK(mkdir("two", 0755) == 0 && mkdir("three", 0755) == 0);
    CHECK(mount("overlay", "two", "overlay", 0, text("lowerdir=%s:low", names[0])) == 0 && holds("two/f", "one"));
    CHECK(count("two") == 1 && fails(open("two/f", O_RDWR), EROFS) && fails(mkdir("two/d", 0755), EROFS));
    CHECK(fails(mount("overlay", "three", "overlay", 0, text("lowerdir=%s:low", names[1])), EINVAL));
    CHECK(fails(mount("overlay", "three", "overlay", 0, "upperdir=up/u,workdir=up/w"), EINVAL));
    CHECK(umount("two") == 0 && rmdir("two") == 0 && rmdir("three") == 0);
}

// Compares two trees; says where they differ.
static int differ(const char *one, const char *two) {
    struct stat a, b;
    if (lstat(one, &a) < 0 || lstat(two, &b) < 0 || a.st_mode != b.st_mode) return printf("# %s: mode\n", one);
    if (S_ISLNK(a.st_mode)) return 0;
    if (!S_ISDIR(a.st_mode)) {
        int same = a.st_size == b.st_size && a.st_nlink == b.st_nlink && strcmp(bytes_of(one), bytes_of(two)) == 0;
        return same ? 0 : printf("# %s: %ld %ld bytes, %lu %lu links\n", one, (long)a.st_size, (long)b.st_size,
                                 (unsigned long)a.st_nlink, (unsigned long)b.st_nlink);
    }
    struct dirent **left, **right;
    int names = scandir(one, &left, is_name, alphasort), others = scandir(two, &right, is_name, alphasort);
    int result = names == others ? 0 : printf("# %s: %d and %d names\n", one, names, others);
    for (int i = 0; i < names && !result; i++) {
        char below[2][600];
        snprintf(below[0], 600, "%s/%s", one, left[i]->d_name), snprintf(below[1], 600, "%s/%s", two, left[i]->d_name);
        result = strcmp(left[i]->d_name, right[i]->d_name) ? printf("# %s: other names\n", one) : differ(below[0], below[1]);
    }
    return result;
}

static unsigned seed;
static unsigned random_below(unsigned limit) { return (seed = seed * 1103515245 + 12345) / 65536 % limit; }

// A path of one to three short names.
static void choose(char *path) {
    int depth = 1 + (int)random_below(3);
    for (*path = 0; depth--;) sprintf(path + strlen(path), "/%c", 'a' + random_below(4));
}

static int step(const char *top, unsigned what, const char *from, const char *to) {
    char one[64], two[64];
    snprintf(one, sizeof one, "%s%s", top, from), snprintf(two, sizeof two, "%s%s", top, to);
    switch (what) {
        case 0: case 1: return put(one, from, O_TRUNC);
        case 2: return put(one, to, O_APPEND);
        case 3: return unlink(one);
        case 4: case 5: return mkdir(one, 0755);
        case 6: return rmdir(one);
        case 7: case 8: return rename(one, two);
        case 9: return link(one, two);
        case 10: return symlink("a", one);
        case 11: return chmod(one, 0700 + strlen(to));
        case 12: return truncate(one, 1);
        default: return renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE);
    }
}

// Changes both trees alike: what an overlay refuses with EXDEV is left out of both.
static int change_both(const char *left, const char *right) {
    char from[16], to[16];
    choose(from), choose(to);
    unsigned what = random_below(14);
    errno = 0;
    int result = step(left, what, from, to), why = result < 0 ? errno : 0;
    if (why == EXDEV) return 1;
    errno = 0;
    int other = step(right, what, from, to);
    if (other == result && (result == 0 || errno == why)) return 1;
    printf("# step %u of %s and %s: %d (%s) is not", what, from, to, result, strerror(why));
    printf(" %d (%s)\n", other, strerror(errno));
    return 0;
}

static void any_history_looks_as_on_a_tree_of_its_own(void) {
    for (unsigned round = 0; round < 20; round++) {
        seed = round;
        CHECK(begin() && mkdir("plain", 0755) == 0);
        for (int i = 0; i < 30; i++) {
            unsigned what = random_below(2) * 4;
            char path[16];
            choose(path);
            CHECK(step("low", what, path, path) == step("plain", what, path, path));
        }
        CHECK(put_over());
        int is_same = 1;
        for (int i = 0; i < 300 && is_same; i++) is_same = change_both("m", "plain");
        is_same = is_same && !differ("m", "plain");
        // What the upper layer keeps says the same.
        is_same = is_same && umount("m") == 0 && put_over() && !differ("m", "plain");
        if (!is_same) printf("# round %u\n", round);
        CHECK(is_same);
        end();
    }
}

int main(void) {
    if (!mkdtemp(home) || chdir(home) < 0 || mount("none", home, "tmpfs", 0, NULL) < 0 || chdir(home) < 0) {
        perror(home);
        return 1;
    }
    umask(022);
    TEST(a_change_leaves_the_lower_file_as_it_was);
    end();
    TEST(a_name_that_was_removed_stays_away);
    end();
    TEST(what_is_below_a_directory_of_the_lower_layer_stays_with_its_name);
    end();
    TEST(each_name_of_all_layers_is_listed_once);
    end();
    TEST(a_full_upper_layer_changes_nothing_and_gives_room_back);
    end();
    TEST(overlays_are_over_each_other_twice_at_the_most);
    end();
    TEST(any_history_looks_as_on_a_tree_of_its_own);
    end();
    if (chdir("/") < 0 || umount2(home, MNT_DETACH) < 0 || rmdir(home) < 0) perror(home);
    return check_status();
}
