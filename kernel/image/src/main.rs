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

use core::panic::PanicInfo;

use kernel::net::Config;

/// Where `mach` hands over: the machine is set up, one CPU runs.
#[expect(unsafe_code, reason = "the symbol is defined here and nowhere else")]
// SAFETY: `mach::boot` declares the symbol with this type.
#[unsafe(no_mangle)]
fn kernel_main() -> ! {
    kernel::sched::timer::init();
    kernel::net::init();
    devices::start();
    kernel::net::configure(address());
    mach::cpu::start_others(kernel::sched::start_cpu);
    kernel::sched::start_cpu()
}

/// What the command line says about the machine's address.
fn address() -> Config {
    let words = mach::boot::info().cmdline.split(' ');
    let text = words.filter_map(|word| word.strip_prefix("ip=")).next_back();
    text.and_then(Config::parse).unwrap_or(Config::Dhcp)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    mach::panic::panic(info)
}
