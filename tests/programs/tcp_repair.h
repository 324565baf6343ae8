// Takes a TCP connection apart and puts it together again (TCP_REPAIR), as CRIU does it.
#ifndef TCP_REPAIR_H
#define TCP_REPAIR_H

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

enum { OUT_UNSENT = 0x894b, OPTION_MSS = 2, OPTION_WINDOW, OPTION_SACK, OPTION_CLOCK = 8 };

// All that a connection is.
struct image {
    struct sockaddr_in ends[2];
    unsigned seq[3], clock;
    int len[3], unsent, mss;
    char *bytes[3];
    struct tcp_info info;
    struct tcp_repair_window window;
};

static int set(int fd, int option, int value) {
    return setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

static int get(int fd, int option) {
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, IPPROTO_TCP, option, &value, &len) ? -1 : value;
}

static void dump_queue(int fd, int queue, struct image *image) {
    unsigned *seq = &image->seq[queue];
    socklen_t len = sizeof *seq;
    CHECK(set(fd, TCP_REPAIR_QUEUE, queue) == 0 && get(fd, TCP_REPAIR_QUEUE) == queue);
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, seq, &len) == 0);
    image->bytes[queue] = malloc(image->len[queue] + 1);
    int got = recv(fd, image->bytes[queue], image->len[queue] + 1, MSG_PEEK | MSG_DONTWAIT);
    CHECK(got == image->len[queue] || (got < 0 && errno == EAGAIN && image->len[queue] == 0));
}

// Takes the connection apart; the peer is told nothing.
static void dump(int fd, struct image *image) {
    socklen_t len = sizeof image->ends[0];
    CHECK(getsockname(fd, (void *)&image->ends[0], &len) == 0);
    CHECK(getpeername(fd, (void *)&image->ends[1], &len) == 0);
    CHECK(set(fd, TCP_REPAIR, TCP_REPAIR_ON) == 0 && get(fd, TCP_REPAIR) == 1);
    len = sizeof image->info;
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &image->info, &len) == 0);
    CHECK(ioctl(fd, FIONREAD, &image->len[TCP_RECV_QUEUE]) == 0);
    CHECK(ioctl(fd, TIOCOUTQ, &image->len[TCP_SEND_QUEUE]) == 0);
    CHECK(ioctl(fd, OUT_UNSENT, &image->unsent) == 0);
    dump_queue(fd, TCP_RECV_QUEUE, image);
    dump_queue(fd, TCP_SEND_QUEUE, image);
    image->mss = get(fd, TCP_MAXSEG);
    image->clock = get(fd, TCP_TIMESTAMP);
    len = sizeof image->window;
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &image->window, &len) == 0);
    close(fd);
}

static void restore_options(int fd, const struct image *image) {
    struct tcp_repair_opt options[4] = {{OPTION_MSS, image->mss}};
    int count = 1;
    if (image->info.tcpi_options & TCPI_OPT_WSCALE)
        options[count++] = (struct tcp_repair_opt){
            OPTION_WINDOW, image->info.tcpi_snd_wscale | image->info.tcpi_rcv_wscale << 16};
    if (image->info.tcpi_options & TCPI_OPT_SACK)
        options[count++] = (struct tcp_repair_opt){OPTION_SACK, 0};
    if (image->info.tcpi_options & TCPI_OPT_TIMESTAMPS)
        options[count++] = (struct tcp_repair_opt){OPTION_CLOCK, 0};
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, options, count * sizeof options[0]) == 0);
    CHECK(set(fd, TCP_TIMESTAMP, image->clock) == 0);
}

static void fill(int fd, int queue, const char *bytes, int len) {
    CHECK(set(fd, TCP_REPAIR_QUEUE, queue) == 0);
    CHECK(len == 0 || send(fd, bytes, len, 0) == len);
}

static int restore(const struct image *image) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), len = 8 << 20;
    const int *lens = image->len, sent = lens[TCP_SEND_QUEUE] - image->unsent;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &len, sizeof len);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &len, sizeof len);
    CHECK(set(fd, TCP_REPAIR, TCP_REPAIR_ON) == 0);
    for (int queue = TCP_RECV_QUEUE; queue <= TCP_SEND_QUEUE; queue++) {
        CHECK(set(fd, TCP_REPAIR_QUEUE, queue) == 0);
        CHECK(set(fd, TCP_QUEUE_SEQ, image->seq[queue] - lens[queue]) == 0);
    }
    CHECK(bind(fd, (void *)&image->ends[0], sizeof image->ends[0]) == 0);
    CHECK(connect(fd, (void *)&image->ends[1], sizeof image->ends[1]) == 0);
    restore_options(fd, image);
    fill(fd, TCP_RECV_QUEUE, image->bytes[TCP_RECV_QUEUE], lens[TCP_RECV_QUEUE]);
    fill(fd, TCP_SEND_QUEUE, image->bytes[TCP_SEND_QUEUE], sent);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &image->window, sizeof image->window) == 0);
    CHECK(set(fd, TCP_REPAIR, TCP_REPAIR_OFF) == 0 && get(fd, TCP_REPAIR) == 0);
    const char *unsent = image->bytes[TCP_SEND_QUEUE] + sent;
    CHECK(image->unsent == 0 || send(fd, unsent, image->unsent, MSG_DONTWAIT) == image->unsent);
    return fd;
}

#endif
