// sendfile to a connection: a file's pages on their way, whatever becomes of the file.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_BYTES (300 * 1000 + 123)

static char bytes[FILE_BYTES], got[FILE_BYTES];

// The ends of a connection over loopback, the first of which never waits.
static void pair(int ends[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server, (struct sockaddr *)&name, len) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&name, &len) == 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(ends[0], (struct sockaddr *)&name, len) == 0);
    ends[1] = accept(server, NULL, NULL);
    CHECK(ends[1] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    close(server);
}

// A file with a pattern in which no two pages are alike.
static int file(const char *name) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 31 >> 3 ^ i / 4096);
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, bytes, sizeof bytes) == sizeof bytes);
    return fd;
}

// Reads what is there, up to `most` bytes, behind the `have` that were read before.
static size_t take(int fd, size_t have, size_t most) {
    while (have < most) {
        ssize_t len = recv(fd, got + have, most - have, MSG_DONTWAIT);
        if (len <= 0) break;
        have += len;
    }
    return have;
}

static void a_file_reaches_the_peer_from_any_byte_on(void) {
    static const off_t starts[] = {0, 1, 4095, 4096, 100000, FILE_BYTES - 1};
    int fd = file("sent"), ends[2];
    pair(ends);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        off_t at = starts[i];
        size_t have = 0, whole = sizeof bytes - at;
        while (have < whole) {
            ssize_t sent = sendfile(ends[0], fd, &at, sizeof bytes);
            CHECK(sent >= 0 || errno == EAGAIN);
            have = take(ends[1], have, whole);
        }
        CHECK(at == sizeof bytes && !memcmp(got, bytes + starts[i], whole));
        CHECK(sendfile(ends[0], fd, &at, 10) == 0);
    }
    close(ends[0]), close(ends[1]), close(fd);
    CHECK(unlink("sent") == 0);
}

static void a_header_and_a_file_keep_their_order(void) {
    int fd = file("sent"), ends[2];
    pair(ends);
    off_t at = 10;
    CHECK(send(ends[0], "before", 6, MSG_MORE) == 6);
    CHECK(sendfile(ends[0], fd, &at, 5000) == 5000 && at == 5010);
    CHECK(send(ends[0], "after", 5, 0) == 5);
    size_t have = 0;
    while (have < 5011) have = take(ends[1], have, 5011);
    CHECK(!memcmp(got, "before", 6) && !memcmp(got + 6, bytes + 10, 5000));
    CHECK(!memcmp(got + 5006, "after", 5));
    close(ends[0]), close(ends[1]), close(fd);
    CHECK(unlink("sent") == 0);
}

static void bytes_in_flight_outlive_the_file_and_its_sender(void) {
    int fd = file("sent"), ends[2];
    pair(ends);
    off_t at = 0;
    ssize_t sent = sendfile(ends[0], fd, &at, sizeof bytes);
    CHECK(sent > 4096 && ftruncate(fd, 0) == 0 && close(fd) == 0 && unlink("sent") == 0);
    CHECK(close(ends[0]) == 0);
    // Who takes the memory of the file's pages now, fills it.
    size_t much = 8 << 20;
    char *other = mmap(NULL, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(other != MAP_FAILED);
    memset(other, 0xee, much);
    size_t have = 0, whole = sent & ~4095;
    while (have < whole) {
        size_t more = take(ends[1], have, whole);
        CHECK(more > have || errno == EAGAIN);
        have = more;
    }
    CHECK(!memcmp(got, bytes, whole));
    CHECK(munmap(other, much) == 0);
    close(ends[1]);
}

static void a_full_or_broken_connection_says_so(void) {
    int fd = file("sent"), ends[2];
    pair(ends);
    signal(SIGPIPE, SIG_IGN);
    off_t at = 0;
    ssize_t sent;
    while ((sent = sendfile(ends[0], fd, &at, sizeof bytes)) >= 0) at = 0;
    CHECK(errno == EAGAIN && at == 0);
    CHECK(shutdown(ends[0], SHUT_WR) == 0);
    CHECK(sendfile(ends[0], fd, &at, 10) < 0 && errno == EPIPE && at == 0);
    close(ends[0]), close(ends[1]), close(fd);
    CHECK(unlink("sent") == 0);
}

int main(void) {
    TEST(a_file_reaches_the_peer_from_any_byte_on);
    TEST(a_header_and_a_file_keep_their_order);
    TEST(bytes_in_flight_outlive_the_file_and_its_sender);
    TEST(a_full_or_broken_connection_says_so);
    return check_status();
}
