//! Keyed hashes: peers choose addresses and ports, so they must not choose buckets, and must
//! not guess what depends on our secret.
//!
//! There are two. [`Key::tuple`] finds table entries: two rounds of multiply-and-fold take a
//! dozen instructions, and suffice where nobody sees the result. [`Key::secret`] is SipHash,
//! for results that peers do see: initial sequence numbers (RFC 6528), clock offsets,
//! ephemeral ports (RFC 6056) and cookies (RFC 4987). Each use has a salt of its own, so
//! that none tells about another.

use core::hash::Hasher;
use core::net::IpAddr;

use siphasher::sip::SipHasher24;

use crate::addr::{Endpoint, FourTuple};

/// The secret of one stack.
#[derive(Clone, Copy)]
pub(crate) struct Key(pub [u64; 2]);

/// What a secret is for.
#[derive(Clone, Copy)]
pub(crate) enum Salt {
    /// An initial sequence number, and the offset of the clock in timestamps.
    Numbers = 1,
    /// A SYN cookie.
    Cookie = 2,
    /// An ephemeral port for a connection.
    Port = 3,
    /// A budget for answers to unsolicited packets.
    Budget = 4,
    /// The name of a connection that has left: a table holds nothing but this.
    Departed = 5,
}

#[inline]
fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn words_of(end: Endpoint) -> u64 {
    let addr = match end.addr {
        IpAddr::V4(addr) => u64::from(addr.to_bits()),
        IpAddr::V6(addr) => {
            let bits = addr.to_bits();
            fold_multiply(bits as u64 ^ 0x9e37_79b9_7f4a_7c15, (bits >> 64) as u64 | 1)
        }
    };
    addr << 16 ^ u64::from(end.port)
}

impl Key {
    /// Of two words, for a table.
    #[inline]
    pub fn hash(&self, a: u64, b: u64) -> u64 {
        let first = fold_multiply(a ^ self.0[0], b ^ self.0[1] | 1);
        fold_multiply(first ^ self.0[1], 0x9e37_79b9_7f4a_7c15 ^ self.0[0] | 1)
    }

    /// Of a connection, for a table.
    #[inline]
    pub fn tuple(&self, tuple: &FourTuple) -> u64 {
        self.hash(words_of(tuple.local), words_of(tuple.remote))
    }

    /// Of a number that others may see a part of.
    pub fn secret_of(&self, salt: Salt, number: u64) -> u64 {
        let mut hasher = self.salted(salt);
        hasher.write_u64(number);
        hasher.finish()
    }

    /// Of a connection with two numbers, that its peer may see.
    pub fn secret(&self, salt: Salt, tuple: &FourTuple, numbers: [u32; 2]) -> u64 {
        let mut hasher = self.salted(salt);
        for end in [&tuple.local, &tuple.remote] {
            match end.addr {
                IpAddr::V4(addr) => hasher.write_u32(addr.to_bits()),
                IpAddr::V6(addr) => hasher.write_u128(addr.to_bits()),
            }
            hasher.write_u16(end.port);
        }
        numbers
            .into_iter()
            .for_each(|number| hasher.write_u32(number));
        hasher.finish()
    }

    fn salted(&self, salt: Salt) -> SipHasher24 {
        let [first, second] = self.0;
        let mut hasher = SipHasher24::new_with_keys(first, second);
        hasher.write_u8(salt as u8);
        hasher
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_secret_depends_on_each_part_of_its_input() {
        let end = |host, port| Endpoint::v4(Ipv4Addr::new(10, 0, 0, host), port);
        let of = |key, salt, local, remote, numbers| {
            Key(key).secret(salt, &FourTuple { local, remote }, numbers)
        };
        let (a, b) = (end(1, 80), end(2, 4000));
        let secrets = [
            of([1, 2], Salt::Numbers, a, b, [0, 0]),
            of([1, 3], Salt::Numbers, a, b, [0, 0]),
            of([1, 2], Salt::Cookie, a, b, [0, 0]),
            of([1, 2], Salt::Numbers, end(1, 81), b, [0, 0]),
            of([1, 2], Salt::Numbers, end(3, 80), b, [0, 0]),
            of([1, 2], Salt::Numbers, a, end(2, 4001), [0, 0]),
            of([1, 2], Salt::Numbers, b, a, [0, 0]),
            of([1, 2], Salt::Numbers, a, b, [1, 0]),
            of([1, 2], Salt::Numbers, a, b, [0, 1]),
        ];
        for (at, secret) in secrets.iter().enumerate() {
            assert!(!secrets[..at].contains(secret), "number {at}");
        }
    }
}
