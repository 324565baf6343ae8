// vsa_hostile: a program with a ring to the area `mid` tries every way out of it, and into others' memory.
// The areas `left` and `right` lie beside it; who started the machine compares all other bytes of the disk.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../check.h"
#include "vsa_ring.h"

enum { BLOCKS = 2048, HALF = BLOCKS / 2, OWNER = 1000, OTHER = 1001 };
static const char *mid = "/dev/vsa/mid";

static void open_mid(struct ring *ring) { CHECK(ring_open(ring, mid) == 0); }

static void bytes_come_back(void) {
    struct ring ring;
    open_mid(&ring);
    for (int block = 0; block < 64; block++) memset(ring.memory + block * BLOCK, 1 + block, BLOCK);
    CHECK(ask(&ring, WRITE, 3, 64, 0) == DONE);
    CHECK(ask(&ring, FLUSH, 0, 0, 0) == DONE);
    // Memory that begins and ends inside of pages, several pages of it.
    CHECK(ask(&ring, READ, 4, 63, 64 * BLOCK + 3 * BLOCK) == DONE);
    CHECK(memcmp(ring.memory + BLOCK, ring.memory + 67 * BLOCK, 63 * BLOCK) == 0);
    CHECK(ask(&ring, WRITE | FORCED, BLOCKS - 1, 1, 5 * BLOCK) == DONE);
    char plain[BLOCK];
    CHECK(pread(ring.fd, plain, BLOCK, (BLOCKS - 1) * BLOCK) == BLOCK && plain[0] == 6 && plain[BLOCK - 1] == 6);
    int discarded = ask(&ring, DISCARD, 0, 8, 0);
    CHECK(discarded == DONE || discarded == UNKNOWN);
    ring_close(&ring);
}

static void many_at_once_need_no_call_each(void) {
    struct ring ring;
    open_mid(&ring);
    unsigned done = 0, begun = 0, seen = 0;
    while (done < 3000) {
        while (begun - done < ENTRIES && begun < 3000) {
            put(&ring, (struct submission){.operation = begun % 2 ? READ : WRITE, .count = 8, .first = begun * 8 % BLOCKS,
                                           .memory = begun % 64 * 4096, .cookie = begun});
            begun++;
        }
        show(&ring);
        uint64_t cookie;
        CHECK(take(&ring, &cookie) == DONE && cookie < begun);
        done++, seen += cookie;
    }
    CHECK(seen == 3000u * 2999 / 2);
    ring_close(&ring);
}

static void what_is_not_its_own_is_refused(void) {
    struct ring ring;
    open_mid(&ring);
    CHECK(ask(&ring, READ, BLOCKS, 1, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, WRITE, BLOCKS - 1, 2, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, WRITE, UINT64_MAX, 1, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, WRITE, UINT64_MAX - 3, 5, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, WRITE, 0, 0, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, DISCARD, 1, UINT32_MAX, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, READ, 0, 1, MEMORY) == OUT_OF_MEMORY);
    CHECK(ask(&ring, READ, 0, 2, MEMORY - BLOCK) == OUT_OF_MEMORY);
    CHECK(ask(&ring, READ, 0, 1, UINT64_MAX - BLOCK + 1) == OUT_OF_MEMORY);
    CHECK(ask(&ring, READ, 0, 1, 4) == OUT_OF_MEMORY);
    CHECK(ask(&ring, READ, 0, 1, (uintptr_t)ring.memory) == OUT_OF_MEMORY);
    CHECK(ask(&ring, READ, 0, BLOCKS, 0) == OUT_OF_MEMORY);
    for (int operation = 5; operation < 0x10000; operation += 97)
        if (operation != (WRITE | FORCED)) CHECK(ask(&ring, operation, 0, 1, 0) == UNKNOWN);
    CHECK(ask(&ring, FLUSH, 0, 1, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, READ, BLOCKS - 1, 1, MEMORY - BLOCK) == DONE);
    ring_close(&ring);
}

// Without its memory told, a ring moves nothing.
static void memory_that_was_not_registered_is_not_reached(void) {
    int fd = open(mid, O_RDWR);
    struct ring ring = {.fd = fd};
    CHECK(ioctl(fd, SETUP, (long)ENTRIES) == 0);
    ring.words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ring.submissions = (struct submission *)(ring.words + 512);
    ring.completions = (struct completion *)(ring.submissions + ENTRIES);
    CHECK(ask(&ring, READ, 0, 1, 0) == OUT_OF_MEMORY && ask(&ring, FLUSH, 0, 0, 0) == DONE);
    uint64_t ranges[][2] = {{0, 4096}, {(uintptr_t)&fd & ~4095ul, 0}, {(uintptr_t)&fd, 4096}, {0xffff800000000000, 4096},
                            {(uintptr_t)ring.words, 4096}, {4096, UINT64_MAX & ~4095ul}};
    for (unsigned each = 0; each < sizeof ranges / sizeof *ranges; each++) CHECK(ioctl(fd, REGISTER, ranges[each]) == -1);
    for (long entries = 0; entries < 20000; entries = entries * 2 + 3) CHECK(ioctl(fd, SETUP, entries) == -1);
    close(fd);
    munmap((void *)ring.words, 4096);
}

static void indexes_that_jump_end_the_ring_only(void) {
    static const int jumped[] = {0, 3};
    for (unsigned each = 0; each < 2; each++) {
        struct ring ring;
        open_mid(&ring);
        for (int more = 0; more < 8; more++)
            put(&ring, (struct submission){.operation = READ, .count = 8, .first = 8 * more, .memory = 4096 * more});
        show(&ring);
        *word(&ring, jumped[each]) += 0x7fff0000;
        if (each) *word(&ring, 0) = ring.tail + 1;
        int rung = ioctl(ring.fd, BELL, 0L);
        CHECK(rung == -1 && errno == EIO);
        struct pollfd look = {.fd = ring.fd, .events = POLLIN};
        CHECK(poll(&look, 1, 5000) == 1 && look.revents & POLLERR);
        ring_close(&ring);
    }
    struct ring ring;
    open_mid(&ring);
    CHECK(ask(&ring, READ, 0, 1, 0) == DONE);
    // What else of the words the program spoils harms it alone.
    for (int number = 1; number < 3; number++) *word(&ring, number) = 0xdeadbeef;
    *word(&ring, 4) = 0xffff;
    ring_close(&ring);
}

static volatile int is_over;

static void *spoil(void *argument) {
    struct ring *ring = argument;
    for (unsigned step = 0; !is_over; step++) {
        struct submission *victim = &ring->submissions[step % ENTRIES];
        static const uint64_t firsts[] = {0, BLOCKS, UINT64_MAX, BLOCKS - 1, 1ull << 40};
        victim->first = firsts[step % 5];
        victim->count = step % 3 ? 8 : 0xffffffff;
        victim->memory = step % 7 ? 0 : (uint64_t)step << 32 | MEMORY;
        victim->operation = step % 4 + 1;
    }
    return NULL;
}

static void entries_that_change_while_they_are_read_stay_inside(void) {
    struct ring ring;
    open_mid(&ring);
    pthread_t thread;
    is_over = 0;
    CHECK(pthread_create(&thread, NULL, spoil, &ring) == 0);
    for (int round = 0; round < 100; round++) {
        for (int each = 0; each < 32; each++)
            put(&ring, (struct submission){.operation = WRITE, .count = 8, .first = 8 * each, .memory = 4096 * each});
        show(&ring);
        for (int each = 0; each < 32; each++) CHECK(take(&ring, NULL) >= 0);
    }
    is_over = 1;
    pthread_join(thread, NULL);
    ring_close(&ring);
}

// In a thread, where no check can end its function.
#define MUST(condition) do { if (!(condition)) { perror(#condition); abort(); } } while (0)

// Half of the area is given to another one and back, again and again.
static void *give_away(void *argument) {
    static char block[HALF * BLOCK], seen[HALF * BLOCK];
    for (int round = 0; round < 20; round++) {
        MUST(control("resize 524288 mid") == 0);
        MUST(control("create DISK 0 524288 grab") == 0);
        int grab = open("/dev/vsa/grab", O_RDWR);
        MUST(grab >= 0);
        memset(block, 'G', sizeof block);
        MUST(pwrite(grab, block, sizeof block, 0) == sizeof block && fsync(grab) == 0);
        for (int look = 0; look < 3; look++) {
            usleep(2000);
            MUST(pread(grab, seen, sizeof seen, 0) == sizeof seen && memcmp(seen, block, sizeof seen) == 0);
        }
        MUST(control("delete grab") == 0);
        MUST(pread(grab, seen, 512, 0) == -1 && errno == ENODEV);
        close(grab);
        MUST(control("resize 1048576 mid") == 0);
    }
    is_over = 1;
    return argument;
}

static void blocks_that_were_given_away_are_not_reached(void) {
    struct ring ring;
    open_mid(&ring);
    memset(ring.memory, 'M', MEMORY);
    pthread_t thread;
    is_over = 0;
    CHECK(pthread_create(&thread, NULL, give_away, NULL) == 0);
    unsigned step = 0, revoked = 0, done = 0;
    while (!is_over) {
        for (int each = 0; each < 32; each++, step++)
            put(&ring, (struct submission){.operation = WRITE, .count = 8, .first = step * 8 % BLOCKS, .memory = step % 64 * 4096});
        show(&ring);
        for (int each = 0; each < 32; each++) {
            int outcome = take(&ring, NULL);
            CHECK(outcome == DONE || outcome == REVOKED || outcome == OUT_OF_AREA);
            revoked += outcome == REVOKED, done += outcome == DONE;
        }
        uint64_t geometry[2];
        if (revoked) CHECK(ioctl(ring.fd, RENEW, geometry) == 0 && (geometry[0] == HALF || geometry[0] == BLOCKS));
    }
    pthread_join(thread, NULL);
    CHECK(revoked > 0 && done > 0);
    ring_close(&ring);
}

static void what_was_revoked_stays_so(void) {
    struct ring ring, next;
    uint64_t geometry[2];
    open_mid(&ring);
    CHECK(ring_open(&next, mid) == -1 && errno == EBUSY);
    close(next.fd);
    CHECK(control("revoke mid") == 0);
    put(&ring, (struct submission){.operation = WRITE, .count = 1});
    *word(&ring, 0) = ring.tail;
    CHECK(ioctl(ring.fd, BELL, 0L) == -1);
    CHECK(ioctl(ring.fd, RENEW, geometry) == -1 && errno == ENODEV);
    CHECK(pread(ring.fd, geometry, 16, 0) == -1 && errno == ENODEV);
    CHECK(pwrite(ring.fd, geometry, 16, 0) == -1 && errno == ENODEV);
    CHECK(fsync(ring.fd) == -1);
    struct pollfd look = {.fd = ring.fd, .events = POLLIN};
    CHECK(poll(&look, 1, 5000) == 1 && look.revents & POLLERR);
    open_mid(&next);
    CHECK(ask(&next, READ, 0, 1, 0) == DONE);
    // The old one goes, and the new one stays the area's only ring.
    ring_close(&ring);
    CHECK(ask(&next, READ, 0, 1, 0) == DONE);
    CHECK(ring_open(&ring, mid) == -1 && errno == EBUSY);
    close(ring.fd);
    ring_close(&next);
}

static int as(int user, int (*act)(void)) {
    pid_t child = fork();
    if (child == 0) {
        if (setgid(user) < 0 || setuid(user) < 0) _exit(99);
        _exit(act());
    }
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int others_try(void) {
    struct ring ring;
    if (open(mid, O_RDONLY) != -1 || errno != EACCES) return 1;
    if (ring_open(&ring, "/dev/vsa/left") != -1 || errno != EACCES) return 2;
    if (control("resize 4096 mid") != -1 || errno != EPERM) return 3;
    if (control("delete mid") != -1 || errno != EPERM) return 4;
    if (control("revoke mid") != -1 || errno != EPERM) return 5;
    if (control("create DISK 1001 4096 theirs") != -1 || errno != EPERM) return 6;
    if (control("create DISK 0 4096 roots") != -1 || errno != EPERM) return 7;
    if (control("format DISK") != -1 || errno != EPERM) return 8;
    if (control("quota DISK 1001 1000000") != -1 || errno != EPERM) return 9;
    return 0;
}

static int owner_shrinks(void) {
    if (control("resize 524288 mid") != 0) return 1;
    // What it gave back it does not get without a quota.
    if (control("resize 1048576 mid") != -1 || errno != EPERM) return 2;
    return 0;
}

static void only_owners_and_administrators_may(void) {
    CHECK(as(OTHER, others_try) == 0);
    CHECK(as(OWNER, owner_shrinks) == 0);
    CHECK(control("resize 1048576 mid") == 0);
}

static int within_quota(void) {
    if (control("create DISK 1001 262144 theirs") != 0) return 1;
    if (control("create DISK 1001 262144 more") != -1 || errno != EDQUOT) return 2;
    if (control("resize 1048576 theirs") != -1 || errno != EDQUOT) return 3;
    struct rlimit none = {65536, 65536};
    struct ring ring;
    if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 || ring_open(&ring, "/dev/vsa/theirs") != -1 || errno != ENOBUFS) return 4;
    int fd = open("/dev/vsa/theirs", O_RDONLY);
    if (fd < 0 || ioctl(fd, SETUP, (long)ENTRIES) != -1 || errno != EBADF) return 5;
    if (control("delete theirs") != 0) return 6;
    return 0;
}

static void shares_end_where_they_end(void) {
    CHECK(control("quota DISK 1001 400000") == 0);
    CHECK(as(OTHER, within_quota) == 0);
    CHECK(control("quota DISK 1001 none") == 0);
    CHECK(control("create DISK 0 1099511627776 huge") == -1 && errno == ENOSPC);
    CHECK(control("create DISK 0 4096 mid") == -1 && errno == EEXIST);
    CHECK(control("create DISK 0 0 nothing") == -1 && errno == EINVAL);
    CHECK(control("create DISK 0 4096 control") == -1 && errno == EINVAL);
    CHECK(control("create DISK 0 4096 ..") == -1 && errno == EINVAL);
    CHECK(control("resize 0 mid") == -1 && errno == EINVAL);
    CHECK(control("delete nobody") == -1 && errno == ENOENT);
}

// A descriptor that is passed on is a right of its own.
static void a_descriptor_that_was_passed_on_is_enough(void) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte, space[CMSG_SPACE(sizeof(int))];
        struct iovec one = {&byte, 1};
        struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        if (setuid(OTHER) < 0 || recvmsg(ends[1], &message, 0) != 1) _exit(1);
        struct ring ring;
        if (ring_over(&ring, *(int *)CMSG_DATA(CMSG_FIRSTHDR(&message))) < 0) _exit(2);
        memset(ring.memory, 'P', BLOCK);
        _exit(ask(&ring, WRITE, 9, 1, 0) == DONE && ask(&ring, READ, BLOCKS, 1, 0) == OUT_OF_AREA ? 0 : 3);
    }
    int fd = open(mid, O_RDWR), status;
    char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    CHECK(sendmsg(ends[0], &message, 0) == 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pread(fd, &byte, 1, 9 * BLOCK) == 1 && byte == 'P');
    close(fd), close(ends[0]), close(ends[1]);
}

// What the disk has of it comes to its end before the next ring is there: no late write falls on those of its heir.
static void who_is_killed_leaves_the_area_to_others(void) {
    for (int round = 0; round < 20; round++) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        pid_t child = fork();
        if (child == 0) {
            struct ring ring;
            if (ring_open(&ring, mid) < 0) _exit(1);
            for (int each = 0; each < ENTRIES; each++)
                put(&ring, (struct submission){.operation = WRITE, .count = 64, .memory = 32768 * (each % 8)});
            show(&ring);
            if (write(ends[1], "", 1) != 1) _exit(2);
            for (;;) pause();
        }
        char byte;
        CHECK(read(ends[0], &byte, 1) == 1);
        kill(child, SIGKILL);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        close(ends[0]), close(ends[1]);
        struct ring ring;
        open_mid(&ring);
        memset(ring.memory, 'K', 4096);
        CHECK(ask(&ring, WRITE, 0, 8, 0) == DONE && ask(&ring, READ, 0, 8, 8192) == DONE);
        CHECK(memcmp(ring.memory, ring.memory + 8192, 4096) == 0);
        ring_close(&ring);
    }
}

// A mapping alone is no right: what is submitted by it is not done, or refused.
static void a_ring_that_was_closed_takes_nothing(void) {
    struct ring old, ring;
    open_mid(&old);
    memset(old.memory, 'O', MEMORY);
    for (int each = 0; each < 32; each++)
        put(&old, (struct submission){.operation = READ, .count = 64, .first = 8 * each, .memory = 32768 * (each % 4)});
    show(&old);
    close(old.fd);
    int again = ring_open(&ring, mid);
    if (again == -1 && errno == EBUSY) {
        // The mapping keeps the descriptor open, and so the ring.
        close(ring.fd);
        munmap((void *)old.words, (512 + ENTRIES * 48 + 4095) & ~4095);
        CHECK(ring_open(&ring, mid) == 0);
        ring_close(&ring);
        return;
    }
    CHECK(again == 0);
    memset(ring.memory, 'N', MEMORY);
    CHECK(ask(&ring, WRITE, 1024, 8, 0) == DONE);
    for (int each = 0; each < 32; each++)
        put(&old, (struct submission){.operation = WRITE, .count = 8, .first = 1024, .memory = 0});
    *word(&old, 0) = old.tail;
    for (int each = 0; each < 20; each++) {
        CHECK(ask(&ring, READ, 1024, 8, 8192) == DONE);
        CHECK(memcmp(ring.memory, ring.memory + 8192, 4096) == 0);
        usleep(1000);
    }
    munmap((void *)old.words, (512 + ENTRIES * 48 + 4095) & ~4095);
    ring_close(&ring);
}

// The device goes on with the pages that were registered, whatever the program has there now.
static void memory_that_was_unmapped_is_nobodys(void) {
    for (int round = 0; round < 20; round++) {
        struct ring ring;
        open_mid(&ring);
        for (int each = 0; each < 32; each++)
            put(&ring, (struct submission){.operation = READ, .count = 8, .first = 8 * each, .memory = 4096 * each});
        show(&ring);
        munmap(ring.memory, MEMORY);
        char *fresh = mmap(ring.memory, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(fresh, 'F', MEMORY);
        for (int each = 0; each < 32; each++) CHECK(take(&ring, NULL) == DONE);
        for (int at = 0; at < MEMORY; at++) if (fresh[at] != 'F') { CHECK(0); break; }
        ring_close(&ring);
    }
}

static void a_full_completion_ring_loses_nothing(void) {
    struct ring ring;
    open_mid(&ring);
    for (int each = 0; each < ENTRIES; each++)
        put(&ring, (struct submission){.operation = READ, .count = 1, .first = each, .memory = 0, .cookie = each});
    show(&ring);
    while (*word(&ring, 2) != ENTRIES) usleep(1000);
    for (int each = 0; each < ENTRIES; each++)
        put(&ring, (struct submission){.operation = READ, .count = 1, .first = each, .memory = 0, .cookie = each});
    show(&ring);
    usleep(10000);
    CHECK(*word(&ring, 1) == ENTRIES);
    for (int each = 0; each < 2 * ENTRIES; each++) CHECK(take(&ring, NULL) == DONE);
    ring_close(&ring);
}

static void the_bell_can_be_waited_for_by_poll(void) {
    struct ring ring;
    open_mid(&ring);
    for (int each = 0; each < 50; each++) {
        *word(&ring, 5) = 1;
        put(&ring, (struct submission){.operation = WRITE, .count = 8, .memory = 0});
        show(&ring);
        struct pollfd look = {.fd = ring.fd, .events = POLLIN};
        CHECK(poll(&look, 1, 10000) == 1 && look.revents == POLLIN);
        CHECK(take(&ring, NULL) == DONE);
        CHECK(poll(&look, 1, 0) == 0);
    }
    ring_close(&ring);
}

int main(int count, char **arguments) {
    disk_name = count > 1 ? arguments[1] : "vda";
    TEST(bytes_come_back);
    TEST(many_at_once_need_no_call_each);
    TEST(what_is_not_its_own_is_refused);
    TEST(memory_that_was_not_registered_is_not_reached);
    TEST(indexes_that_jump_end_the_ring_only);
    TEST(entries_that_change_while_they_are_read_stay_inside);
    TEST(the_bell_can_be_waited_for_by_poll);
    TEST(a_full_completion_ring_loses_nothing);
    TEST(memory_that_was_unmapped_is_nobodys);
    TEST(a_ring_that_was_closed_takes_nothing);
    TEST(who_is_killed_leaves_the_area_to_others);
    TEST(a_descriptor_that_was_passed_on_is_enough);
    TEST(only_owners_and_administrators_may);
    TEST(shares_end_where_they_end);
    TEST(what_was_revoked_stays_so);
    TEST(blocks_that_were_given_away_are_not_reached);
    return check_status();
}
