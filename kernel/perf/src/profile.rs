//! What the profiler (`mach::profile`) asks of the kernel: who runs, which files are mapped,
//! how long threads wait.
//!
//! A sample names addresses of a program; to give them names the host must know which files
//! lie there. An NMI handler cannot look that up, so it sets [`Flags::PROFILE`] of the thread
//! that it interrupted, and the thread itself writes its process' executable mappings down on
//! its way back to user mode. That is repeated while the process is sampled, for what it
//! maps later.
//!
//! The host starts and stops the profiler by requests of one byte on the log's port, or has it
//! run from the boot on.

use core::sync::atomic::{AtomicUsize, Ordering};

use base::{Duration, Instant, VirtAddr};
use mach::profile::{Observed, Who};
use mm::{AreaReport, Label};
use sched::Flags;
use task::{Process, Thread, try_current};

use vfs::file::OpenFile;

/// The host's request for samples.
const START: u8 = b'P';
/// The host's request for waits and wake-ups.
const START_WAITS: u8 = b'W';
/// The host's request for neither.
const STOP: u8 = b'p';

/// Bytes of each CPU's ring where the command line does not say.
pub const RING_BYTES: usize = 1 << 20;
/// No ring is larger.
const RING_BYTES_MAX: usize = 1 << 26;
/// How long the word of a process on its mappings is good.
const MAPPINGS_AGE: Duration = Duration::from_millis(250);

/// The host's wish for the rings of the whole machine.
static RING: AtomicUsize = AtomicUsize::new(RING_BYTES);

/// Whether a process is to tell its mappings again.
fn is_due(process: &Process, now: Instant) -> bool {
    let told_ns = process.mappings_told_ns.load(Ordering::Relaxed);
    told_ns == 0 || now.since(Instant::from_nanos(told_ns)) > MAPPINGS_AGE
}

/// Connects the profiler with the kernel, with rings of `ring_bytes`; once at boot.
pub fn init(ring_bytes: usize) {
    RING.store(ring_bytes.min(RING_BYTES_MAX), Ordering::Relaxed);
    mach::profile::on_sample(observe);
}

/// Does what the host asks for; false if the request is not for the profiler.
pub fn obey(request: u8) -> bool {
    let ring_bytes = RING.load(Ordering::Relaxed);
    match request {
        START => mach::profile::start(ring_bytes),
        START_WAITS => mach::profile::start_waits(ring_bytes),
        STOP => mach::profile::stop(),
        _ => return false,
    }
    true
}

/// Who runs here. Runs in the NMI handler too.
fn observe() -> Observed {
    let Some(thread) = try_current() else {
        return Observed::default();
    };
    let process = &thread.process;
    let is_due = |now| is_due(process, now);
    let is_wanted = process.id() != 0 && mach::time::try_now().is_some_and(is_due);
    if is_wanted {
        thread.set_flags(Flags::PROFILE);
    }
    let who = Who {
        pid: process.id(),
        tid: thread.id(),
        // Its holder may be the code that was interrupted.
        name: thread.name.try_lock().map(|name| *name).unwrap_or_default(),
    };
    Observed { who, is_wanted }
}

/// Writes down which files the running thread's process can execute.
#[cold]
pub fn tell_mappings(thread: &Thread) {
    thread.clear_flags(Flags::PROFILE);
    let process = &thread.process;
    let now_ns = mach::time::now().as_nanos();
    process.mappings_told_ns.store(now_ns, Ordering::Relaxed);
    let space = process.space.get();
    let areas = space.areas_above(VirtAddr(0));
    for area in areas.filter(|area| area.access.exec) {
        tell(process.id(), &area);
    }
}

fn tell(pid: u32, area: &AreaReport) {
    let (start, end) = (area.range.start.0, area.range.end.0);
    let record = |path: &[u8]| mach::profile::record_mapping(pid, start, end, area.offset, path);
    match &area.label {
        Label::File(mapped) => {
            if let Some(path) = OpenFile::of_mapping(mapped).and_then(|open| open.path.as_ref()) {
                record(&path.name_from(&vfs::root()));
            }
        }
        Label::Other(name) => record(name.as_bytes()),
        _ => record(b"[anonymous]"),
    }
}
