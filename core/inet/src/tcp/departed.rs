//! Names of connections that have left this stack, and may not have arrived in the next yet.
//!
//! A segment for no connection is answered with a reset, which would end a connection that is on
//! its way. So what comes for a name that has left is dropped for a while, and the peer sends it
//! again. A SYN is not: who sends one has forgotten the connection. The number of names is bounded;
//! those beyond are not remembered, and are on their own.

use base::{Duration, Instant};
use hashbrown::HashMap;

use crate::addr::FourTuple;
use crate::hash::{Key, Salt};

/// As long as a connection without timestamps may still have segments on the wire (RFC 9293's
/// MSL), and longer than a stack needs to be replaced.
const QUIET: Duration = Duration::from_secs(60);
/// Names at most.
const NAMES_MAX: usize = 16_384;

/// The names, by their hash, and until when they are quiet.
#[derive(Default)]
pub(crate) struct Departed {
    names: HashMap<u64, (FourTuple, Instant)>,
}

impl Departed {
    /// A connection has left.
    pub fn note(&mut self, key: &Key, tuple: &FourTuple, now: Instant) {
        if self.names.len() >= NAMES_MAX {
            self.names.retain(|_, (_, until)| *until > now);
        }
        if self.names.len() < NAMES_MAX && self.names.try_reserve(1).is_ok() {
            self.names
                .insert(name_of(key, tuple), (*tuple, now + QUIET));
        }
    }

    /// It is back, or its name has been given to another.
    pub fn forget(&mut self, key: &Key, tuple: &FourTuple) {
        if !self.names.is_empty() {
            self.names.remove(&name_of(key, tuple));
        }
    }

    /// Whether a segment for the name gets no answer.
    pub fn is_quiet(&self, key: &Key, tuple: &FourTuple, now: Instant) -> bool {
        let is_it = |(name, until): &(FourTuple, Instant)| name == tuple && *until > now;
        !self.names.is_empty() && self.names.get(&name_of(key, tuple)).is_some_and(is_it)
    }
}

/// Two names must not be one, so the short hash of other tables does not do.
fn name_of(key: &Key, tuple: &FourTuple) -> u64 {
    key.secret(Salt::Departed, tuple, [0, 0])
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::addr::Endpoint;

    fn name(port: u32) -> FourTuple {
        let host = |bits: u32| Ipv4Addr::from_bits(0x0a00_0000 | bits);
        FourTuple {
            local: Endpoint::v4(host(1), 80),
            remote: Endpoint::v4(host(2 + (port >> 16)), port as u16),
        }
    }

    #[test]
    fn a_name_is_quiet_for_a_while_or_until_it_is_back() {
        let (key, mut departed) = (Key([1, 2]), Departed::default());
        let now = Instant::from_millis(5);
        departed.note(&key, &name(1), now);
        departed.note(&key, &name(2), now);
        departed.forget(&key, &name(2));
        assert!(departed.is_quiet(&key, &name(1), now));
        assert!(!departed.is_quiet(&key, &name(2), now));
        assert!(!departed.is_quiet(&key, &name(1), now + QUIET));
    }

    #[test]
    fn there_are_no_more_names_than_may_be_and_old_ones_make_room() {
        let (key, mut departed) = (Key([1, 2]), Departed::default());
        let now = Instant::from_millis(5);
        for port in 0..=NAMES_MAX as u32 {
            departed.note(&key, &name(port), now);
        }
        assert!(departed.names.len() <= NAMES_MAX);
        departed.note(&key, &name(1 << 20), now + QUIET);
        assert_eq!(departed.names.len(), 1);
    }
}
