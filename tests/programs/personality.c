// personality(2): what it changes, who takes it over, and sleeping by clocks of CPU time.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { ASK = 0xffffffff };

static int is_ok(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// What this program prints when it is started with these bits and this argument.
static void output_of(const char *path, unsigned bits, char *text, size_t room) {
    int ends[2];
    memset(text, 0, room);
    if (pipe(ends)) return;
    pid_t child = fork();
    if (child == 0) {
        personality(bits);
        dup2(ends[1], 1);
        execl(path, "personality", "tell", (char *)0);
        _exit(1);
    }
    close(ends[1]);
    for (ssize_t got; room > 1 && (got = read(ends[0], text, room - 1)) > 0; text += got) room -= got;
    close(ends[0]);
    waitpid(child, 0, 0);
}

static int tell(void) {
    static int here;
    int there;
    printf("%p %p %p %p %x", (void *)&tell, (void *)&here, (void *)&there, malloc(1 << 20),
           (unsigned)personality(ASK));
    printf(" %p\n", (void *)printf);
    return 0;
}

static void it_is_told_and_taken_over(void) {
    CHECK(personality(ASK) == 0 && personality(ADDR_NO_RANDOMIZE) == 0);
    pid_t child = fork();
    if (child == 0) _exit(personality(ASK) != ADDR_NO_RANDOMIZE);
    CHECK(is_ok(child));
    char line[32] = "";
    FILE *file = fopen("/proc/self/personality", "r");
    CHECK(file && fgets(line, sizeof line, file) && !strcmp(line, "00040000\n"));
    fclose(file);
    CHECK(personality(0) == ADDR_NO_RANDOMIZE && personality(ASK) == 0);
}

static void addresses_are_random_or_are_not(void) {
    char first[300], second[300];
    output_of("/proc/self/exe", ADDR_NO_RANDOMIZE, first, sizeof first);
    output_of("/proc/self/exe", ADDR_NO_RANDOMIZE, second, sizeof second);
    CHECK(first[0] && !strcmp(first, second) && strstr(first, " 40000 "));
    output_of("/proc/self/exe", 0, first, sizeof first);
    output_of("/proc/self/exe", 0, second, sizeof second);
    CHECK(first[0] && strcmp(first, second) && strstr(first, " 0 "));
}

static int executes(int (*code)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(code() != 7);
    return is_ok(child);
}

static void what_is_read_can_be_executed(void) {
    // mov eax, 7; ret
    static const unsigned char CODE[] = {0xb8, 7, 0, 0, 0, 0xc3};
    char *before = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(personality(READ_IMPLIES_EXEC) == 0);
    char *after = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(before, CODE, sizeof CODE), memcpy(after, CODE, sizeof CODE);
    CHECK(!executes((int (*)(void))(void *)before) && executes((int (*)(void))(void *)after));
    CHECK(mprotect(before, 4096, PROT_READ) == 0 && executes((int (*)(void))(void *)before));
    char text[300];
    output_of("/proc/self/exe", READ_IMPLIES_EXEC | SHORT_INODE, text, sizeof text);
    CHECK(strstr(text, " 1000000 "));
    CHECK(personality(0) == READ_IMPLIES_EXEC && mprotect(before, 4096, PROT_READ) == 0);
    CHECK(!executes((int (*)(void))(void *)before));
}

static void a_machine_of_32_bits_has_its_name(void) {
    struct utsname names;
    CHECK(uname(&names) == 0 && !strcmp(names.machine, "x86_64"));
    CHECK(personality(PER_LINUX32) == 0 && uname(&names) == 0 && !strcmp(names.machine, "i686"));
    CHECK(personality(0) == PER_LINUX32);
}

static void who_gains_rights_is_random(void) {
    if (getuid() != 0) return;
    char copy[300], text[300];
    snprintf(copy, sizeof copy, "cp /proc/%d/exe /tmp/personality_set_id", getpid());
    if (system(copy) != 0) return;
    CHECK(chown("/tmp/personality_set_id", 12345, 12345) == 0);
    CHECK(chmod("/tmp/personality_set_id", 04755) == 0);
    output_of("/tmp/personality_set_id", ADDR_NO_RANDOMIZE | SHORT_INODE, text, sizeof text);
    CHECK(unlink("/tmp/personality_set_id") == 0 && strstr(text, " 1000000 "));
}

static volatile int goes_on;

static void *work(void *nothing) {
    while (goes_on) {
    }
    return nothing;
}

static void on_alarm(int signal) { (void)signal; }

static void clocks_of_cpu_time_are_waited_for(void) {
    pthread_t thread;
    struct timespec start, end, span = {0, 30000000}, rest = {0, 0};
    goes_on = 1;
    CHECK(pthread_create(&thread, 0, work, 0) == 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    CHECK(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &span, 0) == 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    CHECK((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec >= span.tv_nsec);
    end.tv_nsec += 10000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    CHECK(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &end, 0) == 0);
    goes_on = 0;
    CHECK(pthread_join(thread, 0) == 0);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, 0);
    ualarm(20000, 0);
    span.tv_sec = 100;
    CHECK(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &span, &rest) == EINTR);
    CHECK(rest.tv_sec == 100 || rest.tv_sec == 99);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return tell();
    TEST(it_is_told_and_taken_over);
    TEST(addresses_are_random_or_are_not);
    TEST(what_is_read_can_be_executed);
    TEST(a_machine_of_32_bits_has_its_name);
    TEST(who_gains_rights_is_random);
    TEST(clocks_of_cpu_time_are_waited_for);
    return check_status();
}
