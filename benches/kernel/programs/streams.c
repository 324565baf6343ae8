// Bytes from a program to itself over TCP: one there and back, and 64 KiB, which the program
// writes or a file holds, which goes straight or through a pipe. The rows of 64 KiB are both ends'
// work: the copy in (but of a file), the stack, the copy out.
//
// Transfers of 64 KiB differ by turns: one in two ends with an acknowledgement of its own. A
// sample is therefore several of them, or the median would be one kind or the other by chance.
#include "measure.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 301, BULK_ROUNDS = 101, PASSES = 8, BULK = 64 << 10, BUFFER = 1 << 20, WARM_ROUNDS = 20 };

static uint64_t samples[ROUNDS];
static char bytes[BULK];

// A guest's first program finds loopback down on Linux; where it is up, this changes nothing.
static void raise_loopback(int fd) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    ioctl(fd, SIOCSIFFLAGS, &request);
}

static void prepare(int fd) {
    int on = 1, buffer = BUFFER;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
}

static void pair(int ends[2]) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *to = (struct sockaddr *)&name;
    socklen_t len = sizeof name;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    raise_loopback(server);
    need(bind(server, to, len) == 0 && listen(server, 1) == 0, "listen");
    need(getsockname(server, to, &len) == 0, "getsockname");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    need(connect(ends[0], to, len) == 0, "connect");
    ends[1] = accept(server, 0, 0);
    need(ends[1] >= 0, "accept");
    prepare(ends[0]);
    prepare(ends[1]);
    close(server);
}

static void pass_byte(int from, int to) {
    char byte = 0;
    need(send(from, &byte, 1, 0) == 1 && recv(to, &byte, 1, 0) == 1, "one byte");
}

static int file, through[2];

// Each sends bytes to `to` from byte `at` of the bulk on, and returns how many.
typedef ssize_t (*sender)(int to, off_t at);

static ssize_t by_send(int to, off_t at) { return send(to, bytes + at, BULK - at, MSG_DONTWAIT); }

static ssize_t by_sendfile(int to, off_t at) { return sendfile(to, file, &at, BULK - at); }

static ssize_t by_splice(int to, off_t at) {
    ssize_t len = splice(file, &at, through[1], NULL, BULK - at, 0);
    need(len > 0 && splice(through[0], NULL, to, NULL, len, 0) == len, "splice");
    return len;
}

static void pass_bulk(int from, int to, sender give) {
    size_t sent = 0, got = 0;
    while (got < BULK) {
        if (sent < BULK) {
            ssize_t len = give(from, sent);
            need(len > 0, "send");
            sent += len;
        }
        ssize_t len = recv(to, bytes, BULK, 0);
        need(len > 0, "recv");
        got += len;
    }
}

static void measure_bulk(const int ends[2], sender give, const char *name) {
    for (int i = -WARM_ROUNDS; i < BULK_ROUNDS; i++) {
        uint64_t start = instructions();
        for (int pass = 0; pass < PASSES; pass++) pass_bulk(ends[0], ends[1], give);
        if (i >= 0) samples[i] = since(start);
    }
    row(name, samples, BULK_ROUNDS, PASSES);
}

void measure_streams(void) {
    int ends[2];
    file = memfd_create("bulk", 0);
    need(pipe(through) == 0, "a pipe");
    need(file >= 0 && write(file, bytes, BULK) == BULK, "a file");
    pair(ends);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = instructions();
        pass_byte(ends[0], ends[1]);
        pass_byte(ends[1], ends[0]);
        samples[i] = since(start);
    }
    row("one byte to itself over TCP and back", samples, ROUNDS, 1);
    measure_bulk(ends, by_send, "64 KiB to itself over TCP by send");
    measure_bulk(ends, by_sendfile, "64 KiB to itself over TCP by sendfile");
    measure_bulk(ends, by_splice, "64 KiB to itself over TCP by splice");
    close(ends[0]);
    close(ends[1]);
    close(through[0]);
    close(through[1]);
    close(file);
}
