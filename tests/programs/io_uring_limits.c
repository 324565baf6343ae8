// io_uring until something is used up: the deepest ring, more rings than a program may have, thousands of requests under way,
// a user's memory. What is given back can be had again. A small machine has not as many requests at a time as the deepest
// ring has entries, so one call may take a part of them.
#include "check.h"
#include "io_uring.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { DEEPEST = 32768, UNDER_WAY = 5000 };
static struct ring r;

static void the_deepest_ring_has_room_for_all_its_entries(void) {
    CHECK(ring_open(&r, DEEPEST + 1, 0, 0) == -1 && errno == EINVAL);
    CHECK(!ring_open(&r, DEEPEST + 1, IORING_SETUP_CLAMP, 0) && r.p.sq_entries == DEEPEST);
    for (int i = 0; i < DEEPEST; i++) ring_entry(&r, IORING_OP_NOP, -1, i);
    for (int left = DEEPEST, taken; left; left -= taken) {
        taken = ring_enter(&r, left, 0);
        CHECK(taken > 0 && taken <= left);
    }
    CHECK(ring_ready(&r) == DEEPEST);
    for (int i = 0; i < DEEPEST; i++) CHECK(ring_take(&r).user_data == (unsigned)i);
    ring_close(&r);
}

static int rings_until_refused(void) {
    enum { NUMBERS_MAX = 64 };
    static struct ring all[NUMBERS_MAX];
    int count = 0;
    while (count < NUMBERS_MAX && !ring_open(&all[count], 256, 0, 0)) count++;
    int refusal = count < NUMBERS_MAX ? errno : 0;
    for (int i = 0; i < count; i++) ring_close(&all[i]);
    return refusal == EMFILE ? count : -1;
}

static void rings_are_as_many_as_numbers_and_come_back(void) {
    struct rlimit before, few;
    CHECK(!getrlimit(RLIMIT_NOFILE, &before));
    few = (struct rlimit){32, before.rlim_max};
    CHECK(!setrlimit(RLIMIT_NOFILE, &few));
    int first = rings_until_refused();
    CHECK(first > 8);
    for (int i = 0; i < 20; i++) CHECK(rings_until_refused() == first);
    CHECK(!setrlimit(RLIMIT_NOFILE, &before));
}

// So many receives on a socket that hears nothing, and then none of them.
static int wait_and_cancel(int sock) {
    static char byte;
    for (int given = 0; given < UNDER_WAY;) {
        int some = 0;
        for (; some < 1000 && given < UNDER_WAY; some++, given++)
            ring_bytes(&r, IORING_OP_RECV, sock, &byte, 1, 1 + given);
        if (ring_enter(&r, some, 0) != some) return -1;
    }
    if (ring_ready(&r)) return -2;
    ring_entry(&r, IORING_OP_ASYNC_CANCEL, sock, 0)->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
    if (ring_enter(&r, 1, 1) != 1) return -3;
    int cancelled = 0, told = -4;
    for (int i = 0; i <= UNDER_WAY; i++) {
        struct io_uring_cqe cqe = ring_take(&r);
        if (!cqe.user_data) told = cqe.res;
        else cancelled += cqe.res == -ECANCELED;
    }
    return cancelled == UNDER_WAY ? told : -5;
}

static void thousands_of_requests_wait_and_are_cancelled(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(!bind(sock, (void *)&name, sizeof name) && !ring_open(&r, 1024, IORING_SETUP_CQSIZE, DEEPEST));
    for (int i = 0; i < 3; i++) CHECK(wait_and_cancel(sock) == UNDER_WAY);
    close(sock);
    ring_close(&r);
}

static void a_ring_is_closed_with_thousands_of_requests(void) {
    static char byte;
    for (int i = 0; i < 8; i++) {
        int s[2];
        CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s) && !ring_open(&r, 4096, 0, 0));
        for (int j = 0; j < 4096; j++) ring_bytes(&r, IORING_OP_RECV, s[0], &byte, 1, j);
        CHECK(ring_enter(&r, 4096, 0) == 4096 && !ring_ready(&r));
        ring_close(&r);
        close(s[0]), close(s[1]);
    }
}

static int registers(size_t bytes) {
    struct iovec all = {malloc(bytes), bytes};
    int refused = ring_register(&r, IORING_REGISTER_BUFFERS, &all, 1) ? errno : 0;
    if (!refused && ring_register(&r, IORING_UNREGISTER_BUFFERS, NULL, 0)) refused = -1;
    free(all.iov_base);
    return refused;
}

// As another user, who may not lock what he likes: 0 if he can have little and not much, again and again.
static int limited(void) {
    struct rlimit little = {256 << 10, 256 << 10};
    if (setrlimit(RLIMIT_MEMLOCK, &little) || setresuid(4711, 4711, 4711)) return 1;
    if (ring_open(&r, 8, 0, 0)) return 2;
    for (int i = 0; i < 10; i++) {
        if (registers(64 << 10)) return 3;
        if (registers(4 << 20) != ENOMEM) return 4;
    }
    return 0;
}

static void a_user_registers_as_much_as_he_may_lock(void) {
    int status, child = fork();
    if (!child) _exit(limited());
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    TEST(the_deepest_ring_has_room_for_all_its_entries);
    TEST(rings_are_as_many_as_numbers_and_come_back);
    TEST(thousands_of_requests_wait_and_are_cancelled);
    TEST(a_ring_is_closed_with_thousands_of_requests);
    TEST(a_user_registers_as_much_as_he_may_lock);
    return check_status();
}
