//! Signals that files raise, which whoever has threads sends.

use mach::sync::Once;

use super::async_io::{FileOwner, IoSignal, Owner};

/// What knows threads, processes and groups.
pub trait Signals: Sync {
    /// Whether there is such a thread, process or group.
    fn exists(&self, owner: Owner) -> bool;

    /// Tells an owner what became of its file.
    fn send(&self, to: &FileOwner, tidings: IoSignal);

    /// The current thread has met the limit of its files' size: SIGXFSZ.
    fn raise_file_too_large(&self);
}

/// Said once at boot by who keeps processes.
static SIGNALS: Once<&'static dyn Signals> = Once::new();

/// Says who sends; once at boot.
pub fn register_signals(signals: &'static dyn Signals) {
    SIGNALS.call_once(|| signals);
}

/// tidy: boot registers before there is a program, and only programs ask.
pub(super) fn signals() -> &'static dyn Signals {
    match SIGNALS.get() {
        Some(signals) => *signals,
        None => unreachable!("boot says who sends signals"),
    }
}
