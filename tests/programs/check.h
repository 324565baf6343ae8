// Checks for the small test programs. A program has functions of `void (void)`, runs
// each with TEST(function), and returns `check_status()`. A function's name is the
// sentence; CHECK(condition) ends the function on the first false condition. A program
// that checks many small facts in one scene says EXPECT(condition, "a sentence") instead,
// which prints a line of its own and goes on.
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static jmp_buf check_out __attribute__((unused));
static int check_failures;
static const char *check_name __attribute__((unused));

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            printf("not ok %s: line %d: %s (errno %d, %s)\n", check_name, __LINE__,   \
                   #condition, errno, strerror(errno));                               \
            fflush(stdout);                                                           \
            check_failures++;                                                         \
            longjmp(check_out, 1);                                                    \
        }                                                                             \
    } while (0)

#define TEST(function)                                                                \
    do {                                                                              \
        check_name = #function;                                                       \
        errno = 0;                                                                    \
        if (setjmp(check_out) == 0) {                                                 \
            function();                                                               \
            printf("ok %s\n", #function);                                             \
            fflush(stdout);                                                           \
        }                                                                             \
    } while (0)

#define EXPECT(condition, ...)                                                        \
    do {                                                                              \
        errno = 0;                                                                    \
        int holds = (condition), why = errno;                                         \
        printf(holds ? "ok " : "not ok ");                                            \
        printf(__VA_ARGS__);                                                          \
        if (!holds) printf(": line %d (errno %d, %s)", __LINE__, why, strerror(why)); \
        printf("\n");                                                                 \
        fflush(stdout);                                                               \
        check_failures += !holds;                                                     \
    } while (0)

static inline int check_status(void) { return check_failures != 0; }

#endif
