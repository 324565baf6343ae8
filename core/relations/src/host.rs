//! What the relations ask of the kernel around them.

use base::lock::{Family, RwFamily};

/// The kernel.
pub trait Host: Sized + 'static {
    /// Its short locks.
    type Family: RwFamily;
    /// A process.
    type Process;
    /// What a parent knows of a child.
    type State: State;

    /// Nobody bears a number any more.
    fn release(number: u32);

    /// Whether [`Self::is_reaper`] may be true of anybody.
    fn has_reapers() -> bool;

    /// Whether a process inherits the children of its descendants.
    fn is_reaper(process: &Self::Process) -> bool;

    /// Between two batches of long work: others may run.
    fn breathe();
}

/// What a parent knows of a child.
pub trait State {
    /// Whether there is something that it can hear.
    fn has_changed(&self) -> bool;
}

/// What becomes of a child after somebody has looked at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Its parent keeps it.
    Stays,
    /// It is forgotten.
    Goes,
}

pub(crate) type CountOf<H> = <<H as Host>::Family as Family>::Count;
pub(crate) type FlagOf<H> = <<H as Host>::Family as Family>::Flag;
pub(crate) type LockOf<H, T> = <<H as Host>::Family as Family>::Lock<T>;
pub(crate) type RwLockOf<H, T> = <<H as Host>::Family as RwFamily>::RwLock<T>;
