//! Why a unit cannot be used, or did not do what it was told.

use hal::DmaError;

use crate::pages::MapError;

/// What a unit must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MissingFeature {
    /// Page tables of three or four levels.
    Levels,
    /// A queue for invalidations.
    Queue,
    /// Buffers that need no flush by hand before the unit reads memory.
    CoherentWrites,
    /// Registers for faults within what is mapped.
    FaultRegisters,
    /// A table of interrupts.
    Interrupts,
}

/// Why a unit cannot be used, or did not do what it was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The registers are not those of a unit, or too few are mapped.
    NotVtd,
    /// It lacks something.
    Lacks(MissingFeature),
    /// No memory for its tables.
    Memory(DmaError),
    /// A command's status did not change.
    CommandStuck {
        /// The command's bit.
        bit: u32,
    },
    /// It did not say that it has forgotten what it was told to forget.
    InvalidationStuck {
        /// Its fault status.
        status: u32,
    },
    /// It tells no more domains apart.
    TooManyDomains,
    /// No such domain.
    NoDomain,
    /// The domain's tables refuse.
    Map(MapError),
}

impl From<MapError> for Error {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Memory(error) => Self::Memory(error),
            other => Self::Map(other),
        }
    }
}
