//! Numbers of interrupts: what a device, a pin or another CPU raises.
//!
//! Those of the processor's exceptions come first, then those that [`crate::irq`] gives out,
//! then the kernel's own, which are named here.

/// The number of an interrupt on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Vector(pub(crate) u8);

impl Vector {
    /// The local timer.
    pub(crate) const TIMER: Self = Self(0xf0);
    /// Look at the run queue.
    pub(crate) const KICK: Self = Self(0xf1);
    /// Serve another CPU's request.
    pub(crate) const SERVICE: Self = Self(0xf2);

    /// The number as the hardware knows it.
    pub const fn number(self) -> u8 {
        self.0
    }
}
