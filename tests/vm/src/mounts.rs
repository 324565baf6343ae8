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
        |setup| passes(setup, SCRIPT),
    ),
    (
        "Debian's unshare, nsenter and lsns make, enter and list namespaces",
        |setup| passes(setup, NAMESPACES),
    ),
    ("an ordinary user runs script", |setup| {
        passes(setup, USER_SCRIPT)
    }),
];

const COVERED: &str = "tests/harness/covered_dev.c";

/// Ends with 0 if each step did what it says.
const SCRIPT: &str = "set -e; fails() { ! \"$@\"; }
cd /tmp; mkdir a b new; echo hi > a/f
mount --bind a b; test $(cat b/f) = hi
mount -o remount,ro,bind b; fails touch b/g 2> b.log; touch a/g
findmnt -n -o OPTIONS /tmp/b | grep -q '^ro,'
findmnt -n -o FSROOT /tmp/b | grep -q '^/tmp/a$'
umount b; fails mountpoint -q b
mount -t tmpfs -o size=1m mine b; mount -o remount,size=2m b
findmnt -b -n -o SIZE /tmp/b | grep -q 2097152
mount --make-rprivate /; mount --move b a; mountpoint -q a; umount -l a
mount -t tmpfs new new; cd new; mkdir old bin lib lib64 usr proc
for at in bin lib lib64 usr proc; do mount --rbind /$at $at; done
pivot_root . old; cd /; test -e old/tmp/a/g; umount -l old; test ! -e old/tmp
test $(wc -l < /proc/self/mounts) -ge 6
fails umount usr 2> /log; umount proc; test ! -e /proc/self";

/// The shell, and script with a pseudo terminal of its own, act for somebody who is not root.
const USER_SCRIPT: &str = "set -e
script -q -e -c 'test $(id -u) = 0' /dev/null < /dev/null
su -s /bin/sh nobody -c \"script -q -e -c 'test -O \\$(tty)' /dev/null < /dev/null\"
su -s /bin/sh nobody -c \"! script -q -e -c 'false' /dev/null < /dev/null\"";

/// A mount and a name of one shell are not seen by the other; `exec` lets the sleeper have the
/// number of the shell that was started.
const NAMESPACES: &str = "set -e; fails() { ! \"$@\"; }
cd /tmp; mkdir m
unshare -m bash -c 'mount -t tmpfs none m && touch m/there && test -e m/there'
test ! -e m/there; host=$(uname -n)
unshare -m -u bash -c 'mount -t tmpfs none m; touch m/there; hostname other
  touch ready; exec sleep 1000' & pid=$!
until test -e ready; do sleep 0.1; done
test ! -e m/there; test $(uname -n) = $host
test $(nsenter -t $pid -u uname -n) = other
nsenter -t $pid -m test -e /tmp/m/there
nsenter -t $pid -m umount /tmp/m; fails nsenter -t $pid -m test -e /tmp/m/there
test $(readlink /proc/$pid/ns/mnt) != $(readlink /proc/self/ns/mnt)
lsns -n -t uts -o PID,NPROCS | grep -q \"$pid *1$\"; test $(lsns -n -t mnt | wc -l) = 2
kill $pid; wait $pid || true; test $(lsns -n -t mnt | wc -l) = 1
mkdir s; mount -t tmpfs none s; mount --make-shared s; mkdir s/in
unshare -m --propagation unchanged mount -t tmpfs none s/in; mountpoint -q s/in
findmnt -n -o PROPAGATION s/in | grep -q shared
unshare -n bash -c 'readlink /proc/self/ns/net > other'
test $(cat other) != $(readlink /proc/self/ns/net)
fails unshare -i true 2> log; grep -q 'Invalid argument' log";

fn covered_devices(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(COVERED), Link::StaticMusl)?;
    let args = ["--net", "none", &program.to_string_lossy()];
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}

fn passes(setup: &Setup, script: &str) -> Result<(), String> {
    let mut args = vec!["--net", "none"];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["/bin/bash", "-c", script]);
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}
