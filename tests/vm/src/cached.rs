//! Pages of files: what is read, written and mapped is one, whatever comes between.

use std::path::Path;

use crate::Test;
use crate::build::{self, Link};
use crate::disks::{Image, start};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::volume::Folder;

const MODEL: &str = "tests/harness/file_model.c";
const APPENDERS: &str = "tests/harness/appenders.c";

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    (
        "a file on ext4 agrees with a model, whichever way it is reached",
        |setup| on_ext4(setup, "4096", "256M", MODELS),
    ),
    (
        "a file on ext4 with small blocks agrees with a model",
        |setup| on_ext4(setup, "1024", "256M", MODELS),
    ),
    (
        "a file agrees with a model while clean pages are given up all the time",
        |setup| on_ext4(setup, "1024", "256M", GIVEN_UP),
    ),
    (
        "a file that grows is whole while it is brought down and given up all the time",
        |setup| on_ext4(setup, "4096", "256M", GROWING),
    ),
    (
        "a file of the host agrees with a model, whichever way it is reached",
        of_the_host,
    ),
    (
        "a file larger than memory is read and written beside others",
        |setup| on_ext4(setup, "4096", "128M", LARGE),
    ),
    (
        "what was written before the disk was full is there",
        |setup| on_ext4(setup, "1024", "256M", FULL),
    ),
    (
        "threads that sync their files at once share commits, beside names that come and go",
        |setup| on_ext4_with(setup, APPENDERS, "4096", "256M", SYNCED),
    ),
    ("what nobody synchronizes comes down by itself", |setup| {
        on_ext4(setup, "4096", "256M", FLUSHED)
    }),
];

/// Two at once; then the disk is mounted anew.
const MODELS: &str = "
/program /tmp/m/one 1 400 direct & /program /tmp/m/two 2 400; wait $!
cmp /tmp/m/one /tmp/one.model; cmp /tmp/m/two /tmp/two.model
umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
mount -t ext4 /dev/vda /tmp/m
cmp /tmp/m/one /tmp/one.model; cmp /tmp/m/two /tmp/two.model; umount /tmp/m";

/// Sixty files one after the other, while all is given up that is not written to.
const GIVEN_UP: &str = "
drop() { while test ! -e /tmp/over; do echo 1 > /proc/sys/vm/drop_caches; done; }
drop & drop & for seed in $(seq 60); do /program /tmp/m/file $seed 40 direct; done
touch /tmp/over; wait; umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }";

/// Page by page, so that somebody is about to bring each of them down as it is written.
const GROWING: &str = "
down() { while test ! -e /tmp/over; do sync; echo 1 > /proc/sys/vm/drop_caches; done; }
head -c 24M /dev/urandom > /tmp/model; down & down & for copy in $(seq 8); do
  dd if=/tmp/model of=/tmp/m/file bs=4096 status=none; cmp /tmp/model /tmp/m/file; rm /tmp/m/file
done
touch /tmp/over; wait; umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }";

/// Two files of 100 MB each that repeat one, where 128 MB are all there is.
const LARGE: &str = "
head -c 1000000 /dev/urandom > /tmp/m/part; cd /tmp/m
ten() { cat part part part part part part part part part part; }
hundred() { ten; ten; ten; ten; ten; ten; ten; ten; ten; ten; }
hundred > large & hundred > other; wait $!
for file in large other; do
  cmp -n 1000000 part $file; cmp -i 1000000:0 -n 99000000 $file $file
  test $(stat -c %s $file) = 100000000
done
test $(awk '/^Cached/ { print $2 }' /proc/meminfo) -gt 30000
cd /; umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }";

/// Copies until there is no room; all but the last are whole, also for the next mount.
const FULL: &str = "
cd /tmp/m; fallocate -l 440M taken; head -c 3000000 /dev/urandom > part; count=0
while cat part > copy-$count 2> /tmp/log; do count=$((count + 1)); done
grep -q 'No space left' /tmp/log; test $count -ge 2; test $(stat -f -c %f .) -lt 20
cd /; umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
mount -t ext4 /dev/vda /tmp/m; cd /tmp/m
for copy in $(seq 0 $((count - 1))); do cmp part copy-$copy; done
cmp -n $(stat -c %s copy-$count) part copy-$count; rm copy-*; cp part again; cmp part again";

/// Half a second until it is due; then the disk has got it.
const FLUSHED: &str = "
for name in expire writeback; do echo 50 > /proc/sys/vm/dirty_${name}_centisecs; done
head -c 3000000 /dev/urandom > /tmp/m/file
until test $(awk '$3 == \"vda\" { print $10 }' /proc/diskstats) -gt 5850; do sleep 0.2; done
until test $(awk '/^Dirty/ { print $2 }' /proc/meminfo) = 0; do sleep 0.2; done";

/// 480 syncs, of which each has a flush of its own if they share none.
const SYNCED: &str = "
flushes() { awk '$3 == \"vda\" { print $19 }' /proc/diskstats; }
names() { while test ! -e /tmp/done; do echo some > a; mv a b; mkdir c; rmdir c; rm b; done; touch /tmp/over; }
cd /tmp/m; names & before=$(flushes)
/program file 8 60; after=$(flushes); touch /tmp/done; until test -e /tmp/over; do sleep 0.1; done
test $((after - before)) -lt 480
cd /; umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
mount -t ext4 /dev/vda /tmp/m; /program /tmp/m/file 8 60 check; umount /tmp/m";

fn on_ext4(setup: &Setup, block: &str, memory: &str, script: &str) -> Result<(), String> {
    on_ext4_with(setup, MODEL, block, memory, script)
}

fn on_ext4_with(
    setup: &Setup,
    program: &str,
    block: &str,
    memory: &str,
    script: &str,
) -> Result<(), String> {
    let program = build::c_linked(Path::new(program), Link::StaticMusl)?;
    let disk = Image::new(&format!("cached-{block}-{memory}"), 512 << 20)?;
    disk.run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", block])?;
    let add = format!("{}:/program", program.display());
    let script = format!("set -e\nmkdir /tmp/m; mount -t ext4 /dev/vda /tmp/m\n{script}");
    let flags = ["--memory", memory, "--add", &add, &disk.flag("")];
    expect_status(&start(setup, &flags, &script)?.wait(BOOT_PATIENCE)?, 0)?;
    disk.run("e2fsck", &["-fn"])
}

fn of_the_host(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(MODEL), Link::StaticMusl)?;
    let folder = Folder::new("cached-host")?;
    let volume = format!("{}:/volume", folder.0.display());
    let program = program.to_string_lossy();
    let args = [
        "--net",
        "none",
        "-v",
        &volume,
        &program,
        "/volume/file",
        "3",
        "1500",
    ];
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}
