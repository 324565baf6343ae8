// vsa_edges: rings to areas that lie in several extents, on blocks of any size, and on disks that fail.
//   vsa_edges extents         the area `split` has extents of 256, 16 and 256 KiB
//   vsa_edges failing         a write to block 40 of the area `first` fails once, so do a read of block 80 and a write to block 210
#include "../check.h"
#include "vsa_ring.h"

enum { KIB = 1024 };
static struct ring ring;
static uint64_t block;

static int open_area(struct ring *opened, const char *path) {
    uint64_t geometry[2];
    if (ring_open(opened, path) != 0 || ioctl(opened->fd, GEOMETRY, geometry) != 0) return -1;
    block = geometry[1];
    return 0;
}

static void fill(char *memory, size_t bytes, unsigned seed) {
    for (size_t at = 0; at < bytes; at++) memory[at] = (char)(at / 512 * 31 + at + seed);
}

// Writes a stretch by the ring and reads it by calls, then the other way round.
static void goes_and_comes(uint64_t start, uint64_t bytes, uint64_t memory) {
    static char plain[MEMORY];
    unsigned seed = (unsigned)(start / block + memory / block);
    fill(ring.memory + memory, bytes, seed);
    CHECK(ask(&ring, WRITE, start / block, bytes / block, memory) == DONE);
    CHECK(pread(ring.fd, plain, bytes, start) == (ssize_t)bytes && memcmp(plain, ring.memory + memory, bytes) == 0);
    fill(plain, bytes, seed + 7);
    CHECK(pwrite(ring.fd, plain, bytes, start) == (ssize_t)bytes);
    CHECK(ask(&ring, READ, start / block, bytes / block, memory) == DONE);
    CHECK(memcmp(plain, ring.memory + memory, bytes) == 0);
}

static void requests_cross_the_borders_of_extents(void) {
    const uint64_t borders[] = {256 * KIB, 272 * KIB};
    for (int each = 0; each < 2; each++)
        for (uint64_t before = block; before <= 64 * KIB; before *= 2)
            for (uint64_t behind = block; behind <= 64 * KIB; behind *= 4)
                for (uint64_t memory = 0; memory < 3 * block; memory += block)
                    goes_and_comes(borders[each] - before, before + behind, memory);
}

static void many_that_cross_them_are_under_way_at_once(void) {
    unsigned done = 0, begun = 0;
    while (done < 500) {
        while (begun - done < 16 && begun < 500) {
            uint64_t start = 248 * KIB + begun % 4 * block;
            put(&ring, (struct submission){.operation = READ, .count = 32 * KIB / block, .first = start / block,
                                           .memory = begun % 7 * 32 * KIB, .cookie = begun});
            begun++;
        }
        show(&ring);
        CHECK(take(&ring, NULL) == DONE);
        done++;
    }
}

static void what_is_no_whole_block_is_refused(void) {
    CHECK(ask(&ring, READ, 0, 1, block / 2) == OUT_OF_MEMORY);
    CHECK(ask(&ring, READ, 528 * KIB / block - 1, 2, 0) == OUT_OF_AREA);
    CHECK(ask(&ring, READ, 528 * KIB / block - 1, 1, MEMORY - block) == DONE);
}

static void all_of_it_is_told_to_the_host(void) {
    memset(ring.memory, 's', 176 * KIB);
    for (uint64_t part = 0; part < 3; part++)
        CHECK(ask(&ring, WRITE | FORCED, part * 176 * KIB / block, 176 * KIB / block, 0) == DONE);
    CHECK(ask(&ring, FLUSH, 0, 0, 0) == DONE);
}

// So many requests of one block, every other one, on both rings at once; how many of each failed, and which one did last.
static int fails(struct ring *rings, int operation, unsigned failed[2], uint64_t *which) {
    failed[0] = failed[1] = 0;
    for (unsigned at = 0; at < 60; at++)
        for (int each = 0; each < 2; each++)
            put(&rings[each], (struct submission){.operation = operation, .count = 1, .first = 2 * at, .memory = at * 512, .cookie = 2 * at});
    show(&rings[0]), show(&rings[1]);
    for (unsigned at = 0; at < 60; at++)
        for (int each = 0; each < 2; each++) {
            uint64_t cookie = 0;
            int outcome = take(&rings[each], &cookie);
            if (outcome == FAILED) failed[each]++, *which = cookie;
            else if (outcome != DONE) return -1;
        }
    return 0;
}

static void a_failure_is_told_to_its_request_alone(void) {
    struct ring rings[2];
    unsigned failed[2];
    uint64_t which = 0;
    CHECK(open_area(&rings[0], "/dev/vsa/first") == 0 && open_area(&rings[1], "/dev/vsa/second") == 0);
    for (int each = 0; each < 2; each++) fill(rings[each].memory, MEMORY, each);
    CHECK(fails(rings, WRITE, failed, &which) == 0 && failed[0] == 1 && failed[1] == 0 && which == 40);
    CHECK(fails(rings, WRITE, failed, &which) == 0 && failed[0] == 0 && failed[1] == 0);
    CHECK(fails(rings, READ, failed, &which) == 0 && failed[0] == 1 && failed[1] == 0 && which == 80);
    CHECK(fails(rings, READ, failed, &which) == 0 && failed[0] == 0 && failed[1] == 0);
    // One that becomes several requests, of which one fails.
    CHECK(ask(&rings[0], WRITE, 200, 24, 3 * 512) == FAILED && ask(&rings[0], WRITE, 200, 24, 3 * 512) == DONE);
    for (int each = 0; each < 2; each++) {
        static char expected[MEMORY];
        fill(expected, MEMORY, each);
        CHECK(ask(&rings[each], FLUSH, 0, 0, 0) == DONE && memcmp(expected, rings[each].memory, MEMORY) == 0);
        ring_close(&rings[each]);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "failing") == 0) {
        TEST(a_failure_is_told_to_its_request_alone);
        return check_status();
    }
    if (open_area(&ring, "/dev/vsa/split") != 0) {
        printf("not ok the area has a ring (errno %d)\n", errno);
        return 1;
    }
    TEST(requests_cross_the_borders_of_extents);
    TEST(many_that_cross_them_are_under_way_at_once);
    TEST(what_is_no_whole_block_is_refused);
    TEST(all_of_it_is_told_to_the_host);
    return check_status();
}
