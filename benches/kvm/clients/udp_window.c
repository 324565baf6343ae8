// Keeps WINDOW datagrams under way to the echo at ADDRESS, port 7, until COUNT have come back.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

int main(int count, char **words) {
    if (count != 4) return 2;
    int window = atoi(words[2]), wanted = atoi(words[3]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
    to.sin_addr.s_addr = inet_addr(words[1]);
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(sock, (struct sockaddr *)&to, sizeof to)) return 1;
    struct timeval silence = {.tv_sec = 1};
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
    char datagram[64] = {0};
    int under_way = 0, silences = 0;
    for (int echoes = 0; echoes < wanted && silences < 30;) {
        for (; under_way < window; under_way++) send(sock, datagram, sizeof datagram, 0);
        if (recv(sock, datagram, sizeof datagram, 0) > 0) {
            echoes++;
            under_way--;
        } else {
            // What was under way is lost.
            silences++;
            under_way = 0;
        }
    }
    return silences == 30;
}
