//! Signals that files raise: SIGIO and its kin, SIGURG, SIGXFSZ, SIGPIPE.
//!
//! Whoever named a file's owner must have been allowed to send it signals, by the users that it
//! had then (Linux's `sigio_perm`); else nothing is sent.

use core::num::NonZeroU32;

use sync::Error;
use sync::poll::Events;

use super::{
    Info, Origin, Signal, SignalSet, code, send_in_sweep, send_to_process, send_to_thread,
};
use crate::processes::{Process, current, family, find_thread};
use vfs::file::async_io::{FileOwner, IoSignal, NamedBy, Owner, OwnerKind};
use vfs::file::{Fd, Signals, register_signals};

/// What a write meets when nobody reads: the error, after SIGPIPE to the current thread.
pub fn broken_pipe() -> Error {
    // One that waits already is enough.
    let _ = send_to_thread(&current().arc(), Info::kernel(Signal::PIPE));
    Error::BrokenPipe
}

/// The current process as the owner of a file.
pub fn current_owner() -> Owner {
    Owner {
        kind: OwnerKind::Process,
        id: current().process.id(),
    }
}

/// Says that this sends what files raise; once at boot.
pub fn init() {
    register_signals(&OfFiles);
}

struct OfFiles;

impl Signals for OfFiles {
    fn exists(&self, owner: Owner) -> bool {
        match owner.kind {
            OwnerKind::Thread => find_thread(owner.id).is_some(),
            OwnerKind::Process => family::find(owner.id).is_some(),
            OwnerKind::Group => family::group_members(owner.id).next().is_some(),
        }
    }

    fn send(&self, to: &FileOwner, tidings: IoSignal) {
        match tidings {
            IoSignal::Urgent => send(to, Info::kernel(Signal::URG)),
            IoSignal::Ready { events, signal, fd } => {
                Reason::of(events).for_each(|reason| send(to, reason.info(signal, fd)));
            }
        }
    }

    fn raise_file_too_large(&self) {
        // A standard signal always fits.
        let _ = send_to_thread(&current().arc(), Info::kernel(Signal::XFSZ));
    }
}

/// Why a signal is sent (sigaction(2): `si_code` and `si_band` of SIGIO).
struct Reason {
    code: i32,
    band: Events,
}

impl Reason {
    /// Once it has hung up or failed, no more is said.
    fn of(due: Events) -> impl Iterator<Item = Self> {
        const OVER: [(Events, i32, Events); 2] = [
            (Events::HUP, code::POLL_HUP, Events::HUP.union(Events::ERR)),
            (Events::ERR, code::POLL_ERR, Events::ERR),
        ];
        const READY: [(Events, i32, Events); 3] = [
            (Events::READABLE, code::POLL_IN, Events::READABLE),
            (
                Events::WRITABLE,
                code::POLL_OUT,
                Events::WRITABLE.union(Events::WRBAND),
            ),
            (
                Events::PRI,
                code::POLL_PRI,
                Events::PRI.union(Events::RDBAND),
            ),
        ];
        let applies = move |(events, ..): &&(Events, i32, Events)| due.intersects(*events);
        let is_over = due.intersects(Events::ALWAYS);
        let over = OVER.iter().filter(applies).take(1);
        let ready = READY
            .iter()
            .filter(move |reason| !is_over && applies(reason));
        over.chain(ready)
            .map(|&(_, code, band)| Self { code, band })
    }

    fn info(&self, signal: Option<NonZeroU32>, fd: Fd) -> Info {
        let Some(signal) = signal.and_then(|number| Signal::new(number.get())) else {
            return Info::kernel(Signal::IO);
        };
        // The codes of these mean something else.
        let is_ambiguous = signal != Signal::IO && SignalSet::WITH_OWN_CODES.contains(signal);
        Info {
            signal,
            code: if is_ambiguous { code::SIGIO } else { self.code },
            origin: Origin::File {
                fd,
                band: self.band.bits(),
            },
        }
    }
}

/// Sends to all that an owner's number means.
fn send(to: &FileOwner, info: Info) {
    let FileOwner { owner, named_by } = *to;
    match owner.kind {
        _ if owner.id == 0 => {}
        OwnerKind::Thread => {
            if let Some(thread) = find_thread(owner.id)
                && may_signal(named_by, &thread.process)
                && send_to_thread(&thread, info).is_err()
            {
                // One that waits already is enough.
                let _ = send_to_thread(&thread, Info::kernel(Signal::IO));
            }
        }
        OwnerKind::Process => {
            if let Some(process) = family::find(owner.id) {
                send_by(named_by, &process, info, send_to_process);
            }
        }
        OwnerKind::Group => {
            for process in family::sweep(|| family::group_members(owner.id)) {
                send_by(named_by, &process, info, send_in_sweep);
            }
        }
    }
}

/// A queue that is full still takes a plain SIGIO.
fn send_by(
    sender: NamedBy,
    process: &Process,
    info: Info,
    send: fn(&Process, Info) -> sync::Result<()>,
) {
    if may_signal(sender, process) && send(process, info).is_err() {
        // One that waits already is enough.
        let _ = send(process, Info::kernel(Signal::IO));
    }
}

fn may_signal(sender: NamedBy, process: &Process) -> bool {
    let NamedBy { real, effective } = sender;
    effective == 0
        || process.first_thread().is_some_and(|thread| {
            thread.credentials.with(|receiver| {
                let ids = [receiver.user.real, receiver.user.saved];
                ids.contains(&real) || ids.contains(&effective)
            })
        })
}
