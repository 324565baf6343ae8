"""Programs on disks that fail: `disk_faults.py SOUND DISK...`.

Each disk has ext4. One after the other is mounted, and files are written and synchronised on it until all is done or
it takes nothing any more. Each promise is a line `DISK: PROGRAM NUMBER` of the console. Of errors only EIO is
allowed, and EROFS once a volume has stopped. Meanwhile a neighbour does the same on a sound disk, and must
meet no error.
"""
import errno, os, subprocess, sys

ROUNDS = 16


def say(text):
    os.write(1, f"{text}\n".encode())


def fail(text):
    say(f"WRONG {text}")
    os._exit(1)


def is_error(act, *arguments):
    """Whether it failed as a disk may let it fail."""
    try:
        act(*arguments)
        return False
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EROFS):
            fail(f"{act.__name__}{arguments}: {error}")
        return True


def sync(path):
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def replace(root, number):
    new = os.open(f"{root}/files/new", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    try:
        os.write(new, f"file {number} of the power cut\n".encode() * (40 + number % 300))
        os.fsync(new)
    finally:
        os.close(new)
    os.rename(f"{root}/files/new", f"{root}/files/{number % 8}")
    sync(f"{root}/files")


def begin(root):
    os.makedirs(f"{root}/files", exist_ok=True)
    os.close(os.open(f"{root}/lines", os.O_CREAT | os.O_WRONLY))
    sync(root)


def rewrite(log, lines):
    os.pwrite(log, lines, 0)
    os.fsync(log)


def check_told(log, other):
    """fsync of one open file has failed: so must that of the other, once. Afterwards both go on, or neither."""
    if not is_error(os.fsync, other):
        fail("the other open file hears of no failure")
    if is_error(os.fsync, log) != is_error(os.fsync, other):
        fail("one open file hears of a failure twice")


def tried(act, *arguments):
    """A few tries, as a fault happens once; whether one went well."""
    return not all(is_error(act, *arguments) for _ in range(3))


def use(disk, root):
    """All that is done on a disk; whether it took all."""
    if not tried(begin, root):
        return False
    log = os.open(f"{root}/lines", os.O_WRONLY)
    other = os.open(f"{root}/lines", os.O_WRONLY)
    lines = b""
    for number in range(ROUNDS):
        if not tried(replace, root, number):
            return False
        say(f"{disk}: files {number}")
        line = f"line {number} of many\n".encode()
        if is_error(os.pwrite, log, line, len(lines)):
            return False
        lines += line
        if is_error(os.fsync, log):
            check_told(log, other)
            if not tried(rewrite, log, lines):
                return False
        elif is_error(os.fsync, other):
            fail("an open file hears of a failure that was none")
        say(f"{disk}: lines {number}")
    os.close(log)
    os.close(other)
    return True


def mounts(disk, root):
    return subprocess.run(["mount", "-t", "ext4", f"/dev/{disk}", root], stderr=subprocess.DEVNULL).returncode == 0


def umount(root):
    return subprocess.run(["umount", root], stderr=subprocess.DEVNULL).returncode == 0


def neighbour(disk, until):
    os.mkdir("/tmp/neighbour")
    if not mounts(disk, "/tmp/neighbour"):
        fail("the neighbour's disk is not mounted")
    begin("/tmp/neighbour")
    number = 0
    while not os.path.exists(until):
        replace("/tmp/neighbour", number)
        number += 1
    if number < 3 or not umount("/tmp/neighbour"):
        fail(f"the neighbour came to {number}")
    os._exit(0)


def main():
    sound, disks = sys.argv[1], sys.argv[2:]
    child = os.fork()
    if child == 0:
        neighbour(sound, "/tmp/done")
    for disk in disks:
        root = f"/tmp/{disk}"
        os.mkdir(root)
        if not mounts(disk, root):
            say(f"{disk}: mounted late")
            if not mounts(disk, root):
                fail(f"{disk} is not mounted at the second try")
        say(f"{disk}: {'took-all' if use(disk, root) else 'stopped'}")
        umount(root)
    open("/tmp/done", "w").close()
    if os.waitpid(child, 0)[1] != 0:
        fail("the neighbour has met an error")
    say("all disks were used")


main()
