//! Areas of disks that programs own (`docs/vsa.md`): by their names, and by rings that a hostile program has.

use std::path::Path;

use crate::Test;
use crate::build;
use crate::disks::{self, Image};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    (
        "a program does not get out of its area on a virtio disk",
        |setup| hostile(setup, "virtio", &[]),
    ),
    (
        "a program does not get out of its area on an NVMe disk",
        |setup| hostile(setup, "nvme", &[]),
    ),
    (
        "a program does not get out of its area on a virtio disk behind an IOMMU",
        |setup| hostile(setup, "virtio", &["--iommu"]),
    ),
    (
        "a program does not get out of its area on an NVMe disk behind an IOMMU",
        |setup| hostile(setup, "nvme", &["--iommu"]),
    ),
];

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[(
    "vsaadm makes areas, and programs use them by their names",
    by_name,
)];

/// Bytes of the catalogue's copies, and of an area of the tests.
const CATALOGUE: usize = 256 << 10;
const AREA: usize = 1 << 20;
const DISK_BYTES: usize = 8 << 20;

const BY_NAME: &str = "set -e; PATH=/tools:$PATH; fails() { ! \"$@\"; }
u1000() { setpriv --reuid 1000 --regid 1000 --clear-groups \"$@\"; }
u1001() { setpriv --reuid 1001 --regid 1001 --clear-groups \"$@\"; }
vsaadm --help | grep -q revoke; test -z \"$(vsaadm ls)\"
fails vsaadm create vda orders 1M 2> /tmp/log; grep -q 'area orders: the disk is not there' /tmp/log
exec 3< /dev/vda; fails vsaadm format vda 2> /tmp/log; grep -q 'in use' /tmp/log; exec 3<&-
vsaadm format /dev/vda; vsaadm create -u 1000 vda orders 1000000; vsaadm create vda other 64K
test $(vsaadm ls -p | grep orders) = vda:1000:1000448:orders
test $(stat -c %a-%u /dev/vsa/orders) = 600-1000
cmp -n 1000448 /dev/vsa/orders /dev/zero; test $(wc -c < /dev/vsa/orders) = 1000448
head -c 900000 /dev/urandom > /tmp/r
u1000 dd if=/tmp/r of=/dev/vsa/orders bs=3333 seek=1 conv=notrunc,fsync 2> /dev/null
u1000 cmp -i 3333:0 -n 900000 /dev/vsa/orders /tmp/r
fails u1001 dd if=/dev/vsa/orders of=/tmp/s count=1 2> /tmp/log; grep -q 'Permission denied' /tmp/log
u1000 chmod 604 /dev/vsa/orders
u1001 cmp -i 3333:0 -n 900000 /dev/vsa/orders /tmp/r
fails u1001 dd if=/tmp/r of=/dev/vsa/orders count=1 2> /dev/null
fails dd if=/tmp/r of=/dev/vsa/orders bs=1000 seek=900 2> /tmp/log; grep -q 'No space left' /tmp/log
fails vsaadm create vda orders 1M 2> /tmp/log; grep -q 'one of that name' /tmp/log
vsaadm quota vda 1001 64K; vsaadm quota vda | grep -q '1001: 65536 bytes'
u1001 vsaadm create vda mine 64K; test $(stat -c %u /dev/vsa/mine) = 1001
fails u1001 vsaadm resize mine 65K 2> /tmp/log; grep -q 'may not have so much' /tmp/log
u1001 vsaadm rm mine; test ! -e /dev/vsa/mine
vsaadm resize orders 2M; test $(wc -c < /dev/vsa/orders) = 2097152; cmp -i 3333:0 -n 800000 /dev/vsa/orders /tmp/r
cmp -i 1000448:0 -n 1000000 /dev/vsa/orders /dev/zero
printf SIETCH | dd of=/dev/vsa/orders bs=1 seek=2000000 conv=notrunc,fsync 2> /dev/null
vsaadm rm other; fails dd if=/dev/vsa/other of=/dev/null 2> /dev/null";

const NEXT_BOOT: &str = "set -e; PATH=/tools:$PATH; fails() { ! \"$@\"; }
test $(vsaadm ls -p) = vda:1000:2097152:orders; test $(stat -c %a-%u /dev/vsa/orders) = 600-1000
test $(dd if=/dev/vsa/orders bs=1 skip=2000000 count=6 2> /dev/null) = SIETCH
exec 3< /dev/vsa/orders; fails vsaadm format vda 2> /tmp/log; grep -q 'in use' /tmp/log
vsaadm revoke orders; fails head -c 1 <&3 2> /tmp/log; head -c 1 /dev/vsa/orders > /dev/null
exec 3<&-; vsaadm format vda; test ! -e /dev/vsa/orders; vsaadm create vda again 4K";

fn by_name(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("areas", DISK_BYTES as u64)?;
    let tool = format!(
        "{}:/tools/vsaadm",
        build::tool("admin", "vsaadm")?.display()
    );
    let flags = ["--add", &tool, &disk.flag("")];
    disks::passes(setup, &flags, BY_NAME)?;
    disks::passes(setup, &flags, NEXT_BOOT)
}

/// Neighbours full of noise, and what the program under test gets.
const PREPARE: &str = "set -e
echo \"format $D\" > /dev/vsa/control
for name in left mid right; do echo \"create $D $([ $name = mid ] && echo 1000 || echo 0) 1048576 $name\" > /dev/vsa/control; done
for name in left right; do head -c 1048576 /dev/urandom > /dev/vsa/$name; done; sync /dev/vsa/left";

fn hostile(setup: &Setup, bus: &str, more: &[&str]) -> Result<(), String> {
    let image = format!("areas-{bus}{}", more.concat());
    let disk = Image::new(&image, DISK_BYTES as u64)?;
    let name = if bus == "nvme" { "nvme0n1" } else { "vda" };
    let flag = disk.flag(&format!(",bus={bus}"));
    disks::passes(setup, &[&flag], &format!("D={name}\n{PREPARE}"))?;
    let before = disk.bytes()?;
    let built = build::c(Path::new("tests/programs/scenes/vsa_hostile.c"))?;
    let program = format!("{}:/vsa_hostile", built.display());
    let command = format!("/vsa_hostile {name}");
    let flags = [&["--add", &program, &flag], more].concat();
    let end = disks::start(setup, &flags, &command)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    if end.console.contains("The IOMMU refused") {
        return Err(format!(
            "the disk was told of what it may not reach: {}",
            end.console
        ));
    }
    let after = disk.bytes()?;
    let mid = CATALOGUE + AREA..CATALOGUE + 2 * AREA;
    let is_ours = |at: usize| at < CATALOGUE || mid.contains(&at);
    let changed = (0..before.len()).find(|at| before[*at] != after[*at] && !is_ours(*at));
    match changed {
        None => Ok(()),
        Some(at) => Err(format!(
            "byte {at} of the disk has changed, outside of the area"
        )),
    }
}
