// TCP options: when a connection is accepted, what is told of a listener, bytes that are received
// without being looked at. What options do on the wire is in tests/packets/scripts.
#include <fcntl.h>
#include <netinet/tcp.h>

#include "loopback_tcp.h"

static void a_listener_is_told_of(void) {
    int listening = listener(5), waiting[2] = {connected_to(listening), connected_to(listening)};
    struct tcp_info info;
    socklen_t len = sizeof info;
    CHECK(is_ready(listening, POLLIN, 1000));
    CHECK(getsockopt(listening, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
    CHECK(info.tcpi_state == TCP_LISTEN && info.tcpi_unacked == 2 && info.tcpi_sacked == 5);
    close(waiting[0]), close(waiting[1]), close(listening);
}

static void bytes_are_received_unseen(void) {
    int ends[2];
    char text[16] = "unchanged";
    pair(ends);
    CHECK(send(ends[0], "0123456789", 10, 0) == 10 && is_ready(ends[1], POLLIN, 1000));
    CHECK(recv(ends[1], text, 4, MSG_TRUNC) == 4 && !strcmp(text, "unchanged"));
    CHECK(recv(ends[1], NULL, 2, MSG_TRUNC) == 2);
    CHECK(recv(ends[1], text, 2, MSG_PEEK | MSG_TRUNC) == 2);
    CHECK(recv(ends[1], text, 10, 0) == 4 && !memcmp(text, "6789", 4));
    CHECK(send(ends[0], "0123456789", 10, 0) == 10 && is_ready(ends[1], POLLIN, 1000));
    CHECK(recv(ends[1], (void *)8, 100, MSG_TRUNC) == 10);
    CHECK(recv(ends[1], text, 10, MSG_TRUNC | MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(ends[0]), close(ends[1]);
}

static void numbers_are_kept(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_SYNCNT) == 6);
    CHECK(set(fd, IPPROTO_TCP, TCP_SYNCNT, 3) == 0 && number_of(fd, IPPROTO_TCP, TCP_SYNCNT) == 3);
    CHECK(set(fd, IPPROTO_TCP, TCP_SYNCNT, 0) == -EINVAL);
    CHECK(set(fd, IPPROTO_TCP, TCP_SYNCNT, 128) == -EINVAL);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 0);
    CHECK(set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1) == 0);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 1);
    CHECK(set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5) == 0);
    // Told as the sum of the pauses between the SYNs that it takes: 1, 3, 7, 15 ...
    CHECK(number_of(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 7);
    CHECK(set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, -1) == 0);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT) == 0);
    CHECK(set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, 5000) == 0);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP) == 5000);
    CHECK(set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, 1) == 0);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP) >= 1000);
    CHECK(set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, 0) == 0);
    CHECK(number_of(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP) == 0);
    close(fd);
    int ends[2];
    pair(ends);
    CHECK(set(ends[0], IPPROTO_TCP, TCP_WINDOW_CLAMP, 0) == -EINVAL);
    close(ends[0]), close(ends[1]);
}

static void a_connection_keeps_its_listeners_clamp(void) {
    int ends[2], listening = listener(1);
    CHECK(set(listening, IPPROTO_TCP, TCP_WINDOW_CLAMP, 3000) == 0);
    ends[0] = connected_to(listening), ends[1] = accept(listening, 0, 0);
    CHECK(number_of(ends[1], IPPROTO_TCP, TCP_WINDOW_CLAMP) == 3000);
    CHECK(set(ends[1], IPPROTO_TCP, TCP_WINDOW_CLAMP, 0) == -EINVAL);
    close(ends[0]), close(ends[1]), close(listening);
}

static void a_connection_waits_for_its_first_bytes(void) {
    int listening = listener(5);
    CHECK(set(listening, IPPROTO_TCP, TCP_DEFER_ACCEPT, 30) == 0);
    int client = connected_to(listening);
    CHECK(!is_ready(listening, POLLIN, 100));
    fcntl(listening, F_SETFL, O_NONBLOCK);
    CHECK(accept(listening, 0, 0) == -1 && errno == EAGAIN);
    CHECK(send(client, "hello", 5, 0) == 5 && is_ready(listening, POLLIN, 1000));
    int server = accept(listening, 0, 0);
    char text[8];
    CHECK(server >= 0 && recv(server, text, sizeof text, MSG_DONTWAIT) == 5);
    CHECK(send(server, "answer", 6, 0) == 6 && recv(client, text, sizeof text, 0) == 6);
    close(server), close(client);
    // Without the option it comes at once.
    CHECK(set(listening, IPPROTO_TCP, TCP_DEFER_ACCEPT, 0) == 0);
    client = connected_to(listening);
    CHECK(is_ready(listening, POLLIN, 1000));
    close(client), close(listening);
}

static void buffers_hold_what_was_asked_for(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(set(fd, SOL_SOCKET, SO_SNDBUF, 10000) == 0 && number_of(fd, SOL_SOCKET, SO_SNDBUF) == 20000);
    CHECK(set(fd, SOL_SOCKET, SO_SNDBUF, 1) == 0 && number_of(fd, SOL_SOCKET, SO_SNDBUF) == 4608);
    CHECK(set(fd, SOL_SOCKET, SO_RCVBUF, 1) == 0 && number_of(fd, SOL_SOCKET, SO_RCVBUF) == 2304);
    close(fd);
}

int main(void) {
    TEST(a_listener_is_told_of);
    TEST(bytes_are_received_unseen);
    TEST(numbers_are_kept);
    TEST(a_connection_keeps_its_listeners_clamp);
    TEST(a_connection_waits_for_its_first_bytes);
    TEST(buffers_hold_what_was_asked_for);
    return check_status();
}
