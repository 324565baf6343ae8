//! Where things lie in the kernel's half of the address space.

/// All RAM, mapped linearly from physical address 0.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;

/// Physical memory that the boot tables map at [`DIRECT_MAP`].
pub const BOOT_DIRECT_MAP_BYTES: u64 = 4 << 30;

/// Virtual address minus physical address of the kernel's image.
pub const IMAGE_OFFSET: u64 = 0xffff_ffff_8000_0000;

/// Bits of the lower (user) half: an address of a program is below `1 << USER_BITS`.
pub const USER_BITS: u32 = 47;
