//! Disks over NVMe (`sietch run --disk FILE,bus=nvme`) under Debian's programs.

use crate::Test;
use crate::disks::{self, Image, passes};

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    ("fio reads from NVMe what it wrote, 32 at a time", |setup| {
        let disk = Image::new("nvme-fio", 32 << 20)?;
        passes(setup, &[&disk.flag(",bus=nvme")], FIO)
    }),
    ("two namespaces of a controller are two disks", |setup| {
        let first = Image::new("nvme-first", 4 << 20)?;
        let second = Image::new("nvme-second", 8 << 20)?;
        let flags = [
            &*first.flag(",bus=nvme"),
            &second.flag(",bus=nvme,block=4096"),
        ];
        passes(setup, &flags, TWO)?;
        first.expect_at(8192, b"first")?;
        second.expect_at(8192, b"second")
    }),
];

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[
    (
        "Debian's sfdisk, mkfs.ext4, e2fsck and blkdiscard know an NVMe disk",
        |setup| {
            let disk = Image::new("nvme-tools", 64 << 20)?;
            passes(setup, &[&disk.flag(",bus=nvme")], TOOLS)?;
            disk.expect_at(60_000_000, b"SIETCH")
        },
    ),
    (
        "an NVMe disk moves bytes of any length, behind an IOMMU and with large blocks",
        |setup| {
            let script = disks::BYTES.replace("/dev/vda", "/dev/nvme0n1");
            let disk = Image::new("nvme-bytes", 4 << 20)?;
            passes(setup, &[&disk.flag(",bus=nvme")], &script)?;
            passes(setup, &["--iommu", &disk.flag(",bus=nvme")], &script)?;
            passes(setup, &[&disk.flag(",bus=nvme,block=4096")], &script)?;
            disk.expect_at(510, b"hello")
        },
    ),
    (
        "Debian's nvme asks an NVMe disk, and changes nothing",
        |setup| {
            let disk = Image::new("nvme-cli", 4 << 20)?;
            passes(setup, &[&disk.flag(",bus=nvme")], CLI)
        },
    ),
    (
        "a sector that an NVMe disk cannot read is EIO, and its neighbours are not",
        |setup| {
            let disk = Image::new("nvme-bad", 4 << 20)?;
            let script = disks::BAD_SECTOR.replace("vda", "nvme0n1");
            passes(setup, &[&disk.flag(",bus=nvme,bad-sector=65")], &script)
        },
    ),
];

const FIO: &str = "set -e
test $(blockdev --getss /dev/nvme0n1) = 512
for engine in psync io_uring; do
  fio --name=it --filename=/dev/nvme0n1 --thread --direct=1 --rw=randrw --bs=4k --size=4m \\
    --io_size=4m --verify=crc32c --iodepth=32 --ioengine=$engine > /tmp/log 2>&1 ||
    { cat /tmp/log; exit 1; }
  grep -q 'err= 0' /tmp/log
done
fio --name=it --filename=/dev/nvme0n1 --thread --direct=1 --rw=write --bs=1m --size=16m \\
  --verify=md5 --ioengine=psync --fsync=3 > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
fio --name=it --filename=/dev/nvme0n1 --thread --rw=write --bs=7k --size=700k --fsync=10 \\
  --verify=md5 --ioengine=psync > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }";

const TWO: &str = "set -e; fails() { ! \"$@\"; }
test $(blockdev --getsize64 /dev/nvme0n1) = 4194304; test $(blockdev --getss /dev/nvme0n1) = 512
test $(blockdev --getsize64 /dev/nvme0n2) = 8388608; test $(blockdev --getss /dev/nvme0n2) = 4096
printf first | dd of=/dev/nvme0n1 bs=1 seek=8192 conv=notrunc,fsync 2> /dev/null &
printf second | dd of=/dev/nvme0n2 bs=1 seek=8192 conv=notrunc,fsync 2> /dev/null
wait
fails dd if=/dev/nvme0n2 of=/dev/null bs=512 count=1 iflag=direct 2> /tmp/log
dd if=/dev/nvme0n2 of=/dev/null bs=4096 count=1 iflag=direct 2> /tmp/log
grep -q '^ *259 *0 nvme0n1 ' /proc/diskstats; grep -q '^ *259 *16 nvme0n2 ' /proc/diskstats
test $(cat /sys/block/nvme0n2/queue/logical_block_size) = 4096";

const TOOLS: &str = "set -e
disk=/dev/nvme0n1
test $(blockdev --getsize64 $disk) = 67108864; test $(cat /sys/block/nvme0n1/size) = 131072
grep -q ' nvme0n1$' /proc/partitions; grep -q '^259 blkext' /proc/devices
printf 'label: gpt\\nsize=40M\\nsize=10M, type=swap\\n' | sfdisk -q $disk
test -b ${disk}p1; test -b ${disk}p2; test $(cat /sys/block/nvme0n1/nvme0n1p2/size) = 20480
test $(blockdev --getsize64 ${disk}p1) = 41943040
mkfs.ext4 -q ${disk}p1; e2fsck -fn ${disk}p1 > /tmp/log 2>&1
test $(blkid -p -o value -s TYPE ${disk}p1) = ext4
lsblk -n -o NAME,TYPE | grep -q 'nvme0n1p1 *part'
mkdir /tmp/m; mount -t ext4 ${disk}p1 /tmp/m; cp /bin/bash /tmp/m; cmp /bin/bash /tmp/m/bash
umount /tmp/m; e2fsck -fn ${disk}p1 > /tmp/log 2>&1
test $(cat /sys/block/nvme0n1/queue/write_cache | tr ' ' -) = write-back
head -c 3000000 /dev/urandom | dd of=$disk bs=1M oseek=56 conv=notrunc,fsync iflag=fullblock 2> /dev/null
blkdiscard -o 58720256 -l 1048576 $disk; blkdiscard -z -o 59768832 -l 1048576 $disk
cmp -i 59768832:0 -n 1048576 $disk /dev/zero
iostat -x nvme0n1 | grep -q '^nvme0n1 '
printf SIETCH | dd of=$disk bs=1 seek=60000000 conv=notrunc,fsync 2> /dev/null";

const CLI: &str = "set -e
disk=/dev/nvme0n1
nvme id-ctrl $disk > /tmp/log; grep -q '^sn *: sietch' /tmp/log; grep -q '^mn *: QEMU' /tmp/log
nvme id-ns $disk > /tmp/log; grep -q '^nsze *: 0x2000' /tmp/log
nvme get-ns-id $disk | grep -q 'namespace-id:1'
nvme smart-log $disk | grep -q '^temperature'
nvme get-feature -f 7 $disk | grep -q 'Current value'
grep -q '^sietch *$' /sys/class/nvme/nvme0/serial; grep -q QEMU /sys/block/nvme0n1/device/model
lsblk -n -d -o MODEL,SERIAL $disk | grep -q 'QEMU.*sietch'
nvme format -f $disk > /tmp/log 2>&1 && exit 1
nvme set-feature -f 6 -V 0 $disk > /tmp/log 2>&1 && exit 1
setpriv --reuid 1000 --clear-groups nvme id-ctrl $disk > /tmp/log 2>&1 && exit 1
chmod 666 $disk
setpriv --reuid 1000 --clear-groups nvme id-ctrl $disk > /tmp/log 2>&1 && exit 1
grep -q 'Permission denied' /tmp/log
cmp -n 4096 $disk /dev/zero";
