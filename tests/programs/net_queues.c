// What waits at sockets over loopback, as /proc/net tells it, and how many connections a backlog
// lets wait: the same however many CPUs share the work.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

enum { SOCKETS = 16, BACKLOG = 4, FURTHER = 3, PATIENCE = 30 };

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = port};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return name;
}

static int bound(int type) {
    int fd = socket(AF_INET, type, 0);
    struct sockaddr_in name = loopback(0);
    return bind(fd, (void *)&name, sizeof name) ? -1 : fd;
}

static struct sockaddr_in name_of(int fd) {
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    getsockname(fd, (void *)&name, &len);
    return name;
}

// The queue for receiving of the socket with this port and no peer; -1 if it is not listed.
static long queued(const char *list, int port) {
    FILE *lines = fopen(list, "r");
    char line[512];
    long found = -1;
    while (lines && fgets(line, sizeof line, lines)) {
        unsigned own, peer, waiting;
        if (sscanf(line, " %*d: %*8x:%x %*8x:%x %*x %*x:%x", &own, &peer, &waiting) == 3 &&
            own == ntohs(port) && peer == 0) {
            found = waiting;
        }
    }
    if (lines) fclose(lines);
    return found;
}

static void a_datagram_that_waits_is_told_whatever_port_it_came_to(void) {
    int sender = bound(SOCK_DGRAM);
    for (int i = 0; i < SOCKETS; i++) {
        int fd = bound(SOCK_DGRAM);
        struct sockaddr_in name = name_of(fd);
        CHECK(queued("/proc/net/udp", name.sin_port) == 0);
        CHECK(sendto(sender, "12345", 5, 0, (void *)&name, sizeof name) == 5);
        CHECK(queued("/proc/net/udp", name.sin_port) >= 5);
        char bytes[8];
        CHECK(recv(fd, bytes, sizeof bytes, 0) == 5);
        CHECK(queued("/proc/net/udp", name.sin_port) == 0);
        close(fd);
    }
    close(sender);
}

// A socket that connects from one CPU or the other.
static int client(const struct sockaddr_in *to, int number, int flags) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(number % sysconf(_SC_NPROCESSORS_ONLN), &cpus);
    CHECK(sched_setaffinity(0, sizeof cpus, &cpus) == 0);
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    int failed = connect(fd, (void *)to, sizeof *to);
    CHECK(fd >= 0 && (failed == 0 || errno == EINPROGRESS));
    return fd;
}

static void no_more_connections_wait_than_the_backlog_says(void) {
    int listener = bound(SOCK_STREAM);
    CHECK(listen(listener, BACKLOG) == 0);
    struct sockaddr_in name = name_of(listener);
    int clients[BACKLOG + 1 + FURTHER];
    for (int i = 0; i < BACKLOG + 1; i++) {
        clients[i] = client(&name, i, 0);
    }
    CHECK(queued("/proc/net/tcp", name.sin_port) == BACKLOG + 1);
    for (int i = BACKLOG + 1; i < BACKLOG + 1 + FURTHER; i++) {
        clients[i] = client(&name, i, SOCK_NONBLOCK);
    }
    CHECK(queued("/proc/net/tcp", name.sin_port) == BACKLOG + 1);
    // Whoever found no place comes in as there is one.
    struct timeval patience = {.tv_sec = PATIENCE};
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (int i = 0; i < BACKLOG + 1 + FURTHER; i++) {
        int accepted = accept(listener, NULL, NULL);
        CHECK(accepted >= 0);
        close(accepted);
    }
    CHECK(queued("/proc/net/tcp", name.sin_port) == 0);
    for (int i = 0; i < BACKLOG + 1 + FURTHER; i++) close(clients[i]);
    close(listener);
}

int main(void) {
    TEST(a_datagram_that_waits_is_told_whatever_port_it_came_to);
    TEST(no_more_connections_wait_than_the_backlog_says);
    return check_status();
}
