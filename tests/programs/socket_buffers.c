// SO_SNDBUF and SO_RCVBUF: who sends on a Unix socket stops at its own buffer, and goes on.
#include "check.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SIOCOUTQ
#define SIOCOUTQ 0x5411
#endif

static char bytes[1 << 20];

static int get(int fd, int name) {
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &len) ? -1 : value;
}

static int set(int fd, int name, int value) {
    return setsockopt(fd, SOL_SOCKET, name, &value, sizeof value);
}

static int is_writable(int fd) {
    struct pollfd p = {fd, POLLOUT, 0};
    return poll(&p, 1, 0) == 1 && p.revents == POLLOUT;
}

static int queued(int fd) {
    int count = -1;
    return ioctl(fd, SIOCOUTQ, &count) ? -1 : count;
}

/// How many messages of `size` bytes go out.
static int fill(int fd, size_t size) {
    int count = 0;
    while (send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size) count++;
    return errno == EAGAIN ? count : -1;
}

static void a_buffer_is_doubled_and_bounded(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(get(s[0], SO_SNDBUF) == 212992 && get(s[0], SO_RCVBUF) == 212992);
    CHECK(!set(s[0], SO_SNDBUF, 10000) && get(s[0], SO_SNDBUF) == 20000);
    CHECK(!set(s[0], SO_SNDBUF, 1) && get(s[0], SO_SNDBUF) == 4608);
    CHECK(!set(s[0], SO_RCVBUF, 1) && get(s[0], SO_RCVBUF) == 2304);
    CHECK(!set(s[0], SO_SNDBUF, 1 << 30));
    int most = get(s[0], SO_SNDBUF);
    CHECK(!set(s[0], SO_SNDBUF, -1) && get(s[0], SO_SNDBUF) == most && most < 1 << 30);
    close(s[0]), close(s[1]);
}

static void who_may_passes_the_bounds_and_others_do_not(void) {
    int s[2], status;
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    CHECK(!set(s[0], SO_SNDBUFFORCE, 32 << 20) && get(s[0], SO_SNDBUF) == 64 << 20);
    CHECK(!set(s[0], SO_RCVBUFFORCE, 32 << 20) && get(s[0], SO_RCVBUF) == 64 << 20);
    CHECK(!set(s[0], SO_SNDBUFFORCE, -1) && get(s[0], SO_SNDBUF) == 4608);
    CHECK(!set(s[0], SO_RCVBUFFORCE, 0x7fffffff) && get(s[0], SO_RCVBUF) == 0x7ffffffe);
    pid_t child = fork();
    if (!child) {
        int bad = setuid(65534) != 0;
        bad |= !(set(s[0], SO_SNDBUFFORCE, 10000) == -1 && errno == EPERM);
        bad |= !(set(s[0], SO_RCVBUFFORCE, 10000) == -1 && errno == EPERM);
        bad |= set(s[0], SO_SNDBUF, 10000) != 0;
        _exit(bad);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && get(s[0], SO_SNDBUF) == 20000);
    close(s[0]), close(s[1]);
}

static void messages_stop_at_the_senders_buffer(void) {
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        int s[2];
        CHECK(!socketpair(AF_UNIX, types[i], 0, s));
        CHECK(queued(s[0]) == 0 && fill(s[0], 1) == 278 && queued(s[0]) >= 212992);
        CHECK(fill(s[1], 1000) == 93);
        close(s[0]), close(s[1]);
        CHECK(!socketpair(AF_UNIX, types[i], 0, s) && !set(s[0], SO_SNDBUF, 1));
        CHECK(fill(s[0], 1000) == 2 && !is_writable(s[0]) && is_writable(s[1]));
        CHECK(!set(s[0], SO_SNDBUF, 1 << 20) && is_writable(s[0]) && fill(s[0], 1000) > 500);
        close(s[0]), close(s[1]);
    }
}

static void a_message_longer_than_the_buffer_is_refused(void) {
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        int s[2];
        CHECK(!socketpair(AF_UNIX, types[i], 0, s));
        CHECK(send(s[0], bytes, 212992 - 31, 0) == -1 && errno == EMSGSIZE);
        CHECK(send(s[0], bytes, 212992 - 32, 0) == 212992 - 32);
        CHECK(!set(s[1], SO_SNDBUF, 400000));
        bytes[599999] = 7;
        CHECK(send(s[1], bytes, 600000, 0) == 600000);
        memset(bytes, 0, sizeof bytes);
        CHECK(recv(s[0], bytes, sizeof bytes, 0) == 600000 && bytes[599999] == 7);
        close(s[0]), close(s[1]);
    }
}

static void a_sender_may_write_when_a_quarter_is_left(void) {
    int s[2], taken = 0;
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && fill(s[0], 1000) == 93);
    while (!is_writable(s[0]) && recv(s[1], bytes, 1000, 0) == 1000) taken++;
    CHECK(taken == 70 && queued(s[0]) == 23 * 2304);
    close(s[0]), close(s[1]);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && fill(s[0], 4096) > 0 && !is_writable(s[0]));
    CHECK(recv(s[1], bytes, 65536, 0) > 0 && !is_writable(s[0]));
    while (recv(s[1], bytes, 65536, MSG_DONTWAIT) > 0) continue;
    CHECK(is_writable(s[0]) && queued(s[0]) == 0);
    close(s[0]), close(s[1]);
}

static void a_stream_holds_what_its_sender_may_have_under_way(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !set(s[0], SO_SNDBUF, 1));
    ssize_t few = send(s[0], bytes, sizeof bytes, MSG_DONTWAIT);
    CHECK(few > 0 && few <= 8192);
    CHECK(!set(s[0], SO_SNDBUF, 700000));
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 31 >> 3);
    ssize_t many = send(s[0], bytes, 1 << 20, MSG_DONTWAIT), got = 0, count;
    CHECK(many > 500000);
    static char back[1 << 20];
    CHECK(recv(s[1], back, few, MSG_WAITALL) == few);
    while (got < many && (count = recv(s[1], back + got, sizeof back - got, 0)) > 0) got += count;
    CHECK(got == many && !memcmp(back, bytes, many));
    close(s[0]), close(s[1]);
}

static void a_full_stream_that_goes_round_may_grow(void) {
    static char back[2 << 20], pattern[2 << 20];
    int s[2];
    ssize_t sent = 0, got = 0, count;
    for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (char)(i * 2654435761u >> 13);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
    for (int round = 0; round < 3; round++) {
        while ((count = send(s[0], pattern + sent, 50000, 0)) > 0) sent += count;
        CHECK((count = recv(s[1], back + got, 100, 0)) == 100);
        got += count;
        if ((count = send(s[0], pattern + sent, 100, 0)) > 0) sent += count;
        CHECK(!set(s[0], SO_SNDBUF, 200000 << round));
    }
    while ((count = recv(s[1], back + got, 70000, 0)) > 0) got += count;
    CHECK(got == sent && sent > 400000 && !memcmp(back, pattern, sent));
    close(s[0]), close(s[1]);
}

struct task {
    int fd;
    size_t size;
    volatile int count;
};

static void *send_ten(void *given) {
    struct task *task = given;
    for (; task->count < 10; task->count++)
        if (send(task->fd, bytes, task->size, MSG_NOSIGNAL) != (ssize_t)task->size) break;
    return NULL;
}

static void who_waits_for_its_buffer_goes_on_when_it_is_read_or_grows(void) {
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 6; i++) {
        int s[2], grows = i / 3;
        pthread_t thread;
        CHECK(!socketpair(AF_UNIX, types[i % 3], 0, s) && !set(s[0], SO_SNDBUF, 4000));
        struct task task = {s[0], 4000, 0};
        CHECK(!pthread_create(&thread, NULL, send_ten, &task));
        while (is_writable(s[0])) usleep(1000);
        CHECK(task.count < 10);
        if (grows) CHECK(!set(s[0], SO_SNDBUF, 1 << 20));
        for (int got = 0; !grows && got < 40000;) {
            ssize_t count = recv(s[1], bytes, 4000, 0);
            CHECK(count > 0);
            got += count;
        }
        pthread_join(thread, NULL);
        CHECK(task.count == 10);
        close(s[0]), close(s[1]);
    }
}

static void who_waits_for_one_that_closes_is_told(void) {
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        int s[2];
        pthread_t thread;
        CHECK(!socketpair(AF_UNIX, types[i], 0, s) && !set(s[0], SO_SNDBUF, 4000));
        struct task task = {s[0], 4000, 0};
        CHECK(!pthread_create(&thread, NULL, send_ten, &task));
        while (is_writable(s[0])) usleep(1000);
        close(s[1]);
        pthread_join(thread, NULL);
        CHECK(task.count < 10);
        close(s[0]);
    }
}

static int named(const char *text, struct sockaddr_un *name, socklen_t *len) {
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    strcpy(name->sun_path + 1, text);
    *len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text);
    return bind(fd, (struct sockaddr *)name, *len) ? -1 : fd;
}

static void senders_to_one_socket_do_not_share_a_buffer(void) {
    struct sockaddr_un name;
    socklen_t len;
    int to = named("buffers", &name, &len), few = socket(AF_UNIX, SOCK_DGRAM, 0);
    int other = socket(AF_UNIX, SOCK_DGRAM, 0), sent = 0;
    CHECK(to >= 0 && !set(few, SO_SNDBUF, 1));
    while (sendto(few, bytes, 1000, MSG_DONTWAIT, (void *)&name, len) == 1000) sent++;
    CHECK(errno == EAGAIN && sent == 2 && !is_writable(few) && is_writable(other));
    CHECK(sendto(other, bytes, 100000, MSG_DONTWAIT, (void *)&name, len) == 100000);
    CHECK(recv(to, bytes, 1000, 0) == 1000 && recv(to, bytes, 1000, 0) == 1000);
    CHECK(is_writable(few) && !is_writable(other) && queued(few) == 0);
    for (sent = 0; sendto(few, bytes, 1, MSG_DONTWAIT, (void *)&name, len) == 1; sent++) continue;
    CHECK(errno == EAGAIN && sent > 2 && sent <= 11);
    close(to);
    CHECK(is_writable(few) && queued(few) == 0 && queued(other) == 0);
    close(few), close(other);
}

static void a_udp_socket_keeps_what_its_buffer_takes_and_counts_the_rest(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    int kept[2];
    for (int big = 0; big < 2; big++) {
        int to = socket(AF_INET, SOCK_DGRAM, 0), from = socket(AF_INET, SOCK_DGRAM, 0);
        CHECK(!set(to, SO_RCVBUF, big ? 400000 : 5000));
        CHECK(get(to, SO_RCVBUF) == (big ? 800000 : 10000));
        name.sin_port = 0;
        CHECK(!bind(to, (void *)&name, len) && !getsockname(to, (void *)&name, &len));
        for (int i = 0; i < 100; i++)
            CHECK(sendto(from, bytes, 1000, 0, (void *)&name, len) == 1000);
        for (kept[big] = 0; recv(to, bytes, 1000, MSG_DONTWAIT) == 1000;) kept[big]++;
        close(to), close(from);
    }
    CHECK(kept[0] > 0 && kept[0] < 20 && kept[1] == 100);
}

int main(void) {
    TEST(a_buffer_is_doubled_and_bounded);
    TEST(who_may_passes_the_bounds_and_others_do_not);
    TEST(messages_stop_at_the_senders_buffer);
    TEST(a_message_longer_than_the_buffer_is_refused);
    TEST(a_sender_may_write_when_a_quarter_is_left);
    TEST(a_stream_holds_what_its_sender_may_have_under_way);
    TEST(a_full_stream_that_goes_round_may_grow);
    TEST(who_waits_for_its_buffer_goes_on_when_it_is_read_or_grows);
    TEST(who_waits_for_one_that_closes_is_told);
    TEST(senders_to_one_socket_do_not_share_a_buffer);
    TEST(a_udp_socket_keeps_what_its_buffer_takes_and_counts_the_rest);
    return check_status();
}
