//! Devices that programs drive: C programs take QEMU's `edu` through /dev/vfio, behind an IOMMU.
//! `docs/vfio.md` tells the theory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::{Guest, Setup, write_file};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a program drives a device through /dev/vfio, and the IOMMU confines it",
        |setup| checks(setup, "vfio_device", &["--iommu"]),
    ),
    (
        "requests to /dev/vfio that make no sense are refused as on Linux",
        |setup| checks(setup, "vfio_edges", &["--iommu", "--memory", "1G"]),
    ),
    (
        "of a program that drives a device nothing is left, however it ends",
        |setup| checks(setup, "vfio_end", &["--iommu"]),
    ),
    (
        "a device is taken from its program at any moment, and does nothing for it any more",
        |setup| checks(setup, "vfio_revoked", &["--iommu"]),
    ),
    (
        "a virtual function is found, interrupts by its table and is reset, through /dev/vfio",
        |setup| {
            let flags = ["--iommu", "--kernel-option", "igb.max_vfs=2"];
            checks(&setup.with_nic("igb"), "vfio_card", &flags)
        },
    ),
    (
        "without an IOMMU devices are for root, if the kernel was told so",
        |setup| {
            let option = "vfio.enable_unsafe_noiommu_mode=1";
            checks(setup, "vfio_noiommu", &["--kernel-option", option])
        },
    ),
    (
        "no device is offered to programs without an IOMMU, or while a driver has it",
        offers,
    ),
];

/// A device's transfer takes 100 ms, and there are hundreds.
const PATIENCE: Duration = Duration::from_secs(600);
/// Where the device sits.
const SLOT: u32 = 0x1e;
/// Where the card sits.
const CARD: &str = "00:02.0";

/// Runs a program of checks in a machine that has the device.
fn checks(setup: &Setup, name: &str, flags: &[&str]) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let program = build::c(Path::new(&format!("tests/programs/{name}.c")))?;
    let guest = format!("/tests/{name}");
    let add = format!("{}:{guest}", program.display());
    let args = ["--add", &add, "busybox", "sh", "-c", &guest];
    let console = run(setup, &[flags, &args].concat())?;
    let lines = console.lines().map(str::trim);
    let failed: Vec<&str> = lines.filter(|line| line.starts_with("not ok ")).collect();
    match failed.is_empty() && console.contains("\nok ") && !console.contains("kept for good") {
        true => Ok(()),
        false => Err(format!("{name}: {failed:?} of {console}")),
    }
}

/// What the console of a machine with the device shows.
fn run(setup: &Setup, args: &[&str]) -> Result<String, String> {
    let mut command = setup.command(args);
    command.env("SIETCH_QEMU", qemu_with_device()?);
    let guest = Guest::of(command)?;
    Ok(guest.wait(PATIENCE)?.console)
}

/// QEMU with the device besides what it is asked for.
fn qemu_with_device() -> Result<PathBuf, String> {
    let script = format!(
        "#!/bin/sh\nexec qemu-system-x86_64 \"$@\" \
         -device edu,addr={SLOT:x},dma_mask=0xffffffffffffffff\n"
    );
    let path = PathBuf::from(write_file("qemu-with-edu-alone", script)?);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, executable).map_err(|error| error.to_string())?;
    Ok(path)
}

fn offers(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let script = "ls /dev/vfio | tr '\\n' ' '; echo all; cat /proc/iommu";
    let shown = |flags: &[&str]| {
        let args = ["busybox", "sh", "-c", script];
        let setup = setup.with_nic("e1000");
        run(&setup, &[flags, &args].concat())
    };
    let count = |console: &str| {
        let line = console.lines().find(|line| line.contains("all"));
        let words = line.unwrap_or("").split_whitespace();
        words.filter(|word| word.parse::<u32>().is_ok()).count()
    };
    let (none, driven) = (shown(&[])?, shown(&["--iommu"])?);
    let option = format!("vfio=00:01.1,{CARD}");
    let left = shown(&["--iommu", "--kernel-option", &option])?;
    let is_undriven = left.contains(&format!("{CARD} unit 0 undriven"));
    match (count(&none), count(&driven), count(&left)) {
        (0, some, more) if some > 0 && more == some + 1 && is_undriven => Ok(()),
        counts => Err(format!("{counts:?} groups: {none}{driven}{left}")),
    }
}
