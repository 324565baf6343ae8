//! Memory that may be refused, as an argument: what a mechanism in `core/` asks of the heap.

/// There is no memory for what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// Whom a mechanism asks before its collections grow.
pub trait Memory: 'static {
    /// Runs a `try_reserve`, which may be refused before it is run.
    fn reserve<E>(grow: impl FnOnce() -> Result<(), E>) -> Result<(), NoMemory>;
}
