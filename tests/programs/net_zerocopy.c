// MSG_ZEROCOPY: whose memory is it, and when. Without arguments over loopback, where all is
// copied; with a port for a peer from outside, which reads what this file's `pattern` says.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (64 * 1024 + 1)
#define PIECES 16

static int listener(uint16_t port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&name, sizeof name) || listen(fd, 2)) return -1;
    return fd;
}

static void pair(int ends[2]) {
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    int server = listener(0);
    CHECK(server >= 0 && getsockname(server, (struct sockaddr *)&name, &len) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(ends[0], (struct sockaddr *)&name, len) == 0);
    ends[1] = accept(server, NULL, NULL);
    CHECK(ends[1] >= 0);
    close(server);
}

static int ask_for(int fd, int on) {
    return setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on);
}

// The next sends that are over, after a wait for them; 0 if the queue holds none.
static int over(int fd, int wait_ms, struct sock_extended_err *told) {
    struct pollfd asked = {.fd = fd};
    if (poll(&asked, 1, wait_ms) == 1 && !(asked.revents & POLLERR)) return 0;
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(fd, &message, MSG_ERRQUEUE) != 0) return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_level != SOL_IP || header->cmsg_type != IP_RECVERR) return 0;
    memcpy(told, CMSG_DATA(header), sizeof *told);
    return message.msg_flags & MSG_ERRQUEUE && told->ee_origin == SO_EE_ORIGIN_ZEROCOPY &&
           told->ee_errno == 0;
}

static void sends_to_ourselves_say_that_they_were_copied(void) {
    struct sock_extended_err told;
    int ends[2], on = 0;
    socklen_t len = sizeof on;
    char bytes[1000] = "some", got[1000];
    pair(ends);
    CHECK(ask_for(ends[0], 2) < 0 && errno == EINVAL && ask_for(ends[0], 1) == 0);
    CHECK(getsockopt(ends[0], SOL_SOCKET, SO_ZEROCOPY, &on, &len) == 0 && on == 1);
    CHECK(recvmsg(ends[0], &(struct msghdr){0}, MSG_ERRQUEUE) < 0 && errno == EAGAIN);
    uint32_t next = 0;
    for (int i = 0; i < 3; i++)
        CHECK(send(ends[0], bytes, sizeof bytes, MSG_ZEROCOPY) == sizeof bytes);
    for (int i = 0; i < 3; i++)
        CHECK(recv(ends[1], got, sizeof got, MSG_WAITALL) == sizeof got &&
              !memcmp(bytes, got, sizeof got));
    while (next < 3) {
        CHECK(over(ends[0], 5000, &told) && told.ee_code == SO_EE_CODE_ZEROCOPY_COPIED);
        CHECK(told.ee_info == next && told.ee_data >= next);
        next = told.ee_data + 1;
    }
    CHECK(next == 3 && !over(ends[0], 0, &told));
    close(ends[0]), close(ends[1]);
}

static void who_does_not_ask_hears_nothing(void) {
    struct sock_extended_err told;
    int ends[2];
    char byte = 1;
    pair(ends);
    CHECK(send(ends[0], &byte, 1, MSG_ZEROCOPY) == 1 && recv(ends[1], &byte, 1, 0) == 1);
    CHECK(ask_for(ends[0], 1) == 0 && send(ends[0], &byte, 1, 0) == 1);
    CHECK(recv(ends[1], &byte, 1, 0) == 1 && !over(ends[0], 0, &told));
    close(ends[0]), close(ends[1]);
}

static void a_send_that_fails_has_no_number(void) {
    struct sock_extended_err told;
    int ends[2];
    char byte = 1;
    pair(ends);
    CHECK(ask_for(ends[0], 1) == 0);
    CHECK(send(ends[0], (void *)8, 1, MSG_ZEROCOPY) < 0 && errno == EFAULT);
    CHECK(send(ends[0], &byte, 1, MSG_ZEROCOPY) == 1 && recv(ends[1], &byte, 1, 0) == 1);
    CHECK(over(ends[0], 5000, &told) && told.ee_info == 0 && told.ee_data == 0);
    close(ends[0]), close(ends[1]);
}

static void who_has_read_all_there_was_hears_that_a_send_is_over(void) {
    struct sock_extended_err told;
    int ends[2];
    char byte = 1;
    pair(ends);
    CHECK(send(ends[1], &byte, 1, 0) == 1 && recv(ends[0], &byte, 1, 0) == 1);
    CHECK(ask_for(ends[0], 1) == 0 && send(ends[0], &byte, 1, MSG_ZEROCOPY) == 1);
    CHECK(recv(ends[1], &byte, 1, 0) == 1 && over(ends[0], 5000, &told));
    close(ends[0]), close(ends[1]);
}

static char pattern(size_t at) { return (char)(at * 31 >> 3 ^ at / 4096); }

static char *piece(size_t number) {
    char *bytes = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < PIECE; i++) bytes[i] = pattern(number * PIECE + i);
    return bytes;
}

static void send_all(int fd, const char *bytes) {
    for (size_t sent = 0; sent < PIECE;) {
        ssize_t len = send(fd, bytes + sent, PIECE - sent, MSG_ZEROCOPY);
        EXPECT(len > 0, "a piece leaves");
        if (len < 0) break;
        sent += len;
    }
}

// Takes its memory away from pieces in flight, waits until all are over, sends one more, and ends.
static void serve(int fd) {
    EXPECT(ask_for(fd, 1) == 0, "sends may be without a copy");
    for (size_t i = 0; i < PIECES; i++) {
        char *bytes = piece(i);
        send_all(fd, bytes);
        munmap(bytes, PIECE);
    }
    uint32_t next = 0, copied = 0;
    struct sock_extended_err told;
    while (next < PIECES && over(fd, 20000, &told)) {
        EXPECT(told.ee_info == next, "sends are over in their order");
        copied += told.ee_code == SO_EE_CODE_ZEROCOPY_COPIED;
        next = told.ee_data + 1;
    }
    EXPECT(next >= PIECES && copied == 0, "all sends are over and none was copied");
    send_all(fd, piece(PIECES));
    exit(check_status());
}

// One connection is served by a child, whose memory is gone before the peer has read all; a
// second one says that it has.
static int serve_outside(uint16_t port) {
    int server = listener(port), status;
    printf("listening\n");
    fflush(stdout);
    int fd = accept(server, NULL, NULL);
    if (fork() == 0) serve(fd);
    close(fd);
    wait(&status);
    char *other = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(other, 0xee, 32 << 20);
    accept(server, NULL, NULL);
    return status != 0;
}

int main(int argc, char **argv) {
    if (argc > 1) return serve_outside(atoi(argv[1]));
    TEST(sends_to_ourselves_say_that_they_were_copied);
    TEST(who_does_not_ask_hears_nothing);
    TEST(a_send_that_fails_has_no_number);
    TEST(who_has_read_all_there_was_hears_that_a_send_is_over);
    return check_status();
}
