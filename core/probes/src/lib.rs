//! Counters and drop reasons: nothing is dropped without a name.
//!
//! A counter is a plain `u64` owned by whoever owns the thing that it counts, so that
//! counting is one add without an atomic and reading is a copy. The macro
//! [`counters!`] declares a set of them with a name for each, from which tools print
//! tables without knowing the set.
//! What happens too often to be said each time has a [`RateLimit`].
//! Not here: where counters are shown, and tracing of single events.
#![no_std]
#![forbid(unsafe_code)]

mod rate_limit;

pub use rate_limit::RateLimit;

/// Declares an enum of things to count and the table that counts them.
///
/// ```
/// probes::counters! {
///     /// Why a frame was dropped.
///     pub enum DropReason => Drops {
///         /// The checksum does not match.
///         BadChecksum = "bad_checksum",
///         /// Nobody listens.
///         NoSocket = "no_socket",
///     }
/// }
/// let mut drops = Drops::default();
/// drops.count(DropReason::NoSocket);
/// assert_eq!(drops.get(DropReason::NoSocket), 1);
/// assert_eq!(drops.iter().map(|(_, n)| n).sum::<u64>(), 1);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$doc:meta])*
        $vis:vis enum $what:ident => $table:ident {
            $( $(#[$variant_doc:meta])* $variant:ident = $name:literal, )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $what { $( $(#[$variant_doc])* $variant, )+ }

        impl $what {
            /// All of them, in order of declaration.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The name that tools show.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }
        }

        #[doc = concat!("How often each [`", stringify!($what), "`] happened.")]
        #[derive(Clone, Debug)]
        $vis struct $table([u64; $what::ALL.len()]);

        impl Default for $table {
            fn default() -> Self {
                Self([0; $what::ALL.len()])
            }
        }

        impl $table {
            /// Counts one.
            #[inline]
            pub fn count(&mut self, what: $what) {
                self.add(what, 1);
            }

            /// Counts `times`.
            #[inline]
            pub fn add(&mut self, what: $what, times: u64) {
                self.0[what as usize] = self.0[what as usize].wrapping_add(times);
            }

            /// How often so far.
            pub fn get(&self, what: $what) -> u64 {
                self.0[what as usize]
            }

            /// Names and values, in order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
                $what::ALL.iter().map(|what| (what.name(), self.get(*what)))
            }
        }
    };
}
