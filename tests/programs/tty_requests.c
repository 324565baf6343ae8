// Requests on terminals of System V's termio, and what a master may ask about its session.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "check.h"

static int master, slave;

static void open_pair(void) {
    master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0);
}

static void close_pair(void) { close(master), close(slave); }

// The kernel's `struct termio`.
struct old {
    unsigned short input, output, control, local;
    unsigned char line, special[8];
};

static void old_settings_are_the_first_half_of_the_new(void) {
    open_pair();
    struct termios now;
    struct old old;
    CHECK(tcgetattr(slave, &now) == 0 && ioctl(slave, TCGETA, &old) == 0);
    CHECK(old.input == (unsigned short)now.c_iflag && old.output == (unsigned short)now.c_oflag);
    CHECK(old.control == (unsigned short)now.c_cflag && old.local == (unsigned short)now.c_lflag);
    CHECK(old.line == now.c_line && memcmp(old.special, now.c_cc, sizeof old.special) == 0);
    close_pair();
}

static void setting_them_keeps_what_they_do_not_show(void) {
    static const int REQUESTS[] = {TCSETA, TCSETAW, TCSETAF};
    for (int i = 0; i < 3; i++) {
        open_pair();
        struct termios now;
        struct old old;
        tcgetattr(slave, &now);
        now.c_cc[VLNEXT] = 'x';
        tcsetattr(slave, TCSANOW, &now);
        ioctl(slave, TCGETA, &old);
        old.local &= ~(ICANON | ECHO);
        old.special[VMIN] = 1, old.special[VTIME] = 0, old.special[VINTR] = 'q';
        CHECK(ioctl(slave, REQUESTS[i], &old) == 0);
        CHECK(tcgetattr(slave, &now) == 0 && (now.c_lflag & (ICANON | ECHO)) == 0);
        CHECK(now.c_cc[VINTR] == 'q' && now.c_cc[VLNEXT] == 'x');
        char byte;
        CHECK(write(master, "a", 1) == 1 && read(slave, &byte, 1) == 1 && byte == 'a');
        close_pair();
    }
}

static int readable(void) {
    int count = -1;
    ioctl(slave, FIONREAD, &count);
    return count;
}

static void only_tcsetaf_throws_input_away(void) {
    open_pair();
    struct old old;
    ioctl(slave, TCGETA, &old);
    old.local &= ~ICANON;
    CHECK(ioctl(slave, TCSETA, &old) == 0 && write(master, "abc", 3) == 3);
    // Linux hands it on from a queue of its own.
    while (readable() != 3) usleep(1000);
    CHECK(ioctl(slave, TCSETAW, &old) == 0 && readable() == 3);
    CHECK(ioctl(slave, TCSETAF, &old) == 0 && readable() == 0);
    CHECK(ioctl(slave, TCSETA, (void *)8) == -1 && errno == EFAULT);
    CHECK(ioctl(slave, TCGETA, (void *)8) == -1 && errno == EFAULT);
    close_pair();
}

static void flow_and_flushing_know_their_arguments(void) {
    open_pair();
    CHECK(ioctl(slave, TCSBRK, 1) == 0 && ioctl(slave, TCSBRK, 0) == 0);
    CHECK(ioctl(slave, TCXONC, TCOOFF) == 0 && ioctl(slave, TCXONC, TCOON) == 0);
    CHECK(ioctl(slave, TCXONC, 4) == -1 && errno == EINVAL);
    CHECK(ioctl(slave, TCFLSH, TCIOFLUSH) == 0);
    CHECK(ioctl(slave, TCFLSH, 3) == -1 && errno == EINVAL);
    close_pair();
}

static void a_terminal_tells_its_session_to_its_master(void) {
    open_pair();
    int told[2];
    pid_t session, group;
    CHECK(ioctl(master, TIOCGSID, &session) == -1 && errno == ENOTTY);
    CHECK(ioctl(master, TIOCGPGRP, &group) == 0 && group == 0);
    CHECK(pipe(told) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) != 0 || write(told[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte;
    CHECK(read(told[0], &byte, 1) == 1);
    CHECK(ioctl(master, TIOCGSID, &session) == 0 && session == child);
    CHECK(ioctl(master, TIOCGPGRP, &group) == 0 && group == child);
    CHECK(tcgetpgrp(master) == child && tcgetsid(master) == child);
    // Who is not of the session may not ask the terminal itself, nor change anything.
    CHECK(ioctl(slave, TIOCGSID, &session) == -1 && errno == ENOTTY);
    CHECK(ioctl(slave, TIOCGPGRP, &group) == -1 && errno == ENOTTY);
    CHECK(ioctl(master, TIOCSPGRP, &child) == -1 && errno == ENOTTY);
    CHECK(ioctl(slave, TIOCNOTTY) == -1 && errno == ENOTTY);
    CHECK(ioctl(master, TIOCNOTTY) == -1 && errno == ENOTTY);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(told[0]), close(told[1]);
    close_pair();
}

static int leave(void) {
    pid_t session;
    if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) != 0) return 1;
    if (ioctl(slave, TIOCGSID, &session) != 0 || session != getpid()) return 2;
    signal(SIGHUP, SIG_IGN);
    if (ioctl(slave, TIOCNOTTY) != 0) return 3;
    if (open("/dev/tty", O_RDWR) != -1 || errno != ENXIO) return 4;
    return ioctl(slave, TIOCGSID, &session) == -1 && errno == ENOTTY ? 0 : 5;
}

static void a_session_can_leave_its_terminal(void) {
    open_pair();
    pid_t child = fork();
    if (child == 0) _exit(leave());
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close_pair();
}

int main(void) {
    TEST(old_settings_are_the_first_half_of_the_new);
    TEST(setting_them_keeps_what_they_do_not_show);
    TEST(only_tcsetaf_throws_input_away);
    TEST(flow_and_flushing_know_their_arguments);
    TEST(a_terminal_tells_its_session_to_its_master);
    TEST(a_session_can_leave_its_terminal);
    return check_status();
}
