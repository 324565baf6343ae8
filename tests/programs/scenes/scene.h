// What the scenes of fail_nth.c have in common: how the n-th allocation is made to fail, and
// how a scene leaves nothing behind. A scene returns 0, or -1 with the reason in `errno`.
#pragma once
#include "../check.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE 4096

static char buffer[1 << 16];
static int fail_nth = -1;
// What fails now, and for a scene that arms its child: whether that one was spared.
static int armed, is_spared;

static void arm(int n) {
    char text[16];
    armed = n;
    int len = snprintf(text, sizeof text, "%d", n);
    if (fail_nth >= 0 && pwrite(fail_nth, text, len, 0) != len) abort();
}

// Whether the allocation that was to fail is still to come. Reading the file allocates, too:
// if that failed, the scene had come to its end.
static int is_armed(void) {
    char text[16] = "1";
    return fail_nth < 0 || pread(fail_nth, text, sizeof text - 1, 0) <= 0 || atoi(text) > 0;
}

static int give_up(int fd) {
    int why = errno;
    if (fd >= 0) close(fd);
    errno = why;
    return -1;
}

static int close_both(const int *ends, int result) {
    int why = errno;
    close(ends[0]), close(ends[1]);
    errno = why;
    return result;
}

// Removes a name; what was refused memory gets it the second time. Keeps `errno`.
static void forget(int (*remove_name)(const char *), const char *path) {
    int why = errno;
    if (remove_name(path) < 0 && errno == ENOMEM) remove_name(path);
    errno = why;
}
