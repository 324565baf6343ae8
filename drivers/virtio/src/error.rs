//! Why a device could not be brought up.

/// Why a device could not be brought up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Not a virtio device of version 1.
    NotVirtio,
    /// A register block lies outside of what is mapped.
    RegistersOutside,
    /// The device lacks features that the driver cannot do without.
    MissingFeatures {
        /// What it offers.
        offered: u64,
        /// What is needed.
        needed: u64,
    },
    /// The device refused the features that the driver chose.
    FeaturesRefused(u64),
    /// The queue does not exist.
    NoQueue(u16),
    /// The device refused the interrupt vector for a queue.
    VectorRefused(u16),
    /// The device does not do what it offered.
    CommandRefused,
    /// No memory for the queues.
    OutOfMemory,
    /// The device did not come out of its reset.
    ResetStuck,
}
