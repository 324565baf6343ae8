//! Memory that a machine gives back to its host for a while.

use core::fmt;

/// Frames of a handover at most: one MiB.
pub const HANDOVER_FRAMES_MAX: usize = 256;

/// What becomes of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handover {
    /// The host may take their memory: they are not touched any more.
    ToHost,
    /// The machine is going to use them again.
    ToMachine,
}

/// The device does not do what it is asked any more, or lied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalloonBroken;

impl fmt::Display for BalloonBroken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the balloon device is broken")
    }
}

/// What a machine does with its memory, in bytes and events since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// Memory that there is.
    pub total_bytes: u64,
    /// Nobody's.
    pub free_bytes: u64,
    /// What programs could have without anything being ended.
    pub available_bytes: u64,
    /// Of files, and given up when it is needed.
    pub cache_bytes: u64,
    /// Page faults that waited for something.
    pub major_faults: u64,
    /// Those that did not.
    pub minor_faults: u64,
}

/// A device by which the host asks for memory.
///
/// Frames are numbered by their physical address in units of 4 KiB, for a device behind an IOMMU too. One handover is
/// under way at a time. Whoever looks and finds nothing is told by the device's interrupt when to look again.
pub trait BalloonDevice: Send {
    /// Frames that the host asks for altogether.
    fn target(&self) -> u32;

    /// Tells the host how many it has.
    fn set_actual(&mut self, frames: u32);

    /// Whether the machine may take frames back that the host asks for.
    fn lets_take_back(&self) -> bool;

    /// Begins to hand over `frames`, one to [`HANDOVER_FRAMES_MAX`] of them.
    fn hand_over(&mut self, what: Handover, frames: &[u32]) -> Result<(), BalloonBroken>;

    /// Whether the device has done the last handover.
    fn is_done(&mut self) -> Result<bool, BalloonBroken>;

    /// Whether the host wants to know how memory is used, since the last answer.
    fn wants_use(&mut self) -> bool;

    /// Answers.
    fn report_use(&mut self, memory: &MemoryUse);
}
