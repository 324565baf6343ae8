// System V shared memory: keys, attachments, what stays after a removal, who may.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { PAGE = 4096, KEY = 0x5133 };

static struct shmid_ds status_of(int id) {
    struct shmid_ds status;
    CHECK(shmctl(id, IPC_STAT, &status) == 0);
    return status;
}

static int is_ok(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void programs_share_what_a_key_names(void) {
    int id = shmget(KEY, 5000, IPC_CREAT | IPC_EXCL | 0600);
    CHECK(id >= 0);
    CHECK(shmget(KEY, 100, 0600) == id && shmget(KEY, 0, 0) == id);
    CHECK(shmget(KEY, 5001, 0600) == -1 && errno == EINVAL);
    CHECK(shmget(KEY, 5000, IPC_CREAT | IPC_EXCL | 0600) == -1 && errno == EEXIST);
    CHECK(shmget(KEY + 1, 5000, 0600) == -1 && errno == ENOENT);
    CHECK(shmget(IPC_PRIVATE, 0, IPC_CREAT) == -1 && errno == EINVAL);
    char *at = shmat(id, 0, 0);
    CHECK(at != (void *)-1 && at[0] == 0 && at[4999] == 0);
    pid_t child = fork();
    if (child == 0) {
        at[1] = 'c';
        char *again = shmat(shmget(KEY, 0, 0), 0, 0);
        _exit(again[1] == 'c' && status_of(id).shm_nattch == 3 ? 0 : 1);
    }
    CHECK(is_ok(child) && at[1] == 'c');
    struct shmid_ds status = status_of(id);
    CHECK(status.shm_nattch == 1 && status.shm_segsz == 5000);
    CHECK(status.shm_perm.__key == KEY && (status.shm_perm.mode & 0777) == 0600);
    CHECK(status.shm_cpid == getpid() && status.shm_ctime > 0 && status.shm_atime > 0);
    CHECK(shmdt(at + PAGE) == -1 && errno == EINVAL);
    CHECK(shmdt(at) == 0 && status_of(id).shm_nattch == 0 && status_of(id).shm_dtime > 0);
    CHECK(shmdt(at) == -1 && errno == EINVAL);
    CHECK(shmctl(id, IPC_RMID, 0) == 0);
    CHECK(shmctl(id, IPC_STAT, &status) == -1 && (errno == EINVAL || errno == EIDRM));
    CHECK(shmat(id, 0, 0) == (void *)-1 && (errno == EINVAL || errno == EIDRM));
}

static void a_segment_that_is_removed_goes_with_its_last_attachment(void) {
    int id = shmget(KEY, PAGE, IPC_CREAT | 0600);
    char *at = shmat(id, 0, 0);
    at[0] = 'x';
    CHECK(shmctl(id, IPC_RMID, 0) == 0);
    struct shmid_ds status = status_of(id);
    CHECK(status.shm_perm.mode & 01000 && status.shm_perm.__key == 0 && status.shm_nattch == 1);
    int next = shmget(KEY, PAGE, IPC_CREAT | IPC_EXCL | 0600);
    CHECK(next >= 0 && next != id);
    char *again = shmat(id, 0, 0);
    CHECK(again != (void *)-1 && again[0] == 'x');
    CHECK(shmdt(at) == 0 && again[0] == 'x' && munmap(again, PAGE) == 0);
    CHECK(shmctl(id, IPC_STAT, &status) == -1 && (errno == EINVAL || errno == EIDRM));
    CHECK(shmctl(next, IPC_RMID, 0) == 0);
}

static void where_and_how_a_segment_is_attached(void) {
    int id = shmget(IPC_PRIVATE, 3 * PAGE, 0600);
    char *room = mmap(0, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(shmat(id, room, 0) == (void *)-1 && errno == EINVAL);
    CHECK(shmat(id, room, SHM_REMAP) == room);
    CHECK(shmat(id, room + 4 * PAGE + 5, SHM_REMAP) == (void *)-1 && errno == EINVAL);
    char *other = shmat(id, room + 4 * PAGE + 5, SHM_REMAP | SHM_RND);
    CHECK(other == room + 4 * PAGE);
    other[2 * PAGE] = 'o';
    CHECK(room[2 * PAGE] == 'o');
    const char *reader = shmat(id, 0, SHM_RDONLY);
    CHECK(reader[2 * PAGE] == 'o');
    CHECK(mprotect((void *)reader, PAGE, PROT_WRITE) == -1 && errno == EACCES);
    CHECK(shmat(id, 0, SHM_REMAP) == (void *)-1 && errno == EINVAL);
    CHECK(shmdt(reader) == 0 && shmdt(other) == 0 && shmdt(room) == 0);
    CHECK(shmctl(id, IPC_RMID, 0) == 0);
    munmap(room, 8 * PAGE);
}

static void modes_and_owners_hold(void) {
    int id = shmget(KEY, PAGE, IPC_CREAT | 0640);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setgid(12345) || setuid(12345))) _exit(1);
        if (getuid() != 12345) _exit(0);
        if (shmget(KEY, PAGE, 0400) != -1 || errno != EACCES) _exit(2);
        if (shmat(id, 0, SHM_RDONLY) != (void *)-1 || errno != EACCES) _exit(3);
        if (shmctl(id, IPC_RMID, 0) != -1 || errno != EPERM) _exit(4);
        struct shmid_ds status;
        if (shmctl(id, IPC_STAT, &status) != -1 || errno != EACCES) _exit(5);
        _exit(0);
    }
    CHECK(is_ok(child));
    struct shmid_ds status = status_of(id);
    status.shm_perm.mode = 0444;
    CHECK(shmctl(id, IPC_SET, &status) == 0);
    CHECK((status_of(id).shm_perm.mode & 0777) == 0444);
    CHECK(shmctl(id, IPC_RMID, 0) == 0);
}

static void tools_see_all_segments(void) {
    int id = shmget(IPC_PRIVATE, 7 * PAGE, 0600), found = 0;
    struct shminfo limits;
    int highest = shmctl(0, IPC_INFO, (void *)&limits);
    CHECK(highest >= 0 && limits.shmmni > 0 && limits.shmmin == 1);
    for (int place = 0; place <= highest; place++) {
        struct shmid_ds status;
        if (shmctl(place, SHM_STAT, &status) == id) found = status.shm_segsz == 7 * PAGE;
    }
    CHECK(found);
    FILE *list = fopen("/proc/sysvipc/shm", "r");
    char line[300];
    found = 0;
    CHECK(list && fgets(line, sizeof line, list) && strstr(line, "shmid"));
    while (fgets(line, sizeof line, list)) {
        int key, number;
        if (sscanf(line, "%d %d", &key, &number) == 2 && number == id) found = 1;
    }
    fclose(list);
    CHECK(found && shmctl(id, IPC_RMID, 0) == 0);
}

static void segments_survive_who_made_them_and_go_when_removed(void) {
    for (int i = 0; i < 200; i++) {
        int ids[2];
        CHECK(pipe(ids) == 0);
        pid_t child = fork();
        if (child == 0) {
            int id = shmget(IPC_PRIVATE, 64 * PAGE, 0600);
            char *at = shmat(id, 0, 0);
            at[0] = 'k';
            (void)!write(ids[1], &id, sizeof id);
            _exit(0);
        }
        int id;
        CHECK(is_ok(child) && read(ids[0], &id, sizeof id) == sizeof id);
        close(ids[0]);
        close(ids[1]);
        char *at = shmat(id, 0, 0);
        CHECK(at != (void *)-1 && at[0] == 'k');
        CHECK(shmctl(id, IPC_RMID, 0) == 0 && shmdt(at) == 0);
    }
}

int main(void) {
    TEST(programs_share_what_a_key_names);
    TEST(a_segment_that_is_removed_goes_with_its_last_attachment);
    TEST(where_and_how_a_segment_is_attached);
    TEST(modes_and_owners_hold);
    TEST(tools_see_all_segments);
    TEST(segments_survive_who_made_them_and_go_when_removed);
    return check_status();
}
