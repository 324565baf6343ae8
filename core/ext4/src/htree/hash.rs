//! Hashes of names: a variant of MD4, TEA, and that of ext2's first index.
//!
//! Names are hashed as signed or unsigned characters, as was the custom of the machine that made
//! the image. The lowest bit of a hash is used for something else, and is 0.

use crate::error::{Error, Result};

/// What names are hashed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hasher {
    method: Method,
    is_unsigned: bool,
    seed: [u32; 4],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Method {
    Legacy,
    HalfMd4,
    Tea,
}

/// The end of a listing by hash; no name has this.
const END: u32 = 0x7fff_ffff << 1;
const SEED: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// A name's hash, and the bits that decide between equal ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Hash {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Hasher {
    /// By the version that a directory's root says.
    pub(crate) fn new(version: u8, is_unsigned: bool, seed: [u32; 4]) -> Result<Self> {
        let method = match version % 3 {
            _ if version > 5 => return Err(Error::Unsupported),
            0 => Method::Legacy,
            1 => Method::HalfMd4,
            _ => Method::Tea,
        };
        let seed = if seed == [0; 4] { SEED } else { seed };
        Ok(Self {
            method,
            is_unsigned: is_unsigned || version > 2,
            seed,
        })
    }

    /// The hash of a name.
    pub(crate) fn hash(&self, name: &[u8]) -> Hash {
        let mut state = self.seed;
        match self.method {
            Method::Legacy => state = [0, self.legacy(name), 0, 0],
            Method::HalfMd4 => {
                for chunk in chunks(name, 32) {
                    half_md4(&mut state, &self.words::<8>(chunk));
                }
            }
            Method::Tea => {
                for chunk in chunks(name, 16) {
                    tea(&mut state, &self.words::<4>(chunk));
                }
            }
        }
        let [first, second, third, _] = state;
        let (major, minor) = match self.method {
            Method::Legacy => (second, 0),
            Method::HalfMd4 => (second, third),
            Method::Tea => (first, second),
        };
        let major = major & !1;
        Hash {
            major: if major == END { END - 2 } else { major },
            minor,
        }
    }

    fn signed(&self, byte: u8) -> u32 {
        if self.is_unsigned {
            u32::from(byte)
        } else {
            i32::from(byte as i8) as u32
        }
    }

    /// The first bytes of `chunk` as words, filled up with its length.
    fn words<const N: usize>(&self, chunk: &[u8]) -> [u32; N] {
        let len = chunk.len() as u32;
        let pad = len | len << 8;
        let pad = pad | pad << 16;
        let mut words = [pad; N];
        let bytes = chunk.get(..chunk.len().min(N * 4)).unwrap_or(chunk);
        for (word, four) in words.iter_mut().zip(bytes.chunks(4)) {
            *word = four
                .iter()
                .fold(pad, |word, byte| self.signed(*byte).wrapping_add(word << 8));
        }
        words
    }

    fn legacy(&self, name: &[u8]) -> u32 {
        let (mut last, mut before) = (0x12a3_fe2d_u32, 0x37ab_e8f9_u32);
        for byte in name {
            let mixed = self.signed(*byte).wrapping_mul(7_152_373);
            let mut hash = before.wrapping_add(last ^ mixed);
            if hash & 0x8000_0000 != 0 {
                hash = hash.wrapping_sub(0x7fff_ffff);
            }
            before = last;
            last = hash;
        }
        last << 1
    }
}

/// The rest of the name from each multiple of `step` on: padding depends on how much is left.
fn chunks(name: &[u8], step: usize) -> impl Iterator<Item = &[u8]> {
    (0..name.len())
        .step_by(step)
        .filter_map(|at| name.get(at..))
}

/// Eight steps of MD4.
struct Round {
    words: [u32; 8],
    constant: u32,
    shifts: [u32; 4],
    mix: fn(u32, u32, u32) -> u32,
}

fn half_md4(state: &mut [u32; 4], input: &[u32; 8]) {
    const K2: u32 = 0x5a82_7999;
    const K3: u32 = 0x6ed9_eba1;
    let [i0, i1, i2, i3, i4, i5, i6, i7] = *input;
    let first = Round {
        words: [i0, i1, i2, i3, i4, i5, i6, i7],
        constant: 0,
        shifts: [3, 7, 11, 19],
        mix: |x, y, z| z ^ (x & (y ^ z)),
    };
    let second = Round {
        words: [i1, i3, i5, i7, i0, i2, i4, i6],
        constant: K2,
        shifts: [3, 5, 9, 13],
        mix: |x, y, z| (x & y).wrapping_add((x ^ y) & z),
    };
    let third = Round {
        words: [i3, i7, i2, i6, i1, i5, i0, i4],
        constant: K3,
        shifts: [3, 9, 11, 15],
        mix: |x, y, z| x ^ y ^ z,
    };
    let [mut a, mut b, mut c, mut d] = *state;
    for round in [first, second, third] {
        for (word, shift) in round.words.iter().zip(round.shifts.iter().cycle()) {
            let mixed = a.wrapping_add((round.mix)(b, c, d));
            let sum = mixed.wrapping_add(word.wrapping_add(round.constant));
            (a, b, c, d) = (d, sum.rotate_left(*shift), b, c);
        }
    }
    for (value, add) in state.iter_mut().zip([a, b, c, d]) {
        *value = value.wrapping_add(add);
    }
}

fn tea(state: &mut [u32; 4], input: &[u32; 4]) {
    const DELTA: u32 = 0x9e37_79b9;
    let [a, b, c, d] = *input;
    let [mut b0, mut b1, _, _] = *state;
    let mut sum = 0u32;
    for _ in 0..16 {
        sum = sum.wrapping_add(DELTA);
        let mixed = (b1 << 4).wrapping_add(a) ^ b1.wrapping_add(sum) ^ (b1 >> 5).wrapping_add(b);
        b0 = b0.wrapping_add(mixed);
        let mixed = (b0 << 4).wrapping_add(c) ^ b0.wrapping_add(sum) ^ (b0 >> 5).wrapping_add(d);
        b1 = b1.wrapping_add(mixed);
    }
    let [first, second, ..] = state;
    *first = first.wrapping_add(b0);
    *second = second.wrapping_add(b1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::process::Command;
    use std::string::String;

    /// What debugfs says that the hash of `name` is.
    fn of_debugfs(method: &str, name: &str) -> Option<Hash> {
        let request = format!("dx_hash -h {method} {name}");
        let output = Command::new("debugfs")
            .args(["-R", &request])
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut numbers = text.split("0x").skip(1).map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_hexdigit).collect();
            u32::from_str_radix(&digits, 16).unwrap_or(0)
        });
        Some(Hash {
            major: numbers.next()?,
            minor: numbers.next()?,
        })
    }

    #[test]
    fn hashes_are_those_of_e2fsprogs() {
        let names = [
            "a",
            "lost+found",
            "a-name-of-more-than-sixteen-bytes",
            "file-0001",
            "one-that-is-longer-than-thirty-two-bytes-and-then-some-more-of-them-too",
        ];
        for (version, method) in [(0, "legacy"), (1, "half_md4"), (2, "tea")] {
            let hasher = Hasher::new(version, false, [0; 4]).expect("a known method");
            for name in names {
                assert_eq!(
                    Some(hasher.hash(name.as_bytes())),
                    of_debugfs(method, name),
                    "{method} {name}"
                );
            }
        }
    }
}
