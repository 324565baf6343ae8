// Mounts that are told of each other's changes (mount_namespaces(7), "Shared subtrees"; mount(2):
// MS_SHARED, MS_SLAVE, MS_PRIVATE, MS_UNBINDABLE; mount_setattr(2), move_mount(2)).
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { SET_GROUP = 0x100 };

static char home[] = "/tmp/mount_propagation.XXXXXX";

static int fails(long result, int why) { return result == -1 && errno == why; }

static int mark(const char *name) { return mkdir(name, 0755) == 0; }
static int is(const char *name) { return access(name, F_OK) == 0; }
static int bind(const char *from, const char *to) {
    return mount(from, to, NULL, MS_BIND, NULL) == 0;
}
static int become(const char *name, unsigned long how) {
    return mount(NULL, name, NULL, how, NULL) == 0;
}
static int fresh(const char *name) { return mount("none", name, "tmpfs", 0, NULL) == 0; }

// A number that mountinfo shows for a mount, 0 if there is none.
static int tag(const char *place, const char *name) {
    char line[1024], wanted[512];
    int number = 0;
    snprintf(wanted, sizeof wanted, " %s/%s ", home, place);
    FILE *list = fopen("/proc/self/mountinfo", "r");
    while (list && fgets(line, sizeof line, list)) {
        char *found = strstr(line, wanted), *end = strstr(line, " - ");
        char *at = found ? strstr(found, name) : NULL;
        if (found) number = at && at < end ? atoi(at + strlen(name)) : 0;
    }
    if (list) fclose(list);
    return number;
}
static int group(const char *place) { return tag(place, " shared:"); }
static int master(const char *place) { return tag(place, " master:"); }

// Three mounts of the same: a and b are peers, c is b's slave.
static int scene(void) {
    return mark("a") && mark("b") && mark("c") && fresh("a") && mark("a/x") && mark("a/y") &&
           become("a", MS_SHARED) && bind("a", "b") && bind("a", "c") && become("c", MS_SLAVE);
}
static int clear(void) {
    umount2("c", MNT_DETACH), umount2("b", MNT_DETACH), umount2("a", MNT_DETACH);
    return rmdir("a") == 0 && rmdir("b") == 0 && rmdir("c") == 0;
}

static void a_group_and_its_slaves_have_numbers(void) {
    CHECK(scene());
    CHECK(group("a") && group("a") == group("b") && master("a") == 0 && master("b") == 0);
    CHECK(group("c") == 0 && master("c") == group("a"));
    CHECK(become("c", MS_SHARED) && group("c") && group("c") != group("a"));
    CHECK(master("c") == group("a"));
    CHECK(become("c", MS_PRIVATE) && !group("c") && !master("c"));
    CHECK(become("b", MS_PRIVATE) && !group("b") && group("a"));
    CHECK(clear());
}

static void who_is_told_mounts_it_too(void) {
    CHECK(scene() && fresh("a/x") && mark("a/x/new"));
    CHECK(is("b/x/new") && is("c/x/new"));
    CHECK(group("a/x") && group("a/x") == group("b/x") && master("c/x") == group("a/x"));
    CHECK(fresh("c/y") && mark("c/y/own") && !is("a/y/own") && !is("b/y/own"));
    CHECK(fresh("b/x/new") && mark("b/x/new/deep") && is("a/x/new/deep") && is("c/x/new/deep"));
    CHECK(umount("a/x/new") == 0 && !is("b/x/new/deep") && !is("c/x/new/deep"));
    CHECK(umount("b/x") == 0 && !is("a/x/new") && !is("c/x/new"));
    CHECK(umount("c/y") == 0 && clear());
}

static void a_bind_is_told_too(void) {
    CHECK(scene() && mark("d") && fresh("d") && mark("d/in") && mark("d/in/file"));
    CHECK(bind("d/in", "a/x") && is("b/x/file") && is("c/x/file"));
    CHECK(group("a/x") && group("d") == 0 && group("b/x") == group("a/x"));
    CHECK(umount("a/x") == 0 && !is("b/x/file") && !is("c/x/file"));
    CHECK(fresh("d/in") && mark("d/in/below"));
    CHECK(mount("d", "a/x", NULL, MS_BIND | MS_REC, NULL) == 0);
    CHECK(is("b/x/in/below") && is("c/x/in/below"));
    CHECK(umount2("b/x", MNT_DETACH) == 0 && !is("a/x/in") && !is("c/x/in"));
    CHECK(umount("d/in") == 0 && umount("d") == 0 && rmdir("d") == 0 && clear());
}

static void a_moved_mount_is_told_of_where_it_comes(void) {
    CHECK(scene() && mark("d") && fresh("d") && mark("d/moved"));
    CHECK(mount("d", "b/x", NULL, MS_MOVE, NULL) == 0 && is("a/x/moved") && is("c/x/moved"));
    CHECK(!is("d/moved") && group("b/x") == group("a/x"));
    CHECK(fails(mount("b/x", "d", NULL, MS_MOVE, NULL), EINVAL));
    CHECK(mount("c/x", "d", NULL, MS_MOVE, NULL) == 0 && is("d/moved") && is("a/x/moved"));
    CHECK(umount("d") == 0 && rmdir("d") == 0 && clear());
}

static void only_what_a_mount_shows_is_told_to_it(void) {
    CHECK(mark("a") && mark("b") && mark("c") && fresh("a") && mark("a/x") && mark("a/x/in"));
    CHECK(mark("a/y") && become("a", MS_SHARED) && bind("a/x", "b"));
    CHECK(fresh("a/y") && !is("b/y") && group("b") == group("a"));
    CHECK(fresh("a/x/in") && mark("a/x/in/new") && is("b/in/new"));
    CHECK(umount("b/in") == 0 && !is("a/x/in/new"));
    CHECK(umount("a/y") == 0 && clear());
}

static void slaves_of_slaves_are_told(void) {
    CHECK(scene() && become("c", MS_SHARED) && mark("d") && bind("c", "d"));
    CHECK(group("d") == group("c") && become("d", MS_SLAVE) && master("d") == group("c"));
    CHECK(fresh("b/x") && mark("b/x/new") && is("c/x/new") && is("d/x/new"));
    CHECK(group("c/x") && master("c/x") == group("a/x") && master("d/x") == group("c/x"));
    CHECK(fresh("c/y") && is("d/y") && master("d/y") == group("c/y") && !group("a/y"));
    CHECK(umount("b/x") == 0 && !is("d/x/new") && umount("c/y") == 0);
    CHECK(become("c", MS_PRIVATE) && master("d") == group("a"));
    CHECK(become("a", MS_PRIVATE) && master("d") == group("b"));
    CHECK(become("b", MS_PRIVATE) && master("d") == 0);
    CHECK(umount("d") == 0 && rmdir("d") == 0 && clear());
}

static void the_last_of_a_group_that_becomes_a_slave_is_private(void) {
    CHECK(mark("a") && fresh("a") && become("a", MS_SLAVE) && !master("a"));
    CHECK(become("a", MS_SHARED) && group("a") && become("a", MS_SLAVE));
    CHECK(!group("a") && !master("a") && umount("a") == 0 && rmdir("a") == 0);
}

static void what_is_on_top_gets_the_copy_below_it(void) {
    CHECK(scene() && fresh("c/x") && mark("c/x/top"));
    CHECK(fresh("a/x") && mark("a/x/told") && is("c/x/top") && !is("c/x/told"));
    CHECK(umount("c/x") == 0 && is("c/x/told"));
    CHECK(umount("c/x") == 0 && is("a/x/told") && umount("a/x") == 0);
    CHECK(fresh("c/x") && mark("c/x/top") && fresh("a/x") && umount("a/x") == 0 && is("c/x/top"));
    CHECK(umount("c/x") == 0 && clear());
}

static void a_copy_with_mounts_of_its_own_stays(void) {
    CHECK(scene() && fresh("a/x") && mark("a/x/sub") && fresh("c/x/sub") && mark("c/x/sub/own"));
    CHECK(umount("a/x") == 0 && !is("b/x/sub") && is("c/x/sub/own"));
    CHECK(umount("c/x/sub") == 0 && umount("c/x") == 0 && clear());
}

static void a_copy_in_use_keeps_all(void) {
    CHECK(scene() && fresh("a/x"));
    int fd = open("b/x", O_RDONLY);
    CHECK(fd >= 0 && fails(umount("a/x"), EBUSY) && close(fd) == 0);
    CHECK(umount("a/x") == 0 && clear());
}

static void an_unbindable_mount_is_told_to_nobody(void) {
    CHECK(scene() && mark("d") && fresh("d") && become("d", MS_UNBINDABLE));
    CHECK(fails(mount("d", "a/x", NULL, MS_BIND, NULL), EINVAL));
    CHECK(fails(mount("d", "a/x", NULL, MS_MOVE, NULL), EINVAL));
    CHECK(become("d", MS_SHARED) && bind("d", "a/x") && umount("a/x") == 0);
    CHECK(umount("d") == 0 && rmdir("d") == 0 && clear());
}

static void all_below_change_with_a_mount(void) {
    CHECK(mark("a") && fresh("a") && mark("a/x") && fresh("a/x"));
    CHECK(become("a", MS_SHARED | MS_REC) && group("a") && group("a/x"));
    CHECK(group("a") != group("a/x") && become("a", MS_PRIVATE) && !group("a") && group("a/x"));
    CHECK(become("a", MS_PRIVATE | MS_REC) && !group("a/x"));
    struct mount_attr shared = {.propagation = MS_SHARED};
    CHECK(syscall(SYS_mount_setattr, AT_FDCWD, "a", AT_RECURSIVE, &shared, sizeof shared) == 0);
    CHECK(group("a") && group("a/x"));
    struct mount_attr both = {.propagation = MS_SHARED | MS_PRIVATE};
    CHECK(fails(syscall(SYS_mount_setattr, AT_FDCWD, "a", 0, &both, sizeof both), EINVAL));
    CHECK(umount("a/x") == 0 && umount("a") == 0 && rmdir("a") == 0);
}

static void a_mount_takes_the_group_of_another(void) {
    CHECK(mark("a") && mark("b") && fresh("a") && mark("a/x") && bind("a", "b"));
    CHECK(become("a", MS_SHARED) && !group("b"));
    CHECK(syscall(SYS_move_mount, AT_FDCWD, "a", AT_FDCWD, "b", SET_GROUP) == 0);
    CHECK(group("a") == group("b") && fresh("a/x") && mark("a/x/new") && is("b/x/new"));
    CHECK(fails(syscall(SYS_move_mount, AT_FDCWD, "a", AT_FDCWD, "b", SET_GROUP), EINVAL));
    CHECK(umount("b/x") == 0 && umount("b") == 0 && umount("a") == 0);
    CHECK(rmdir("a") == 0 && rmdir("b") == 0);
}

// Each peer doubles what is bound to itself, until no more mounts are allowed.
static void mounts_that_multiply_meet_a_limit(void) {
    CHECK(mark("a") && fresh("a") && become("a", MS_SHARED));
    int failed = 0;
    for (int i = 0; i < 24 && !failed; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/%d", i);
        failed = !mark(name) || !bind("a", name);
    }
    CHECK(failed && errno == ENOSPC && umount2("a", MNT_DETACH) == 0 && rmdir("a") == 0);
    CHECK(scene() && clear());
}

int main(void) {
    if (!mkdtemp(home) || mount("none", home, "tmpfs", 0, NULL) || chdir(home)) return 1;
    if (!become(home, MS_PRIVATE)) return 1;
    TEST(a_group_and_its_slaves_have_numbers);
    TEST(who_is_told_mounts_it_too);
    TEST(a_bind_is_told_too);
    TEST(a_moved_mount_is_told_of_where_it_comes);
    TEST(only_what_a_mount_shows_is_told_to_it);
    TEST(slaves_of_slaves_are_told);
    TEST(the_last_of_a_group_that_becomes_a_slave_is_private);
    TEST(what_is_on_top_gets_the_copy_below_it);
    TEST(a_copy_with_mounts_of_its_own_stays);
    TEST(a_copy_in_use_keeps_all);
    TEST(an_unbindable_mount_is_told_to_nobody);
    TEST(all_below_change_with_a_mount);
    TEST(a_mount_takes_the_group_of_another);
    TEST(mounts_that_multiply_meet_a_limit);
    if (chdir("/") || umount2(home, MNT_DETACH) || rmdir(home)) return 1;
    return check_status();
}
