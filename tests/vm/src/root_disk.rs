//! Machines whose root is a disk (`sietch run --root-disk`).

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup, state_folder};
use crate::status::expect_status;
use crate::volume::Folder;
use crate::volumes::Volume;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a machine whose root is a disk finds there what the one before it changed",
    keeps,
)];

const PROGRAM: &str = "/bin/busybox";

/// The first machine: the root is the disk, and around it is what every program expects.
const FIRST: &str = "set -e
grep -q '^/dev/vda / ext4 rw' /proc/mounts; test -d /sys/class; test -c /dev/null; test -b /dev/vda
test $(hostname) = rooted; test $(cat /etc/hostname) = rooted; grep -q 10.0.2.3 /etc/resolv.conf
touch /run/old; test $(ls -A /run) = old; test ! -e /.sietch; test ! -e /.root
mkdir -p /var/lib/it; echo kept > /var/lib/it/file; echo changed > /etc/own; rm /etc/gone; sync";
/// The next one.
const NEXT: &str = "set -e
test $(cat /var/lib/it/file) = kept; test $(cat /etc/own) = changed; test ! -e /etc/gone
test -z \"$(ls -A /run)\"; test $(cat /data/file) = beside";

fn keeps(setup: &Setup) -> Result<(), String> {
    let tree = Folder::new("root-disk-tree")?;
    plant(&tree.0)?;
    let from = tree.0.to_string_lossy();
    let root = Volume::with("root", &["--size", "48M", "--from", &from])?;
    let beside = Volume::new("beside", "16M")?;
    let busybox = |flags: &[&str], script: &str| {
        let args = [
            &["--name", "rooted"],
            flags,
            &["busybox", "sh", "-c", script],
        ]
        .concat();
        expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
    };
    busybox(&["--root-disk", "root"], FIRST)?;
    root.expect_clean()?;
    let volume = beside.flag();
    let write = "echo beside > /data/file; grep -q '/data ext4' /proc/mounts";
    busybox(&[&volume, "--root-disk", "root"], write)?;
    // The same by its file, behind another disk.
    let file = state_folder().join("sietch/volumes/root.img");
    let file = file.to_string_lossy();
    busybox(&[&volume, "--root-disk", &file], NEXT)?;
    root.expect_clean()?;
    beside.expect_clean()
}

/// A small system: one program with its libraries and its names.
pub fn plant(root: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let copy = |path: &str| {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap_or(root)).map_err(io)?;
        fs::copy(path, to).map(drop).map_err(io)
    };
    copy(PROGRAM)?;
    let said = Command::new("ldd").arg(PROGRAM).output().map_err(io)?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut libraries = said.split_whitespace().filter(|word| word.starts_with('/'));
    libraries.try_for_each(copy)?;
    fs::create_dir_all(root.join("etc")).map_err(io)?;
    for name in ["hostname", "hosts", "resolv.conf", "own", "gone"] {
        fs::write(root.join("etc").join(name), "of the disk\n").map_err(io)?;
    }
    Ok(())
}
