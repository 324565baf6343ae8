//! Asking for memory that a device can use.

use super::caching::MemoryType;
use super::owner::Cpu;
use super::{DmaBuf, DmaRelease};
use base::DeviceAddr;
use core::fmt;

/// What a device asks of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaRequest {
    bytes: usize,
    align: usize,
    boundary: Option<u64>,
    limit: Option<DeviceAddr>,
    is_read_only: bool,
}

/// Why there is no such memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DmaError {
    /// Nothing was asked for.
    Empty,
    /// An alignment or boundary that is no power of two.
    NotPowerOfTwo(u64),
    /// More bytes than fit between two boundaries.
    CrossesBoundary {
        /// Bytes asked for.
        bytes: usize,
        /// Distance of the boundaries.
        boundary: u64,
    },
    /// More contiguous bytes than the source ever has.
    TooLarge {
        /// Bytes asked for.
        bytes: usize,
    },
    /// No contiguous memory is free now.
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// Memory is free, but none that ends below the limit.
    OutOfReach {
        /// The end of what the device reaches.
        limit: DeviceAddr,
    },
}

impl DmaRequest {
    /// `bytes` contiguous bytes, aligned to `align`.
    pub const fn new(bytes: usize, align: usize) -> Self {
        Self {
            bytes,
            align,
            boundary: None,
            limit: None,
            is_read_only: false,
        }
    }

    /// Not across a multiple of `boundary`, for devices whose address counters wrap there.
    #[must_use]
    pub const fn within(self, boundary: u64) -> Self {
        Self {
            boundary: Some(boundary),
            ..self
        }
    }

    /// Ending at `limit` or below, for devices that do not reach all memory.
    #[must_use]
    pub const fn below(self, limit: DeviceAddr) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// For a device that only reads it: a source that rules what a device reaches gives it no more.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self {
            is_read_only: true,
            ..self
        }
    }

    /// Whether the device only reads it.
    pub const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it has to end, if anywhere.
    pub const fn limit(&self) -> Option<DeviceAddr> {
        self.limit
    }

    /// Whether any memory can meet this.
    pub fn check(&self) -> Result<(), DmaError> {
        let boundary = self.boundary.unwrap_or(1 << 63);
        if self.bytes == 0 {
            return Err(DmaError::Empty);
        }
        for power in [self.align as u64, boundary] {
            if !power.is_power_of_two() {
                return Err(DmaError::NotPowerOfTwo(power));
            }
        }
        if self.bytes as u64 > boundary {
            return Err(DmaError::CrossesBoundary {
                bytes: self.bytes,
                boundary,
            });
        }
        Ok(())
    }

    /// An alignment which alone honours alignment and boundary, for allocators of
    /// naturally aligned blocks: a block that is aligned to its size crosses no multiple
    /// of anything larger.
    pub fn natural_align(&self) -> usize {
        let for_boundary = match self.boundary {
            Some(_) => self.bytes.next_power_of_two(),
            None => 1,
        };
        self.align.max(for_boundary)
    }

    /// Whether memory at `addr` meets the request.
    pub fn is_met_by(&self, addr: DeviceAddr) -> bool {
        let last = addr + (self.bytes as u64 - 1);
        let aligned = addr.0.is_multiple_of(self.align as u64);
        let whole = self
            .boundary
            .is_none_or(|boundary| addr.0 / boundary == last.0 / boundary);
        let in_reach = self.limit.is_none_or(|limit| last < limit);
        last >= addr && aligned && whole && in_reach
    }
}

impl fmt::Display for DmaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => write!(f, "no bytes were asked for"),
            Self::NotPowerOfTwo(value) => write!(f, "{value} is no power of two"),
            Self::CrossesBoundary { bytes, boundary } => {
                write!(f, "{bytes} bytes cross a multiple of {boundary}")
            }
            Self::TooLarge { bytes } => write!(f, "{bytes} contiguous bytes are too many"),
            Self::OutOfMemory { bytes } => write!(f, "no {bytes} contiguous bytes are free"),
            Self::OutOfReach { limit } => write!(f, "no free memory ends below {limit}"),
        }
    }
}

/// Whoever can hand out memory for devices.
pub trait DmaSource {
    /// Zeroed contiguous memory that meets `request`.
    fn dma_alloc<M: MemoryType>(&self, request: &DmaRequest) -> Result<DmaBuf<M>, DmaError>;
}

/// A piece of memory as its source knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) release: DmaRelease,
    pub(super) context: usize,
}

impl<M: MemoryType> DmaBuf<M, Cpu> {
    /// Panics unless the memory meets `request`: a source that breaks its promise is
    /// found here and not in a device's behaviour.
    #[must_use]
    pub fn honouring(self, request: &DmaRequest) -> Self {
        assert!(
            self.bytes() >= request.bytes && request.is_met_by(self.device()),
            "memory at {} does not meet {request:?}",
            self.device()
        );
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_nothing_can_meet_is_refused() {
        assert_eq!(DmaRequest::new(0, 8).check(), Err(DmaError::Empty));
        assert_eq!(
            DmaRequest::new(8, 24).check(),
            Err(DmaError::NotPowerOfTwo(24))
        );
        let request = DmaRequest::new(8192, 8).within(4096);
        let error = DmaError::CrossesBoundary {
            bytes: 8192,
            boundary: 4096,
        };
        assert_eq!(request.check(), Err(error));
        assert_eq!(DmaRequest::new(4096, 8).within(4096).check(), Ok(()));
    }

    #[test]
    fn alignment_boundary_and_limit_are_all_looked_at() {
        let request = DmaRequest::new(0x1000, 0x100)
            .within(0x1_0000)
            .below(DeviceAddr(1 << 32));
        assert!(request.is_met_by(DeviceAddr(0xf000)));
        assert!(!request.is_met_by(DeviceAddr(0xf100)), "crosses 64 KiB");
        assert!(!request.is_met_by(DeviceAddr(0x1_0010)), "not aligned");
        assert!(request.is_met_by(DeviceAddr((1 << 32) - 0x1000)));
        assert!(!request.is_met_by(DeviceAddr(1 << 32)), "out of reach");
        assert_eq!(request.natural_align(), 0x1000);
        assert_eq!(
            DmaRequest::new(5000, 64).within(1 << 16).natural_align(),
            8192
        );
    }
}
