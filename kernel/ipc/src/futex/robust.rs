//! What the end of a thread does to the locks it holds: `core/futex/src/robust.rs`.

use ::futex::robust::{Kind, is_to_wake, walk, without_owner};
use ::futex::{Stop, replace};
use base::VirtAddr;
use core::sync::atomic::Ordering;
use mm::Access;
use mm::user;
use sync::Result;
use task::{LockRelease, Thread, release_locks_by};

use super::key::key_of;
use super::word::{UserWord, repeat};
use super::{Host, MATCH_ANY, pi, wake};

/// Has threads that end release their locks; once at boot.
pub fn init() {
    release_locks_by(release_locks);
}

/// Releases the thread's locks, clears and wakes the word that pthread_join(3) waits for.
fn release_locks(thread: &Thread, with: LockRelease) {
    let head = thread.robust_list.swap(0, Ordering::Relaxed);
    if head != 0 {
        let read = |at| user::read(VirtAddr(at));
        let release = |word, kind| release(thread.id(), VirtAddr(word), kind);
        // The program's list may be broken; then its locks are its problem.
        let _ = walk(head, read, release);
    }
    pi::release_all(thread, with == LockRelease::Thread);
    let word = VirtAddr(thread.clear_tid.swap(0, Ordering::Relaxed));
    if word.0 != 0 && user::write(word, 0u32).is_ok() {
        wake_both(word, 1);
    }
}

/// Waiters may have used either kind of key.
fn wake_both(word: VirtAddr, count: usize) {
    for private in [true, false] {
        if let Ok(key) = key_of(word, private) {
            wake(key, MATCH_ANY, count);
        }
    }
}

fn release(tid: u32, word: VirtAddr, kind: Kind) -> Result<()> {
    if word.0 & 3 != 0 {
        return Ok(());
    }
    let old = repeat(Access::Write, || {
        let mark = |old| without_owner(old, tid);
        replace::<Host, _>(&UserWord(word), mark).map_err(Stop::Fault)
    })?;
    if is_to_wake(old, tid, kind) {
        wake_both(word, 1);
    }
    Ok(())
}
