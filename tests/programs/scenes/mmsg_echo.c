// mmsg_echo [PORT ADDRESS]: sends datagrams to port 7, or that port of that address, back as they came, as many as
// there are by one call each way.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MESSAGES = 32, BYTES = 2048, PORT = 7 };

int main(int argc, char **argv) {
    static char bytes[MESSAGES][BYTES];
    struct sockaddr_in names[MESSAGES], own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct iovec pieces[MESSAGES];
    struct mmsghdr all[MESSAGES];
    if (argc == 3) {
        own.sin_port = htons(atoi(argv[1]));
        if (inet_pton(AF_INET, argv[2], &own.sin_addr) != 1) return 1;
    }
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own)) return 1;
    puts("serving");
    fflush(stdout);
    for (;;) {
        memset(all, 0, sizeof all);
        for (int i = 0; i < MESSAGES; i++) {
            pieces[i] = (struct iovec){bytes[i], BYTES};
            all[i].msg_hdr = (struct msghdr){
                .msg_name = &names[i], .msg_namelen = sizeof names[i], .msg_iov = &pieces[i], .msg_iovlen = 1};
        }
        int came = recvmmsg(fd, all, MESSAGES, MSG_WAITFORONE, NULL);
        if (came < 1) return 2;
        for (int i = 0; i < came; i++) pieces[i].iov_len = all[i].msg_len;
        if (sendmmsg(fd, all, (unsigned)came, 0) != came) return 3;
    }
}
