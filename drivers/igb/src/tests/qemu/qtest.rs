//! QEMU, spoken to by its test protocol: one line there, one line back.
//!
//! Its processor sleeps for good, so that nobody else touches the card.

extern crate std;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::string::String;
use std::vec::Vec;
use std::{format, fs};

use hal::pci::PciAddress;

/// Firmware of 64 KiB that halts at once: `cli`, `hlt`, and back.
const HALT: [u8; 4] = [0xfa, 0xf4, 0xeb, 0xfd];
const FIRMWARE_BYTES: usize = 0x1_0000;
const RESET_AT: usize = 0xfff0;

/// A QEMU that does nothing; ends with this value.
pub(super) struct Qtest {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Qtest {
    /// With a card whose wire leads from the socket `near` to `far` in `folder`.
    pub(super) fn start(folder: &Path) -> Self {
        let wire = format!(
            "dgram,id=wire,local.type=unix,local.path={0}/near,remote.type=unix,remote.path={0}/far",
            folder.display()
        );
        let mut firmware = std::vec![0; FIRMWARE_BYTES];
        firmware[RESET_AT..][..HALT.len()].copy_from_slice(&HALT);
        let bios = folder.join("firmware");
        fs::write(&bios, firmware).expect("a file");
        let mut process = Command::new("qemu-system-x86_64")
            .args([
                "-machine",
                "q35",
                "-accel",
                "tcg",
                "-m",
                "3G",
                "-nodefaults",
                "-bios",
            ])
            .arg(bios)
            .args(["-display", "none", "-qtest", "stdio", "-qtest-log", "none"])
            .args(["-netdev", &wire, "-device"])
            .arg("igb,netdev=wire,addr=2,mac=52:54:00:12:34:56")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("qemu-system-x86_64 is installed");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Self {
            process,
            input,
            output,
        }
    }

    /// Says a command; returns what came behind "OK".
    fn say(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").expect("QEMU listens");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("QEMU answers");
        let answer = line.trim().strip_prefix("OK");
        let answer = answer.unwrap_or_else(|| panic!("{command}: {line}"));
        answer.trim().into()
    }

    fn number(&mut self, command: &str) -> u32 {
        let answer = self.say(command);
        let digits = answer.trim_start_matches("0x");
        u64::from_str_radix(digits, 16).expect("a number") as u32
    }

    pub(super) fn read32(&mut self, addr: u64) -> u32 {
        self.number(&format!("readl {addr:#x}"))
    }

    pub(super) fn write32(&mut self, addr: u64, value: u32) {
        self.say(&format!("writel {addr:#x} {value:#x}"));
    }

    pub(super) fn read(&mut self, addr: u64, len: usize) -> Vec<u8> {
        if len == 0 {
            return Vec::new();
        }
        let answer = self.say(&format!("read {addr:#x} {len:#x}"));
        let digits = answer.trim_start_matches("0x").as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16);
        digits.map(|pair| byte(pair).expect("hex")).collect()
    }

    pub(super) fn write(&mut self, addr: u64, bytes: &[u8]) {
        let mut command = format!("write {addr:#x} {:#x} 0x", bytes.len());
        for byte in bytes {
            write!(command, "{byte:02x}").expect("a string");
        }
        self.say(&command);
    }

    /// Reads the configuration space of a function.
    pub(super) fn config_read(&mut self, function: PciAddress, offset: u32) -> u32 {
        self.select(function, offset);
        self.number("inl 0xcfc")
    }

    pub(super) fn config_write(&mut self, function: PciAddress, offset: u32, value: u32) {
        self.select(function, offset);
        self.say(&format!("outl 0xcfc {value:#x}"));
    }

    fn select(&mut self, function: PciAddress, offset: u32) {
        let function = u32::from(function.requester_id()) << 8;
        self.say(&format!(
            "outl 0xcf8 {:#x}",
            0x8000_0000 | function | offset
        ));
    }
}

impl Drop for Qtest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
