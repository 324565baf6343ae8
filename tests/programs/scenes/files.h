// Files, names, locks, pipes, and what /proc tells.
#pragma once
#include "scene.h"
#include "../aio_calls.h"
#include <dirent.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static int open_file(void) {
    int fd = open("/tmp/scene", O_CREAT | O_RDWR, 0600);
    if (fd < 0) return -1;
    int result = write(fd, buffer, 10000) == 10000 && !ftruncate(fd, 20000) ? 0 : -1;
    give_up(fd);
    forget(unlink, "/tmp/scene");
    return result;
}

static int names(void) {
    if (mkdir("/tmp/dir", 0700) < 0) return -1;
    int result = symlink("a/b/c", "/tmp/dir/link");
    if (!result) result = rename("/tmp/dir/link", "/tmp/dir/new");
    if (!result) result = readlink("/tmp/dir/new", buffer, 100) < 0 ? -1 : 0;
    if (!result) result = mkfifo("/tmp/dir/fifo", 0600);
    if (!result) result = link("/tmp/dir/fifo", "/tmp/dir/again");
    int why = errno;
    forget(unlink, "/tmp/dir/link"), forget(unlink, "/tmp/dir/new");
    forget(unlink, "/tmp/dir/fifo"), forget(unlink, "/tmp/dir/again");
    forget(rmdir, "/tmp/dir");
    errno = why;
    return result;
}

static int listing(void) {
    int fd = open("/proc/self", O_RDONLY | O_DIRECTORY);
    if (fd < 0) return -1;
    long got;
    while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0) {
    }
    return give_up(fd), got < 0 ? -1 : 0;
}

static int vectors(void) {
    static struct iovec all[1024];
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) < 0) return -1;
    for (int at = 0; at < 1024; at++) all[at] = (struct iovec){buffer + at, 1};
    int result = writev(ends[1], all, 1024) == 1024 ? 0 : -1;
    if (!result) result = readv(ends[0], all, 1024) == 1024 ? 0 : -1;
    return close_both(ends, result);
}

static int record_locks(void) {
    int fd = open("/tmp/locked", O_CREAT | O_RDWR, 0600), result = 0;
    if (fd < 0) return -1;
    for (long at = 0; at < 8 && !result; at++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = at * 2, .l_len = 1};
        result = fcntl(fd, F_SETLK, &lock);
    }
    if (!result) result = flock(fd, LOCK_EX | LOCK_NB);
    give_up(fd);
    forget(unlink, "/tmp/locked");
    return result;
}

static int many_descriptors(void) {
    int fd = dup2(0, 3000);
    if (fd < 0) return -1;
    close(fd);
    return 0;
}

static int moved_bytes(void) {
    int ends[2], fd = memfd_create("scene", 0), result = -1;
    if (fd < 0) return -1;
    if (pipe2(ends, O_NONBLOCK) < 0) return give_up(fd);
    if (pwrite(fd, buffer, 3 * PAGE, 0) != 3 * PAGE) goto out;
    off_t at = 0;
    if (sendfile(ends[1], fd, &at, 2 * PAGE) != 2 * PAGE) goto out;
    if (splice(ends[0], NULL, fd, &(loff_t){0}, PAGE, SPLICE_F_NONBLOCK) <= 0) goto out;
    result = 0;
out:
    give_up(fd);
    return close_both(ends, result);
}

static int pipes(void) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) < 0) return -1;
    int result = write(ends[1], buffer, 20000) == 20000 ? 0 : -1;
    if (!result) result = fcntl(ends[1], F_SETPIPE_SZ, 1 << 17) < 0 ? -1 : 0;
    if (!result) result = read(ends[0], buffer, sizeof buffer) == 20000 ? 0 : -1;
    return close_both(ends, result);
}

static int packets_of_pipe(void) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_DIRECT) < 0) return -1;
    int result = 0;
    for (int count = 0; count < 5 && !result; count++)
        result = write(ends[1], buffer, 100) == 100 ? 0 : -1;
    return close_both(ends, result);
}

static int read_all(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) return errno == ENOENT ? 0 : -1;
    ssize_t got;
    while ((got = read(fd, buffer, 1000)) > 0) {
    }
    return give_up(fd), got < 0 ? -1 : 0;
}

static int told(void) {
    static const char *const PATHS[] = {
        "/proc/self/maps",    "/proc/self/smaps",   "/proc/self/status", "/proc/self/stat",
        "/proc/self/cmdline", "/proc/self/environ", "/proc/self/mounts", "/proc/self/limits",
        "/proc/net/tcp",      "/proc/net/udp6",     "/proc/net/unix",    "/proc/net/netlink",
        "/proc/meminfo",      "/proc/stat",         "/proc/vmstat",      "/proc/self/fdinfo/0",
        "/proc/cpuinfo",      "/proc/net/dev",      "/proc/net/route",   "/proc/loadavg"};
    for (size_t at = 0; at < sizeof PATHS / sizeof *PATHS; at++)
        if (read_all(PATHS[at]) < 0) return -1;
    return 0;
}

// A transfer through a context of io_submit(2), with a vector and a counter.
static int overlapped(void) {
    aio_context_t context = 0;
    char parts[2][64];
    struct iovec vector[] = {{parts[0], 64}, {parts[1], 64}};
    struct io_event event = {0};
    if (io_setup(4, &context) < 0) return -1;
    int fd = open("/proc/self/exe", O_RDONLY), counter = eventfd(0, 0), result = -1;
    struct iocb one = block(IOCB_CMD_PREADV, fd, vector, 2, 0);
    one.aio_flags = IOCB_FLAG_RESFD;
    one.aio_resfd = counter;
    if (fd >= 0 && counter >= 0 && submit_one(context, &one) == 1 && io_getevents(context, 1, 1, &event, NULL) == 1) {
        result = event.res < 0 ? -1 : 0;
        errno = -event.res;
    }
    int why = result < 0 ? errno : 0;
    if (io_destroy(context) < 0 && errno == ENOMEM) io_destroy(context);
    if (counter >= 0) close(counter);
    errno = why;
    return give_up(fd), result;
}

static int message_queue(void) {
    struct mq_attr attr = {.mq_maxmsg = 10, .mq_msgsize = 64};
    mqd_t q = mq_open("/scene", O_CREAT | O_RDWR | O_NONBLOCK, 0600, &attr);
    if (q < 0) return -1;
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    int result = mq_notify(q, &none);
    for (int count = 0; count < 10 && !result; count++) result = mq_send(q, buffer, 64, count % 3);
    if (!result) result = mq_receive(q, buffer, 64, NULL) == 64 ? 0 : -1;
    give_up(q);
    forget(mq_unlink, "/scene");
    return result;
}
