// Keeps objects on the heap and has umastat look at it from outside.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OBJECTS = 3000, BYTES = 100 };

int main(void) {
    static void *kept[OBJECTS];
    for (int i = 0; i < OBJECTS; i++) kept[i] = malloc(BYTES);
    pid_t looker = fork();
    if (looker == 0) {
        char pid[16];
        snprintf(pid, sizeof pid, "%d", getppid());
        execl("/bin/umastat", "umastat", pid, (char *)0);
        _exit(127);
    }
    int status = -1;
    waitpid(looker, &status, 0);
    for (int i = 0; i < OBJECTS; i++) free(kept[i]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
