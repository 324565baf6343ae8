//! Who may touch memory: a type parameter of [`DmaBuf`](crate::DmaBuf).
//!
//! ```text
//!           give()              share()
//! Device ◀──────────── Cpu ────────────▶ Shared
//!        ────────────▶
//!         take_back()
//! ```

mod sealed {
    pub trait Sealed {}
}

/// A state of ownership. Sealed.
pub trait Owner: sealed::Sealed + 'static {}

/// A state in which a device knows the address.
pub trait KnownToDevice: Owner {}

macro_rules! owner {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl sealed::Sealed for $name {}
        impl Owner for $name {}
    };
}

owner! {
    /// The driver reads and writes; no device knows the address.
    Cpu
}
owner! {
    /// The device reads and writes; the driver keeps its hands off.
    Device
}
owner! {
    /// Both at any time, as in a ring of descriptors: the driver accesses single words
    /// and copies, and takes nothing that it read for true.
    Shared
}

impl KnownToDevice for Device {}
impl KnownToDevice for Shared {}
