// Answers one HTTP request per connection at port 80 and closes: the least that a
// server can do, so that the kernel's work on connections shows.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] =
    "HTTP/1.0 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";

int main(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(80)};
    // ab may open a connection more than it needs and never ask by it: that must not stop the others.
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, patience_s = 30;
    setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &patience_s, sizeof patience_s);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 511)) return 1;
    for (;;) {
        int client = accept4(listener, 0, 0, SOCK_CLOEXEC);
        char request[2048];
        if (client < 0) continue;
        if (read(client, request, sizeof request) > 0) write(client, answer, strlen(answer));
        close(client);
    }
}
