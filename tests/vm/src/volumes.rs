//! Volumes (`sietch volume`, `-v NAME:/data`): disks that outlive machines. Each test ends with the host's
//! e2fsck, which must find nothing.

use std::fs::{self, File};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::Test;
use crate::guest::{self, BOOT_PATIENCE, End, Guest, Setup};
use crate::status::expect_status;
use crate::userland::FOLDERS;
use crate::volume::Folder;

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    (
        "a volume is made for the first machine, and the next one finds what it left",
        outlives,
    ),
    (
        "what was synchronised on a volume is there after its machine was killed",
        killed,
    ),
];

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[
    (
        "a volume is unmounted however its machine is asked to end",
        ends,
    ),
    (
        "two machines never change one volume, and several may read it",
        shared,
    ),
    (
        "a machine waits while the host has no room for its disk, and goes on when there is",
        waits_for_room,
    ),
    (
        "a program that runs as another user has what that user may have of a volume",
        as_user,
    ),
    (
        "a machine finds its volumes whatever the order of its disks is",
        ordered,
    ),
];

/// A volume of this run, removed afterwards.
pub struct Volume {
    name: String,
}

impl Volume {
    /// A new one.
    pub fn new(name: &str, size: &str) -> Result<Self, String> {
        Self::with(name, &["--size", size])
    }

    /// A new one, made with these flags.
    pub fn with(name: &str, flags: &[&str]) -> Result<Self, String> {
        let volume = Self { name: name.into() };
        // What an earlier test has left.
        let _ = command(&["rm", name]);
        command(&[&["create"], flags, &[name]].concat()).map(|_| volume)
    }

    /// One that the first machine makes.
    pub fn unmade(name: &str) -> Self {
        // What an earlier test has left.
        let _ = command(&["rm", name]);
        Self { name: name.into() }
    }

    /// The flag that mounts it at `/data`.
    pub fn flag(&self) -> String {
        format!("--volume={}:/data", self.name)
    }

    /// Waits until a killed command's machine has left it.
    pub fn settle(&self) {
        // What is wrong with it does not matter yet.
        let _ = patiently(|| command(&["fsck", "--dry-run", &self.name]));
    }

    /// Whether e2fsck finds nothing, which changes nothing.
    pub fn expect_sound(&self) -> Result<(), String> {
        let said = command(&["inspect", &self.name])?;
        let journal = said.contains("\"state\": \"journal\"");
        if journal {
            // As the next mount would.
            command(&["fsck", &self.name])?;
        }
        command(&["fsck", "--dry-run", &self.name]).map(drop)
    }

    /// Whether the machine left it as an unmount does.
    pub fn expect_clean(&self) -> Result<(), String> {
        let said = command(&["inspect", &self.name])?;
        match said.contains("\"state\": \"clean\"") {
            true => self.expect_sound(),
            false => Err(format!("it was not unmounted: {said}")),
        }
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // What cannot be removed goes with the run's folder.
        let _ = command(&["rm", &self.name]);
    }
}

/// Runs `sietch volume`; what it writes. Status 1 says that something was mended.
fn command(args: &[&str]) -> Result<String, String> {
    let output = guest::sietch().arg("volume").args(args).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    match output.status.code() {
        Some(0 | 1) => Ok(said),
        status => Err(format!("sietch volume {args:?}: {status:?}: {said}")),
    }
}

fn start(setup: &Setup, flags: &[&str], script: &str) -> Result<Guest, String> {
    let script = format!("set -e; fails() {{ ! \"$@\"; }}; {script}");
    setup.start(
        &[
            &["--net", "none"],
            FOLDERS,
            flags,
            &["/bin/sh", "-c", &script],
        ]
        .concat(),
    )
}

fn run(setup: &Setup, flags: &[&str], script: &str) -> Result<End, String> {
    start(setup, flags, script)?.wait(BOOT_PATIENCE)
}

fn passes(setup: &Setup, flags: &[&str], script: &str) -> Result<(), String> {
    expect_status(&run(setup, flags, script)?, 0)
}

fn outlives(setup: &Setup) -> Result<(), String> {
    let _ = command(&["rm", "made"]);
    let volume = Volume {
        name: "made".into(),
    };
    let flag = volume.flag();
    passes(
        setup,
        &[&flag],
        "test $(stat -c %u:%g:%a /data) = 0:0:755; test -z \"$(ls -A /data)\"
        grep -q '^/dev/vd. /data ext4 rw' /proc/mounts
        mkdir /data/own; chown 1000:1000 /data/own
        setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'echo mine > /data/own/file'
        head -c 3000000 /dev/zero > /data/large; exec 3> /data/gone; rm /data/gone; echo x >&3",
    )?;
    volume.expect_clean()?;
    passes(
        setup,
        &[&flag],
        "test $(cat /data/own/file) = mine; test $(stat -c %u:%g /data/own/file) = 1000:1000
        test $(stat -c %s /data/large) = 3000000; test ! -e /data/gone",
    )?;
    volume.expect_clean()
}

fn killed(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("killed", "64M")?;
    let script =
        "n=0; while :; do n=$((n + 1)); echo $n > /data/$n; sync /data/$n; echo synced-$n; done";
    let mut guest = start(setup, &[&volume.flag()], script)?;
    guest.expect("synced-20", BOOT_PATIENCE)?;
    guest.kill()?;
    let said = guest.console();
    let last = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("synced-"));
    let last = last.max_by_key(|number| number.parse::<u32>().unwrap_or(0));
    let last = last.unwrap_or("0").to_string();
    let script = format!(
        "for n in $(seq {last}); do test $(cat /data/$n) = $n; done; echo all-$(ls /data | wc -l)"
    );
    volume.settle();
    passes(setup, &[&volume.flag()], &script)?;
    volume.expect_clean()
}

/// Until the killed command's machine is gone, the volume is still its.
fn patiently<T>(mut act: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    const TRIES: u32 = 20;
    for _ in 1..TRIES {
        match act() {
            Err(why) if why.contains("is used by") => thread::sleep(Duration::from_millis(100)),
            done => return done,
        }
    }
    act()
}

fn ends(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("ends", "32M")?;
    let flag = volume.flag();
    // A program that fails, while others still write.
    let script = "(while :; do echo x >> /data/log; done) & sleep 0.2; echo y > /data/y; exit 3";
    expect_status(&run(setup, &[&flag], script)?, 3)?;
    volume.expect_clean()?;
    // One that is asked to.
    let script = "trap 'exit 7' TERM; echo z > /data/z; echo up; while :; do sleep 0.1; done";
    let guest = start(setup, &[&flag], script)?;
    guest.expect("up", BOOT_PATIENCE)?;
    expect_status(&guest.stop()?, 7)?;
    volume.expect_clean()?;
    // One that turns the machine off itself.
    let script = "test $(cat /data/y) = y; test $(cat /data/z) = z; echo w > /data/w; python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'";
    expect_status(&run(setup, &[&flag], script)?, 0)?;
    volume.expect_clean()
}

fn shared(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("shared", "32M")?;
    let flag = volume.flag();
    let read_only = format!("{flag}:ro");
    let wait = "echo up; while :; do sleep 0.1; done";
    let guest = start(setup, &[&flag], &format!("echo kept > /data/kept; {wait}"))?;
    guest.expect("up", BOOT_PATIENCE)?;
    for flag in [&flag, &read_only] {
        let end = run(setup, &[flag], "exit 0")?;
        if end.status != 125
            || !end
                .console
                .contains("The volume shared is used by the machine")
        {
            return Err(format!("a second machine has it: {}", end.console));
        }
    }
    match command(&["rm", "shared"]) {
        Err(why) if why.contains("sietch stop") => {}
        other => return Err(format!("it is removed while it is used: {other:?}")),
    }
    drop(guest);
    let reads = "test $(cat /data/kept) = kept; fails touch /data/new 2> /dev/null";
    // The first was ended by force: its journal is replayed before others read.
    let reader = start(setup, &[&read_only], &format!("{reads}; {wait}"))?;
    reader.expect("up", BOOT_PATIENCE)?;
    passes(setup, &[&read_only], reads)?;
    drop(reader);
    volume.expect_clean()
}

/// A volume that may hold more than the host's file system.
fn waits_for_room(setup: &Setup) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        // Nobody else can make a file system that is soon full.
        return Ok(());
    }
    let place = Tmpfs::new("volume-room", "24M")?;
    let image = place.0.0.join("disk.img");
    let made = File::create(&image).and_then(|file| file.set_len(64 << 20));
    made.map_err(|error| error.to_string())?;
    let ballast = place.0.0.join("ballast");
    fs::write(&ballast, vec![1; 8 << 20]).map_err(|error| error.to_string())?;
    let disk = format!("--disk={}", image.display());
    let script = "head -c 20000000 /dev/urandom > /tmp/r
        dd if=/tmp/r of=/dev/vda bs=1M conv=notrunc,fsync 2> /dev/null; head -c 20000000 /dev/vda | cmp - /tmp/r";
    let guest = start(setup, &[&disk], script)?;
    guest.expect("The host has no room left for", BOOT_PATIENCE)?;
    fs::remove_file(&ballast).map_err(|error| error.to_string())?;
    guest.expect("the machine goes on", BOOT_PATIENCE)?;
    expect_status(&guest.wait(BOOT_PATIENCE)?, 0)
}

/// A file system of the host's that is soon full.
struct Tmpfs(Folder);

impl Tmpfs {
    fn new(name: &str, size: &str) -> Result<Self, String> {
        let folder = Folder::new(name)?;
        let size = format!("size={size}");
        host_runs("mount", &["-t", "tmpfs", "-o", &size, "none"], &folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // One that stays is empty soon, and goes with the host.
        let _ = host_runs("umount", &["--lazy"], &self.0);
    }
}

fn host_runs(program: &str, args: &[&str], folder: &Folder) -> Result<(), String> {
    let status = Command::new(program).args(args).arg(&folder.0).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{program} {args:?}: {other:?}")),
    }
}

fn as_user(setup: &Setup) -> Result<(), String> {
    let volume = Volume::new("user", "16M")?;
    let flag = volume.flag();
    let user = [flag.as_str(), "-u", "1234:77"];
    let identity = "test $(id -u):$(id -g):$(id -G) = 1234:77:77; test $HOME = /";
    passes(
        setup,
        &user,
        &format!("{identity}; fails touch /data/x 2> /tmp/log; grep -q denied /tmp/log"),
    )?;
    passes(
        setup,
        &[&flag],
        "chown 1234:77 /data; echo root > /data/roots; chmod 600 /data/roots",
    )?;
    let script = "echo mine > /data/mine; test $(stat -c %u:%g /data/mine) = 1234:77
        fails cat /data/roots 2> /tmp/log; fails grep -q 'CapEff:.*[1-9a-f]' /proc/self/status";
    passes(setup, &user, &format!("{identity}; {script}"))?;
    volume.expect_clean()
}

fn ordered(setup: &Setup) -> Result<(), String> {
    let (one, two) = (Volume::new("one", "16M")?, Volume::new("two", "16M")?);
    let (a, b) = ("--volume=one:/a", "--volume=two:/b");
    passes(setup, &[a, b], "echo one > /a/name; echo two > /b/name")?;
    let inner = "--volume=two:/a/b";
    passes(
        setup,
        &[inner, a],
        "test $(cat /a/name) = one; test $(cat /a/b/name) = two",
    )?;
    one.expect_clean()?;
    two.expect_clean()
}
