//! How the processor caches memory (Intel SDM volume 3, 12.3): a type parameter of
//! [`DmaBuf`](crate::DmaBuf).

mod sealed {
    pub trait Sealed {}
}

/// A way of caching.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caching {
    /// Loads and stores go through the cache, which PC devices see: for all but the rest.
    WriteBack,
    /// Stores gather in a buffer and go out in bursts; loads are slow: for frame buffers.
    WriteCombining,
    /// Each access goes to memory by itself, in order.
    Uncached,
}

/// A way of caching as a type. Sealed.
pub trait MemoryType: sealed::Sealed + 'static {
    /// The same as a value.
    const CACHING: Caching;
}

macro_rules! memory_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}
        impl sealed::Sealed for $name {}
        impl MemoryType for $name {
            const CACHING: Caching = Caching::$name;
        }
    };
}

memory_type! {
    /// See [`Caching::WriteBack`].
    WriteBack
}
memory_type! {
    /// See [`Caching::WriteCombining`].
    WriteCombining
}
memory_type! {
    /// See [`Caching::Uncached`].
    Uncached
}
