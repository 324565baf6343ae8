// Pseudo terminals of users who are not root, and what a terminal does at its end: nodes and their
// owners, exclusive use, faked input, signals of a master, hanging up.
#include "check.h"
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGEXCL
#define TIOCGEXCL 0x80045440
#endif
#ifndef TIOCSIG
#define TIOCSIG 0x40045436
#endif

static int master, slave;
static char path[64];

static int open_master(void) {
    int unlock = 0, number;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) || ioctl(master, TIOCGPTN, &number)) return 0;
    sprintf(path, "/dev/pts/%d", number);
    return 1;
}

static void open_pair(void) {
    CHECK(open_master());
    slave = open(path, O_RDWR | O_NOCTTY);
    CHECK(slave >= 0);
}

static void close_pair(void) { close(slave), close(master); }

/// Whether the node's rights are those of a file system with gid=5,mode=620 or without options.
static int has_rights(const struct stat *facts, gid_t group) {
    int mode = facts->st_mode & 07777;
    return mode == 0620 ? facts->st_gid == 5 : mode == 0600 && facts->st_gid == group;
}

static int as_user(int (*body)(void)) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        gid_t none[1];
        if (setgroups(0, none) || setgid(1234) || setuid(1234)) _exit(99);
        alarm(20);
        _exit(body());
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int use_own_terminal(void) {
    struct stat facts;
    char text[16];
    umask(0777);
    if (!open_master()) return 1;
    if (stat(path, &facts) || facts.st_uid != 1234 || !has_rights(&facts, 1234)) return 2;
    if (!S_ISCHR(facts.st_mode)) return 3;
    slave = open(path, O_RDWR | O_NOCTTY);
    if (slave < 0 || write(slave, "hi\n", 3) != 3 || read(master, text, sizeof text) != 4) return 4;
    int peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    if (peer < 0 || !isatty(peer)) return 5;
    close(master);
    return stat(path, &facts) == -1 && errno == ENOENT ? 0 : 6;
}

static void a_user_owns_the_terminal_it_makes(void) { CHECK(as_user(use_own_terminal) == 0); }

static void the_node_of_root_is_roots(void) {
    struct stat facts;
    mode_t old = umask(0777);
    open_pair();
    umask(old);
    CHECK(!stat(path, &facts) && facts.st_uid == 0 && has_rights(&facts, getegid()));
    close_pair();
    CHECK(stat(path, &facts) == -1 && errno == ENOENT);
}

static int open_of_another(void) {
    if (open(path, O_RDWR | O_NOCTTY) != -1 || errno != EACCES) return 1;
    if (open(path, O_WRONLY | O_NOCTTY) != -1 || errno != EACCES) return 2;
    return 0;
}

static void others_may_not_open_it(void) {
    open_pair();
    CHECK(as_user(open_of_another) == 0);
    close_pair();
}

static int open_excluded(void) {
    return open(path, O_RDWR | O_NOCTTY) == -1 && errno == EBUSY ? 0 : 1;
}

static int open_included(void) { return open(path, O_RDWR | O_NOCTTY) < 0; }

static void a_terminal_can_be_used_exclusively(void) {
    int is_exclusive = -1;
    open_pair();
    CHECK(!chmod(path, 0666) && as_user(open_included) == 0);
    CHECK(!ioctl(slave, TIOCGEXCL, &is_exclusive) && is_exclusive == 0);
    CHECK(!ioctl(slave, TIOCEXCL) && !ioctl(slave, TIOCGEXCL, &is_exclusive) && is_exclusive == 1);
    CHECK(as_user(open_excluded) == 0);
    int again = open(path, O_RDWR | O_NOCTTY);
    CHECK(again >= 0 && !close(again));
    CHECK(!ioctl(slave, TIOCNXCL) && as_user(open_included) == 0);
    close_pair();
}

static int fake_input(void) { return ioctl(slave, TIOCSTI, "x") == -1 && errno == EPERM ? 0 : 1; }

static void only_who_may_do_all_fakes_input(void) {
    char line[16];
    open_pair();
    CHECK(as_user(fake_input) == 0);
    CHECK(!ioctl(slave, TIOCSTI, "x") && !ioctl(slave, TIOCSTI, "\n"));
    CHECK(read(slave, line, sizeof line) == 2 && line[0] == 'x' && line[1] == '\n');
    CHECK(ioctl(slave, TIOCSTI, (char *)8) == -1 && errno == EFAULT);
    close_pair();
}

/// Starts a child that leads a session with the slave as its terminal and runs `body`; returns
/// once it has said that it is there.
static pid_t session(void (*body)(void)) {
    int told[2];
    char byte;
    if (pipe(told)) return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(master), close(told[0]);
        if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0)) _exit(90);
        alarm(20);
        dup2(told[1], 100);
        body();
        _exit(91);
    }
    close(told[1]);
    ssize_t said = read(told[0], &byte, 1);
    close(told[0]);
    return said == 1 ? child : -1;
}

static void say_ready(void) {
    if (write(100, "x", 1) != 1) _exit(92);
}

static int wait_for(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void wait_for_any_signal(void) {
    say_ready();
    for (;;) pause();
}

static void a_master_signals_who_is_in_the_foreground(void) {
    int numbers[] = {SIGINT, SIGQUIT};
    for (int i = 0; i < 2; i++) {
        open_pair();
        CHECK(ioctl(master, TIOCSIG, SIGHUP) == -1 && errno == EINVAL);
        pid_t child = session(wait_for_any_signal);
        CHECK(child > 0 && !ioctl(master, TIOCSIG, numbers[i]) && wait_for(child) == 100 + numbers[i]);
        CHECK(ioctl(slave, TIOCSIG, SIGINT) == -1 && errno == ENOTTY);
        close_pair();
    }
}

static volatile sig_atomic_t hung_up, continued;
static void note(int number) {
    hung_up += number == SIGHUP;
    continued += number == SIGCONT;
}

static void lead_a_foreground_job(void) {
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGHUP, &action, NULL), sigaction(SIGCONT, &action, NULL);
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        signal(SIGHUP, SIG_DFL), signal(SIGCONT, SIG_DFL);
        close(100);
        for (;;) pause();
    }
    if (setpgid(job, job) || tcsetpgrp(slave, job)) _exit(1);
    say_ready();
    while (!hung_up || !continued) usleep(1000);
    int status;
    // It did not hear of it, and will when its session's leader ends.
    if (waitpid(job, &status, WNOHANG) != 0) _exit(2);
    char byte;
    if (read(slave, &byte, 1) != 0 || write(slave, "x", 1) != -1 || errno != EIO) _exit(3);
    if (ioctl(slave, TCGETS, &(struct termios){0}) != -1 || errno != EIO) _exit(4);
    if (open("/dev/tty", O_RDWR) != -1 || errno != ENXIO) _exit(5);
    struct pollfd p = {slave, POLLIN | POLLOUT, 0};
    if (poll(&p, 1, 0) != 1 || !(p.revents & POLLHUP) || !(p.revents & POLLERR)) _exit(6);
    kill(job, SIGKILL);
    _exit(0);
}

static void hanging_up_tells_the_leader_of_the_session(void) {
    open_pair();
    pid_t child = session(lead_a_foreground_job);
    CHECK(child > 0);
    close(master);
    CHECK(wait_for(child) == 0);
    close(slave);
}

static int job_end[2];

static void leave_a_foreground_job(void) {
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        close(100), close(job_end[0]);
        for (;;) pause();
    }
    close(job_end[1]);
    if (setpgid(job, job) || tcsetpgrp(slave, job)) _exit(1);
    say_ready();
    _exit(0);
}

static void the_end_of_a_leader_hangs_up_its_foreground_job(void) {
    char byte;
    open_pair();
    CHECK(!pipe(job_end));
    pid_t child = session(leave_a_foreground_job);
    CHECK(child > 0 && wait_for(child) == 0);
    close(job_end[1]);
    struct pollfd p = {job_end[0], POLLIN, 0};
    CHECK(poll(&p, 1, 10000) == 1 && read(job_end[0], &byte, 1) == 0);
    // The terminal is free for another session.
    child = session(wait_for_any_signal);
    CHECK(child > 0 && !kill(child, SIGKILL) && wait_for(child) == 100 + SIGKILL);
    close(job_end[0]);
    close_pair();
}

static void a_terminal_gives_an_error_once_it_is_hung_up(void) {
    char byte;
    struct termios settings;
    struct winsize size;
    open_pair();
    close(master);
    CHECK(read(slave, &byte, 1) == 0 && write(slave, "x", 1) == -1 && errno == EIO);
    CHECK(ioctl(slave, TCGETS, &settings) == -1 && errno == EIO);
    CHECK(ioctl(slave, TIOCGWINSZ, &size) == -1 && errno == EIO);
    CHECK(open(path, O_RDWR | O_NOCTTY) == -1 && errno == ENOENT);
    close(slave);
}

/// Settings without line editing and echo.
static void raw(int least, int tenths) {
    struct termios settings;
    CHECK(!tcgetattr(slave, &settings));
    settings.c_lflag &= ~(ICANON | ECHO);
    settings.c_cc[VMIN] = least, settings.c_cc[VTIME] = tenths;
    CHECK(!tcsetattr(slave, TCSANOW, &settings));
}

static int readable(int fd, int timeout_ms) {
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, timeout_ms) == 1;
}

static void raw_reads_wait_as_vmin_and_vtime_say(void) {
    char bytes[16];
    open_pair();
    raw(0, 0);
    CHECK(read(slave, bytes, 9) == 0 && write(master, "ab", 2) == 2 && readable(slave, 10000));
    CHECK(read(slave, bytes, 1) == 1 && read(slave, bytes, 9) == 1);
    raw(3, 0);
    CHECK(write(master, "ab", 2) == 2 && !readable(slave, 50) && write(master, "cd", 2) == 2);
    CHECK(readable(slave, 10000) && read(slave, bytes, 9) == 4);
    raw(3, 1);
    CHECK(write(master, "ab", 2) == 2 && read(slave, bytes, 9) == 2);
    raw(0, 1);
    CHECK(read(slave, bytes, 9) == 0 && write(master, "a", 1) == 1 && read(slave, bytes, 9) == 1);
    fcntl(slave, F_SETFL, O_NONBLOCK);
    raw(1, 0);
    CHECK(read(slave, bytes, 9) == -1 && errno == EAGAIN);
    close_pair();
}

static void input_is_translated_as_asked(void) {
    static const struct { tcflag_t flags; const char *typed, *got; } CASES[] = {
        {0, "a\r\nb", "a\r\nb"}, {ICRNL, "a\rb", "a\nb"}, {IGNCR, "a\r\nb", "a\nb"},
        {INLCR, "a\nb", "a\rb"}, {ICRNL | INLCR, "\r\n", "\n\r"}, {IGNCR | ICRNL, "a\rb", "ab"},
        {ISTRIP, "\xe1", "a"}, {IUCLC, "AbC", "abc"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct termios settings;
        char got[16];
        open_pair();
        raw(1, 0);
        CHECK(!tcgetattr(slave, &settings));
        settings.c_iflag = CASES[i].flags;
        CHECK(!tcsetattr(slave, TCSANOW, &settings));
        CHECK(write(master, CASES[i].typed, strlen(CASES[i].typed)) > 0);
        size_t want = strlen(CASES[i].got), count = 0;
        while (count < want && readable(slave, 10000)) count += read(slave, got + count, want - count);
        CHECK(!memcmp(got, CASES[i].got, want) && !readable(slave, 20));
        close_pair();
    }
}

static void output_halts_and_goes_on_by_keys(void) {
    char text[16];
    open_pair();
    struct termios settings;
    CHECK(!tcgetattr(slave, &settings));
    settings.c_iflag = IXON, settings.c_lflag = 0, settings.c_oflag = 0;
    CHECK(!tcsetattr(slave, TCSANOW, &settings) && write(master, "\023", 1) == 1);
    fcntl(slave, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 1000 && write(slave, "", 0) == 0; i++) {
        struct pollfd p = {slave, POLLOUT, 0};
        if (poll(&p, 1, 0) == 0) break;
        usleep(1000);
    }
    CHECK(write(slave, "a", 1) == -1 && errno == EAGAIN && !readable(master, 20));
    CHECK(write(master, "x", 1) == 1 && !readable(master, 20));
    CHECK(write(master, "\021", 1) == 1);
    struct pollfd p = {slave, POLLOUT, 0};
    CHECK(poll(&p, 1, 10000) == 1 && write(slave, "b", 1) == 1 && readable(master, 10000));
    CHECK(read(master, text, 9) == 1 && text[0] == 'b');
    // The keys themselves are not input.
    CHECK(readable(slave, 10000) && read(slave, text, 9) == 1 && text[0] == 'x');
    close_pair();
}

int main(void) {
    TEST(a_user_owns_the_terminal_it_makes);
    TEST(the_node_of_root_is_roots);
    TEST(others_may_not_open_it);
    TEST(a_terminal_can_be_used_exclusively);
    TEST(only_who_may_do_all_fakes_input);
    TEST(a_master_signals_who_is_in_the_foreground);
    TEST(hanging_up_tells_the_leader_of_the_session);
    TEST(the_end_of_a_leader_hangs_up_its_foreground_job);
    TEST(a_terminal_gives_an_error_once_it_is_hung_up);
    TEST(raw_reads_wait_as_vmin_and_vtime_say);
    TEST(input_is_translated_as_asked);
    TEST(output_halts_and_goes_on_by_keys);
    return check_status();
}
