// Sockets of either family with names, and their options. After check.h and family.h.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

// A socket with a name on loopback.
static int named(int kind, union name *name) {
    socklen_t len = sizeof *name;
    int fd = socket(v6 ? AF_INET6 : AF_INET, kind, 0);
    memset(name, 0, sizeof *name);
    if (v6) name->six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    else name->four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return bind(fd, &name->any, name_len()) || getsockname(fd, &name->any, &len) ? -1 : fd;
}

static int set(int fd, int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof value); }

static int get(int fd, int level, int option) {
    int value = -1000;
    socklen_t len = sizeof value;
    return getsockopt(fd, level, option, &value, &len) ? -errno : value;
}

static int refuses(int result, int error) { return result < 0 && errno == error; }
