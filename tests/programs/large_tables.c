// Kernel tables that are longer than the longest row of frames.
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

// Both ends are here, so the stack has twice as many. Linux has room for 28232 client ports for
// each address of a server.
enum { CONNECTIONS = 40000, SERVERS = 2 };

static int listener(int server) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (unsigned)server);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 128)) return -1;
    return fd;
}

static int connection_to(int server) {
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || getsockname(server, (struct sockaddr *)&at, &length)) return -1;
    return connect(fd, (struct sockaddr *)&at, length) ? -1 : fd;
}

static void eighty_thousand_ends_of_connections_fit(void) {
    struct rlimit limit = {2 * CONNECTIONS + 64, 2 * CONNECTIONS + 64};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int *ends = calloc(2 * CONNECTIONS, sizeof *ends), servers[SERVERS];
    for (int i = 0; i < SERVERS; i++) CHECK((servers[i] = listener(i)) >= 0);
    for (int i = 0; i < CONNECTIONS; i++) {
        CHECK((ends[2 * i] = connection_to(servers[i % SERVERS])) >= 0);
        CHECK((ends[2 * i + 1] = accept(servers[i % SERVERS], NULL, NULL)) >= 0);
    }
    for (int i = 0; i < CONNECTIONS; i += 1000) {
        char byte = (char)i;
        CHECK(write(ends[2 * i], &byte, 1) == 1);
        CHECK(read(ends[2 * i + 1], &byte, 1) == 1 && byte == (char)i);
    }
    for (int i = 0; i < 2 * CONNECTIONS; i++) close(ends[i]);
    for (int i = 0; i < SERVERS; i++) close(servers[i]);
    free(ends);
}

static void a_folder_holds_a_hundred_thousand_names(void) {
    enum { NAMES = 100000 };
    char name[64];
    CHECK(mkdir("/tmp/many", 0755) == 0);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "/tmp/many/%d", i);
        int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        CHECK(fd >= 0);
        close(fd);
    }
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "/tmp/many/%d", i);
        CHECK(unlink(name) == 0);
    }
    CHECK(rmdir("/tmp/many") == 0);
}

int main(void) {
    TEST(eighty_thousand_ends_of_connections_fit);
    TEST(a_folder_holds_a_hundred_thousand_names);
    return check_status();
}
