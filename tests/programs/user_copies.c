// What calls copy to and from a program's memory whose pages are not there yet, or are no
// pages at all: a missing page never shortens a transfer; an address that may not be used
// ends it, after what came before it (a stream), or fails it whole (a message).
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

enum { PAGE = 4096, MANY = 40000, GOOD = 5 * PAGE, PIECES = 7 };

static unsigned char pattern[1 << 17];

static void fill_pattern(void) {
    unsigned state = 1;
    for (size_t at = 0; at < sizeof pattern; at++) {
        state = state * 1103515245 + 12345;
        pattern[at] = state >> 16;
    }
}

// Memory that nobody has touched.
static unsigned char *fresh(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    return at;
}

// A file's pages, none of which is mapped; `content` is what the file holds.
static unsigned char *on_file(size_t bytes, const void *content) {
    int fd = memfd_create("copies", 0);
    if (ftruncate(fd, bytes) || (content && pwrite(fd, content, bytes, 0) != (ssize_t)bytes)) abort();
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return at;
}

// `GOOD` bytes, and nothing behind them.
static unsigned char *with_bad_tail(void) {
    unsigned char *at = fresh(GOOD + 16 * PAGE);
    munmap(at + GOOD, 16 * PAGE);
    return at;
}

// Odd pieces that cover `bytes` from `at` on.
static int pieces(struct iovec *to, unsigned char *at, size_t bytes) {
    static const size_t odd[PIECES - 1] = {1, 4095, 0, 4097, 12000, 3};
    int count = 0;
    for (; count < PIECES - 1 && bytes > odd[count]; count++) {
        to[count] = (struct iovec){at, odd[count]};
        at += odd[count], bytes -= odd[count];
    }
    to[count++] = (struct iovec){at, bytes};
    return count;
}

static void tcp_pair(int ends[2]) {
    int server = socket(AF_INET, SOCK_STREAM, 0), large = 1 << 20;
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    setsockopt(server, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    if (bind(server, (void *)&name, len) || listen(server, 1)) abort();
    getsockname(server, (void *)&name, &len);
    ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[1], (void *)&name, len)) abort();
    ends[0] = accept(server, NULL, NULL);
    close(server);
}

static void udp_pair(int ends[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    ends[0] = socket(AF_INET, SOCK_DGRAM, 0), ends[1] = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(ends[0], (void *)&name, len)) abort();
    getsockname(ends[0], (void *)&name, &len);
    if (connect(ends[1], (void *)&name, len)) abort();
}

static void unix_pair(int ends[2]) { if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort(); }
static void record_pair(int ends[2]) { if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends)) abort(); }
static void letter_pair(int ends[2]) { if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) abort(); }
static void pipe_pair(int ends[2]) { if (pipe(ends)) abort(); }

static const struct kind {
    const char *name;
    void (*open)(int ends[2]);
    int is_socket;
} streams[] = {{"TCP", tcp_pair, 1}, {"a Unix stream", unix_pair, 1}, {"a pipe", pipe_pair, 0}},
  messages[] = {{"UDP", udp_pair, 1}, {"a Unix seqpacket socket", record_pair, 1},
                {"a Unix datagram socket", letter_pair, 1}};

// Waits until all that was sent can be read.
static int has_come(int fd, int bytes) {
    int waiting = 0;
    for (int turn = 0; turn < 2000 && waiting < bytes; turn++) {
        if (turn) usleep(1000);
        ioctl(fd, FIONREAD, &waiting);
    }
    return waiting == bytes;
}

// What is left can be read, and is `expected`.
static int drains_to(int fd, const unsigned char *expected, size_t bytes) {
    static unsigned char got[1 << 17];
    size_t had = 0;
    while (had < bytes) {
        ssize_t count = read(fd, got + had, sizeof got - had);
        if (count <= 0) return 0;
        had += count;
    }
    return had == bytes && !memcmp(got, expected, bytes);
}

static int sends(int fd) { return write(fd, pattern, MANY) == MANY; }
static int matches(const unsigned char *at) { return !memcmp(at, pattern, MANY); }

static void receive_whole(const struct kind *kind, int ends[2]) {
    struct iovec to[PIECES];
    unsigned char *at = fresh(MANY);
    EXPECT(sends(ends[1]) && has_come(ends[0], MANY) && read(ends[0], at, MANY) == MANY && matches(at),
           "read from %s goes on over pages that nobody has touched", kind->name);
    at = fresh(MANY);
    int count = pieces(to, at, MANY);
    EXPECT(sends(ends[1]) && has_come(ends[0], MANY) && readv(ends[0], to, count) == MANY && matches(at),
           "readv from %s goes on over pages that nobody has touched", kind->name);
    at = on_file(MANY, NULL);
    EXPECT(sends(ends[1]) && has_come(ends[0], MANY) && read(ends[0], at, MANY) == MANY && matches(at),
           "read from %s goes on over the pages of a file", kind->name);
    if (!kind->is_socket) return;
    at = fresh(MANY);
    EXPECT(sends(ends[1]) && has_come(ends[0], MANY) &&
               recv(ends[0], at, MANY, MSG_PEEK) == MANY && matches(at),
           "MSG_PEEK on %s goes on over pages that nobody has touched", kind->name);
    at = fresh(MANY);
    struct msghdr header = {.msg_iov = to, .msg_iovlen = pieces(to, at, MANY)};
    EXPECT(recvmsg(ends[0], &header, 0) == MANY && matches(at) && header.msg_flags != MSG_TRUNC,
           "recvmsg from %s goes on over pages that nobody has touched", kind->name);
}

static void send_whole(const struct kind *kind, int ends[2]) {
    struct iovec from[PIECES];
    unsigned char *at = on_file(MANY, pattern);
    EXPECT(write(ends[1], at, MANY) == MANY && drains_to(ends[0], pattern, MANY),
           "write to %s takes pages of a file that are not mapped yet", kind->name);
    at = on_file(MANY, pattern);
    EXPECT(writev(ends[1], from, pieces(from, at, MANY)) == MANY && drains_to(ends[0], pattern, MANY),
           "writev to %s takes pages of a file that are not mapped yet", kind->name);
    if (!kind->is_socket) return;
    at = on_file(MANY, pattern);
    struct msghdr header = {.msg_iov = from, .msg_iovlen = pieces(from, at, MANY)};
    EXPECT(sendmsg(ends[1], &header, 0) == MANY && drains_to(ends[0], pattern, MANY),
           "sendmsg to %s takes pages of a file that are not mapped yet", kind->name);
}

// Linux copies piece by piece of its own, so what passes before a bad address may be nothing.
static void stop_at_bad_address(const struct kind *kind, int ends[2]) {
    unsigned char *at = with_bad_tail();
    sends(ends[1]), has_come(ends[0], MANY);
    ssize_t count;
    EXPECT((count = read(ends[0], at, MANY), count > 0 && count <= GOOD && !memcmp(at, pattern, count)) || (count < 0 && errno == EFAULT),
           "read from %s ends at a bad address", kind->name);
    count = count < 0 ? 0 : count;
    EXPECT(drains_to(ends[0], pattern + count, MANY - count),
           "%s keeps what a read did not report", kind->name);
    memcpy(at, pattern, GOOD);
    EXPECT((count = write(ends[1], at, MANY), count > 0 && count <= GOOD) || (count < 0 && errno == EFAULT),
           "write to %s ends at a bad address", kind->name);
    count = count < 0 ? 0 : count;
    EXPECT(drains_to(ends[0], pattern, count) && has_come(ends[0], 0),
           "%s carries what a write reported", kind->name);
    struct iovec some[3] = {{pattern, PAGE}, {at + GOOD, PAGE}, {pattern, PAGE}};
    EXPECT((count = writev(ends[1], some, 3), count == PAGE) || (count < 0 && errno == EFAULT),
           "writev to %s with a bad piece in the middle ends there", kind->name);
    EXPECT(drains_to(ends[0], pattern, count < 0 ? 0 : count) && has_come(ends[0], 0),
           "%s carries what a writev reported", kind->name);
}

static void of_streams(void) {
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        int ends[2];
        streams[i].open(ends);
        receive_whole(&streams[i], ends);
        send_whole(&streams[i], ends);
        stop_at_bad_address(&streams[i], ends);
        close(ends[0]), close(ends[1]);
    }
    int ends[2];
    tcp_pair(ends);
    unsigned char *at = fresh(2 * MANY);
    EXPECT(sends(ends[1]) && sends(ends[1]) && recv(ends[0], at, 2 * MANY, MSG_WAITALL) == 2 * MANY &&
               matches(at) && matches(at + MANY),
           "MSG_WAITALL goes on over pages that nobody has touched");
    sends(ends[1]), has_come(ends[0], MANY), close(ends[1]);
    at = fresh(2 * MANY);
    EXPECT(recv(ends[0], at, 2 * MANY, MSG_WAITALL) == MANY && recv(ends[0], at, 1, 0) == 0,
           "MSG_WAITALL ends with the stream");
    close(ends[0]);
}

static void of_messages(void) {
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const struct kind *kind = &messages[i];
        int ends[2];
        kind->open(ends);
        receive_whole(kind, ends);
        send_whole(kind, ends);
        unsigned char *at = with_bad_tail();
        sends(ends[1]);
        EXPECT(read(ends[0], at, MANY) < 0 && errno == EFAULT,
               "a message of %s does not pass in part", kind->name);
        while (recv(ends[0], at, 1, MSG_DONTWAIT) >= 0) {}
        EXPECT(write(ends[1], at, MANY) < 0 && errno == EFAULT && has_come(ends[0], 0),
               "a message to %s is not sent in part", kind->name);
        struct iovec part[2] = {{pattern, 10}, {at + GOOD, 10}};
        struct mmsghdr *both = (void *)(fresh(2 * PAGE) + PAGE - sizeof *both / 2);
        both[0].msg_hdr = (struct msghdr){.msg_iov = part, .msg_iovlen = 1};
        both[1].msg_hdr = (struct msghdr){.msg_iov = part, .msg_iovlen = 2};
        EXPECT(sendmmsg(ends[1], both, 2, 0) == 1 && both[0].msg_len == 10,
               "sendmmsg to %s reports what it sent before a bad address", kind->name);
        part[0].iov_base = at = fresh(PAGE);
        EXPECT(recvmmsg(ends[0], both, 1, 0, NULL) == 1 && both[0].msg_len == 10 && !memcmp(at, pattern, 10),
               "recvmmsg from %s stores in pages that nobody has touched", kind->name);
        close(ends[0]), close(ends[1]);
    }
    int ends[2];
    if (pipe2(ends, O_DIRECT)) abort();
    unsigned char *at = with_bad_tail() + GOOD - 1000;
    (void)!write(ends[1], pattern, 2000);
    EXPECT(read(ends[0], at, 2000) < 0 && errno == EFAULT && read(ends[0], at, 1000) == 1000 &&
               !memcmp(at, pattern, 1000) && has_come(ends[0], 0),
           "a packet of a pipe does not pass in part");
    EXPECT(write(ends[1], at, 2000) < 0 && errno == EFAULT && has_come(ends[0], 0),
           "a packet to a pipe is not written in part");
    close(ends[0]), close(ends[1]);
}

static void of_files(void) {
    char name[] = "/tmp/copiesXXXXXX";
    int fd = mkstemp(name);
    struct iovec some[PIECES];
    unsigned char *at = on_file(MANY, pattern), *bad = with_bad_tail();
    EXPECT(pwrite(fd, at, MANY, 0) == MANY, "a file takes pages of another that are not mapped yet");
    at = fresh(MANY);
    EXPECT(pread(fd, at, MANY, 0) == MANY && matches(at), "a file fills pages that nobody has touched");
    at = on_file(MANY, NULL);
    EXPECT(preadv(fd, some, pieces(some, at, MANY), 0) == MANY && matches(at),
           "preadv fills the pages of another file");
    EXPECT(pread(fd, bad, MANY, 0) == GOOD && !memcmp(bad, pattern, GOOD),
           "a read of a file stops where a bad address is");
    EXPECT(pread(fd, bad + GOOD, MANY, 0) < 0 && errno == EFAULT, "and fails where that is the first");
    struct iovec parts[3] = {{fresh(PAGE), 100}, {bad + GOOD, PAGE}, {fresh(PAGE), 100}};
    EXPECT(preadv(fd, parts, 3, 0) == 100, "preadv stops at a bad piece");
    memset(parts[0].iov_base, 'x', 100);
    EXPECT(pwritev(fd, parts, 3, 0) == 100, "pwritev reports the piece before a bad one");
    EXPECT(pread(fd, at, 200, 0) == 200 && at[99] == 'x' && !memcmp(at + 100, pattern + 100, 100),
           "and has written no more than that");
    EXPECT(pwritev(fd, parts + 1, 2, 0) < 0 && errno == EFAULT, "pwritev of a bad piece first is EFAULT");
    lseek(fd, 0, SEEK_SET);
    EXPECT(writev(fd, parts, 3) == 100 && lseek(fd, 0, SEEK_CUR) == 100,
           "writev moves the position by what it reports");
    EXPECT(!ftruncate(fd, 0) && pwrite(fd, bad + GOOD - 50, 100, 0) == 50 && !ftruncate(fd, 200) &&
               pread(fd, at, 200, 0) == 200 && at[50] == 0 && at[99] == 0,
           "a write that a bad address ends leaves nothing behind its end");
    struct iovec far[2] = {{at, 100}, {(void *)~0xfffful, 100}};
    EXPECT(writev(fd, far, 2) < 0 && errno == EFAULT, "a piece outside all memory fails the call at first");
    EXPECT(write(fd, (void *)~0xfffful, 1) < 0 && errno == EFAULT, "so does a buffer there");
    EXPECT(syscall(SYS_read, fd, at, SIZE_MAX) < 0 && errno == EFAULT, "a length beyond all memory is EFAULT");
    close(fd), unlink(name);
}

static void of_devices(void) {
    unsigned char *at = fresh(MANY), *bad = with_bad_tail();
    int zero = open("/dev/zero", O_RDONLY), random = open("/dev/urandom", O_RDONLY);
    at[MANY - 1] = 1;
    EXPECT(read(zero, at, MANY) == MANY && at[MANY - 1] == 0, "/dev/zero fills fresh pages");
    EXPECT(read(zero, bad, MANY) == GOOD, "/dev/zero stops at a bad address");
    EXPECT(read(random, fresh(MANY), MANY) == MANY, "/dev/urandom fills fresh pages");
    ssize_t count = read(random, bad, MANY);
    EXPECT(count > 0 && count <= GOOD, "/dev/urandom stops at a bad address");
    EXPECT(getrandom(fresh(MANY), MANY, 0) == MANY, "getrandom fills fresh pages");
    count = getrandom(bad, MANY, 0);
    EXPECT(count > 0 && count <= GOOD, "getrandom stops at a bad address");
    close(zero), close(random);
    int text = open("/proc/self/status", O_RDONLY);
    at = fresh(2 * PAGE) + PAGE - 100;
    EXPECT(read(text, at, 400) == 400 && !memcmp(at, "Name:", 5), "/proc fills fresh pages");
    close(text);
}

// Records read across two pages of which neither is there.
static void of_records(void) {
    unsigned char *at = fresh(2 * PAGE) + PAGE - 4;
    unsigned long number;
    int events = eventfd(5, 0);
    EXPECT(read(events, at, 8) == 8 && (memcpy(&number, at, 8), number == 5), "eventfd fills fresh pages");
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = {.it_value.tv_nsec = 1};
    timerfd_settime(timer, 0, &soon, NULL);
    at = fresh(2 * PAGE) + PAGE - 4;
    EXPECT(read(timer, at, 8) == 8, "timerfd fills fresh pages");
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, 0);
    raise(SIGUSR1), raise(SIGUSR2);
    at = with_bad_tail() + GOOD - 200;
    EXPECT(read(signals, at, 256) == 128, "signalfd reports the record before a bad address");
    while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0) {}
    char name[] = "/tmp/copiesXXXXXX";
    int file = mkstemp(name), watch = inotify_init();
    inotify_add_watch(watch, name, IN_MODIFY | IN_ATTRIB);
    (void)!write(file, "x", 1), fchmod(file, 0600);
    at = fresh(2 * PAGE) + PAGE - 20;
    EXPECT(read(watch, at, 64) == 32, "inotify fills fresh pages");
    int poller = epoll_create1(0);
    events = eventfd(1, 0), timer = eventfd(1, 0);
    epoll_ctl(poller, EPOLL_CTL_ADD, events, &(struct epoll_event){.events = EPOLLIN, .data.u64 = 7});
    epoll_ctl(poller, EPOLL_CTL_ADD, timer, &(struct epoll_event){.events = EPOLLIN, .data.u64 = 7});
    struct epoll_event *ready = (void *)(fresh(2 * PAGE) + PAGE - 6);
    EXPECT(epoll_wait(poller, ready, 8, 0) == 2 && ready[1].data.u64 == 7, "epoll_wait fills fresh pages");
    ready = (void *)(with_bad_tail() + GOOD);
    EXPECT(epoll_wait(poller, ready, 8, 0) < 0 && errno == EFAULT && epoll_wait(poller, ready - 2, 2, 0) == 2,
           "epoll_wait keeps what it could not tell");
    unlink(name), close(file), close(watch), close(events), close(timer), close(signals), close(poller);
}

static void of_directories(void) {
    char name[] = "/tmp/copiesXXXXXX";
    CHECK(mkdtemp(name) && chdir(name) == 0);
    for (int index = 0; index < 300; index++) {
        char file[64];
        snprintf(file, sizeof file, "a-file-with-a-long-name-%d", index);
        close(open(file, O_CREAT | O_WRONLY, 0600));
    }
    int fd = open(".", O_RDONLY | O_DIRECTORY), seen = 0;
    for (;;) {
        unsigned char *at = fresh(3 * PAGE);
        long len = syscall(SYS_getdents64, fd, at, 3 * PAGE);
        CHECK(len >= 0);
        if (len == 0) break;
        for (long place = 0; place < len; seen++) place += ((struct dirent64 *)(at + place))->d_reclen;
    }
    CHECK(seen == 302);
    lseek(fd, 0, SEEK_SET);
    unsigned char *bad = with_bad_tail();
    long len = syscall(SYS_getdents64, fd, bad + GOOD - 100, PAGE);
    CHECK(len < 0 ? errno == EFAULT : len <= 100);
    for (int index = 0; index < 300; index++) {
        char file[64];
        snprintf(file, sizeof file, "a-file-with-a-long-name-%d", index);
        unlink(file);
    }
    close(fd);
    CHECK(chdir("/") == 0 && rmdir(name) == 0);
}

static void of_terminals(void) {
    int master, slave;
    struct termios raw;
    CHECK(openpty(&master, &slave, NULL, NULL, NULL) == 0);
    tcgetattr(slave, &raw), cfmakeraw(&raw), tcsetattr(slave, TCSANOW, &raw);
    for (int turn = 0; turn < 2; turn++) {
        int from = turn ? slave : master, to = turn ? master : slave;
        unsigned char *source = on_file(PAGE + 100, pattern), *at = fresh(2 * PAGE);
        CHECK(write(from, source + PAGE - 1000, 1100) == 1100);
        ssize_t had = 0;
        while (had < 1100) {
            ssize_t count = read(to, at + PAGE - 600 + had, 1100 - had);
            CHECK(count > 0);
            had += count;
        }
        CHECK(!memcmp(at + PAGE - 600, pattern + PAGE - 1000, 1100));
    }
    close(master), close(slave);
}

static void of_routes_and_frames(void) {
    struct {
        struct nlmsghdr header;
        struct ifinfomsg body;
    } *ask = (void *)on_file(PAGE, NULL);
    ask->header = (struct nlmsghdr){sizeof *ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0};
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    CHECK(send(fd, ask, sizeof *ask, 0) == sizeof *ask);
    unsigned char *at = fresh(16 * PAGE);
    CHECK(recv(fd, at, 16 * PAGE, 0) > (ssize_t)sizeof *ask);
    CHECK(((struct nlmsghdr *)at)->nlmsg_type == RTM_NEWLINK);
    close(fd);
    fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
    if (fd < 0) return;
    int ends[2];
    udp_pair(ends);
    CHECK(send(ends[1], pattern, 6000, 0) == 6000);
    at = fresh(2 * PAGE) + 100;
    for (ssize_t len = 0; len < 6000;) CHECK((len = recv(fd, at, 2 * PAGE - 100, 0)) > 0);
    CHECK(!memcmp(at + 28, pattern, 6000));
    close(fd), close(ends[0]), close(ends[1]);
}

int main(void) {
    fill_pattern();
    of_streams();
    of_messages();
    of_files();
    of_devices();
    of_records();
    TEST(of_directories);
    TEST(of_terminals);
    TEST(of_routes_and_frames);
    return check_status();
}
