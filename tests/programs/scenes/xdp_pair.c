// xdp_pair A B [limited|hold|beside]: frames between two VNICs, each owned by an AF_XDP socket of this
// program. When it is limited, A may send less at once than it is given, and no frames of others; to
// hold is to wait until B is gone; beside others are the tests that do not count frames. The rest are
// for a link without any but these.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"
#include "xdp.h"

enum { ENTRIES = 64, CHUNKS = 128, HEADROOM = 256, HEADER = 14 };

static unsigned from, to;
static unsigned char from_mac[6], to_mac[6];
static struct xsk a, b;

static void mac_of(unsigned interface, unsigned char *mac) {
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if_indextoname(interface, request.ifr_name);
    ioctl(fd, SIOCGIFHWADDR, &request);
    memcpy(mac, request.ifr_hwaddr.sa_data, 6);
    close(fd);
}

// A frame from A to B that holds its number, as long as that says.
static uint32_t make(char *at, uint32_t number) {
    uint32_t len = 60 + number * 7 % 1400;
    memcpy(at, to_mac, 6);
    memcpy(at + 6, from_mac, 6);
    at[12] = (char)0x88;
    at[13] = (char)0xb5;
    memset(at + HEADER, number, len - HEADER);
    memcpy(at + HEADER, &number, sizeof number);
    return len;
}

// Whether B's frame is the one with this number.
static int is_frame(struct xdp_desc frame, uint32_t number) {
    static char wanted[XSK_CHUNK];
    uint32_t len = make(wanted, number);
    return frame.len == len && memcmp(b.umem + frame.addr, wanted, len) == 0;
}

static void send_frames(uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)((first + i) % CHUNKS) * XSK_CHUNK;
        xsk_send(&a, at, make(a.umem + at, first + i));
    }
}

static void fill(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) xsk_fill(&b, (uint64_t)i * XSK_CHUNK);
}

// What arrives does so before the call that sent it is over, or a moment later.
static int receive(struct xdp_desc *frame) {
    struct pollfd one = {.fd = b.fd, .events = POLLIN};
    return xsk_receive(&b, frame) || (poll(&one, 1, 5000) == 1 && xsk_receive(&b, frame));
}

static uint32_t completions(void) {
    uint64_t address;
    uint32_t count = 0;
    while (xsk_completed(&a, &address)) count++;
    return count;
}

static void end(void) {
    if (a.fd != 0) xsk_close(&a);
    if (b.fd != 0) xsk_close(&b);
    a.fd = b.fd = 0;
}

static void begin(void) {
    // An earlier test may have failed.
    end();
    CHECK(xsk_open(&a, ENTRIES, CHUNKS) == 0 && xsk_open(&b, ENTRIES, CHUNKS) == 0);
    CHECK(xsk_bind(&a, from, XDP_COPY | XDP_USE_NEED_WAKEUP) == 0);
    CHECK(xsk_bind(&b, to, XDP_USE_NEED_WAKEUP) == 0);
    // What the stacks have sent each other meanwhile; without chunks it is gone.
    usleep(50000);
}

static void a_link_has_one_owner(void) {
    struct xsk other;
    begin();
    CHECK(xsk_open(&other, 8, 8) == 0);
    CHECK(xsk_bind(&other, from, 0) == -1 && errno == EBUSY);
    CHECK(xsk_bind(&other, 1, 0) == -1 && errno == EOPNOTSUPP);
    CHECK(xsk_bind(&other, from, XDP_ZEROCOPY) == -1 && errno == EOPNOTSUPP);
    CHECK(xsk_bind(&other, from, XDP_SHARED_UMEM) == -1 && errno == EOPNOTSUPP);
    struct sockaddr_xdp queue = {.sxdp_family = AF_XDP, .sxdp_ifindex = from, .sxdp_queue_id = 16};
    CHECK(bind(other.fd, (void *)&queue, sizeof queue) == -1 && errno == EINVAL);
    xsk_close(&a);
    a.fd = 0;
    CHECK(xsk_bind(&other, from, 0) == 0);
    int entries = 8;
    CHECK(xsk_bind(&other, to, 0) == -1 && errno == EBUSY);
    CHECK(xsk_option(other.fd, XDP_RX_RING, &entries, sizeof entries) == -1 && errno == EBUSY);
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, other.fd, 0) == MAP_FAILED && errno == EBUSY);
    xsk_close(&other);
    end();
}

static int bind_queue(struct xsk *x, unsigned queue) {
    struct sockaddr_xdp name = {.sxdp_family = AF_XDP, .sxdp_ifindex = to, .sxdp_queue_id = queue};
    return bind(x->fd, (void *)&name, sizeof name);
}

// What is no flow's comes to each queue, and to who is left.
static void a_link_may_have_several_queues(void) {
    struct xsk further, third;
    struct xdp_desc frame;
    int no = 0;
    begin();
    CHECK(xsk_open(&further, ENTRIES, CHUNKS) == 0 && xsk_open(&third, 8, 8) == 0);
    struct xdp_flow flow = {.hosts = {0x0a000001, 0x0a000002}, .ports = {80, 1024}, .queue = 15};
    CHECK(ioctl(further.fd, XDP_MOVE_FLOW, &flow) == -1 && errno == ENXIO);
    CHECK(ioctl(b.fd, XDP_MOVE_FLOW, &flow) == -1 && errno == ENODEV);
    CHECK(xsk_option(further.fd, XDP_NEW_FLOWS, &no, sizeof no) == 0);
    CHECK(bind_queue(&further, 15) == 0);
    CHECK(ioctl(b.fd, XDP_MOVE_FLOW, &flow) == 0);
    flow.queue = 14;
    CHECK(ioctl(b.fd, XDP_MOVE_FLOW, &flow) == -1 && errno == ENODEV);
    flow.zero = 1;
    CHECK(ioctl(b.fd, XDP_MOVE_FLOW, &flow) == -1 && errno == EINVAL);
    CHECK(ioctl(b.fd, XDP_MOVE_FLOW, NULL) == -1 && errno == EFAULT);
    CHECK(bind_queue(&third, 15) == -1 && errno == EBUSY);
    CHECK(bind_queue(&third, 0) == -1 && errno == EBUSY);
    CHECK(xsk_option(further.fd, XDP_NEW_FLOWS, &no, sizeof no) == 0);
    xsk_close(&third);
    for (unsigned i = 0; i < 8; i++) xsk_fill(&further, (uint64_t)i * XSK_CHUNK);
    fill(1);
    send_frames(1, 1);
    CHECK(xsk_kick(&a) == 0);
    CHECK(receive(&frame) && is_frame(frame, 1));
    struct pollfd one = {.fd = further.fd, .events = POLLIN};
    CHECK(poll(&one, 1, 5000) == 1 && xsk_receive(&further, &frame));
    CHECK(frame.len == make(a.umem, 1));
    CHECK(memcmp(further.umem + frame.addr, a.umem, frame.len) == 0);
    xsk_close(&b);
    b.fd = 0;
    send_frames(2, 1);
    CHECK(xsk_kick(&a) == 0);
    CHECK(poll(&one, 1, 5000) == 1 && xsk_receive(&further, &frame));
    CHECK(frame.len == make(a.umem, 2));
    xsk_close(&further);
    end();
}

static int only_with(int capability) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};
    sets[0].effective = sets[0].permitted = 1u << capability;
    return syscall(SYS_capset, &head, sets);
}

static int may_not_bind(void) {
    struct xsk x;
    if (only_with(CAP_NET_RAW) != 0 || xsk_open(&x, 8, 8) != 0) return 0;
    return xsk_bind(&x, from, 0) == -1 && errno == EPERM;
}

// The stack loses a link that is taken, so CAP_NET_RAW is not enough.
static void who_may_not_change_links_takes_none(void) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) _exit(may_not_bind() ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void more_memory_than_a_share_of_the_machines_is_refused(void) {
    struct sysinfo machine;
    struct xsk many[32];
    unsigned count = 0;
    CHECK(sysinfo(&machine) == 0);
    size_t half = machine.totalram * machine.mem_unit / 2 & ~0xfffful;
    void *at = mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int fd = socket(AF_XDP, SOCK_RAW, 0);
    CHECK(at != MAP_FAILED && xsk_register(fd, at, half, 4096, 0) == -1 && errno == ENOBUFS);
    munmap(at, half);
    close(fd);
    // The largest rings take 3 MiB a socket.
    while (count < 32 && xsk_open(&many[count], 1 << 16, 16) == 0) count++;
    CHECK(count < 32 && (errno == ENOMEM || errno == ENOBUFS));
    close(many[count].fd);
    while (count-- != 0) xsk_close(&many[count]);
    begin();
    end();
}

static void calls_that_would_wait_are_refused(void) {
    char byte;
    begin();
    CHECK(send(a.fd, NULL, 0, 0) == -1 && errno == EOPNOTSUPP);
    CHECK(recv(a.fd, &byte, 1, 0) == -1 && errno == EOPNOTSUPP);
    CHECK(recv(a.fd, &byte, 1, MSG_DONTWAIT) == 0);
    end();
}

static void frames_arrive_whole_and_in_order(void) {
    begin();
    CHECK(xsk_needs_wakeup(&a.tx));
    for (uint32_t number = 0; number < 2000; number += 50) {
        fill(50);
        send_frames(number, 50);
        CHECK(xsk_kick(&a) == 0);
        for (uint32_t i = 0; i < 50; i++) {
            struct xdp_desc frame;
            uint64_t address;
            CHECK(xsk_completed(&a, &address));
            CHECK(address == (uint64_t)((number + i) % CHUNKS) * XSK_CHUNK);
            CHECK(receive(&frame));
            CHECK(frame.addr == (uint64_t)i * XSK_CHUNK + HEADROOM);
            CHECK(is_frame(frame, number + i));
        }
    }
    end();
}

static void who_waits_is_woken(void) {
    begin();
    int epoll = epoll_create1(0);
    struct epoll_event want = {.events = EPOLLIN}, got;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, b.fd, &want) == 0);
    CHECK(epoll_wait(epoll, &got, 1, 0) == 0);
    fill(1);
    pid_t child = fork();
    if (child == 0) {
        usleep(100000);
        // Its own copy of what the kernel reads from: only the parent's memory is the socket's.
        send_frames(3, 1);
        _exit(xsk_kick(&a) == 0 ? 0 : 1);
    }
    make(a.umem + 3 * XSK_CHUNK, 4);
    CHECK(epoll_wait(epoll, &got, 1, 20000) == 1 && got.events == EPOLLIN);
    struct xdp_desc frame;
    CHECK(xsk_receive(&b, &frame));
    CHECK(frame.len == make(a.umem, 3) && b.umem[frame.addr + HEADER] == 4);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct pollfd both[] = {{.fd = a.fd, .events = POLLOUT}, {.fd = b.fd, .events = POLLIN}};
    CHECK(poll(both, 2, 0) == 1 && both[0].revents == POLLOUT);
    close(epoll);
    end();
}

static void program_and_kernel_see_the_same_memory_after_a_fork(void) {
    begin();
    int hold[2];
    CHECK(pipe(hold) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(hold[1]);
        _exit(read(hold[0], &byte, 1) == 0 && b.umem[HEADROOM] == 0 ? 0 : 1);
    }
    for (uint32_t number = 0; number < 3 * CHUNKS; number++) {
        struct xdp_desc frame;
        fill(1);
        send_frames(number, 1);
        CHECK(xsk_kick(&a) == 0 && receive(&frame) && is_frame(frame, number));
        completions();
    }
    close(hold[1]);
    close(hold[0]);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    end();
}

// As any file of which somebody has a descriptor: the link is free when the last one is closed, here
// by the child's end, and so a test that fails before it ends its child leaves the link taken.
static void a_child_that_has_the_socket_holds_the_link(void) {
    struct xsk next;
    int status;
    begin();
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    end();
    CHECK(xsk_open(&next, ENTRIES, CHUNKS) == 0);
    int is_held = xsk_bind(&next, from, 0) == -1 && errno == EBUSY;
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(is_held && xsk_bind(&next, from, 0) == 0);
    xsk_close(&next);
}

static void entries_that_are_no_frames_are_counted(void) {
    begin();
    struct xdp_desc bad[] = {
        {.addr = 0, .len = 0},
        {.addr = 0, .len = XSK_CHUNK + 1},
        {.addr = XSK_CHUNK - 20, .len = 60},
        {.addr = (uint64_t)CHUNKS * XSK_CHUNK, .len = 60},
        {.addr = -1ull, .len = -1u},
        {.addr = 0, .len = 60, .options = 1},
    };
    for (int i = 0; i < 6; i++) xsk_put(&a.tx, &bad[i], sizeof bad[i]);
    fill(1);
    send_frames(9, 1);
    CHECK(xsk_kick(&a) == 0);
    CHECK(completions() == 1);
    struct xdp_desc frame;
    CHECK(receive(&frame) && is_frame(frame, 9));
    CHECK(xsk_statistics(&a).tx_invalid_descs == 6);
    CHECK(xsk_kick(&a) == 0 && xsk_statistics(&a).tx_ring_empty_descs == 1);
    end();
}

static void frames_without_a_place_are_counted_by_reason(void) {
    begin();
    struct xdp_statistics before = xsk_statistics(&b), after;
    send_frames(0, 5);
    CHECK(xsk_kick(&a) == 0);
    do after = xsk_statistics(&b);
    while (after.rx_fill_ring_empty_descs < before.rx_fill_ring_empty_descs + 5);
    CHECK(xsk_needs_wakeup(&b.fill));
    xsk_fill(&b, (uint64_t)CHUNKS * XSK_CHUNK);
    xsk_fill(&b, -1ull);
    char byte;
    CHECK(recv(b.fd, &byte, 1, MSG_DONTWAIT) == 0 && !xsk_needs_wakeup(&b.fill));
    send_frames(0, 2);
    CHECK(xsk_kick(&a) == 0);
    do after = xsk_statistics(&b);
    while (after.rx_invalid_descs < 2);
    completions();
    for (int times = 0; times < 2; times++) {
        fill(ENTRIES / 2);
        send_frames(0, ENTRIES / 2);
        CHECK(xsk_kick(&a) == 0);
        completions();
        while (xsk_filled(&b.rx) < (uint32_t)(times + 1) * ENTRIES / 2) usleep(1000);
    }
    fill(3);
    send_frames(0, 3);
    CHECK(xsk_kick(&a) == 0);
    do after = xsk_statistics(&b);
    while (after.rx_ring_full < 3);
    CHECK(after.rx_dropped == before.rx_dropped);
    CHECK(xsk_filled(&b.fill) == 3);
    end();
}

static void a_full_completion_ring_holds_frames_back(void) {
    begin();
    for (int times = 0; times < 2; times++) {
        fill(ENTRIES / 2);
        send_frames(0, ENTRIES / 2);
        CHECK(xsk_kick(&a) == 0);
    }
    send_frames(0, 4);
    CHECK(xsk_kick(&a) == -1 && errno == EAGAIN);
    CHECK(xsk_filled(&a.tx) == 4);
    CHECK(completions() == ENTRIES);
    CHECK(xsk_kick(&a) == 0 && completions() == 4);
    end();
}

static void a_program_that_scribbles_harms_only_itself(void) {
    unsigned seed = 1;
    for (int times = 0; times < 20; times++) {
        begin();
        struct xsk_ring *rings[] = {&a.fill, &a.completion, &a.rx, &a.tx,
                                    &b.fill, &b.completion, &b.rx, &b.tx};
        for (int i = 0; i < 3000; i++) {
            struct xsk_ring *ring = rings[rand_r(&seed) % 8];
            uint32_t value = rand_r(&seed) % 3 == 0 ? rand_r(&seed) : rand_r(&seed) % 4096;
            *xsk_word(ring, rand_r(&seed) % (ring->bytes / 4) * 4) = value;
            if (i % 3 == 0) xsk_kick(&a);
            if (i % 50 == 0) recv(b.fd, &value, 1, MSG_DONTWAIT);
        }
        end();
    }
}

static void memory_that_is_unmapped_takes_frames_until_the_end(void) {
    begin();
    fill(10);
    munmap(b.umem, b.umem_bytes);
    send_frames(0, 10);
    munmap(a.umem, a.umem_bytes);
    CHECK(xsk_kick(&a) == 0 && completions() == 10);
    for (int i = 0; i < 10; i++) {
        struct xdp_desc frame;
        CHECK(receive(&frame) && frame.len == 60u + i * 7);
    }
    end();
}

static int next_frame_arrives(uint32_t number) {
    struct xdp_desc frame;
    fill(1);
    send_frames(number, 1);
    return xsk_kick(&a) == 0 && completions() == 1 && receive(&frame) && is_frame(frame, number);
}

// Touches as much memory as is free, but for a little.
static void press(void) {
    struct sysinfo machine;
    sysinfo(&machine);
    size_t bytes = machine.freeram * machine.mem_unit;
    bytes = bytes > 64 << 20 ? bytes - (64 << 20) : 0;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; at != MAP_FAILED && i < bytes; i += 4096) at[i] = 1;
    munmap(at, bytes);
}

static void frames_find_their_memory_whatever_is_done_to_it(void) {
    size_t bytes = CHUNKS * XSK_CHUNK;
    begin();
    void *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *moved = mremap(b.umem, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    CHECK(moved == place);
    b.umem = moved;
    CHECK(next_frame_arrives(5));
    CHECK(mprotect(b.umem, bytes, PROT_READ) == 0 && next_frame_arrives(6));
    // A tracer's store, and one that is allowed again, do not part them.
    CHECK(mprotect(b.umem, bytes, PROT_READ | PROT_WRITE) == 0);
    struct iovec here = {"x", 1}, there = {b.umem + 1, 1};
    CHECK(process_vm_writev(getpid(), &here, 1, &there, 1, 0) == 1 && next_frame_arrives(7));
    CHECK(madvise(b.umem, bytes, MADV_PAGEOUT) == 0 || errno == EINVAL);
    press();
    CHECK(next_frame_arrives(8));
    // What is given up is the socket's alone.
    CHECK(madvise(b.umem, 4096, MADV_DONTNEED) == 0 && b.umem[HEADROOM] == 0);
    struct xdp_desc frame;
    fill(1);
    send_frames(9, 1);
    CHECK(xsk_kick(&a) == 0 && completions() == 1 && receive(&frame) && b.umem[HEADROOM] == 0);
    // As is what another mapping takes the place of.
    CHECK(mmap(b.umem, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == b.umem);
    fill(1);
    send_frames(10, 1);
    CHECK(xsk_kick(&a) == 0 && completions() == 1 && receive(&frame) && b.umem[HEADROOM] == 0);
    end();
}

// So much memory that the kernel takes large pages for it.
static void memory_of_large_pages_is_the_sockets_too(void) {
    enum { MANY = 4096 };
    end();
    CHECK(xsk_open(&a, ENTRIES, MANY) == 0 && xsk_open(&b, ENTRIES, MANY) == 0);
    CHECK(xsk_bind(&a, from, 0) == 0 && xsk_bind(&b, to, 0) == 0);
    usleep(50000);
    for (int times = 0; times < 3; times++) {
        for (uint32_t i = 0; i < ENTRIES; i++) {
            uint64_t at = (uint64_t)(i * 61) * XSK_CHUNK;
            xsk_fill(&b, at + 7 * XSK_CHUNK);
            xsk_send(&a, at, make(a.umem + at, i + times));
        }
        CHECK(xsk_kick(&a) == 0 && completions() == ENTRIES);
        for (uint32_t i = 0; i < ENTRIES; i++) {
            struct xdp_desc frame;
            CHECK(receive(&frame) && is_frame(frame, i + times));
        }
        int status = 1;
        pid_t child = fork();
        if (child == 0) _exit(0);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        // The large page at the end is in pieces now.
        munmap(b.umem + MANY * XSK_CHUNK - (times + 1) * 4096, 4096);
    }
    end();
}

static void who_kicks_for_ever_delays_nobody(void) {
    begin();
    pid_t child = fork();
    if (child == 0)
        for (;;) {
            if (xsk_filled(&a.tx) < ENTRIES) send_frames(0, 1);
            xsk_kick(&a);
            completions();
        }
    usleep(300000);
    kill(child, SIGKILL);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    end();
}

// More frames than may wait at a limit: what the link refuses stays in the ring, and goes without
// another call.
static void all_frames_pass_a_limit_in_the_end(void) {
    enum { MANY = 2048 };
    end();
    CHECK(xsk_open(&a, MANY, CHUNKS) == 0 && xsk_open(&b, MANY, MANY) == 0);
    CHECK(xsk_bind(&a, from, 0) == 0 && xsk_bind(&b, to, 0) == 0);
    fill(MANY);
    uint32_t len = make(a.umem, 100);
    for (uint32_t i = 0; i < MANY; i++) xsk_send(&a, 0, len);
    CHECK(xsk_kick(&a) == -1 && errno == EAGAIN);
    CHECK(xsk_filled(&a.tx) > 0);
    uint32_t received = 0;
    struct xdp_desc frame;
    while (received < MANY && receive(&frame)) received += is_frame(frame, 100);
    CHECK(received == MANY);
    CHECK(completions() == MANY && xsk_filled(&a.tx) == 0);
    end();
}

// The source is another's: mac-nospoof counts it.
static void a_forged_frame_is_gone(void) {
    begin();
    fill(2);
    send_frames(0, 1);
    a.umem[6 + 5] ^= 1;
    send_frames(1, 1);
    CHECK(xsk_kick(&a) == 0 && completions() == 2);
    struct xdp_desc frame;
    CHECK(receive(&frame) && is_frame(frame, 1));
    end();
}

// Until somebody deletes B.
static void the_link_is_gone(void) {
    begin();
    puts("bound");
    fflush(stdout);
    struct pollfd one = {.fd = b.fd, .events = POLLIN};
    CHECK(poll(&one, 1, 20000) == 1 && one.revents & POLLERR);
    CHECK(xsk_kick(&b) == -1 && errno == ENETDOWN);
    fill(1);
    send_frames(0, 1);
    CHECK(xsk_kick(&a) == 0 && completions() == 1);
    end();
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    from = if_nametoindex(argv[1]);
    to = if_nametoindex(argv[2]);
    mac_of(from, from_mac);
    mac_of(to, to_mac);
    if (argc > 3 && strcmp(argv[3], "hold") == 0) {
        TEST(the_link_is_gone);
        return check_status();
    }
    if (argc > 3 && strcmp(argv[3], "beside") == 0) {
        TEST(a_program_that_scribbles_harms_only_itself);
        TEST(who_kicks_for_ever_delays_nobody);
        TEST(a_child_that_has_the_socket_holds_the_link);
        return check_status();
    }
    if (argc > 3) {
        TEST(all_frames_pass_a_limit_in_the_end);
        TEST(a_forged_frame_is_gone);
        return check_status();
    }
    TEST(a_link_has_one_owner);
    TEST(a_link_may_have_several_queues);
    TEST(who_may_not_change_links_takes_none);
    TEST(more_memory_than_a_share_of_the_machines_is_refused);
    TEST(calls_that_would_wait_are_refused);
    TEST(frames_arrive_whole_and_in_order);
    TEST(who_waits_is_woken);
    TEST(program_and_kernel_see_the_same_memory_after_a_fork);
    TEST(entries_that_are_no_frames_are_counted);
    TEST(frames_without_a_place_are_counted_by_reason);
    TEST(a_full_completion_ring_holds_frames_back);
    TEST(a_child_that_has_the_socket_holds_the_link);
    TEST(a_program_that_scribbles_harms_only_itself);
    TEST(frames_arrive_whole_and_in_order);
    TEST(memory_that_is_unmapped_takes_frames_until_the_end);
    TEST(frames_find_their_memory_whatever_is_done_to_it);
    TEST(memory_of_large_pages_is_the_sockets_too);
    TEST(who_kicks_for_ever_delays_nobody);
    return check_status();
}
