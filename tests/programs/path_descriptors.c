// Descriptors that only name a place (O_PATH): what they are good for, and what they refuse.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "check.h"

static int at_file, at_folder, at_link, plain, out[2];
static char text[64];

#define REFUSED(call) EXPECT((call) == -1 && errno == EBADF, "%s is refused", #call)
#define DONE(call) EXPECT((call) >= 0, "%s works", #call)

static void refusals(void) {
    struct iovec piece = {text, 1};
    struct flock lock = {.l_type = F_RDLCK};
    struct pollfd one = {.fd = at_file, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    int watcher = epoll_create1(0), size;
    long offset = 0;
    REFUSED(read(at_file, text, 1));
    REFUSED(write(at_file, text, 1));
    REFUSED(pread(at_file, text, 1, 0));
    REFUSED(pwrite(at_file, text, 1, 0));
    REFUSED(readv(at_file, &piece, 1));
    REFUSED(writev(at_file, &piece, 1));
    REFUSED(preadv(at_file, &piece, 1, 0));
    REFUSED(pwritev(at_file, &piece, 1, 0));
    REFUSED(lseek(at_file, 0, SEEK_SET));
    REFUSED(ioctl(at_file, FIONREAD, &size));
    REFUSED(ftruncate(at_file, 0));
    REFUSED(fallocate(at_file, 0, 0, 1));
    REFUSED(fsync(at_file));
    REFUSED(fdatasync(at_file));
    REFUSED(sync_file_range(at_file, 0, 1, 0));
    REFUSED(syncfs(at_file));
    REFUSED(fchmod(at_file, 0600));
    REFUSED(fchown(at_file, 0, 0));
    REFUSED(futimens(at_file, NULL));
    REFUSED(fsetxattr(at_file, "user.x", "y", 1, 0));
    REFUSED(fgetxattr(at_file, "user.x", text, 1));
    REFUSED(flistxattr(at_file, text, 1));
    REFUSED(fremovexattr(at_file, "user.x"));
    REFUSED(flock(at_file, LOCK_SH));
    REFUSED(fcntl(at_file, F_GETLK, &lock));
    REFUSED(fcntl(at_file, F_SETLK, &lock));
    REFUSED(fcntl(at_file, F_SETFL, O_NONBLOCK));
    REFUSED(fcntl(at_file, F_SETOWN, getpid()));
    REFUSED(fcntl(at_file, F_GETOWN));
    REFUSED(fcntl(at_file, F_SETSIG, 0));
    REFUSED(fcntl(at_file, F_GETLEASE));
    REFUSED(fcntl(at_file, F_SETPIPE_SZ, 4096));
    REFUSED(posix_fadvise(at_file, 0, 0, 0) == EBADF ? (errno = EBADF, -1) : 0);
    REFUSED(readahead(at_file, 0, 1));
    REFUSED(mmap(0, 4096, PROT_READ, MAP_PRIVATE, at_file, 0) == MAP_FAILED ? -1 : 0);
    REFUSED(sendfile(out[1], at_file, &offset, 1));
    REFUSED(sendfile(at_file, plain, &offset, 1));
    REFUSED(splice(at_file, 0, out[1], 0, 1, 0));
    REFUSED(copy_file_range(at_file, 0, plain, 0, 1, 0));
    REFUSED(syscall(SYS_getdents64, at_folder, text, sizeof text));
    REFUSED(epoll_ctl(watcher, EPOLL_CTL_ADD, at_file, &event));
    REFUSED(accept(at_file, 0, 0));
    REFUSED(openat(at_file, "x", O_RDONLY) == -1 && errno == ENOTDIR ? (errno = EBADF, -1) : 0);
    EXPECT(poll(&one, 1, 0) == 1 && one.revents == POLLNVAL, "poll says that it is none");
    close(watcher);
}

static int runs(int folder, const char *path, int flags) {
    static char *const values[] = {"path", "end", 0}, *const none[] = {0};
    pid_t child = fork();
    int status;
    if (child == 0) syscall(SYS_execveat, folder, path, values, none, flags), _exit(errno);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

static void uses(void) {
    struct stat what;
    struct statfs system;
    DONE(fstat(at_file, &what));
    EXPECT(S_ISREG(what.st_mode) && what.st_size == 5, "a file is told of");
    DONE(fstat(at_link, &what));
    EXPECT(S_ISLNK(what.st_mode), "a link is told of, and not what it leads to");
    DONE(fstatat(at_file, "", &what, AT_EMPTY_PATH));
    DONE(fstatfs(at_file, &system));
    DONE(fcntl(at_file, F_GETFD));
    DONE(fcntl(at_file, F_SETFD, FD_CLOEXEC));
    EXPECT(fcntl(at_file, F_GETFL) == (O_PATH | O_NOFOLLOW), "its flags are those that count");
    int copy = fcntl(at_file, F_DUPFD, 0);
    EXPECT(copy >= 0 && fstat(copy, &what) == 0, "it is doubled");
    close(copy);
    copy = openat(at_folder, "file", O_RDONLY);
    EXPECT(copy >= 0 && read(copy, text, 5) == 5, "what is below a folder is opened");
    close(copy);
    EXPECT(readlinkat(at_link, "", text, sizeof text) == 4, "a link is read");
    DONE(fchdir(at_folder));
    EXPECT(access("file", F_OK) == 0, "it is the working directory");
    DONE(fchdir(open("/", O_PATH)));
    DONE(faccessat(at_folder, "file", R_OK, 0));
    snprintf(text, sizeof text, "/proc/self/fd/%d", at_file);
    copy = open(text, O_RDWR);
    EXPECT(copy >= 0 && write(copy, "12345", 5) == 5, "it is opened anew");
    close(copy);
    EXPECT(chmod(text, 0640) == 0 && fstat(at_file, &what) == 0 && (what.st_mode & 0777) == 0640,
           "its mode is changed by its name in /proc");
    EXPECT(linkat(AT_FDCWD, text, at_folder, "second", AT_SYMLINK_FOLLOW) == 0,
           "it gets a second name by that");
    EXPECT(unlinkat(at_folder, "second", 0) == 0, "which is removed");
    if (geteuid() == 0) {
        EXPECT(linkat(at_file, "", at_folder, "second", AT_EMPTY_PATH) == 0,
               "it gets a second name by itself");
        EXPECT(unlinkat(at_folder, "second", 0) == 0, "which is removed, too");
    }
    EXPECT(fchownat(at_file, "", geteuid(), -1, AT_EMPTY_PATH) == 0, "its owner is changed");
    struct timeval now;
    gettimeofday(&now, 0);
    EXPECT(fchdir(at_file) == -1 && errno == ENOTDIR, "a file is no working directory");
    int program = open("/proc/self/exe", O_PATH);
    EXPECT(runs(program, "", AT_EMPTY_PATH), "a program is run");
    close(program);
    int pair[2];
    char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(head), &at_file, sizeof(int));
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && sendmsg(pair[0], &message, 0) == 1 &&
               recvmsg(pair[1], &message, 0) == 1 && (head = CMSG_FIRSTHDR(&message)),
           "it is sent");
    if (head) memcpy(&copy, CMSG_DATA(head), sizeof(int));
    EXPECT(head && fstat(copy, &what) == 0 && read(copy, text, 1) == -1 && errno == EBADF,
           "and is what it was");
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return 42;
    mkdir("/tmp/path", 0700);
    plain = open("/tmp/path/file", O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (write(plain, "hello", 5) != 5 || pipe(out)) return 1;
    unlink("/tmp/path/link");
    if (symlink("file", "/tmp/path/link")) return 1;
    at_file = open("/tmp/path/file", O_PATH | O_NOFOLLOW);
    at_folder = open("/tmp/path", O_PATH | O_DIRECTORY);
    at_link = open("/tmp/path/link", O_PATH | O_NOFOLLOW);
    if (at_file < 0 || at_folder < 0 || at_link < 0) return 1;
    refusals();
    uses();
    return check_status();
}
