// Bytes keep their order and number while signals rain: each channel has a writer and a
// reader, and both are hit by Ctrl-C from their terminal, by interval timers and by POSIX
// timers, with handlers that restart calls and with some that do not. An interrupted call
// must say exactly how much it moved.
//
// Argument: seconds (5 unless given).
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { PIPE, LOCAL, TCP, CHANNELS, CHUNK_MAX = 40000, CTRL_C = 3, PATIENCE = 60 };

// One end's account of what passed.
struct account {
    uint64_t bytes, checksum;
    // The same sum in a vector register, which handlers use as well.
    double sum;
    uint64_t interrupts, timers, alarms, failures, calls_ended;
};

static struct storm {
    struct account writer, reader;
} *storms;
static struct account *mine;
static int seconds = 5;
static volatile double scratch = 1;

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static void note(int signal) {
    int kept = errno;
    scratch = scratch * 1.5 + 1;
    if (scratch > 1e9) scratch = 1;
    if (signal == SIGINT) mine->interrupts++;
    if (signal == SIGALRM) mine->alarms++;
    if (signal == SIGUSR2) mine->timers++;
    errno = kept;
}

static void open_sky(void) {
    struct sigaction restarting = {.sa_handler = note, .sa_flags = SA_RESTART};
    struct sigaction ending = {.sa_handler = note};
    sigaction(SIGINT, &ending, NULL);
    sigaction(SIGALRM, &ending, NULL);
    sigaction(SIGUSR2, &restarting, NULL);
    struct itimerval alarms = {{0, 1700}, {0, 1700}};
    setitimer(ITIMER_REAL, &alarms, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct itimerspec rhythm = {{0, 2300000}, {0, 2300000}};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &rhythm, NULL);
}

static void add(struct account *account, const uint8_t *bytes, ssize_t count) {
    uint64_t checksum = account->checksum;
    double sum = account->sum;
    for (ssize_t i = 0; i < count; i++) {
        checksum = checksum * 31 + bytes[i];
        sum += bytes[i];
    }
    account->bytes += count, account->checksum = checksum, account->sum = sum;
}

static time_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static void write_all(int to) {
    static uint8_t chunk[CHUNK_MAX];
    uint64_t state = 0x9e3779b97f4a7c15;
    for (time_t end = now() + seconds; now() < end;) {
        ssize_t size = 1 + next(&state) % CHUNK_MAX;
        for (ssize_t i = 0; i < size; i++) chunk[i] = next(&state) >> 32;
        for (ssize_t done = 0; done < size;) {
            ssize_t count = write(to, chunk + done, size - done);
            if (count < 0 && errno == EINTR) mine->calls_ended++;
            if (count < 0 && errno != EINTR) mine->failures++, _exit(1);
            // Counted as the kernel says, not as it was asked for.
            if (count > 0) add(mine, chunk + done, count), done += count;
        }
    }
    _exit(0);
}

static void read_all(int from) {
    static uint8_t chunk[CHUNK_MAX];
    uint64_t state = 88172645463325252;
    for (;;) {
        ssize_t count = read(from, chunk, 1 + next(&state) % CHUNK_MAX);
        if (count == 0) _exit(0);
        if (count < 0 && errno == EINTR) mine->calls_ended++;
        if (count < 0 && errno != EINTR) mine->failures++, _exit(1);
        if (count > 0) add(mine, chunk, count);
    }
}

// A connected pair over the loopback interface.
static int tcp_pair(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, len) || listen(listener, 1)) return -1;
    getsockname(listener, (void *)&address, &len);
    ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[1], (void *)&address, len)) return -1;
    ends[0] = accept(listener, NULL, NULL);
    close(listener);
    return ends[0] < 0;
}

static int open_channel(int channel, int ends[2]) {
    switch (channel) {
        case PIPE: return pipe(ends);
        case LOCAL: return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        default: return tcp_pair(ends);
    }
}

static void start(struct account *account, void (*part)(int), int end, int other) {
    if (fork()) return;
    close(other);
    mine = account;
    open_sky();
    part(end);
}

// The group in front at the terminal: all writers and readers, and this process, which
// only waits for them.
static void in_front(int terminal) {
    setsid();
    ioctl(terminal, TIOCSCTTY, 0);
    signal(SIGINT, SIG_IGN);
    for (int channel = 0; channel < CHANNELS; channel++) {
        int ends[2];
        if (open_channel(channel, ends)) _exit(2);
        start(&storms[channel].writer, write_all, ends[1], ends[0]);
        start(&storms[channel].reader, read_all, ends[0], ends[1]);
        close(ends[0]), close(ends[1]);
    }
    int failed = 0, status;
    while (wait(&status) > 0) failed |= status;
    _exit(failed != 0);
}

static int status_of_storm = -1;

// Types Ctrl-C until everybody in front has ended.
static void the_storm_ends_by_itself(void) {
    size_t bytes = sizeof *storms * CHANNELS;
    storms = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(storms != MAP_FAILED);
    int keyboard = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(keyboard >= 0 && grantpt(keyboard) == 0 && unlockpt(keyboard) == 0);
    int terminal = open(ptsname(keyboard), O_RDWR | O_NOCTTY);
    CHECK(terminal >= 0);
    pid_t front = fork();
    if (front == 0) in_front(terminal);
    int status;
    char echo[256], key = CTRL_C;
    fcntl(keyboard, F_SETFL, O_NONBLOCK);
    for (time_t end = now() + seconds + PATIENCE; now() < end;) {
        usleep(2900);
        CHECK(write(keyboard, &key, 1) == 1 || errno == EAGAIN);
        while (read(keyboard, echo, sizeof echo) > 0) {
        }
        if (waitpid(front, &status, WNOHANG) == front) {
            status_of_storm = status;
            break;
        }
    }
    CHECK(status_of_storm == 0);
}

static void check_channel(int channel) {
    struct account *writer = &storms[channel].writer, *reader = &storms[channel].reader;
    CHECK(writer->failures == 0 && reader->failures == 0);
    CHECK(writer->bytes > 0);
    CHECK(writer->bytes == reader->bytes);
    CHECK(writer->checksum == reader->checksum);
    CHECK(writer->sum == reader->sum);
}

static void a_pipe_loses_and_doubles_no_byte(void) { check_channel(PIPE); }
static void a_unix_socket_loses_and_doubles_no_byte(void) { check_channel(LOCAL); }
static void a_tcp_connection_loses_and_doubles_no_byte(void) { check_channel(TCP); }

static void every_kind_of_signal_came(void) {
    uint64_t calls_ended = 0;
    for (int channel = 0; channel < CHANNELS; channel++) {
        struct account *ends[] = {&storms[channel].writer, &storms[channel].reader};
        for (int end = 0; end < 2; end++) {
            CHECK(ends[end]->interrupts > 0 && ends[end]->alarms > 0 && ends[end]->timers > 0);
            calls_ended += ends[end]->calls_ended;
        }
    }
    CHECK(calls_ended > 0);
}

int main(int count, char **arguments) {
    if (count > 1) seconds = atoi(arguments[1]);
    TEST(the_storm_ends_by_itself);
    TEST(a_pipe_loses_and_doubles_no_byte);
    TEST(a_unix_socket_loses_and_doubles_no_byte);
    TEST(a_tcp_connection_loses_and_doubles_no_byte);
    TEST(every_kind_of_signal_came);
    return check_status();
}
