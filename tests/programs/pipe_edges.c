// Pipes at their edges: sizes and their limits, packets, readiness at exact fullness, splice and
// tee.
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int in, out;
static char page[4096], many[1 << 17];

static void open_pipe(int flags) {
    int ends[2];
    CHECK(!pipe2(ends, flags));
    in = ends[0], out = ends[1];
}

static void close_pipe(void) { close(in), close(out); }

static short ready(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    poll(&p, 1, 0);
    return p.revents;
}

static int waiting(void) {
    int count = -1;
    ioctl(in, FIONREAD, &count);
    return count;
}

static void sizes_are_powers_of_two_of_pages(void) {
    open_pipe(0);
    CHECK(fcntl(in, F_GETPIPE_SZ) == 65536 && fcntl(out, F_SETPIPE_SZ, 1) == 4096);
    CHECK(fcntl(in, F_SETPIPE_SZ, 4097) == 8192 && fcntl(out, F_GETPIPE_SZ) == 8192);
    CHECK(fcntl(in, F_SETPIPE_SZ, 0) == 4096);
    CHECK(fcntl(in, F_SETPIPE_SZ, 1 << 20) == 1 << 20);
    CHECK(fcntl(0, F_SETPIPE_SZ, 4096) == -1 && errno == EBADF);
    close_pipe();
}

static void a_pipe_does_not_shrink_below_what_it_holds(void) {
    open_pipe(0);
    CHECK(write(out, many, 9000) == 9000 && fcntl(in, F_SETPIPE_SZ, 8192) == -1 && errno == EBUSY);
    CHECK(fcntl(in, F_SETPIPE_SZ, 16384) == 16384 && read(in, many, 9000) == 9000);
    CHECK(fcntl(in, F_SETPIPE_SZ, 4096) == 4096);
    close_pipe();
}

static int as_user(int (*body)(void)) {
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(setgid(4321) || setuid(4321) ? 99 : body());
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int meet_the_limit(void) {
    int ends[2];
    if (pipe(ends)) return 1;
    if (fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) != 1 << 20) return 2;
    if (fcntl(ends[0], F_SETPIPE_SZ, (1 << 20) + 1) != -1 || errno != EPERM) return 3;
    return 0;
}

static void a_user_makes_no_pipes_larger_than_the_limit(void) {
    CHECK(as_user(meet_the_limit) == 0);
}

static int use_up_pages(void) {
    int small = 0, ends[2];
    // 16384 pages are a user's (fs.pipe-user-pages-soft): then pipes get two pages, or one.
    for (int i = 0; i < 480 && !small; i++) {
        if (pipe(ends)) return 1;
        int size = fcntl(ends[0], F_GETPIPE_SZ);
        if (size == 65536 && i < 60 && fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) != 1 << 20) return 2;
        small = size < 65536;
        if (small && size != 8192) return 3;
    }
    if (!small) return 4;
    return fcntl(ends[0], F_SETPIPE_SZ, 65536) == -1 && errno == EPERM ? 0 : 5;
}

static void a_user_with_many_pages_gets_small_pipes(void) {
    CHECK(as_user(use_up_pages) == 0);
}

static void packets_are_read_one_by_one(void) {
    open_pipe(O_DIRECT | O_NONBLOCK);
    CHECK(fcntl(out, F_GETFL) & O_DIRECT);
    CHECK(write(out, "abc", 3) == 3 && write(out, "de", 2) == 2 && waiting() == 5);
    CHECK(read(in, page, 2) == 2 && read(in, page, 9) == 2 && page[0] == 'd');
    CHECK(write(out, "", 0) == 0 && read(in, page, 9) == -1 && errno == EAGAIN);
    CHECK(write(out, many, 5000) == 5000 && read(in, many, 9000) == 4096 && read(in, many, 9000) == 904);
    struct iovec parts[2] = {{"ab", 2}, {"cd", 2}};
    CHECK(writev(out, parts, 2) == 4 && read(in, page, 9) == 4);
    close_pipe();
}

static void packets_can_be_turned_off_and_on(void) {
    open_pipe(O_DIRECT | O_NONBLOCK);
    CHECK(write(out, "abc", 3) == 3 && !fcntl(out, F_SETFL, O_NONBLOCK) && write(out, "de", 2) == 2);
    CHECK(write(out, "fg", 2) == 2 && read(in, page, 9) == 3 && read(in, page, 9) == 4);
    CHECK(!fcntl(out, F_SETFL, O_DIRECT | O_NONBLOCK) && write(out, "h", 1) == 1 && write(out, "i", 1) == 1);
    CHECK(read(in, page, 9) == 1 && read(in, page, 9) == 1 && page[0] == 'i');
    close_pipe();
}

static void as_many_packets_fit_as_pages(void) {
    int count = 0;
    open_pipe(O_DIRECT | O_NONBLOCK);
    CHECK(fcntl(in, F_SETPIPE_SZ, 16384) == 16384);
    while (write(out, "x", 1) == 1) count++;
    CHECK(count == 4 && errno == EAGAIN && ready(out) == 0 && read(in, page, 9) == 1);
    CHECK(ready(out) == POLLOUT);
    close_pipe();
}

static void readiness_is_exact_at_fullness(void) {
    open_pipe(O_NONBLOCK);
    CHECK(fcntl(in, F_SETPIPE_SZ, 8192) == 8192 && write(out, many, 4097) == 4097);
    CHECK(ready(out) == 0 && write(out, many, 4095) == 4095 && write(out, many, 1) == -1 && errno == EAGAIN);
    CHECK(read(in, many, 4095) == 4095 && ready(out) == 0 && write(out, many, 1) == -1);
    CHECK(read(in, many, 1) == 1 && ready(out) == POLLOUT && waiting() == 4096);
    // What must pass at once does so or not at all; the rest as far as there is room.
    CHECK(write(out, many, 4097) == 4096 && waiting() == 8192);
    CHECK(read(in, many, 4096) == 4096 && write(out, many, 4096) == 4096 && ready(out) == 0);
    close_pipe();
}

static void the_end_is_told_as_it_comes(void) {
    open_pipe(0);
    CHECK(ready(in) == 0 && ready(out) == POLLOUT && write(out, "a", 1) == 1);
    close(out);
    CHECK(ready(in) == (POLLIN | POLLHUP) && read(in, page, 9) == 1 && ready(in) == POLLHUP);
    CHECK(read(in, page, 9) == 0);
    close(in);
    open_pipe(0);
    close(in);
    CHECK(ready(out) == (POLLOUT | POLLERR));
    signal(SIGPIPE, SIG_IGN);
    CHECK(write(out, "a", 1) == -1 && errno == EPIPE);
    signal(SIGPIPE, SIG_DFL);
    close(out);
}

static void tee_copies_and_leaves(void) {
    int other[2];
    open_pipe(O_NONBLOCK);
    CHECK(!pipe2(other, O_NONBLOCK) && tee(in, other[1], 9, 0) == -1 && errno == EAGAIN);
    CHECK(write(out, "abcdef", 6) == 6 && tee(in, other[1], 4, 0) == 4 && waiting() == 6);
    CHECK(read(other[0], page, 9) == 4 && !memcmp(page, "abcd", 4) && tee(in, other[1], 0, 0) == 0);
    CHECK(tee(in, out, 4, 0) == -1 && errno == EINVAL);
    CHECK(tee(out, other[1], 4, 0) == -1 && errno == EBADF && tee(in, other[0], 4, 0) == -1 && errno == EBADF);
    CHECK(tee(in, other[1], 4, 0x100) == -1 && errno == EINVAL);
    CHECK(fcntl(other[1], F_SETPIPE_SZ, 4096) == 4096 && write(other[1], page, 4096) == 4096);
    CHECK(tee(in, other[1], 4, 0) == -1 && errno == EAGAIN);
    close(out);
    CHECK(read(other[0], page, 4096) == 4096 && read(in, page, 9) == 6 && tee(in, other[1], 4, 0) == 0);
    close(in), close(other[0]), close(other[1]);
}

static void splice_knows_its_arguments(void) {
    int other[2], file = open("/tmp/pipe-edges", O_CREAT | O_TRUNC | O_RDWR, 0600);
    loff_t at = 0;
    open_pipe(O_NONBLOCK);
    CHECK(!pipe2(other, O_NONBLOCK) && write(file, "abcdef", 6) == 6);
    CHECK(splice(file, NULL, file, NULL, 4, 0) == -1 && errno == EINVAL);
    CHECK(splice(in, &at, other[1], NULL, 4, 0) == -1 && errno == ESPIPE);
    CHECK(splice(file, NULL, out, &at, 4, 0) == -1 && errno == ESPIPE);
    CHECK(splice(in, NULL, out, NULL, 4, 0) == -1 && errno == EINVAL);
    CHECK(splice(file, NULL, out, NULL, 4, 0x100) == -1 && errno == EINVAL);
    CHECK(splice(file, NULL, in, NULL, 4, 0) == -1 && errno == EBADF);
    CHECK(splice(file, NULL, out, NULL, 0, 0) == 0 && splice(file, NULL, out, NULL, 4, 0) == 0);
    at = 1;
    CHECK(splice(file, &at, out, NULL, 3, 0) == 3 && at == 4 && lseek(file, 0, SEEK_CUR) == 6);
    CHECK(splice(in, NULL, other[1], NULL, 9, 0) == 3 && read(other[0], page, 9) == 3 && !memcmp(page, "bcd", 3));
    CHECK(splice(in, NULL, other[1], NULL, 9, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    CHECK(write(out, "xyz", 3) == 3 && !fcntl(file, F_SETFL, O_APPEND));
    CHECK(splice(in, NULL, file, NULL, 3, 0) == -1 && errno == EINVAL && !fcntl(file, F_SETFL, 0));
    at = 2;
    CHECK(splice(in, NULL, file, &at, 2, 0) == 2 && at == 4 && waiting() == 1);
    CHECK(pread(file, page, 9, 0) == 6 && !memcmp(page, "abxyef", 6));
    close(out);
    CHECK(splice(in, NULL, other[1], NULL, 9, 0) == 1 && splice(in, NULL, other[1], NULL, 9, 0) == 0);
    close(in);
    signal(SIGPIPE, SIG_IGN);
    close(other[0]);
    CHECK(splice(file, NULL, other[1], NULL, 9, 0) == -1 || lseek(file, 0, SEEK_CUR) == 6);
    CHECK(lseek(file, 0, SEEK_SET) == 0 && splice(file, NULL, other[1], NULL, 9, 0) == -1 && errno == EPIPE);
    signal(SIGPIPE, SIG_DFL);
    close(other[1]), close(file), unlink("/tmp/pipe-edges");
}

static void a_spliced_pipe_fills_another_exactly(void) {
    int other[2];
    open_pipe(O_NONBLOCK);
    CHECK(!pipe2(other, O_NONBLOCK) && fcntl(other[1], F_SETPIPE_SZ, 8192) == 8192);
    CHECK(write(out, many, 12288) == 12288 && splice(in, NULL, other[1], NULL, 12288, 0) == 8192);
    CHECK(waiting() == 4096 && splice(in, NULL, other[1], NULL, 1, 0) == -1 && errno == EAGAIN);
    CHECK(ready(other[1]) == 0 && read(other[0], many, 4096) == 4096 && ready(other[1]) == POLLOUT);
    CHECK(splice(in, NULL, other[1], NULL, 9999, 0) == 4096 && waiting() == 0);
    close_pipe(), close(other[0]), close(other[1]);
}

static void a_named_pipe_opens_as_its_ends_say(void) {
    unlink("/tmp/pipe-edges.fifo");
    CHECK(!mkfifo("/tmp/pipe-edges.fifo", 0600));
    CHECK(open("/tmp/pipe-edges.fifo", O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
    in = open("/tmp/pipe-edges.fifo", O_RDONLY | O_NONBLOCK);
    CHECK(in >= 0 && ready(in) == 0 && read(in, page, 9) == 0);
    out = open("/tmp/pipe-edges.fifo", O_WRONLY | O_NONBLOCK);
    CHECK(out >= 0 && read(in, page, 9) == -1 && errno == EAGAIN && fcntl(in, F_SETPIPE_SZ, 4096) == 4096);
    CHECK(write(out, "ab", 2) == 2);
    close(out);
    CHECK(ready(in) == (POLLIN | POLLHUP) && read(in, page, 9) == 2 && ready(in) == POLLHUP);
    out = open("/tmp/pipe-edges.fifo", O_RDWR | O_NONBLOCK);
    CHECK(out >= 0 && ready(in) == 0 && lseek(in, 0, SEEK_CUR) == -1 && errno == ESPIPE);
    close_pipe();
    unlink("/tmp/pipe-edges.fifo");
}

static int opens_its_own(void) {
    char name[32];
    struct stat known;
    open_pipe(0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", in);
    int again = open(name, O_RDONLY);
    int is_right = again >= 0 && !fstat(in, &known) && known.st_uid == 4321 && known.st_gid == 4321 &&
                   (known.st_mode & 07777) == 0600 && write(out, "ab", 2) == 2 && read(again, page, 9) == 2;
    return !is_right;
}

static int opens_anothers(void) {
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", in);
    return !(open(name, O_RDONLY) == -1 && errno == EACCES);
}

static void a_pipe_is_opened_again_by_the_user_who_made_it(void) {
    CHECK(as_user(opens_its_own) == 0);
    open_pipe(0);
    CHECK(as_user(opens_anothers) == 0);
    close_pipe();
}

int main(void) {
    TEST(sizes_are_powers_of_two_of_pages);
    TEST(a_pipe_does_not_shrink_below_what_it_holds);
    TEST(a_user_makes_no_pipes_larger_than_the_limit);
    TEST(a_user_with_many_pages_gets_small_pipes);
    TEST(packets_are_read_one_by_one);
    TEST(packets_can_be_turned_off_and_on);
    TEST(as_many_packets_fit_as_pages);
    TEST(readiness_is_exact_at_fullness);
    TEST(the_end_is_told_as_it_comes);
    TEST(tee_copies_and_leaves);
    TEST(splice_knows_its_arguments);
    TEST(a_spliced_pipe_fills_another_exactly);
    TEST(a_named_pipe_opens_as_its_ends_say);
    TEST(a_pipe_is_opened_again_by_the_user_who_made_it);
    return check_status();
}
