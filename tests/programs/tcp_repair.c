// Connections that are taken apart and put together again (TCP_REPAIR), as CRIU does it.
#include <poll.h>
#include <sys/wait.h>

#include "tcp_repair.h"

enum { USER = 1004 };

static int listener(struct sockaddr_in *name) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = sizeof *name;
    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fd, (void *)name, len) == 0 && listen(fd, 8) == 0);
    CHECK(getsockname(fd, (void *)name, &len) == 0);
    return fd;
}

static void pair(int ends[2]) {
    struct sockaddr_in name;
    int server = listener(&name);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(ends[0], (void *)&name, sizeof name) == 0);
    ends[1] = accept(server, NULL, NULL);
    CHECK(ends[1] >= 0);
    close(server);
}

static int is_quiet(int fd) {
    struct pollfd one = {fd, POLLIN | POLLRDHUP, 0};
    return poll(&one, 1, 100) == 0;
}

// Until delayed acknowledgements are over: while nobody has the connection nothing may be under way.
static void settle(void) { usleep(200000); }

static void talk(int from, int to, const char *words) {
    char heard[64] = {0};
    int len = strlen(words), had = 0;
    CHECK(send(from, words, len, 0) == len);
    while (had < len) {
        struct pollfd one = {to, POLLIN, 0};
        CHECK(poll(&one, 1, 5000) == 1);
        int got = recv(to, heard + had, sizeof heard - had, 0);
        CHECK(got > 0);
        had += got;
    }
    CHECK(strcmp(heard, words) == 0);
}

static void a_connection_goes_on_in_another_socket_and_its_peer_sees_nothing(void) {
    int ends[2];
    struct image image = {0};
    pair(ends);
    talk(ends[0], ends[1], "before");
    talk(ends[1], ends[0], "and back");
    settle();
    dump(ends[0], &image);
    CHECK(is_quiet(ends[1]));
    CHECK(image.len[TCP_RECV_QUEUE] == 0 && image.len[TCP_SEND_QUEUE] == 0);
    int fd = restore(&image);
    CHECK(is_quiet(ends[1]));
    talk(fd, ends[1], "after");
    talk(ends[1], fd, "and back again");
    CHECK(shutdown(fd, SHUT_WR) == 0);
    char byte;
    CHECK(recv(ends[1], &byte, 1, 0) == 0 && close(ends[1]) == 0 && recv(fd, &byte, 1, 0) == 0);
    close(fd);
}

static void bytes_that_were_not_read_are_read_after_a_move(void) {
    int ends[2];
    struct image image = {0};
    char heard[16] = {0};
    pair(ends);
    CHECK(send(ends[1], "unread", 6, 0) == 6);
    settle();
    dump(ends[0], &image);
    CHECK(image.len[TCP_RECV_QUEUE] == 6 && memcmp(image.bytes[TCP_RECV_QUEUE], "unread", 6) == 0);
    int fd = restore(&image);
    CHECK(recv(fd, heard, sizeof heard, 0) == 6 && strcmp(heard, "unread") == 0);
    talk(ends[1], fd, "and more");
    close(fd), close(ends[1]);
}

static void bytes_that_found_no_room_arrive_after_a_move(void) {
    static char bytes[1 << 16], heard[1 << 16];
    int ends[2], small = 4096, some = 1 << 16, total = 0, had = 0;
    struct image image = {0};
    pair(ends);
    setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &some, sizeof some);
    for (unsigned at = 0; at < sizeof bytes; at++) bytes[at] = at % 251;
    for (int sent; (sent = send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT)) > 0;) {
        total += sent;
        if (sent < (int)sizeof bytes) break;
    }
    settle();
    dump(ends[0], &image);
    CHECK(image.unsent > 0 && image.unsent <= image.len[TCP_SEND_QUEUE]);
    int fd = restore(&image);
    while (had < total) {
        int got = recv(ends[1], heard, sizeof heard, 0);
        CHECK(got > 0);
        for (int at = 0; at < got; at++, had++) CHECK(heard[at] == (char)(had % sizeof bytes % 251));
    }
    talk(fd, ends[1], "the end");
    close(fd), close(ends[1]);
}

static void it_goes_on_in_the_same_socket_too(void) {
    int ends[2];
    pair(ends);
    for (int round = 0; round < 3; round++) {
        CHECK(set(ends[0], TCP_REPAIR, TCP_REPAIR_ON) == 0);
        CHECK(set(ends[0], TCP_REPAIR, round ? TCP_REPAIR_OFF : TCP_REPAIR_OFF_NO_WP) == 0);
        talk(ends[0], ends[1], "there");
        talk(ends[1], ends[0], "and back");
    }
    close(ends[0]), close(ends[1]);
}

static void a_queue_is_looked_at_and_not_read(void) {
    int ends[2];
    char byte;
    pair(ends);
    CHECK(send(ends[1], "x", 1, 0) == 1);
    settle();
    CHECK(set(ends[0], TCP_REPAIR, TCP_REPAIR_ON) == 0);
    CHECK(recv(ends[0], &byte, 1, MSG_PEEK) < 0 && errno == EINVAL);
    CHECK(send(ends[0], "x", 1, 0) < 0 && errno == EINVAL);
    CHECK(get(ends[0], TCP_QUEUE_SEQ) == -1 && errno == EINVAL);
    CHECK(set(ends[0], TCP_REPAIR_QUEUE, TCP_RECV_QUEUE) == 0);
    CHECK(recv(ends[0], &byte, 1, 0) < 0 && errno == EPERM);
    CHECK(recv(ends[0], &byte, 1, MSG_PEEK) == 1 && byte == 'x');
    CHECK(set(ends[0], TCP_REPAIR_QUEUE, TCP_SEND_QUEUE) == 0);
    CHECK(recv(ends[0], &byte, 1, MSG_PEEK) == 0);
    CHECK(set(ends[0], TCP_REPAIR, TCP_REPAIR_OFF) == 0);
    CHECK(recv(ends[0], &byte, 1, 0) == 1 && byte == 'x');
    close(ends[0]), close(ends[1]);
}

static void nothing_is_repaired_that_is_not_being_repaired(void) {
    int ends[2];
    struct tcp_repair_window window;
    struct tcp_repair_opt option = {OPTION_SACK, 0};
    socklen_t len = sizeof window;
    pair(ends);
    CHECK(get(ends[0], TCP_REPAIR) == 0);
    CHECK(set(ends[0], TCP_REPAIR_QUEUE, TCP_SEND_QUEUE) < 0 && errno == EPERM);
    CHECK(get(ends[0], TCP_REPAIR_QUEUE) == -1 && errno == EINVAL);
    CHECK(set(ends[0], TCP_QUEUE_SEQ, 1) < 0 && errno == EPERM);
    CHECK(set(ends[0], TCP_TIMESTAMP, 1) < 0 && errno == EPERM);
    CHECK(getsockopt(ends[0], IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, &len) < 0 && errno == EPERM);
    CHECK(setsockopt(ends[0], IPPROTO_TCP, TCP_REPAIR_OPTIONS, &option, sizeof option) < 0 &&
          errno == EINVAL);
    close(ends[0]), close(ends[1]);
}

static void what_cannot_be_is_refused(void) {
    int ends[2];
    struct tcp_repair_window window = {.snd_wnd = 2, .max_window = 1};
    struct tcp_repair_opt scale = {OPTION_WINDOW, 15}, sack = {OPTION_SACK, 1};
    socklen_t len = sizeof window;
    pair(ends);
    CHECK(set(ends[0], TCP_REPAIR, 2) < 0 && errno == EINVAL);
    CHECK(set(ends[0], TCP_REPAIR, TCP_REPAIR_ON) == 0);
    CHECK(set(ends[0], TCP_REPAIR_QUEUE, 3) < 0 && errno == EINVAL);
    CHECK(set(ends[0], TCP_REPAIR_QUEUE, TCP_SEND_QUEUE) == 0);
    CHECK(set(ends[0], TCP_QUEUE_SEQ, 1) < 0 && errno == EPERM);
    CHECK(setsockopt(ends[0], IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, 4) < 0 && errno == EINVAL);
    CHECK(setsockopt(ends[0], IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, len) < 0 && errno == EINVAL);
    CHECK(setsockopt(ends[0], IPPROTO_TCP, TCP_REPAIR_OPTIONS, &scale, sizeof scale) < 0 &&
          errno == EFBIG);
    CHECK(setsockopt(ends[0], IPPROTO_TCP, TCP_REPAIR_OPTIONS, &sack, sizeof sack) < 0 &&
          errno == EINVAL);
    CHECK(set(ends[0], TCP_REPAIR, TCP_REPAIR_OFF) == 0);
    talk(ends[0], ends[1], "unharmed");
    close(ends[0]), close(ends[1]);
}

static void a_name_that_another_has_is_not_taken(void) {
    int ends[2], fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in names[2];
    socklen_t len = sizeof names[0];
    pair(ends);
    CHECK(getsockname(ends[0], (void *)&names[0], &len) == 0);
    CHECK(getpeername(ends[0], (void *)&names[1], &len) == 0);
    CHECK(set(fd, TCP_REPAIR, TCP_REPAIR_ON) == 0);
    CHECK(bind(fd, (void *)&names[0], len) == 0);
    CHECK(connect(fd, (void *)&names[1], len) < 0 &&
          (errno == EADDRNOTAVAIL || errno == EADDRINUSE));
    close(fd);
    talk(ends[0], ends[1], "unharmed");
    close(ends[0]), close(ends[1]);
}

static void a_listener_and_a_user_repair_nothing(void) {
    struct sockaddr_in name;
    int fd = listener(&name), status;
    CHECK(set(fd, TCP_REPAIR, TCP_REPAIR_ON) < 0 && errno == EPERM);
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        if (setuid(USER) != 0) _exit(2);
        int own = socket(AF_INET, SOCK_STREAM, 0);
        _exit(set(own, TCP_REPAIR, TCP_REPAIR_ON) == 0 || errno != EPERM);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    TEST(a_connection_goes_on_in_another_socket_and_its_peer_sees_nothing);
    TEST(bytes_that_were_not_read_are_read_after_a_move);
    TEST(bytes_that_found_no_room_arrive_after_a_move);
    TEST(it_goes_on_in_the_same_socket_too);
    TEST(a_queue_is_looked_at_and_not_read);
    TEST(nothing_is_repaired_that_is_not_being_repaired);
    TEST(what_cannot_be_is_refused);
    TEST(a_name_that_another_has_is_not_taken);
    TEST(a_listener_and_a_user_repair_nothing);
    return check_status();
}
