// What stays within the machine is spread over CPUs by ports: order, errors and names are as if it
// were not.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SENDERS = 8, ROUNDS = 64, CONNECTIONS = 40 };

static void run_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static struct sockaddr_in bound(int fd) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    bind(fd, (void *)&name, len);
    getsockname(fd, (void *)&name, &len);
    return name;
}

static void of_datagrams(int cpus) {
    int receiver = socket(AF_INET, SOCK_DGRAM, 0), senders[SENDERS];
    struct sockaddr_in name = bound(receiver);
    for (int i = 0; i < SENDERS; i++) senders[i] = socket(AF_INET, SOCK_DGRAM, 0);
    int is_in_order = 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SENDERS; i++) {
            run_on(i % cpus);
            sendto(senders[i], &i, sizeof i, 0, (void *)&name, sizeof name);
        }
        run_on(round % cpus);
        for (int i = 0, got = -1; i < SENDERS; i++) {
            recv(receiver, &got, sizeof got, MSG_DONTWAIT);
            is_in_order &= got == i;
        }
    }
    EXPECT(is_in_order, "a socket hears many senders on many CPUs in order");
    struct pollfd none = {.fd = receiver, .events = POLLIN};
    EXPECT(poll(&none, 1, 0) == 0, "and nothing twice");
    for (int i = 0; i < SENDERS; i++) connect(senders[i], (void *)&name, sizeof name);
    close(receiver);
    int told = 0;
    for (int i = 0; i < SENDERS; i++) {
        run_on(i % cpus);
        send(senders[i], "x", 1, 0);
        run_on((i + 1) % cpus);
        told += recv(senders[i], &name, sizeof name, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED;
        close(senders[i]);
    }
    EXPECT(told == SENDERS, "each sender hears that the receiver is gone");
}

static void of_streams(int cpus) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), clients[CONNECTIONS];
    struct sockaddr_in name = bound(listener);
    listen(listener, CONNECTIONS);
    int connected = 0, met = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        run_on(i % cpus);
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        connected += connect(clients[i], (void *)&name, sizeof name) == 0;
    }
    EXPECT(connected == CONNECTIONS, "connections from all CPUs reach one listener");
    run_on(0);
    char seen[65536] = {0};
    for (int i = 0; i < CONNECTIONS; i++) {
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        int fd = accept(listener, (void *)&peer, &len);
        met += fd >= 0 && !seen[peer.sin_port]++;
        close(fd);
    }
    EXPECT(met == CONNECTIONS, "and each has a name of its own");
    for (int i = 0; i < CONNECTIONS; i++) close(clients[i]);
    int named = socket(AF_INET, SOCK_STREAM, 0);
    bound(named);
    EXPECT(connect(named, (void *)&name, sizeof name) == 0, "so does one with a name");
    close(named), close(listener);
}

int main(void) {
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    of_datagrams(cpus);
    of_streams(cpus);
    return check_status();
}
