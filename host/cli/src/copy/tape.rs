//! A tar at standard input or output.

use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::mem;

use agent::tree::{Header, Kind, components};
use tar::{Archive, Builder, EntryType};

use super::links::Links;
use super::machine::{Copied, path_of, send};
use super::malformed;
use super::place::{is_content, split};
use super::progress::Progress;
use super::records::{CANNOT_READ, Chunks, Record, Writer};
use crate::copy_error::CopyError;
use crate::failure::Failure;

/// Writes what is at `path` in the machine `name` as a tar to standard output.
pub(super) fn write(name: &str, path: &[u8], follows: bool) -> Result<Copied, Failure> {
    if io::stdout().is_terminal() {
        return Err(CopyError::Terminal.into());
    }
    let mut builder = Builder::new(BufWriter::new(io::stdout().lock()));
    let mut links = Links::default();
    let top = match is_content(path) {
        true => b".",
        false => split(path).1,
    };
    let sent = send(
        name,
        path,
        follows,
        Progress::new(false),
        |record, chunks| append(&mut builder, &mut links, top, record, chunks),
    );
    let copied = match sent {
        Ok(copied) => copied,
        Err(failure) => {
            // Its drop would write the end of a tar that is whole, and this one is cut.
            mem::forget(builder);
            return Err(failure);
        }
    };
    let finished = builder.into_inner().and_then(|mut out| out.flush());
    finished.map_err(Failure::file("-"))?;
    Ok(copied)
}

fn append(
    builder: &mut Builder<impl Write>,
    links: &mut Links<()>,
    top: &[u8],
    record: &Record,
    chunks: &mut dyn Chunks,
) -> Result<(), Failure> {
    if components(&record.name).is_none() {
        let name = record.name.escape_ascii().to_string();
        return Err(CopyError::NameFromMachine(name).into());
    }
    let full = match record.name.is_empty() {
        true => top.to_vec(),
        false => [top, b"/", &record.name].concat(),
    };
    let (header, path) = (&record.header, path_of(&full));
    let mut tar = tar::Header::new_gnu();
    tar.set_mode(u32::from(header.mode));
    tar.set_uid(u64::from(header.uid));
    tar.set_gid(u64::from(header.gid));
    tar.set_mtime(u64::try_from(header.modified.0).unwrap_or(0));
    tar.set_size(0);
    let appended = match header.kind {
        Kind::Folder => {
            tar.set_entry_type(EntryType::Directory);
            builder.append_data(&mut tar, path, io::empty())
        }
        Kind::Symlink => {
            tar.set_entry_type(EntryType::Symlink);
            builder.append_link(&mut tar, path, path_of(&record.target))
        }
        _ => match links.first(record) {
            Some(first) => {
                tar.set_entry_type(EntryType::Link);
                // Its bytes came with the first name.
                let skipped = Whole::of(chunks, 0).skip_rest();
                skipped.and_then(|()| builder.append_link(&mut tar, path, path_of(&first.name)))
            }
            None => {
                tar.set_entry_type(EntryType::Regular);
                tar.set_size(header.size);
                let mut whole = Whole::of(chunks, header.size);
                let appended = builder.append_data(&mut tar, path, &mut whole);
                let appended = appended.and_then(|()| whole.skip_rest());
                if appended.is_ok() && !whole.is_broken {
                    links.note(record, &full, ());
                }
                appended
            }
        },
    };
    appended.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Failure::Lost(error),
        _ => Failure::file("-")(error),
    })
}

/// A file with as many bytes as were said: one that grew meanwhile is cut, one that shrank or cannot be read further is filled
/// up with zeroes.
struct Whole<'a> {
    chunks: &'a mut dyn Chunks,
    pending: Vec<u8>,
    left: u64,
    is_over: bool,
    /// Whether it cannot be read further.
    is_broken: bool,
}

impl<'a> Whole<'a> {
    fn of(chunks: &'a mut dyn Chunks, bytes: u64) -> Self {
        Self {
            chunks,
            pending: Vec::new(),
            left: bytes,
            is_over: false,
            is_broken: false,
        }
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        while !self.is_over {
            self.pending.clear();
            self.fill()?;
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        let chunk: &[u8] = match self.chunks.next() {
            Err(error) if error.kind() == CANNOT_READ => {
                self.is_broken = true;
                &[]
            }
            chunk => chunk?,
        };
        self.is_over = chunk.is_empty();
        self.pending.extend_from_slice(chunk);
        Ok(())
    }
}

impl Read for Whole<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.pending.is_empty() && !self.is_over {
            self.fill()?;
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let room = to.len().min(left);
        let count = match self.is_over {
            true => {
                to[..room].fill(0);
                room
            }
            false => {
                let count = room.min(self.pending.len());
                to[..count].copy_from_slice(&self.pending[..count]);
                self.pending.drain(..count);
                count
            }
        };
        self.left -= count as u64;
        Ok(count)
    }
}

/// Reads a tar at standard input; sentences about what in it is not copied.
pub(super) fn read(records: &mut Writer<'_>, keeps_owners: bool) -> Result<Vec<String>, Failure> {
    read_from(io::stdin().lock(), records, keeps_owners)
}

fn read_from(
    from: impl Read,
    records: &mut Writer<'_>,
    keeps_owners: bool,
) -> Result<Vec<String>, Failure> {
    let no_tar = |error| Failure::from(CopyError::NoTar(error));
    let mut archive = Archive::new(from);
    let mut folders = Folders::default();
    let mut troubles = Vec::new();
    for entry in archive.entries().map_err(no_tar)? {
        let mut entry = entry.map_err(no_tar)?;
        let name = plain(&entry.path_bytes())?;
        let header = header_of(entry.header(), keeps_owners).map_err(no_tar)?;
        let kind = entry.header().entry_type();
        let lost = Failure::Lost;
        if name.is_empty() {
            continue;
        }
        folders.precede(&name, records).map_err(lost)?;
        match kind {
            EntryType::Directory => {
                let header = Header {
                    kind: Kind::Folder,
                    ..header
                };
                records.record(&header, &name, &[]).map_err(lost)?;
                folders.note(name, header);
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                records.file(&header, &name, &mut entry).map_err(lost)?;
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                let header = Header {
                    kind: Kind::Symlink,
                    ..header
                };
                records.record(&header, &name, &target).map_err(lost)?;
            }
            EntryType::Link => {
                let target = plain(&entry.link_name_bytes().unwrap_or_default())?;
                let header = Header::of(Kind::Link);
                records.record(&header, &name, &target).map_err(lost)?;
            }
            EntryType::XGlobalHeader => {}
            _ => troubles.push(format!(
                "{} was not copied: it is a device or a named pipe.",
                path_of(&name).display()
            )),
        }
    }
    folders.end(records).map_err(Failure::Lost)?;
    Ok(troubles)
}

/// Folders that came, and those that have to be there.
#[derive(Default)]
struct Folders {
    known: HashSet<Vec<u8>>,
    /// What they get again at the end, since what is put into them changes their times.
    headers: Vec<(Vec<u8>, Header)>,
}

impl Folders {
    fn note(&mut self, name: Vec<u8>, header: Header) {
        self.known.insert(name.clone());
        self.headers.push((name, header));
    }

    /// Sends the folders in which `name` is, of which no word came.
    fn precede(&mut self, name: &[u8], records: &mut Writer<'_>) -> io::Result<()> {
        let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (at, _) in slashes {
            let folder = &name[..at];
            if !self.known.contains(folder) {
                records.record(&Header::of(Kind::Parent), folder, &[])?;
                self.known.insert(folder.to_vec());
            }
        }
        Ok(())
    }

    fn end(self, records: &mut Writer<'_>) -> io::Result<()> {
        for (name, header) in self.headers.iter().rev() {
            records.record(header, name, &[])?;
        }
        Ok(())
    }
}

/// A name of a tar without what leads nowhere; empty for the root.
fn plain(name: &[u8]) -> Result<Vec<u8>, Failure> {
    let parts = name.split(|&byte| byte == b'/');
    let parts: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
    let plain = parts.join(&b'/');
    let is_sound = components(&plain).is_some();
    match is_sound {
        true => Ok(plain),
        false => Err(CopyError::NameInTar(path_of(name).display().to_string()).into()),
    }
}

fn header_of(tar: &tar::Header, keeps_owners: bool) -> io::Result<Header> {
    let id = |id: u64| u32::try_from(id).map_err(|_| malformed());
    let (uid, gid) = match keeps_owners {
        true => (id(tar.uid()?)?, id(tar.gid()?)?),
        false => (0, 0),
    };
    // As `machine::header_of`.
    let mode_mask = if keeps_owners { 0o7777 } else { 0o1777 };
    Ok(Header {
        mode: (tar.mode()? & mode_mask) as u16,
        uid,
        gid,
        modified: (i64::try_from(tar.mtime()?).unwrap_or(0), 0),
        size: tar.entry_size()?,
        ..Header::of(Kind::File)
    })
}

#[cfg(test)]
mod tests {
    use agent::tree::file_id;

    use super::super::records::Reader;
    use super::*;

    fn tar_of(names: &[(&str, EntryType)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind) in names {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(0);
            header.set_mode(0o644);
            // The builder refuses what this is about.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, io::empty()).expect("memory");
        }
        builder.into_inner().expect("memory")
    }

    fn records(tar: &[u8]) -> Result<Vec<(Kind, String)>, Failure> {
        let mut bytes = Vec::new();
        let mut note = |_| {};
        let mut writer = Writer::new(&mut bytes, &mut note);
        read_from(tar, &mut writer, false)?;
        writer.end().expect("memory");
        let mut reader = Reader::new(bytes.as_slice());
        let mut seen = Vec::new();
        loop {
            let record = reader.record().expect("a tree");
            match record.header.kind {
                Kind::End => return Ok(seen),
                Kind::File => while !reader.chunk().expect("a tree").is_empty() {},
                _ => {}
            }
            let name = String::from_utf8_lossy(&record.name).into_owned();
            seen.push((record.header.kind, name));
        }
    }

    #[test]
    fn folders_that_a_tar_does_not_name_come_first() {
        let tar = tar_of(&[
            ("./", EntryType::Directory),
            ("./a/b/c", EntryType::Regular),
            ("d/", EntryType::Directory),
            ("d/e", EntryType::Regular),
        ]);
        let expected = [
            (Kind::Parent, "a"),
            (Kind::Parent, "a/b"),
            (Kind::File, "a/b/c"),
            (Kind::Folder, "d"),
            (Kind::File, "d/e"),
            (Kind::Folder, "d"),
        ];
        let expected = expected.map(|(kind, name)| (kind, name.to_string()));
        assert_eq!(records(&tar).expect("a tar"), expected);
    }

    #[test]
    fn a_tar_that_leads_out_of_the_folder_is_refused() {
        for name in ["../a", "a/../../b", ".."] {
            let tar = tar_of(&[(name, EntryType::Regular)]);
            assert!(records(&tar).is_err(), "{name}");
        }
        assert!(records(&[7; 2048]).is_err());
        let absolute = tar_of(&[("/etc/x", EntryType::Regular)]);
        assert_eq!(
            records(&absolute).expect("a tar").last(),
            Some(&(Kind::File, "etc/x".into()))
        );
    }

    #[test]
    fn a_file_of_several_names_is_in_a_tar_once() {
        let file = |name: &[u8], number| Record {
            header: Header {
                size: 3,
                ..Header::of(Kind::File)
            },
            name: name.to_vec(),
            target: file_id(1, number).to_vec(),
        };
        let (mut builder, mut links) = (Builder::new(Vec::new()), Links::default());
        for record in [file(b"a", 1), file(b"b", 2), file(b"d/a", 1)] {
            let mut bytes = Vec::new();
            let mut note = |_| {};
            let mut writer = Writer::new(&mut bytes, &mut note);
            writer
                .file(&record.header, b"", &mut &b"abc"[..])
                .expect("memory");
            let mut chunks = Reader::new(bytes.as_slice());
            chunks.record().expect("a tree");
            append(&mut builder, &mut links, b"t", &record, &mut chunks).expect("memory");
        }
        let tar = builder.into_inner().expect("memory");
        let mut archive = Archive::new(tar.as_slice());
        let entries = archive.entries().expect("a tar").map(|entry| {
            let entry = entry.expect("a tar");
            let target = entry.link_name_bytes().unwrap_or_default();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(&entry.path_bytes()), text(&target), entry.size())
        });
        let expected = [("t/a", "", 3), ("t/b", "", 3), ("t/d/a", "t/a", 0)];
        let expected = expected.map(|(name, target, size)| (name.into(), target.into(), size));
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_that_grew_or_shrank_has_as_many_bytes_as_were_said() {
        struct Fixed(Vec<&'static [u8]>);
        impl Chunks for Fixed {
            fn next(&mut self) -> io::Result<&[u8]> {
                Ok(self.0.pop().unwrap_or_default())
            }
        }
        for (size, expected) in [(2, &b"ab"[..]), (4, b"abc\0"), (3, b"abc")] {
            let mut chunks = Fixed(vec![b"abc"]);
            let mut whole = Whole::of(&mut chunks, size);
            let mut seen = Vec::new();
            whole.read_to_end(&mut seen).expect("memory");
            assert_eq!(seen, expected);
            whole.skip_rest().expect("its end");
        }
    }
}
