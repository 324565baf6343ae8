// One call within the machine may have news for many threads: each of them hears it, be it after the
// call has let go of what it changed.
#define _GNU_SOURCE
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 96, ROUNDS = 200, PATIENCE_MS = 20000 };

static int listener;
static struct sockaddr_in name = {.sin_family = AF_INET};

static void begin_to_listen(void) {
    socklen_t len = sizeof name;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = 0;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&name, len);
    getsockname(listener, (void *)&name, &len);
    listen(listener, CLIENTS);
}

static int connected(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (void *)&name, sizeof name) == 0 ? fd : -1;
}

static void *hear_of_the_end(void *client) {
    struct pollfd end = {.fd = *(int *)client, .events = POLLIN};
    return (void *)(long)(poll(&end, 1, PATIENCE_MS) == 1 && (end.revents & POLLERR) != 0);
}

static void all_clients_hear_that_their_listener_is_closed(void) {
    int clients[CLIENTS];
    pthread_t threads[CLIENTS];
    begin_to_listen();
    for (int i = 0; i < CLIENTS; i++) CHECK((clients[i] = connected()) >= 0);
    for (int i = 0; i < CLIENTS; i++)
        CHECK(pthread_create(&threads[i], NULL, hear_of_the_end, &clients[i]) == 0);
    usleep(50000);
    close(listener);
    int told = 0;
    for (int i = 0; i < CLIENTS; i++) {
        void *heard;
        CHECK(pthread_join(threads[i], &heard) == 0);
        told += (int)(long)heard;
        close(clients[i]);
    }
    CHECK(told == CLIENTS);
}

static void an_edge_comes_once_for_what_one_call_changed(void) {
    begin_to_listen();
    int client = connected(), server = accept(listener, NULL, NULL), epoll = epoll_create1(0);
    struct epoll_event edge = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET}, heard;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, server, &edge) == 0);
    CHECK(epoll_wait(epoll, &heard, 1, 0) == 0);
    CHECK(send(client, "x", 1, 0) == 1);
    CHECK(epoll_wait(epoll, &heard, 1, 0) == 1 && heard.events == EPOLLIN);
    CHECK(epoll_wait(epoll, &heard, 1, 0) == 0);
    close(client);
    CHECK(epoll_wait(epoll, &heard, 1, 0) == 1 && heard.events == (EPOLLIN | EPOLLRDHUP));
    CHECK(epoll_wait(epoll, &heard, 1, 0) == 0);
    close(server);
    close(listener);
    close(epoll);
}

static void *answer(void *fd) {
    char byte;
    while (recv(*(int *)fd, &byte, 1, 0) == 1) send(*(int *)fd, &byte, 1, 0);
    return NULL;
}

static void requests_and_replies_of_two_threads_miss_no_wake_up(void) {
    pthread_t thread;
    begin_to_listen();
    int client = connected(), server = accept(listener, NULL, NULL);
    CHECK(pthread_create(&thread, NULL, answer, &server) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        char byte = (char)round, reply = -1;
        CHECK(send(client, &byte, 1, 0) == 1);
        struct pollfd there = {.fd = client, .events = POLLIN};
        CHECK(poll(&there, 1, PATIENCE_MS) == 1);
        CHECK(recv(client, &reply, 1, 0) == 1 && reply == byte);
    }
    close(client);
    CHECK(pthread_join(thread, NULL) == 0);
    close(server);
    close(listener);
}

int main(void) {
    TEST(all_clients_hear_that_their_listener_is_closed);
    TEST(an_edge_comes_once_for_what_one_call_changed);
    TEST(requests_and_replies_of_two_threads_miss_no_wake_up);
    return check_status();
}
