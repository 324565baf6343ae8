// build: static
// Makes a Linux guest behave like Sietch towards the host, so that the same image,
// tests and benchmarks run on both.
//
// As /init of the image it does by hand what Sietch's kernel does by itself: mounts,
// drivers (/modules, in the order of their names), the address from `ip=`, the first
// program from /.sietch/run with COM1 as its console, the end on COM2 and by
// isa-debug-exit. See host/qemu for both ports' protocol.
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { DEBUG_EXIT_PORT = 0x501, ORDERLY = 0x10, LIST_MAX = 1024 };

static char *arguments[LIST_MAX], *variables[LIST_MAX];
static char *folder = "/", command_line[4096], run_file[65536];
static int is_terminal;

// Ends the machine after telling the host why.
static void end(const char *how, int value) {
    int port = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);
    dprintf(port, "sietch: %s=%d\n", how, value);
    tcdrain(port);
    sync();
    ioperm(DEBUG_EXIT_PORT, 1, 1);
    outb(ORDERLY, DEBUG_EXIT_PORT);
}

static void mount_all(void) {
    mount("none", "/proc", "proc", 0, 0);
    mount("none", "/sys", "sysfs", 0, 0);
    mount("none", "/dev", "devtmpfs", 0, 0);
    mkdir("/dev/pts", 0755);
    mkdir("/dev/shm", 01777);
    mount("none", "/dev/pts", "devpts", 0, 0);
    mount("none", "/dev/shm", "tmpfs", 0, 0);
    mount("none", "/tmp", "tmpfs", 0, 0);
    mount("none", "/run", "tmpfs", 0, 0);
}

static int no_dots(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void load_modules(void) {
    struct dirent **names;
    int count = scandir("/modules", &names, no_dots, alphasort);
    for (int i = 0; i < count; i++) {
        char path[512];
        snprintf(path, sizeof path, "/modules/%s", names[i]->d_name);
        int file = open(path, O_RDONLY);
        syscall(SYS_finit_module, file, "", 0);
        close(file);
    }
}

// The value of a key of the command line, ended by a NUL.
static char *value_of(const char *key) {
    static char text[4096];
    strcpy(text, command_line);
    for (char *word = strtok(text, " \n"); word; word = strtok(0, " \n")) {
        size_t len = strlen(key);
        if (!strncmp(word, key, len) && word[len] == '=') return word + len + 1;
    }
    return "";
}

static void set_address(struct ifreq *request, const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(text)};
    memcpy(&request->ifr_addr, &address, sizeof address);
}

static void up(int sock, const char *name) {
    struct ifreq request = {0};
    strcpy(request.ifr_name, name);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    ioctl(sock, SIOCSIFFLAGS, &request);
}

static void configure_network(void) {
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    up(sock, "lo");
    char *address = strtok(value_of("ip"), "/"), *length = strtok(0, ","), *gateway = strtok(0, "");
    if (!length) return;
    struct ifreq request = {.ifr_name = "eth0"};
    set_address(&request, address);
    ioctl(sock, SIOCSIFADDR, &request);
    struct in_addr mask = {htonl(~0u << (32 - atoi(length)))};
    set_address(&request, inet_ntoa(mask));
    ioctl(sock, SIOCSIFNETMASK, &request);
    up(sock, "eth0");
    if (!gateway) return;
    struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
    struct sockaddr_in to = {.sin_family = AF_INET};
    memcpy(&route.rt_dst, &to, sizeof to);
    memcpy(&route.rt_genmask, &to, sizeof to);
    to.sin_addr.s_addr = inet_addr(gateway);
    memcpy(&route.rt_gateway, &to, sizeof to);
    ioctl(sock, SIOCADDRT, &route);
}

static ssize_t read_file(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY);
    ssize_t len = 0, more;
    while ((more = read(file, text + len, size - 1 - len)) > 0) len += more;
    close(file);
    text[len] = 0;
    return len;
}

static void read_run_file(void) {
    ssize_t len = read_file("/.sietch/run", run_file, sizeof run_file);
    int argument = 0, variable = 0;
    for (char *at = run_file; at < run_file + len; at += strlen(at) + 1) {
        if (!strncmp(at, "arg=", 4)) arguments[argument++] = at + 4;
        if (!strncmp(at, "env=", 4)) variables[variable++] = at + 4;
        if (!strncmp(at, "cwd=", 4)) folder = at + 4;
        if (!strcmp(at, "tty=1")) is_terminal = 1;
    }
}

// Without a terminal the console neither echoes nor translates; ^D ends the input.
static void open_console(void) {
    setsid();
    for (int fd = 0; fd < 3; fd++) close(fd);
    open("/dev/ttyS0", O_RDWR);
    dup(0), dup(0);
    ioctl(0, TIOCSCTTY, 1);
    if (is_terminal) return;
    struct termios settings;
    tcgetattr(0, &settings);
    settings.c_oflag &= ~OPOST;
    settings.c_iflag &= ~(ICRNL | IXON);
    settings.c_lflag &= ~(ECHO | ISIG);
    tcsetattr(0, TCSANOW, &settings);
}

// Serves the host's requests on COM2 in a process of its own.
static void serve_requests(pid_t program) {
    if (fork()) return;
    int port = open("/dev/ttyS1", O_RDONLY | O_NOCTTY);
    struct termios settings;
    tcgetattr(port, &settings);
    cfmakeraw(&settings);
    tcsetattr(port, TCSANOW, &settings);
    for (char request; read(port, &request, 1) == 1;)
        if (request == 'T') kill(program, SIGTERM);
    _exit(0);
}

int main(void) {
    mount_all();
    load_modules();
    read_file("/proc/cmdline", command_line, sizeof command_line);
    read_run_file();
    configure_network();
    char *name = value_of("hostname");
    sethostname(name, strlen(name));
    struct rlimit files = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &files);
    pid_t program = fork();
    if (program == 0) {
        open_console();
        chdir(folder);
        execve(value_of("init"), arguments, variables);
        perror("the first program");
        _exit(127);
    }
    serve_requests(program);
    int status;
    for (pid_t ended; (ended = wait(&status)) != program;)
        if (ended < 0 && errno == ECHILD) break;
    if (WIFSIGNALED(status)) {
        static char how[64];
        snprintf(how, sizeof how, "killed name=SIG%s signal", sigabbrev_np(WTERMSIG(status)));
        end(how, WTERMSIG(status));
    }
    end("exit status", WEXITSTATUS(status));
    for (;;) pause();
}
