//! A keyed hash: peers choose addresses and ports, so they must not choose buckets.
//!
//! Two rounds of multiply-and-fold under a secret key are enough for a table whose
//! collisions an attacker cannot observe, and take a dozen instructions. The same
//! function with other inputs offsets ports (RFC 6056), sequence numbers (RFC 6528), and
//! cookies.

use core::net::IpAddr;

use crate::addr::{Endpoint, FourTuple};

/// The secret of one stack.
#[derive(Clone, Copy)]
pub(crate) struct Key(pub [u64; 2]);

fn fold_multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

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
    /// Of two words.
    pub fn hash(&self, a: u64, b: u64) -> u64 {
        let first = fold_multiply(a ^ self.0[0], b ^ self.0[1] | 1);
        fold_multiply(first ^ self.0[1], 0x9e37_79b9_7f4a_7c15 ^ self.0[0] | 1)
    }

    /// Of a connection.
    pub fn tuple(&self, tuple: &FourTuple) -> u64 {
        self.hash(words_of(tuple.local), words_of(tuple.remote))
    }

    /// Of a connection with something else.
    pub fn tuple_with(&self, tuple: &FourTuple, salt: u64) -> u64 {
        self.hash(self.tuple(tuple), salt)
    }
}
