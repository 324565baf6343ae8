// Sends more than a peer takes that does not read, and ends at once: the peer gets all of it.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7, BYTES = 300 * 1000 };

static char words[BYTES];

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int room = 2 * BYTES;
    if (bind(listener, (void *)&name, sizeof name) != 0 || listen(listener, 1) != 0)
        return perror("listen"), 1;
    puts("serving");
    fflush(stdout);
    int peer = accept(listener, NULL, NULL);
    memset(words, 'w', sizeof words);
    if (setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) != 0)
        return perror("SO_SNDBUF"), 1;
    if (write(peer, words, sizeof words) != sizeof words)
        return perror("write"), 1;
    puts("written");
    return 0;
}
