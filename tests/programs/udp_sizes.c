// The largest datagrams of both families, and what is larger.
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char bytes[65536], room[65536];

union name {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static int pair(int family, int fds[2]) {
    union name name = {0};
    socklen_t len = sizeof name;
    if (family == AF_INET6) name.six = (struct sockaddr_in6){.sin6_family = family, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    else name.four = (struct sockaddr_in){.sin_family = family, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < 2; i++) fds[i] = socket(family, SOCK_DGRAM, 0);
    socklen_t own = family == AF_INET6 ? sizeof name.six : sizeof name.four;
    if (bind(fds[1], &name.any, own) || getsockname(fds[1], &name.any, &len) || connect(fds[0], &name.any, own)) return -1;
    len = sizeof name;
    return getsockname(fds[0], &name.any, &len) || connect(fds[1], &name.any, own);
}

static int passes(int from, int to, size_t len) {
    struct pollfd ready = {to, POLLIN, 0};
    memset(room, 0, sizeof room);
    return send(from, bytes, len, 0) == (ssize_t)len && poll(&ready, 1, 5000) == 1 &&
           recv(to, room, sizeof room, MSG_DONTWAIT) == (ssize_t)len && !memcmp(room, bytes, len);
}

static void sizes(int family) {
    int fds[2];
    EXPECT(!pair(family, fds), "two sockets");
    size_t most = family == AF_INET6 ? 65527 : 65507;
    int all = 1, refused = 1;
    for (size_t len = most - 60; len <= most; len++) all &= passes(fds[0], fds[1], len);
    EXPECT(all, "all of the largest sizes pass");
    EXPECT(passes(fds[1], fds[0], most) && passes(fds[1], fds[0], most - 1), "the other way too");
    for (size_t len = most + 1; len <= sizeof bytes; len++) refused &= send(fds[0], bytes, len, 0) < 0 && errno == EMSGSIZE;
    EXPECT(refused && recv(fds[1], room, 1, MSG_DONTWAIT) < 0, "what is larger is refused");
    int many = 0;
    for (int i = 0; i < 300; i++) many += passes(fds[i % 2], fds[!(i % 2)], most);
    EXPECT(many == 300, "many pass one after the other");
    EXPECT(recv(fds[1], room, 1, MSG_DONTWAIT) < 0 && passes(fds[0], fds[1], 1) && passes(fds[0], fds[1], 0), "small ones still do");
    struct iovec parts[8];
    for (int i = 0; i < 8; i++) parts[i] = (struct iovec){bytes + i * 8000, i < 7 ? 8000 : most - 56000};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 8};
    EXPECT(sendmsg(fds[0], &message, 0) == (ssize_t)most && recv(fds[1], room, sizeof room, 0) == (ssize_t)most && !memcmp(room, bytes, most),
           "of many parts too");
    EXPECT(send(fds[0], bytes, most, 0) == (ssize_t)most && recv(fds[1], room, 100, MSG_TRUNC) == (ssize_t)most, "and can be cut");
    close(fds[0]), close(fds[1]);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 + i / 256;
    sizes(AF_INET);
    sizes(AF_INET6);
    return check_status();
}
