// Pipes and FIFOs.
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static int r, w;

static void open_pipe(int flags) {
    int ends[2];
    CHECK(!pipe2(ends, flags));
    r = ends[0], w = ends[1];
}

static void close_pipe(void) { close(r), close(w); }

static short ready(int fd) {
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    poll(&p, 1, 0);
    return p.revents;
}

static void bytes_come_out_in_order(void) {
    char in[5000], out[5000];
    open_pipe(0);
    for (int i = 0; i < 5000; i++) in[i] = (char)(i * 7);
    for (int round = 0; round < 100; round++) {
        CHECK(write(w, in, 5000) == 5000);
        CHECK(read(r, out, 100) == 100 && !memcmp(in, out, 100));
        CHECK(read(r, out, 5000) == 4900 && !memcmp(in + 100, out, 4900));
    }
    close_pipe();
}

static void a_full_pipe_takes_no_more_and_goes_on_after_a_page_is_read(void) {
    char page[4096] = {0};
    int total = 0;
    open_pipe(O_NONBLOCK);
    while (write(w, page, sizeof page) == 4096) total += 4096;
    CHECK(errno == EAGAIN && total == 65536 && fcntl(w, F_GETPIPE_SZ) == 65536);
    CHECK(ready(w) == 0);
    CHECK(read(r, page, sizeof page) == 4096 && ready(w) == POLLOUT);
    CHECK(write(w, page, 4096) == 4096 && ready(w) == 0);
    close_pipe();
}

static void the_capacity_changes_and_keeps_what_is_inside(void) {
    char byte = 'x', bytes[8192] = {0};
    open_pipe(O_NONBLOCK);
    CHECK(write(w, &byte, 1) == 1);
    CHECK(fcntl(w, F_SETPIPE_SZ, 100000) == 131072);
    CHECK(write(w, bytes, 8192) == 8192);
    CHECK(fcntl(w, F_SETPIPE_SZ, 4096) == -1 && errno == EBUSY);
    CHECK(read(r, bytes, sizeof bytes) == 8192 && bytes[0] == 'x');
    close_pipe();
}

static void fionread_counts(void) {
    int count;
    open_pipe(0);
    CHECK(write(w, "abc", 3) == 3 && !ioctl(r, FIONREAD, &count) && count == 3);
    close_pipe();
}

static void the_end_shows_when_the_last_writer_goes(void) {
    char byte;
    open_pipe(0);
    int second = dup(w);
    close(w);
    CHECK(ready(r) == 0 && write(second, "x", 1) == 1);
    close(second);
    CHECK(ready(r) == (POLLIN | POLLHUP));
    CHECK(read(r, &byte, 1) == 1 && read(r, &byte, 1) == 0 && ready(r) == POLLHUP);
    close(r);
}

static volatile sig_atomic_t signals;
static void count_signal(int number) { (void)number, signals++; }

static void writing_without_readers_is_sigpipe_and_epipe(void) {
    signal(SIGPIPE, count_signal);
    open_pipe(0);
    close(r);
    signals = 0;
    CHECK(ready(w) == (POLLOUT | POLLERR));
    CHECK(write(w, "x", 1) == -1 && errno == EPIPE && signals == 1);
    signal(SIGPIPE, SIG_IGN);
    CHECK(write(w, "x", 1) == -1 && errno == EPIPE && signals == 1);
    signal(SIGPIPE, SIG_DFL);
    close(w);
}

static void packets_stay_apart(void) {
    char buffer[100];
    open_pipe(O_DIRECT);
    CHECK(write(w, "first", 5) == 5 && write(w, "second", 6) == 6);
    CHECK(read(r, buffer, 3) == 3 && !memcmp(buffer, "fir", 3));
    CHECK(read(r, buffer, 100) == 6 && !memcmp(buffer, "second", 6));
    close_pipe();
}

enum { WRITERS = 4, LINES = 500 };

static void *write_lines(void *letter) {
    char line[1000];
    memset(line, *(char *)letter, sizeof line);
    for (int i = 0; i < LINES; i++)
        if (write(w, line, sizeof line) != sizeof line) return letter;
    return NULL;
}

static void writes_of_several_threads_do_not_mix(void) {
    pthread_t threads[WRITERS];
    char letters[WRITERS] = "abcd", line[1000];
    int seen = 0;
    open_pipe(0);
    for (int i = 0; i < WRITERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, write_lines, &letters[i]));
    for (int i = 0; i < WRITERS * LINES; i++) {
        size_t got = 0;
        while (got < sizeof line) got += read(r, line + got, sizeof line - got);
        int same = 1;
        for (size_t k = 1; k < sizeof line; k++) same &= line[k] == line[0];
        seen += same;
    }
    for (int i = 0; i < WRITERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        CHECK(!failed);
    }
    CHECK(seen == WRITERS * LINES);
    close_pipe();
}

static void a_child_reads_what_its_parent_writes(void) {
    int status;
    static char bytes[300000];
    open_pipe(0);
    pid_t child = fork();
    if (child == 0) {
        size_t total = 0;
        ssize_t count;
        close(w);
        while ((count = read(r, bytes, 77777)) > 0) total += count;
        _exit(total == sizeof bytes ? 0 : 1);
    }
    close(r);
    CHECK(write(w, bytes, sizeof bytes) == sizeof bytes);
    close(w);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void splice_and_tee_move_and_copy(void) {
    char buffer[16] = {0};
    int other[2];
    open_pipe(0);
    CHECK(!pipe(other) && write(w, "hello", 5) == 5);
    CHECK(tee(r, other[1], 3, 0) == 3 && read(other[0], buffer, 16) == 3);
    CHECK(!memcmp(buffer, "hel", 3));
    CHECK(splice(r, NULL, other[1], NULL, 16, 0) == 5 && read(other[0], buffer, 16) == 5);
    CHECK(!memcmp(buffer, "hello", 5));
    close(other[0]), close(other[1]);
    close_pipe();
}

static void splice_goes_to_and_from_a_file(void) {
    char name[] = "/tmp/splice-XXXXXX", buffer[16] = {0};
    int file = mkstemp(name);
    loff_t offset = 2;
    CHECK(file >= 0);
    unlink(name);
    open_pipe(0);
    CHECK(write(w, "abcdef", 6) == 6 && splice(r, NULL, file, NULL, 6, 0) == 6);
    CHECK(splice(file, &offset, w, NULL, 3, 0) == 3 && offset == 5);
    CHECK(read(r, buffer, 16) == 3 && !memcmp(buffer, "cde", 3));
    close(file);
    close_pipe();
}

static int full[2];

static void *splice_a_page(void *nothing) {
    (void)nothing;
    return (void *)splice(r, NULL, full[0], NULL, PAGE, 0);
}

static void *read_a_page(void *to) { return (void *)read(r, to, PAGE); }

static void what_a_splice_waits_to_pass_on_goes_to_no_other_reader(void) {
    static char page[PAGE];
    pthread_t splicer, reader;
    void *spliced, *taken;
    size_t filled = 0, emptied = 0;
    open_pipe(0);
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, full));
    for (ssize_t sent; (sent = send(full[0], page, PAGE, MSG_DONTWAIT)) > 0;) filled += sent;
    for (char letter = 'a'; letter <= 'b'; letter++) {
        memset(page, letter, PAGE);
        CHECK(write(w, page, PAGE) == PAGE);
    }
    CHECK(!pthread_create(&splicer, NULL, splice_a_page, NULL));
    usleep(50000);
    CHECK(!pthread_create(&reader, NULL, read_a_page, page));
    usleep(50000);
    static char got[PAGE];
    for (ssize_t count; emptied < filled + PAGE; emptied += count)
        CHECK((count = recv(full[1], got, PAGE, 0)) > 0);
    pthread_join(splicer, &spliced), pthread_join(reader, &taken);
    CHECK((long)spliced == PAGE && got[0] == 'a' && emptied == filled + PAGE);
    CHECK((long)taken == PAGE && page[0] == 'b' && page[PAGE - 1] == 'b');
    close(full[0]), close(full[1]);
    close_pipe();
}

static void *open_reader(void *name) { return (void *)(long)open(name, O_RDONLY); }

static void a_fifo_brings_reader_and_writer_together(void) {
    char name[] = "/tmp/fifo-XXXXXX", buffer[8];
    void *reader;
    pthread_t thread;
    CHECK(mkdtemp(name) && !rmdir(name) && !mkfifo(name, 0600));
    CHECK(open(name, O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
    CHECK(!pthread_create(&thread, NULL, open_reader, name));
    int writer = open(name, O_WRONLY);
    pthread_join(thread, &reader);
    CHECK(writer >= 0 && (long)reader >= 0 && write(writer, "hi", 2) == 2);
    CHECK(read((long)reader, buffer, 8) == 2);
    close(writer);
    CHECK(read((long)reader, buffer, 8) == 0);
    close((long)reader);
    int waits_for_nobody = open(name, O_RDONLY | O_NONBLOCK);
    CHECK(waits_for_nobody >= 0 && ready(waits_for_nobody) == 0);
    CHECK(read(waits_for_nobody, buffer, 8) == 0);
    close(waits_for_nobody);
    int both = open(name, O_RDWR);
    CHECK(both >= 0 && write(both, "x", 1) == 1 && read(both, buffer, 8) == 1);
    close(both);
    unlink(name);
}

static void a_signal_interrupts_a_read(void) {
    char byte;
    struct sigaction action = {.sa_handler = count_signal};
    open_pipe(0);
    signals = 0;
    sigaction(SIGALRM, &action, NULL);
    alarm(1);
    CHECK(read(r, &byte, 1) == -1 && errno == EINTR && signals == 1);
    close_pipe();
}

static void bad_flags_and_addresses_are_refused(void) {
    int ends[2];
    void *volatile bad = (void *)8;
    CHECK(pipe2(ends, O_APPEND) == -1 && errno == EINVAL);
    CHECK(pipe(bad) == -1 && errno == EFAULT);
    open_pipe(0);
    CHECK(write(r, "x", 1) == -1 && errno == EBADF);
    CHECK(read(w, ends, 1) == -1 && errno == EBADF);
    CHECK(write(w, bad, 10) == -1 && errno == EFAULT);
    CHECK(lseek(r, 0, SEEK_SET) == -1 && errno == ESPIPE);
    struct stat facts;
    CHECK(!fstat(r, &facts) && S_ISFIFO(facts.st_mode));
    close_pipe();
}

static void vmsplice_takes_what_fits_and_waits_for_the_first_page_only(void) {
    static char many[200000] __attribute__((aligned(PAGE)));
    struct iovec all = {many, sizeof many};
    memset(many, 'v', sizeof many);
    open_pipe(0);
    CHECK(vmsplice(w, &all, 1, 0) == 65536);
    CHECK(vmsplice(w, &all, 1, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    CHECK(read(r, many, PAGE) == PAGE);
    CHECK(vmsplice(w, &all, 1, SPLICE_F_NONBLOCK) == PAGE);
    for (int had = 0; had < 65536;) {
        ssize_t count = vmsplice(r, &all, 1, 0);
        CHECK(count > 0);
        had += count;
    }
    CHECK(vmsplice(r, &all, 1, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN);
    close_pipe();
}

int main(void) {
    TEST(bytes_come_out_in_order);
    TEST(a_full_pipe_takes_no_more_and_goes_on_after_a_page_is_read);
    TEST(the_capacity_changes_and_keeps_what_is_inside);
    TEST(fionread_counts);
    TEST(the_end_shows_when_the_last_writer_goes);
    TEST(writing_without_readers_is_sigpipe_and_epipe);
    TEST(packets_stay_apart);
    TEST(writes_of_several_threads_do_not_mix);
    TEST(a_child_reads_what_its_parent_writes);
    TEST(splice_and_tee_move_and_copy);
    TEST(splice_goes_to_and_from_a_file);
    TEST(what_a_splice_waits_to_pass_on_goes_to_no_other_reader);
    TEST(a_fifo_brings_reader_and_writer_together);
    TEST(a_signal_interrupts_a_read);
    TEST(bad_flags_and_addresses_are_refused);
    TEST(vmsplice_takes_what_fits_and_waits_for_the_first_page_only);
    return check_status();
}
