// Keeps each connection at port 9 open, and watches it by an epoll as a server would. To each
// at port 10 it says how many there are and what /proc/meminfo says, and closes it.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FILES = 200000, BACKLOG = 4096 };

static int listen_at(int port) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, BACKLOG)) return -1;
    return listener;
}

static void report(int client, long count) {
    char text[4096];
    int file = open("/proc/meminfo", O_RDONLY);
    ssize_t len = read(file, text, sizeof text - 1);
    close(file);
    dprintf(client, "Connections: %ld\n%.*s", count, len > 0 ? (int)len : 0, text);
    close(client);
}

static int watch(int epoll, int client) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = client};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
}

int main(void) {
    struct rlimit files = {FILES, FILES};
    if (setrlimit(RLIMIT_NOFILE, &files)) return perror("RLIMIT_NOFILE"), 1;
    struct pollfd ports[] = {{.fd = listen_at(9), .events = POLLIN}, {.fd = listen_at(10), .events = POLLIN}};
    if (ports[0].fd < 0 || ports[1].fd < 0) return perror("listen"), 1;
    int epoll = epoll_create1(0), client;
    for (long count = 0; poll(ports, 2, -1) >= 0;) {
        while (ports[0].revents && (client = accept(ports[0].fd, 0, 0)) >= 0)
            if (watch(epoll, client)) return perror("epoll_ctl"), 1;
            else count++;
        client = ports[1].revents ? accept(ports[1].fd, 0, 0) : -1;
        if (client >= 0) report(client, count);
    }
    return perror("poll"), 1;
}
