//! The bootable kernel.
//!
//! `mach` sets the machine up and calls `kernel_main` on the first CPU; from there the
//! boot order can be read off this file. Its one unsafe attribute gives that function the
//! name that `mach` calls.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod devices;

use alloc::vec::Vec;
use core::panic::PanicInfo;
use core::time::Duration;

use kernel::fs;
use kernel::net::Config;

/// Where `mach` hands over: the machine is set up, one CPU runs.
#[expect(unsafe_code, reason = "the symbol is defined here and nowhere else")]
// SAFETY: `mach::boot` declares the symbol with this type.
#[unsafe(no_mangle)]
fn kernel_main() -> ! {
    kernel::task::adopt_boot_thread();
    kernel::sched::timer::init();
    kernel::net::init();
    devices::start();
    kernel::net::configure(address());
    linux::init();
    if let Err(error) = start_program() {
        panic!("cannot start: {error}");
    }
    mach::cpu::start_others(kernel::sched::start_cpu);
    kernel::sched::serve_cpu()
}

/// Mounts the image and makes process 1 of the program that the command line names.
fn start_program() -> Result<(), &'static str> {
    let boot = mach::boot::info();
    fs::boot::mount_all(boot.initrd).map_err(|_| "the image is damaged")?;
    if let Some(time) = word("epoch=").and_then(parse_seconds) {
        mach::time::set_wall_clock(time);
    }
    if let Some(name) = word("hostname=") {
        linux::set_host_name(name);
    }
    let program = word("init=").map(percent_decode).ok_or("no init= on the command line")?;
    linux::start(program, word("strace=") == Some("1")).map_err(|_| "no memory")
}

/// The last word of the command line with this key.
fn word(key: &str) -> Option<&'static str> {
    let words = mach::boot::info().cmdline.split(' ');
    words.filter_map(|word| word.strip_prefix(key)).next_back()
}

/// A time since 1970 as `SECONDS.NANOSECONDS`, with nine digits behind the point.
fn parse_seconds(text: &str) -> Option<Duration> {
    let (seconds, nanos) = text.split_once('.')?;
    Some(Duration::new(seconds.parse().ok()?, nanos.parse().ok()?))
}

/// Undoes percent-encoding (RFC 3986, section 2.1); what is malformed stays as it is.
fn percent_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// What the command line says about the machine's address.
fn address() -> Config {
    word("ip=").and_then(Config::parse).unwrap_or(Config::Dhcp)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    mach::panic::panic(info)
}
