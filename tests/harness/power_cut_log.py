"""Files on a log and their promises: `power_cut_log.py MARKS ROUNDS`, by libsietch.so with SIETCH_LOG=/log/*/*.incr.aof.

As in power_cut.py, a block is written to the disk at byte MARKS when something has been promised.
"""
import mmap, os, socket, subprocess, sys, time

marks, rounds = int(sys.argv[1]), int(sys.argv[2])
LINES = 20
disk = os.open("/dev/vda", os.O_RDWR | os.O_DIRECT)
block = mmap.mmap(-1, 4096)


def mark(program, number):
    block[:512] = f"{program} {number}\n".encode().ljust(512, b"\0")
    if os.pwritev(disk, [memoryview(block)[:512]], marks) != 512:
        sys.exit("a mark is not written")


def lines():
    """Files of lines; each takes the name `last` when the next has begun."""
    for place in range(rounds):
        log = os.open(f"/log/lines/{place}.incr.aof", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
        for number in range(place * LINES, (place + 1) * LINES):
            os.write(log, f"line {number} of many\n".encode() * (1 + number % 7))
            os.fdatasync(log)
            mark("line", number)
            if number % LINES == 5 and place:
                os.rename(f"/log/lines/{place - 1}.incr.aof", "/log/lines/last.incr.aof")
                mark("last", place - 1)
        os.close(log)


def redis():
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "/tmp/redis", "--dir", "/log", "--appenddirname", "redis"]
        + ["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    client = socket.socket(socket.AF_UNIX)
    while client.connect_ex("/tmp/redis"):
        time.sleep(0.1)
    answers = client.makefile("rb")
    for number in range(rounds * 5):
        client.sendall(f'SET key-{number} "value of {number}"\r\n'.encode())
        answer = answers.readline()
        if answer != b"+OK\r\n":
            sys.exit(f"Redis answers {answer}")
        mark("redis", number)
    server.kill()
    server.wait()


os.makedirs("/log/lines")
# A process has the log to itself.
child = os.fork()
if child == 0:
    lines()
    os._exit(0)
if os.waitpid(child, 0)[1] != 0:
    sys.exit("the lines are not written")
redis()
print("all is promised", flush=True)
