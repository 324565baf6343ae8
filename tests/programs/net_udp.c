// UDP sockets over loopback.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int bound_socket(struct sockaddr_in *name) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t len = sizeof *name;
    *name = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)name, sizeof *name)) return -1;
    getsockname(fd, (struct sockaddr *)name, &len);
    return fd;
}

int main(void) {
    struct sockaddr_in a_name, b_name, from;
    socklen_t len = sizeof from;
    int a = bound_socket(&a_name), b = bound_socket(&b_name), count;
    char buffer[70000] = {0};
    EXPECT(a >= 0 && b >= 0 && a_name.sin_port != b_name.sin_port, "two sockets bind");
    EXPECT(sendto(a, "ping", 4, 0, (struct sockaddr *)&b_name, sizeof b_name) == 4, "one sends");
    EXPECT(recvfrom(b, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &len) == 4 &&
              from.sin_port == a_name.sin_port && !memcmp(buffer, "ping", 4),
          "the other receives, and knows from whom");
    EXPECT(sendto(a, "", 0, 0, (struct sockaddr *)&b_name, sizeof b_name) == 0 &&
              recv(b, buffer, sizeof buffer, 0) == 0, "a datagram may be empty");
    sendto(a, "123456", 6, 0, (struct sockaddr *)&b_name, sizeof b_name);
    EXPECT(recv(b, buffer, 3, MSG_TRUNC) == 6, "MSG_TRUNC tells the true length");
    EXPECT(recv(b, buffer, 3, MSG_DONTWAIT) < 0 && errno == EAGAIN, "and the rest is gone");
    EXPECT(!connect(a, (struct sockaddr *)&b_name, sizeof b_name) && send(a, "x", 1, 0) == 1 &&
              recv(b, buffer, 1, 0) == 1, "a connected socket sends without an address");
    EXPECT(sendto(b, "y", 1, 0, (struct sockaddr *)&a_name, sizeof a_name) == 1 &&
              poll(&(struct pollfd){a, POLLIN, 0}, 1, 1000) == 1 &&
              !ioctl(a, FIONREAD, &count) && count == 1, "FIONREAD tells the next length");
    int stranger = bound_socket(&from);
    sendto(stranger, "s", 1, 0, (struct sockaddr *)&a_name, sizeof a_name);
    EXPECT(recv(a, buffer, sizeof buffer, 0) == 1 && buffer[0] == 'y' &&
              recv(a, buffer, 1, MSG_DONTWAIT) < 0, "a connected socket hears its peer only");
    struct mmsghdr many[3] = {0};
    struct iovec parts[3] = {{"1", 1}, {"22", 2}, {"333", 3}};
    for (int i = 0; i < 3; i++) many[i].msg_hdr.msg_iov = &parts[i], many[i].msg_hdr.msg_iovlen = 1;
    EXPECT(sendmmsg(a, many, 3, 0) == 3, "sendmmsg sends three");
    char room[3][8];
    for (int i = 0; i < 3; i++) parts[i] = (struct iovec){room[i], 8};
    EXPECT(recvmmsg(b, many, 3, 0, NULL) == 3 && many[2].msg_len == 3, "recvmmsg takes three");
    close(b);
    send(a, "z", 1, 0);
    EXPECT(poll(&(struct pollfd){a, POLLIN, 0}, 1, 1000) == 1 && recv(a, buffer, 1, 0) < 0 &&
              errno == ECONNREFUSED, "a closed port comes back as ECONNREFUSED");
    close(a), close(stranger);
    return check_status();
}
