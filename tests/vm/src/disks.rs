//! Disks (`sietch run --disk`) under Debian's programs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use qemu::Qmp;

use crate::Test;
use crate::build;
use crate::guest::{BOOT_PATIENCE, Guest, Setup, state_folder};
use crate::status::expect_status;
use crate::userland;
use crate::volume::Folder;

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    (
        "fio reads from a disk what it wrote, by pread, libaio and io_uring, one or many at a time",
        |setup| {
            let disk = Image::new("fio", 32 << 20)?;
            passes(setup, &[&disk.flag("")], FIO)
        },
    ),
    (
        "transfers under way outlive their program, its memory and its forks",
        |setup| {
            let disk = Image::new("under-way", 4 << 20)?;
            let built = build::c(Path::new("tests/programs/scenes/aio_disk.c"))?;
            let program = format!("{}:/aio_disk", built.display());
            let guest = start(setup, &["--add", &program, &disk.flag("")], "/aio_disk")?;
            expect_status(&guest.wait(BOOT_PATIENCE)?, 0)
        },
    ),
    (
        "a disk moves bytes of any length from and to any memory",
        bytes,
    ),
];

/// What a file system on a disk is used for; e2fsck judges afterwards.
const EXT4: &str = "set -e
grep -q ext4 /proc/filesystems; mkdir /tmp/m; mount -t ext4 /dev/vda /tmp/m; cd /tmp/m
test $(stat -f -c %T .) = ext2/ext3; test $(ls | wc -l) = 1
mkdir -p a/b/c; for i in $(seq 400); do echo $i > a/b/file-$i; done
test $(ls a/b | wc -l) = 401; test $(cat a/b/file-77) = 77
ln -s b/file-7 a/link; test $(cat a/link) = 7; ln a/b/file-8 a/hard; rm a/b/file-8; test $(cat a/hard) = 8
head -c 5000000 /dev/urandom > /tmp/r; cp /tmp/r big; cmp /tmp/r big
cp /bin/bash bash; ./bash -c 'exit 0'
fallocate -l 1M -o 6M big; fallocate -p -o 8192 -l 100000 big
test $(head -c 108192 big | tail -c 100000 | tr -d '\\0' | wc -c) = 0
cp /tmp/r hole; fallocate -p -o 4996096 -l 4096 hole
truncate -s 12345 big; test $(stat -c %s big) = 12345; cmp -n 8000 big /tmp/r
mv a/b/file-9 a/b/file-10; test $(cat a/b/file-10) = 9; rmdir a/b/c
exec 3> gone; echo still > gone; rm gone; echo there >&3; exec 3>&-
chmod 600 big; chown 12:34 big; touch -d @1000000000 big; sync
rm -r a/b; cd /; umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
mount -t ext4 /dev/vda /tmp/m; test $(stat -c %a-%u-%g-%Y /tmp/m/big) = 600-12-34-1000000000
test $(stat -c %s /tmp/m/hole) = 5000000; cmp -n 4996096 /tmp/m/hole /tmp/r
cmp -n 8000 /tmp/m/big /tmp/r; /tmp/m/bash -c 'exit 0'; test $(cat /tmp/m/a/hard) = 8
dd if=/dev/zero of=/tmp/m/full bs=64k 2> /tmp/log && exit 1; grep -q 'No space left' /tmp/log
rm /tmp/m/full; echo kept > /tmp/m/kept; sync /tmp/m/kept; mount -t ext4 /dev/vda /mnt; test $(cat /mnt/kept) = kept";

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[
    (
        "Debian's sfdisk, blkid, mkfs.ext4, e2fsck and iostat know a disk",
        tools,
    ),
    (
        "a sector that the host cannot read is EIO, and its neighbours are not",
        bad_sector,
    ),
    (
        "a disk behind an IOMMU moves its bytes by copies",
        |setup| {
            let disk = Image::new("iommu", 4 << 20)?;
            passes(setup, &["--iommu", "--disk", &disk.name()], BYTES)
        },
    ),
    ("a disk that grows while it is used has its new end", grows),
    (
        "a disk that shrinks while it is used ends where it does then",
        shrinks,
    ),
    (
        "an ext4 file system is used, and e2fsck finds nothing",
        |setup| {
            let disk = Image::new("ext4", 48 << 20)?;
            disk.run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096"])?;
            passes(setup, &[&disk.flag("")], EXT4)?;
            // The machine went without an unmount: the journal is replayed.
            disk.run("e2fsck", &["-fy"])?;
            disk.run("e2fsck", &["-fn"])
        },
    ),
    ("a disk that is read-only opens for reading only", |setup| {
        let disk = Image::new("ro", 4 << 20)?;
        passes(setup, &[&disk.flag(",ro")], READ_ONLY)
    }),
];

const FIO: &str = "set -e
run() {
  \"$@\" > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
  grep -q 'err= 0' /tmp/log
}
FIO=\"fio --name=it --filename=/dev/vda --thread --direct=1 --verify=crc32c --size=2m --io_size=2m\"
for how in psync 'libaio --iodepth=1' 'io_uring --iodepth=1' 'libaio --iodepth=32' \\
  'libaio --iodepth=32 --userspace_reap' 'io_uring --iodepth=32' \\
  'io_uring --iodepth=32 --fixedbufs --registerfiles' 'libaio --iodepth=8 --bs=4k-300k'; do
  run $FIO --bs=4k --rw=randrw --ioengine=$how
done
chmod 666 /dev/vda
for engine in libaio io_uring; do
  run setpriv --reuid=65534 --regid=65534 --clear-groups $FIO --bs=4k --rw=randrw --iodepth=32 --ioengine=$engine
done
grep -q '^0$' /proc/sys/fs/aio-nr
fio --name=it --filename=/dev/vda --thread --rw=write --bs=7k --size=700k --fsync=10 \\
  --verify=md5 --ioengine=psync > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }";

/// Direct and buffered transfers see each other's bytes; odd ones change no neighbour.
pub const BYTES: &str = "set -e; fails() { ! \"$@\"; }
at() { dd if=/dev/vda bs=1 skip=$1 count=$2 2> /dev/null; }
head -c 1100000 /dev/urandom > /tmp/r
dd if=/tmp/r of=/dev/vda bs=3000 conv=notrunc,fsync 2> /dev/null
head -c 1100000 /dev/vda | cmp - /tmp/r
dd if=/dev/vda of=/tmp/s bs=512k count=2 iflag=direct 2> /dev/null
head -c 1048576 /tmp/r | cmp - /tmp/s
dd if=/tmp/s of=/dev/vda bs=64k seek=24 oflag=direct,dsync conv=notrunc 2> /dev/null
dd if=/dev/vda bs=64k skip=24 count=16 iflag=direct 2> /dev/null | cmp - /tmp/s
printf hello | dd of=/dev/vda bs=1 seek=510 conv=notrunc 2> /dev/null
test \"$(at 510 5)\" = hello
cmp -n 510 /dev/vda /tmp/r; cmp -i 515 -n 100000 /dev/vda /tmp/r
fails dd if=/dev/vda of=/dev/null bs=100 count=1 iflag=direct 2> /tmp/log
grep -q 'Invalid argument' /tmp/log
size=$(blockdev --getsize64 /dev/vda)
printf 0123456789 > /tmp/t
fails dd if=/tmp/t of=/dev/vda bs=1 seek=$((size - 4)) conv=notrunc 2> /tmp/log
grep -q 'No space left' /tmp/log
test \"$(tail -c 4 /dev/vda)\" = 0123; test $(at $size 1 | wc -c) = 0
sync /dev/vda; blockdev --flushbufs /dev/vda";

const TOOLS: &str = "set -e; fails() { ! \"$@\"; }
test $(blockdev --getsize64 /dev/vda) = 67108864; test $(blockdev --getss /dev/vda) = 512
test $(blockdev --getro /dev/vda) = 0; test $(cat /sys/block/vda/size) = 131072
grep -q ' vda$' /proc/partitions; grep -q '^ *254 *0 vda ' /proc/diskstats
printf 'label: gpt\\nsize=40M\\nsize=10M, type=swap\\n' | sfdisk -q /dev/vda
test -b /dev/vda1; test -b /dev/vda2; test $(cat /sys/block/vda/vda2/size) = 20480
dd if=/dev/zero of=/dev/vda2 bs=64k count=4 oflag=direct 2> /dev/null
dd if=/dev/vda2 of=/dev/null bs=1k count=3 2> /dev/null
grep -q '^ *254 *2 vda2 3 0 6 [0-9]* 4 0 512 [0-9]* 0 ' /proc/diskstats
test \"$(awk '{print $1, $5}' /sys/block/vda/vda2/stat)\" = '3 4'
iostat -x vda2 | grep -q '^vda2 '
test $(blockdev --getsize64 /dev/vda1) = 41943040
mkfs.ext4 -q /dev/vda1; e2fsck -fn /dev/vda1 > /tmp/log 2>&1
test $(blkid -p -o value -s TYPE /dev/vda1) = ext4
lsblk -n -o NAME,TYPE | grep -q 'vda1 *part'
exec 3< /dev/vda1; fails blockdev --rereadpt /dev/vda 2> /tmp/log; grep -q busy /tmp/log
exec 3<&-; blockdev --rereadpt /dev/vda
printf 'label: dos\\nsize=20M\\n' | sfdisk -q --wipe always /dev/vda
test -b /dev/vda1; test ! -e /dev/vda2
blkdiscard -o 33554432 -l 1048576 /dev/vda; blkdiscard -z -o 34603008 -l 1048576 /dev/vda
cmp -i 34603008:0 -n 1048576 /dev/vda /dev/zero
iostat -x vda | grep -q '^vda '
printf SIETCH | dd of=/dev/vda bs=1 seek=60000000 conv=notrunc,fsync 2> /dev/null";

/// The next machine finds the partitions by itself.
const NEXT_BOOT: &str = "set -e
test -b /dev/vda1; test $(cat /sys/block/vda/vda1/size) = 40960; test ! -e /dev/vda2";

pub const BAD_SECTOR: &str = "set -e; fails() { ! \"$@\"; }
dd if=/dev/vda of=/dev/null bs=4k count=4 iflag=direct 2> /dev/null
fails dd if=/dev/vda of=/dev/null bs=4k skip=8 count=1 iflag=direct 2> /tmp/log
grep -q 'Input/output error' /tmp/log
fails dd if=/dev/vda of=/dev/null bs=1 skip=33300 count=1 2> /tmp/log
grep -q 'Input/output error' /tmp/log
fails dd if=/dev/zero of=/dev/vda bs=4k seek=8 count=1 oflag=direct conv=notrunc 2> /tmp/log
grep -q 'Input/output error' /tmp/log
dd if=/dev/vda of=/dev/null bs=4k skip=9 count=4 iflag=direct 2> /dev/null
dd if=/dev/zero of=/dev/vda bs=4k seek=9 count=1 conv=notrunc,fsync 2> /dev/null
grep -q ' 3 0 0 vda$' /proc/disks";

const GROWS: &str = "set -e
exec 3<> /dev/vda
echo it is up
until test $(cat /sys/block/vda/size) = 16384; do sleep 0.2; done
until test $(blockdev --getsize64 /dev/vda) = 8388608; do sleep 0.2; done
test $(cat /sys/block/vda/size) = 16384
printf SIETCH | dd bs=1 seek=8000000 conv=notrunc,fsync of=/dev/fd/3 2> /dev/null";

const SHRINKS: &str = "set -e; fails() { ! \"$@\"; }
exec 3<> /dev/vda
echo it is up
until test $(cat /sys/block/vda/size) = 4096; do sleep 0.2; done
dd bs=4k skip=500 count=1 iflag=direct of=/dev/null <&3 2> /dev/null
test $(blockdev --getsize64 /dev/vda) = 2097152
test $(dd bs=4k skip=800 count=1 iflag=direct <&3 2> /dev/null | wc -c) = 0
fails dd if=/dev/zero bs=4k seek=800 count=1 oflag=direct conv=notrunc >&3 2> /tmp/log
grep -q 'No space left' /tmp/log";

const READ_ONLY: &str = "set -e; fails() { ! \"$@\"; }
test $(blockdev --getro /dev/vda) = 1; test $(cat /sys/block/vda/ro) = 1
head -c 4096 /dev/vda | cmp -n 4096 - /dev/zero
fails dd if=/dev/zero of=/dev/vda bs=512 count=1 2> /tmp/log; grep -q 'Permission denied' /tmp/log";

pub fn passes(setup: &Setup, flags: &[&str], script: &str) -> Result<(), String> {
    expect_status(&start(setup, flags, script)?.wait(BOOT_PATIENCE)?, 0)
}

/// A machine whose shell runs a script.
pub fn start(setup: &Setup, flags: &[&str], script: &str) -> Result<Guest, String> {
    let mut args = vec!["--net", "none"];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["--volume", "/sbin:/sbin:ro"]);
    args.extend_from_slice(flags);
    let script = format!("PATH=$PATH:/usr/sbin\n{script}");
    args.extend_from_slice(&["/bin/bash", "-c", &script]);
    setup.start(&args)
}

/// The same once the script says that it is up, and a way to ask QEMU.
pub fn start_up(
    setup: &Setup,
    name: &str,
    flags: &[&str],
    script: &str,
) -> Result<(Guest, Qmp), String> {
    let name = format!("{name}-{}", std::process::id());
    let guest = start(setup, &[&["--name", &*name], flags].concat(), script)?;
    guest.expect("it is up", BOOT_PATIENCE)?;
    let socket = state_folder().join("sietch").join(&name).join("qmp.sock");
    let qmp = Qmp::connect(&socket).map_err(|error| format!("QEMU does not answer: {error}"))?;
    Ok((guest, qmp))
}

fn bytes(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("bytes", 4 << 20)?;
    passes(setup, &[&disk.flag("")], BYTES)?;
    disk.expect_at(510, b"hello")
}

fn grows(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("grows", 4 << 20)?;
    resized(setup, &disk, 8 << 20, GROWS)?;
    disk.expect_at(8_000_000, b"SIETCH")
}

fn shrinks(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("shrinks", 4 << 20)?;
    resized(setup, &disk, 2 << 20, SHRINKS)
}

/// Gives the disk another size when the script says that it is up.
fn resized(setup: &Setup, disk: &Image, bytes: u64, script: &str) -> Result<(), String> {
    let (guest, mut qmp) = start_up(
        setup,
        &format!("resized-{bytes}"),
        &[&disk.flag("")],
        script,
    )?;
    qmp.resize_disk(0, bytes)
        .map_err(|error| format!("QEMU does not resize it: {error}"))?;
    expect_status(&guest.wait(BOOT_PATIENCE)?, 0)
}

fn tools(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("tools", 64 << 20)?;
    passes(setup, &[&disk.flag("")], TOOLS)?;
    passes(setup, &["--iommu", &disk.flag("")], NEXT_BOOT)?;
    disk.expect_at(60_000_000, b"SIETCH")?;
    disk.expect_at(510, &[0x55, 0xaa])
}

fn bad_sector(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("bad", 4 << 20)?;
    passes(setup, &[&disk.flag(",bad-sector=65")], BAD_SECTOR)
}

/// A file that is a disk, removed afterwards.
pub struct Image {
    file: PathBuf,
    _folder: Folder,
}

impl Image {
    /// Of this size, full of zeroes.
    pub fn new(name: &str, bytes: u64) -> Result<Self, String> {
        let folder = Folder::new(&format!("disk-{name}"))?;
        let file = folder.0.join("disk.img");
        let made = File::create(&file).and_then(|file| file.set_len(bytes));
        made.map_err(|error| format!("{file:?}: {error}"))?;
        Ok(Self {
            file,
            _folder: folder,
        })
    }

    fn name(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }

    /// The option of the command that adds it.
    pub fn flag(&self, more: &str) -> String {
        format!("--disk={}{more}", self.name())
    }

    /// All that is on it.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        fs::read(&self.file).map_err(|error| error.to_string())
    }

    /// Runs a program of e2fsprogs on it, which may have corrected something.
    pub fn run(&self, program: &str, args: &[&str]) -> Result<(), String> {
        let output = Command::new(program).args(args).arg(&self.file).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        match output.status.code() {
            Some(0 | 1) => Ok(()),
            _ => Err(format!(
                "{program} {args:?}: {}",
                String::from_utf8_lossy(&output.stdout)
            )),
        }
    }

    /// Whether the host finds these bytes there.
    pub fn expect_at(&self, at: u64, wanted: &[u8]) -> Result<(), String> {
        let mut found = vec![0; wanted.len()];
        fs::File::open(&self.file)
            .and_then(|file| file.read_exact_at(&mut found, at))
            .map_err(|error| error.to_string())?;
        match found == wanted {
            true => Ok(()),
            false => Err(format!("the host finds {found:?} at {at}")),
        }
    }
}
