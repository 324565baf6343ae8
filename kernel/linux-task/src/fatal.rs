//! What people are told of a program that a signal ended: which, where in which file.

use alloc::string::String;
use core::fmt::Write;

use base::VirtAddr;
use mm::Label;
use task::signal::{DefaultAction, Info, Origin};
use task::{Process, Thread};
use vfs::file::OpenFile;

/// A signal ends the process: says so where it is a fault of the program.
pub fn note(thread: &Thread, info: &Info, ip: u64) {
    if info.signal.default_action() == DefaultAction::Core {
        let text = describe(&thread.process, info, ip);
        mach::klog!("fault pid={} {text}", thread.process.id());
    }
}

/// `signal=11 name=SIGSEGV addr=0x10 ip=0x401136 in=/bin/x+0x1136`.
pub fn describe(process: &Process, info: &Info, ip: u64) -> String {
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
        Label::File(mapped) => OpenFile::of_mapping(mapped)
            .and_then(|open| open.path.as_ref())
            .map(|path| path.name_from(&vfs::root())),
        Label::Heap => Some(b"[heap]".to_vec()),
        Label::Stack => Some(b"[stack]".to_vec()),
        Label::Other(name) => Some(name.as_bytes().to_vec()),
        Label::None => None,
    };
    let name = name.unwrap_or_else(|| b"[anonymous]".to_vec());
    let offset = area.offset + (ip - area.range.start.0);
    alloc::format!("{}+{offset:#x}", name.escape_ascii())
}
