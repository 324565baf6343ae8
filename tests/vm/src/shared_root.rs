//! Machines of one image (`sietch run IMAGE`) read one disk, through the host's cache.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Test;
use crate::debian_image::{self, Contents};
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch};
use crate::lifecycle::said;
use crate::volume::Folder;

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[(
    "ten machines of one image read one disk, which is in the host's memory once",
    is_shared,
)];

const MACHINES: usize = 10;
const FILE: &str = "/srv/read";
const FILE_BYTES: usize = 24 << 20;
/// Each machine reads all of the file, and says what it has found.
const CONFIG: &str = r#"{"Entrypoint": ["/bin/busybox", "sh", "-c",
    "echo it has $(busybox md5sum /srv/read); while :; do busybox sleep 60; done"]}"#;
/// What machines may have read of the disk that the first one had not yet: the host reads ahead in runs.
const SLACK_BYTES: u64 = 1 << 20;

fn is_shared(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("image-shared")?;
    let contents = Contents {
        packages: &["busybox-static"],
        files: &[(FILE, &text())],
        config: CONFIG,
        ..Contents::default()
    };
    let image = debian_image::make(&folder.0.join("shared"), &contents)?;
    let first = setup.start(&["--net", "none", &image])?;
    let found = words_of(&first)?;
    let disk = disk_of(&first)?;
    let with_one = resident(&disk)?;
    let others = start_others(setup, &image, (&found, &disk))?;
    let with_all = resident(&disk)?;
    drop((first, others));
    let whole = FILE_BYTES as u64;
    if with_one < whole || with_all > with_one + SLACK_BYTES {
        return Err(format!(
            "each has read {whole} bytes, of which {with_one} are in the host's memory with one machine and {with_all} with all"
        ));
    }
    said(sietch().args(["rmi", "shared"]), 0).map(drop)
}

/// Machines that find the same, on the same disk.
fn start_others(
    setup: &Setup,
    image: &str,
    (found, disk): (&str, &Path),
) -> Result<Vec<Guest>, String> {
    let others = (1..MACHINES).map(|_| setup.start(&["--net", "none", image]));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    for other in &others {
        other.expect(found, BOOT_PATIENCE)?;
        let its = disk_of(other)?;
        if its != disk {
            return Err(format!("the first has {disk:?}, and another one {its:?}"));
        }
    }
    Ok(others)
}

/// No two blocks are alike.
fn text() -> String {
    let mut text = String::with_capacity(FILE_BYTES);
    while text.len() < FILE_BYTES {
        // A string takes all that is written.
        let _ = writeln!(text, "{:015}", text.len());
    }
    text
}

/// What the machine says of the file.
fn words_of(guest: &Guest) -> Result<String, String> {
    guest.expect(FILE, BOOT_PATIENCE)?;
    let console = guest.console();
    let words = console.lines().find(|line| line.contains(FILE));
    Ok(words.unwrap_or_default().trim().to_string())
}

/// The file of the image's root that the machine has open.
fn disk_of(guest: &Guest) -> Result<PathBuf, String> {
    let qemu = guest.qemu().ok_or("there is no QEMU")?;
    let open = fs::read_dir(format!("/proc/{qemu}/fd")).map_err(|error| error.to_string())?;
    let mut targets = open.flatten().flat_map(|file| fs::read_link(file.path()));
    let disk = targets.find(|target| target.extension().is_some_and(|it| it == "ext4"));
    disk.ok_or_else(|| guest.explain("has no root of an image open"))
}

/// Bytes of a file that are in the host's memory.
fn resident(file: &Path) -> Result<u64, String> {
    let mut fincore = Command::new("fincore");
    fincore.args(["-b", "-n", "-o", "RES"]).arg(file);
    let said = said(&mut fincore, 0)?;
    said.trim()
        .parse()
        .map_err(|_| format!("fincore says {said:?}"))
}
