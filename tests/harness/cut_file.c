// Cuts a file off that is mapped, named by the only argument; ends with 0 if what it has lost
// raises SIGBUS and the rest is there.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE };

static void expect(int holds, const char *what) {
    if (!holds) {
        printf("not so: %s\n", what);
        exit(1);
    }
}

/// The signal that a load in a child gets, or 0.
static int signal_of_load(volatile char *at) {
    pid_t child = fork();
    if (child == 0) _exit(*at & 0);
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(int count, char **args) {
    int file = open(args[count - 1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    expect(file >= 0 && ftruncate(file, 4 * PAGE) == 0, "a file is made");
    char *shared = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, file, 0);
    char *own = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, file, 0);
    expect(shared != MAP_FAILED && own != MAP_FAILED, "it is mapped");
    memset(shared, 5, 4 * PAGE);
    for (int page = 0; page < 4; page++) expect(own[page * PAGE] == 5, "both mappings see it");
    expect(ftruncate(file, PAGE + 10) == 0, "it is cut off");
    for (int page = 0; page < 4; page++) {
        int wanted = page < 2 ? 0 : SIGBUS;
        expect(signal_of_load(shared + page * PAGE) == wanted, "shared pages beyond the end are gone");
        expect(signal_of_load(own + page * PAGE) == wanted, "private pages beyond the end are gone");
    }
    expect(shared[PAGE + 9] == 5 && shared[PAGE + 10] == 0, "the last page ends in zeros");
    expect(ftruncate(file, 4 * PAGE) == 0, "it grows again");
    for (int page = 2; page < 4; page++) {
        expect(signal_of_load(shared + page * PAGE) == 0 && shared[page * PAGE] == 0, "it grew by zeros");
    }
    puts("cut off as it should be");
    return 0;
}
