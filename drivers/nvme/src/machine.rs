//! What the driver needs of the machine beside memory and registers.

use base::Instant;

/// Time.
pub trait Clock {
    /// Now.
    fn now(&self) -> Instant;

    /// A moment, for who waits for the controller.
    fn pause(&self);
}

/// Time, and the last resort.
pub trait Machine: Clock {
    /// Whether the function may reach memory (PCI's bus master). One that does not stop by itself
    /// is kept from it.
    fn let_reach_memory(&self, may: bool);
}
