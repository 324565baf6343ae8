// member GROUP: is a member of a group until it is ended.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ip_mreq wanted = {.imr_multiaddr.s_addr = inet_addr(argc > 1 ? argv[1] : "")};
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &wanted, sizeof wanted) != 0) return 1;
    puts("member");
    fflush(stdout);
    pause();
}
