//! What mounts and terminals' nodes mean to Debian's tools, and to the kernel itself.

use std::path::Path;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::userland;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a pseudo terminal opens whatever covers /dev",
        covered_devices,
    ),
    (
        "Debian's mount, findmnt and pivot_root do what they say",
        debian_tools,
    ),
    ("an ordinary user runs script", ordinary_user),
];

const COVERED: &str = "tests/harness/covered_dev.c";

/// Ends with 0 if each step did what it says.
const SCRIPT: &str = "set -e
cd /tmp; mkdir a b new; echo hi > a/f
mount --bind a b; test $(cat b/f) = hi
mount -o remount,ro,bind b; ! touch b/g 2> b.log; touch a/g
findmnt -n -o OPTIONS /tmp/b | grep -q '^ro,'
findmnt -n -o FSROOT /tmp/b | grep -q '^/tmp/a$'
umount b; ! mountpoint -q b
mount -t tmpfs -o size=1m mine b; mount -o remount,size=2m b
findmnt -b -n -o SIZE /tmp/b | grep -q 2097152
mount --make-rprivate /; mount --move b a; mountpoint -q a; umount -l a
mount -t tmpfs new new; cd new; mkdir old bin lib lib64 usr proc
for at in bin lib lib64 usr proc; do mount --rbind /$at $at; done
pivot_root . old; cd /; test -e old/tmp/a/g; umount -l old; ! test -e old/tmp
test $(wc -l < /proc/self/mounts) -ge 6
! umount usr 2> /log; umount proc; ! test -e /proc/self";

/// The shell, and script with a pseudo terminal of its own, act for somebody who is not root.
const USER_SCRIPT: &str = "set -e
script -q -e -c 'test $(id -u) = 0' /dev/null < /dev/null
su -s /bin/sh nobody -c \"script -q -e -c 'test -O \\$(tty)' /dev/null < /dev/null\"
su -s /bin/sh nobody -c \"! script -q -e -c 'false' /dev/null < /dev/null\"";

fn ordinary_user(setup: &Setup) -> Result<(), String> {
    let mut args = vec!["--net", "none"];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["/bin/bash", "-c", USER_SCRIPT]);
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}

fn covered_devices(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(COVERED), Link::StaticMusl)?;
    let args = ["--net", "none", &program.to_string_lossy()];
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}

fn debian_tools(setup: &Setup) -> Result<(), String> {
    let mut args = vec!["--net", "none"];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["/bin/bash", "-c", SCRIPT]);
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}
