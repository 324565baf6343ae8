// Loads for all CPUs at once, and how many acquisitions of the kernel's spin locks had to wait
// meanwhile (/proc/lock_stat).
//
//     loads all                            a process on each CPU, one kind of load after the other
//     loads around NAME REQUESTS COMMAND   a command that makes so many requests
//     loads get PORT THREADS REQUESTS      asks a memcached; REQUESTS of each thread
//
// A line `load NAME REQUESTS WAITS` for each, and `  CLASS WAITS` for what was waited for most.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLASSES = 130, NAME = 160, SHOWN = 4, PAGES = 64, PAGE = 4096, PORT = 7000 };

struct class {
    char name[NAME];
    long waits;
};

struct stat_file {
    int count;
    struct class classes[CLASSES];
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void read_stat(struct stat_file *stat) {
    FILE *file = fopen("/proc/lock_stat", "r");
    if (file == NULL) fail("/proc/lock_stat");
    long turns, naps;
    for (stat->count = 0; stat->count < CLASSES; stat->count++) {
        struct class *class = &stat->classes[stat->count];
        if (fscanf(file, "%ld %ld %ld %159[^\n]", &class->waits, &turns, &naps, class->name) != 4) break;
    }
    fclose(file);
}

static long waits_of(const struct stat_file *stat, const char *name) {
    for (int i = 0; i < stat->count; i++)
        if (strcmp(stat->classes[i].name, name) == 0) return stat->classes[i].waits;
    return 0;
}

static int by_waits(const void *left, const void *right) {
    long a = ((const struct class *)left)->waits, b = ((const struct class *)right)->waits;
    return (a < b) - (a > b);
}

static struct stat_file before, after;

static void begin(void) { read_stat(&before); }

static void end(const char *name, long requests) {
    read_stat(&after);
    for (int i = 0; i < after.count; i++)
        after.classes[i].waits -= waits_of(&before, after.classes[i].name);
    qsort(after.classes, after.count, sizeof after.classes[0], by_waits);
    printf("load %s %ld %ld\n", name, requests, waits_of(&after, "total"));
    for (int i = 1; i < after.count && i <= SHOWN && after.classes[i].waits > 0; i++)
        printf("  %s %ld\n", after.classes[i].name, after.classes[i].waits);
    fflush(stdout);
}

static struct sockaddr_in local(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void fork_and_exec(int cpu) {
    (void)cpu;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "loads", "nothing", NULL);
        _exit(1);
    }
    if (waitpid(child, NULL, 0) != child) fail("waitpid");
}

static void open_and_close(int cpu) {
    (void)cpu;
    int file = open("/etc/hosts", O_RDONLY);
    if (file < 0) fail("/etc/hosts");
    close(file);
}

static void touch_pages(int cpu) {
    (void)cpu;
    char *pages =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) fail("mmap");
    for (int page = 0; page < PAGES; page++) pages[page * PAGE] = 1;
    munmap(pages, PAGES * PAGE);
}

static void sleep_shortly(int cpu) {
    (void)cpu;
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

static void send_to_itself(int cpu) {
    static int socket_of_mine = -1;
    struct sockaddr_in address = local(PORT + cpu);
    if (socket_of_mine < 0) {
        socket_of_mine = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(socket_of_mine, (void *)&address, sizeof address) != 0) fail("bind");
    }
    char byte = 0;
    sendto(socket_of_mine, &byte, 1, 0, (void *)&address, sizeof address);
    if (recv(socket_of_mine, &byte, 1, 0) != 1) fail("recv");
}

static void connect_to_itself(int cpu) {
    static int listener = -1;
    struct sockaddr_in address = local(PORT + cpu);
    if (listener < 0) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (void *)&address, sizeof address) != 0) fail("bind");
        listen(listener, 16);
    }
    int client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client, (void *)&address, sizeof address) != 0) fail("connect");
    int server = accept(listener, NULL, NULL);
    close(client);
    close(server);
}

static const struct load {
    const char *name;
    void (*once)(int cpu);
    int times, requests_each;
} LOADS[] = {
    {"fork-exec", fork_and_exec, 60, 1},     {"open-close", open_and_close, 4000, 1},
    {"fault", touch_pages, 60, PAGES},       {"sleep", sleep_shortly, 400, 1},
    {"udp", send_to_itself, 2000, 1},        {"tcp-connect", connect_to_itself, 300, 1},
};

static atomic_int *ready;

static void work(const struct load *load, int cpu, int cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    atomic_fetch_add(ready, 1);
    while (atomic_load(ready) < cpus) sched_yield();
    for (int i = 0; i < load->times; i++) load->once(cpu);
    exit(0);
}

static void run_on_all(const struct load *load, int cpus) {
    atomic_store(ready, 0);
    begin();
    for (int cpu = 0; cpu < cpus; cpu++)
        if (fork() == 0) work(load, cpu, cpus);
    while (wait(NULL) > 0) {}
    end(load->name, (long)cpus * load->times * load->requests_each);
}

static int all(void) {
    int cpus = sysconf(_SC_NPROCESSORS_ONLN);
    ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof LOADS / sizeof LOADS[0]; i++) run_on_all(&LOADS[i], cpus);
    return 0;
}

static int around(const char *name, long requests, char **command) {
    begin();
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execvp(command[0], command);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) {
        fprintf(stderr, "%s: status %d\n", name, status);
        return 1;
    }
    end(name, requests);
    return 0;
}

static int port, requests;

static void *ask(void *unused) {
    (void)unused;
    static const char ask[] = "get nothing\r\n";
    struct sockaddr_in address = local(port);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (void *)&address, sizeof address) != 0) fail("connect");
    for (int i = 0; i < requests; i++) {
        char reply[5];
        if (send(server, ask, sizeof ask - 1, 0) < 0) fail("send");
        if (recv(server, reply, sizeof reply, MSG_WAITALL) != sizeof reply) fail("recv");
    }
    return NULL;
}

static int get(int threads) {
    pthread_t clients[256];
    for (int i = 0; i < threads; i++) pthread_create(&clients[i], NULL, ask, NULL);
    for (int i = 0; i < threads; i++) pthread_join(clients[i], NULL);
    return 0;
}

int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "nothing") == 0) return 0;
    if (count == 2 && strcmp(words[1], "all") == 0) return all();
    if (count > 4 && strcmp(words[1], "around") == 0)
        return around(words[2], atol(words[3]), words + 4);
    if (count == 5 && strcmp(words[1], "get") == 0) {
        port = atoi(words[2]);
        requests = atoi(words[4]);
        return get(atoi(words[3]));
    }
    return 2;
}
