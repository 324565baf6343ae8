//! Numbers of interrupts: what a device, a pin or another CPU raises.
//!
//! Those of the processor's exceptions come first, then those that [`crate::irq`] gives out,
//! then the kernel's own, which are named here.
//!
//! The upper half of a number is its class. What ends a nap in the midst of a wait ([`crate::time`]) has
//! the highest one for itself: it takes no lock and may come with any lock held.

/// The number of an interrupt on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Vector(pub(crate) u8);

impl Vector {
    /// Look at the run queue. The first of the kernel's own.
    pub(crate) const KICK: Self = Self(0xee);
    /// The local timer.
    pub(crate) const TIMER: Self = Self(0xef);
    /// A nap is over.
    pub(crate) const NAP: Self = Self(0xf0);
    /// Serve another CPU's request.
    pub(crate) const SERVICE: Self = Self(0xf1);

    /// The number as the hardware knows it.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Of two interrupts that wait, that of the higher class comes first.
    pub(crate) const fn class(self) -> u8 {
        self.0 >> 4
    }
}
