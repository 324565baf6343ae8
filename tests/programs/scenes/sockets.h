// Sockets of Unix, of the internet and of netlink.
#pragma once
#include "scene.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

static int unix_stream(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) return -1;
    int result = send(ends[0], buffer, 5000, 0) == 5000 ? 0 : -1;
    if (!result) result = recv(ends[1], buffer, 5000, 0) == 5000 ? 0 : -1;
    return close_both(ends, result);
}

static int unix_datagrams(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends) < 0) return -1;
    int result = 0;
    for (int count = 0; count < 5 && !result; count++)
        result = send(ends[0], buffer, 300, 0) == 300 ? 0 : -1;
    return close_both(ends, result);
}

static int descriptors_in_messages(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) return -1;
    char space[CMSG_SPACE(3 * sizeof(int))] = {0};
    struct iovec one = {buffer, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof space};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(3 * sizeof(int));
    memcpy(CMSG_DATA(control), (int[]){ends[0], ends[1], ends[0]}, 3 * sizeof(int));
    int result = sendmsg(ends[0], &message, 0) == 1 ? 0 : -1;
    if (!result && recvmsg(ends[1], &message, 0) != 1) result = -1;
    int why = errno, got[3];
    control = CMSG_FIRSTHDR(&message);
    if (!result && control && control->cmsg_len > CMSG_LEN(0)) {
        int count = (int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(got, CMSG_DATA(control), count * sizeof(int));
        for (int at = 0; at < count; at++) close(got[at]);
    }
    errno = why;
    return close_both(ends, result);
}

static int unix_listener(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0scene"};
    socklen_t len = sizeof(sa_family_t) + 6;
    int result = -1, server = -1, client = -1;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (listener < 0) return -1;
    if (bind(listener, (void *)&name, len) < 0 || listen(listener, 4) < 0) goto out;
    if ((client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0) goto out;
    if (connect(client, (void *)&name, len) < 0) goto out;
    if ((server = accept(listener, NULL, NULL)) < 0) goto out;
    result = 0;
out:
    give_up(server), give_up(client), give_up(listener);
    return result;
}

static int datagrams(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int result = bind(fd, (void *)&name, sizeof name);
    return give_up(fd), result;
}

// Put together of nothing, with bytes that nobody has sent; the peer is not there.
static int repaired_connection(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int on = 1, received = 1, quiet = -1, result = -1;
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(4007),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in remote = local;
    remote.sin_port = htons(4008);
    if (fd < 0) return -1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) < 0) goto out;
    if (bind(fd, (void *)&local, sizeof local) < 0) goto out;
    if (connect(fd, (void *)&remote, sizeof remote) < 0) goto out;
    if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &received, sizeof received) < 0) goto out;
    if (send(fd, buffer, 5000, 0) != 5000) goto out;
    if (recv(fd, buffer, 5000, MSG_PEEK) != 5000) goto out;
    if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &quiet, sizeof quiet) < 0) goto out;
    result = recv(fd, buffer, 5000, 0) == 5000 ? 0 : -1;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
out:
    give_up(fd);
    return result;
}

// In two pieces, for a port that nobody has: it comes back in the queue of errors.
static int gathered_datagram(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0) return -1;
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons(9),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char space[200];
    struct iovec one = {buffer, sizeof buffer};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int result = setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    if (!result) result = connect(fd, (void *)&name, sizeof name);
    if (!result) result = send(fd, buffer, 3000, MSG_MORE) == 3000 ? 0 : -1;
    if (!result) result = send(fd, buffer, 3000, 0) == 3000 ? 0 : -1;
    if (!result) result = recvmsg(fd, &message, MSG_ERRQUEUE) > 0 ? 0 : -1;
    return give_up(fd), result;
}

static int netlink(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW, 0);
    if (fd < 0) return -1;
    struct {
        unsigned len;
        unsigned short type, flags;
        unsigned serial, port;
        unsigned char family, pad[15];
    } ask = {32, 18, 0x301, 1, 0, 0, {0}};
    int result = send(fd, &ask, sizeof ask, 0) == sizeof ask ? 0 : -1;
    if (!result) result = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT) > 0 ? 0 : -1;
    return give_up(fd), result;
}
