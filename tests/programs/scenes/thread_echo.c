// thread_echo THREADS [USER]: an echo server of lines on port 7. The main thread accepts, and gives connections in turns to
// threads that have an epoll set each; the program has become that user before. Some lines ask for more, before they are echoed:
//   fork   a child is forked that ends at once
//   child  a child answers in the parent's place, on the same connection, which is over when it ends
//   dup    the connection gets another number, under which it is watched from then on
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 7, THREADS_MAX = 16, EVENTS = 8, LINE = 64, NUMBERS = 1024 };

static int sets[THREADS_MAX];
static struct line {
    char bytes[LINE];
    int len;
} lines[NUMBERS];

static void answer(int fd, const struct line *line) {
    if (write(fd, line->bytes, (size_t)line->len) != line->len) _exit(3);
}

static int watch(int set, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

// The number under which the connection goes on; -1 if it is over.
static int serve(int set, int fd) {
    struct line *line = &lines[fd];
    ssize_t came = read(fd, line->bytes + line->len, (size_t)(LINE - line->len));
    if (came <= 0) {
        // The number may be another thread's as soon as it is closed.
        line->len = 0;
        close(fd);
        return -1;
    }
    line->len += (int)came;
    if (line->bytes[line->len - 1] != '\n') return fd;
    if (!strncmp(line->bytes, "fork", 4)) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child) _exit(4);
    }
    if (!strncmp(line->bytes, "child", 5)) {
        pid_t child = fork();
        if (child == 0) {
            answer(fd, line);
            _exit(0);
        }
        if (child < 0 || waitpid(child, NULL, 0) != child) _exit(5);
        // The number may be another thread's as soon as it is closed.
        line->len = 0;
        close(fd);
        return -1;
    }
    if (!strncmp(line->bytes, "dup", 3)) {
        int other = dup(fd);
        if (other < 0 || other >= NUMBERS || epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL)) _exit(6);
        lines[other] = *line;
        line->len = 0;
        close(fd);
        if (watch(set, other)) _exit(7);
        fd = other;
        line = &lines[fd];
    }
    answer(fd, line);
    line->len = 0;
    return fd;
}

static void *run(void *argument) {
    int set = *(int *)argument;
    struct epoll_event events[EVENTS];
    for (;;) {
        int ready = epoll_wait(set, events, EVENTS, -1);
        for (int i = 0; i < ready; i++)
            if (events[i].data.fd >= 0) serve(set, events[i].data.fd);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > THREADS_MAX) return 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 64)) return 1;
    if (argc > 2 && setuid((uid_t)atoi(argv[2]))) return 1;
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        struct epoll_event none = {.events = EPOLLIN, .data.fd = -1};
        sets[i] = epoll_create1(0);
        // As servers have it to be woken by: each set has a file of the kernel's, too.
        if (epoll_ctl(sets[i], EPOLL_CTL_ADD, eventfd(0, 0), &none)) return 1;
        if (pthread_create(&thread, NULL, run, &sets[i])) return 1;
    }
    puts("serving");
    fflush(stdout);
    for (int next = 0;; next = (next + 1) % threads) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || fd >= NUMBERS || watch(sets[next], fd)) return 2;
    }
}
