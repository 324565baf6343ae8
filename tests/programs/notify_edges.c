// inotify and epoll at their edges, and both together.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOME "/tmp/notify-edges"

static char events[4096];
static size_t events_len, events_at;
static int notify;

static void begin(void) {
    system("rm -rf " HOME);
    CHECK(!mkdir(HOME, 0755));
    notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(notify >= 0);
    events_len = events_at = 0;
}

static void end(void) {
    close(notify);
    system("rm -rf " HOME);
}

/// The next event; NULL if there is none.
static struct inotify_event *next(void) {
    if (events_at == events_len) {
        ssize_t got = read(notify, events, sizeof events);
        events_at = 0, events_len = got > 0 ? got : 0;
        if (!events_len) return NULL;
    }
    struct inotify_event *event = (struct inotify_event *)(events + events_at);
    events_at += sizeof *event + event->len;
    return event;
}

static int says(int watch, uint32_t mask, const char *name) {
    struct inotify_event *event = next();
    if (!event) return 0;
    int is = event->wd == watch && event->mask == mask && !strcmp(event->len ? event->name : "", name);
    if (!is) printf("# %d %x %s\n", event->wd, event->mask, event->len ? event->name : "");
    return is;
}

static int is_quiet(void) {
    struct inotify_event *event = next();
    if (event) printf("# %d %x %s\n", event->wd, event->mask, event->len ? event->name : "");
    return !event && errno == EAGAIN;
}

static int make(const char *path) { return open(path, O_CREAT | O_RDWR, 0644); }

static void a_watch_for_one_event_ends_after_it(void) {
    begin();
    int fd = make(HOME "/f"), watch = inotify_add_watch(notify, HOME "/f", IN_MODIFY | IN_ONESHOT);
    CHECK(watch > 0 && write(fd, "a", 1) == 1 && write(fd, "b", 1) == 1);
    CHECK(says(watch, IN_MODIFY, "") && says(watch, IN_IGNORED, "") && is_quiet());
    CHECK(inotify_rm_watch(notify, watch) == -1 && errno == EINVAL);
    close(fd);
    end();
}

static void a_watch_can_be_asked_for_only_if_it_is_new(void) {
    begin();
    int watch = inotify_add_watch(notify, HOME, IN_CREATE | IN_MASK_CREATE);
    CHECK(watch > 0 && inotify_add_watch(notify, HOME, IN_CREATE | IN_MASK_CREATE) == -1 && errno == EEXIST);
    CHECK(inotify_add_watch(notify, HOME, IN_CREATE | IN_MASK_CREATE | IN_MASK_ADD) == -1 && errno == EINVAL);
    CHECK(inotify_add_watch(notify, HOME, IN_DELETE | IN_MASK_ADD) == watch);
    close(make(HOME "/f")), unlink(HOME "/f");
    CHECK(says(watch, IN_CREATE, "f") && says(watch, IN_DELETE, "f") && is_quiet());
    CHECK(inotify_add_watch(notify, HOME, IN_DELETE) == watch);
    close(make(HOME "/f")), unlink(HOME "/f");
    CHECK(says(watch, IN_DELETE, "f") && is_quiet());
    CHECK(inotify_add_watch(notify, HOME, 0) == -1 && errno == EINVAL);
    close(make(HOME "/f"));
    CHECK(inotify_add_watch(notify, HOME "/f", IN_ONLYDIR | IN_OPEN) == -1 && errno == ENOTDIR);
    CHECK(inotify_add_watch(0, HOME, IN_OPEN) == -1 && errno == EINVAL);
    end();
}

static void a_file_that_is_removed_says_so_at_its_end(void) {
    begin();
    int fd = make(HOME "/f"), directory = inotify_add_watch(notify, HOME, IN_ALL_EVENTS);
    int watch = inotify_add_watch(notify, HOME "/f", IN_ALL_EVENTS);
    CHECK(!link(HOME "/f", HOME "/g") && says(watch, IN_ATTRIB, "") && says(directory, IN_CREATE, "g"));
    CHECK(!unlink(HOME "/g") && says(watch, IN_ATTRIB, "") && says(directory, IN_DELETE, "g"));
    CHECK(!unlink(HOME "/f") && says(watch, IN_ATTRIB, "") && says(directory, IN_DELETE, "f"));
    CHECK(write(fd, "a", 1) == 1 && says(directory, IN_MODIFY, "f") && says(watch, IN_MODIFY, ""));
    close(fd);
    CHECK(says(directory, IN_CLOSE_WRITE, "f") && says(watch, IN_CLOSE_WRITE, ""));
    CHECK(says(watch, IN_DELETE_SELF, "") && says(watch, IN_IGNORED, "") && is_quiet());
    end();
}

static void files_without_names_can_be_left_out(void) {
    begin();
    int fd = make(HOME "/f"), watch = inotify_add_watch(notify, HOME, IN_MODIFY | IN_CLOSE | IN_EXCL_UNLINK);
    CHECK(write(fd, "a", 1) == 1 && says(watch, IN_MODIFY, "f") && !unlink(HOME "/f"));
    CHECK(write(fd, "a", 1) == 1);
    close(fd);
    CHECK(is_quiet());
    end();
}

static void both_halves_of_a_move_have_one_cookie(void) {
    begin();
    CHECK(!mkdir(HOME "/a", 0755) && !mkdir(HOME "/b", 0755));
    int a = inotify_add_watch(notify, HOME "/a", IN_MOVE), b = inotify_add_watch(notify, HOME "/b", IN_MOVE);
    close(make(HOME "/a/f"));
    int self = inotify_add_watch(notify, HOME "/a/f", IN_MOVE_SELF);
    CHECK(!rename(HOME "/a/f", HOME "/b/g"));
    struct inotify_event *event = next();
    CHECK(event && event->wd == a && event->mask == IN_MOVED_FROM && !strcmp(event->name, "f") && event->cookie);
    uint32_t cookie = event->cookie;
    event = next();
    CHECK(event && event->wd == b && event->mask == IN_MOVED_TO && !strcmp(event->name, "g"));
    CHECK(event->cookie == cookie && says(self, IN_MOVE_SELF, "") && is_quiet());
    CHECK(!rename(HOME "/b/g", HOME "/b/h"));
    event = next();
    CHECK(event && event->mask == IN_MOVED_FROM && event->cookie != cookie && event->cookie);
    CHECK(says(b, IN_MOVED_TO, "h") && says(self, IN_MOVE_SELF, "") && is_quiet());
    CHECK(!mkdir(HOME "/a/d", 0755) && !rename(HOME "/a/d", HOME "/b/d"));
    CHECK(says(a, IN_MOVED_FROM | IN_ISDIR, "d") && says(b, IN_MOVED_TO | IN_ISDIR, "d") && is_quiet());
    end();
}

static void changes_of_a_file_are_told_by_every_way(void) {
    begin();
    int fd = make(HOME "/f");
    CHECK(write(fd, "abc", 3) == 3);
    int watch = inotify_add_watch(notify, HOME "/f", IN_ALL_EVENTS & ~IN_OPEN);
    CHECK(!ftruncate(fd, 1) && says(watch, IN_MODIFY, "") && !truncate(HOME "/f", 2) && says(watch, IN_MODIFY, ""));
    close(open(HOME "/f", O_WRONLY | O_TRUNC));
    CHECK(says(watch, IN_MODIFY, "") && says(watch, IN_CLOSE_WRITE, ""));
    CHECK(!fchmod(fd, 0600) && says(watch, IN_ATTRIB, "") && !utimensat(AT_FDCWD, HOME "/f", NULL, 0));
    CHECK(says(watch, IN_ATTRIB, "") && !chown(HOME "/f", 1, 1) && says(watch, IN_ATTRIB, ""));
    CHECK(pwrite(fd, "a", 1, 0) == 1 && says(watch, IN_MODIFY, "") && !fallocate(fd, 0, 0, 10));
    CHECK(says(watch, IN_MODIFY, ""));
    char byte, *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(at != MAP_FAILED && pread(fd, &byte, 1, 0) == 1 && says(watch, IN_ACCESS, ""));
    at[0] = 'x';
    CHECK(!msync(at, 4096, MS_SYNC) && !munmap(at, 4096) && is_quiet());
    int ends[2];
    CHECK(!pipe(ends) && splice(fd, &(loff_t){0}, ends[1], NULL, 4, 0) == 4 && says(watch, IN_ACCESS, ""));
    CHECK(splice(ends[0], NULL, fd, &(loff_t){0}, 4, 0) == 4 && says(watch, IN_MODIFY, "") && is_quiet());
    close(ends[0]), close(ends[1]), close(fd);
    end();
}

static void equal_events_in_a_row_are_one(void) {
    int waiting;
    begin();
    int fd = make(HOME "/f"), watch = inotify_add_watch(notify, HOME "/f", IN_MODIFY);
    for (int i = 0; i < 5; i++) CHECK(write(fd, "a", 1) == 1);
    CHECK(!ioctl(notify, FIONREAD, &waiting) && waiting == sizeof(struct inotify_event));
    CHECK(read(notify, events, 4) == -1 && errno == EINVAL && says(watch, IN_MODIFY, "") && is_quiet());
    close(fd);
    end();
}

static int wait_on(int epoll, struct epoll_event *event) { return epoll_wait(epoll, event, 1, 0); }

static int add(int epoll, int fd, uint32_t wanted) {
    struct epoll_event event = {.events = wanted, .data.fd = fd};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void inotify_can_be_waited_for(void) {
    struct epoll_event got;
    begin();
    int level = epoll_create1(0), edge = epoll_create1(0), once = epoll_create1(0);
    int fd = make(HOME "/f"), watch = inotify_add_watch(notify, HOME "/f", IN_MODIFY);
    CHECK(!add(level, notify, EPOLLIN) && !add(edge, notify, EPOLLIN | EPOLLET) && !add(once, notify, EPOLLIN | EPOLLONESHOT));
    CHECK(wait_on(level, &got) == 0 && wait_on(edge, &got) == 0 && write(fd, "a", 1) == 1);
    CHECK(wait_on(level, &got) == 1 && got.events == EPOLLIN && wait_on(level, &got) == 1);
    CHECK(wait_on(edge, &got) == 1 && wait_on(edge, &got) == 0 && wait_on(once, &got) == 1);
    CHECK(ftruncate(fd, 0) == 0 && wait_on(once, &got) == 0 && says(watch, IN_MODIFY, ""));
    CHECK(is_quiet() && wait_on(level, &got) == 0 && write(fd, "a", 1) == 1 && wait_on(edge, &got) == 1);
    struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT};
    CHECK(!epoll_ctl(once, EPOLL_CTL_MOD, notify, &again) && wait_on(once, &got) == 1);
    close(level), close(edge), close(once), close(fd);
    end();
}

static void epolls_nest_a_few_deep(void) {
    int epolls[7];
    for (int i = 0; i < 7; i++) epolls[i] = epoll_create1(0);
    CHECK(add(epolls[0], epolls[0], EPOLLIN) == -1 && errno == EINVAL);
    for (int i = 0; i < 4; i++) CHECK(!add(epolls[i], epolls[i + 1], EPOLLIN));
    CHECK(add(epolls[4], epolls[0], EPOLLIN) == -1 && errno == ELOOP);
    // Newer Linux counts one less than older.
    int fifth = add(epolls[4], epolls[5], EPOLLIN);
    CHECK((!fifth || errno == ELOOP) && (fifth || add(epolls[5], epolls[6], EPOLLIN) == -1) && errno == ELOOP);
    for (int i = 0; i < 7; i++) close(epolls[i]);
}

static void epoll_knows_its_arguments(void) {
    int epoll = epoll_create1(0), event = eventfd(0, 0), file = make("/tmp/notify-edges.f"), inner = epoll_create1(0);
    struct epoll_event got, mod = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    CHECK(add(epoll, file, EPOLLIN) == -1 && errno == EPERM && add(epoll, 999, EPOLLIN) == -1 && errno == EBADF);
    CHECK(add(event, epoll, EPOLLIN) == -1 && errno == EINVAL && !add(epoll, event, EPOLLIN | EPOLLWAKEUP));
    CHECK(add(epoll, event, EPOLLIN) == -1 && errno == EEXIST);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, event, &mod) == -1 && errno == EINVAL);
    CHECK(!epoll_ctl(epoll, EPOLL_CTL_DEL, event, NULL) && epoll_ctl(epoll, EPOLL_CTL_DEL, event, NULL) == -1 && errno == ENOENT);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, event, &mod) == -1 && errno == EINVAL);
    CHECK(!add(epoll, event, EPOLLIN | EPOLLEXCLUSIVE) && !epoll_ctl(epoll, EPOLL_CTL_DEL, event, NULL));
    CHECK(add(epoll, event, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT) == -1 && errno == EINVAL);
    CHECK(add(epoll, inner, EPOLLIN | EPOLLEXCLUSIVE) == -1 && errno == EINVAL);
    CHECK(!add(epoll, event, EPOLLIN | EPOLLEXCLUSIVE));
    mod.events = EPOLLIN;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, event, &mod) == -1 && errno == EINVAL);
    CHECK(epoll_wait(epoll, &got, 0, 0) == -1 && errno == EINVAL && epoll_wait(event, &got, 1, 0) == -1 && errno == EINVAL);
    CHECK(epoll_create(0) == -1 && errno == EINVAL && epoll_create1(1) == -1 && errno == EINVAL);
    CHECK(epoll_ctl(epoll, 9, event, &mod) == -1 && errno == EINVAL);
    close(epoll), close(event), close(file), close(inner), unlink("/tmp/notify-edges.f");
}

static volatile sig_atomic_t caught;
static void catch(int number) { caught = number; }

static long pwait2(int epoll, struct epoll_event *got, int count, const struct timespec *limit, const sigset_t *mask) {
    return syscall(441, epoll, got, count, limit, mask, 8L);
}

static void a_wait_takes_nanoseconds_and_a_mask(void) {
    int epoll = epoll_create1(0), event = eventfd(0, 0);
    struct epoll_event got;
    struct timespec none = {0, 0}, little = {0, 1000}, wrong = {0, 1000000000}, past = {-1, 0};
    sigset_t blocked, open;
    CHECK(!add(epoll, event, EPOLLIN) && pwait2(epoll, &got, 1, &none, NULL) == 0);
    CHECK(pwait2(epoll, &got, 1, &little, NULL) == 0);
    CHECK(pwait2(epoll, &got, 1, &wrong, NULL) == -1 && errno == EINVAL);
    CHECK(pwait2(epoll, &got, 1, &past, NULL) == -1 && errno == EINVAL);
    signal(SIGUSR1, catch);
    sigemptyset(&open), sigemptyset(&blocked), sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    CHECK(caught == 0 && pwait2(epoll, &got, 1, NULL, &open) == -1 && errno == EINTR && caught == SIGUSR1);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    CHECK(eventfd_write(event, 1) == 0 && pwait2(epoll, &got, 1, NULL, NULL) == 1);
    close(epoll), close(event);
}

static void an_edge_is_each_change(void) {
    int epoll = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK);
    struct epoll_event got;
    CHECK(!add(epoll, event, EPOLLIN | EPOLLET) && wait_on(epoll, &got) == 0);
    CHECK(!eventfd_write(event, 1) && wait_on(epoll, &got) == 1 && wait_on(epoll, &got) == 0);
    CHECK(!eventfd_write(event, 1) && wait_on(epoll, &got) == 1 && wait_on(epoll, &got) == 0);
    struct epoll_event mod = {.events = EPOLLIN | EPOLLET};
    CHECK(!epoll_ctl(epoll, EPOLL_CTL_MOD, event, &mod) && wait_on(epoll, &got) == 1 && wait_on(epoll, &got) == 0);
    mod.events = EPOLLIN | EPOLLOUT | EPOLLET;
    CHECK(!epoll_ctl(epoll, EPOLL_CTL_MOD, event, &mod) && wait_on(epoll, &got) == 1);
    CHECK(got.events == (EPOLLIN | EPOLLOUT) && wait_on(epoll, &got) == 0);
    eventfd_t value;
    CHECK(!eventfd_read(event, &value) && value == 2 && wait_on(epoll, &got) == 1 && got.events == EPOLLOUT);
    close(epoll), close(event);
}

static void a_timer_is_an_edge_at_each_expiry(void) {
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event got;
    struct itimerspec soon = {{0, 5000000}, {0, 5000000}}, off = {{0}, {0}};
    uint64_t count;
    CHECK(!add(epoll, timer, EPOLLIN | EPOLLET) && !timerfd_settime(timer, 0, &soon, NULL));
    for (int i = 0; i < 3; i++) {
        CHECK(epoll_wait(epoll, &got, 1, 10000) == 1 && got.events == EPOLLIN);
        // It does not tell again before it was read.
        CHECK(epoll_wait(epoll, &got, 1, 20) == 0 && read(timer, &count, 8) == 8 && count >= 1);
    }
    CHECK(!timerfd_settime(timer, 0, &off, NULL));
    CHECK(read(timer, &count, 8) == -1 && errno == EAGAIN);
    close(epoll), close(timer);
}

static void a_descriptor_counts_by_its_opening(void) {
    int epoll = epoll_create1(0), event = eventfd(1, 0), copy = dup(event);
    struct epoll_event got;
    CHECK(!add(epoll, event, EPOLLIN) && !add(epoll, copy, EPOLLIN));
    struct epoll_event both[2];
    CHECK(epoll_wait(epoll, both, 2, 0) == 2);
    close(event);
    CHECK(epoll_wait(epoll, both, 2, 0) == 2 && !epoll_ctl(epoll, EPOLL_CTL_DEL, copy, NULL));
    CHECK(epoll_wait(epoll, both, 2, 0) == 1 && both[0].data.fd == event);
    close(copy);
    CHECK(wait_on(epoll, &got) == 0);
    close(epoll);
}

int main(void) {
    TEST(a_watch_for_one_event_ends_after_it);
    TEST(a_watch_can_be_asked_for_only_if_it_is_new);
    TEST(a_file_that_is_removed_says_so_at_its_end);
    TEST(files_without_names_can_be_left_out);
    TEST(both_halves_of_a_move_have_one_cookie);
    TEST(changes_of_a_file_are_told_by_every_way);
    TEST(equal_events_in_a_row_are_one);
    TEST(inotify_can_be_waited_for);
    TEST(epolls_nest_a_few_deep);
    TEST(epoll_knows_its_arguments);
    TEST(a_wait_takes_nanoseconds_and_a_mask);
    TEST(an_edge_is_each_change);
    TEST(a_timer_is_an_edge_at_each_expiry);
    TEST(a_descriptor_counts_by_its_opening);
    return check_status();
}
