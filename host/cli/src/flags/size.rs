//! Sizes as users type and read them: `10G`, `512M`.

use std::fmt::{self, Display};
use std::str::FromStr;

/// The letters of units: each is 1024 of the one before.
const UNITS: &str = "KMGT";
/// The smallest file system that has room for a journal.
const BYTES_MIN: u64 = 8 << 20;
/// The largest file of ext4, where the host may keep volumes.
const BYTES_MAX: u64 = (16 << 40) - (1 << 20);

/// A volume's size in bytes, a multiple of 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(u64);

impl ByteSize {
    /// That of a volume whose user names none.
    pub const DEFAULT: Self = Self(10 << 30);

    /// At least `bytes`, if a volume can be that large.
    pub fn of(bytes: u64) -> Option<Self> {
        let bytes = bytes.checked_next_multiple_of(1 << 20)?;
        (BYTES_MIN..=BYTES_MAX)
            .contains(&bytes)
            .then_some(Self(bytes))
    }

    /// Bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "give a number with M, G or T, such as 512M or 10G";
        let number_end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(number_end);
        let number: u64 = number.parse().map_err(|_| FORM)?;
        let unit = unit.to_ascii_uppercase();
        let letter = unit.trim_end_matches('B').trim_end_matches('I');
        let shift = match letter {
            // "10B" would be bytes, "10I" is nothing.
            "" if unit.is_empty() => 0,
            letter if letter.len() == 1 => UNITS.find(letter).ok_or(FORM)? as u32 * 10 + 10,
            _ => return Err(FORM.into()),
        };
        let bytes = number.checked_mul(1 << shift).ok_or(FORM)?;
        Self::of(bytes).ok_or_else(|| match bytes < BYTES_MIN {
            true => format!("{text} is less than a file system with a journal needs (8M): {FORM}"),
            false => format!("{text} is more than a volume can have (16T): {FORM}"),
        })
    }
}

impl Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self.0))
    }
}

/// Bytes in the largest unit of which there is one.
pub(crate) fn told(bytes: u64) -> String {
    let unit = (0..4).rev().find(|unit| bytes >> (10 * unit + 10) > 0);
    let Some(unit) = unit else {
        return format!("{bytes} B");
    };
    let tenths = bytes / (1 << (10 * unit)) * 10 / 1024;
    let letter = &UNITS[unit..=unit];
    match tenths % 10 {
        0 => format!("{} {letter}iB", tenths / 10),
        tenth => format!("{}.{tenth} {letter}iB", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| text.parse::<ByteSize>().map(ByteSize::bytes);
        assert_eq!(bytes("10G"), Ok(10 << 30));
        assert_eq!(bytes("512m"), Ok(512 << 20));
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("1tb"), Ok(1 << 40));
        assert_eq!(bytes("67108864"), Ok(64 << 20));
        assert_eq!(bytes("9000K"), Ok(9 << 20));
        for wrong in [
            "",
            "G",
            "10X",
            "-1G",
            "1.5G",
            "10GG",
            "10 G",
            "10I",
            "99999999T",
        ] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_that_cannot_be_say_why() {
        let why = |text: &str| text.parse::<ByteSize>().unwrap_err();
        assert!(
            why("1M").contains("less than a file system"),
            "{}",
            why("1M")
        );
        assert!(why("17T").contains("more than a volume"), "{}", why("17T"));
    }

    #[test]
    fn bytes_are_told_in_fitting_units() {
        assert_eq!(told(999), "999 B");
        assert_eq!(told(10 << 30), "10 GiB");
        assert_eq!(told((3 << 20) / 2), "1.5 MiB");
    }
}
