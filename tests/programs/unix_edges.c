// Unix sockets at their edges: looks that go on, urgent bytes, low-water marks, lost peers, and
// what is told of a peer.
#include "check.h"
#include <fcntl.h>
#include <grp.h>
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

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define SIOC_AT_MARK 0x8905

typedef struct sockaddr Name;

static char buffer[64];

static short ready(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0};
    poll(&p, 1, 0);
    return p.revents;
}

static int set(int fd, int name, int value) {
    return setsockopt(fd, SOL_SOCKET, name, &value, sizeof value);
}

static int get(int fd, int name) {
    int value = -77;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &len) ? -1000 - errno : value;
}

static int waiting(int fd) {
    int count = -1;
    return ioctl(fd, FIONREAD, &count) ? -1000 - errno : count;
}

static int is_at_mark(int fd) {
    int at = -1;
    return ioctl(fd, SIOC_AT_MARK, &at) ? -1000 - errno : at;
}

// Whether a receive of at most `room` bytes that does not wait gives this text.
static int gives(int fd, int room, int flags, const char *text) {
    memset(buffer, 0, sizeof buffer);
    ssize_t got = recv(fd, buffer, room, flags | MSG_DONTWAIT);
    return got == (ssize_t)strlen(text) && !memcmp(buffer, text, got);
}

static int gives_nothing(int fd, int room, int flags) {
    return recv(fd, buffer, room, flags | MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

/// An abstract name, or a path if it begins with a slash; returns its length.
static socklen_t name_of(struct sockaddr_un *name, const char *text) {
    int is_path = text[0] == '/';
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    strcpy(name->sun_path + !is_path, text);
    return offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1;
}

static int bound(int type, const char *text) {
    struct sockaddr_un name;
    socklen_t len = name_of(&name, text);
    int fd = socket(AF_UNIX, type, 0);
    return bind(fd, (Name *)&name, len) ? -1 : fd;
}

static int connect_to(int fd, const char *text) {
    struct sockaddr_un name;
    socklen_t len = name_of(&name, text);
    return connect(fd, (Name *)&name, len);
}

static void looks_at_a_stream_go_on_where_the_last_one_ended(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && get(s[1], SO_PEEK_OFF) == -1);
    CHECK(send(s[0], "abcdef", 6, 0) == 6 && gives(s[1], 3, MSG_PEEK, "abc") && gives(s[1], 3, MSG_PEEK, "abc"));
    CHECK(!set(s[1], SO_PEEK_OFF, 0) && gives(s[1], 2, MSG_PEEK, "ab") && get(s[1], SO_PEEK_OFF) == 2);
    CHECK(gives(s[1], 9, MSG_PEEK, "cdef") && gives_nothing(s[1], 9, MSG_PEEK));
    CHECK(send(s[0], "gh", 2, 0) == 2 && gives(s[1], 9, MSG_PEEK, "gh"));
    CHECK(gives(s[1], 3, 0, "abc") && get(s[1], SO_PEEK_OFF) == 5);
    CHECK(!set(s[1], SO_PEEK_OFF, 1) && gives(s[1], 9, MSG_PEEK, "efgh"));
    CHECK(gives(s[1], 9, 0, "defgh") && get(s[1], SO_PEEK_OFF) == 0);
    CHECK(!set(s[1], SO_PEEK_OFF, -1) && send(s[0], "x", 1, 0) == 1);
    CHECK(gives(s[1], 3, MSG_PEEK, "x") && gives(s[1], 3, MSG_PEEK, "x") && gives(s[1], 3, 0, "x"));
    close(s[0]), close(s[1]);
}

static void looks_at_messages_go_on_with_the_next_one(void) {
    int types[] = {SOCK_DGRAM, SOCK_SEQPACKET}, s[2];
    for (int i = 0; i < 2; i++) {
        CHECK(!socketpair(AF_UNIX, types[i], 0, s) && !set(s[1], SO_PEEK_OFF, 0));
        CHECK(send(s[0], "abc", 3, 0) == 3 && send(s[0], "defg", 4, 0) == 4);
        CHECK(gives(s[1], 2, MSG_PEEK, "ab") && gives(s[1], 9, MSG_PEEK, "c") && gives(s[1], 9, MSG_PEEK, "defg"));
        CHECK(gives_nothing(s[1], 9, MSG_PEEK) && get(s[1], SO_PEEK_OFF) == 7);
        CHECK(gives(s[1], 1, 0, "a") && get(s[1], SO_PEEK_OFF) == 4 && !set(s[1], SO_PEEK_OFF, 2));
        CHECK(recv(s[1], buffer, 1, MSG_PEEK | MSG_TRUNC) == 2 && buffer[0] == 'f');
        CHECK(gives(s[1], 9, 0, "defg"));
        close(s[0]), close(s[1]);
    }
}

static void *send_late(void *fd) {
    usleep(50 * 1000);
    return (void *)(long)send(*(int *)fd, "late", 4, 0);
}

static void a_look_beyond_what_is_there_waits_for_more(void) {
    int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}, s[2];
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK(!socketpair(AF_UNIX, types[i], 0, s) && send(s[0], "abc", 3, 0) == 3);
        CHECK(!set(s[1], SO_PEEK_OFF, 3) && !pthread_create(&thread, NULL, send_late, &s[0]));
        CHECK(recv(s[1], buffer, 9, MSG_PEEK) == 4 && !memcmp(buffer, "late", 4));
        pthread_join(thread, NULL);
        CHECK(!set(s[1], SO_PEEK_OFF, 7) && !shutdown(s[0], SHUT_WR));
        if (types[i] != SOCK_DGRAM) CHECK(recv(s[1], buffer, 9, MSG_PEEK) == 0);
        close(s[0]), close(s[1]);
    }
}

static void an_urgent_byte_comes_ahead_of_its_turn_and_leaves_a_mark(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && is_at_mark(s[1]) == 0);
    CHECK(recv(s[1], buffer, 1, MSG_OOB) == -1 && errno == EINVAL);
    CHECK(send(s[0], "abcd", 4, MSG_OOB) == 4 && send(s[0], "ef", 2, 0) == 2);
    CHECK(waiting(s[1]) == 6 && ready(s[1]) & POLLPRI && is_at_mark(s[1]) == 0);
    CHECK(recv(s[1], buffer, 9, MSG_OOB | MSG_PEEK) == 1 && buffer[0] == 'd');
    CHECK(recv(s[1], buffer, 9, MSG_OOB) == 1 && buffer[0] == 'd' && waiting(s[1]) == 5);
    CHECK(recv(s[1], buffer, 9, MSG_OOB) == -1 && errno == EINVAL && !(ready(s[1]) & POLLPRI));
    CHECK(gives(s[1], 9, 0, "abc") && is_at_mark(s[1]) == 1);
    CHECK(gives(s[1], 9, 0, "ef") && is_at_mark(s[1]) == 0);
    close(s[0]), close(s[1]);
}

static void who_reads_on_passes_over_an_urgent_byte(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && send(s[0], "abc", 3, MSG_OOB) == 3);
    CHECK(send(s[0], "de", 2, 0) == 2 && gives(s[1], 9, 0, "ab") && is_at_mark(s[1]) == 1);
    CHECK(gives(s[1], 9, MSG_PEEK, "de") && gives(s[1], 9, 0, "de"));
    CHECK(recv(s[1], buffer, 1, MSG_OOB) == -1 && errno == EINVAL && gives_nothing(s[1], 9, 0));
    CHECK(send(s[0], "x", 1, MSG_OOB) == 1 && gives_nothing(s[1], 9, 0));
    close(s[0]), close(s[1]);
}

static void the_next_urgent_byte_makes_the_last_one_ordinary(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(send(s[0], "ab", 2, MSG_OOB) == 2 && send(s[0], "cd", 2, MSG_OOB) == 2);
    CHECK(recv(s[1], buffer, 1, MSG_OOB) == 1 && buffer[0] == 'd' && gives(s[1], 9, 0, "abc"));
    close(s[0]), close(s[1]);
}

static void an_urgent_byte_in_line_is_read_with_the_others(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !set(s[1], SO_OOBINLINE, 1));
    CHECK(send(s[0], "abc", 3, MSG_OOB) == 3 && send(s[0], "de", 2, 0) == 2);
    CHECK(recv(s[1], buffer, 1, MSG_OOB) == -1 && errno == EINVAL);
    CHECK(gives(s[1], 9, 0, "ab") && is_at_mark(s[1]) == 1 && gives(s[1], 9, 0, "cde"));
    close(s[0]), close(s[1]);
}

static void only_streams_have_urgent_bytes(void) {
    int types[] = {SOCK_DGRAM, SOCK_SEQPACKET}, s[2];
    for (int i = 0; i < 2; i++) {
        CHECK(!socketpair(AF_UNIX, types[i], 0, s));
        CHECK(send(s[0], "a", 1, MSG_OOB) == -1 && errno == EOPNOTSUPP);
        CHECK(recv(s[1], buffer, 1, MSG_OOB) == -1 && errno == EOPNOTSUPP);
        close(s[0]), close(s[1]);
    }
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(send(s[0], "", 0, MSG_OOB) == -1 && errno == EOPNOTSUPP);
    close(s[0]), close(s[1]);
}

static volatile sig_atomic_t urgent_signals;
static void note_urgent(int number) { urgent_signals += number == SIGURG; }

static void the_owner_hears_of_an_urgent_byte(void) {
    int s[2];
    urgent_signals = 0;
    signal(SIGURG, note_urgent);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && send(s[0], "a", 1, MSG_OOB) == 1);
    CHECK(urgent_signals == 0 && !fcntl(s[1], F_SETOWN, getpid()) && send(s[0], "b", 1, MSG_OOB) == 1);
    for (int i = 0; i < 1000 && !urgent_signals; i++) usleep(1000);
    CHECK(urgent_signals == 1);
    close(s[0]), close(s[1]);
}

static void *send_in_two(void *fd) {
    usleep(20 * 1000);
    send(*(int *)fd, "cd", 2, 0);
    usleep(20 * 1000);
    return (void *)(long)send(*(int *)fd, "ef", 2, 0);
}

static void a_receiver_waits_for_as_much_as_its_low_water_mark(void) {
    int s[2];
    pthread_t thread;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && get(s[1], SO_RCVLOWAT) == 1);
    CHECK(!set(s[1], SO_RCVLOWAT, 0) && get(s[1], SO_RCVLOWAT) == 1);
    CHECK(!set(s[1], SO_RCVLOWAT, -1) && get(s[1], SO_RCVLOWAT) == 0x7fffffff);
    CHECK(!set(s[1], SO_RCVLOWAT, 5) && get(s[1], SO_RCVLOWAT) == 5);
    CHECK(send(s[0], "ab", 2, 0) == 2 && ready(s[1]) & POLLIN && gives(s[1], 1, 0, "a"));
    CHECK(!pthread_create(&thread, NULL, send_in_two, &s[0]));
    CHECK(recv(s[1], buffer, 20, 0) == 5 && !memcmp(buffer, "bcdef", 5));
    pthread_join(thread, NULL);
    CHECK(send(s[0], "g", 1, 0) == 1 && gives(s[1], 9, 0, "g"));
    CHECK(send(s[0], "h", 1, 0) == 1 && !shutdown(s[0], SHUT_WR) && recv(s[1], buffer, 9, 0) == 1);
    CHECK(get(s[0], SO_SNDLOWAT) == 1 && set(s[0], SO_SNDLOWAT, 5) == -1 && errno == ENOPROTOOPT);
    close(s[0]), close(s[1]);
}

static void lingering_is_kept_for_who_asks(void) {
    int s[2];
    struct linger how = {1, 7}, told = {0, 0};
    socklen_t len = sizeof told;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(!getsockopt(s[0], SOL_SOCKET, SO_LINGER, &told, &len) && told.l_onoff == 0 && told.l_linger == 0);
    CHECK(!setsockopt(s[0], SOL_SOCKET, SO_LINGER, &how, sizeof how));
    CHECK(!getsockopt(s[0], SOL_SOCKET, SO_LINGER, &told, &len) && told.l_onoff == 1 && told.l_linger == 7);
    CHECK(setsockopt(s[0], SOL_SOCKET, SO_LINGER, &how, 4) == -1 && errno == EINVAL);
    close(s[0]), close(s[1]);
}

static void a_datagram_socket_forgets_a_peer_that_is_gone(void) {
    int peer = bound(SOCK_DGRAM, "edge-gone"), fd = bound(SOCK_DGRAM, "edge-sender");
    struct sockaddr_un name;
    socklen_t len = name_of(&name, "edge-sender"), told = sizeof name;
    CHECK(!connect_to(fd, "edge-gone") && send(fd, "a", 1, 0) == 1);
    CHECK(sendto(peer, "left", 4, 0, (Name *)&name, len) == 4);
    close(peer);
    CHECK(!getpeername(fd, (Name *)&name, &told) && waiting(fd) == 4);
    CHECK(send(fd, "a", 1, 0) == -1 && errno == ECONNREFUSED && waiting(fd) == 0);
    CHECK(send(fd, "a", 1, 0) == -1 && errno == ENOTCONN);
    CHECK(getpeername(fd, (Name *)&name, &told) == -1 && errno == ENOTCONN);
    close(fd);
}

static void a_datagram_socket_hears_that_its_peer_has_left_it(void) {
    int s[2], other = bound(SOCK_DGRAM, "edge-other");
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && send(s[1], "lost", 4, 0) == 4);
    CHECK(!connect_to(s[0], "edge-other") && gives_nothing(s[0], 9, 0));
    CHECK(ready(s[1]) & POLLERR && recv(s[1], buffer, 9, 0) == -1 && errno == ECONNRESET);
    CHECK(!(ready(s[1]) & POLLERR) && gives_nothing(s[1], 9, 0));
    close(s[0]), close(s[1]), close(other);
}

static void broken_messages_raise_no_signal(void) {
    int types[] = {SOCK_DGRAM, SOCK_SEQPACKET}, s[2];
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 2; i++) {
        CHECK(!socketpair(AF_UNIX, types[i], 0, s) && !shutdown(s[0], SHUT_WR));
        CHECK(send(s[0], "a", 1, 0) == -1 && errno == EPIPE);
        CHECK(!shutdown(s[0], SHUT_RD) && send(s[1], "a", 1, 0) == -1 && errno == EPIPE);
        close(s[0]), close(s[1]);
    }
}

static void connections_that_nobody_accepted_are_reset(void) {
    int server = bound(SOCK_STREAM, "edge-never"), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(!listen(server, 1) && !connect_to(client, "edge-never"));
    close(server);
    CHECK(ready(client) & POLLERR && read(client, buffer, 1) == -1 && errno == ECONNRESET);
    CHECK(read(client, buffer, 1) == 0);
    close(client);
}

static void what_waits_can_be_asked_without_a_connection(void) {
    int fd = bound(SOCK_STREAM, "edge-asked");
    int left = -1;
    CHECK(waiting(fd) == 0 && !ioctl(fd, TIOCOUTQ, &left) && left == 0);
    CHECK(!listen(fd, 1) && waiting(fd) == -1000 - EINVAL);
    close(fd);
}

static void errors_of_what_is_not_connected_are_told_apart(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), s[2];
    struct sockaddr_un name;
    socklen_t len = name_of(&name, "edge-nobody");
    CHECK(send(fd, "a", 1, 0) == -1 && errno == ENOTCONN);
    CHECK(sendto(fd, "a", 1, 0, (Name *)&name, len) == -1 && errno == EOPNOTSUPP);
    CHECK(recv(fd, buffer, 1, 0) == -1 && errno == EINVAL);
    close(fd);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(sendto(s[0], "a", 1, 0, (Name *)&name, len) == -1 && errno == EISCONN);
    close(s[0]), close(s[1]);
    fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    CHECK(recv(fd, buffer, 1, 0) == -1 && errno == ENOTCONN);
    close(fd);
}

static void senders_without_a_name_have_none(void) {
    int s[2];
    struct sockaddr_un name;
    socklen_t len = sizeof name;
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && send(s[0], "a", 1, 0) == 1);
    CHECK(recvfrom(s[1], buffer, 9, 0, (Name *)&name, &len) == 1 && len == 0);
    close(s[0]), close(s[1]);
}

static void a_stream_names_its_sender(void) {
    struct sockaddr_un name, expected;
    socklen_t len = sizeof name, expected_len = name_of(&expected, "edge-client");
    int server = bound(SOCK_STREAM, "edge-server"), client = bound(SOCK_STREAM, "edge-client");
    CHECK(!listen(server, 1) && !connect_to(client, "edge-server"));
    int peer = accept(server, NULL, NULL);
    CHECK(send(client, "a", 1, 0) == 1 && recvfrom(peer, buffer, 9, 0, (Name *)&name, &len) == 1);
    CHECK(len == expected_len && !memcmp(&name, &expected, len));
    close(server), close(client), close(peer);
}

static void a_second_name_is_refused_but_any_name_will_do(void) {
    struct sockaddr_un name;
    socklen_t len = name_of(&name, "edge-second");
    int fd = bound(SOCK_STREAM, "edge-first");
    CHECK(bind(fd, (Name *)&name, len) == -1 && errno == EINVAL);
    CHECK(!bind(fd, (Name *)&name, sizeof(sa_family_t)));
    close(fd);
}

static void an_automatic_name_is_five_hexadecimal_digits(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len = sizeof name;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(!bind(fd, (Name *)&name, sizeof(sa_family_t)) && !getsockname(fd, (Name *)&name, &len));
    CHECK(len == 8 && name.sun_path[0] == 0);
    for (int i = 1; i < 6; i++) CHECK(strchr("0123456789abcdef", name.sun_path[i]));
    close(fd);
}

static void who_passes_credentials_gets_a_name(void) {
    struct sockaddr_un name;
    socklen_t len = sizeof name;
    int server = bound(SOCK_STREAM, "edge-passes"), fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(!listen(server, 1) && !set(fd, SO_PASSCRED, 1) && !connect_to(fd, "edge-passes"));
    CHECK(!getsockname(fd, (Name *)&name, &len) && len == 8);
    close(fd), close(server);
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !set(s[0], SO_PASSCRED, 1) && send(s[0], "a", 1, 0) == 1);
    CHECK((len = sizeof name, !getsockname(s[0], (Name *)&name, &len)) && len == 8);
    close(s[0]), close(s[1]);
}

static void names_are_cut_to_the_room_for_them_and_told_whole_in_length(void) {
    struct sockaddr_un name;
    memset(&name, 'x', sizeof name);
    name.sun_family = AF_UNIX;
    memcpy(name.sun_path, "/tmp/", 5);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink("/tmp/unused");
    char path[120] = {0};
    memcpy(path, name.sun_path, sizeof name.sun_path);
    unlink(path);
    CHECK(!bind(fd, (Name *)&name, sizeof name));
    char told[128];
    socklen_t len = sizeof told;
    CHECK(!getsockname(fd, (Name *)told, &len) && len == 111 && !memcmp(told, &name, 110) && told[110] == 0);
    len = 4;
    memset(told, 7, sizeof told);
    CHECK(!getsockname(fd, (Name *)told, &len) && len == 111 && told[2] == '/' && told[4] == 7);
    len = -1;
    CHECK(getsockname(fd, (Name *)told, &len) == -1 && errno == EINVAL);
    CHECK(!unlink(path));
    close(fd);
}

static int as_another_user(int (*body)(void)) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(setgid(1234) || setuid(1234) ? 99 : body());
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int meet_rights(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect_to(fd, "/tmp/edge-rights/socket") != -1 || errno != EACCES) return 1;
    if (connect_to(fd, "/tmp/edge-rights/plain") != -1 || errno != EACCES) return 2;
    struct sockaddr_un name;
    socklen_t len = name_of(&name, "/tmp/edge-rights/new");
    if (bind(fd, (Name *)&name, len) != -1 || errno != EACCES) return 3;
    int datagram = socket(AF_UNIX, SOCK_DGRAM, 0);
    len = name_of(&name, "/tmp/edge-rights/socket");
    if (sendto(datagram, "a", 1, 0, (Name *)&name, len) != -1 || errno != EACCES) return 4;
    return 0;
}

static void the_rights_of_files_hold_for_names(void) {
    struct stat facts;
    system("rm -rf /tmp/edge-rights");
    CHECK(!mkdir("/tmp/edge-rights", 0755));
    mode_t old = umask(027);
    int fd = bound(SOCK_STREAM, "/tmp/edge-rights/socket");
    umask(old);
    CHECK(fd >= 0 && !listen(fd, 1) && !stat("/tmp/edge-rights/socket", &facts));
    CHECK((facts.st_mode & 0777) == 0750 && facts.st_uid == 0);
    int plain = open("/tmp/edge-rights/plain", O_CREAT | O_RDWR, 0600);
    CHECK(plain >= 0 && connect_to(socket(AF_UNIX, SOCK_STREAM, 0), "/tmp/edge-rights/plain") == -1);
    CHECK(errno == ECONNREFUSED && as_another_user(meet_rights) == 0);
    CHECK(!chmod("/tmp/edge-rights/socket", 0722) && as_another_user(meet_rights) == 1);
    close(fd), close(plain);
    unlink("/tmp/edge-rights/socket"), unlink("/tmp/edge-rights/plain"), rmdir("/tmp/edge-rights");
}

static void the_groups_of_a_peer_are_told(void) {
    int s[2];
    gid_t groups[3] = {7, 8, 9}, told[4] = {0}, before[64];
    socklen_t len = sizeof told;
    int count = getgroups(64, before);
    CHECK(count >= 0 && !setgroups(3, groups) && !socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(!setgroups(count, before));
    CHECK(!getsockopt(s[0], SOL_SOCKET, SO_PEERGROUPS, told, &len) && len == 12 && !memcmp(told, groups, 12));
    len = 8;
    CHECK(getsockopt(s[0], SOL_SOCKET, SO_PEERGROUPS, told, &len) == -1 && errno == ERANGE && len == 12);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, told, &len) == -1 && errno == ENODATA);
    CHECK(getsockopt(s[0], SOL_SOCKET, SO_PEERSEC, told, &len) == -1 && errno == ENOPROTOOPT);
    close(s[0]), close(s[1]), close(fd);
}

static void the_process_of_a_peer_is_told(void) {
    int s[2], pidfd = -1, status;
    socklen_t len = sizeof pidfd;
    int server = bound(SOCK_STREAM, "edge-process"), told[2];
    CHECK(!listen(server, 1) && !pipe(told));
    pid_t child = fork();
    if (child == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect_to(fd, "edge-process")) _exit(1);
        char byte;
        close(told[1]);
        _exit(read(told[0], &byte, 1) != 0);
    }
    close(told[0]);
    int peer = accept(server, NULL, NULL);
    CHECK(!getsockopt(peer, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) && len == 4 && pidfd >= 0);
    CHECK(fcntl(pidfd, F_GETFD) == FD_CLOEXEC && !(ready(pidfd) & POLLIN));
    close(told[1]);
    struct pollfd ended = {pidfd, POLLIN, 0};
    CHECK(poll(&ended, 1, 10000) == 1 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == -1 && errno == ENODATA);
    close(fd), close(peer), close(server), close(s[0]), close(s[1]);
}

static void the_name_of_a_peer_can_be_asked_as_an_option(void) {
    int s[2];
    char told[16];
    socklen_t len = 2;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK(!getsockopt(s[0], SOL_SOCKET, SO_PEERNAME, told, &len) && len == 2 && told[0] == AF_UNIX);
    len = 3;
    CHECK(getsockopt(s[0], SOL_SOCKET, SO_PEERNAME, told, &len) == -1 && errno == EINVAL);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERNAME, told, &len) == -1 && errno == ENOTCONN);
    close(s[0]), close(s[1]), close(fd);
}

/// Sends `count` descriptors with a byte.
static ssize_t send_many(int socket, int fd, int count) {
    static char control[CMSG_SPACE(300 * sizeof(int))];
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                               .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    for (int i = 0; i < count; i++) ((int *)CMSG_DATA(header))[i] = fd;
    return sendmsg(socket, &message, 0);
}

static void a_message_carries_253_descriptors_and_no_more(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    CHECK(send_many(s[0], 0, 254) == -1 && errno == EINVAL && send_many(s[0], 999, 1) == -1 && errno == EBADF);
    CHECK(send_many(s[0], 1, 253) == 1 && send_many(s[0], 1, 0) == 1);
    static char control[CMSG_SPACE(253 * sizeof(int))];
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK(recvmsg(s[1], &message, 0) == 1 && !(message.msg_flags & MSG_CTRUNC));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header->cmsg_len == CMSG_LEN(253 * sizeof(int)));
    for (int i = 0; i < 253; i++) close(((int *)CMSG_DATA(header))[i]);
    close(s[0]), close(s[1]);
}

static void descriptors_are_received_as_far_as_there_is_room(void) {
    int s[2];
    char control[CMSG_SPACE(8)], byte;
    struct iovec part = {&byte, 1};
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    for (size_t room = 0; room <= sizeof control; room++) {
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
        CHECK(send_many(s[0], 1, 2) == 1 && recvmsg(s[1], &message, 0) == 1);
        int fit = room < 20 ? 0 : room < 24 ? 1 : 2;
        CHECK(!(message.msg_flags & MSG_CTRUNC) == (fit == 2));
        CHECK(message.msg_controllen == (fit == 0 ? 0 : fit == 1 ? room : 24));
        for (int i = 0; i < fit; i++) close(((int *)CMSG_DATA((struct cmsghdr *)control))[i]);
    }
    close(s[0]), close(s[1]);
}

static void ends_are_told_as_they_come(void) {
    int s[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !shutdown(s[0], SHUT_RD));
    CHECK(ready(s[0]) == (POLLIN | POLLOUT | POLLRDHUP) && ready(s[1]) == POLLOUT);
    CHECK(send(s[1], "a", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE && read(s[0], buffer, 1) == 0);
    CHECK(!shutdown(s[0], SHUT_WR) && ready(s[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
    CHECK(ready(s[1]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP));
    close(s[0]), close(s[1]);
    CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s) && !shutdown(s[0], SHUT_RDWR));
    CHECK(ready(s[0]) == (POLLIN | POLLOUT | POLLRDHUP | POLLHUP) && ready(s[1]) == POLLOUT);
    close(s[0]), close(s[1]);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), seqpacket = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    int datagram = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(ready(fd) == (POLLOUT | POLLHUP) && ready(seqpacket) == (POLLOUT | POLLHUP));
    CHECK(ready(datagram) == POLLOUT);
    close(fd), close(seqpacket), close(datagram);
}

int main(void) {
    TEST(looks_at_a_stream_go_on_where_the_last_one_ended);
    TEST(looks_at_messages_go_on_with_the_next_one);
    TEST(a_look_beyond_what_is_there_waits_for_more);
    TEST(an_urgent_byte_comes_ahead_of_its_turn_and_leaves_a_mark);
    TEST(who_reads_on_passes_over_an_urgent_byte);
    TEST(the_next_urgent_byte_makes_the_last_one_ordinary);
    TEST(an_urgent_byte_in_line_is_read_with_the_others);
    TEST(only_streams_have_urgent_bytes);
    TEST(the_owner_hears_of_an_urgent_byte);
    TEST(a_receiver_waits_for_as_much_as_its_low_water_mark);
    TEST(lingering_is_kept_for_who_asks);
    TEST(a_datagram_socket_forgets_a_peer_that_is_gone);
    TEST(a_datagram_socket_hears_that_its_peer_has_left_it);
    TEST(broken_messages_raise_no_signal);
    TEST(connections_that_nobody_accepted_are_reset);
    TEST(what_waits_can_be_asked_without_a_connection);
    TEST(errors_of_what_is_not_connected_are_told_apart);
    TEST(senders_without_a_name_have_none);
    TEST(a_stream_names_its_sender);
    TEST(a_second_name_is_refused_but_any_name_will_do);
    TEST(an_automatic_name_is_five_hexadecimal_digits);
    TEST(who_passes_credentials_gets_a_name);
    TEST(names_are_cut_to_the_room_for_them_and_told_whole_in_length);
    TEST(the_rights_of_files_hold_for_names);
    TEST(the_groups_of_a_peer_are_told);
    TEST(the_process_of_a_peer_is_told);
    TEST(the_name_of_a_peer_can_be_asked_as_an_option);
    TEST(a_message_carries_253_descriptors_and_no_more);
    TEST(descriptors_are_received_as_far_as_there_is_room);
    TEST(ends_are_told_as_they_come);
    return check_status();
}
