//! Addresses of the three spaces (physical, virtual, device).

use core::fmt;
use core::ops::{Add, Sub};

/// log2 of [`PAGE_BYTES`].
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in the smallest page of the machine.
pub const PAGE_BYTES: usize = 1 << PAGE_SHIFT;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The start of the page that holds this address.
            pub const fn page_floor(self) -> Self {
                Self(self.0 & !(PAGE_BYTES as u64 - 1))
            }

            /// The next page boundary at or above this address; saturates at the top.
            pub const fn page_ceil(self) -> Self {
                Self(self.0.saturating_add(PAGE_BYTES as u64 - 1)).page_floor()
            }

            /// Bytes between this address and the start of its page.
            pub const fn page_offset(self) -> usize {
                (self.0 & (PAGE_BYTES as u64 - 1)) as usize
            }

            /// This address plus `bytes`, or `None` on overflow.
            pub const fn checked_add(self, bytes: u64) -> Option<Self> {
                match self.0.checked_add(bytes) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }
        }

        impl Add<u64> for $name {
            type Output = Self;
            fn add(self, bytes: u64) -> Self {
                Self(self.0.wrapping_add(bytes))
            }
        }

        impl Sub for $name {
            type Output = u64;
            fn sub(self, from: Self) -> u64 {
                self.0.wrapping_sub(from.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// A guest-physical address: what the memory controller sees.
    PhysAddr
}
address! {
    /// A virtual address, of a program or of the kernel.
    VirtAddr
}
address! {
    /// What a device puts on its bus to reach memory; equal to the physical address
    /// only where no IOMMU translates.
    DeviceAddr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_floored_and_ceiled_without_overflow() {
        assert_eq!(PhysAddr(0x1234).page_floor(), PhysAddr(0x1000));
        assert_eq!(PhysAddr(0x1001).page_ceil(), PhysAddr(0x2000));
        assert_eq!(PhysAddr(0x1000).page_ceil(), PhysAddr(0x1000));
        assert_eq!(
            VirtAddr(u64::MAX).page_ceil(),
            VirtAddr(u64::MAX).page_floor()
        );
        assert_eq!(VirtAddr(u64::MAX).checked_add(1), None);
    }
}
