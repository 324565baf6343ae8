//! A file with generated text.
//!
//! The text is made in pieces of a few kilobytes, each of whole records; an open file keeps one
//! piece and where the next one starts. So what it takes does not grow with the text, and no
//! lock is held for all of it. A text that fits into one piece is seen as it was at one
//! moment; of a longer one each record is, and one that comes or goes between two pieces may
//! be seen or not (as with Linux's seq_file). Reading from offset 0 starts anew.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible;
use mach::sync::Spin;
use mm::io::{Sink, Source};
use sync::{Error, Result};

use super::Text;
use crate::file::{File, FileRef, OpenFile};
use crate::{FileType, Inode, Metadata, Timestamp};

/// Makes all of a file's text.
pub type Generate = Box<dyn Fn(&mut Text) -> Result<()> + Send + Sync>;

/// Makes a piece of a file's text: the records from a cursor on (0 at the start), as many as
/// [`Text::is_piece`] asks for. Returns the cursor of the next piece, if there is one.
pub type GeneratePiece = Box<dyn Fn(u64, &mut Text) -> Result<Option<u64>> + Send + Sync>;

/// Takes what a program wrote.
pub type Take = Box<dyn Fn(&[u8]) -> Result<()> + Send + Sync>;

/// The longest text that a program may store.
const STORE_BYTES_MAX: usize = 256;

/// How the text is made.
enum Maker {
    Whole(Generate),
    Pieces(GeneratePiece),
}

/// The inode.
pub struct TextFile {
    metadata: Metadata,
    content: Arc<Content>,
}

struct Content {
    maker: Maker,
    store: Option<Take>,
}

impl TextFile {
    /// A file of these properties whose text is short.
    pub fn new(metadata: Metadata, generate: Generate, store: Option<Take>) -> Arc<Self> {
        Self::of(metadata, Maker::Whole(generate), store)
    }

    /// A file whose text is as long as programs make it.
    pub fn in_pieces(metadata: Metadata, generate: GeneratePiece) -> Arc<Self> {
        Self::of(metadata, Maker::Pieces(generate), None)
    }

    fn of(mut metadata: Metadata, maker: Maker, store: Option<Take>) -> Arc<Self> {
        let now = Timestamp::now();
        (metadata.accessed, metadata.modified, metadata.changed) = (now, now, now);
        Arc::new(Self {
            metadata,
            content: Arc::new(Content { maker, store }),
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
        let opened = fallible::arc(OpenText {
            content: self.content.clone(),
            piece: Spin::new(None),
        });
        Some(opened.map(|opened| opened as FileRef).map_err(Error::from))
    }

    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
}

/// A part of the text.
#[derive(Clone)]
struct Piece {
    /// Where it lies in the file.
    start: u64,
    bytes: Arc<Vec<u8>>,
    /// The cursor of the next one.
    next: Option<u64>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes from `offset` in the file on.
    fn from(&self, offset: u64) -> &[u8] {
        let inside = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.get(inside..).unwrap_or(&[])
    }
}

/// One open file, with the piece that it read last.
struct OpenText {
    content: Arc<Content>,
    piece: Spin<Option<Piece>>,
}

impl OpenText {
    /// Makes the piece of this cursor, which lies at `start`.
    fn make(&self, cursor: u64, start: u64) -> Result<Piece> {
        let mut text = Text::new();
        let next = match &self.content.maker {
            Maker::Whole(generate) => generate(&mut text).map(|()| None),
            Maker::Pieces(generate) => generate(cursor, &mut text),
        };
        let bytes = fallible::arc(text.finish()?)?;
        Ok(Piece {
            start,
            bytes,
            next: next?,
        })
    }

    /// The piece to look for `offset` in first.
    fn piece_before(&self, offset: u64) -> Result<Piece> {
        let kept = self.piece.lock().clone();
        match kept.filter(|piece| offset > 0 && piece.start <= offset) {
            Some(piece) => Ok(piece),
            None => self.make(0, 0),
        }
    }
}

impl File for OpenText {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let mut piece = self.piece_before(offset)?;
        let mut done = 0;
        loop {
            let bytes = piece.from(offset + done as u64);
            let wanted = bytes.len().min(to.remaining());
            let put = match to.put(bytes) {
                Err(error) if done == 0 => return Err(error),
                put => put.unwrap_or(0),
            };
            done += put;
            if put < wanted {
                break;
            }
            match piece.next {
                Some(next) if to.remaining() > 0 => piece = self.make(next, piece.end())?,
                _ => break,
            }
        }
        let old = self.piece.lock().replace(piece);
        drop(old);
        Ok(done)
    }

    fn write_at(&self, _open: &OpenFile, _offset: u64, from: &mut Source<'_>) -> Result<usize> {
        let store = self.content.store.as_ref().ok_or(Error::AccessDenied)?;
        let mut text = [0; STORE_BYTES_MAX];
        let count = from.take_whole(&mut text)?;
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
