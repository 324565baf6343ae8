//! Cuts of the power of a disk with a log on it (`docs/vsa.md`, `host/powercut`).
//!
//! In a machine a program appends lines and Redis its file, both by `libsietch.so`, and the disk's writes are recorded. Images
//! that a cut may leave are opened by the library on this host. `SEED=...` chooses other images.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use powercut::machine::oracles::{check_aof, last};
use powercut::machine::{Effort, Recording};
use sietch_io::storage::{BUFFER_BYTES, DirectFile, LogFiles};

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::power_cuts::seed;
use crate::status::expect_status;
use crate::userland;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[(
    "what programs were promised of files on a log outlives a power cut",
    promises_are_kept,
)];

const PROGRAM: &str = "tests/harness/power_cut_log.py";
/// The partition of the log begins there; marks are behind it.
const LOG_START: u64 = 1 << 20;
const LOG_BYTES: u64 = 2 << 20;
const MARKS: u64 = LOG_START + LOG_BYTES;
const DISK_BYTES: u64 = MARKS + (1 << 20);
const PATIENCE: Duration = Duration::from_secs(300);
/// Lines of a file.
const LINES: u64 = 20;

fn promises_are_kept(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("logged-cuts")?;
    let (disk, record) = (folder.0.join("disk.img"), folder.0.join("record"));
    let before = make(&disk)?;
    fs::File::create(&record).map_err(|error| error.to_string())?;
    let (rounds, images) = match setup.is_long() {
        true => ("40", 3000),
        false => ("8", 300),
    };
    run(setup, &disk, &record, rounds)?;
    let recording = Recording::read(before, &record)?;
    let (events, marks) = recording.len();
    println!("     {events} events, {marks} promises, {images} images");
    let effort = Effort {
        images,
        fsck_every: images,
        seed: seed(),
    };
    let image = folder.0.join("image");
    recording.judge_by(&effort, |medium, marks| {
        let log = medium.flatten()[LOG_START as usize..MARKS as usize].to_vec();
        fs::write(&image, log).map_err(|error| error.to_string())?;
        judge(&image, marks)
    })
}

/// A disk with a partition for the log; its bytes without the place for marks.
fn make(disk: &Path) -> Result<Vec<u8>, String> {
    let text = |error: std::io::Error| error.to_string();
    let file = fs::File::create(disk).map_err(text)?;
    file.set_len(DISK_BYTES).map_err(text)?;
    let mut sfdisk = Command::new("/usr/sbin/sfdisk")
        .args(["-q", "--label", "dos"])
        .arg(disk)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("sfdisk: {error}"))?;
    let partition = format!("start={},size={}\n", LOG_START / 512, LOG_BYTES / 512);
    if let Some(mut stdin) = sfdisk.stdin.take() {
        stdin.write_all(partition.as_bytes()).map_err(text)?;
    }
    if !sfdisk.wait().map_err(text)?.success() {
        return Err("sfdisk makes no partition".into());
    }
    let mut bytes = fs::read(disk).map_err(text)?;
    bytes.truncate(MARKS as usize);
    Ok(bytes)
}

fn run(setup: &Setup, disk: &Path, record: &Path, rounds: &str) -> Result<(), String> {
    let disk = format!("{},record={}", disk.display(), record.display());
    let program = format!("{PROGRAM}:/power_cut_log.py");
    let library = format!("{}:/libsietch.so", build::library("sietch")?.display());
    let script = format!(
        "mkdir /log; export SIETCH_LOG='/log/*/*.incr.aof=/dev/vda1' LD_PRELOAD=/libsietch.so; \
         exec python3 /power_cut_log.py {MARKS} {rounds}"
    );
    let mut args = vec!["--net", "none", "--disk", &disk, "--add", &program];
    args.extend(["--add", &library]);
    args.extend_from_slice(userland::FOLDERS);
    args.extend_from_slice(&["/bin/bash", "-c", &script]);
    let end = setup.start(&args)?.wait(PATIENCE)?;
    expect_status(&end, 0)?;
    match end.console.contains("all is promised") && !end.console.contains("libsietch:") {
        true => Ok(()),
        false => Err(format!("the programs say {}", end.console)),
    }
}

/// Opens what is left of the log, and looks for all that was promised.
fn judge(image: &Path, marks: &[&str]) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let disk = DirectFile::open(image, BUFFER_BYTES).map_err(text)?;
    let mut files = LogFiles::open(Box::new(disk)).map_err(text)?;
    let names: Vec<Vec<u8>> = files.names().map(|(name, _)| name.to_vec()).collect();
    let (promised, renamed) = (last(marks, "line"), last(marks, "last"));
    let mut next = None;
    for name in &names {
        let bytes = read(&mut files, name)?;
        match place_of(name) {
            Some(Name::Place(place)) => {
                next = next.max(Some(check_lines(&bytes, place)?));
                if renamed.is_some_and(|renamed| place <= renamed) {
                    return Err(format!("{place} is there under its old name"));
                }
            }
            Some(Name::Last) => check_last(&bytes, renamed)?,
            None => check_aof(&bytes, last(marks, "redis"))?,
        }
    }
    let has_last = names.iter().any(|name| place_of(name) == Some(Name::Last));
    let has_aof = names.iter().any(|name| place_of(name).is_none());
    if renamed.is_some() && !has_last || last(marks, "redis").is_some() && !has_aof {
        return Err(format!("a file is lost of {} that are there", names.len()));
    }
    match promised.is_none_or(|promised| next.is_some_and(|next| next > promised)) {
        true => Ok(()),
        false => Err(format!(
            "lines end before {next:?}, {promised:?} was promised"
        )),
    }
}

#[derive(PartialEq)]
enum Name {
    Place(u64),
    Last,
}

/// Which file of lines a name is of; `None` for Redis'.
fn place_of(name: &[u8]) -> Option<Name> {
    let name = str::from_utf8(name).ok()?.strip_prefix("/log/lines/")?;
    match name.strip_suffix(".incr.aof")? {
        "last" => Some(Name::Last),
        place => place.parse().ok().map(Name::Place),
    }
}

fn read(files: &mut LogFiles, name: &[u8]) -> Result<Vec<u8>, String> {
    let file = files.find(name).ok_or("a name without a file")?;
    let mut bytes = vec![0; files.size(file).unwrap_or(0) as usize];
    let read = files.read(file, 0, &mut bytes);
    match read.map_err(|error| error.to_string())? == bytes.len() {
        true => Ok(bytes),
        false => Err("a file is shorter than it says".into()),
    }
}

fn line(number: u64) -> Vec<u8> {
    let repeated = 1 + number as usize % 7;
    format!("line {number} of many\n")
        .repeat(repeated)
        .into_bytes()
}

/// Whole lines from the place's first on, and no others; the number of the next.
fn check_lines(bytes: &[u8], place: u64) -> Result<u64, String> {
    let mut rest = bytes;
    for number in place * LINES.. {
        match rest.strip_prefix(&line(number)[..]) {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return Ok(number),
            None => {
                return Err(format!(
                    "{place} has something else where line {number} should be"
                ));
            }
        }
    }
    Ok(0)
}

/// A whole file, not an older one than was promised.
fn check_last(bytes: &[u8], renamed: Option<u64>) -> Result<(), String> {
    let first = String::from_utf8_lossy(bytes);
    let first = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let place = first.unwrap_or(0) / LINES;
    let end = check_lines(bytes, place)?;
    match end == (place + 1) * LINES && renamed.is_none_or(|renamed| place >= renamed) {
        true => Ok(()),
        false => Err(format!(
            "`last` is of {place} up to {end}, {renamed:?} was promised"
        )),
    }
}
