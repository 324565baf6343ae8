// sendfile to a connection: a file's pages on their way, whatever becomes of the file.
#define _GNU_SOURCE
#include "file_sending.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

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
