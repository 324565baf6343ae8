// build: static
// Says that it is up, and ends the machine in the way that the line on its input names.
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

int main(void) {
    char line[64];
    puts("the machine is up");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strcmp(line, "restart")) reboot(RB_AUTOBOOT);
        else if (!strcmp(line, "halt")) reboot(RB_HALT_SYSTEM);
        else if (!strcmp(line, "power off")) reboot(RB_POWER_OFF);
        printf("`%s` did not end the machine\n", line);
        fflush(stdout);
    }
    return 1;
}
