//! Names of sockets as numbers, which tell of what kind they are: a program may mix them up, in a cast or in
//! another language, and is refused then.
//!
//! The stack's number has its slot below and its generation above. A slot's number takes 28 bits, more than
//! there can be; four above them are the kind. No kind is zero, so no name is.

use sietch_io::{Connection as Stream, Listener as Listening, UdpSocket};

use crate::failure::{Failure, Result};

const KIND_SHIFT: u32 = 28;
const KIND_MASK: u64 = 0xf << KIND_SHIFT;
/// Slots that a name has room for.
pub const SLOTS_MAX: u32 = 1 << KIND_SHIFT;

/// A name of one kind, as the header has it.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $of:ident, $kind:literal) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            /// The number.
            pub id: u64,
        }

        impl $name {
            /// None.
            pub const NONE: Self = Self { id: 0 };

            /// What the stack calls it.
            #[inline]
            pub(crate) fn get(self) -> Result<$of> {
                match (self.id & KIND_MASK) >> KIND_SHIFT {
                    $kind => Ok($of::from_bits(self.id & !KIND_MASK)),
                    _ => Err(Failure::BAD_NAME),
                }
            }
        }

        impl From<$of> for $name {
            #[inline]
            fn from(of: $of) -> Self {
                Self { id: of.to_bits() | $kind << KIND_SHIFT }
            }
        }
    };
}

name!(
    /// `struct sietch_socket`.
    Socket, UdpSocket, 1
);
name!(
    /// `struct sietch_listener`.
    Listener, Listening, 2
);
name!(
    /// `struct sietch_connection`.
    Connection, Stream, 3
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_its_own_kind_only() {
        for bits in [0, 1, 0x7fff_ffff_0fff_ffff, 0xffff_ffff_0000_0000] {
            let of = Stream::from_bits(bits);
            let name = Connection::from(of);
            assert_eq!(name.get(), Ok(of));
            assert_ne!(name, Connection::NONE);
            assert_eq!(Socket { id: name.id }.get(), Err(Failure::BAD_NAME));
            assert_eq!(Listener { id: name.id }.get(), Err(Failure::BAD_NAME));
        }
        assert_eq!(Connection::NONE.get(), Err(Failure::BAD_NAME));
    }
}
