// build: static
// Answers each line N with `clock N: MONOTONIC REALTIME end N.`, in nanoseconds.
#include <stdio.h>
#include <string.h>
#include <time.h>

static long long ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void) {
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long long monotonic = ns(CLOCK_MONOTONIC), realtime = ns(CLOCK_REALTIME);
        line[strcspn(line, "\r\n")] = 0;
        printf("clock %s: %lld %lld end %s.\n", line, monotonic, realtime, line);
        fflush(stdout);
    }
    return 0;
}
