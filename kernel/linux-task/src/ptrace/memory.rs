//! Words of a tracee's memory, which its tracer reads and writes whatever the mapping permits.

use alloc::sync::Arc;

use base::VirtAddr;
use mm::Reach;
use task::ptrace::Tracee;
use task::{Process, family};

use linux_abi::errno::Errno;

const WORD_BYTES: usize = 8;

/// The tracee's process.
pub fn process(tracee: &Tracee) -> Result<Arc<Process>, Errno> {
    family::find(tracee.process).ok_or(Errno::ESRCH)
}

/// The word at `at`.
pub fn peek(tracee: &Tracee, at: VirtAddr) -> Result<u64, Errno> {
    tracee.with_stopped(|_| ())?;
    let mut word = [0; WORD_BYTES];
    let space = process(tracee)?.space.get();
    match space.peek(at, &mut word) {
        Ok(WORD_BYTES) => Ok(u64::from_le_bytes(word)),
        _ => Err(Errno::EIO),
    }
}

/// Stores `word` at `at`.
pub fn poke(tracee: &Tracee, at: VirtAddr, word: u64) -> Result<(), Errno> {
    tracee.with_stopped(|_| ())?;
    let space = process(tracee)?.space.get();
    match space.poke(at, &word.to_le_bytes(), Reach::Tracer) {
        Ok(WORD_BYTES) => Ok(()),
        _ => Err(Errno::EIO),
    }
}
