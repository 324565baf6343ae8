//! Telling people how programs ended.

use alloc::string::String;
use core::fmt::Write;

use base::VirtAddr;
use kernel::mm::Label;
use kernel::signal::{self, DefaultAction, Info, Origin, Signal};
use kernel::task::{self, ExitStatus, Process, Thread, family};

use crate::missing;

/// The host's request to end the program, as `SIGTERM` asks for it.
const TERMINATE: u8 = b'T';

/// Connects the end of process 1 with the end of the machine, and the host's request with
/// process 1; once at boot.
pub fn init() {
    task::on_init_exit(end_machine);
    mach::log::on_request(obey);
}

fn obey(request: u8) {
    if kernel::profile::obey(request) {
        return;
    }
    if request == TERMINATE
        && let Some(init) = family::find(family::INIT)
    {
        // The queue cannot be full for a signal that is not queued.
        let _ = signal::send_to_process(&init, Info::kernel(Signal::TERM));
    }
}

/// A signal ends the process: says so where it is a fault of the program.
pub fn note(thread: &Thread, info: &Info, ip: u64) {
    if info.signal.default_action() == DefaultAction::Core {
        let text = describe(&thread.process, info, ip);
        mach::klog!("fault pid={} {text}", thread.process.id());
    }
}

/// `signal=11 name=SIGSEGV addr=0x10 ip=0x401136 in=/bin/x+0x1136`.
fn describe(process: &Process, info: &Info, ip: u64) -> String {
    let mut text = String::new();
    let address = match info.origin {
        Origin::Fault { address, .. } => address,
        _ => 0,
    };
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "signal={} name={} addr={address:#x} ip={ip:#x} in={}",
        info.signal.number(),
        info.signal.name(),
        place(process, ip)
    );
    text
}

/// The file that is mapped at `ip`, and how far from the file's start.
fn place(process: &Process, ip: u64) -> String {
    let above = process.space.get().area_above(VirtAddr(ip));
    let Some(area) = above.filter(|area| area.range.contains(&VirtAddr(ip))) else {
        return String::from("nowhere");
    };
    let name = match &area.label {
        Label::File(open) => open
            .path
            .as_ref()
            .map(|path| path.name_from(&kernel::fs::root())),
        Label::Heap => Some(b"[heap]".to_vec()),
        Label::Stack => Some(b"[stack]".to_vec()),
        Label::Other(name) => Some(name.as_bytes().to_vec()),
        Label::None => None,
    };
    let name = name.unwrap_or_else(|| b"[anonymous]".to_vec());
    let offset = area.offset + (ip - area.range.start.0);
    alloc::format!("{}+{offset:#x}", name.escape_ascii())
}

/// Before the machine ends: reports, and brings what programs wrote to where it belongs.
pub fn bring_out_all() {
    missing::report();
    if let Err(error) = kernel::fs::mount::sync_all() {
        mach::klog!(
            "data may be lost error={}",
            crate::errno::Errno::from(error).name()
        );
    }
    kernel::net::drain();
    kernel::tty::console::finish();
}

/// Process 1 has ended: so does the machine.
fn end_machine(process: &Process, status: ExitStatus) {
    bring_out_all();
    match status {
        ExitStatus::Exited(status) => mach::power::off(i32::from(status)),
        ExitStatus::Killed(signal) => {
            let (info, ip) = process.killed_by().unwrap_or((Info::kernel(signal), 0));
            mach::klog!("killed {}", describe(process, &info, ip));
            mach::power::off(SIGNAL_STATUS + signal.number() as i32)
        }
    }
}

/// A shell's status for a program that a signal ended, less the signal.
const SIGNAL_STATUS: i32 = 128;
const _: () = assert!(Signal::MAX < 128, "a status has eight bits");
