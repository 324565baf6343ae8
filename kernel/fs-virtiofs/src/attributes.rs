//! Attributes as the protocol has them, and as the kernel has them.

use fs_host::timestamp;
use fuse::{Attributes, SetAttributes, SetTime, Time};
use vfs::{Change, FileType, Metadata, Timestamp};

pub(crate) const MODE_BITS: u32 = 0o7777;

/// What the attributes of an inode of the file system `device` say; `None` if it is of no kind that there is.
pub(crate) fn metadata_of(device: u64, found: &Attributes) -> Option<Metadata> {
    let kind = FileType::from_mode(found.mode)?;
    let mut metadata = Metadata::new(device, found.number, kind, found.mode & MODE_BITS);
    metadata.links = found.links;
    metadata.uid = found.uid;
    metadata.gid = found.gid;
    metadata.node = u64::from(found.device);
    metadata.size = found.size;
    metadata.blocks = found.blocks;
    metadata.accessed = time_of(found.accessed);
    metadata.modified = time_of(found.modified);
    metadata.changed = time_of(found.changed);
    metadata.created = metadata.changed;
    Some(metadata)
}

/// A change of an inode of this kind.
pub(crate) fn set_of(kind: FileType, change: &Change) -> SetAttributes {
    SetAttributes {
        mode: change.mode.map(|mode| kind as u32 | mode & MODE_BITS),
        uid: change.uid,
        gid: change.gid,
        accessed: change.accessed.map(set_time),
        modified: change.modified.map(set_time),
        ..SetAttributes::default()
    }
}

fn time_of(time: Time) -> Timestamp {
    timestamp(time.seconds, u64::from(time.nanos))
}

fn set_time(time: Timestamp) -> SetTime {
    SetTime::To(Time {
        seconds: time.seconds as u64,
        nanos: time.nanos,
    })
}
