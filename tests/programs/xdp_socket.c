// AF_XDP sockets before they have a link: what can be set up, what is refused, what is billed.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "xdp.h"

#define PAGE 4096

static int fresh(void) { return socket(AF_XDP, SOCK_RAW, 0); }

static int refused(int result, int why) { return result == -1 && errno == why; }

static void *memory(size_t bytes, int protection) {
    return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int in_child(int (*holds)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(holds() ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0;
}

static int an_ordinary_user_is_refused(void) {
    return setgid(65534) == 0 && setuid(65534) == 0 && refused(fresh(), EPERM);
}

static void only_those_who_may_open_packet_sockets(void) { CHECK(in_child(an_ordinary_user_is_refused)); }

static void a_socket_is_raw_and_has_no_protocol(void) {
    CHECK(refused(socket(AF_XDP, SOCK_DGRAM, 0), ESOCKTNOSUPPORT));
    CHECK(refused(socket(AF_XDP, SOCK_STREAM, 0), ESOCKTNOSUPPORT));
    CHECK(refused(socket(AF_XDP, SOCK_RAW, 3), EPROTONOSUPPORT));
    int fd = fresh(), value = 0;
    socklen_t len = sizeof value;
    CHECK(fd >= 0);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len) == 0 && value == AF_XDP);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) == 0 && value == SOCK_RAW);
    char link[64] = {0}, path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(readlink(path, link, sizeof link - 1) > 0 && strncmp(link, "socket:[", 8) == 0);
    close(fd);
}

static void rings_have_a_power_of_two_of_entries_and_are_set_once(void) {
    int names[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
    int fd = fresh();
    for (int i = 0; i < 4; i++) {
        int none = 0, three = 3, four = 4, negative = -4;
        CHECK(refused(xsk_option(fd, names[i], &none, sizeof none), EINVAL));
        CHECK(refused(xsk_option(fd, names[i], &three, sizeof three), EINVAL));
        CHECK(refused(xsk_option(fd, names[i], &negative, sizeof negative), EINVAL));
        CHECK(refused(xsk_option(fd, names[i], &four, 0), EINVAL));
        CHECK(xsk_option(fd, names[i], &four, sizeof four) == 0);
        CHECK(refused(xsk_option(fd, names[i], &four, sizeof four), EINVAL));
    }
    CHECK(refused(xsk_option(fd, 77, names, sizeof *names), ENOPROTOOPT));
    close(fd);
}

static void memory_is_whole_chunks_that_can_be_stored_to(void) {
    int fd = fresh();
    char *at = memory(16 * PAGE, PROT_READ | PROT_WRITE);
    char *constant = memory(2 * PAGE, PROT_READ);
    CHECK(refused(xsk_register(fd, at + 64, 4 * PAGE, 2048, 0), EINVAL));
    CHECK(refused(xsk_register(fd, at, 4 * PAGE, 1024, 0), EINVAL));
    CHECK(refused(xsk_register(fd, at, 4 * PAGE, 8192, 0), EINVAL));
    CHECK(refused(xsk_register(fd, at, 4 * PAGE, 3000, 0), EINVAL));
    CHECK(refused(xsk_register(fd, at, 4 * PAGE + 100, 2048, 0), EINVAL));
    CHECK(refused(xsk_register(fd, at, 0, 2048, 0), EINVAL));
    CHECK(refused(xsk_register(fd, at, 4 * PAGE, 2048, 2048 - 256), EINVAL));
    CHECK(refused(xsk_register(fd, at, -(uint64_t)PAGE, 4096, 0), EINVAL));
    CHECK(refused(xsk_register(fd, NULL, 4 * PAGE, 4096, 0), EFAULT));
    CHECK(refused(xsk_register(fd, constant, 2 * PAGE, 4096, 0), EFAULT));
    struct xdp_umem_reg request = {.addr = (uintptr_t)at, .len = 4 * PAGE, .chunk_size = 2048};
    CHECK(refused(xsk_option(fd, XDP_UMEM_REG, &request, 16), EINVAL));
    request.flags = 1 << 30;
    CHECK(refused(xsk_option(fd, XDP_UMEM_REG, &request, sizeof request), EINVAL));
    CHECK(xsk_register(fd, at, 16 * PAGE, 4096, 128) == 0);
    CHECK(refused(xsk_register(fd, at, 16 * PAGE, 4096, 128), EBUSY));
    munmap(at, 16 * PAGE);
    munmap(constant, 2 * PAGE);
    close(fd);
}

static void rings_are_mapped_where_they_are_said_to_be(void) {
    struct xsk x;
    CHECK(xsk_open(&x, 64, 64) == 0);
    struct xsk_ring *rings[] = {&x.fill, &x.completion, &x.rx, &x.tx};
    for (int i = 0; i < 4; i++) {
        CHECK(xsk_get(rings[i], rings[i]->off.producer) == 0);
        CHECK(xsk_get(rings[i], rings[i]->off.consumer) == 0);
        CHECK(rings[i]->off.desc % 8 == 0);
        memset(rings[i]->at, 0xff, rings[i]->bytes);
    }
    int both = PROT_READ | PROT_WRITE;
    CHECK(mmap(NULL, 1 << 20, both, MAP_SHARED, x.fd, XDP_PGOFF_RX_RING) == MAP_FAILED);
    CHECK(errno == EINVAL);
    CHECK(mmap(NULL, PAGE, both, MAP_SHARED, x.fd, PAGE) == MAP_FAILED && errno == EINVAL);
    int fd = fresh();
    CHECK(mmap(NULL, PAGE, both, MAP_SHARED, fd, XDP_PGOFF_TX_RING) == MAP_FAILED);
    CHECK(errno == EINVAL);
    close(fd);
    xsk_close(&x);
}

static void what_is_told_is_told_whole_or_not_at_all(void) {
    int fd = fresh();
    struct xdp_mmap_offsets off;
    struct xdp_statistics told;
    struct xdp_options options = {.flags = 77};
    socklen_t short_len = 8, len = sizeof told;
    CHECK(refused(getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &short_len), EINVAL));
    CHECK(refused(getsockopt(fd, SOL_XDP, XDP_STATISTICS, &told, &short_len), EINVAL));
    memset(&told, 0xff, sizeof told);
    CHECK(getsockopt(fd, SOL_XDP, XDP_STATISTICS, &told, &len) == 0 && len == sizeof told);
    CHECK(told.rx_dropped == 0 && told.tx_ring_empty_descs == 0);
    len = sizeof options;
    CHECK(getsockopt(fd, SOL_XDP, XDP_OPTIONS, &options, &len) == 0 && options.flags == 0);
    close(fd);
}

static void nothing_goes_without_a_link(void) {
    struct xsk x;
    CHECK(xsk_open(&x, 8, 8) == 0);
    char byte;
    CHECK(refused(xsk_kick(&x), ENXIO));
    CHECK(refused(recv(x.fd, &byte, 1, MSG_DONTWAIT), ENXIO));
    struct pollfd one = {.fd = x.fd, .events = POLLIN | POLLOUT};
    CHECK(poll(&one, 1, 0) == 0);
    xsk_close(&x);
}

static void what_cannot_be_bound_is_refused(void) {
    struct xsk x;
    CHECK(xsk_open(&x, 8, 8) == 0);
    CHECK(refused(xsk_bind(&x, 0x7fffffff, XDP_COPY), ENODEV));
    CHECK(refused(xsk_bind(&x, 1, XDP_COPY | XDP_ZEROCOPY), EINVAL));
    CHECK(refused(xsk_bind(&x, 1, 0x8000), EINVAL));
    struct sockaddr_xdp name = {.sxdp_family = AF_XDP, .sxdp_ifindex = 1};
    CHECK(refused(bind(x.fd, (void *)&name, sizeof name - 1), EINVAL));
    name.sxdp_family = AF_INET;
    CHECK(refused(bind(x.fd, (void *)&name, sizeof name), EINVAL));
    xsk_close(&x);
    int fd = fresh();
    struct xsk bare = {.fd = fd};
    CHECK(refused(xsk_bind(&bare, 1, XDP_COPY), EINVAL));
    CHECK(refused(connect(fd, (void *)&name, sizeof name), EOPNOTSUPP));
    CHECK(refused(listen(fd, 1), EOPNOTSUPP));
    socklen_t len = sizeof name;
    CHECK(refused(getsockname(fd, (void *)&name, &len), EOPNOTSUPP));
    close(fd);
}

static int memory_beyond_the_limit_is_refused(void) {
    struct rlimit limit = {8 * PAGE, 8 * PAGE};
    int one = fresh(), two = fresh();
    char *at = memory(16 * PAGE, PROT_READ | PROT_WRITE);
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65533) != 0 || setuid(65533) != 0) return 0;
    int is_refused = refused(xsk_register(one, at, 16 * PAGE, 4096, 0), ENOBUFS);
    int fits = xsk_register(one, at, 8 * PAGE, 4096, 0) == 0;
    // The limit is the user's, whatever the socket.
    int is_billed = refused(xsk_register(two, at, 4 * PAGE, 4096, 0), ENOBUFS);
    close(one);
    // Linux gives it back a little later.
    int is_free = 0;
    for (int tries = 0; tries < 100 && !is_free; tries++) {
        is_free = xsk_register(two, at, 4 * PAGE, 4096, 0) == 0;
        usleep(20000);
    }
    return is_refused && fits && is_billed && is_free;
}

static void pinned_memory_counts_as_locked(void) { CHECK(in_child(memory_beyond_the_limit_is_refused)); }

static void what_is_pinned_is_given_back_at_the_end(void) {
    // All of it at once would be more than may be pinned, and more than there is.
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct xsk x;
            _exit(xsk_open(&x, 64, 2048) == 0 ? 0 : 1);
        }
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void a_fork_copies_pinned_memory_at_once(void) {
    struct xsk x;
    CHECK(xsk_open(&x, 8, 8) == 0);
    strcpy(x.umem, "before");
    int up[2], down[2];
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        strcpy(x.umem + XSK_CHUNK, "the child's");
        if (write(up[1], "x", 1) != 1 || read(down[0], &byte, 1) != 1) _exit(2);
        _exit(strcmp(x.umem, "before") == 0 ? 0 : 1);
    }
    char byte;
    CHECK(read(up[0], &byte, 1) == 1);
    strcpy(x.umem, "after");
    CHECK(x.umem[XSK_CHUNK] == 0);
    CHECK(write(down[1], "x", 1) == 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(mprotect(x.umem, x.umem_bytes, PROT_READ) == 0);
    CHECK(mprotect(x.umem, x.umem_bytes, PROT_READ | PROT_WRITE) == 0);
    x.umem[0] = 'A';
    CHECK(strcmp(x.umem, "After") == 0);
    CHECK(madvise(x.umem, x.umem_bytes, MADV_DONTNEED) == 0);
    CHECK(x.umem[0] == 0);
    x.umem[0] = 1;
    xsk_close(&x);
}

static int changer_runs;

// Forks and takes the right to store away, all the time.
static void *change(void *umem) {
    while (__atomic_load_n(&changer_runs, __ATOMIC_RELAXED)) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
        mprotect(umem, 16 * PAGE, PROT_READ);
        mprotect(umem, 16 * PAGE, PROT_READ | PROT_WRITE);
        madvise(umem, 4 * PAGE, MADV_DONTNEED);
    }
    return NULL;
}

static void memory_that_changes_meanwhile_is_pinned_or_refused(void) {
    pthread_t changer;
    char *at = memory(16 * PAGE, PROT_READ | PROT_WRITE);
    int pinned = 0;
    changer_runs = 1;
    CHECK(pthread_create(&changer, NULL, change, at) == 0);
    // With one CPU the changer may stop where nothing can be pinned, many times in a row.
    for (int i = 0; i < 200 || (pinned == 0 && i < 100000); i++) {
        int fd = fresh();
        int result = xsk_register(fd, at, 16 * PAGE, 4096, 0), why = errno;
        pinned += result == 0;
        close(fd);
        if (result != 0 && why != EFAULT && why != EAGAIN && why != ENOMEM) break;
    }
    int why = errno;
    __atomic_store_n(&changer_runs, 0, __ATOMIC_RELAXED);
    pthread_join(changer, NULL);
    errno = why;
    CHECK(pinned > 0);
    int fd = fresh();
    CHECK(xsk_register(fd, at, 16 * PAGE, 4096, 0) == 0);
    close(fd);
    munmap(at, 16 * PAGE);
}

static void a_sealed_file_is_not_the_memory_of_a_socket(void) {
    int file = memfd_create("umem", MFD_ALLOW_SEALING);
    CHECK(file >= 0 && ftruncate(file, 4 * PAGE) == 0);
    char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int fd = fresh();
    // Linux pins the pages, and then refuses the seal.
    int is_pinned = xsk_register(fd, at, 4 * PAGE, 4096, 0) == 0;
    CHECK(is_pinned || errno == EFAULT);
    munmap(at, 4 * PAGE);
    int sealed = fcntl(file, F_ADD_SEALS, F_SEAL_WRITE);
    CHECK(is_pinned ? sealed == -1 && errno == EBUSY : sealed == 0);
    close(fd);
    close(file);
}

static void copies_of_files_are_not_pinned(void) {
    int file = open("/tmp/xdp-file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && ftruncate(file, 4 * PAGE) == 0);
    char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    int fd = fresh();
    // Linux pins them; a program must be able to tell, and the file stays as it is.
    int result = xsk_register(fd, at, 4 * PAGE, 4096, 0);
    CHECK(result == 0 || errno == EFAULT);
    at[0] = 1;
    char byte = 7;
    CHECK(pread(file, &byte, 1, 0) == 1 && byte == 0);
    char *shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int other = fresh();
    CHECK(xsk_register(other, shared, 4 * PAGE, 4096, 0) == 0);
    close(fd);
    close(other);
    close(file);
}

int main(void) {
    TEST(only_those_who_may_open_packet_sockets);
    TEST(a_socket_is_raw_and_has_no_protocol);
    TEST(rings_have_a_power_of_two_of_entries_and_are_set_once);
    TEST(memory_is_whole_chunks_that_can_be_stored_to);
    TEST(rings_are_mapped_where_they_are_said_to_be);
    TEST(what_is_told_is_told_whole_or_not_at_all);
    TEST(nothing_goes_without_a_link);
    TEST(what_cannot_be_bound_is_refused);
    TEST(pinned_memory_counts_as_locked);
    TEST(what_is_pinned_is_given_back_at_the_end);
    TEST(a_fork_copies_pinned_memory_at_once);
    TEST(memory_that_changes_meanwhile_is_pinned_or_refused);
    TEST(a_sealed_file_is_not_the_memory_of_a_socket);
    TEST(copies_of_files_are_not_pinned);
    return check_status();
}
