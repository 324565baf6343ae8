//! Files of a machine that have several names, so that they have them here, too.
//!
//! The machine says which they are (`agent::tree::FileId`), and is not believed: its word only says which file of the same tree
//! may be meant. It counts if all else that is said of both names (mode, owner, time, bytes) is the same, since a number may
//! be given to another file while the tree is on its way. What is kept is bounded: a file that comes when there is
//! no room becomes one of its own.

use std::collections::HashMap;

use agent::tree::{FileId, Header, Kind};

use super::records::Record;

/// Bytes of what is kept, at most: a hundred thousand files and more.
const BYTES_MAX: usize = 16 << 20;

/// The first name of a file.
pub(super) struct First<H> {
    header: Header,
    /// The name.
    pub(super) name: Vec<u8>,
    /// What is known of it here.
    pub(super) here: H,
}

impl<H> First<H> {
    /// Bytes that it takes.
    fn cost(&self) -> usize {
        size_of::<(FileId, Self)>() + self.name.len()
    }
}

/// The files of a tree so far that have several names.
pub(super) struct Links<H> {
    known: HashMap<FileId, First<H>>,
    bytes: usize,
}

impl<H> Default for Links<H> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            bytes: 0,
        }
    }
}

impl<H> Links<H> {
    /// What came before of the file that a record is about.
    pub(super) fn first(&self, record: &Record) -> Option<&First<H>> {
        let first = self.known.get(&id_of(record)?);
        first.filter(|first| first.header == nameless(&record.header))
    }

    /// The file of this record is here, under `name`.
    pub(super) fn note(&mut self, record: &Record, name: &[u8], here: H) {
        let Some(id) = id_of(record) else {
            return;
        };
        if let Some(former) = self.known.remove(&id) {
            self.bytes -= former.cost();
        }
        let first = First {
            header: nameless(&record.header),
            name: name.to_vec(),
            here,
        };
        let bytes = self.bytes + first.cost();
        if bytes <= BYTES_MAX {
            self.bytes = bytes;
            self.known.insert(id, first);
        }
    }
}

fn id_of(record: &Record) -> Option<FileId> {
    let is_file = record.header.kind == Kind::File;
    let id = is_file.then(|| record.target.as_slice().try_into().ok());
    id.flatten()
}

/// What does not depend on the name.
fn nameless(header: &Header) -> Header {
    Header {
        name_len: 0,
        ..*header
    }
}

#[cfg(test)]
mod tests {
    use agent::tree::file_id;

    use super::*;

    fn record(number: u64, size: u64) -> Record {
        let header = Header {
            size,
            ..Header::of(Kind::File)
        };
        Record {
            header,
            name: Vec::new(),
            target: file_id(1, number).to_vec(),
        }
    }

    #[test]
    fn a_number_that_another_file_has_by_now_is_none() {
        let mut links = Links::default();
        links.note(&record(7, 3), b"a", ());
        let name_of = |links: &Links<()>, record: &Record| {
            let first = links.first(record);
            first.map(|first| first.name.clone())
        };
        assert_eq!(name_of(&links, &record(7, 3)), Some(b"a".to_vec()));
        assert_eq!(name_of(&links, &record(7, 4)), None);
        assert_eq!(name_of(&links, &record(8, 3)), None);
        links.note(&record(7, 4), b"b", ());
        assert_eq!(name_of(&links, &record(7, 4)), Some(b"b".to_vec()));
        let alone = Record {
            target: Vec::new(),
            ..record(7, 4)
        };
        assert_eq!(name_of(&links, &alone), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut links = Links::default();
        let name = vec![b'n'; 4000];
        for number in 0..10_000 {
            links.note(&record(number, 0), &name, ());
        }
        assert!(links.bytes <= BYTES_MAX && links.known.len() > 4000);
        assert!(links.first(&record(0, 0)).is_some());
        assert!(links.first(&record(9_999, 0)).is_none());
    }
}
