//! Cuts of the power of a machine's disk (`host/powercut`).
//!
//! A machine runs SQLite with both journals, Redis and writers of files on ext4, on a virtio disk or an NVMe
//! one, and the disk's writes are recorded. From the record come images that a cut may leave; each is recovered and judged, and
//! one is mounted by a machine. `SEED=...` chooses other images.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use powercut::machine::{Effort, Recording};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::userland;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[(
    "what SQLite, Redis and writers of files were promised outlives a power cut",
    |setup| promises_are_kept(setup, "virtio", "/dev/vda"),
)];

/// The same on another disk.
pub const TESTS_OF_NVME: &[Test] = &[(
    "what they were promised on an NVMe disk outlives a power cut",
    |setup| promises_are_kept(setup, "nvme", "/dev/nvme0n1"),
)];

const PROGRAM: &str = "tests/harness/power_cut.py";
/// Bytes of the image; marks follow it.
const IMAGE_BYTES: u64 = 24 << 20;
const MARK_BYTES: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(300);

fn promises_are_kept(setup: &Setup, bus: &str, device: &str) -> Result<(), String> {
    let folder = Folder::new(&format!("power-cuts-{bus}"))?;
    let (disk, record) = (folder.0.join("disk.img"), folder.0.join("record"));
    let before = make(&disk)?;
    File::create(&record).map_err(|error| error.to_string())?;
    let (rounds, images) = match setup.is_long() {
        true => ("60", 1500),
        false => ("12", 150),
    };
    let flag = format!("{},bus={bus}", disk.display());
    run(setup, &flag, device, &record, rounds)?;
    let recording = Recording::read(before, &record)?;
    let (events, marks) = recording.len();
    let effort = Effort {
        images,
        fsck_every: if setup.is_long() { 1 } else { 10 },
        seed: seed(),
    };
    let tally = recording.judge(&effort)?;
    println!("     {events} events, {marks} promises: {tally:?}");
    fs::write(&disk, recording.last_image()).map_err(|error| error.to_string())?;
    mounts(setup, &flag, device)
}

/// What chooses the images.
pub fn seed() -> u64 {
    let named = std::env::var("SEED").ok();
    named.and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// An image with a place for marks behind it; the bytes of the image alone.
fn make(disk: &Path) -> Result<Vec<u8>, String> {
    let output = Command::new("mke2fs")
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-O",
            "^resize_inode",
        ])
        .args(["-E", "lazy_itable_init=0"])
        .arg(disk)
        .arg(format!("{}k", IMAGE_BYTES >> 10))
        .output()
        .map_err(|error| format!("mke2fs: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let bytes = fs::read(disk);
    let longer = File::options().write(true).open(disk);
    let longer = longer.and_then(|disk| disk.set_len(IMAGE_BYTES + MARK_BYTES));
    let mut bytes = longer.and(bytes).map_err(|error| error.to_string())?;
    bytes.resize(IMAGE_BYTES as usize, 0);
    Ok(bytes)
}

fn run(setup: &Setup, flag: &str, device: &str, record: &Path, rounds: &str) -> Result<(), String> {
    let disk = format!("{flag},record={}", record.display());
    let program = format!("{PROGRAM}:/power_cut.py");
    let script = format!(
        "mount -t ext4 {device} /mnt && python3 /power_cut.py {device} {IMAGE_BYTES} {rounds}"
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
fn mounts(setup: &Setup, flag: &str, device: &str) -> Result<(), String> {
    let script = format!(
        "set -e; PATH=$PATH:/usr/sbin; mount -t ext4 {device} /mnt; cd /mnt
        test $(ls files | wc -l) -ge 8; tail -n 1 lines | grep -q '^line'
        test \"$(sqlite3 wal.db 'pragma integrity_check')\" = ok
        cd /; umount /mnt; e2fsck -fn {device}"
    );
    let mut args = vec!["--net", "none", "--disk", flag];
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["--volume", "/sbin:/sbin:ro", "/bin/bash", "-c", &script]);
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}
