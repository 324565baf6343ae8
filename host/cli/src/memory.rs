//! What a machine with a balloon has of memory now, and what it does with it.

use qemu::{GuestMemory, Qmp};

use crate::state::Folder;

/// The connection to a machine with a balloon.
fn connection(folder: &Folder) -> Option<Qmp> {
    let (machine, _) = folder.plan().filter(|(machine, _)| machine.has_balloon)?;
    Qmp::connect(&machine.qmp_socket()).ok()
}

/// What it has, in MiB; `None` for a machine whose memory does not change.
pub fn now_mib(folder: &Folder) -> Option<u64> {
    Some(connection(folder)?.balloon().ok()? >> 20)
}

/// What it has, in bytes, and what it says of its use.
pub fn now(folder: &Folder) -> Option<(u64, Option<GuestMemory>)> {
    let mut qmp = connection(folder)?;
    let bytes = qmp.balloon().ok()?;
    Some((bytes, qmp.guest_memory().ok().flatten()))
}
