//! Machines behind an IOMMU: what is told to a device works, and what it reaches for by itself
//! is refused and named. `docs/iommu.md` tells the theory.
//!
//! The device that errs is QEMU's `edu`, which copies between its own memory and any address.
//! The host drives it from outside through QEMU's test protocol, so the machine knows
//! nothing of it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, End, Guest, Setup, state_folder, write_file};
use crate::redis;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    ("Redis serves through virtio-net behind an IOMMU", |setup| {
        serves(setup, "virtio")
    }),
    ("Redis serves through an e1000 behind an IOMMU", |setup| {
        serves(setup, "e1000")
    }),
    ("Redis serves through an 82576 behind an IOMMU", |setup| {
        serves(setup, "igb")
    }),
    ("a volume is read and written behind an IOMMU", volume),
    (
        "a device that reaches for memory by itself gets it, but not behind an IOMMU, which names it",
        stray,
    ),
];

/// What the command says of a refused request.
const REFUSED: &str = "The IOMMU refused";

fn serves(setup: &Setup, nic: &str) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let setup = setup.with_nic(nic);
    let (guest, address) = redis::start(&setup, &["--iommu"], &["--save", ""])?;
    redis::benchmark(&guest, address, &["-n", "5000", "-t", "set,get"])?;
    // Long values make the pool of packet buffers grow while the card is in use.
    let long = ["-n", "300", "-d", "65536", "-t", "set,get"];
    redis::benchmark(&guest, address, &long)?;
    let end = guest.stop()?;
    expect_status(&end, 0)?;
    expect_nothing_refused(&end)
}

fn expect_nothing_refused(end: &End) -> Result<(), String> {
    match end.console.contains(REFUSED) {
        true => Err(format!("a driver's request was refused: {}", end.console)),
        false => Ok(()),
    }
}

fn volume(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    write_file("shared/in", "from the host\n")?;
    let folder = state_folder().join("shared");
    let mount = format!("{}:/shared", folder.display());
    let script = "cat /shared/in; cat /shared/in > /shared/out; cat /proc/iommu";
    let flags = ["--iommu", "--net", "none", "-v", &mount];
    let program = ["busybox", "sh", "-c", script];
    let end = setup.start(&[&flags[..], &program].concat())?;
    let end = end.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    expect_nothing_refused(&end)?;
    let out = fs::read_to_string(folder.join("out"));
    let out = out.map_err(|error| error.to_string())?;
    let is_driven = end.console.contains(" driven refused 0");
    match end.console.contains("from the host") && out == "from the host\n" && is_driven {
        true => Ok(()),
        false => Err(format!("the machine said {}", end.console)),
    }
}

/// Where the device sits, and how tools call it.
const SLOT: u32 = 0x1e;
const NAME: &str = "00:1e.0";
/// A page that the kernel never allocates.
const TARGET: u64 = 0xc000;
const PATTERN: [u8; 16] = [0xa5; 16];
/// How often it errs: more often than is logged at once.
const ERRORS: usize = 12;
const LINES_MAX: usize = 8;

fn stray(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let (end, left) = with_stray_device(setup, &[])?;
    expect_status(&end, 0)?;
    if left == PATTERN || end.console.contains(REFUSED) {
        return Err("without an IOMMU the device does not reach memory".into());
    }
    let (end, left) = with_stray_device(setup, &["--iommu"])?;
    expect_status(&end, 0)?;
    if left != PATTERN {
        return Err(format!("the device wrote to memory: {left:?}"));
    }
    let sentence = format!("{REFUSED} the device {NAME} a write to memory at {TARGET:#x}");
    let lines = end.console.matches(&sentence).count();
    if !(1..=LINES_MAX).contains(&lines) {
        return Err(format!("it was named {lines} times: {}", end.console));
    }
    expect_counted(&end.console)
}

/// Its requests are counted, and nobody else's were refused.
fn expect_counted(console: &str) -> Result<(), String> {
    let own = format!("{NAME} unit 0 undriven refused {ERRORS} last {TARGET:#x}");
    let refused = console.lines().filter(|line| line.contains(" refused "));
    let others = refused.filter(|line| line.contains(" unit ") && !line.contains(NAME));
    let others: Vec<&str> = others.map(str::trim_end).collect();
    let are_quiet = others.iter().all(|line| line.ends_with(" refused 0"));
    match console.contains(&own) && !others.is_empty() && are_quiet {
        true => Ok(()),
        false => Err(format!("/proc/iommu shows {console}")),
    }
}

/// A machine in which the device errs: how it ended, and what is in memory then.
fn with_stray_device(setup: &Setup, flags: &[&str]) -> Result<(End, Vec<u8>), String> {
    let socket = state_folder().join("qtest.sock");
    let script = "echo up; read go; cat /proc/iommu; exit 0";
    let program = ["--net", "none", "busybox", "sh", "-c", script];
    let mut command = setup.command(&[flags, &program].concat());
    command.env("SIETCH_QEMU", qemu_with_device(&socket)?);
    let mut guest = Guest::of(command)?;
    guest.expect("up", BOOT_PATIENCE)?;
    let mut device = Edu::find(Qtest::connect(&socket)?)?;
    device.qtest.write(TARGET, &PATTERN)?;
    for _ in 0..ERRORS {
        device.write_memory(TARGET, PATTERN.len())?;
    }
    let left = device.qtest.read(TARGET, PATTERN.len())?;
    guest.type_text("go\n")?;
    Ok((guest.wait(BOOT_PATIENCE)?, left))
}

/// QEMU with the device and the test protocol besides what it is asked for.
fn qemu_with_device(socket: &Path) -> Result<PathBuf, String> {
    let script = format!(
        "#!/bin/sh\nexec qemu-system-x86_64 \"$@\" \
         -device edu,addr={SLOT:x},dma_mask=0xffffffffffffffff \
         -qtest unix:{},server=on,wait=off -qtest-log none\n",
        socket.display()
    );
    let path = PathBuf::from(write_file("qemu-with-edu", script)?);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, executable).map_err(|error| error.to_string())?;
    Ok(path)
}

/// QEMU's test protocol (docs/devel/testing/qtest): a line there, a line back.
struct Qtest(BufReader<UnixStream>);

impl Qtest {
    fn connect(socket: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(socket);
        let stream = stream.map_err(|error| format!("{}: {error}", socket.display()))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// What comes behind "OK".
    fn ask(&mut self, command: &str) -> Result<String, String> {
        let mut line = String::new();
        let sent = writeln!(self.0.get_mut(), "{command}");
        let asked = sent.and_then(|()| self.0.read_line(&mut line));
        asked.map_err(|error| format!("{command}: {error}"))?;
        let answer = line.trim().strip_prefix("OK");
        let answer = answer.ok_or_else(|| format!("{command}: {line}"))?;
        Ok(answer.trim().trim_start_matches("0x").into())
    }

    fn number(&mut self, command: &str) -> Result<u64, String> {
        let digits = self.ask(command)?;
        u64::from_str_radix(&digits, 16).map_err(|error| format!("{command}: {error}"))
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.ask(&format!("write {at:#x} {:#x} 0x{digits}", bytes.len()))
            .map(drop)
    }

    fn read(&mut self, at: u64, len: usize) -> Result<Vec<u8>, String> {
        let digits = self.ask(&format!("read {at:#x} {len:#x}"))?;
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or(""), 16);
        pairs
            .map(|pair| byte(pair).map_err(|error| error.to_string()))
            .collect()
    }
}

/// The device (docs/specs/edu).
struct Edu {
    qtest: Qtest,
    registers: u64,
}

/// Its memory on its own side, and registers.
const OWN_MEMORY: u64 = 0x40000;
const DMA_FROM: u64 = 0x80;
const DMA_TO: u64 = 0x88;
const DMA_BYTES: u64 = 0x90;
const DMA_COMMAND: u64 = 0x98;
/// Begin, and write to the machine's memory; the first goes off when it is done.
const BEGIN: u64 = 1;
const TO_MACHINE: u64 = 2;
/// In the configuration space.
const COMMAND: u32 = 0x04;
const BAR0: u32 = 0x10;
/// The device may answer at its registers, and reach memory.
const MEMORY_AND_MASTER: u64 = 0b110;
/// For a transfer, which takes 100 ms.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

impl Edu {
    fn find(mut qtest: Qtest) -> Result<Self, String> {
        let mut select = |register: u32| {
            let place = 0x8000_0000 | SLOT << 11 | register;
            qtest.ask(&format!("outl 0xcf8 {place:#x}"))?;
            qtest.number("inl 0xcfc")
        };
        let registers = select(BAR0)? & !0xf;
        let command = select(COMMAND)? & 0xffff | MEMORY_AND_MASTER;
        qtest.ask(&format!("outl 0xcfc {command:#x}"))?;
        Ok(Self { qtest, registers })
    }

    fn set(&mut self, register: u64, value: u64) -> Result<(), String> {
        let at = self.registers + register;
        self.qtest
            .ask(&format!("writeq {at:#x} {value:#x}"))
            .map(drop)
    }

    /// Has it write what is in its own memory, and waits until it takes that for done.
    fn write_memory(&mut self, to: u64, bytes: usize) -> Result<(), String> {
        self.set(DMA_FROM, OWN_MEMORY)?;
        self.set(DMA_TO, to)?;
        self.set(DMA_BYTES, bytes as u64)?;
        self.set(DMA_COMMAND, BEGIN | TO_MACHINE)?;
        let command = format!("readq {:#x}", self.registers + DMA_COMMAND);
        let deadline = Instant::now() + PATIENCE;
        while self.qtest.number(&command)? & BEGIN != 0 {
            if Instant::now() > deadline {
                return Err("the device does not end its transfer".into());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}
