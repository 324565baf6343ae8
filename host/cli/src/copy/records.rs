//! Records (`agent::tree`) over any stream.

use std::io::{self, Read, Write};

use agent::tree::{BROKEN_OFF, CHUNK_BYTES_MAX, Header, Kind, NAME_BYTES_MAX};

use super::malformed;

/// A header with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) header: Header,
    pub(super) name: Vec<u8>,
    pub(super) target: Vec<u8>,
}

/// How [`Reader::chunk`] fails where a machine cannot read its file further; the next record says why.
pub(super) const CANNOT_READ: io::ErrorKind = io::ErrorKind::InvalidInput;

/// Records that come.
pub(super) struct Reader<R> {
    from: R,
    chunk: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(from: R) -> Self {
        let chunk = vec![0; CHUNK_BYTES_MAX];
        Self { from, chunk }
    }

    pub(super) fn get_ref(&self) -> &R {
        &self.from
    }

    /// The next record; a file's chunks come next.
    ///
    /// Errors: `InvalidData` for what is none, `UnexpectedEof`.
    pub(super) fn record(&mut self) -> io::Result<Record> {
        let mut bytes = [0; Header::BYTES];
        self.from.read_exact(&mut bytes)?;
        let header = Header::decode(&bytes).ok_or_else(malformed)?;
        let mut name = vec![0; header.name_len];
        self.from.read_exact(&mut name)?;
        let mut target = vec![0; header.target_len];
        self.from.read_exact(&mut target)?;
        Ok(Record {
            header,
            name,
            target,
        })
    }

    /// The next chunk of a file; empty behind the last one.
    ///
    /// Errors: [`CANNOT_READ`], `InvalidData` for what is none, `UnexpectedEof`.
    pub(super) fn chunk(&mut self) -> io::Result<&[u8]> {
        let mut len = [0; 2];
        self.from.read_exact(&mut len)?;
        let len = u16::from_le_bytes(len);
        if len == BROKEN_OFF {
            return Err(CANNOT_READ.into());
        }
        let chunk = self.chunk.get_mut(..usize::from(len));
        let chunk = chunk.ok_or_else(malformed)?;
        self.from.read_exact(chunk)?;
        Ok(chunk)
    }
}

/// Chunks of a file, which a tree from a machine brings.
pub(super) trait Chunks {
    /// The next one; empty behind the last one.
    fn next(&mut self) -> io::Result<&[u8]>;
}

/// Records that go.
pub(super) struct Writer<'w> {
    to: &'w mut dyn Write,
    /// Called with the bytes of files that went.
    note: &'w mut dyn FnMut(u64),
    pub(super) files: u64,
    chunk: Vec<u8>,
}

impl<'w> Writer<'w> {
    pub(super) fn new(to: &'w mut dyn Write, note: &'w mut dyn FnMut(u64)) -> Self {
        Self {
            to,
            note,
            files: 0,
            chunk: vec![0; CHUNK_BYTES_MAX],
        }
    }

    /// One that is no file.
    ///
    /// Errors: a name or a target that is too long; nobody takes it.
    pub(super) fn record(&mut self, header: &Header, name: &[u8], target: &[u8]) -> io::Result<()> {
        if name.len().max(target.len()) > NAME_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::InvalidFilename));
        }
        let header = Header {
            name_len: name.len(),
            target_len: target.len(),
            ..*header
        };
        self.to.write_all(&header.encode())?;
        self.to.write_all(name)?;
        self.to.write_all(target)
    }

    /// A file with all its bytes.
    pub(super) fn file(
        &mut self,
        header: &Header,
        name: &[u8],
        from: &mut dyn Read,
    ) -> io::Result<()> {
        self.record(header, name, &[])?;
        loop {
            let count = match from.read(&mut self.chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // At most 32 KiB.
            self.to.write_all(&(count as u16).to_le_bytes())?;
            self.to.write_all(&self.chunk[..count])?;
            (self.note)(count as u64);
            if count == 0 {
                self.files += 1;
                return Ok(());
            }
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.record(&Header::of(Kind::End), &[], &[])?;
        self.to.flush()
    }
}

impl<R: Read> Chunks for Reader<R> {
    fn next(&mut self) -> io::Result<&[u8]> {
        self.chunk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_further_is_none_and_the_next_record_says_why() {
        let mut bytes = Header::of(Kind::File).encode().to_vec();
        bytes.extend(*b"\x03\0abc\xff\xff");
        bytes.extend(Header::of(Kind::Trouble).encode());
        let mut reader = Reader::new(bytes.as_slice());
        assert_eq!(reader.record().unwrap().header.kind, Kind::File);
        assert_eq!(reader.chunk().unwrap(), b"abc");
        assert_eq!(reader.chunk().unwrap_err().kind(), CANNOT_READ);
        assert_eq!(reader.record().unwrap().header.kind, Kind::Trouble);
    }

    #[test]
    fn a_tree_comes_out_as_it_went_in_and_is_no_tree_if_it_is_cut() {
        let (mut bytes, mut noted) = (Vec::new(), 0);
        let content = vec![7; 3 * CHUNK_BYTES_MAX + 5];
        let mut note = |count| noted += count;
        let mut writer = Writer::new(&mut bytes, &mut note);
        let folder = Header::of(Kind::Folder);
        writer.record(&folder, b"", b"").unwrap();
        let file = Header::of(Kind::File);
        writer.file(&file, b"a", &mut content.as_slice()).unwrap();
        writer.end().unwrap();
        assert_eq!((writer.files, noted), (1, content.len() as u64));
        let read = |mut reader: Reader<&[u8]>| -> io::Result<Vec<u8>> {
            assert_eq!(reader.record()?.header.kind, Kind::Folder);
            assert_eq!(reader.record()?.name, b"a");
            let mut seen = Vec::new();
            loop {
                match reader.chunk()? {
                    [] => break,
                    chunk => seen.extend_from_slice(chunk),
                }
            }
            assert_eq!(reader.record()?.header.kind, Kind::End);
            Ok(seen)
        };
        assert_eq!(read(Reader::new(&bytes)).unwrap(), content);
        for end in (0..bytes.len()).step_by(997) {
            assert!(read(Reader::new(&bytes[..end])).is_err(), "{end}");
        }
    }
}
