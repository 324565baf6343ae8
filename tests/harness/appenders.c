// Threads that append to files of their own and sync after each record, and what they leave. The first thread syncs a file of its own
// once more in a handler of exit(3).
//
//     appenders PREFIX THREADS RECORDS          says how many appends a second that were
//     appenders PREFIX THREADS RECORDS check    reads the files PREFIX-0, PREFIX-1, ... and compares
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_BYTES = 100, THREADS_MAX = 64 };

static const char *prefix;
static int records;

static int open_file(long number, int flags) {
    char path[256];
    snprintf(path, sizeof path, "%s-%ld", prefix, number);
    int file = open(path, flags, 0644);
    if (file < 0) {
        perror(path);
        exit(1);
    }
    return file;
}

static void fill(char *record, long number, int index) {
    memset(record, 'a' + (int)(number + index) % 26, RECORD_BYTES);
    int bytes = snprintf(record, RECORD_BYTES, "record %d of %ld", index, number);
    record[bytes] = ' ';
    record[RECORD_BYTES - 1] = '\n';
}

static void *append(void *argument) {
    long number = (long)argument;
    int file = open_file(number, O_WRONLY | O_CREAT | O_APPEND);
    for (int index = 0; index < records; index++) {
        char record[RECORD_BYTES];
        fill(record, number, index);
        if (write(file, record, RECORD_BYTES) != RECORD_BYTES || fdatasync(file)) {
            perror(prefix);
            exit(1);
        }
    }
    close(file);
    return 0;
}

static void check(long number) {
    int file = open_file(number, O_RDONLY);
    char wanted[RECORD_BYTES], found[RECORD_BYTES];
    for (int index = 0; index < records; index++) {
        fill(wanted, number, index);
        if (read(file, found, RECORD_BYTES) != RECORD_BYTES || memcmp(wanted, found, RECORD_BYTES)) {
            fprintf(stderr, "%s-%ld: record %d is not there\n", prefix, number, index);
            exit(1);
        }
    }
    if (read(file, found, 1) != 0) {
        fprintf(stderr, "%s-%ld is too long\n", prefix, number);
        exit(1);
    }
    close(file);
}

static int last;

static void sync_at_exit(void) {
    if (write(last, "end\n", 4) != 4 || fdatasync(last)) _exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    prefix = argv[1];
    long count = atol(argv[2]);
    records = atoi(argv[3]);
    if (count < 1 || count > THREADS_MAX) return 2;
    if (argc > 4) {
        for (long number = 0; number < count; number++) check(number);
        return 0;
    }
    last = open_file(count, O_WRONLY | O_CREAT | O_APPEND);
    if (fdatasync(last) || atexit(sync_at_exit)) return 1;
    pthread_t threads[THREADS_MAX];
    double start_s = now_s();
    for (long number = 0; number < count; number++)
        if (pthread_create(&threads[number], 0, append, (void *)number)) return 1;
    for (long number = 0; number < count; number++) pthread_join(threads[number], 0);
    printf("%.1f appends/s\n", (double)count * records / (now_s() - start_s));
    return 0;
}
