//! What the driver needs of the machine beside memory and registers.

use base::Instant;

/// Time, and the last resort.
pub trait Machine {
    /// Now.
    fn now(&self) -> Instant;

    /// A moment, for who waits for the controller.
    fn pause(&self);

    /// Whether the function may reach memory (PCI's bus master). One that does not stop by itself
    /// is kept from it.
    fn let_reach_memory(&self, may: bool);
}
