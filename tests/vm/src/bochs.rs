//! Images under Bochs, a PC that forgives less than QEMU: its processor checks what a real one
//! checks, its chipset is another one, and its card has to be asked for its address.
//!
//! Debian's Bochs wants a terminal, which script(1) gives it, and a word to its debugger before
//! it begins. The machine's serial port is a file. Bochs ends with an error when the machine powers off.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch, state_folder};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a raw disk boots under Bochs, where processes come and go",
        processes,
    ),
    (
        "a PC's e1000 that does not know its address reaches Bochs' network",
        pings,
    ),
];

/// The address of the host in the network that Bochs' `vnet` is.
const PEER: &str = "192.168.10.1";
const IP: &str = "192.168.10.15/24,192.168.10.1";

fn processes(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new("tests/programs/process.c"), Link::StaticMusl)?;
    let program = program.display().to_string();
    let said = run(setup, "process", &["--ip", "none", &program])?;
    expect(
        &said,
        &["ok a_thousand_children_come_and_go", "exit status=0"],
    )
}

fn pings(setup: &Setup) -> Result<(), String> {
    let said = run(setup, "ping", &["--ip", IP, "ping", "-c", "3", PEER])?;
    expect(&said, &[" 0% packet loss", "exit status=0"])
}

fn expect(said: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !said.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("no {word:?} in what the machine says: {said}")),
    }
}

/// Builds a disk by the words of `sietch build`, lets Bochs boot it until it powers off, and
/// says what came out of its serial port.
fn run(setup: &Setup, name: &str, words: &[&str]) -> Result<String, String> {
    let folder = state_folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{folder:?}: {error}"))?;
    let disk = folder.join(format!("bochs-{name}.raw"));
    let mut build = sietch();
    build.args([
        "build",
        "--format",
        "raw",
        "--cloud-init",
        "none",
        "--output",
    ]);
    let built = build.arg(&disk).args(words).output();
    let built = built.map_err(|error| error.to_string())?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    let serial = folder.join(format!("bochs-{name}.serial"));
    let mut pc = Guest::of(bochs(setup, &disk, &serial)?)?;
    let ended = pc.wait_until_end(BOOT_PATIENCE);
    let said = fs::read_to_string(&serial).unwrap_or_default();
    match ended {
        Some(_) => Ok(said),
        None => Err(format!("Bochs goes on, and its machine said: {said}")),
    }
}

fn bochs(setup: &Setup, disk: &Path, serial: &Path) -> Result<Command, String> {
    let cpus = if setup.is_single() { 1 } else { 2 };
    let configuration = format!(
        "display_library: term\n\
         cpu: model=corei7_skylake_x, count={cpus}, ips=100000000, reset_on_triple_fault=0\n\
         memory: guest=512, host=512\n\
         romimage: file=/usr/share/bochs/BIOS-bochs-latest\n\
         vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest\n\
         pci: enabled=1, chipset=i440fx, slot1=e1000\n\
         e1000: enabled=1, mac=52:54:00:12:34:56, ethmod=vnet, ethdev=/tmp\n\
         ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14\n\
         ata0-master: type=disk, path={disk:?}, mode=volatile\n\
         boot: disk\n\
         com1: enabled=1, mode=file, dev={serial:?}\n\
         log: {log:?}\n\
         panic: action=fatal\n",
        log = disk.with_extension("log"),
    );
    let configuration_file = disk.with_extension("bochsrc");
    let start = disk.with_extension("start");
    let _ = fs::remove_file(serial);
    fs::write(&configuration_file, configuration)
        .and_then(|()| fs::write(&start, "continue\n"))
        .map_err(|error| format!("{start:?}: {error}"))?;
    let line = format!("bochs -q -f {configuration_file:?} -rc {start:?}");
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "vt100");
    Ok(command)
}
