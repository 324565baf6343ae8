//! What is asked of the kernel about areas, and how it answers: lines of text for whoever administrates them
//! (`/dev/vsa/control`), and requests of ioctl(2) for who holds one (`/dev/vsa/NAME`).
//!
//! A line is one write(2); its error is the call's. A disk is called as in /dev, without that; an area's name
//! stands last and may hold any byte but zero, a slash and a line's end. Reading says, a line each:
//! ```text
//! disk vda BLOCK_BYTES FREE_BLOCKS COPIES
//! quota vda UID BLOCKS                      UID or * for all others
//! area vda UID BLOCKS NAME
//! ```

use alloc::vec::Vec;
use core::str;

/// Makes the rings; the argument is their number of entries.
pub const SETUP: u32 = 0xda10;
/// Pins memory: the argument is the address of two words, where it begins and its bytes.
pub const REGISTER: u32 = 0xda11;
/// Rings the driver's bell.
pub const BELL: u32 = 0xda12;
/// Takes the area as it is now, after it was resized, for the ring too; tells its geometry as [`GEOMETRY`] does.
pub const RENEW: u32 = 0xda13;
/// Writes two words to the argument's address: blocks and bytes of a block.
pub const GEOMETRY: u32 = 0xda14;
/// Rings the bell and waits until a completion is there; the argument is for how many nanoseconds at most.
pub const BELL_AND_WAIT: u32 = 0xda15;

/// What an administrator or owner asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Makes an empty catalogue on a disk.
    Format {
        /// Which.
        disk: &'a str,
    },
    /// Makes an area.
    Create {
        /// On which disk.
        disk: &'a str,
        /// Whose.
        owner: u32,
        /// How long; rounded up to blocks.
        bytes: u64,
        /// What it is to be called.
        name: &'a [u8],
    },
    /// Gives an area another size.
    Resize {
        /// How long; rounded up to blocks.
        bytes: u64,
        /// Which.
        name: &'a [u8],
    },
    /// Forgets an area.
    Delete {
        /// Which.
        name: &'a [u8],
    },
    /// Takes an area from all who have it open.
    Revoke {
        /// Which.
        name: &'a [u8],
    },
    /// Says how much a user may have.
    Quota {
        /// On which disk.
        disk: &'a str,
        /// Who; all others if nobody.
        owner: Option<u32>,
        /// How many bytes; as all others, or as much as there is, if nothing.
        bytes: Option<u64>,
    },
}

impl<'a> Request<'a> {
    /// What a line says, if it makes sense.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let (verb, mut rest) = word(line)?;
        let request = match verb {
            "format" => Self::Format {
                disk: field(&mut rest)?,
            },
            "create" => Self::Create {
                disk: field(&mut rest)?,
                owner: field(&mut rest)?.parse().ok()?,
                bytes: field(&mut rest)?.parse().ok()?,
                name: core::mem::take(&mut rest),
            },
            "resize" => Self::Resize {
                bytes: field(&mut rest)?.parse().ok()?,
                name: core::mem::take(&mut rest),
            },
            "delete" => Self::Delete {
                name: core::mem::take(&mut rest),
            },
            "revoke" => Self::Revoke {
                name: core::mem::take(&mut rest),
            },
            "quota" => Self::Quota {
                disk: field(&mut rest)?,
                owner: or_star(field(&mut rest)?, "*")?,
                bytes: or_star(field(&mut rest)?, "none")?,
            },
            _ => return None,
        };
        rest.is_empty().then_some(request)
    }

    /// The line.
    pub fn line(&self) -> Vec<u8> {
        let (head, name): (_, &[u8]) = match self {
            Self::Format { disk } => (alloc::format!("format {disk}"), b""),
            Self::Create {
                disk,
                owner,
                bytes,
                name,
            } => (alloc::format!("create {disk} {owner} {bytes} "), *name),
            Self::Resize { bytes, name } => (alloc::format!("resize {bytes} "), *name),
            Self::Delete { name } => ("delete ".into(), *name),
            Self::Revoke { name } => ("revoke ".into(), *name),
            Self::Quota { disk, owner, bytes } => {
                let owner = owner.map_or("*".into(), |owner| alloc::format!("{owner}"));
                let bytes = bytes.map_or("none".into(), |bytes| alloc::format!("{bytes}"));
                (alloc::format!("quota {disk} {owner} {bytes}"), b"")
            }
        };
        let mut line = head.into_bytes();
        line.extend_from_slice(name);
        line
    }
}

/// The bytes up to the next blank, and those behind it.
fn word(line: &[u8]) -> Option<(&str, &[u8])> {
    let end = line.iter().position(|byte| *byte == b' ');
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    let word = str::from_utf8(word).ok().filter(|word| !word.is_empty())?;
    Some((word, rest.strip_prefix(b" ").unwrap_or(rest)))
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (field, behind) = word(rest)?;
    *rest = behind;
    Some(field)
}

/// A number, or nothing where the text says so; `None` for neither.
fn or_star<T: str::FromStr>(text: &str, nothing: &str) -> Option<Option<T>> {
    match text == nothing {
        true => Some(None),
        false => text.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::Request;

    #[test]
    fn lines_say_what_was_asked() {
        let name: &[u8] = b"two words";
        let all = [
            Request::Format { disk: "vda1" },
            Request::Create {
                disk: "nvme0n1",
                owner: 1000,
                bytes: 1 << 40,
                name,
            },
            Request::Resize { bytes: 4096, name },
            Request::Delete { name },
            Request::Revoke { name },
            Request::Quota {
                disk: "vda",
                owner: Some(7),
                bytes: Some(9),
            },
            Request::Quota {
                disk: "vda",
                owner: None,
                bytes: None,
            },
        ];
        for request in all {
            assert_eq!(Request::parse(&request.line()), Some(request.clone()));
            assert!(Request::parse(&[&request.line()[..], b"\n"].concat()).is_some());
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let lines: [&[u8]; 9] = [
            b"",
            b"format",
            b"format vda more",
            b"create vda",
            b"create vda x 1 name",
            b"quota vda 1",
            b"quota vda -1 4",
            b"resize many name",
            b"\xff vda",
        ];
        for line in lines {
            assert_eq!(Request::parse(line), None);
        }
    }
}
