// in_order PORT: takes datagrams, each the number of its flow and its own within that, until one of
// flow 0; says how many came, and how many of them behind a later one of their flow.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    static uint32_t last[1 << 16];
    int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = 1 << 22;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    struct sockaddr_in place = {.sin_family = AF_INET,
                                .sin_port = htons(argc > 1 ? atoi(argv[1]) : 0)};
    if (bind(fd, (struct sockaddr *)&place, sizeof place) != 0) return 1;
    puts("listening");
    fflush(stdout);
    int came = 0, late = 0;
    for (;;) {
        uint32_t said[2];
        if (recv(fd, said, sizeof said, 0) != sizeof said) return 1;
        uint32_t flow = ntohl(said[0]) & 0xffff, number = ntohl(said[1]);
        if (flow == 0) break;
        came++;
        late += number <= last[flow];
        last[flow] = number;
    }
    printf("%d came, %d late\n", came, late);
}
