//! Machines whose root is only read, with a layer for changes (`--overlay`, `--rootfs`, `--host-root`).

use std::fs;

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup, state_folder};
use crate::http::{self, Connections};
use crate::root_disk::plant;
use crate::status::expect_status;
use crate::volume::Folder;
use crate::volumes::Volume;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "changes of a root go to memory or to a volume, and the root stays as it was",
        layered,
    ),
    (
        "a folder of the host is a root that nobody changes",
        in_folder,
    ),
    (
        "programs of the host run in its own files: Perl and Python with modules, a shell, git",
        installed,
    ),
];

/// Apache with the host's configuration.
pub const TESTS_OF_APACHE: &[Test] = &[(
    "Apache serves as the host has configured it, in the host's own files",
    apache,
)];

/// Ends with 0 if the root can be changed as any other, and is around what every program expects.
const CHANGES: &str = "set -e
grep -q '^overlay / overlay rw' /proc/mounts; grep -q ' /sys sysfs' /proc/mounts; test -d /proc/self; test -c /dev/null
test $(cat /etc/hostname) = rooted; test $(cat /etc/own) = disk; grep -q 10.0.2.3 /etc/resolv.conf
echo changed > /etc/own; rm /etc/gone; mkdir -p /var/lib/it; echo kept > /var/lib/it/file
test $(cat /etc/own) = changed; test ! -e /etc/gone; mkdir /many
i=0; while [ $i -lt 1500 ]; do : > /many/$i; i=$((i+1)); done; test $(ls /many | wc -l) = 1500
rm -r /many; test ! -e /many; rm -r /bin; test ! -e /bin/busybox; sync";
/// In the next machine, after changes that went to memory.
const UNCHANGED: &str = "test $(cat /etc/own) = disk && test -e /etc/gone && test ! -e /var/lib";
/// And after changes that stayed.
const CHANGED: &str = "set -e
test $(cat /var/lib/it/file) = kept; test $(cat /etc/own) = changed; test ! -e /etc/gone";

/// Where only what is mounted can be changed, and a file system in memory has a size.
const FIXED: &str = "fails() { ! \"$@\" 2> /dev/null; }; set -e
fails touch /x; fails rm /etc/gone; touch /run/x; echo x > /cache/x
fails dd if=/dev/zero of=/cache/large bs=64k count=20; rm /cache/large; echo y > /cache/y";

fn in_root(setup: &Setup, flags: &[&str], script: &str) -> Result<(), String> {
    let args = [
        &["--name", "rooted"],
        flags,
        &["busybox", "sh", "-c", script],
    ]
    .concat();
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}

fn tree(name: &str) -> Result<Folder, String> {
    let tree = Folder::new(name)?;
    plant(&tree.0)?;
    let own = tree.0.join("etc/own");
    fs::write(own, "disk\n").map_err(|error| error.to_string())?;
    Ok(tree)
}

fn layered(setup: &Setup) -> Result<(), String> {
    let tree = tree("layered-tree")?;
    let from = tree.0.to_string_lossy();
    let root = Volume::with("layered", &["--size", "48M", "--from", &from])?;
    let upper = Volume::new("layered-upper", "16M")?;
    let file = state_folder().join("sietch/volumes/layered.img");
    let before = fs::read(&file).map_err(|error| error.to_string())?;
    let memory = ["--root-disk", "layered", "--overlay", "memory"];
    in_root(setup, &memory, CHANGES)?;
    in_root(setup, &memory, UNCHANGED)?;
    let volume = ["--root-disk", "layered", "--overlay", "layered-upper"];
    // Its programs are gone with /bin in the next one, where only the shell that runs is needed.
    let keeps = CHANGES.replace("rm -r /bin; test ! -e /bin/busybox; ", "");
    in_root(setup, &volume, &keeps)?;
    in_root(setup, &volume, CHANGED)?;
    upper.expect_clean()?;
    root.expect_clean()?;
    match fs::read(&file).is_ok_and(|after| after == before) {
        true => Ok(()),
        false => Err("the disk below the layer has changed".into()),
    }
}

fn in_folder(setup: &Setup) -> Result<(), String> {
    let tree = tree("folder-tree")?;
    let folder = tree.0.to_string_lossy();
    let args = ["--rootfs", &*folder];
    in_root(setup, &args, CHANGES)?;
    in_root(setup, &args, UNCHANGED)?;
    let fixed = [&args[..], &["--read-only", "--tmpfs", "/cache:size=1m"]].concat();
    in_root(setup, &fixed, FIXED)?;
    match fs::read(tree.0.join("etc/own")) {
        Ok(own) if own == b"disk\n" && tree.0.join("etc/gone").exists() => Ok(()),
        _ => Err("the folder has changed".into()),
    }
}

/// Ends with 0 if each program finds what it needs.
const PROGRAMS: &str = "set -e
test -z \"$(ls -A /tmp)\"; test ! -e /proc/1/cwd/run/docker.sock
perl -MPOSIX -MData::Dumper -e 'POSIX::uname(); exit 0'
python3 -c 'import json, sqlite3, decimal, asyncio; sqlite3.connect(\"/var/tmp/db\").execute(\"create table t(a)\")'
cd /root && git init -q here && cd here && echo hi > file && git add file
git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | grep -q one
ls /usr/bin | wc -l; echo mine > /etc/mine; rm /etc/passwd; test ! -e /etc/passwd";

fn installed(setup: &Setup) -> Result<(), String> {
    let args = ["--host-root", "-m", "512M", "bash", "-c", PROGRAMS];
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)?;
    match fs::exists("/etc/mine") {
        Ok(false) if fs::exists("/etc/passwd").unwrap_or(false) => Ok(()),
        _ => Err("a machine has changed the host's /etc".into()),
    }
}

fn apache(setup: &Setup) -> Result<(), String> {
    let args = [
        "--host-root",
        "-m",
        "512M",
        "/usr/sbin/apache2ctl",
        "-D",
        "FOREGROUND",
    ];
    let (guest, address) = setup.serve(80, &args)?;
    guest.expect_answer(address, http::HELLO)?;
    http::load(address, "/", "Apache2", 4, 25, Connections::Fresh)
        .map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}
