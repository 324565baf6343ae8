// Many connections whose both ends are here, all watched by one epoll. Says what memory they
// take and how many interrupts there are while nothing happens, and lets all work at once.
// Each figure is a line "NAME: NUMBER"; what fails is named, and ends the program.
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 10000, ENDS = 2 * PAIRS, ROUNDS = 3, EVENTS = 256, AT_ONCE = 200 };
#define MUST(condition) ((condition) ? (void)0 : (perror(#condition), exit(1)))

struct request {
    uint32_t pair, round, padding[8];
};

// The client of pair I is number 2 I, its server the next.
static int ends[ENDS];
static int watcher;

static struct request request(int pair, int round) {
    return (struct request){.pair = (uint32_t)pair, .round = (uint32_t)round};
}

static uint64_t answer_to(struct request asked) { return (uint64_t)asked.round << 32 | (asked.pair ^ 0x5aa5); }

static long number_in(const char *path, const char *name) {
    char line[256];
    long number = -1;
    FILE *file = fopen(path, "r");
    MUST(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) number = atol(line + strlen(name));
    fclose(file);
    MUST(number >= 0);
    return number;
}

static void rest(long millis) {
    nanosleep(&(struct timespec){.tv_sec = millis / 1000, .tv_nsec = millis % 1000 * 1000000}, 0);
}

static void watch(int end) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)end};
    MUST(epoll_ctl(watcher, EPOLL_CTL_ADD, ends[end], &event) == 0);
}

static void open_all(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(7000)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    MUST(bind(listener, (struct sockaddr *)&here, sizeof here) == 0 && listen(listener, 16) == 0);
    for (int end = 0; end < ENDS; end += 2) {
        MUST((ends[end] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        MUST(connect(ends[end], (struct sockaddr *)&here, sizeof here) == 0);
        MUST((ends[end + 1] = accept(listener, 0, 0)) >= 0);
        watch(end);
        watch(end + 1);
    }
}

static void ask(int pair, int round) {
    struct request asked = request(pair, round);
    MUST(write(ends[2 * pair], &asked, sizeof asked) == sizeof asked);
}

static void serve(int end) {
    struct request asked;
    MUST(read(ends[end], &asked, sizeof asked) == sizeof asked);
    uint64_t answer = answer_to(asked);
    MUST(write(ends[end], &answer, sizeof answer) == sizeof answer);
}

static void hear(int end, int round) {
    uint64_t answer;
    MUST(read(ends[end], &answer, sizeof answer) == sizeof answer);
    MUST(answer == answer_to(request(end / 2, round)));
}

// Serves until so many answers were heard.
static void work(int answers, int round) {
    struct epoll_event events[EVENTS];
    while (answers > 0) {
        int ready = epoll_wait(watcher, events, EVENTS, -1);
        MUST(ready > 0);
        for (int i = 0; i < ready; i++) {
            int end = (int)events[i].data.u32;
            if (end % 2) serve(end);
            else hear(end, round), answers--;
        }
    }
}

int main(void) {
    struct rlimit files = {ENDS + 64, ENDS + 64};
    MUST(setrlimit(RLIMIT_NOFILE, &files) == 0);
    MUST((watcher = epoll_create1(0)) >= 0);
    // So that the program takes no more memory while the kernel's is watched.
    memset(ends, -1, sizeof ends);
    long free_before = number_in("/proc/meminfo", "MemFree:");
    open_all();
    for (int pair = 0; pair < PAIRS; pair++) {
        ask(pair, 0), work(1, 0);
        // The last acknowledgement takes 40 ms; buffers that wait for it stay in the pool.
        if (pair % AT_ONCE == 0) rest(50);
    }
    rest(1000);
    long taken = free_before - number_in("/proc/meminfo", "MemFree:");
    printf("bytes for each end: %ld\n", taken * 1024 / ENDS);

    long interrupts = number_in("/proc/stat", "intr");
    rest(2000);
    printf("interrupts in two seconds: %ld\n", number_in("/proc/stat", "intr") - interrupts);

    for (int round = 1; round <= ROUNDS; round++) {
        for (int pair = 0; pair < PAIRS; pair++) ask(pair, round);
        work(PAIRS, round);
        printf("right answers at once: %d\n", PAIRS);
    }
    return 0;
}
