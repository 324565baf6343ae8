// System V messages: types, bounds, waits.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { KEY = 0x3533 };

struct letter {
    long kind;
    char bytes[64];
};

static int queue(void) {
    int id = msgget(IPC_PRIVATE, 0600);
    CHECK(id >= 0);
    return id;
}

static int send(int id, long kind, const char *text) {
    struct letter letter = {.kind = kind};
    snprintf(letter.bytes, sizeof letter.bytes, "%s", text);
    return msgsnd(id, &letter, strlen(text), IPC_NOWAIT);
}

// Whether the next message for `kind` is `text`.
static int receive(int id, long kind, int flags, const char *text) {
    struct letter letter = {0};
    ssize_t len = msgrcv(id, &letter, sizeof letter.bytes, kind, flags | IPC_NOWAIT);
    return len == (ssize_t)strlen(text) && memcmp(letter.bytes, text, len) == 0;
}

static struct msqid_ds status_of(int id) {
    struct msqid_ds status;
    CHECK(msgctl(id, IPC_STAT, &status) == 0);
    return status;
}

static void discard(int id) { CHECK(msgctl(id, IPC_RMID, 0) == 0); }

static int is_ok(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void keys_name_queues(void) {
    int id = msgget(KEY, IPC_CREAT | IPC_EXCL | 0600);
    CHECK(id >= 0 && msgget(KEY, 0) == id);
    CHECK(msgget(KEY, IPC_CREAT | IPC_EXCL) == -1 && errno == EEXIST);
    CHECK(msgget(KEY + 1, 0) == -1 && errno == ENOENT);
    struct msqid_ds status = status_of(id);
    CHECK(status.msg_qnum == 0 && status.msg_qbytes == 16384 && status.msg_ctime > 0);
    discard(id);
    CHECK(msgget(KEY, 0) == -1 && errno == ENOENT);
}

static void messages_are_picked_by_type(void) {
    int id = queue();
    CHECK(send(id, 5, "a") == 0 && send(id, 3, "b") == 0 && send(id, 5, "c") == 0);
    CHECK(send(id, 1, "d") == 0 && status_of(id).msg_qnum == 4);
    CHECK(receive(id, 5, 0, "a") && receive(id, -4, 0, "d"));
    CHECK(receive(id, 3, MSG_EXCEPT, "c") && receive(id, 0, 0, "b"));
    CHECK(!receive(id, 0, 0, "") && errno == ENOMSG);
    CHECK(send(id, 0, "x") == -1 && errno == EINVAL);
    CHECK(status_of(id).msg_lspid == getpid() && status_of(id).msg_lrpid == getpid());
    discard(id);
}

static void long_messages_are_refused_or_cut(void) {
    int id = queue();
    struct letter letter = {0};
    CHECK(send(id, 1, "too long") == 0);
    CHECK(msgrcv(id, &letter, 3, 0, IPC_NOWAIT) == -1 && errno == E2BIG);
    CHECK(msgrcv(id, &letter, 3, 0, IPC_NOWAIT | MSG_NOERROR) == 3);
    CHECK(memcmp(letter.bytes, "too", 3) == 0 && status_of(id).msg_qnum == 0);
    static char large[8 + 8193] = {1};
    CHECK(msgsnd(id, large, 8193, 0) == -1 && errno == EINVAL);
    CHECK(msgsnd(id, large, 8192, 0) == 0 && msgsnd(id, large, 8192, 0) == 0);
    CHECK(msgsnd(id, large, 1, IPC_NOWAIT) == -1 && errno == EAGAIN);
    discard(id);
}

static void who_waits_goes_on(void) {
    int id = queue();
    pid_t child = fork();
    struct letter letter;
    if (child == 0) {
        ssize_t len = msgrcv(id, &letter, sizeof letter.bytes, 7, 0);
        _exit(len == 2 && letter.kind == 7 ? 0 : 1);
    }
    usleep(20000);
    CHECK(send(id, 6, "no") == 0 && send(id, 7, "it") == 0 && is_ok(child));
    CHECK(receive(id, 0, 0, "no"));
    static char large[8 + 8192] = {1};
    CHECK(msgsnd(id, large, 8192, 0) == 0 && msgsnd(id, large, 8192, 0) == 0);
    child = fork();
    if (child == 0) _exit(msgsnd(id, large, 5, 0) == 0 ? 0 : 1);
    usleep(20000);
    CHECK(msgrcv(id, large, 8192, 0, 0) == 8192 && is_ok(child));
    CHECK(status_of(id).msg_qnum == 2);
    discard(id);
}

static void on_alarm(int signal) { (void)signal; }

static void removals_and_signals_end_waits(void) {
    int id = queue();
    struct letter letter;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    ualarm(20000, 0);
    CHECK(msgrcv(id, &letter, 1, 0, 0) == -1 && errno == EINTR);
    pid_t child = fork();
    if (child == 0) _exit(msgrcv(id, &letter, 1, 0, 0) == -1 && errno == EIDRM ? 0 : 1);
    usleep(20000);
    discard(id);
    CHECK(is_ok(child));
    CHECK(msgsnd(id, &letter, 1, 0) == -1 && (errno == EINVAL || errno == EIDRM));
}

static void only_root_makes_queues_larger(void) {
    int id = queue();
    struct msqid_ds status = status_of(id);
    status.msg_qbytes = 100;
    CHECK(msgctl(id, IPC_SET, &status) == 0 && status_of(id).msg_qbytes == 100);
    pid_t child = fork();
    if (child == 0) {
        status.msg_perm.uid = 12345;
        if (getuid() == 0 && (msgctl(id, IPC_SET, &status) || setuid(12345))) _exit(1);
        status.msg_qbytes = 20000;
        _exit(msgctl(id, IPC_SET, &status) == -1 && errno == EPERM ? 0 : 2);
    }
    CHECK(is_ok(child));
    discard(id);
}

int main(void) {
    TEST(keys_name_queues);
    TEST(messages_are_picked_by_type);
    TEST(long_messages_are_refused_or_cut);
    TEST(who_waits_goes_on);
    TEST(removals_and_signals_end_waits);
    TEST(only_root_makes_queues_larger);
    return check_status();
}
