//! A place for what has none: where a link in /proc/PID/fd to a pipe or socket leads.

use alloc::sync::Arc;

use mach::sync::Once;
use sync::Result;

use crate::file::{File, OpenFile};
use crate::mount::RootFs;
use crate::{Dentry, FileType, Inode, Metadata, Mount, Path};

/// The inode: opening it opens the same object again.
struct Opened(Arc<OpenFile>);

impl File for Opened {
    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Opened {
    fn kind(&self) -> FileType {
        self.0
            .metadata()
            .map_or(FileType::Anonymous, |metadata| metadata.kind)
    }

    fn reopen(&self) -> Option<Arc<OpenFile>> {
        Some(self.0.clone())
    }
}

/// A nameless place that stands for `open`.
pub fn place_of(open: Arc<OpenFile>, text: &[u8]) -> Path {
    /// One for all: no name leads there.
    static HOME: Once<Arc<Mount>> = Once::new();
    let mount = HOME.call_once(|| Mount::hidden(RootFs::new())).clone();
    Path {
        mount,
        dentry: Dentry::root(Arc::new(Opened(open)), text, false),
    }
}
