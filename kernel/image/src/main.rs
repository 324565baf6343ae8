//! The bootable kernel.
//!
//! `mach` sets the machine up and calls `kernel_main` on the first CPU; from there the
//! boot order can be read off this file. Its one unsafe attribute gives that function the
//! name that `mach` calls.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::panic::PanicInfo;

use mach::klog;

/// Where `mach` hands over: the machine is set up, one CPU runs.
#[expect(unsafe_code, reason = "the symbol is defined here and nowhere else")]
// SAFETY: `mach::boot` declares the symbol with this type.
#[unsafe(no_mangle)]
fn kernel_main() -> ! {
    let boot = mach::boot::info();
    klog!(
        "memory bytes={} initrd={}",
        boot.memory.usable_bytes(),
        boot.initrd.len()
    );
    mach::cpu::start_others(idle);
    klog!("cpus count={}", mach::cpu::count());
    mach::power::off(0)
}

fn idle() -> ! {
    loop {
        mach::cpu::wait_for_interrupt();
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    mach::panic::panic(info)
}
