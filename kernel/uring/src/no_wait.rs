//! Trying without waiting.

use sched::Flags;

/// Does something in which waits that signals may end fail instead.
pub fn without_waiting<R>(act: impl FnOnce() -> R) -> R {
    let me = task::current();
    me.set_flags(Flags::NO_WAIT);
    let done = act();
    me.clear_flags(Flags::NO_WAIT);
    done
}
