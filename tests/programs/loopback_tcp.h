// Connections of TCP over loopback, and their options.
#ifndef LOOPBACK_TCP_H
#define LOOPBACK_TCP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

// An option, or its negative errno.
static int number_of(int fd, int level, int name) {
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, name, &value, &len) == 0 ? value : -errno;
}

static int set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : -errno;
}

static struct sockaddr_in name_of(int fd) {
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    getsockname(fd, (void *)&name, &len);
    return name;
}

static int listener(int backlog) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(fd, (void *)&name, sizeof name) == 0 && listen(fd, backlog) == 0);
    return fd;
}

static int connected_to(int listening) {
    struct sockaddr_in name = name_of(listening);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(fd, (void *)&name, sizeof name) == 0);
    return fd;
}

static void pair(int *ends) {
    int listening = listener(1);
    ends[0] = connected_to(listening);
    ends[1] = accept(listening, 0, 0);
    CHECK(ends[1] >= 0);
    close(listening);
}

static int is_ready(int fd, short events, int wait) {
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, wait) == 1 && one.revents & events;
}

#endif
