// System V semaphores: several operations at once, waits, what an end takes back.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { KEY = 0x5e33 };

union argument {
    int value;
    struct semid_ds *status;
    unsigned short *values;
    struct seminfo *limits;
};

static int set_of(int length) {
    int id = semget(IPC_PRIVATE, length, 0600);
    CHECK(id >= 0);
    return id;
}

static int value(int id, int index) { return semctl(id, index, GETVAL); }

static int operate(int id, int index, int change, int flags) {
    struct sembuf one = {index, change, flags};
    return semop(id, &one, 1);
}

static void discard(int id) { CHECK(semctl(id, 0, IPC_RMID) == 0); }

// Waits until `count` wait for the semaphore.
static int wait_for(int id, int command, int count) {
    for (int i = 0; i < 500 && semctl(id, 0, command) != count; i++) usleep(10000);
    return semctl(id, 0, command) == count;
}

static int status_of(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void keys_name_sets(void) {
    int id = semget(KEY, 3, IPC_CREAT | IPC_EXCL | 0600);
    CHECK(id >= 0 && semget(KEY, 2, 0600) == id && semget(KEY, 0, 0) == id);
    CHECK(semget(KEY, 4, 0600) == -1 && errno == EINVAL);
    CHECK(semget(KEY, 3, IPC_CREAT | IPC_EXCL) == -1 && errno == EEXIST);
    CHECK(semget(IPC_PRIVATE, 0, 0600) == -1 && errno == EINVAL);
    struct semid_ds status;
    CHECK(semctl(id, 0, IPC_STAT, (union argument){.status = &status}) == 0);
    CHECK(status.sem_nsems == 3 && status.sem_otime == 0 && status.sem_ctime > 0);
    discard(id);
    CHECK(semget(KEY, 3, 0600) == -1 && errno == ENOENT);
    CHECK(value(id, 0) == -1 && (errno == EINVAL || errno == EIDRM));
}

static void values_are_set_and_told(void) {
    int id = set_of(3);
    unsigned short values[] = {1, 2, 3}, got[3];
    CHECK(semctl(id, 0, SETALL, (union argument){.values = values}) == 0);
    CHECK(semctl(id, 0, GETALL, (union argument){.values = got}) == 0);
    CHECK(memcmp(values, got, sizeof got) == 0);
    CHECK(semctl(id, 1, SETVAL, (union argument){.value = 9}) == 0 && value(id, 1) == 9);
    CHECK(semctl(id, 1, SETVAL, (union argument){.value = 40000}) == -1 && errno == ERANGE);
    CHECK(semctl(id, 3, GETVAL) == -1 && errno == EINVAL);
    CHECK(semctl(id, 1, GETPID) == getpid());
    discard(id);
}

static void operations_are_done_together_or_not_at_all(void) {
    int id = set_of(2);
    CHECK(operate(id, 0, 2, 0) == 0);
    struct sembuf both[] = {{0, -1, 0}, {1, -1, IPC_NOWAIT}};
    CHECK(semop(id, both, 2) == -1 && errno == EAGAIN && value(id, 0) == 2);
    CHECK(operate(id, 1, 1, 0) == 0 && semop(id, both, 2) == 0);
    CHECK(value(id, 0) == 1 && value(id, 1) == 0);
    CHECK(operate(id, 1, 0, IPC_NOWAIT) == 0);
    CHECK(operate(id, 0, 0, IPC_NOWAIT) == -1 && errno == EAGAIN);
    CHECK(operate(id, 2, 1, 0) == -1 && errno == EFBIG);
    CHECK(operate(id, 0, 32767, 0) == -1 && errno == ERANGE);
    CHECK(semop(id, both, 501) == -1 && errno == E2BIG);
    CHECK(semop(id, both, 0) == -1 && errno == EINVAL);
    discard(id);
}

static void a_waiter_goes_on_when_it_can(void) {
    int id = set_of(1);
    pid_t child = fork();
    if (child == 0) _exit(operate(id, 0, -3, 0) == 0 ? 0 : 1);
    CHECK(wait_for(id, GETNCNT, 1) && semctl(id, 0, GETZCNT) == 0);
    CHECK(operate(id, 0, 2, 0) == 0 && value(id, 0) == 2);
    CHECK(operate(id, 0, 2, 0) == 0 && status_of(child) == 0);
    CHECK(value(id, 0) == 1 && semctl(id, 0, GETNCNT) == 0);
    child = fork();
    if (child == 0) _exit(operate(id, 0, 0, 0) == 0 ? 0 : 1);
    CHECK(wait_for(id, GETZCNT, 1) && operate(id, 0, -1, 0) == 0 && status_of(child) == 0);
    discard(id);
}

static void a_removal_ends_waits(void) {
    int id = set_of(1);
    pid_t child = fork();
    if (child == 0) _exit(operate(id, 0, -1, 0) == -1 && errno == EIDRM ? 0 : 1);
    CHECK(wait_for(id, GETNCNT, 1));
    discard(id);
    CHECK(status_of(child) == 0);
}

static void on_alarm(int signal) { (void)signal; }

static void signals_and_deadlines_end_waits(void) {
    int id = set_of(1);
    struct timespec soon = {0, 20000000};
    struct sembuf down = {0, -1, 0};
    CHECK(semtimedop(id, &down, 1, &soon) == -1 && errno == EAGAIN);
    CHECK(semctl(id, 0, GETNCNT) == 0);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    ualarm(20000, 0);
    CHECK(semop(id, &down, 1) == -1 && errno == EINTR);
    discard(id);
}

static void an_end_takes_back_what_was_done(void) {
    int id = set_of(2);
    CHECK(operate(id, 0, 5, 0) == 0);
    pid_t child = fork();
    if (child == 0) {
        operate(id, 0, -2, SEM_UNDO);
        operate(id, 1, 4, SEM_UNDO);
        operate(id, 1, 1, 0);
        _exit(value(id, 0) == 3 && value(id, 1) == 5 ? 0 : 1);
    }
    CHECK(status_of(child) == 0 && value(id, 0) == 5 && value(id, 1) == 1);
    child = fork();
    if (child == 0) {
        operate(id, 0, -5, SEM_UNDO);
        pause();
    }
    for (int i = 0; i < 500 && value(id, 0) != 0; i++) usleep(10000);
    pid_t waiter = fork();
    if (waiter == 0) _exit(operate(id, 0, -1, 0) == 0 ? 0 : 1);
    CHECK(wait_for(id, GETNCNT, 1));
    kill(child, SIGKILL);
    CHECK(waitpid(child, 0, 0) == child && status_of(waiter) == 0 && value(id, 0) == 4);
    child = fork();
    if (child == 0) {
        operate(id, 0, -1, SEM_UNDO);
        semctl(id, 0, SETVAL, (union argument){.value = 7});
        _exit(0);
    }
    CHECK(status_of(child) == 0 && value(id, 0) == 7);
    discard(id);
}

static void many_count_together_without_loss(void) {
    enum { CHILDREN = 8, ROUNDS = 200 };
    int id = set_of(2);
    CHECK(operate(id, 0, 1, 0) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() != 0) continue;
        for (int round = 0; round < ROUNDS; round++) {
            if (operate(id, 0, -1, SEM_UNDO)) _exit(1);
            int now = value(id, 1);
            semctl(id, 1, SETVAL, (union argument){.value = now + 1});
            if (operate(id, 0, 1, SEM_UNDO)) _exit(2);
        }
        _exit(0);
    }
    int status;
    for (int i = 0; i < CHILDREN; i++) CHECK(wait(&status) > 0 && status == 0);
    CHECK(value(id, 1) == CHILDREN * ROUNDS && value(id, 0) == 1);
    discard(id);
}

int main(void) {
    TEST(keys_name_sets);
    TEST(values_are_set_and_told);
    TEST(operations_are_done_together_or_not_at_all);
    TEST(a_waiter_goes_on_when_it_can);
    TEST(a_removal_ends_waits);
    TEST(signals_and_deadlines_end_waits);
    TEST(an_end_takes_back_what_was_done);
    TEST(many_count_together_without_loss);
    return check_status();
}
