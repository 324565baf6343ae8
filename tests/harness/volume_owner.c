// A user who is not root makes one of each kind on a volume; they are the user's. Writes to a file with set-id bits, too.
// `volume_owner DIRECTORY` makes and looks, `volume_owner DIRECTORY again` only looks.
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER = 1234, GROUP = 1235 };

static void expect(const char *name, mode_t mode) {
    struct stat found;
    if (lstat(name, &found) != 0) err(1, "%s", name);
    if (found.st_uid != USER || found.st_gid != GROUP)
        errx(1, "%s belongs to %u:%u", name, found.st_uid, found.st_gid);
    if (found.st_mode != mode) errx(1, "%s has the mode %o", name, found.st_mode);
}

static void make_all(void) {
    int file = open("file", O_CREAT | O_EXCL | O_RDWR, 0640);
    if (file < 0 || write(file, "mine", 4) != 4) err(1, "file");
    int set_id = open("set-id", O_CREAT | O_EXCL | O_WRONLY, 06755);
    if (set_id < 0) err(1, "set-id");
    if (mkdir("folder", 0700) != 0 || mkdir("folder/folder", 0755) != 0) err(1, "folder");
    if (symlink("file", "link") != 0) err(1, "link");
    if (mkfifo("fifo", 0600) != 0) err(1, "fifo");
    if (chmod("folder", 0750) != 0) err(1, "chmod of folder");
    if (rename("folder/folder", "folder/moved") != 0) err(1, "rename");
}

static void look_at_all(void) {
    char text[8] = {0};
    int file = open("link", O_RDWR);
    if (file < 0 || read(file, text, sizeof text) != 4 || strcmp(text, "mine") != 0)
        err(1, "what was written is not there");
    expect("file", S_IFREG | 0640);
    expect("set-id", S_IFREG | 06755);
    expect("folder", S_IFDIR | 0750);
    expect("folder/moved", S_IFDIR | 0755);
    expect("fifo", S_IFIFO | 0600);
    struct stat link;
    if (lstat("link", &link) != 0 || !S_ISLNK(link.st_mode) || link.st_uid != USER)
        errx(1, "link belongs to %u", link.st_uid);
}

static void become_user(void) {
    if (setresgid(GROUP, GROUP, GROUP) != 0 || setresuid(USER, USER, USER) != 0)
        err(1, "setresuid");
}

// A file that another writes to acts for its owner no more, also where its mode had been seen before that said so.
static void write_to_acting(void) {
    struct stat found;
    int status, file = open("acting", O_CREAT | O_EXCL | O_RDWR, 0777);
    if (file < 0 || fstat(file, &found) != 0 || fchmod(file, 06777) != 0) err(1, "acting");
    pid_t child = fork();
    if (child == 0) {
        become_user();
        _exit(write(file, "another's", 9) != 9);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) errx(1, "acting was not written");
    if (fstat(file, &found) != 0) err(1, "acting");
    if (found.st_mode != (S_IFREG | 0777)) errx(1, "acting has the mode %o", found.st_mode);
    close(file);
}

int main(int argc, char **argv) {
    umask(0);
    if (chdir(argv[1]) != 0) err(1, "%s", argv[1]);
    if (argc == 2 && (mkdir("home", 0700) != 0 || chown("home", USER, GROUP) != 0))
        err(1, "home");
    if (argc == 2) write_to_acting();
    become_user();
    if (chdir("home") != 0) err(1, "home");
    if (argc == 2) make_all();
    look_at_all();
    return 0;
}
