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
    (
        "a card whose ring is moved under it is refused behind an IOMMU, and nobody else is",
        moved_ring,
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
/// The same of the card.
const CARD_SLOT: u32 = 2;
const CARD: &str = "00:02.0";
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
    let (end, left) = with_stray_device(setup, &[], "")?;
    expect_status(&end, 0)?;
    if left == PATTERN || end.console.contains(REFUSED) {
        return Err("without an IOMMU the device does not reach memory".into());
    }
    // The last request is counted a little after it was made.
    let own = format!("{NAME} unit 0 undriven refused {ERRORS} last {TARGET:#x}");
    let (end, left) = with_stray_device(setup, &["--iommu"], &until_shown(&own))?;
    expect_status(&end, 0)?;
    if left != PATTERN {
        return Err(format!("the device wrote to memory: {left:?}"));
    }
    let sentence = format!("{REFUSED} the device {NAME} a write to memory at {TARGET:#x}");
    let lines = end.console.matches(&sentence).count();
    match lines {
        1..=LINES_MAX => expect_others_quiet(&end, NAME),
        _ => Err(format!("it was named {lines} times: {}", end.console)),
    }
}

/// Waits, in the machine, until a line stands in /proc/iommu.
fn until_shown(line: &str) -> String {
    format!("until grep '{line}' /proc/iommu; do sleep 0.1; done; ")
}

/// Nobody's requests were refused but those of the device of that name.
fn expect_others_quiet(end: &End, name: &str) -> Result<(), String> {
    let shown = end
        .console
        .lines()
        .filter(|line| line.contains(" refused "));
    let others = shown.filter(|line| line.contains(" unit ") && !line.contains(name));
    let others: Vec<&str> = others.map(str::trim_end).collect();
    match others.iter().all(|line| line.ends_with(" refused 0")) {
        true if !others.is_empty() => Ok(()),
        _ => Err(format!("/proc/iommu shows {}", end.console)),
    }
}

/// A machine in which the device errs, and waits then: how it ended, and what is in memory.
fn with_stray_device(setup: &Setup, flags: &[&str], wait: &str) -> Result<(End, Vec<u8>), String> {
    let flags = [flags, &["--net", "none"]].concat();
    let (mut guest, qtest) = with_qtest(setup, &flags, wait)?;
    let mut device = Edu(Function::at(qtest, SLOT)?);
    let qtest = &mut device.0.qtest;
    qtest.write(TARGET, &PATTERN)?;
    for _ in 0..ERRORS {
        device.write_memory(TARGET, PATTERN.len())?;
    }
    let left = device.0.qtest.read(TARGET, PATTERN.len())?;
    guest.type_text("go\n")?;
    Ok((guest.wait(BOOT_PATIENCE)?, left))
}

/// A card that has a driver reaches no more than its driver's memory. It is told of another
/// transmit ring, and to send; the driver does not know.
fn moved_ring(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    let own = format!("{CARD} unit 0 driven refused [1-9][0-9]* last {TARGET:#x}");
    let setup = setup.with_nic("e1000");
    let (mut guest, qtest) = with_qtest(&setup, &["--iommu"], &until_shown(&own))?;
    let mut card = Function::at(qtest, CARD_SLOT)?;
    card.set(TX_RING, TARGET)?;
    let descriptors = card.get(TX_RING_BYTES)? / TX_DESCRIPTOR_BYTES;
    let next = (card.get(TX_TAIL)? + 1).checked_rem(descriptors);
    card.set(TX_TAIL, next.ok_or("the card has no driver")?)?;
    guest.type_text("go\n")?;
    let end = guest.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    let sentence = format!("{REFUSED} the device {CARD} a read of memory at {TARGET:#x}");
    match end.console.contains(&sentence) {
        true => expect_others_quiet(&end, CARD),
        false => Err(format!("it was not named: {}", end.console)),
    }
}

/// A machine that is up, and the way to its devices. Told to go on, it waits and ends.
fn with_qtest(setup: &Setup, flags: &[&str], wait: &str) -> Result<(Guest, Qtest), String> {
    let socket = state_folder().join("qtest.sock");
    let script = format!("echo up; read go; {wait}cat /proc/iommu; exit 0");
    let program = ["busybox", "sh", "-c", &script];
    let mut command = setup.command(&[flags, &program].concat());
    command.env("SIETCH_QEMU", qemu_with_device(&socket)?);
    let guest = Guest::of(command)?;
    guest.expect("up", BOOT_PATIENCE)?;
    Ok((guest, Qtest::connect(&socket)?))
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

/// A function on bus 0 and its registers.
struct Function {
    qtest: Qtest,
    registers: u64,
}

/// In the configuration space.
const COMMAND: u32 = 0x04;
const BAR0: u32 = 0x10;
/// The function may answer at its registers, and reach memory.
const MEMORY_AND_MASTER: u64 = 0b110;

impl Function {
    fn at(mut qtest: Qtest, slot: u32) -> Result<Self, String> {
        let mut select = |register: u32| {
            let place = 0x8000_0000 | slot << 11 | register;
            qtest.ask(&format!("outl 0xcf8 {place:#x}"))?;
            qtest.number("inl 0xcfc")
        };
        let registers = select(BAR0)? & !0xf;
        let command = select(COMMAND)? & 0xffff | MEMORY_AND_MASTER;
        qtest.ask(&format!("outl 0xcfc {command:#x}"))?;
        Ok(Self { qtest, registers })
    }

    fn get(&mut self, register: u64) -> Result<u64, String> {
        let at = self.registers + register;
        self.qtest.number(&format!("readl {at:#x}"))
    }

    fn set(&mut self, register: u64, value: u64) -> Result<(), String> {
        let at = self.registers + register;
        let set = self.qtest.ask(&format!("writel {at:#x} {value:#x}"));
        set.map(drop)
    }
}

/// The transmit ring of an 82540EM (section 13.4.35 and following of its manual): address,
/// bytes, and where the driver has got to.
const TX_RING: u64 = 0x3800;
const TX_RING_BYTES: u64 = 0x3808;
const TX_TAIL: u64 = 0x3818;
const TX_DESCRIPTOR_BYTES: u64 = 16;

/// The device that copies (docs/specs/edu).
struct Edu(Function);

/// Its memory on its own side, and registers.
const OWN_MEMORY: u64 = 0x40000;
const DMA_FROM: u64 = 0x80;
const DMA_TO: u64 = 0x88;
const DMA_BYTES: u64 = 0x90;
const DMA_COMMAND: u64 = 0x98;
/// Begin, and write to the machine's memory; the first goes off when it is done.
const BEGIN: u64 = 1;
const TO_MACHINE: u64 = 2;
/// For a transfer, which takes 100 ms.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

impl Edu {
    /// Has it write what is in its own memory, and waits until it takes that for done.
    fn write_memory(&mut self, to: u64, bytes: usize) -> Result<(), String> {
        self.0.set(DMA_FROM, OWN_MEMORY)?;
        self.0.set(DMA_TO, to)?;
        self.0.set(DMA_BYTES, bytes as u64)?;
        self.0.set(DMA_COMMAND, BEGIN | TO_MACHINE)?;
        let deadline = Instant::now() + PATIENCE;
        while self.0.get(DMA_COMMAND)? & BEGIN != 0 {
            if Instant::now() > deadline {
                return Err("the device does not end its transfer".into());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}
