//! Disks that fail under ext4: at the n-th read, write or flush (QEMU's `blkdebug`), that end nothing for a long
//! time, that are dead. Nothing that was acknowledged is lost, and neighbours do not notice.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use powercut::files::sequence::recover;
use powercut::image;
use powercut::machine::oracles;
use powercut::medium::Medium;

use crate::Test;
use crate::disks::{self, Image, start_up};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a read, a write or a flush that fails is EIO for who must hear of it, and loses nothing that was promised",
    |setup| failing(setup, "virtio", "vd"),
)];

/// The same on other disks, and what is not of one kind of disk.
pub const TESTS_OF_NVME: &[Test] = &[
    (
        "a read, a write or a flush that fails on an NVMe disk is EIO for who must hear of it",
        |setup| failing(setup, "nvme", "nvme0n"),
    ),
    (
        "a disk that ends nothing for half a minute is started anew and asked again",
        slow,
    ),
];

/// What takes minutes.
pub const TESTS_LONG: &[Test] = &[(
    "a disk that never ends anything again is EIO for its callers, and the machine goes on",
    dead,
)];

const PROGRAM: &str = "tests/harness/disk_faults.py";
const PATIENCE: Duration = Duration::from_secs(240);
/// Disks of one machine that fail.
const DISKS_MAX: usize = 14;

/// `blkdebug`'s names of an event and of the request that it belongs to.
const READ: (&str, &str) = ("read_aio", "read");
const WRITE: (&str, &str) = ("write_aio", "write");
const FLUSH: (&str, &str) = ("flush_to_disk", "flush");

/// What fails.
#[derive(Clone, Copy, Debug)]
struct Fault {
    /// Whether everything fails from then on.
    is_last: bool,
    event: &'static str,
    kind: &'static str,
    /// The how manieth of these fails, from 1 on.
    number: u32,
}

impl Fault {
    /// The rules of `blkdebug`: its state counts the events.
    fn rules(&self) -> String {
        let Self {
            is_last,
            event,
            kind,
            number,
        } = self;
        let count = |state: u32| {
            let next = state + 1;
            format!(
                "[set-state]\nstate = \"{state}\"\nevent = \"{event}\"\nnew_state = \"{next}\"\n"
            )
        };
        let fails = |event: &str, kind: &str, state: u32, once: &str| {
            let when = format!("state = \"{state}\"\nevent = \"{event}\"\nonce = \"{once}\"");
            format!("[inject-error]\n{when}\niotype = \"{kind}\"\nerrno = \"5\"\n")
        };
        if *is_last {
            let counts = (1..=*number).map(count);
            let all =
                [READ, WRITE, FLUSH].map(|(event, kind)| fails(event, kind, number + 1, "off"));
            return counts.chain(all).collect();
        }
        (1..*number)
            .map(count)
            .chain([fails(event, kind, *number, "on")])
            .collect()
    }
}

/// The n-th of these for each of these numbers.
fn each(
    (event, kind): (&'static str, &'static str),
    is_last: bool,
    numbers: impl IntoIterator<Item = u32>,
) -> impl Iterator<Item = Fault> {
    numbers.into_iter().map(move |number| Fault {
        is_last,
        event,
        kind,
        number,
    })
}

fn faults(setup: &Setup) -> Vec<Fault> {
    match setup.is_long() {
        true => each(READ, false, 1..=20)
            .chain(each(WRITE, false, 1..=80))
            .chain(each(FLUSH, false, 1..=40))
            // Not within the mount.
            .chain(each(WRITE, true, (12..90).step_by(6)))
            .collect(),
        false => each(READ, false, [2, 6, 11])
            .chain(each(WRITE, false, [1, 4, 9, 23, 40]))
            .chain(each(FLUSH, false, [1, 5, 18]))
            .chain(each(WRITE, true, [12, 31]))
            .collect(),
    }
}

/// A disk and what fails on it.
struct Failing {
    image: Image,
    rules: PathBuf,
    fault: Fault,
}

fn failing(setup: &Setup, bus: &str, prefix: &str) -> Result<(), String> {
    let faults = faults(setup);
    for (round, faults) in faults.chunks(DISKS_MAX).enumerate() {
        let folder = Folder::new(&format!("faults-{bus}-{round}"))?;
        let disk = |(number, fault): (usize, &Fault)| {
            let image = ext4(&format!("faults-{bus}-{round}-{number}"))?;
            let rules = folder.0.join(format!("rules-{number}"));
            fs::write(&rules, fault.rules()).map_err(|error| error.to_string())?;
            let fault = *fault;
            Ok(Failing {
                image,
                rules,
                fault,
            })
        };
        let disks = faults.iter().enumerate().map(disk);
        fail_together(setup, bus, prefix, disks.collect::<Result<_, String>>()?)?;
    }
    Ok(())
}

/// An image with an empty file system.
fn ext4(name: &str) -> Result<Image, String> {
    let image = Image::new(name, 16 << 20)?;
    let shape = [
        "-b",
        "4096",
        "-O",
        "^resize_inode",
        "-E",
        "lazy_itable_init=0",
    ];
    image.run(
        "mke2fs",
        &[&["-q", "-F", "-t", "ext4"], &shape[..]].concat(),
    )?;
    Ok(image)
}

fn fail_together(
    setup: &Setup,
    bus: &str,
    prefix: &str,
    disks: Vec<Failing>,
) -> Result<(), String> {
    let sound = ext4(&format!("faults-{bus}-sound"))?;
    let name = |number: usize| match bus {
        "nvme" => format!("{prefix}{}", number + 1),
        _ => format!("{prefix}{}", char::from(b'a' + number as u8)),
    };
    let mut flags = vec![format!("--add={PROGRAM}:/disk_faults.py")];
    flags.push(sound.flag(&format!(",bus={bus}")));
    for disk in &disks {
        let rules = disk.rules.display();
        flags.push(disk.image.flag(&format!(",bus={bus},faults={rules}")));
    }
    let names: Vec<String> = (0..=disks.len()).map(name).collect();
    let script = format!("exec python3 /disk_faults.py {}", names.join(" "));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let end = disks::start(setup, &flags, &script)?.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    for (disk, name) in disks.iter().zip(&names[1..]) {
        let judged = judge(disk, name, &end.console);
        judged.map_err(|error| format!("{name}, {:?}: {error}", disk.fault))?;
    }
    sound.run("e2fsck", &["-fn"])
}

/// Whether the image has all that the console says, and the volume stopped where it must.
fn judge(disk: &Failing, name: &str, console: &str) -> Result<(), String> {
    let said = format!("{name}: ");
    let lines = console
        .lines()
        .filter_map(|line| line.trim().strip_prefix(&said));
    let lines: Vec<&str> = lines.collect();
    let end = lines.last().ok_or("nothing was done")?;
    let is_heard = disk.fault.kind == "flush" || disk.fault.is_last;
    if is_heard && *end != "stopped" && !lines.contains(&"mounted late") {
        return Err(format!("the volume has {end}"));
    }
    let medium = disk.image.bytes().map(Medium::new)?;
    let (medium, _) = recover(medium)?;
    oracles::check(&image::judge(&medium)?, &lines)?;
    powercut::e2fsck(&medium)
}

/// Writes and reads while the host lets the disk do one sector a second.
const SLOW: &str = "set -e
head -c 65536 /dev/urandom > /tmp/r
echo it is up; read line
(until grep -q ' 0 [1-9][0-9]* 0 vda$' /proc/disks; do sleep 0.5; done; echo it was started anew) &
dd if=/tmp/r of=/dev/vda bs=64k oflag=direct conv=notrunc 2> /dev/null
dd if=/dev/vda of=/tmp/s bs=64k count=1 iflag=direct 2> /dev/null
cmp /tmp/r /tmp/s; wait";

fn slow(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("slow", 4 << 20)?;
    let (mut guest, mut qmp) = start_up(setup, "slow", &[&disk.flag("")], SLOW)?;
    qmp.throttle_disk(0, 1).map_err(|error| error.to_string())?;
    guest.type_text("\n")?;
    guest.expect("it was started anew", PATIENCE)?;
    qmp.throttle_disk(0, 0).map_err(|error| error.to_string())?;
    expect_status(&guest.wait(BOOT_PATIENCE)?, 0)
}

/// The same for good: the last of a few tries is EIO. The other disk is used meanwhile, and afterwards.
const DEAD: &str = "set -e; fails() { ! \"$@\"; }
use_other() { dd if=/dev/zero of=/dev/vdb bs=4k count=8 oflag=direct,dsync conv=notrunc 2> /dev/null; }
echo it is up; read line
(until test -e /tmp/done; do use_other || exit 1; sleep 0.2; done) &
dd if=/dev/zero of=/dev/vda bs=64k count=1 oflag=direct conv=notrunc 2> /dev/null
fails dd if=/dev/vda of=/dev/null bs=64k count=1 iflag=direct 2> /tmp/log
grep -q 'Input/output error' /tmp/log
touch /tmp/done; wait $!; use_other
grep -q ' 0 2 1 vda$' /proc/disks";

fn dead(setup: &Setup) -> Result<(), String> {
    let disk = Image::new("dead", 4 << 20)?;
    let other = Image::new("dead-other", 4 << 20)?;
    let flags = [&*disk.flag(""), &other.flag("")];
    let (mut guest, mut qmp) = start_up(setup, "dead", &flags, DEAD)?;
    qmp.throttle_disk(0, 1).map_err(|error| error.to_string())?;
    guest.type_text("\n")?;
    expect_status(&guest.wait(PATIENCE)?, 0)
}
