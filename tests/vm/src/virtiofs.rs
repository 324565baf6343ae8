//! Folders of the host by virtiofs (`sietch run -v FOLDER:GUEST:virtiofs`), where virtiofsd is installed.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use qemu::virtiofsd;

use crate::Test;
use crate::build::{self, Link};
use crate::disks::start;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::volume::Folder;

/// The tests of this host: one that says why there are none, where it has no virtiofsd.
pub fn tests() -> &'static [Test] {
    match virtiofsd::program() {
        Some(_) => TESTS,
        None => SKIPPED,
    }
}

const SKIPPED: &[Test] = &[(
    "nothing is served by virtiofs: skipped, as virtiofsd is not installed",
    |_| Ok(()),
)];

const TESTS: &[Test] = &[
    (
        "a file by virtiofs agrees with a model, whichever way it is reached",
        model,
    ),
    (
        "what a user makes by virtiofs is the user's on the host",
        owned,
    ),
    (
        "links, devices, attributes and holes by virtiofs are the host's, and its daemon ends with the machine",
        kinds,
    ),
    (
        "many files by virtiofs are made and read by several at once",
        many,
    ),
];

const MODEL: &str = "tests/harness/file_model.c";
const OWNER: &str = "tests/harness/volume_owner.c";
/// A daemon may take as long to see that QEMU has hung up.
const END_PATIENCE: Duration = Duration::from_secs(20);

/// What no 9P folder does: each kind of file, attributes of the host's inodes, a name exchanged with another, a hole, a second
/// mount of the same device, and a file whose name is gone.
const KINDS: &str = "set -e; cd /volume; fails() { if \"$@\" 2> /dev/null; then exit 1; fi; }
test $(stat -f -c %t .) = 65735546
echo one > a; ln a b; test $(stat -c %h b) = 2; test $(stat -c %i a) = $(stat -c %i b)
mknod null c 1 3; mknod fifo p; ln -s a link; test $(readlink link) = a; test $(cat link) = one
chown 1234:1235 a; chmod 640 a; test $(stat -c %u:%g:%a b) = 1234:1235:640
python3 -c \"$ATTRIBUTES\"
head -c 1000000 /dev/urandom > big; cp big copy; cmp big copy; fallocate -p -o 65536 -l 65536 copy
cmp -n 65536 big copy; cmp -i 65536:0 -n 65536 copy /dev/zero; truncate -s 1000 copy; test $(stat -c %s copy) = 1000
touch -d @1000000000.5 a; test $(stat -c %.2Y a) = 1000000000.50
mkdir d; mv a d/a; fails rmdir d; mv -T d e; test $(ls e) = a
exec 3<> big; rm big; echo gone >&3; exec 3>&-; fails test -e big
mkdir /tmp/m; fails mount -t virtiofs none /tmp/m
for tag in $(seq 0 9); do mount -t virtiofs volume$tag /tmp/m 2> /dev/null && break; done; cmp /tmp/m/copy copy; umount /tmp/m
df . > /dev/null; sync; echo two > e/a; test $(cat b) = two";

/// Attributes are those of the inode, whatever its name.
const ATTRIBUTES: &str = "
import errno, os
def fails(why, call, *args):
    try: call(*args)
    except OSError as error: assert error.errno == why, error
    else: assert False, args
os.setxattr('a', 'user.colour', b'blue'); assert os.getxattr('b', 'user.colour') == b'blue'
fails(errno.EEXIST, os.setxattr, 'a', 'user.colour', b'red', os.XATTR_CREATE)
fails(errno.ENODATA, os.setxattr, 'a', 'user.none', b'red', os.XATTR_REPLACE)
fails(errno.ENODATA, os.getxattr, 'a', 'user.none')
os.setxattr('a', 'user.long', bytes(2000)); assert os.getxattr('a', 'user.long') == bytes(2000)
assert sorted(os.listxattr('b')) == ['user.colour', 'user.long'], os.listxattr('b')
os.removexattr('b', 'user.long'); assert os.listxattr('a') == ['user.colour']";

/// Files that five shells make and read at once.
const MANY: &str = "set -e; cd /volume
make() { mkdir $1; for file in $(seq 400); do echo $1-$file > $1/$file; done; }
look() { for file in $(seq 400); do read line < $1/$file; test $line = $1-$file; done; }
for one in 1 2 3 4 5; do make $one & done; wait
for one in 1 2 3 4 5; do look $one & done; for job in $(jobs -p); do wait $job; done
test $(ls 3 | wc -l) = 400; rm -r 1 2 3 4 5; test -z \"$(ls)\"";

fn by_virtiofs(folder: &Folder) -> String {
    format!("{}:/volume:virtiofs", folder.0.display())
}

fn model(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(MODEL), Link::StaticMusl)?;
    let (folder, program) = (Folder::new("virtiofs-model")?, program.to_string_lossy());
    let volume = by_virtiofs(&folder);
    let args = ["--net", "none", "-v", &volume, &program];
    let args = [&args[..], &["/volume/file", "3", "1500"]].concat();
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}

fn owned(setup: &Setup) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        // An ordinary user's daemon gives no file away.
        return Ok(());
    }
    let program = build::c_linked(Path::new(OWNER), Link::StaticMusl)?;
    let (folder, program) = (Folder::new("virtiofs-owned")?, program.to_string_lossy());
    let volume = by_virtiofs(&folder);
    let args = ["--net", "none", "-v", &volume, &program, "/volume", "again"];
    for args in [&args[..args.len() - 1], &args[..]] {
        expect_status(&setup.start(args)?.wait(BOOT_PATIENCE)?, 0)?;
    }
    let file = fs::metadata(folder.0.join("home/set-id")).map_err(|error| error.to_string())?;
    match (file.uid(), file.gid(), file.mode()) {
        (1234, 1235, 0o106755) => Ok(()),
        other => Err(format!("on the host it is {other:?}")),
    }
}

fn kinds(setup: &Setup) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        // An ordinary user's daemon makes no devices, and gives no file away.
        return Ok(());
    }
    let folder = Folder::new("virtiofs-kinds")?;
    let volume = by_virtiofs(&folder);
    let attributes = format!("ATTRIBUTES={ATTRIBUTES}");
    let end = start(setup, &["-v", &volume, "-e", &attributes], KINDS)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    let of = |name: &str| {
        let file = fs::symlink_metadata(folder.0.join(name));
        file.map_err(|error| format!("{name}: {error}"))
    };
    let (null, fifo, file) = (of("null")?, of("fifo")?, of("e/a")?);
    let device = (null.file_type().is_char_device(), null.rdev());
    if device != (true, 0x103) || !fifo.file_type().is_fifo() || file.nlink() != 2 {
        return Err(format!("the host has {null:?}, {fifo:?}, {file:?}"));
    }
    nobody_serves(&folder)
}

fn many(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("virtiofs-many")?;
    let volume = by_virtiofs(&folder);
    let end = start(setup, &["-v", &volume], MANY)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)
}

/// Waits until no daemon of the folder's is left.
fn nobody_serves(folder: &Folder) -> Result<(), String> {
    let path = folder.0.to_string_lossy();
    let deadline = Instant::now() + END_PATIENCE;
    while has_daemon(&path) {
        if Instant::now() > deadline {
            return Err(format!("the daemon of {path} outlives its machine"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn has_daemon(folder: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| {
        let line = String::from_utf8_lossy(&line);
        line.contains("virtiofsd") && line.split('\0').any(|word| word == folder)
    })
}
