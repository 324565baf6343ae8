// Pseudo terminals: the line discipline and job control.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int master, slave;

static void open_pair(void) {
    master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && !grantpt(master) && !unlockpt(master));
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0);
}

static void close_pair(void) { close(slave), close(master); }

static void type(const char *text) { CHECK(write(master, text, strlen(text)) == (ssize_t)strlen(text)); }

static short ready(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    poll(&p, 1, 0);
    return p.revents;
}

/// Waits a moment until there is something to read.
static int readable(int fd) {
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 1000) == 1;
}

/// Whether a read of `fd` gives exactly `text`.
static int gives(int fd, const char *text) {
    char buffer[256];
    ssize_t count = read(fd, buffer, sizeof buffer);
    return count == (ssize_t)strlen(text) && !memcmp(buffer, text, count);
}

static void change(tcflag_t off, tcflag_t on) {
    struct termios settings;
    CHECK(!tcgetattr(slave, &settings));
    settings.c_lflag = (settings.c_lflag & ~off) | on;
    CHECK(!tcsetattr(slave, TCSANOW, &settings));
}

static void a_pair_has_a_name_and_is_a_terminal(void) {
    struct stat facts;
    open_pair();
    CHECK(isatty(slave) && isatty(master) && !strncmp(ptsname(master), "/dev/pts/", 9));
    CHECK(!fstat(slave, &facts) && S_ISCHR(facts.st_mode));
    CHECK(!strcmp(ttyname(slave), ptsname(master)));
    close_pair();
}

static void lines_come_whole_and_are_echoed(void) {
    open_pair();
    type("hel");
    CHECK(ready(slave) == POLLOUT && gives(master, "hel"));
    type("lo\rnext\n");
    CHECK(gives(slave, "hello\n") && gives(slave, "next\n") && gives(master, "lo\r\nnext\r\n"));
    CHECK(write(slave, "out\n", 4) == 4 && gives(master, "out\r\n"));
    close_pair();
}

static void mistakes_can_be_erased(void) {
    open_pair();
    type("ab\177c");
    CHECK(gives(master, "ab\b \bc"));
    type("\n");
    CHECK(gives(slave, "ac\n") && gives(master, "\r\n"));
    type("one two\027three\n");
    CHECK(gives(slave, "one three\n"));
    type("gone\025kept\n");
    CHECK(gives(slave, "kept\n"));
    type("\026\003\n");
    CHECK(gives(slave, "\003\n"));
    close_pair();
}

static void control_d_ends_the_input(void) {
    char byte;
    open_pair();
    type("part\004");
    CHECK(gives(slave, "part"));
    type("\004");
    CHECK(readable(slave) && read(slave, &byte, 1) == 0);
    close_pair();
}

static void raw_input_comes_at_once_and_unchanged(void) {
    struct termios settings;
    open_pair();
    CHECK(!tcgetattr(slave, &settings));
    cfmakeraw(&settings);
    CHECK(!tcsetattr(slave, TCSANOW, &settings));
    type("a\r\003\177");
    CHECK(gives(slave, "a\r\003\177") && !(ready(master) & POLLIN));
    CHECK(write(slave, "x\n", 2) == 2 && gives(master, "x\n"));
    settings.c_cc[VMIN] = 0, settings.c_cc[VTIME] = 1;
    CHECK(!tcsetattr(slave, TCSANOW, &settings) && gives(slave, ""));
    close_pair();
}

static void echo_can_be_switched_off(void) {
    open_pair();
    change(ECHO, 0);
    type("secret\n");
    CHECK(gives(slave, "secret\n") && !(ready(master) & POLLIN));
    close_pair();
}

static void queues_can_be_flushed_and_counted(void) {
    int count;
    open_pair();
    type("line\n");
    CHECK(readable(slave) && !ioctl(slave, FIONREAD, &count) && count == 5);
    CHECK(!tcflush(slave, TCIFLUSH) && !(ready(slave) & POLLIN));
    close_pair();
}

static void sizes_are_kept(void) {
    struct winsize size = {24, 80, 0, 0}, got;
    open_pair();
    CHECK(!ioctl(master, TIOCSWINSZ, &size) && !ioctl(slave, TIOCGWINSZ, &got));
    CHECK(got.ws_row == 24 && got.ws_col == 80);
    close_pair();
}

static void the_master_sees_the_last_closing(void) {
    char byte;
    open_pair();
    close(slave);
    CHECK(ready(master) & POLLHUP && read(master, &byte, 1) == -1 && errno == EIO);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0 && !(ready(master) & POLLHUP));
    close(master);
    CHECK(ready(slave) & POLLHUP && read(slave, &byte, 1) == 0);
    CHECK(write(slave, "x", 1) == -1 && errno == EIO);
    close(slave);
}

static volatile sig_atomic_t caught;
static void catch(int number) { caught = number; }

/// Runs `body` in a child that leads a session with the slave as its terminal.
static int in_session(int (*body)(void)) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(master);
        if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0)) _exit(90);
        _exit(body());
    }
    char buffer[256];
    waitpid(child, &status, 0);
    while (ready(master) & POLLIN && read(master, buffer, sizeof buffer) > 0) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int wait_for_interrupt(void) {
    struct sigaction action = {.sa_handler = catch};
    char byte;
    sigaction(SIGINT, &action, NULL);
    if (write(slave, "ready", 5) != 5) return 1;
    if (read(slave, &byte, 1) != -1 || errno != EINTR) return 2;
    return caught == SIGINT ? 0 : 3;
}

static void control_c_interrupts_the_foreground(void) {
    int status;
    open_pair();
    pid_t child = fork();
    if (child == 0) {
        if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0)) _exit(90);
        _exit(wait_for_interrupt());
    }
    CHECK(gives(master, "ready"));
    usleep(50 * 1000);
    type("\003");
    CHECK(waitpid(child, &status, 0) == child && status == 0 && gives(master, "^C"));
    close_pair();
}

static int ask_for_groups(void) {
    int tty = open("/dev/tty", O_RDWR);
    if (tty < 0) return 1;
    if (tcgetpgrp(tty) != getpgrp() || tcgetsid(tty) != getsid(0)) return 2;
    if (tcsetpgrp(tty, 4000) != -1) return 3;
    return 0;
}

static void the_terminal_knows_its_session(void) {
    open_pair();
    CHECK(tcgetpgrp(slave) == -1 && errno == ENOTTY);
    CHECK(in_session(ask_for_groups) == 0);
    close_pair();
}

static int stop_a_background_reader(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        setpgid(0, 0);
        _exit(read(slave, &byte, 1) == 1 ? 7 : 8);
    }
    setpgid(child, child);
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) return 1;
    if (WSTOPSIG(status) != SIGTTIN) return 2;
    signal(SIGTTOU, SIG_IGN);
    if (tcsetpgrp(slave, child)) return 3;
    kill(-child, SIGCONT);
    if (waitpid(child, &status, 0) != child) return 4;
    return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 5;
}

static void a_background_reader_is_stopped_and_continues_in_the_foreground(void) {
    open_pair();
    type("x\n");
    CHECK(in_session(stop_a_background_reader) == 0);
    close_pair();
}

static int wait_for_hangup(void) {
    write(slave, "ready", 5);
    pause();
    return 1;
}

static void hanging_up_ends_the_session(void) {
    int status;
    open_pair();
    pid_t child = fork();
    if (child == 0) {
        close(master);
        if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0)) _exit(90);
        _exit(wait_for_hangup());
    }
    CHECK(gives(master, "ready"));
    close(master);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
    close(slave);
}

static void flushing_throws_away_what_was_not_read(void) {
    int waiting = -1;
    open_pair();
    change(ICANON | ECHO, 0);
    type("input");
    CHECK(write(slave, "output", 6) == 6 && readable(slave) && readable(master));
    CHECK(tcflush(slave, TCIFLUSH) == 0 && ioctl(slave, FIONREAD, &waiting) == 0 && waiting == 0);
    CHECK(gives(master, "output"));
    type("input");
    CHECK(write(slave, "output", 6) == 6 && readable(master) && readable(slave));
    CHECK(tcflush(master, TCIFLUSH) == 0 && !(ready(master) & POLLIN) && gives(slave, "input"));
    CHECK(tcflush(slave, 9) == -1 && errno == EINVAL);
    close_pair();
}

static void a_master_in_packet_mode_hears_what_happens(void) {
    int on = 1, off = 0, is_on = -1;
    struct termios settings;
    open_pair();
    CHECK(!tcgetattr(slave, &settings));
    settings.c_iflag |= IXON;
    settings.c_lflag &= ~(ICANON | ECHO);
    CHECK(!tcsetattr(slave, TCSANOW, &settings) && !ioctl(master, TIOCPKT, &on));
    CHECK(!ioctl(master, TIOCGPKT, &is_on) && is_on == 1 && !(ready(master) & (POLLIN | POLLPRI)));
    char got[16];
    CHECK(write(slave, "text", 4) == 4 && readable(master));
    CHECK(read(master, got, sizeof got) == 5 && !memcmp(got, "\0text", 5));
    CHECK(tcflush(slave, TCIFLUSH) == 0);
    CHECK(poll(&(struct pollfd){master, POLLPRI, 0}, 1, 1000) == 1);
    CHECK(read(master, got, sizeof got) == 1 && got[0] == TIOCPKT_FLUSHREAD);
    CHECK(tcflush(slave, TCOFLUSH) == 0);
    CHECK(read(master, got, sizeof got) == 1 && got[0] == TIOCPKT_FLUSHWRITE);
    CHECK(tcflow(slave, TCOOFF) == 0 && read(master, got, sizeof got) == 1 && got[0] == TIOCPKT_STOP);
    CHECK(tcflow(slave, TCOON) == 0 && read(master, got, sizeof got) == 1 && got[0] == TIOCPKT_START);
    settings.c_iflag &= ~IXON;
    CHECK(!tcsetattr(slave, TCSANOW, &settings));
    CHECK(read(master, got, sizeof got) == 1 && got[0] & TIOCPKT_NOSTOP);
    settings.c_iflag |= IXON;
    CHECK(!tcsetattr(slave, TCSANOW, &settings));
    CHECK(read(master, got, sizeof got) == 1 && got[0] & TIOCPKT_DOSTOP);
    CHECK(!ioctl(master, TIOCPKT, &off) && write(slave, "x", 1) == 1 && gives(master, "x"));
    close_pair();
}

static void who_may_not_wait_is_told_when_a_terminal_is_full(void) {
    static char many[4096];
    open_pair();
    change(ICANON | ECHO, 0);
    fcntl(master, F_SETFL, O_NONBLOCK), fcntl(slave, F_SETFL, O_NONBLOCK);
    memset(many, 'x', sizeof many);
    ssize_t count, sent = 0, got = 0;
    while ((count = write(slave, many, sizeof many)) > 0) sent += count;
    CHECK(count < 0 && errno == EAGAIN && sent > 0 && !(ready(slave) & POLLOUT));
    while ((count = read(master, many, sizeof many)) > 0) got += count;
    CHECK(count < 0 && errno == EAGAIN && got == sent && ready(slave) & POLLOUT);
    memset(many, 'x', sizeof many);
    for (sent = 0; (count = write(master, many, sizeof many)) > 0 && sent < 1 << 20;) sent += count;
    CHECK(count < 0 && errno == EAGAIN && sent > 0);
    for (got = 0; (count = read(slave, many, sizeof many)) > 0;) got += count;
    CHECK(got > 0 && got <= sent);
    close_pair();
}

int main(void) {
    TEST(a_pair_has_a_name_and_is_a_terminal);
    TEST(lines_come_whole_and_are_echoed);
    TEST(mistakes_can_be_erased);
    TEST(control_d_ends_the_input);
    TEST(raw_input_comes_at_once_and_unchanged);
    TEST(echo_can_be_switched_off);
    TEST(queues_can_be_flushed_and_counted);
    TEST(sizes_are_kept);
    TEST(the_master_sees_the_last_closing);
    TEST(control_c_interrupts_the_foreground);
    TEST(the_terminal_knows_its_session);
    TEST(a_background_reader_is_stopped_and_continues_in_the_foreground);
    TEST(hanging_up_ends_the_session);
    TEST(flushing_throws_away_what_was_not_read);
    TEST(a_master_in_packet_mode_hears_what_happens);
    TEST(who_may_not_wait_is_told_when_a_terminal_is_full);
    return check_status();
}
