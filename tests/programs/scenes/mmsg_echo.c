// Sends datagrams to port 7 back as they came, as many as there are by one call each way.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { MESSAGES = 32, BYTES = 2048, PORT = 7 };

int main(void) {
    static char bytes[MESSAGES][BYTES];
    struct sockaddr_in names[MESSAGES], own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct iovec pieces[MESSAGES];
    struct mmsghdr all[MESSAGES];
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
