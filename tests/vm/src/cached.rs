//! Pages of files: what is read, written and mapped is one, whatever comes between.

use std::path::Path;
use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::disks::{Image, start};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::volume::Folder;

const MODEL: &str = "tests/harness/file_model.c";
const APPENDERS: &str = "tests/harness/appenders.c";
const CROWD_PROGRAM: &str = "tests/harness/file_crowd.c";
/// What many threads get on a busy host.
const PATIENCE: Duration = Duration::from_secs(900);
const HOG: &str = "tests/harness/memhog.c";
const RACES: &str = "tests/harness/file_races.c";

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
        "threads that share pages of files agree with a model while all is brought down and given up",
        many_threads,
    ),
    (
        "stores to a mapping find room as long as the disk has any",
        |setup| crowded(setup, "1024", "", LITTLE_ROOM),
    ),
    (
        "a disk that was detached in use is whole when it is mounted or looked at next",
        |setup| crowded(setup, "4096", "", DETACHED),
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

/// Many threads; with `--long` longer, on both kinds of disks, on one that is full, and where memory is short.
fn many_threads(setup: &Setup) -> Result<(), String> {
    crowded(setup, "1024", "", CROWDED)?;
    if setup.is_long() {
        crowded(setup, "1024", "", CROWDED_LONG)?;
        crowded(setup, "4096", "bus=nvme", CROWDED_LONG)?;
        crowded(setup, "1024", "", CROWDED_FULL)?;
        crowded(setup, "1024", "", SHORT)?;
    }
    Ok(())
}

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

/// What scripts of several threads begin with: all is brought down and given up until `over`; the files are as the models say,
/// also when the disk is mounted anew.
const CROWD: &str = "
mkdir /tmp/models
down() { while test ! -e /tmp/over; do sync; echo 1 > /proc/sys/vm/drop_caches; done; }
same() { for model in /tmp/models/*; do cmp $model $1/${model##*/}; done; }
again() {
  umount /tmp/m; e2fsck -fn $disk > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }; mount -t ext4 $disk /tmp/m
}
flushes() { awk '$3 == \"vda\" { print $19 }' /proc/diskstats; }
";

/// What one thread has synchronized, what nobody had to before it had a name, a mapping that outlives a file's end, and many at once.
const CROWDED: &str = "
before=$(flushes); /races synced /tmp/m/synced 20; test $(($(flushes) - before)) -ge 20
/races nameless /tmp/m; /races cut /tmp/m/cut 60
down & /crowd /tmp/m 1 150 5 direct; touch /tmp/over; wait; same /tmp/m; again; same /tmp/m
test $(tr -d n < /tmp/m/named | wc -c)-$(stat -c %s /tmp/m/named) = 0-8192
rm /tmp/over /tmp/models/*; /races removed /tmp/m 20; /races unmapped /volume/mapped; /races ended /volume/ended 100; /races removed /volume 20; /races replaced /volume 20; down & /crowd /volume 2 60 4; touch /tmp/over; wait; same /volume; umount /tmp/m";

/// A disk is mounted while its last image, which somebody has used until now, is being ended, and looked at as soon as it is unmounted.
const DETACHED: &str = "
down & for round in 1 2; do
  exec 7> /tmp/m/round; umount -l /tmp/m; head -c 2M /dev/urandom >&7 & exec 7>&-
  while kill -0 $! 2> /dev/null; do mount -t ext4 $disk /tmp/m; echo $round > /tmp/m/other; umount /tmp/m; done
  mount -t ext4 $disk /tmp/m; test $(stat -c %s /tmp/m/round) = 2097152; again
done; touch /tmp/over; wait; umount /tmp/m";

/// 40 blocks of which each page needs four, and the tree that finds them some.
const LITTLE_ROOM: &str = "
cat /dev/zero > /tmp/m/rest || true; truncate -s -40K /tmp/m/rest; sync
/races room /tmp/m/holes 8; umount /tmp/m; e2fsck -fn $disk > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }";

/// While another program takes all memory, again and again.
const SHORT: &str = "
down & while test ! -e /tmp/over; do /hog > /dev/null 2>&1 || true; done &
for seed in $(seq 3); do /crowd /tmp/m $seed 150 5 direct short; done
touch /tmp/over; wait; same /tmp/m; again; same /tmp/m";

const CROWDED_LONG: &str = "
/races cut /tmp/m/cut 3000; down & down &
for seed in $(seq 20); do /crowd /tmp/m $seed 600 8 direct; same /tmp/m; done
touch /tmp/over; wait; again; same /tmp/m; rm /tmp/over /tmp/models/*; down &
for seed in $(seq 5); do /crowd /volume $seed 300 6; done; touch /tmp/over; wait; same /volume";

const CROWDED_FULL: &str = "
cat /dev/zero > /tmp/m/rest || true; truncate -s -700K /tmp/m/rest; sync; down & down &
for seed in $(seq 20); do /crowd /tmp/m $seed 400 8 direct full; same /tmp/m; done
touch /tmp/over; wait; again; same /tmp/m";

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

/// Runs programs of several threads on a disk, and on a folder of the host at `/volume`.
fn crowded(setup: &Setup, block: &str, bus: &str, script: &str) -> Result<(), String> {
    let added = |source: &str, name: &str| {
        let program = build::c_linked(Path::new(source), Link::StaticMusl)?;
        Ok::<_, String>(format!("{}:{name}", program.display()))
    };
    let (crowd, races) = (added(CROWD_PROGRAM, "/crowd")?, added(RACES, "/races")?);
    let hog = added(HOG, "/hog")?;
    let disk = Image::new(&format!("crowded-{block}-{}", script.len()), 64 << 20)?;
    disk.run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", block])?;
    let folder = Folder::new(&format!("crowded-{block}-{}", script.len()))?;
    let volume = format!("{}:/volume", folder.0.display());
    let (node, bus) = match bus {
        "" => ("/dev/vda", String::new()),
        bus => ("/dev/nvme0n1", format!(",{bus}")),
    };
    let script =
        format!("set -e\ndisk={node}; mkdir /tmp/m; mount -t ext4 $disk /tmp/m\n{CROWD}{script}");
    let flags = [
        "--memory",
        "128M",
        "--add",
        &crowd,
        "--add",
        &races,
        "--add",
        &hog,
        "-v",
        &volume,
        &disk.flag(&bus),
    ];
    expect_status(&start(setup, &flags, &script)?.wait(PATIENCE)?, 0)?;
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
