// POSIX message queues: order, bounds, waits, notices, names.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define NAME "/sietch_test"

static char text[8192 + 1];

static mqd_t queue(int flags, long messages, long bytes) {
    struct mq_attr attr = {.mq_maxmsg = messages, .mq_msgsize = bytes};
    mq_unlink(NAME);
    mqd_t q = mq_open(NAME, O_CREAT | O_EXCL | O_RDWR | flags, 0600, &attr);
    CHECK(q >= 0);
    CHECK(mq_unlink(NAME) == 0);
    return q;
}

static int send(mqd_t q, const char *what, unsigned priority) {
    return mq_send(q, what, strlen(what), priority);
}

// Whether the next message is this one.
static int receive(mqd_t q, const char *what, unsigned priority) {
    unsigned got = 99;
    memset(text, 0, sizeof text);
    ssize_t len = mq_receive(q, text, 8192, &got);
    return len == (ssize_t)strlen(what) && got == priority && !strcmp(text, what);
}

static struct mq_attr status_of(mqd_t q) {
    struct mq_attr attr;
    CHECK(mq_getattr(q, &attr) == 0);
    return attr;
}

static int is_ok(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static struct timespec soon(int millis) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += millis * 1000000L;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void higher_priorities_go_first(void) {
    mqd_t q = queue(0, 8, 64);
    CHECK(!send(q, "a", 1) && !send(q, "b", 5) && !send(q, "c", 1) && !send(q, "", 32767));
    CHECK(!send(q, "d", 5) && status_of(q).mq_curmsgs == 5);
    CHECK(receive(q, "", 32767) && receive(q, "b", 5) && receive(q, "d", 5));
    CHECK(receive(q, "a", 1) && receive(q, "c", 1) && status_of(q).mq_curmsgs == 0);
    CHECK(send(q, "x", 32768) == -1 && errno == EINVAL);
    close(q);
}

static void sizes_are_kept(void) {
    mqd_t q = queue(O_NONBLOCK, 2, 10);
    struct mq_attr attr = status_of(q);
    CHECK(attr.mq_flags == O_NONBLOCK && attr.mq_maxmsg == 2 && attr.mq_msgsize == 10);
    CHECK(send(q, "12345678901", 0) == -1 && errno == EMSGSIZE);
    CHECK(mq_receive(q, text, 9, 0) == -1 && errno == EMSGSIZE);
    CHECK(mq_receive(q, text, 10, 0) == -1 && errno == EAGAIN);
    CHECK(!send(q, "1234567890", 0) && !send(q, "", 0));
    CHECK(send(q, "", 0) == -1 && errno == EAGAIN);
    CHECK(receive(q, "1234567890", 0));
    struct mq_attr flags = {.mq_flags = 0}, old;
    CHECK(mq_setattr(q, &flags, &old) == 0 && old.mq_flags == O_NONBLOCK && old.mq_curmsgs == 1);
    CHECK(status_of(q).mq_flags == 0 && (fcntl(q, F_GETFL) & O_NONBLOCK) == 0);
    flags.mq_flags = O_RDWR;
    CHECK(mq_setattr(q, &flags, 0) == -1 && errno == EINVAL);
    close(q);
}

static void shapes_have_limits(void) {
    struct mq_attr attr = {.mq_maxmsg = 0, .mq_msgsize = 1};
    CHECK(mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr) == -1 && errno == EINVAL);
    attr.mq_maxmsg = 1, attr.mq_msgsize = -1;
    CHECK(mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr) == -1 && errno == EINVAL);
    attr.mq_maxmsg = 65537, attr.mq_msgsize = 1;
    CHECK(mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr) == -1 && errno == EINVAL);
    mqd_t q = mq_open(NAME, O_CREAT | O_RDWR, 0600, NULL);
    CHECK(q >= 0 && status_of(q).mq_maxmsg == 10 && status_of(q).mq_msgsize == 8192);
    CHECK(mq_unlink(NAME) == 0);
    close(q);
}

static void names_are_those_of_files(void) {
    mq_unlink(NAME);
    CHECK(mq_open(NAME, O_RDWR) == -1 && errno == ENOENT);
    CHECK(mq_unlink(NAME) == -1 && errno == ENOENT);
    umask(022);
    mqd_t q = mq_open(NAME, O_CREAT | O_RDWR, 0666, NULL);
    struct stat what;
    CHECK(q >= 0 && fstat(q, &what) == 0 && what.st_mode == (S_IFREG | 0644));
    CHECK(what.st_size == 80 && what.st_nlink == 1 && what.st_uid == geteuid());
    CHECK(fcntl(q, F_GETFD) == FD_CLOEXEC);
    CHECK(mq_open(NAME, O_CREAT | O_EXCL | O_RDWR, 0600, NULL) == -1 && errno == EEXIST);
    CHECK(syscall(SYS_mq_open, "a/b", O_CREAT | O_RDWR, 0600, NULL) == -1 && errno == EACCES);
    CHECK(syscall(SYS_mq_open, "..", O_CREAT | O_RDWR, 0600, NULL) == -1 && errno == EACCES);
    CHECK(syscall(SYS_mq_open, "", O_CREAT | O_RDWR, 0600, NULL) == -1 && errno == ENOENT);
    char name[300] = "/";
    memset(name + 1, 'x', 256);
    CHECK(mq_open(name, O_CREAT | O_RDWR, 0600, NULL) == -1 && errno == ENAMETOOLONG);
    mqd_t again = mq_open(NAME, O_RDONLY);
    CHECK(again >= 0 && !send(q, "hello", 3) && receive(again, "hello", 3));
    CHECK(send(again, "no", 0) == -1 && errno == EBADF);
    mqd_t writer = mq_open(NAME, O_WRONLY);
    CHECK(writer >= 0 && mq_receive(writer, text, 8192, 0) == -1 && errno == EBADF);
    CHECK(mq_unlink(NAME) == 0 && fstat(q, &what) == 0 && what.st_nlink == 0);
    CHECK(!send(q, "still", 0) && receive(again, "still", 0));
    close(q), close(again), close(writer);
    CHECK(mq_getattr(0, &(struct mq_attr){0}) == -1 && errno == EBADF);
    CHECK(mq_getattr(999, &(struct mq_attr){0}) == -1 && errno == EBADF);
}

static void on_alarm(int signal) { (void)signal; }

static void waits_end(void) {
    mqd_t q = queue(0, 1, 64);
    struct timespec past = {1, 0}, bad = {1, 1000000000}, at = soon(20);
    CHECK(mq_timedreceive(q, text, 64, 0, &past) == -1 && errno == ETIMEDOUT);
    CHECK(mq_timedreceive(q, text, 64, 0, &at) == -1 && errno == ETIMEDOUT);
    CHECK(mq_timedreceive(q, text, 64, 0, &bad) == -1 && errno == EINVAL);
    CHECK(!send(q, "full", 0));
    at = soon(20);
    CHECK(mq_timedsend(q, "x", 1, 0, &at) == -1 && errno == ETIMEDOUT);
    CHECK(mq_timedreceive(q, text, 64, 0, &past) == 4);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, 0);
    ualarm(20000, 0);
    CHECK(mq_receive(q, text, 64, 0) == -1 && errno == EINTR);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART}, 0);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        usleep(20000), kill(parent, SIGALRM), usleep(20000);
        _exit(send(q, "late", 0));
    }
    CHECK(mq_receive(q, text, 64, 0) == 4 && is_ok(child));
    child = fork();
    if (child == 0) _exit(send(q, "one", 0) || send(q, "two", 0));
    usleep(20000);
    CHECK(receive(q, "one", 0) && receive(q, "two", 0) && is_ok(child));
    close(q);
}

static void queues_are_polled(void) {
    mqd_t q = queue(0, 1, 64);
    struct pollfd one = {.fd = q, .events = POLLIN | POLLOUT};
    CHECK(poll(&one, 1, 0) == 1 && one.revents == POLLOUT);
    CHECK(!send(q, "a", 0) && poll(&one, 1, 0) == 1 && one.revents == POLLIN);
    int watcher = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    CHECK(epoll_ctl(watcher, EPOLL_CTL_ADD, q, &event) == 0);
    CHECK(epoll_wait(watcher, &event, 1, 0) == 1 && epoll_wait(watcher, &event, 1, 0) == 0);
    CHECK(receive(q, "a", 0) && !send(q, "b", 0) && epoll_wait(watcher, &event, 1, 0) == 1);
    close(watcher), close(q);
}

static void signals_tell_of_the_first_message(void) {
    mqd_t q = queue(0, 4, 64);
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    how.sigev_value.sival_int = 1234;
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1), sigprocmask(SIG_BLOCK, &set, 0);
    CHECK(mq_notify(q, &how) == 0 && mq_notify(q, &how) == -1 && errno == EBUSY);
    CHECK(pread(q, text, 100, 0) > 0);
    pid_t child = fork();
    if (child == 0) _exit(mq_notify(q, &how) == 0 || errno != EBUSY || send(q, "x", 0));
    siginfo_t info;
    CHECK(is_ok(child) && sigtimedwait(&set, &info, &(struct timespec){1, 0}) == SIGUSR1);
    CHECK(info.si_code == SI_MESGQ && info.si_value.sival_int == 1234 && info.si_pid == child);
    CHECK(mq_notify(q, &how) == 0 && !send(q, "not first", 0));
    CHECK(sigtimedwait(&set, &info, &(struct timespec){0, 0}) == -1 && errno == EAGAIN);
    CHECK(receive(q, "x", 0) && receive(q, "not first", 0) && !send(q, "first", 0));
    CHECK(sigtimedwait(&set, &info, &(struct timespec){1, 0}) == SIGUSR1);
    CHECK(receive(q, "first", 0) && !send(q, "once only", 0));
    CHECK(sigtimedwait(&set, &info, &(struct timespec){0, 0}) == -1);
    CHECK(mq_notify(q, &how) == 0 && mq_notify(q, NULL) == 0 && mq_notify(q, NULL) == 0);
    how.sigev_notify = 77;
    CHECK(mq_notify(q, &how) == -1 && errno == EINVAL);
    how.sigev_notify = SIGEV_SIGNAL, how.sigev_signo = 65;
    CHECK(mq_notify(q, &how) == -1 && errno == EINVAL);
    close(q);
}

static void nobody_is_told_of_what_another_waits_for(void) {
    mqd_t q = queue(0, 4, 64);
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1), sigprocmask(SIG_BLOCK, &set, 0);
    CHECK(mq_notify(q, &how) == 0);
    pid_t child = fork();
    if (child == 0) _exit(!receive(q, "for you", 2));
    usleep(50000);
    CHECK(!send(q, "for you", 2) && status_of(q).mq_curmsgs == 0 && is_ok(child));
    CHECK(sigtimedwait(&set, 0, &(struct timespec){0, 0}) == -1 && errno == EAGAIN);
    CHECK(!send(q, "for all", 0));
    CHECK(sigtimedwait(&set, 0, &(struct timespec){1, 0}) == SIGUSR1);
    close(q);
}

static void a_registration_ends_with_a_descriptor(void) {
    mqd_t q = queue(0, 4, 64);
    int other = dup(q);
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    CHECK(mq_notify(q, &none) == 0 && mq_notify(other, &none) == -1 && errno == EBUSY);
    close(other);
    CHECK(mq_notify(q, &none) == 0 && mq_notify(q, NULL) == 0);
    pid_t child = fork();
    if (child == 0) _exit(mq_notify(q, &none));
    CHECK(is_ok(child) && mq_notify(q, &none) == 0);
    close(q);
}

static sem_t called;
static int value_seen;

static void on_message(union sigval value) {
    value_seen = value.sival_int;
    sem_post(&called);
}

static void a_thread_is_told(void) {
    mqd_t q = queue(0, 4, 64);
    sem_init(&called, 0, 0);
    for (int round = 1; round < 4; round++) {
        struct sigevent how = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_message};
        how.sigev_value.sival_int = round;
        struct timespec at = soon(5000);
        CHECK(mq_notify(q, &how) == 0 && !send(q, "a", 0));
        CHECK(sem_timedwait(&called, &at) == 0 && value_seen == round && receive(q, "a", 0));
    }
    char cookie[32] = "";
    struct sigevent how = {.sigev_notify = SIGEV_THREAD, .sigev_signo = 999};
    how.sigev_value.sival_ptr = cookie;
    CHECK(syscall(SYS_mq_notify, q, &how) == -1 && errno == EBADF);
    close(q);
}

// As a user without rights, if there is a choice.
static void become_nobody(void) {
    if (getuid() == 0 && (setgid(12345) || setuid(12345))) _exit(9);
}

static void users_have_limits(void) {
    pid_t child = fork();
    if (child == 0) {
        become_nobody();
        struct mq_attr attr = {.mq_maxmsg = 11, .mq_msgsize = 100};
        if (mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr) != -1 || errno != EINVAL) _exit(1);
        attr.mq_maxmsg = 10, attr.mq_msgsize = 8193;
        if (mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr) != -1 || errno != EINVAL) _exit(2);
        // Its bytes, and 96 for each message.
        struct rlimit limit = {10 * (100 + 96), 10 * (100 + 96)};
        attr.mq_msgsize = 101;
        if (setrlimit(RLIMIT_MSGQUEUE, &limit)) _exit(3);
        if (mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr) != -1 || errno != EMFILE) _exit(4);
        attr.mq_msgsize = 100;
        mqd_t q = mq_open(NAME, O_CREAT | O_RDWR, 0600, &attr);
        if (q < 0) _exit(5);
        attr.mq_maxmsg = attr.mq_msgsize = 1;
        if (mq_open("/sietch_2", O_CREAT | O_RDWR, 0600, &attr) != -1 || errno != EMFILE) _exit(6);
        if (mq_unlink(NAME)) _exit(7);
        close(q);
        q = mq_open("/sietch_2", O_CREAT | O_RDWR, 0600, &attr);
        _exit(q < 0 || mq_unlink("/sietch_2") ? 8 : 0);
    }
    CHECK(is_ok(child));
}

static void permissions_hold(void) {
    if (getuid() != 0) return;
    mq_unlink(NAME);
    umask(0);
    mqd_t q = mq_open(NAME, O_CREAT | O_RDWR, 0604, NULL);
    CHECK(q >= 0);
    pid_t child = fork();
    if (child == 0) {
        become_nobody();
        if (mq_open(NAME, O_RDWR) != -1 || errno != EACCES) _exit(1);
        if (mq_open(NAME, O_RDONLY) < 0) _exit(2);
        _exit(mq_unlink(NAME) != -1 || (errno != EPERM && errno != EACCES) ? 3 : 0);
    }
    CHECK(is_ok(child) && mq_unlink(NAME) == 0);
    close(q);
}

static void queues_are_seen_where_they_are_mounted(void) {
    if (getuid() != 0) return;
    mkdir("/tmp/queues", 0700);
    CHECK(mount("none", "/tmp/queues", "mqueue", 0, NULL) == 0);
    mqd_t q = mq_open(NAME, O_CREAT | O_RDWR, 0600, NULL);
    CHECK(q >= 0 && !send(q, "12345", 0));
    int file = open("/tmp/queues" NAME, O_RDONLY);
    memset(text, 0, sizeof text);
    CHECK(file >= 0 && read(file, text, 100) > 0);
    CHECK(!strcmp(text, "QSIZE:5          NOTIFY:0     SIGNO:0     NOTIFY_PID:0     \n"));
    CHECK(receive(file, "12345", 0));
    int made = open("/tmp/queues/made", O_CREAT | O_RDWR, 0600);
    CHECK(made >= 0 && status_of(made).mq_maxmsg == 10 && mq_unlink("/made") == 0);
    CHECK(access("/tmp/queues/made", F_OK) == -1 && errno == ENOENT);
    CHECK(unlink("/tmp/queues" NAME) == 0 && mq_open(NAME, O_RDWR) == -1 && errno == ENOENT);
    close(q), close(file), close(made);
    CHECK(umount("/tmp/queues") == 0 && rmdir("/tmp/queues") == 0);
}

enum { SENDERS = 4, EACH = 500 };
static mqd_t shared;
static unsigned sums[SENDERS];

static void *send_many(void *nothing) {
    for (unsigned i = 0; i < EACH; i++)
        if (mq_send(shared, (char *)&i, sizeof i, i % 3)) return &shared;
    return nothing;
}

static void *receive_many(void *sum) {
    for (unsigned i = 0, got; i < EACH; i++) {
        if (mq_receive(shared, (char *)&got, sizeof got, 0) != sizeof got) return &shared;
        *(unsigned *)sum += got;
    }
    return NULL;
}

static void no_message_is_lost_or_doubled(void) {
    shared = queue(0, 3, sizeof(unsigned));
    pthread_t threads[2 * SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        CHECK(pthread_create(&threads[2 * i], 0, receive_many, &sums[i]) == 0);
        CHECK(pthread_create(&threads[2 * i + 1], 0, send_many, 0) == 0);
    }
    unsigned sum = 0;
    for (int i = 0; i < 2 * SENDERS; i++) {
        void *failed;
        CHECK(pthread_join(threads[i], &failed) == 0 && !failed);
    }
    for (int i = 0; i < SENDERS; i++) sum += sums[i];
    CHECK(sum == SENDERS * (EACH * (EACH - 1) / 2) && status_of(shared).mq_curmsgs == 0);
    close(shared);
}

int main(void) {
    TEST(higher_priorities_go_first);
    TEST(sizes_are_kept);
    TEST(shapes_have_limits);
    TEST(names_are_those_of_files);
    TEST(waits_end);
    TEST(queues_are_polled);
    TEST(signals_tell_of_the_first_message);
    TEST(nobody_is_told_of_what_another_waits_for);
    TEST(a_registration_ends_with_a_descriptor);
    TEST(a_thread_is_told);
    TEST(users_have_limits);
    TEST(permissions_hold);
    TEST(queues_are_seen_where_they_are_mounted);
    TEST(no_message_is_lost_or_doubled);
    return check_status();
}
