"""Programs whose promises are marked on the disk: `power_cut.py DISK MARKS ROUNDS [postgres]`.

The disk has ext4, and from byte MARKS on a place for marks. When something has been promised
(fsync has returned, a transaction is committed, Redis has answered) a block is written there directly,
so that whoever records the disk's writes knows what had been promised before which of them.
"""
import glob, mmap, os, socket, sqlite3, subprocess, sys, threading, time

marks, rounds = int(sys.argv[2]), int(sys.argv[3])
disk = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
block = mmap.mmap(-1, 4096)
os.chdir("/mnt")


def mark(program, number):
    block[:512] = f"{program} {number}\n".encode().ljust(512, b"\0")
    if os.pwritev(disk, [memoryview(block)[:512]], marks) != 512:
        sys.exit("a mark is not written")


def sync(path):
    folder = os.open(path, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def files():
    os.mkdir("files")
    sync(".")
    for number in range(rounds * 3):
        with open("files/new", "wb") as new:
            new.write(f"file {number} of the power cut\n".encode() * (40 + number % 300))
            new.flush()
            os.fsync(new.fileno())
        os.rename("files/new", f"files/{number % 8}")
        sync("files")
        mark("files", number)


def lines():
    log = os.open("lines", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    sync(".")
    for number in range(rounds * 3):
        os.write(log, f"line {number} of many\n".encode())
        os.fdatasync(log)
        mark("lines", number)


def database(journal):
    db = sqlite3.connect(f"{journal}.db", isolation_level=None)
    for pragma in f"journal_mode={journal}", "synchronous=full", "locking_mode=exclusive":
        db.execute(f"pragma {pragma}")
    db.execute("create table t(n integer primary key, v text)")
    for number in range(rounds):
        db.execute("begin")
        for row in range(number * 3, number * 3 + 3):
            db.execute("insert into t values(?, ?)", (row, f"row {row} " * 20))
        db.execute("commit")
        mark(journal, number)
    db.close()


def redis():
    os.mkdir("redis")
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", "/tmp/redis", "--dir", "/mnt/redis"]
        + ["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
        stdout=subprocess.DEVNULL,
    )
    client = socket.socket(socket.AF_UNIX)
    while client.connect_ex("/tmp/redis"):
        time.sleep(0.1)
    answers = client.makefile("rb")
    for number in range(rounds * 2):
        client.sendall(f"SET key-{number} \"value of {number}\"\r\n".encode())
        answer = answers.readline()
        if answer != b"+OK\r\n":
            sys.exit(f"Redis answers {answer}")
        mark("redis", number)
    server.kill()
    server.wait()


def client(psql, number, lock):
    """Commits as pgbench does."""
    session = subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    for n in range(rounds):
        delta = number * 100 + n + 1
        session.stdin.write(
            f"begin; update accounts set balance = balance + {delta} where id = {(number * 7 + n) % 50};"
            f"update tellers set balance = balance + {delta} where id = {number};"
            f"update branches set balance = balance + {delta} where id = {number % 2};"
            f"insert into history values ({number}, {n}, {delta}); commit; select 'done {n}';\n"
        )
        answer = session.stdout.readline()
        if answer != f"done {n}\n":
            print(f"PostgreSQL answers {answer}", flush=True)
            os._exit(1)
        with lock:
            mark(f"pg{number}", n)


def postgres():
    owner = os.stat("data").st_uid
    server = subprocess.Popen(
        [glob.glob("/usr/lib/postgresql/*/bin/postgres")[-1], "-D", "/mnt/data", "-k", "/tmp"],
        user=owner,
        group=owner,
        extra_groups=[],
    )
    psql = ["psql", "-qAtX", "-h", "/tmp", "-U", "sietch", "postgres"]
    while subprocess.run(psql, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        time.sleep(0.3)
    lock = threading.Lock()
    clients = [threading.Thread(target=client, args=(psql, number, lock)) for number in range(8)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    server.kill()
    server.wait()


if sys.argv[4:] == ["postgres"]:
    postgres()
else:
    files()
    lines()
    database("delete")
    database("wal")
    redis()
print("all is promised", flush=True)
