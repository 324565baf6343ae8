// Networks that some programs have for themselves (network_namespaces(7), unshare(2), setns(2)).
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PORT = 6379, STACKS = 10000, WARM_UP = 500, SLACK_KIB = 4096, PATIENCE_TENTHS = 100 };

static const struct sockaddr_in loopback = {
    .sin_family = AF_INET, .sin_port = 0, .sin_addr = {0}};

static struct sockaddr_in name_of(int port) {
    struct sockaddr_in name = loopback;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(port);
    return name;
}

// A socket that waits for connections, or -1.
static int serve(int port) {
    struct sockaddr_in name = name_of(port);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(server, (void *)&name, sizeof name) == 0 && listen(server, 8) == 0) return server;
    close(server);
    return -1;
}

static int reach(int port) {
    struct sockaddr_in name = name_of(port);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(client, (void *)&name, sizeof name) == 0) return client;
    close(client);
    return -1;
}

// Whether whoever connects here and now meets `server`.
static int meets(int server, char byte) {
    char got = 0;
    int client = reach(PORT), peer = client < 0 ? -1 : accept(server, NULL, NULL);
    int met = peer >= 0 && write(peer, &byte, 1) == 1 && read(client, &got, 1) == 1 && got == byte;
    close(client), close(peer);
    return met;
}

static int in_child(int (*act)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(act() ? 0 : 1);
    int status;
    return waitpid(child, &status, 0) == child && status == 0;
}

static unsigned long number(void) {
    struct stat file = {0};
    stat("/proc/self/ns/net", &file);
    return file.st_ino;
}

// Linux makes it without, and Sietch's is always up.
static void bring_up_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

// One after the other in one program: a socket stays in the network in which it was made.
static int serves_twice(void) {
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int first = serve(PORT);
    if (home < 0 || first < 0 || unshare(CLONE_NEWNET) != 0) return 0;
    bring_up_loopback();
    int away = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (reach(PORT) >= 0 || errno == 0) return 0;
    int second = serve(PORT);
    if (second < 0 || !meets(second, '2')) return 0;
    if (setns(home, CLONE_NEWNET) != 0 || !meets(first, '1')) return 0;
    return setns(away, 0) == 0 && meets(second, '2') && serve(PORT) < 0 && errno == EADDRINUSE;
}
static void two_networks_serve_on_one_port_at_once(void) { CHECK(in_child(serves_twice)); }

static int has_loopback_only(void) {
    unsigned long before = number();
    if (unshare(CLONE_NEWNET) != 0 || number() == before) return 0;
    struct if_nameindex *all = if_nameindex();
    return all && all[0].if_index == 1 && strcmp(all[0].if_name, "lo") == 0 && !all[1].if_name;
}
static void a_new_network_has_nothing_but_loopback(void) { CHECK(in_child(has_loopback_only)); }

static int first_port(void) {
    FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
    int port = -1;
    if (!file || fscanf(file, "%d", &port) != 1) port = -1;
    if (file) fclose(file);
    return port;
}
static int changes_its_own(void) {
    if (unshare(CLONE_NEWNET) != 0) return 0;
    int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY);
    return write(fd, "80\n", 3) == 3 && close(fd) == 0 && first_port() == 80;
}
static void settings_are_changed_for_a_network_only(void) {
    int before = first_port();
    CHECK(before > 0 && before != 80 && in_child(changes_its_own) && first_port() == before);
}

static int is_refused(void) {
    return setuid(1010) == 0 && unshare(CLONE_NEWNET) == -1 && errno == EPERM;
}
static void only_administrators_make_networks(void) { CHECK(in_child(is_refused)); }

static long available_kib(void) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    long kib = -1;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %ld", &kib) == 1) break;
    if (file) fclose(file);
    return kib;
}

// Each ends with a connection under way, bytes that nobody reads, and one in TIME_WAIT.
static int come_and_go(int count) {
    for (int i = 0; i < count; i++) {
        if (unshare(CLONE_NEWNET) != 0) return 0;
        int server = serve(PORT), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
        if (server < 0 || datagrams < 0) return 0;
        int client = reach(PORT);
        if (client >= 0 && write(client, "left unread", 11) != 11) return 0;
        struct sockaddr_in name = name_of(PORT);
        if (bind(datagrams, (void *)&name, sizeof name) != 0) return 0;
        sendto(datagrams, "unread", 6, 0, (void *)&name, sizeof name);
        close(client), close(server), close(datagrams);
    }
    return 1;
}
static int warms_up(void) { return come_and_go(WARM_UP); }
static int runs(void) { return come_and_go(STACKS); }
static void ten_thousand_networks_leave_nothing(void) {
    CHECK(in_child(warms_up));
    long before = available_kib();
    CHECK(before > 0 && in_child(runs));
    int tenths = 0;
    while (before - available_kib() > SLACK_KIB && tenths++ < PATIENCE_TENTHS) usleep(100000);
    if (before - available_kib() > SLACK_KIB)
        printf("# %ld KiB before, %ld after\n", before, available_kib());
    CHECK(before - available_kib() <= SLACK_KIB);
}

int main(void) {
    TEST(two_networks_serve_on_one_port_at_once);
    TEST(a_new_network_has_nothing_but_loopback);
    TEST(settings_are_changed_for_a_network_only);
    TEST(only_administrators_make_networks);
    TEST(ten_thousand_networks_leave_nothing);
    return check_status();
}
