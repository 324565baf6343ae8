// Capabilities: where they are asked for, and what becomes of them (capabilities(7)).
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { USER = 1004, OTHER = 1006, SO_FORCED_SEND = 32, SO_FORCED_RECEIVE = 33 };

static void become(unsigned id) {
    if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0) _exit(99);
}

static int set_capabilities(__u64 effective, __u64 permitted, __u64 inheritable) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    for (int half = 0; half < 2; half++)
        data[half] = (struct __user_cap_data_struct){effective >> 32 * half, permitted >> 32 * half,
                                                     inheritable >> 32 * half};
    return syscall(SYS_capset, &header, data);
}

// The set of this name in /proc/self/status: CapEff, CapPrm, ...
static __u64 set_of(const char *name) {
    char line[256];
    __u64 set = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0) set = strtoull(line + strlen(name) + 1, NULL, 16);
    fclose(status);
    return set;
}

#define BIT(capability) (1ull << (capability))

// USER with these capabilities and no others.
static void become_with(__u64 capabilities) {
    if (prctl(PR_SET_KEEPCAPS, 1) != 0) _exit(98);
    become(USER);
    if (set_capabilities(capabilities, capabilities, 0) != 0) _exit(97);
}

static int result_of(int (*work)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(work());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int bind_error(int family, int type, int port) {
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in name4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(family, type, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, 26, &yes, sizeof yes);
    int failed = family == AF_INET6 ? bind(fd, (void *)&name, sizeof name)
                                    : bind(fd, (void *)&name4, sizeof name4);
    int error = failed ? errno : 0;
    close(fd);
    return error;
}

static int bind_low(void) {
    become(USER);
    const int families[] = {AF_INET, AF_INET6}, types[] = {SOCK_STREAM, SOCK_DGRAM};
    for (int i = 0; i < 4; i++) {
        if (bind_error(families[i / 2], types[i % 2], 893) != EACCES) return 10 + i;
        if (bind_error(families[i / 2], types[i % 2], 1023) != EACCES) return 20 + i;
        if (bind_error(families[i / 2], types[i % 2], 0) != 0) return 30 + i;
        if (bind_error(families[i / 2], types[i % 2], 1024 + 26) != 0) return 40 + i;
    }
    return 0;
}

static int bind_low_with_capability(void) {
    become_with(BIT(CAP_NET_BIND_SERVICE));
    return bind_error(AF_INET, SOCK_STREAM, 893);
}

static void low_ports_need_the_capability(void) {
    CHECK(result_of(bind_low) == 0);
    CHECK(result_of(bind_low_with_capability) == 0);
}

static int bind_893(void) {
    become(USER);
    return bind_error(AF_INET, SOCK_STREAM, 893);
}

static void or_a_setting_that_frees_them(void) {
    int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_RDWR);
    char old[16] = {0};
    CHECK(fd >= 0 && read(fd, old, 15) > 0 && strcmp(old, "1024\n") == 0);
    CHECK(pwrite(fd, "893", 3, 0) == 3);
    int freed = result_of(bind_893);
    CHECK(pwrite(fd, "1024", 4, 0) == 4);
    int locked = result_of(bind_893);
    close(fd);
    CHECK(freed == 0);
    CHECK(locked == EACCES);
}

static int set_error(int level, int name, int value) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int error = setsockopt(fd, level, name, &value, sizeof value) ? errno : 0;
    close(fd);
    return error;
}

static int set_options(void) {
    become(USER);
    if (set_error(SOL_SOCKET, SO_MARK, 1) != EPERM) return 1;
    if (set_error(SOL_SOCKET, SO_PRIORITY, 7) != EPERM || set_error(SOL_SOCKET, SO_PRIORITY, 6)) return 2;
    if (set_error(SOL_SOCKET, SO_FORCED_SEND, 9999) != EPERM) return 3;
    if (set_error(SOL_SOCKET, SO_FORCED_RECEIVE, 9999) != EPERM) return 4;
    if (set_error(SOL_SOCKET, SO_DEBUG, 1) != EACCES || set_error(SOL_SOCKET, SO_DEBUG, 0)) return 5;
    return set_error(IPPROTO_IP, IP_TRANSPARENT, 1) == EPERM ? 0 : 6;
}

static int set_options_as_administrator(void) {
    become_with(BIT(CAP_NET_ADMIN));
    if (set_error(SOL_SOCKET, SO_MARK, 1) || set_error(SOL_SOCKET, SO_PRIORITY, 7)) return 1;
    return set_error(SOL_SOCKET, SO_FORCED_SEND, 9999) || set_error(SOL_SOCKET, SO_DEBUG, 1);
}

static void options_that_concern_others_need_theirs(void) {
    CHECK(result_of(set_options) == 0);
    CHECK(result_of(set_options_as_administrator) == 0);
}

static int schedule_others(void) {
    pid_t root = getppid();
    become(USER);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    struct sched_param plain = {0};
    if (sched_setaffinity(root, sizeof set, &set) != -1 || errno != EPERM) return 1;
    if (sched_setscheduler(root, SCHED_OTHER, &plain) != -1 || errno != EPERM) return 2;
    if (sched_setparam(root, &plain) != -1 || errno != EPERM) return 3;
    if (setpriority(PRIO_PROCESS, root, 10) != -1 || errno != EPERM) return 4;
    return sched_setscheduler(0, SCHED_BATCH, &plain) == 0 ? 0 : 5;
}

static void how_others_run_is_not_for_everybody(void) { CHECK(result_of(schedule_others) == 0); }

static int ask_much(void) {
    become(USER);
    struct timeval day = {1, 0};
    if (settimeofday(&day, NULL) != -1 || errno != EPERM) return 1;
    if (sethostname("x", 1) != -1 || errno != EPERM) return 2;
    if (chroot("/") != -1 || errno != EPERM) return 3;
    if (mount("none", "/", "tmpfs", 0, NULL) != -1 || errno != EPERM) return 4;
    if (mknod("/tmp/capabilities_node", S_IFCHR | 0600, makedev(1, 3)) != -1 || errno != EPERM) return 5;
    if (socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) != -1 || errno != EPERM) return 6;
    if (socket(AF_PACKET, SOCK_RAW, 0) != -1 || errno != EPERM) return 7;
    if (kill(1, 0) != -1 || errno != EPERM) return 8;
    return prctl(PR_CAPBSET_DROP, CAP_KILL) == -1 && errno == EPERM ? 0 : 9;
}

static void what_concerns_the_machine_is_for_root(void) { CHECK(result_of(ask_much) == 0); }

static const char *const SECRET = "/tmp/capabilities_secret";

static int look_only(void) {
    become_with(BIT(CAP_DAC_READ_SEARCH));
    if (open(SECRET, O_RDONLY) < 0) return 1;
    if (open(SECRET, O_WRONLY) >= 0 || open(SECRET, O_RDWR) >= 0) return 2;
    return 0;
}

static int ask_for_real_user(void) {
    if (setresuid(USER, 0, 0) != 0) return 1;
    if (access(SECRET, R_OK) != -1 || errno != EACCES) return 2;
    return open(SECRET, O_RDONLY) < 0;
}

static int keep_group(void) {
    become(USER);
    const char *name = "/tmp/capabilities_group";
    struct stat found;
    if (chmod(name, 02755) != 0 || stat(name, &found) != 0) return 1;
    return found.st_mode & S_ISGID ? 2 : 0;
}

static void files_obey_the_capability_that_is_theirs(void) {
    int fd = open(SECRET, O_CREAT | O_WRONLY, 0600);
    int group = open("/tmp/capabilities_group", O_CREAT | O_WRONLY, 0755);
    CHECK(fd >= 0 && fchown(group, USER, OTHER) == 0);
    close(fd), close(group);
    int looked = result_of(look_only), real = result_of(ask_for_real_user), kept = result_of(keep_group);
    unlink(SECRET), unlink("/tmp/capabilities_group");
    CHECK(looked == 0);
    CHECK(real == 0);
    CHECK(kept == 0);
}

// What a program has in force that is started now; -1 if it is not started.
static int has_after_exec(const char *program, int capability) {
    char number[16];
    snprintf(number, sizeof number, "%d", capability);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, number, (char *)0);
        _exit(96);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? WEXITSTATUS(status) : -1;
}

static int pass_on(void) {
    const __u64 one = BIT(CAP_KILL);
    prctl(PR_SET_KEEPCAPS, 1);
    become(USER);
    if (set_capabilities(one, one, 0) != 0) return 1;
    if (has_after_exec("/proc/self/exe", CAP_KILL) != 0) return 2;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) != -1 || errno != EPERM) return 3;
    if (set_capabilities(one, one, one) != 0) return 4;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) != 0) return 5;
    if (has_after_exec("/proc/self/exe", CAP_KILL) != 1) return 6;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 1) != -1 || errno != EINVAL) return 7;
    if (set_capabilities(one, one, 0) != 0 || set_of("CapAmb:") != 0) return 8;
    return 0;
}

static int lose_ambient(void) {
    if (set_capabilities(set_of("CapEff:"), set_of("CapPrm:"), BIT(CAP_KILL)) != 0) return 1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) != 0) return 2;
    prctl(PR_SET_KEEPCAPS, 1);
    become(USER);
    return set_of("CapAmb:") == 0 && set_of("CapPrm:") != 0 ? 0 : 3;
}

static void the_ambient_set_passes_exec_and_not_a_change_of_user(void) {
    CHECK(result_of(pass_on) == 0);
    CHECK(result_of(lose_ambient) == 0);
}

static int inherit_bounded(void) {
    __u64 all = set_of("CapPrm:"), few = all & ~BIT(CAP_KILL);
    if (set_capabilities(few, few, BIT(CAP_KILL)) != 0) return 1;
    few &= ~BIT(CAP_SETPCAP);
    if (set_capabilities(few, few, 0) != 0) return 2;
    if (set_capabilities(few, few, BIT(CAP_KILL)) != -1 || errno != EPERM) return 3;
    return set_capabilities(all, all, 0) == -1 && errno == EPERM ? 0 : 4;
}

static void the_inheritable_set_grows_within_bounds(void) { CHECK(result_of(inherit_bounded) == 0); }

static int no_root(void) {
    if (prctl(PR_GET_SECUREBITS) != 0) return 1;
    if (has_after_exec("/proc/self/exe", CAP_KILL) != 1) return 2;
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) != 0) return 3;
    if (has_after_exec("/proc/self/exe", CAP_KILL) != 0) return 4;
    if (prctl(PR_SET_SECUREBITS, 0) != -1 || errno != EPERM) return 5;
    if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT_LOCKED) != -1 || errno != EPERM) return 6;
    return prctl(PR_GET_SECUREBITS) == (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) ? 0 : 7;
}

static int no_fixup(void) {
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0) return 1;
    __u64 before = set_of("CapEff:");
    become(USER);
    return set_of("CapEff:") == before ? 0 : 2;
}

static int no_ambient(void) {
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_CAP_AMBIENT_RAISE) != 0) return 1;
    if (set_capabilities(set_of("CapEff:"), set_of("CapPrm:"), BIT(CAP_KILL)) != 0) return 2;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) != -1 || errno != EPERM) return 3;
    if (prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED) != 0) return 4;
    return prctl(PR_SET_KEEPCAPS, 1) == -1 && errno == EPERM ? 0 : 5;
}

static void secure_bits_part_root_from_its_rights(void) {
    CHECK(result_of(no_root) == 0);
    CHECK(result_of(no_fixup) == 0);
    CHECK(result_of(no_ambient) == 0);
}

static const char *const SET_ID = "/tmp/capabilities_set_id";

static int gain(void) {
    become(USER);
    if (has_after_exec(SET_ID, CAP_KILL) != 1) return 1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
    if (has_after_exec(SET_ID, CAP_KILL) != 0) return 3;
    return set_of("NoNewPrivs:") == 1 ? 0 : 4;
}

// USER traces a child that starts the program; what that has in force.
static int gain_under_trace(void) {
    become(USER);
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", CAP_KILL);
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(96);
        execl(SET_ID, SET_ID, number, (char *)0);
        _exit(95);
    }
    int status = -1;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) ptrace(PTRACE_CONT, child, 0, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 94;
}

static void a_set_id_program_gives_no_rights_that_are_renounced_or_watched(void) {
    char bytes[65536];
    int from = open("/proc/self/exe", O_RDONLY), copy = open(SET_ID, O_CREAT | O_TRUNC | O_WRONLY, 0755);
    for (ssize_t count; (count = read(from, bytes, sizeof bytes)) > 0;) CHECK(write(copy, bytes, count) == count);
    CHECK(fchmod(copy, 04755) == 0);
    close(from), close(copy);
    int gained = result_of(gain), traced = result_of(gain_under_trace);
    unlink(SET_ID);
    CHECK(gained == 0);
    CHECK(traced == 0);
}

int main(int argc, char **argv) {
    if (argc > 1) return set_of("CapEff:") >> atoi(argv[1]) & 1;
    TEST(low_ports_need_the_capability);
    TEST(or_a_setting_that_frees_them);
    TEST(options_that_concern_others_need_theirs);
    TEST(how_others_run_is_not_for_everybody);
    TEST(what_concerns_the_machine_is_for_root);
    TEST(files_obey_the_capability_that_is_theirs);
    TEST(the_ambient_set_passes_exec_and_not_a_change_of_user);
    TEST(the_inheritable_set_grows_within_bounds);
    TEST(secure_bits_part_root_from_its_rights);
    TEST(a_set_id_program_gives_no_rights_that_are_renounced_or_watched);
    return check_status();
}
