// idle_clients ADDRESS PORT COUNT SOURCE...
//
// Opens COUNT connections from each SOURCE address and keeps them until its input ends. A
// process for each source, so that a limit of files for one process does not limit all; each
// says "ready" when its connections are open, or what failed.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_one(struct sockaddr_in to, struct sockaddr_in from) {
    int sock = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    // The port is chosen in connect(2), which knows what pairs are taken.
    return sock < 0 || setsockopt(sock, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) ||
           bind(sock, (struct sockaddr *)&from, sizeof from) || connect(sock, (struct sockaddr *)&to, sizeof to);
}

static void hold(struct sockaddr_in to, const char *source, int count) {
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(source)};
    for (int i = 0; i < count; i++)
        if (open_one(to, from)) {
            dprintf(1, "connection %d from %s: %s\n", i, source, strerror(errno));
            _exit(1);
        }
    dprintf(1, "ready\n");
    char ignored;
    while (read(0, &ignored, 1) > 0) continue;
    _exit(0);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    to.sin_addr.s_addr = inet_addr(argv[1]);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 4; i < argc; i++)
        if (fork() == 0) hold(to, argv[i], atoi(argv[3]));
    while (wait(0) > 0) continue;
    return 0;
}
