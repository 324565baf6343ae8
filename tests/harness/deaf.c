// Makes the kernel keep packets for as long as it lives, in the way that its argument names:
//   unread PORT  accepts connections and never reads
//   datagrams    a user fills its own datagram sockets over loopback, which nobody reads
// Says "ready" when there is nothing more to be had or to be done.
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKETS 400
#define DATAGRAM_BYTES 1400
#define ROUNDS 100
#define USER 1000

static struct sockaddr_in own(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void say_ready(void) {
    if (write(1, "ready\n", 6) != 6) exit(1);
}

static void leave_unread(int port) {
    struct rlimit many = {.rlim_cur = 4096, .rlim_max = 4096};
    if (setrlimit(RLIMIT_NOFILE, &many) < 0) fail("setrlimit");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = own(port);
    at.sin_addr.s_addr = htonl(INADDR_ANY);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) < 0) fail("bind");
    if (listen(listener, 1024) < 0) fail("listen");
    say_ready();
    for (;;) accept(listener, NULL, NULL);
}

static void fill_datagrams(void) {
    static char bytes[DATAGRAM_BYTES];
    static int sockets[SOCKETS];
    static struct sockaddr_in names[SOCKETS];
    if (setgid(USER) < 0 || setuid(USER) < 0) fail("setuid");
    for (int i = 0; i < SOCKETS; i++) {
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        names[i] = own(0);
        socklen_t length = sizeof names[i];
        if (bind(sockets[i], (struct sockaddr *)&names[i], length) < 0) fail("bind");
        if (getsockname(sockets[i], (struct sockaddr *)&names[i], &length) < 0) fail("name");
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < SOCKETS; i++)
            sendto(sockets[i], bytes, sizeof bytes, MSG_DONTWAIT,
                   (struct sockaddr *)&names[(i + round) % SOCKETS], sizeof names[i]);
    say_ready();
    pause();
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "unread") == 0) leave_unread(atoi(argv[2]));
    if (argc > 1 && strcmp(argv[1], "datagrams") == 0) fill_datagrams();
    fprintf(stderr, "usage: deaf unread PORT | datagrams\n");
    return 2;
}
