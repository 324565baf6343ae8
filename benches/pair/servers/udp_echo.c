// Sends every datagram back to where it came from, at port 7 (RFC 862).
#include <netinet/in.h>
#include <sys/socket.h>

int main(void) {
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(7)};
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(sock, (struct sockaddr *)&from, sizeof from)) return 1;
    for (char datagram[2048];;) {
        socklen_t size = sizeof from;
        ssize_t len = recvfrom(sock, datagram, sizeof datagram, 0, (struct sockaddr *)&from, &size);
        if (len >= 0) sendto(sock, datagram, len, 0, (struct sockaddr *)&from, size);
    }
}
