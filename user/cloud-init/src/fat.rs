//! FAT, by the crate `fatfs`: a seed's label and the files of its root.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use fatfs::{FileSystem, FsOptions};

use crate::TEXT_BYTES_MAX;
use crate::disk::Bounded;

/// The last bytes of the first sector.
const SIGNATURE_AT: u64 = 510;
const SIGNATURE: [u8; 2] = [0x55, 0xaa];

/// A FAT file system.
pub struct Volume<D: Read + Seek = File>(FileSystem<Bounded<D>>);

impl<D: Read + Seek> Volume<D> {
    /// The file system on `disk`, if it is one.
    pub fn open(mut disk: Bounded<D>) -> Option<Self> {
        let mut signature = [0; 2];
        disk.seek(SeekFrom::Start(SIGNATURE_AT)).ok()?;
        disk.read_exact(&mut signature).ok()?;
        if signature != SIGNATURE {
            return None;
        }
        disk.rewind().ok()?;
        FileSystem::new(disk, FsOptions::new()).ok().map(Self)
    }

    /// Whether it is labelled so, in its first sector or its root.
    pub fn is_labelled(&self, label: &str) -> bool {
        let is_it = |found: &[u8]| found.trim_ascii().eq_ignore_ascii_case(label.as_bytes());
        let in_root = self.0.read_volume_label_from_root_dir_as_bytes();
        let in_root = in_root.ok().flatten();
        is_it(self.0.volume_label_as_bytes()) || in_root.is_some_and(|found| is_it(&found))
    }

    /// The file `name` of the root; of one over the bound of texts a byte more than that.
    pub fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match self.0.root_dir().open_file(name) {
            Ok(file) => file,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(why),
        };
        let mut bytes = Vec::new();
        file.take(TEXT_BYTES_MAX as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}
