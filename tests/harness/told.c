// build: static
// Says what it was told of itself, and powers off: its name, its addresses, and the files that its arguments name.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

static void show(const char *path) {
    char line[256];
    struct stat is;
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s: missing\n", path);
        return;
    }
    fstat(fileno(file), &is);
    while (fgets(line, sizeof line, file)) printf("%s %o %u: %s", path, is.st_mode & 07777, is.st_uid, line);
    fclose(file);
}

int main(int count, char **words) {
    char text[256];
    struct ifaddrs *all = NULL;
    if (gethostname(text, sizeof text) == 0) printf("name: %s\n", text);
    printf("variable: %s\n", getenv("HOSTNAME"));
    printf("process %d of user %u\n", getpid(), getuid());
    getifaddrs(&all);
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
        struct sockaddr_in *address = (struct sockaddr_in *)one->ifa_addr;
        printf("address: %s %s\n", one->ifa_name, inet_ntoa(address->sin_addr));
    }
    for (int at = 1; at < count; at++) show(words[at]);
    puts("that is all");
    fflush(stdout);
    reboot(RB_POWER_OFF);
    // Not root's: the end of process 1 is the machine's.
    return 1;
}
