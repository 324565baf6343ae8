//! What a blob is called: the SHA-256 of its bytes (OCI image specification, "Digests").

use std::fmt::{self, Display};
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

const PREFIX: &str = "sha256:";
const BYTES: usize = 32;

/// `sha256:` and 64 hexadecimal digits in lower case. It is safe as a file's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_sum(Sha256::digest(bytes).into())
    }

    fn from_sum(sum: [u8; BYTES]) -> Self {
        let digits = sum.iter().map(|byte| format!("{byte:02x}"));
        Self(digits.collect())
    }

    /// The digits alone.
    pub fn hex(&self) -> &str {
        &self.0
    }

    /// As many of the digits as people read.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }

    /// A UUID for what is made of the blob of this digest (RFC 9562, version 8).
    pub fn uuid(&self) -> [u8; 16] {
        let digit = |at: usize| u8::from_str_radix(&self.0[at..at + 2], 16).unwrap_or(0);
        let mut uuid: [u8; 16] = std::array::from_fn(|at| digit(at * 2));
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.strip_prefix(PREFIX)
            .filter(|digits| digits.len() == 2 * BYTES && digits.bytes().all(is_digit))
            .map(|digits| Self(digits.into()))
            .ok_or_else(|| Error::UnknownDigest { text: text.into() })
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

/// Passes bytes on, and knows what they were.
pub(crate) struct Summed<R> {
    inner: R,
    sum: Sha256,
    bytes: u64,
}

impl<R: Read> Summed<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            sum: Sha256::new(),
            bytes: 0,
        }
    }

    /// The digest of what went through, and how many bytes.
    pub(crate) fn finish(self) -> (Digest, u64) {
        (Digest::from_sum(self.sum.finalize().into()), self.bytes)
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.sum.update(&into[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_NOTHING: &str =
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        assert_eq!(Digest::of(b"").to_string(), OF_NOTHING);
        let mut summed = Summed::new(&b"abc"[..]);
        io::copy(&mut summed, &mut io::sink()).unwrap();
        assert_eq!(summed.finish(), (Digest::of(b"abc"), 3));
    }

    #[test]
    fn what_could_be_a_path_is_no_digest() {
        assert!(OF_NOTHING.parse::<Digest>().is_ok());
        for wrong in [
            "",
            "sha256:",
            "sha256:../../etc/passwd",
            "sha512:00",
            &OF_NOTHING.to_uppercase(),
        ] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_uuid_says_that_it_is_of_version_8() {
        let uuid = Digest::of(b"").uuid();
        assert_eq!((uuid[0], uuid[6] >> 4, uuid[8] >> 6), (0xe3, 8, 2));
    }
}
