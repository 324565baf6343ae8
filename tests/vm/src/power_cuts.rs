//! Cuts of the power of a machine's disk (`host/powercut`).
//!
//! A machine runs SQLite with both journals, Redis and writers of files on ext4, on a virtio disk or an NVMe
//! one, or PostgreSQL with eight clients, and the disk's writes are recorded. From the record come images that a cut may leave; each is recovered and judged, and
//! one is mounted by a machine. `SEED=...` chooses other images.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use powercut::machine::{Effort, Oracle, Recording, oracles, postgres};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::userland;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[(
    "what SQLite, Redis and writers of files were promised outlives a power cut",
    |setup| promises_are_kept(setup, &Scene::FILES),
)];

/// The same with a server of many processes.
pub const TESTS_OF_POSTGRES: &[Test] = &[(
    "what PostgreSQL has committed for eight clients outlives a power cut",
    |setup| promises_are_kept(setup, &Scene::POSTGRES),
)];

/// The same on another disk.
pub const TESTS_OF_NVME: &[Test] = &[(
    "what they were promised on an NVMe disk outlives a power cut",
    |setup| {
        let scene = Scene {
            bus: "nvme",
            device: "/dev/nvme0n1",
            ..Scene::FILES
        };
        promises_are_kept(setup, &scene)
    },
)];

const PROGRAM: &str = "tests/harness/power_cut.py";
const MARK_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(300);

/// What runs, and on what disk.
#[derive(Clone, Copy)]
struct Scene {
    bus: &'static str,
    device: &'static str,
    /// Bytes of the image; marks follow it.
    image_bytes: u64,
    /// Makes what the image begins with, in a folder.
    make: fn(&Path) -> Result<(), String>,
    /// Which of the programs.
    programs: &'static str,
    oracle: Oracle,
    /// Rounds of the programs and images, in the short form and in the long one.
    rounds: [u32; 2],
    images: [usize; 2],
    /// Finds something of it in another machine.
    finds: &'static str,
}

impl Scene {
    const FILES: Self = Self {
        bus: "virtio",
        device: "/dev/vda",
        image_bytes: 24 << 20,
        make: |_| Ok(()),
        programs: "",
        oracle: oracles::check,
        rounds: [12, 60],
        images: [150, 1500],
        finds: "test $(ls files | wc -l) -ge 8; tail -n 1 lines | grep -q '^line'
            test \"$(sqlite3 wal.db 'pragma integrity_check')\" = ok",
    };
    const POSTGRES: Self = Self {
        image_bytes: 112 << 20,
        make: postgres::make,
        programs: "postgres",
        oracle: postgres::check,
        rounds: [8, 40],
        images: [6, 80],
        finds: "test -e data/PG_VERSION",
        ..Self::FILES
    };
}

fn promises_are_kept(setup: &Setup, scene: &Scene) -> Result<(), String> {
    let folder = Folder::new(&format!("power-cuts-{}{}", scene.bus, scene.programs))?;
    let (disk, record) = (folder.0.join("disk.img"), folder.0.join("record"));
    let contents = folder.0.join("contents");
    fs::create_dir(&contents)
        .and_then(|()| File::create(&record))
        .map_err(|error| error.to_string())?;
    (scene.make)(&contents)?;
    let before = make(&disk, &contents, scene.image_bytes)?;
    let long = usize::from(setup.is_long());
    let flag = format!("{},bus={}", disk.display(), scene.bus);
    run(setup, scene, &flag, &record, scene.rounds[long])?;
    let recording = Recording::read(before, &record)?;
    let (events, marks) = recording.len();
    let effort = Effort {
        images: scene.images[long],
        fsck_every: if setup.is_long() {
            1
        } else {
            scene.images[0].min(10) / 2
        },
        seed: seed(),
    };
    let tally = recording.judge(&effort, scene.oracle)?;
    println!("     {events} events, {marks} promises: {tally:?}");
    fs::write(&disk, recording.last_image()).map_err(|error| error.to_string())?;
    mounts(setup, scene, &flag)
}

/// What chooses the images.
pub fn seed() -> u64 {
    let named = std::env::var("SEED").ok();
    named.and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// An image with these contents and a place for marks behind it; the bytes of the image alone.
fn make(disk: &Path, contents: &Path, image_bytes: u64) -> Result<Vec<u8>, String> {
    let output = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-b", "4096"])
        .args(["-O", "^resize_inode", "-E", "lazy_itable_init=0", "-d"])
        .args([contents, disk])
        .arg(format!("{}k", image_bytes >> 10))
        .output()
        .map_err(|error| format!("mke2fs: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let bytes = fs::read(disk);
    let longer = File::options().write(true).open(disk);
    let longer = longer.and_then(|disk| disk.set_len(image_bytes + MARK_BYTES));
    let mut bytes = longer.and(bytes).map_err(|error| error.to_string())?;
    bytes.resize(image_bytes as usize, 0);
    Ok(bytes)
}

fn run(setup: &Setup, scene: &Scene, flag: &str, record: &Path, rounds: u32) -> Result<(), String> {
    let disk = format!("{flag},record={}", record.display());
    let program = format!("{PROGRAM}:/power_cut.py");
    let Scene {
        device,
        image_bytes,
        programs,
        ..
    } = scene;
    let script = format!(
        "mount -t ext4 {device} /mnt && \
         python3 /power_cut.py {device} {image_bytes} {rounds} {programs}"
    );
    let mut args = vec!["--net", "none", "--disk", &disk, "--add", &program];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["/bin/bash", "-c", &script]);
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("all is promised") {
        true => Ok(()),
        false => Err(format!("the programs say {}", end.console)),
    }
}

/// Another machine finds the files.
fn mounts(setup: &Setup, scene: &Scene, flag: &str) -> Result<(), String> {
    let Scene { device, finds, .. } = scene;
    let script = format!(
        "set -e; PATH=$PATH:/usr/sbin; mount -t ext4 {device} /mnt; cd /mnt; {finds}
        cd /; umount /mnt; e2fsck -fn {device}"
    );
    let mut args = vec!["--net", "none", "--disk", flag];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["--volume", "/sbin:/sbin:ro", "/bin/bash", "-c", &script]);
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}
