// Interfaces to which sockets are bound (SO_BINDTODEVICE), ports that users share (SO_REUSEPORT),
// and requests about interfaces and queues.
#include "check.h"
#include "family.h"
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

static char room[100];

static int open_socket(int kind) { return socket(v6 ? AF_INET6 : AF_INET, kind, 0); }

static int set(int fd, int option, int value) { return setsockopt(fd, SOL_SOCKET, option, &value, sizeof value); }

static int bound(int fd, union name *name) {
    socklen_t len = sizeof *name;
    return bind(fd, &name->any, name_len()) || getsockname(fd, &name->any, &len) ? -1 : 0;
}

static int to_device(int fd, const char *name) { return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)); }

static int refuses(int result, int error) { return result < 0 && errno == error; }

// The first interface that is not loopback, which every machine of these tests has; or none.
static const char *card(void) {
    static char name[IF_NAMESIZE];
    struct if_nameindex *all = if_nameindex();
    for (struct if_nameindex *one = all; one && one->if_index && !*name; one++)
        if (strcmp(one->if_name, "lo")) strcpy(name, one->if_name);
    if_freenameindex(all);
    return *name ? name : NULL;
}

static void names(void) {
    char name[IFNAMSIZ] = "?";
    socklen_t len = sizeof name;
    int fd = open_socket(SOCK_DGRAM), number = -1;
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len) && len == 0, "a socket is bound to no interface");
    EXPECT(!to_device(fd, "lo"), "it can be bound to one");
    len = sizeof name;
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len) && len == 3 && !strcmp(name, "lo"), "and tells its name");
    len = sizeof number;
    EXPECT(!getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &number, &len) && number == (int)if_nametoindex("lo"), "and its number");
    len = 8;
    EXPECT(refuses(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len), EINVAL), "in a room for any name");
    EXPECT(refuses(to_device(fd, "nosuch"), ENODEV) && refuses(to_device(fd, "lonely"), ENODEV), "an interface that is not there is refused");
    EXPECT(!to_device(fd, "") && !getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &number, &len) && number == 0, "no name takes it away");
    EXPECT(refuses(set(fd, SO_BINDTOIFINDEX, -1), EINVAL) && !set(fd, SO_BINDTOIFINDEX, if_nametoindex("lo")) && !set(fd, SO_BINDTOIFINDEX, 0), "a number does too");
    close(fd);
}

static void packets(const char *card) {
    union name name = loopback(), any = {0};
    int a = open_socket(SOCK_DGRAM), b = open_socket(SOCK_DGRAM), c = open_socket(SOCK_DGRAM);
    to_device(b, "lo");
    bound(b, &name);
    EXPECT(sendto(a, "x", 1, 0, &name.any, name_len()) == 1 && recv(b, room, 10, MSG_DONTWAIT) == 1, "a socket of loopback hears what we send ourselves");
    // Both have the port, by different interfaces.
    any = name;
    if (v6) any.six.sin6_addr = in6addr_any;
    else any.four.sin_addr.s_addr = 0;
    to_device(c, card);
    EXPECT(!bind(c, &any.any, name_len()), "a socket of a card can have the same port");
    EXPECT(sendto(a, "y", 1, 0, &name.any, name_len()) == 1 && recv(b, room, 10, MSG_DONTWAIT) == 1 && recv(c, room, 10, MSG_DONTWAIT) < 0, "and does not hear it");
    close(b);
    sendto(a, "z", 1, 0, &name.any, name_len());
    EXPECT(recv(c, room, 10, MSG_DONTWAIT) < 0, "not even alone");
    EXPECT(!to_device(c, "") && sendto(a, "z", 1, 0, &name.any, name_len()) == 1 && recv(c, room, 10, MSG_DONTWAIT) == 1, "unless it is bound no more");
    b = open_socket(SOCK_DGRAM);
    to_device(b, "lo");
    EXPECT(refuses(bind(b, &any.any, name_len()), EADDRINUSE), "one without an interface has the port on all");
    close(a), close(b), close(c);
    if (v6) return;
    struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = inet_addr("192.0.2.1")};
    a = open_socket(SOCK_DGRAM), b = open_socket(SOCK_STREAM);
    to_device(a, "lo"), to_device(b, "lo");
    // Linux takes any address for one of the interface's network, and then has no way back from it.
    EXPECT(sendto(a, "x", 1, 0, (struct sockaddr *)&far, sizeof far) != 0, "nobody else is reached by loopback");
    close(a), close(b);
}

static int is_ready(int fd, int millis) {
    struct pollfd one = {fd, POLLIN, 0};
    return poll(&one, 1, millis) == 1;
}

static void streams(const char *card) {
    union name name = loopback(), any;
    int wide = open_socket(SOCK_STREAM), own = open_socket(SOCK_STREAM), a = open_socket(SOCK_STREAM);
    to_device(own, "lo");
    bound(own, &name), listen(own, 5);
    any = name;
    if (v6) any.six.sin6_addr = in6addr_any;
    else any.four.sin_addr.s_addr = 0;
    to_device(wide, card);
    EXPECT(!bind(wide, &any.any, name_len()) && !listen(wide, 5), "listeners of two interfaces share a port");
    EXPECT(!connect(a, &name.any, name_len()) && is_ready(own, 10000) && !is_ready(wide, 0), "a connection goes to that of its interface");
    close(own), close(a);
    a = open_socket(SOCK_STREAM);
    EXPECT(refuses(connect(a, &name.any, name_len()), ECONNREFUSED), "and to nobody without");
    close(a), close(wide);
}

// What has one of the card's addresses is reached by the card, though it does not leave us.
static void own_address(const char *card) {
    struct ifreq told = {0};
    int ask = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(told.ifr_name, card);
    if (v6 || ioctl(ask, SIOCGIFADDR, &told)) {
        close(ask);
        return;
    }
    close(ask);
    union name own = {.any = told.ifr_addr}, from;
    socklen_t len = sizeof from;
    own.four.sin_port = 0;
    int b = open_socket(SOCK_DGRAM), a = open_socket(SOCK_DGRAM), local = open_socket(SOCK_DGRAM);
    to_device(a, card), to_device(b, card), to_device(local, "lo");
    bound(b, &own);
    EXPECT(sendto(a, "x", 1, 0, &own.any, name_len()) == 1 && recvfrom(b, room, 10, MSG_DONTWAIT, &from.any, &len) == 1, "a socket of the card reaches its own address");
    EXPECT(sendto(b, "y", 1, 0, &from.any, name_len()) == 1 && recv(a, room, 10, MSG_DONTWAIT) == 1, "and hears the answer");
    EXPECT(!connect(a, &own.any, name_len()) && send(a, "z", 1, 0) == 1 && recv(b, room, 10, MSG_DONTWAIT) == 1, "connected or not");
    close(b);
    bound(local, &own);
    EXPECT(sendto(a, "w", 1, 0, &own.any, name_len()) == 1 && recv(local, room, 10, MSG_DONTWAIT) < 0, "one of loopback is not reached so");
    close(a), close(local);
    int listener = open_socket(SOCK_STREAM);
    a = open_socket(SOCK_STREAM);
    to_device(a, card), to_device(listener, card);
    own.four.sin_port = 0;
    bound(listener, &own), listen(listener, 5);
    EXPECT(!connect(a, &own.any, name_len()) && is_ready(listener, 10000), "nor is a stream's listener beyond reach");
    close(a), close(listener);
}

static void raw(const char *card) {
    union name to = loopback();
    int a = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, 253), b = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, 253), c = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, 253);
    EXPECT(!to_device(b, "lo") && !to_device(c, card) && sendto(a, "raw", 3, 0, &to.any, name_len()) == 3 && recv(b, room, sizeof room, MSG_DONTWAIT) > 0 &&
               recv(c, room, sizeof room, MSG_DONTWAIT) < 0,
           "raw sockets hear their interface alone");
    close(a), close(b), close(c);
}

// Whether `test` holds for another user than root.
static int as_user(int (*test)(const union name *), const union name *name) {
    int status = -1;
    pid_t child = fork();
    if (!child) _exit(setgid(1000) || setuid(1000) || !test(name));
    waitpid(child, &status, 0);
    return status == 0;
}

static int cannot_share(const union name *name) {
    int fd = open_socket(SOCK_DGRAM);
    set(fd, SO_REUSEPORT, 1);
    return refuses(bind(fd, &name->any, name_len()), EADDRINUSE);
}

static int can_reuse(const union name *name) {
    int fd = open_socket(SOCK_DGRAM);
    set(fd, SO_REUSEADDR, 1);
    return !bind(fd, &name->any, name_len());
}

static int binds_once(const union name *name) {
    int fd = open_socket(SOCK_DGRAM);
    return !to_device(fd, "lo") && refuses(to_device(fd, ""), EPERM) && refuses(to_device(fd, "lo"), EPERM) && name;
}

static void users(void) {
    union name name = loopback();
    int a = open_socket(SOCK_DGRAM), b = open_socket(SOCK_DGRAM);
    set(a, SO_REUSEPORT, 1), set(b, SO_REUSEPORT, 1);
    bound(a, &name);
    EXPECT(!bind(b, &name.any, name_len()), "sockets of one user share a port");
    EXPECT(as_user(cannot_share, &name), "those of another do not get a share");
    set(a, SO_REUSEADDR, 1), set(b, SO_REUSEADDR, 1);
    EXPECT(as_user(can_reuse, &name), "unless all reuse the address");
    EXPECT(as_user(binds_once, &name), "only who may send anything binds a bound socket");
    close(a), close(b);
}

// A share of the arrivals comes to each, and one peer's always to the same.
static void shares(void) {
    enum { SHARERS = 4, PEERS = 200 };
    union name name = loopback();
    int fds[SHARERS], seen[SHARERS] = {0}, is_steady = 1;
    for (int i = 0; i < SHARERS; i++) fds[i] = open_socket(SOCK_DGRAM), set(fds[i], SO_REUSEPORT, 1), bound(fds[i], &name);
    for (int i = 0; i < PEERS; i++) {
        int peer = open_socket(SOCK_DGRAM), first = -1;
        connect(peer, &name.any, name_len());
        for (int n = 0; n < 3; n++) {
            send(peer, "x", 1, 0);
            for (int at = 0; at < SHARERS; at++)
                if (recv(fds[at], room, 1, MSG_DONTWAIT) == 1) {
                    if (first < 0) first = at, seen[at]++;
                    is_steady &= first == at;
                }
        }
        close(peer);
    }
    int least = PEERS, all = 0;
    for (int i = 0; i < SHARERS; i++) all += seen[i], least = seen[i] < least ? seen[i] : least;
    EXPECT(all == PEERS && is_steady, "each peer has its socket of a group");
    EXPECT(least >= PEERS / SHARERS / 4, "and each socket its share of peers");
    close(fds[0]);
    int got = 0;
    for (int i = 0; i < 50; i++) {
        int peer = open_socket(SOCK_DGRAM);
        sendto(peer, "x", 1, 0, &name.any, name_len());
        for (int at = 1; at < SHARERS; at++) got += recv(fds[at], room, 1, MSG_DONTWAIT) == 1;
        close(peer);
    }
    EXPECT(got == 50, "who leaves is not sent any more");
    for (int i = 1; i < SHARERS; i++) close(fds[i]);
}

static int asks(int fd, unsigned long request, const char *name, struct ifreq *told) {
    memset(told, 0, sizeof *told);
    strcpy(told->ifr_name, name);
    return ioctl(fd, request, told);
}

static void requests(void) {
    struct ifreq told;
    int four = socket(AF_INET, SOCK_DGRAM, 0), six = socket(AF_INET6, SOCK_DGRAM, 0), local = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr_in *address = (struct sockaddr_in *)&told.ifr_addr;
    EXPECT(!asks(four, SIOCGIFBRDADDR, "lo", &told) && address->sin_family == AF_INET && !address->sin_addr.s_addr, "loopback has no broadcast");
    EXPECT(refuses(asks(six, SIOCGIFADDR, "lo", &told), ENOTTY) && refuses(asks(local, SIOCGIFNETMASK, "lo", &told), ENOTTY),
           "only IPv4's sockets are told addresses");
    EXPECT(!asks(six, SIOCGIFFLAGS, "lo", &told) && told.ifr_flags & IFF_LOOPBACK && !asks(local, SIOCGIFMTU, "lo", &told) && told.ifr_mtu == 65536,
           "all are told the rest");
    EXPECT(!asks(four, SIOCGIFINDEX, "lo:1", &told) && refuses(asks(four, SIOCGIFADDR, "lo:1", &told), EADDRNOTAVAIL), "a label names an address, which is not there");
    EXPECT(refuses(asks(four, SIOCGIFINDEX, "nosuch:1", &told), ENODEV) && refuses(asks(four, SIOCGIFADDR, "nosuch", &told), ENODEV), "nor is another interface");
    close(four), close(six), close(local);
}

static void queues(void) {
    v6 = 0;
    union name name = loopback();
    int s = open_socket(SOCK_STREAM), a = open_socket(SOCK_STREAM), count = -1;
    bound(s, &name), listen(s, 5);
    EXPECT(refuses(ioctl(s, SIOCOUTQNSD, &count), EINVAL), "a listener queues nothing");
    connect(a, &name.any, name_len());
    EXPECT(!ioctl(a, SIOCATMARK, &count) && count == 0, "no byte is urgent");
    EXPECT(!ioctl(a, SIOCOUTQNSD, &count) && count == 0, "nothing waits to be sent");
    static char much[1 << 20];
    while (send(a, much, sizeof much, MSG_DONTWAIT) > 0) continue;
    int sent = -1;
    EXPECT(!ioctl(a, SIOCOUTQNSD, &count) && !ioctl(a, SIOCOUTQ, &sent) && count > 0 && count <= sent, "until the peer takes no more");
    close(a), close(s);
    int d = open_socket(SOCK_DGRAM);
    EXPECT(refuses(ioctl(d, SIOCATMARK, &count), ENOTTY) && refuses(ioctl(d, SIOCOUTQNSD, &count), ENOTTY), "datagrams have no such thing");
    close(d);
}

int main(void) {
    const char *other = card();
    for (v6 = 0; v6 < 2; v6++) {
        names();
        users();
        shares();
        if (!other) continue;
        packets(other);
        streams(other);
        own_address(other);
        raw(other);
    }
    requests();
    queues();
    return check_status();
}
