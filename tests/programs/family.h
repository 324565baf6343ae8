// Sockets' names of the family that a test is at: IPv6 while `v6` says so, else IPv4.
#ifndef FAMILY_H
#define FAMILY_H

#include <netinet/in.h>
#include <sys/socket.h>

union name {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static int v6;

static inline socklen_t name_len(void) { return v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in); }

static inline union name loopback(void) {
    union name name = {0};
    if (v6) name.six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    else name.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return name;
}

#endif
