// Unix sockets: streams, records, datagrams, names, rights, credentials.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct sockaddr Name;

static short ready(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDHUP, 0};
    poll(&p, 1, 0);
    return p.revents;
}

/// An abstract name, or a path if it begins with a slash; returns its length.
static socklen_t name_of(struct sockaddr_un *name, const char *text) {
    int is_path = text[0] == '/';
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    strcpy(name->sun_path + !is_path, text);
    return offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1;
}

static int listening(const char *text, int type) {
    struct sockaddr_un name;
    socklen_t len = name_of(&name, text);
    int fd = socket(AF_UNIX, type, 0);
    if (bind(fd, (Name *)&name, len) || listen(fd, 5)) return -1;
    return fd;
}

static int connected(const char *text, int type) {
    struct sockaddr_un name;
    socklen_t len = name_of(&name, text);
    int fd = socket(AF_UNIX, type, 0);
    if (connect(fd, (Name *)&name, len)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static void a_pair_talks_both_ways(void) {
    int s[2], count;
    char buffer[16];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(write(s[0], "abc", 3) == 3 && send(s[0], "de", 2, 0) == 2);
    CHECK(!ioctl(s[1], FIONREAD, &count) && count == 5);
    CHECK(recv(s[1], buffer, 2, MSG_PEEK) == 2 && read(s[1], buffer, 16) == 5);
    CHECK(!memcmp(buffer, "abcde", 5) && write(s[1], "x", 1) == 1 && read(s[0], buffer, 16) == 1);
    CHECK(recv(s[0], buffer, 16, MSG_DONTWAIT) == -1 && errno == EAGAIN && ready(s[0]) == POLLOUT);
    close(s[0]), close(s[1]);
}

static void closing_is_the_end_and_then_a_broken_pipe(void) {
    int s[2];
    char byte;
    signal(SIGPIPE, SIG_DFL);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && write(s[1], "x", 1) == 1);
    close(s[1]);
    CHECK(ready(s[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
    CHECK(read(s[0], &byte, 1) == 1 && read(s[0], &byte, 1) == 0);
    CHECK(send(s[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    close(s[0]);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && write(s[0], "unread", 6) == 6);
    close(s[1]);
    CHECK(read(s[0], &byte, 1) == -1 && errno == ECONNRESET && read(s[0], &byte, 1) == 0);
    close(s[0]);
}

static void shutdown_ends_one_direction(void) {
    int s[2];
    char byte;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !shutdown(s[0], SHUT_WR));
    CHECK(ready(s[1]) == (POLLIN | POLLOUT | POLLRDHUP) && read(s[1], &byte, 1) == 0);
    CHECK(send(s[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    CHECK(write(s[1], "y", 1) == 1 && read(s[0], &byte, 1) == 1);
    CHECK(!shutdown(s[1], SHUT_RDWR) && ready(s[0]) & POLLHUP && read(s[0], &byte, 1) == 0);
    close(s[0]), close(s[1]);
}

static void a_full_stream_blocks_and_goes_on(void) {
    int s[2];
    static char bytes[65536];
    long total = 0, count;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
    while ((count = write(s[0], bytes, sizeof bytes)) > 0) total += count;
    CHECK(errno == EAGAIN && total > 100000 && !(ready(s[0]) & POLLOUT));
    while ((count = read(s[1], bytes, sizeof bytes)) > 0) total -= count;
    CHECK(total == 0 && ready(s[0]) & POLLOUT);
    close(s[0]), close(s[1]);
}

static void *send_much(void *fd) {
    static char bytes[1 << 20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 31 >> 3);
    return (void *)(long)send(*(int *)fd, bytes, sizeof bytes, 0);
}

static void waitall_waits_for_all(void) {
    int s[2];
    static char bytes[1 << 20];
    void *sent;
    pthread_t thread;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    pthread_create(&thread, NULL, send_much, &s[0]);
    CHECK(recv(s[1], bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes);
    pthread_join(thread, &sent);
    CHECK((long)sent == sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) CHECK(bytes[i] == (char)(i * 31 >> 3));
    close(s[0]), close(s[1]);
}

static void records_and_datagrams_keep_their_borders(void) {
    int types[] = {SOCK_SEQPACKET, SOCK_DGRAM}, s[2];
    char buffer[16];
    for (int i = 0; i < 2; i++) {
        CHECK(!socketpair(AF_UNIX, types[i], 0, s));
        CHECK(write(s[0], "first", 5) == 5 && write(s[0], "second", 6) == 6);
        CHECK(send(s[0], "", 0, 0) == 0 && write(s[0], "end", 3) == 3);
        CHECK(recv(s[1], buffer, 2, MSG_PEEK | MSG_TRUNC) == 5 && read(s[1], buffer, 2) == 2);
        CHECK(read(s[1], buffer, 16) == 6 && !memcmp(buffer, "second", 6));
        CHECK(read(s[1], buffer, 16) == 0 && read(s[1], buffer, 16) == 3);
        static char large[400000];
        CHECK(send(s[0], large, sizeof large, 0) == -1 && errno == EMSGSIZE);
        close(s[0]), close(s[1]);
    }
}

static void clients_connect_to_names(const char *text) {
    struct sockaddr_un name, expected;
    socklen_t len = sizeof name, expected_len = name_of(&expected, text);
    char byte;
    int server = listening(text, SOCK_STREAM);
    CHECK(server >= 0 && ready(server) == 0);
    int client = connected(text, SOCK_STREAM);
    CHECK(client >= 0 && ready(server) == POLLIN && write(client, "x", 1) == 1);
    int peer = accept4(server, (Name *)&name, &len, SOCK_CLOEXEC);
    CHECK(peer >= 0 && len == 2 && fcntl(peer, F_GETFD) == FD_CLOEXEC);
    CHECK(read(peer, &byte, 1) == 1 && byte == 'x');
    len = sizeof name;
    CHECK(!getpeername(client, (Name *)&name, &len) && len == expected_len);
    CHECK(!memcmp(&name, &expected, len));
    CHECK(connected(text, SOCK_DGRAM) == -1);
    CHECK(errno == (text[0] == '/' ? EPROTOTYPE : ECONNREFUSED));
    CHECK(listening(text, SOCK_STREAM) == -1 && errno == EADDRINUSE);
    CHECK(connect(client, (Name *)&expected, expected_len) == -1 && errno == EISCONN);
    close(client), close(peer), close(server);
    CHECK(connected(text, SOCK_STREAM) == -1 && errno == ECONNREFUSED);
}

static void clients_connect_to_an_abstract_name(void) { clients_connect_to_names("sietch-test"); }

static void clients_connect_to_a_path(void) {
    struct stat facts;
    unlink("/tmp/sietch-test.sock");
    CHECK(connected("/tmp/sietch-test.sock", SOCK_STREAM) == -1 && errno == ENOENT);
    clients_connect_to_names("/tmp/sietch-test.sock");
    CHECK(!stat("/tmp/sietch-test.sock", &facts) && S_ISSOCK(facts.st_mode));
    CHECK(!unlink("/tmp/sietch-test.sock"));
}

static void a_full_backlog_refuses_those_who_do_not_wait(void) {
    struct sockaddr_un name;
    socklen_t len = name_of(&name, "sietch-backlog");
    int server = socket(AF_UNIX, SOCK_STREAM, 0), clients[4], refused = 0;
    CHECK(!bind(server, (Name *)&name, len) && !listen(server, 1));
    for (int i = 0; i < 4; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(clients[i], (Name *)&name, len)) refused += errno == EAGAIN;
    }
    CHECK(refused == 2);
    for (int i = 0; i < 4; i++) close(clients[i]);
    close(server);
}

static void binding_without_a_name_gets_one(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len = sizeof name;
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(!bind(fd, (Name *)&name, sizeof(sa_family_t)));
    CHECK(!getsockname(fd, (Name *)&name, &len) && len == 8 && name.sun_path[0] == 0);
    close(fd);
}

static void datagrams_say_who_sent_them(void) {
    struct sockaddr_un a_name, b_name, from;
    socklen_t a_len = name_of(&a_name, "sietch-a"), b_len = name_of(&b_name, "sietch-b");
    socklen_t len = sizeof from;
    char buffer[8];
    int a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(!bind(a, (Name *)&a_name, a_len) && !bind(b, (Name *)&b_name, b_len));
    CHECK(sendto(a, "hi", 2, 0, (Name *)&b_name, b_len) == 2);
    CHECK(recvfrom(b, buffer, 8, 0, (Name *)&from, &len) == 2 && len == a_len);
    CHECK(!memcmp(&from, &a_name, len) && send(b, "x", 1, 0) == -1 && errno == ENOTCONN);
    CHECK(!connect(b, (Name *)&a_name, a_len) && send(b, "x", 1, 0) == 1 && read(a, buffer, 8) == 1);
    CHECK(sendto(a, "x", 1, 0, (Name *)&b_name, b_len) == 1);
    int stranger = socket(AF_UNIX, SOCK_DGRAM, 0), sent = 0;
    CHECK(sendto(stranger, "x", 1, 0, (Name *)&b_name, b_len) == -1 && errno == EPERM);
    while (sent < 1000 && send(b, "x", 1, MSG_DONTWAIT) == 1) sent++;
    CHECK(errno == EAGAIN && sent > 5 && ready(b) == POLLIN && read(a, buffer, 8) == 1);
    CHECK(ready(b) == (POLLIN | POLLOUT));
    close(a);
    CHECK(send(b, "x", 1, 0) == -1 && errno == ECONNREFUSED);
    close(b), close(stranger);
}

/// Sends bytes with descriptors; returns what sendmsg returns.
static ssize_t send_fds(int socket, const char *text, int *fds, int count) {
    char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec part = {(char *)text, strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                               .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    return sendmsg(socket, &message, 0);
}

/// Receives bytes and descriptors; returns the number of those, or -1.
static int receive_fds(int socket, char *text, size_t room, int *fds, int limit, int flags) {
    char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec part = {text, room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = limit ? CMSG_SPACE(limit * sizeof(int)) : 0};
    ssize_t got = recvmsg(socket, &message, flags);
    if (got < 0) return -1;
    text[got] = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header) return message.msg_flags & MSG_CTRUNC ? -2 : 0;
    int count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    return count;
}

static void descriptors_travel(void) {
    int s[2], ends[2], got[4];
    char text[16], byte;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !pipe(ends));
    CHECK(write(s[0], "before", 6) == 6 && send_fds(s[0], "with", ends, 2) == 4);
    CHECK(write(s[0], "after", 5) == 5);
    close(ends[0]), close(ends[1]);
    CHECK(receive_fds(s[1], text, 3, got, 4, 0) == 0 && !strcmp(text, "bef"));
    CHECK(receive_fds(s[1], text, 15, got, 4, MSG_CMSG_CLOEXEC) == 2 && !strcmp(text, "orewith"));
    CHECK(fcntl(got[0], F_GETFD) == FD_CLOEXEC && write(got[1], "x", 1) == 1);
    CHECK(read(got[0], &byte, 1) == 1 && read(s[1], text, 16) == 5);
    CHECK(send_fds(s[0], "cut", got, 2) == 3 && receive_fds(s[1], text, 15, got, 0, 0) == -2);
    close(got[0]), close(got[1]), close(s[0]), close(s[1]);
}

static void descriptors_in_an_unread_message_are_closed(void) {
    int s[2], ends[2];
    char byte;
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !pipe(ends));
    CHECK(send_fds(s[0], "x", &ends[1], 1) == 1);
    close(ends[1]), close(s[0]), close(s[1]);
    CHECK(read(ends[0], &byte, 1) == 0);
    close(ends[0]);
}

static void a_long_chain_of_sockets_in_messages_is_dropped(void) {
    int last = -1, s[2];
    for (int i = 0; i < 500; i++) {
        CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
        if (last >= 0) {
            CHECK(send_fds(s[0], "x", &last, 1) == 1);
            close(last);
        }
        close(s[0]);
        last = s[1];
    }
    close(last);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    close(s[0]), close(s[1]);
}

static void credentials_are_told(void) {
    int s[2], on = 1, status;
    struct ucred who = {0};
    socklen_t len = sizeof who;
    char control[CMSG_SPACE(sizeof who)], text[4];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(!getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid == getpid());
    CHECK(who.uid == getuid() && !setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    pid_t child = fork();
    if (child == 0) _exit(write(s[0], "hi", 2) != 2);
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK(recvmsg(s[1], &message, 0) == 2 && waitpid(child, &status, 0) == child && !status);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header && header->cmsg_type == SCM_CREDENTIALS);
    memcpy(&who, CMSG_DATA(header), sizeof who);
    CHECK(who.pid == child && who.uid == getuid() && who.gid == getgid());
    close(s[0]), close(s[1]);
}

// The sender that the next message names; pid -1 if it names none.
static struct ucred sender_of(int fd, ssize_t bytes) {
    struct ucred who = {.pid = -1};
    char control[CMSG_SPACE(sizeof who)], text[64];
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK(recvmsg(fd, &message, 0) == bytes);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_CREDENTIALS) memcpy(&who, CMSG_DATA(header), sizeof who);
    return who;
}

static void credentials_are_noted_when_either_side_wants_them(void) {
    for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
        int s[2], on = 1, off = 0;
        CHECK(!socketpair(AF_UNIX, type, 0, s) && write(s[0], "abc", 3) == 3);
        CHECK(!setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
        struct ucred who = sender_of(s[1], 3);
        CHECK(who.pid == 0 && who.uid == 65534 && who.gid == 65534);
        CHECK(!setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &off, sizeof off));
        CHECK(!setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) && write(s[0], "abc", 3) == 3);
        CHECK(!setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
        CHECK(sender_of(s[1], 3).pid == getpid());
        close(s[0]), close(s[1]);
    }
}

static void a_stream_keeps_senders_apart_for_who_wants_to_know_them(void) {
    for (int wanted = 0; wanted <= 1; wanted++) {
        int s[2], on = 1, off = 0;
        CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && write(s[0], "abc", 3) == 3);
        CHECK(!setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) && write(s[0], "de", 2) == 2);
        if (wanted) {
            CHECK(sender_of(s[1], 3).pid == 0 && sender_of(s[1], 2).pid == getpid());
        } else {
            CHECK(!setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &off, sizeof off));
            CHECK(sender_of(s[1], 5).pid == -1);
        }
        close(s[0]), close(s[1]);
    }
}

static void a_raw_socket_is_one_of_datagrams(void) {
    int s[2], type;
    socklen_t len = sizeof type;
    CHECK(!socketpair(AF_UNIX, SOCK_RAW, 0, s) && !getsockopt(s[0], SOL_SOCKET, SO_TYPE, &type, &len));
    CHECK(type == SOCK_DGRAM && write(s[0], "a", 1) == 1 && write(s[0], "bc", 2) == 2);
    CHECK(sender_of(s[1], 1).pid == -1 && sender_of(s[1], 2).pid == -1);
    close(s[0]), close(s[1]);
}

static void options_say_what_a_socket_is(void) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0), value;
    socklen_t len = sizeof value;
    CHECK(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) && value == SOCK_SEQPACKET);
    CHECK(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len) && value == AF_UNIX);
    CHECK(!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) && value == 0);
    CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len) && value == 0);
    CHECK(!getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len) && value == 212992);
    CHECK(getsockopt(fd, SOL_SOCKET, 12345, &value, &len) == -1 && errno == ENOPROTOOPT);
    CHECK(getsockopt(0, SOL_SOCKET, SO_TYPE, &value, &len) == -1);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    CHECK(socket(AF_UNIX, 77, 0) == -1 && errno == EINVAL);
    CHECK(socket(77, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
    CHECK(socket(AF_UNIX, SOCK_STREAM, 9) == -1 && errno == EPROTONOSUPPORT);
    CHECK(listen(1, 1) == -1 && errno == ENOTSOCK);
}

static void a_receive_timeout_ends_waiting(void) {
    int s[2];
    struct timeval limit = {0, 50000};
    char byte;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(!setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    CHECK(read(s[0], &byte, 1) == -1 && errno == EAGAIN);
    close(s[0]), close(s[1]);
}

int main(void) {
    TEST(a_pair_talks_both_ways);
    TEST(closing_is_the_end_and_then_a_broken_pipe);
    TEST(shutdown_ends_one_direction);
    TEST(a_full_stream_blocks_and_goes_on);
    TEST(waitall_waits_for_all);
    TEST(records_and_datagrams_keep_their_borders);
    TEST(clients_connect_to_an_abstract_name);
    TEST(clients_connect_to_a_path);
    TEST(a_full_backlog_refuses_those_who_do_not_wait);
    TEST(binding_without_a_name_gets_one);
    TEST(datagrams_say_who_sent_them);
    TEST(descriptors_travel);
    TEST(descriptors_in_an_unread_message_are_closed);
    TEST(a_long_chain_of_sockets_in_messages_is_dropped);
    TEST(credentials_are_told);
    TEST(credentials_are_noted_when_either_side_wants_them);
    TEST(a_stream_keeps_senders_apart_for_who_wants_to_know_them);
    TEST(a_raw_socket_is_one_of_datagrams);
    TEST(options_say_what_a_socket_is);
    TEST(a_receive_timeout_ends_waiting);
    return check_status();
}
