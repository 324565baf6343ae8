// Echoes what one client sends, by two processes in turn: each has the connection for a while,
// takes it apart and hands it to the other, which puts it together again (TCP_REPAIR). The
// client has sent what it likes meanwhile.
//
// usage: repaired_echo PORT
#include <signal.h>
#include <sys/wait.h>

#include "../programs/tcp_repair.h"

enum { BYTES_MAX = 4 << 20 };

static int other, moves;

static void pass(const void *bytes, int len) {
    for (int done = 0, sent; done < len; done += sent)
        CHECK((sent = write(other, (const char *)bytes + done, len - done)) > 0);
}

// Whether there is something; the end of the stream is the end of the work.
static int take(void *bytes, int len) {
    for (int done = 0, got; done < len; done += got)
        if ((got = read(other, (char *)bytes + done, len - done)) <= 0) return 0;
    return 1;
}

static void hand_over(int fd) {
    struct image image = {0};
    dump(fd, &image);
    pass(&image, sizeof image);
    for (int queue = TCP_RECV_QUEUE; queue <= TCP_SEND_QUEUE; queue++) {
        pass(image.bytes[queue], image.len[queue]);
        free(image.bytes[queue]);
    }
    moves++;
}

// The connection, once the other has handed it over; -1 if it will not.
static int take_over(void) {
    struct image image;
    if (!take(&image, sizeof image)) return -1;
    for (int queue = TCP_RECV_QUEUE; queue <= TCP_SEND_QUEUE; queue++) {
        CHECK(image.len[queue] >= 0 && image.len[queue] <= BYTES_MAX);
        CHECK((image.bytes[queue] = malloc(image.len[queue] + 1)) != NULL);
        CHECK(take(image.bytes[queue], image.len[queue]));
    }
    int fd = restore(&image);
    for (int queue = TCP_RECV_QUEUE; queue <= TCP_SEND_QUEUE; queue++) free(image.bytes[queue]);
    return fd;
}

// Whether the client goes on after so many bytes.
static int echo(int fd, int bytes) {
    char buffer[5000];
    while (bytes > 0) {
        int got = recv(fd, buffer, sizeof buffer, 0);
        CHECK(got >= 0);
        if (got == 0) return 0;
        for (int done = 0, sent; done < got; done += sent)
            CHECK((sent = send(fd, buffer + done, got - done, 0)) > 0);
        bytes -= got;
    }
    return 1;
}

static void take_turns(int fd) {
    unsigned random = getpid();
    while (fd >= 0 || (fd = take_over()) >= 0) {
        random = random * 1103515245 + 12345;
        if (!echo(fd, random / 65536 % 100000)) {
            shutdown(fd, SHUT_WR);
            close(fd);
            return;
        }
        hand_over(fd);
        fd = -1;
    }
}

static int first;
static void the_connection_is_echoed_by_both_in_turn(void) { take_turns(first); }

int main(int count, char **arguments) {
    int ends[2], server = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[count - 1]))};
    signal(SIGPIPE, SIG_IGN);
    if (bind(server, (void *)&name, sizeof name) || listen(server, 8)) return 2;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 3;
    pid_t child = fork();
    close(ends[child != 0]);
    other = ends[child == 0];
    if (child == 0) close(server);
    if (child != 0) {
        printf("ready\n");
        fflush(stdout);
    }
    first = child == 0 ? -1 : accept(server, NULL, NULL);
    TEST(the_connection_is_echoed_by_both_in_turn);
    close(other);
    if (child != 0) waitpid(child, NULL, 0);
    printf("moves: %d\n", moves);
    return check_status();
}
