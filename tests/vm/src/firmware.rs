//! Images that a PC boots by itself (`sietch build --format`), from either firmware, and the
//! ways to end such a PC. QEMU is the PC; nothing is told to it but where the image is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch, state_folder};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "an ISO boots by BIOS as a CD, restarts, and powers off",
        |setup| restarts_and_powers_off(setup, "iso", Firmware::Bios, CD),
    ),
    (
        "an ISO boots by UEFI as a disk, restarts, and powers off",
        |setup| restarts_and_powers_off(setup, "iso", Firmware::Uefi, DISK),
    ),
    (
        "a raw disk boots by BIOS, restarts, and powers off",
        |setup| restarts_and_powers_off(setup, "raw", Firmware::Bios, DISK),
    ),
    (
        "a raw disk boots by UEFI, restarts, and powers off",
        |setup| restarts_and_powers_off(setup, "raw", Firmware::Uefi, DISK),
    ),
    ("a qcow2 disk boots by BIOS", |setup| {
        powers_off(boot(setup, &image("qcow2")?, Firmware::Bios, QCOW2)?)
    }),
    ("a VHD of fixed size boots by BIOS", |setup| {
        powers_off(boot(setup, &image("vhd")?, Firmware::Bios, VHD)?)
    }),
    ("a PC that halts stays on and does nothing", halts),
];

const PROGRAM: &str = "tests/harness/ends.c";
const UP: &str = "the machine is up";
/// Debian's OVMF, code and variables in one.
const OVMF: &str = "/usr/share/ovmf/OVMF.fd";
const CD: &str = "format=raw,media=cdrom";
const DISK: &str = "format=raw,media=disk";
/// QEMU's names of the formats that clouds want.
const QCOW2: &str = "format=qcow2,media=disk";
const VHD: &str = "format=vpc,media=disk";
/// For a power-off.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// How long a machine that halted is looked at.
const LOOK: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Firmware {
    Bios,
    Uefi,
}

fn restarts_and_powers_off(
    setup: &Setup,
    format: &str,
    firmware: Firmware,
    medium: &str,
) -> Result<(), String> {
    let mut pc = boot(setup, &image(format)?, firmware, medium)?;
    pc.type_text("restart\n")?;
    expect_up(&pc, 2)?;
    powers_off(pc)
}

fn powers_off(mut pc: Guest) -> Result<(), String> {
    pc.type_text("power off\n")?;
    match pc.wait(END_PATIENCE)?.status {
        0 => Ok(()),
        status => Err(format!("QEMU ended with {status}")),
    }
}

fn halts(setup: &Setup) -> Result<(), String> {
    let mut pc = boot(setup, &image("iso")?, Firmware::Bios, CD)?;
    let said = pc.console().len();
    pc.type_text("halt\n")?;
    if pc.wait_until_end(LOOK).is_some() {
        return Err(pc.explain("did not stay on"));
    }
    let console = pc.console();
    match console.get(said..) {
        Some(more) if !more.contains("did not end") && console.matches(UP).count() == 1 => Ok(()),
        _ => Err(pc.explain("did not halt")),
    }
}

/// Builds the image of [`PROGRAM`] in a format.
fn image(format: &str) -> Result<PathBuf, String> {
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let folder = state_folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{folder:?}: {error}"))?;
    let image = folder.join(format!("ends.{format}"));
    let mut command = sietch();
    command.args(["build", "--format", format, "--ip", "none"]);
    command.args(["--cloud-init", "none", "--output"]);
    let output = command.arg(&image).arg(program).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(image),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Switches a PC on whose only medium is the image, and waits until its program runs.
fn boot(setup: &Setup, image: &Path, firmware: Firmware, medium: &str) -> Result<Guest, String> {
    let mut qemu = Command::new("qemu-system-x86_64");
    let cpus = if setup.is_single() { "1" } else { "2" };
    qemu.args([
        "-nodefaults",
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-machine",
        "q35",
    ]);
    qemu.args([
        "-smp", cpus, "-m", "512", "-display", "none", "-serial", "stdio",
    ]);
    let drive = format!("file={},{medium}", image.display());
    qemu.args(["-drive", &drive]);
    if firmware == Firmware::Uefi {
        qemu.args(["-bios", OVMF]);
    }
    let pc = Guest::of(qemu)?;
    expect_up(&pc, 1)?;
    Ok(pc)
}

/// Waits until the program has said so often that it runs.
fn expect_up(pc: &Guest, times: usize) -> Result<(), String> {
    let deadline = Instant::now() + BOOT_PATIENCE;
    while pc.console().matches(UP).count() < times {
        if Instant::now() > deadline {
            return Err(pc.explain(&format!("came up fewer than {times} times")));
        }
        thread::sleep(POLL);
    }
    Ok(())
}
