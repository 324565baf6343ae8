// What tests of files sent to a connection share: a connection, and a file that is known.
#ifndef FILE_SENDING_H
#define FILE_SENDING_H

#include "check.h"
#include <arpa/inet.h>
#include <fcntl.h>
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

#endif
