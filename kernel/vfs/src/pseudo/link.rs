//! A symbolic link whose target is found when it is followed.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use sync::Result;

use crate::file::{File, OpenFile};
use crate::{FileType, Inode, Metadata, Path};

/// What a link leads to.
pub enum Target {
    /// A path to walk on with.
    Text(Vec<u8>),
    /// A place, whatever its name.
    Place(Path),
    /// An open file without a place; the text is for people.
    Open(Arc<OpenFile>, Vec<u8>),
}

type Find = Box<dyn Fn() -> Result<Target> + Send + Sync>;

/// The inode.
pub struct Link {
    metadata: Metadata,
    find: Find,
}

impl Link {
    /// A link whose target `find` tells.
    pub fn new(metadata: Metadata, find: Find) -> Arc<Self> {
        Arc::new(Self { metadata, find })
    }
}

impl File for Link {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Link {
    fn kind(&self) -> FileType {
        FileType::Symlink
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        Ok(match (self.find)()? {
            Target::Text(text) | Target::Open(_, text) => text,
            Target::Place(place) => place.name(),
        })
    }

    fn jump(&self) -> Option<Result<Path>> {
        match (self.find)() {
            Ok(Target::Text(_)) => None,
            Ok(Target::Place(place)) => Some(Ok(place)),
            Ok(Target::Open(open, text)) => Some(Ok(super::reopen::place_of(open, &text))),
            Err(error) => Some(Err(error)),
        }
    }
}
