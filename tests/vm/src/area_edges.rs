//! Rings to areas where a request becomes several: extents that lie apart, blocks of 4096 bytes. And disks that fail under them.

use std::fs;
use std::path::Path;

use crate::Test;
use crate::build;
use crate::disks::{self, Image};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::volume::Folder;

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[
    (
        "a ring's requests cross the extents of its area, on blocks of 512 and of 4096 bytes",
        |setup| {
            extents(setup, "virtio", ",block=4096")?;
            extents(setup, "nvme", "")
        },
    ),
    (
        "a read or a write that fails under a ring is told to its request and to no other",
        |setup| {
            failing(setup, "virtio", "vda")?;
            failing(setup, "nvme", "nvme0n1")
        },
    ),
];

const CATALOGUE: usize = 256 << 10;
const KIB: usize = 1 << 10;

fn name(bus: &str) -> &str {
    match bus {
        "nvme" => "nvme0n1",
        _ => "vda",
    }
}

/// What is between two pieces of an area keeps them apart.
fn prepare(disk: &str) -> String {
    format!(
        "set -e; say() {{ echo \"$*\" > /dev/vsa/control; }}
say format {disk}; say create {disk} 0 262144 split; say create {disk} 0 65536 left
say resize 278528 split; say create {disk} 0 65536 right; say resize 540672 split
for name in left right; do head -c 65536 /dev/zero | tr '\\0' n > /dev/vsa/$name; sync /dev/vsa/$name; done"
    )
}

fn extents(setup: &Setup, bus: &str, more: &str) -> Result<(), String> {
    let disk = Image::new(&format!("edges-{bus}"), 4 << 20)?;
    let flag = disk.flag(&format!(",bus={bus}{more}"));
    disks::passes(setup, &[&flag], &prepare(name(bus)))?;
    run(setup, &[&flag], "extents")?;
    // Its extents, and what lies between.
    let pieces = [
        (256, b's'),
        (64, b'n'),
        (16, b's'),
        (64, b'n'),
        (256, b's'),
        (64, 0),
    ];
    let mut at = CATALOGUE;
    for (kib, byte) in pieces {
        disk.expect_at(at as u64, &vec![byte; kib * KIB])?;
        at += kib * KIB;
    }
    Ok(())
}

fn run(setup: &Setup, flags: &[&str], what: &str) -> Result<(), String> {
    let program = build::c(Path::new("tests/programs/scenes/vsa_edges.c"))?;
    let add = format!("{}:/vsa_edges", program.display());
    let flags = [&["--add", &add], flags].concat();
    let guest = disks::start(setup, &flags, &format!("/vsa_edges {what}"))?;
    expect_status(&guest.wait(BOOT_PATIENCE)?, 0)
}

/// A rule of QEMU's `blkdebug`: a request that touches this block of the first area fails, once.
fn fails(kind: &str, block: usize) -> String {
    let sector = CATALOGUE / 512 + block;
    format!(
        "[inject-error]\nevent = \"{kind}_aio\"\niotype = \"{kind}\"\nsector = \"{sector}\"\nonce = \"on\"\nerrno = \"5\"\n"
    )
}

fn failing(setup: &Setup, bus: &str, name: &str) -> Result<(), String> {
    let disk = Image::new(&format!("edges-failing-{bus}"), 4 << 20)?;
    let areas = format!(
        "set -e; echo format {name} > /dev/vsa/control
for area in first second; do echo create {name} 0 1048576 $area > /dev/vsa/control; done"
    );
    disks::passes(setup, &[&disk.flag(&format!(",bus={bus}"))], &areas)?;
    let folder = Folder::new(&format!("edges-rules-{bus}"))?;
    let rules = folder.0.join("rules");
    let faults = [fails("write", 40), fails("read", 80), fails("write", 210)];
    fs::write(&rules, faults.concat()).map_err(|error| error.to_string())?;
    let flag = disk.flag(&format!(",bus={bus},faults={}", rules.display()));
    run(setup, &[&flag], "failing")
}
