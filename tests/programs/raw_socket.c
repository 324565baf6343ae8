// Raw sockets on loopback: ICMP as ping speaks it, and a protocol of nobody's.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

// IANA's number for experiments.
#define EXPERIMENT 253

static struct sockaddr_in loopback = {.sin_family = AF_INET};

static uint16_t checksum(const void *bytes, int count) {
    const uint16_t *words = bytes;
    uint32_t sum = 0;
    for (int i = 0; i < count / 2; i++) sum += words[i];
    sum = (sum >> 16) + (sum & 0xffff);
    return ~(sum + (sum >> 16));
}

// Asks for an echo with this number.
static int ask(int fd, int number) {
    struct icmphdr question = {.type = ICMP_ECHO, .un.echo = {htons(7), htons(number)}};
    question.checksum = checksum(&question, sizeof question);
    return sendto(fd, &question, sizeof question, 0, (void *)&loopback, sizeof loopback);
}

static void only_those_who_may_open_raw_sockets(void) {
    pid_t child = fork();
    if (child == 0) {
        int refused = setgid(65534) == 0 && setuid(65534) == 0 &&
                      socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) == -1 && errno == EPERM;
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void a_question_is_answered(void) {
    int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    uint32_t blocked = ~(1u << ICMP_ECHOREPLY);
    CHECK(setsockopt(fd, SOL_RAW, ICMP_FILTER, &blocked, sizeof blocked) == 0);
    CHECK(ask(fd, 1) == sizeof(struct icmphdr));
    unsigned char packet[128];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    int count = recvfrom(fd, packet, sizeof packet, 0, (void *)&from, &len);
    CHECK(count == 20 + sizeof(struct icmphdr) && packet[0] == 0x45 && packet[9] == IPPROTO_ICMP);
    CHECK(from.sin_addr.s_addr == loopback.sin_addr.s_addr && from.sin_port == 0);
    struct icmphdr *answer = (void *)(packet + 20);
    CHECK(answer->type == ICMP_ECHOREPLY && answer->un.echo.sequence == htons(1));
    CHECK(recv(fd, packet, sizeof packet, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(fd);
}

static void a_filter_chooses_messages(void) {
    // Echo replies with the number 2.
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_ECHOREPLY, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 26),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 65535),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0);
    for (int number = 1; number <= 3; number++) CHECK(ask(fd, number) > 0);
    unsigned char packet[128];
    CHECK(recv(fd, packet, sizeof packet, 0) == 28 && packet[27] == 2);
    CHECK(recv(fd, packet, sizeof packet, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(fd);
}

static void a_protocol_of_nobodys_reaches_who_asked_for_it(void) {
    int one = socket(AF_INET, SOCK_RAW, EXPERIMENT), other = socket(AF_INET, SOCK_RAW, 254);
    CHECK(one >= 0 && other >= 0);
    CHECK(connect(one, (void *)&loopback, sizeof loopback) == 0);
    CHECK(send(one, "hello", 5, 0) == 5);
    char packet[64];
    struct pollfd wanted = {one, POLLIN, 0};
    CHECK(poll(&wanted, 1, 5000) == 1 && wanted.revents == POLLIN);
    CHECK(recv(one, packet, sizeof packet, 0) == 25 && memcmp(packet + 20, "hello", 5) == 0);
    CHECK(recv(other, packet, sizeof packet, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    struct sockaddr_in away = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    CHECK(connect(one, (void *)&away, sizeof away) == 0);
    CHECK(sendto(other, "x", 1, 0, (void *)&loopback, sizeof loopback) == 1);
    CHECK(recv(other, packet, sizeof packet, 0) == 21);
    CHECK(sendto(one, "x", 1, 0, (void *)&loopback, sizeof loopback) == 1);
    CHECK(recv(one, packet, sizeof packet, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    close(one), close(other);
}

static void what_cannot_be_sent_is_refused(void) {
    static char large[70000];
    int fd = socket(AF_INET, SOCK_RAW, EXPERIMENT);
    CHECK(send(fd, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
    CHECK(sendto(fd, large, sizeof large, 0, (void *)&loopback, sizeof loopback) == -1);
    CHECK(errno == EMSGSIZE);
    struct sockaddr_in stranger = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
    CHECK(bind(fd, (void *)&stranger, sizeof stranger) == -1 && errno == EADDRNOTAVAIL);
    close(fd);
}

int main(void) {
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TEST(only_those_who_may_open_raw_sockets);
    TEST(a_question_is_answered);
    TEST(a_filter_chooses_messages);
    TEST(a_protocol_of_nobodys_reaches_who_asked_for_it);
    TEST(what_cannot_be_sent_is_refused);
    return check_status();
}
