//! A file with generated text.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::sync::Spin;

use crate::error::{Error, Result};
use crate::file::{File, FileRef, OpenFile};
use crate::fs::{FileType, Inode, Metadata, Timestamp};
use crate::io::{Sink, Source};

/// Makes the text of a file.
pub type Generate = Box<dyn Fn(&mut String) -> Result<()> + Send + Sync>;

/// Takes what a program wrote.
pub type Take = Box<dyn Fn(&[u8]) -> Result<()> + Send + Sync>;

/// The longest text that a program may store.
const STORE_BYTES_MAX: usize = 256;

/// The inode.
pub struct TextFile {
    metadata: Metadata,
    content: Arc<Content>,
}

struct Content {
    generate: Generate,
    store: Option<Take>,
}

impl TextFile {
    /// A file of these properties.
    pub fn new(mut metadata: Metadata, generate: Generate, store: Option<Take>) -> Arc<Self> {
        let now = Timestamp::now();
        (metadata.accessed, metadata.modified, metadata.changed) = (now, now, now);
        Arc::new(Self {
            metadata,
            content: Arc::new(Content { generate, store }),
        })
    }
}

impl File for TextFile {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for TextFile {
    fn kind(&self) -> FileType {
        FileType::Regular
    }

    fn open(&self) -> Option<Result<FileRef>> {
        let text = Spin::new(Arc::default());
        Some(Ok(Arc::new(OpenText {
            content: self.content.clone(),
            text,
        })))
    }

    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
}

/// One opening: the text as it was when it was last read from the start.
struct OpenText {
    content: Arc<Content>,
    text: Spin<Arc<Vec<u8>>>,
}

impl File for OpenText {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        if offset == 0 {
            let mut text = String::new();
            (self.content.generate)(&mut text)?;
            let old = core::mem::replace(&mut *self.text.lock(), Arc::new(text.into_bytes()));
            drop(old);
        }
        let text = self.text.lock().clone();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        to.put(text.get(start..).unwrap_or(&[]))
    }

    fn write_at(&self, _open: &OpenFile, _offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let store = self.content.store.as_ref().ok_or(Error::AccessDenied)?;
        let mut text = [0; STORE_BYTES_MAX];
        let count = from.take(&mut text)?;
        store(&text[..count])?;
        Ok(count)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
