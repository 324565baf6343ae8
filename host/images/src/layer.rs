//! A layer: a tar archive, perhaps compressed, whose entries change the tree below.
//!
//! Its names are those of whoever made it. Here each becomes a list of plain words, so nothing that works
//! on entries can be led out of the tree by `..`, by a leading slash or by a name that is too long.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use ext4::{FileType, Time};

/// The unit of archives.
const BLOCK_BYTES: usize = 512;
const BUFFER_BYTES: usize = 256 << 10;
/// Linux's limits.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4096;
/// Entries of one layer; each takes memory.
const ENTRIES_MAX: usize = 1 << 22;
/// Attributes of a file, which lie in one block, and what each takes beside name and value.
const ATTRIBUTES_BYTES_MAX: usize = 4000;
const ATTRIBUTE_OWN_BYTES: usize = 24;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// How PAX headers spell extended attributes.
const ATTRIBUTE: &str = "SCHILY.xattr.";

/// A path as its words, from the root on.
pub(crate) type Words = Vec<Vec<u8>>;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Words,
    pub(crate) kind: Kind,
    pub(crate) meta: Meta,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File {
        bytes: u64,
    },
    Symlink(Vec<u8>),
    HardLink(Words),
    /// A device or a named pipe.
    Special {
        kind: FileType,
        device: (u32, u32),
    },
}

/// Whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) modified: Time,
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The bytes of the archive in `blob`, whichever way they are compressed.
pub(crate) fn unpacked(mut blob: File) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    (&blob).take(4).read_to_end(&mut start)?;
    blob.rewind()?;
    let blob = BufReader::with_capacity(BUFFER_BYTES, blob);
    Ok(match start {
        start if start.starts_with(GZIP) => Box::new(flate2::bufread::MultiGzDecoder::new(blob)),
        start if start == ZSTD => {
            Box::new(ruzstd::decoding::StreamingDecoder::new(blob).map_err(io::Error::other)?)
        }
        _ => Box::new(blob),
    })
}

/// What is done with an entry: its number in the layer, itself, its bytes.
pub(crate) type Visitor<'a> = &'a mut dyn FnMut(usize, Entry, &mut dyn Read) -> Result<(), Stop>;

/// Why a layer was not read to its end.
pub(crate) enum Stop {
    /// It is no layer: a part of a sentence.
    Bad(String),
    /// Something else, which is not its fault.
    Other(crate::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

/// Shows all entries of the archive, and reads it to its end.
pub(crate) fn visit(archive: &mut dyn Read, visitor: Visitor<'_>) -> Result<(), Stop> {
    let mut entries = tar::Archive::new(Padded::new(&mut *archive));
    for (number, entry) in entries.entries()?.enumerate() {
        if number >= ENTRIES_MAX {
            return Err(Stop::Bad(format!("it has more than {ENTRIES_MAX} entries")));
        }
        let mut entry = entry?;
        if let Some(read) = read(&mut entry)? {
            visitor(number, read, &mut entry)?;
        }
    }
    // What follows the end of the archive counts for its digest.
    io::copy(archive, &mut io::sink())?;
    Ok(())
}

/// An archive that ends with a whole block: some makers, umoci among them, leave out what fills the last one.
struct Padded<R> {
    inner: R,
    /// Bytes of the last block that came.
    within: usize,
}

impl<R: Read> Padded<R> {
    fn new(inner: R) -> Self {
        Self { inner, within: 0 }
    }
}

impl<R: Read> Read for Padded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = self.inner.read(into)?;
        if count == 0 && self.within > 0 {
            count = into.len().min(BLOCK_BYTES - self.within);
            into.iter_mut().take(count).for_each(|byte| *byte = 0);
        }
        self.within = (self.within + count) % BLOCK_BYTES;
        Ok(count)
    }
}

/// Reads a header; `None` for one that tells nothing of a file.
fn read<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Option<Entry>, Stop> {
    let path = words(&entry.path_bytes())?;
    let target = entry.link_name_bytes().map(|target| target.into_owned());
    let target = || {
        let bad = || Stop::Bad("a link leads nowhere".into());
        target
            .clone()
            .filter(|target| !target.is_empty())
            .ok_or_else(bad)
    };
    let header = entry.header();
    // Only devices have numbers there, with others the field may hold anything.
    let device = |kind| -> Result<Kind, Stop> {
        let device = (
            header.device_major()?.unwrap_or(0),
            header.device_minor()?.unwrap_or(0),
        );
        Ok(Kind::Special { kind, device })
    };
    use tar::EntryType;
    let kind = match header.entry_type() {
        EntryType::Directory => Kind::Directory,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File {
            bytes: entry.size(),
        },
        EntryType::Symlink => Kind::Symlink(target()?),
        EntryType::Link => Kind::HardLink(words(&target()?)?),
        EntryType::Char => device(FileType::CharDevice)?,
        EntryType::Block => device(FileType::BlockDevice)?,
        EntryType::Fifo => Kind::Special {
            kind: FileType::Fifo,
            device: (0, 0),
        },
        EntryType::XGlobalHeader => return Ok(None),
        other => {
            return Err(Stop::Bad(format!(
                "an entry is of the unknown kind {other:?}"
            )));
        }
    };
    if matches!(&kind, Kind::Symlink(target) if target.len() >= PATH_BYTES_MAX) {
        return Err(Stop::Bad("a link's text is too long".into()));
    }
    let meta = meta(entry)?;
    Ok(Some(Entry { path, kind, meta }))
}

fn meta<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Meta, Stop> {
    let header = entry.header();
    let id =
        |id: u64| u32::try_from(id).map_err(|_| Stop::Bad("an owner's number is too large".into()));
    let mut meta = Meta {
        mode: (header.mode()? & 0o7777) as u16,
        uid: id(header.uid()?)?,
        gid: id(header.gid()?)?,
        modified: Time {
            seconds: i64::try_from(header.mtime()?).unwrap_or(i64::MAX),
            nanos: 0,
        },
        attributes: Vec::new(),
    };
    let Some(extensions) = entry.pax_extensions()? else {
        return Ok(meta);
    };
    for extension in extensions {
        let extension = extension?;
        let (Ok(key), value) = (extension.key(), extension.value_bytes()) else {
            continue;
        };
        let number = || std::str::from_utf8(value).ok()?.parse().ok();
        match key {
            "uid" => meta.uid = number().unwrap_or(meta.uid),
            "gid" => meta.gid = number().unwrap_or(meta.gid),
            "mtime" => meta.modified = time(value).unwrap_or(meta.modified),
            _ => meta.attributes.extend(attribute(key, value)),
        }
    }
    let bytes = |(name, value): &(Vec<u8>, Vec<u8>)| name.len() + value.len() + ATTRIBUTE_OWN_BYTES;
    match meta.attributes.iter().map(bytes).sum::<usize>() <= ATTRIBUTES_BYTES_MAX {
        true => Ok(meta),
        false => Err(Stop::Bad(
            "a file's attributes are too long for ext4".into(),
        )),
    }
}

/// Attributes that a file system on a disk keeps; access control lists have another form there.
fn attribute(key: &str, value: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let name = key.strip_prefix(ATTRIBUTE)?;
    let is_kept = ["user.", "security.", "trusted."]
        .iter()
        .any(|prefix| name.len() > prefix.len() && name.starts_with(prefix));
    let is_kept = is_kept && !name.starts_with("trusted.overlay.") && name.len() <= NAME_BYTES_MAX;
    is_kept.then(|| (name.into(), value.into()))
}

/// PAX's decimal seconds.
fn time(text: &[u8]) -> Option<Time> {
    const DIGITS: usize = 9;
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_before = seconds.starts_with('-');
    let seconds: i64 = seconds.parse().ok()?;
    let padded: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(DIGITS)
        .collect();
    let nanos: u32 = padded.parse().ok()?;
    Some(match is_before && nanos > 0 {
        true => Time {
            seconds: seconds.checked_sub(1)?,
            nanos: 1_000_000_000 - nanos,
        },
        false => Time { seconds, nanos },
    })
}

/// Splits a path; a leading slash and single dots say nothing.
fn words(path: &[u8]) -> Result<Words, Stop> {
    let told = || {
        String::from_utf8_lossy(path)
            .chars()
            .take(200)
            .collect::<String>()
    };
    if path.len() >= PATH_BYTES_MAX || path.contains(&0) {
        return Err(Stop::Bad(format!("the path {:?} is too long", told())));
    }
    let words = path.split(|&byte| byte == b'/');
    let words: Words = words
        .filter(|word| !word.is_empty() && *word != b".")
        .map(<[u8]>::to_vec)
        .collect();
    if words.iter().any(|word| word == b"..") {
        return Err(Stop::Bad(format!(
            "the path {:?} climbs out of the image",
            told()
        )));
    }
    match words.iter().all(|word| word.len() <= NAME_BYTES_MAX) {
        true => Ok(words),
        false => Err(Stop::Bad(format!("a name in {:?} is too long", told()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(path: &[u8]) -> Option<Words> {
        words(path).ok()
    }

    #[test]
    fn a_path_is_words_and_never_climbs() {
        assert_eq!(split(b"./a//b/."), Some(vec![b"a".to_vec(), b"b".to_vec()]));
        assert_eq!(split(b"/"), Some(vec![]));
        for wrong in [&b"../x"[..], b"a/../../x", b"a/..", &[b'x'; 256], b"a\0b"] {
            assert_eq!(split(wrong), None);
        }
    }

    #[test]
    fn a_last_block_that_is_not_full_is_filled_with_zeroes() {
        let padded = |length: usize| {
            let mut bytes = Vec::new();
            Padded::new(&vec![7; length][..])
                .read_to_end(&mut bytes)
                .unwrap();
            (bytes.len(), bytes.iter().filter(|&&byte| byte == 7).count())
        };
        assert_eq!(padded(0), (0, 0));
        assert_eq!(padded(512), (512, 512));
        assert_eq!(padded(700), (1024, 700));
    }

    #[test]
    fn times_have_fractions_and_may_lie_before_1970() {
        let of = |text: &str| time(text.as_bytes()).map(|time| (time.seconds, time.nanos));
        assert_eq!(of("12.5"), Some((12, 500_000_000)));
        assert_eq!(of("12"), Some((12, 0)));
        assert_eq!(of("-1.25"), Some((-2, 750_000_000)));
        assert_eq!(of("x"), None);
    }

    #[test]
    fn attributes_of_disks_are_kept_and_those_of_overlays_are_not() {
        let kept = |name: &str| attribute(&format!("SCHILY.xattr.{name}"), b"v").is_some();
        assert!(kept("security.capability") && kept("user.a"));
        assert!(
            !kept("trusted.overlay.opaque") && !kept("system.posix_acl_access") && !kept("user.")
        );
    }
}
