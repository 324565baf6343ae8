// SO_RCVLOWAT of TCP: a stream is readable when so many bytes wait as its program waits for, and a call that may
// wait comes back with no fewer.
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>

#include "loopback_tcp.h"

// Waits until so many bytes wait, which poll(2) does not tell.
static int has_unread(int fd, int count) {
    int unread = 0;
    for (int tries = 0; tries < 4000; tries++) {
        if (ioctl(fd, FIONREAD, &unread) == 0 && unread >= count) {
            return 1;
        }
        usleep(5000);
    }
    return 0;
}

static int is_selected(int fd) {
    struct timeval none = {0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return select(fd + 1, &set, 0, 0, &none) == 1;
}

static void a_stream_is_readable_from_its_low_water_on(void) {
    int ends[2], set_of = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    char text[16];
    pair(ends);
    CHECK(number_of(ends[1], SOL_SOCKET, SO_RCVLOWAT) == 1);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 10) == 0);
    CHECK(number_of(ends[1], SOL_SOCKET, SO_RCVLOWAT) == 10);
    CHECK(epoll_ctl(set_of, EPOLL_CTL_ADD, ends[1], &event) == 0);
    CHECK(recv(ends[1], text, sizeof text, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(send(ends[0], "012345678", 9, 0) == 9 && has_unread(ends[1], 9));
    CHECK(!is_ready(ends[1], POLLIN, 0) && !is_selected(ends[1]));
    CHECK(epoll_wait(set_of, &event, 1, 0) == 0);
    // Who does not wait has what there is.
    CHECK(recv(ends[1], text, sizeof text, MSG_DONTWAIT | MSG_PEEK) == 9);
    CHECK(recv(ends[1], text, 1, MSG_DONTWAIT) == 1);
    CHECK(send(ends[0], "9", 1, 0) == 1 && has_unread(ends[1], 9));
    CHECK(!is_ready(ends[1], POLLIN, 0) && epoll_wait(set_of, &event, 1, 0) == 0);
    CHECK(send(ends[0], "a", 1, 0) == 1 && epoll_wait(set_of, &event, 1, 20000) == 1);
    CHECK(is_ready(ends[1], POLLIN, 0) && is_selected(ends[1]));
    CHECK(recv(ends[1], text, 5, 0) == 5 && !is_ready(ends[1], POLLIN, 0));
    CHECK(epoll_wait(set_of, &event, 1, 0) == 0);
    CHECK(recv(ends[1], text, 5, 0) == 5 && !memcmp(text, "6789a", 5));
    CHECK(recv(ends[1], text, 5, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(send(ends[0], "bcd", 3, 0) == 3 && has_unread(ends[1], 3));
    CHECK(!is_ready(ends[1], POLLIN, 0) && recv(ends[1], text, 1, MSG_DONTWAIT) == 1);
    // One that is lower counts at once.
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 2) == 0 && is_ready(ends[1], POLLIN, 0));
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 100) == 0 && !is_ready(ends[1], POLLIN, 0));
    // The end is told, however few bytes are left.
    CHECK(shutdown(ends[0], SHUT_WR) == 0 && epoll_wait(set_of, &event, 1, 20000) == 1);
    CHECK(is_ready(ends[1], POLLIN, 0) && recv(ends[1], text, sizeof text, 0) == 2);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 0) == 0);
    CHECK(number_of(ends[1], SOL_SOCKET, SO_RCVLOWAT) == 1);
    close(ends[0]), close(ends[1]), close(set_of);
}

static void *write_slowly(void *end) {
    for (const char *at = "0123456789ab"; *at; at++) {
        usleep(20000);
        send(*(int *)end, at, 1, 0);
    }
    return 0;
}

static void a_call_waits_for_the_low_water(void) {
    int ends[2];
    pthread_t writer;
    char text[16];
    struct timeval limit = {.tv_usec = 200000};
    pair(ends);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 6) == 0);
    CHECK(pthread_create(&writer, 0, write_slowly, &ends[0]) == 0);
    CHECK(recv(ends[1], text, sizeof text, MSG_PEEK) >= 6);
    CHECK(recv(ends[1], text, 6, 0) == 6 && !memcmp(text, "012345", 6));
    // One that has no room for them waits for what it has room for.
    CHECK(read(ends[1], text, 3) == 3 && !memcmp(text, "678", 3));
    CHECK(has_unread(ends[1], 3));
    CHECK(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    CHECK(recv(ends[1], text, sizeof text, MSG_PEEK) == 3);
    CHECK(recv(ends[1], text, sizeof text, 0) == 3 && !memcmp(text, "9ab", 3));
    CHECK(recv(ends[1], text, sizeof text, 0) == -1 && errno == EAGAIN);
    pthread_join(writer, 0);
    close(ends[0]), close(ends[1]);
}

static void *write_one(void *end) {
    usleep(20000);
    send(*(int *)end, "0", 1, 0);
    return 0;
}

static void a_look_at_one_byte_waits_for_one(void) {
    int ends[2];
    pthread_t writer;
    char text[1];
    struct timeval limit = {.tv_sec = 20};
    pair(ends);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 10) == 0);
    CHECK(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    CHECK(pthread_create(&writer, 0, write_one, &ends[0]) == 0);
    CHECK(recv(ends[1], text, 1, MSG_PEEK) == 1);
    pthread_join(writer, 0);
    close(ends[0]), close(ends[1]);
}

static void bytes_are_thrown_away_from_the_low_water_on(void) {
    int ends[2];
    pthread_t writer;
    pair(ends);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 6) == 0);
    CHECK(pthread_create(&writer, 0, write_slowly, &ends[0]) == 0);
    CHECK(recv(ends[1], 0, 6, MSG_TRUNC) == 6);
    CHECK(recv(ends[1], 0, 4, MSG_TRUNC | MSG_WAITALL) == 4);
    pthread_join(writer, 0);
    CHECK(has_unread(ends[1], 2) && recv(ends[1], 0, 6, MSG_TRUNC | MSG_DONTWAIT) == 2);
    close(ends[0]), close(ends[1]);
}

static void a_low_water_has_room(void) {
    enum { ROOM = 1 << 19 };
    static char bytes[ROOM];
    int ends[2], sent = 0, some, listening = listener(1);
    CHECK(set(listening, SOL_SOCKET, SO_RCVLOWAT, ROOM) == 0);
    ends[0] = connected_to(listening), ends[1] = accept(listening, 0, 0);
    CHECK(number_of(ends[1], SOL_SOCKET, SO_RCVLOWAT) == ROOM);
    CHECK(number_of(ends[1], SOL_SOCKET, SO_RCVBUF) >= ROOM);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (sent < ROOM && is_ready(ends[0], POLLOUT, 20000)) {
        CHECK(!is_ready(ends[1], POLLIN, 0));
        some = send(ends[0], bytes, ROOM - sent, 0);
        sent += some > 0 ? some : 0;
    }
    CHECK(sent == ROOM && is_ready(ends[1], POLLIN, 20000) && has_unread(ends[1], ROOM));
    CHECK(recv(ends[1], bytes, 1, 0) == 1 && !is_ready(ends[1], POLLIN, 0));
    close(ends[0]), close(ends[1]), close(listening);
    // It is no more than half of a buffer whose size was set.
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(set(fd, SOL_SOCKET, SO_RCVBUF, 10000) == 0 && set(fd, SOL_SOCKET, SO_RCVLOWAT, -1) == 0);
    CHECK(number_of(fd, SOL_SOCKET, SO_RCVLOWAT) == 10000);
    CHECK(number_of(fd, SOL_SOCKET, SO_RCVBUF) == 20000);
    close(fd);
}

// A buffer that is smaller afterwards is read when it is full.
static void a_buffer_below_the_low_water_is_readable(void) {
    int ends[2], some = 1;
    static char bytes[1 << 16];
    pair(ends);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVLOWAT, 60000) == 0);
    CHECK(set(ends[1], SOL_SOCKET, SO_RCVBUF, 10000) == 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (int tries = 0; tries < 4000 && !is_ready(ends[1], POLLIN, 0); tries++) {
        some = send(ends[0], bytes, sizeof bytes, 0);
        usleep(5000);
    }
    CHECK(some != 0 && is_ready(ends[1], POLLIN, 0));
    close(ends[0]), close(ends[1]);
}

int main(void) {
    TEST(a_stream_is_readable_from_its_low_water_on);
    TEST(a_call_waits_for_the_low_water);
    TEST(a_look_at_one_byte_waits_for_one);
    TEST(bytes_are_thrown_away_from_the_low_water_on);
    TEST(a_low_water_has_room);
    TEST(a_buffer_below_the_low_water_is_readable);
    return check_status();
}
