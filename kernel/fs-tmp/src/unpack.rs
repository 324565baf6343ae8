//! Fills a file system from a cpio archive that stays where it is.

use alloc::sync::Arc;

use cpio::{Archive, Entry, Kind, ReadError};
use sync::Error;

use super::node::{Node, Origin};
use super::{System, Tmpfs};
use vfs::{FileType, New, Timestamp, device_number};

/// Why an archive could not be unpacked.
#[derive(Debug)]
pub enum UnpackError {
    /// It is damaged.
    Archive(ReadError),
    /// A member could not be created.
    Member(Error),
}

/// Creates every member of `archive` below the top of `into`.
///
/// A directory that is missing in a path is made; a name that comes twice means the last
/// member. Returns the number of members.
pub fn unpack(archive: &'static [u8], into: &Tmpfs) -> Result<usize, UnpackError> {
    let mut count = 0;
    for entry in Archive::new(archive) {
        add(
            &into.system,
            &into.root,
            &entry.map_err(UnpackError::Archive)?,
        )
        .map_err(UnpackError::Member)?;
        count += 1;
    }
    Ok(count)
}

fn add(system: &Arc<System>, root: &Arc<Node>, entry: &Entry<'static>) -> Result<(), Error> {
    let mut parts = entry
        .name
        .split(|byte| *byte == b'/')
        .filter(is_name)
        .peekable();
    let mut at = root.clone();
    while let Some(part) = parts.next() {
        let existing = at.child(part);
        at = match (existing, parts.peek().is_some()) {
            (Ok(child), true) => child,
            (Err(_), true) => add_directory(system, &at, part)?,
            (Ok(child), false) if entry.kind() == Kind::Directory => {
                return child.take_owner(entry);
            }
            (_, false) => {
                let node = make(system, entry)?;
                return at.add(part, &node);
            }
        };
    }
    Ok(())
}

fn is_name(part: &&[u8]) -> bool {
    !part.is_empty() && *part != b"." && *part != b".."
}

fn add_directory(system: &Arc<System>, at: &Node, name: &[u8]) -> Result<Arc<Node>, Error> {
    let new = New {
        kind: FileType::Directory,
        mode: 0o755,
        uid: 0,
        gid: 0,
        device: 0,
        target: &[],
    };
    let node = Node::new(
        system,
        &new,
        &Origin {
            boot: &[],
            time: Timestamp::default(),
        },
    );
    at.add(name, &node)?;
    Ok(node)
}

fn make(system: &Arc<System>, entry: &Entry<'static>) -> Result<Arc<Node>, Error> {
    let kind = FileType::from_mode(entry.mode).ok_or(Error::Invalid)?;
    let is_link = kind == FileType::Symlink;
    let new = New {
        kind,
        mode: entry.mode & 0o7777,
        uid: entry.uid,
        gid: entry.gid,
        device: device_number(entry.rdev.0, entry.rdev.1),
        target: if is_link { entry.data } else { &[] },
    };
    let boot = if kind == FileType::Regular {
        entry.data
    } else {
        &[]
    };
    let time = Timestamp {
        seconds: i64::from(entry.mtime_s),
        nanos: 0,
    };
    Ok(Node::new(system, &new, &Origin { boot, time }))
}
