//! The end of the machine: with process 1, or when the host asks.

use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use base::Instant;
use linux_abi::errno::Errno;
use linux_abi::missing;
use linux_task::fatal;
use task::signal::{self, Info, Signal};
use task::{self, ExitStatus, Process, family};

/// The host's request to end the program, as `SIGTERM` asks for it.
const TERMINATE: u8 = b'T';
/// The host has made it, and process 1 does not know yet.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Connects the end of process 1 with the end of the machine, and the host's request with
/// process 1; once at boot.
pub fn init() {
    task::on_init_exit(end_machine);
    mach::host::on_request(obey);
}

fn obey(request: u8) {
    if perf::profile::obey(request) {
        return;
    }
    if request == TERMINATE {
        IS_ASKED.store(true, SeqCst);
        tell_init();
    }
}

/// Sends process 1 what the host has asked for. Before there is one that waits: whoever starts it calls this.
pub fn tell_init() {
    if let Some(init) = family::find(family::INIT)
        && IS_ASKED.swap(false, SeqCst)
    {
        // The queue cannot be full for a signal that is not queued.
        let _ = signal::send_to_process(&init, Info::kernel(Signal::TERM));
    }
}

/// Before the machine ends: reports, and brings what programs wrote to where it belongs.
pub fn bring_out_all() {
    missing::report();
    if let Err(error) = vfs::mount::finish_all() {
        mach::klog!("data may be lost error={}", Errno::from(error).name());
    }
    // File systems that are mounted no more, and still used.
    kernel_pagecache::flush_all(Instant::NEVER);
    net::drain();
    tty::console::finish();
}

/// Process 1 has ended: so does the machine.
fn end_machine(process: &Process, status: ExitStatus) {
    if status != ExitStatus::Exited(0) {
        // One that succeeded has missed nothing.
        vfs::absent::report();
    }
    bring_out_all();
    match status {
        ExitStatus::Exited(status) => mach::power::off(i32::from(status)),
        ExitStatus::Killed(signal) => {
            let (info, ip) = process.killed_by().unwrap_or((Info::kernel(signal), 0));
            mach::klog!("killed {}", fatal::describe(process, &info, ip));
            mach::power::off(SIGNAL_STATUS + signal.number() as i32)
        }
    }
}

/// A shell's status for a program that a signal ended, less the signal.
const SIGNAL_STATUS: i32 = 128;
const _: () = assert!(Signal::MAX < 128, "a status has eight bits");
