//! Files of this host to records.
//!
//! A folder is sent again behind what is in it, since what is put into it changes its time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use agent::tree::Kind;

use super::machine::header_of;
use super::records::Writer;
use crate::failure::Failure;

/// What is to be sent.
pub(super) struct Walk {
    pub(super) root: PathBuf,
    /// Its name in the tree; if that is empty, only what is in it.
    pub(super) top: Vec<u8>,
    /// Whether a symbolic link at the root is followed.
    pub(super) follows: bool,
    pub(super) keeps_owners: bool,
}

/// A folder whose files are being sent.
struct Level {
    path: PathBuf,
    name: Vec<u8>,
    file: Metadata,
    /// Names that are left.
    names: Vec<OsString>,
}

impl Walk {
    /// Sends all of it; sentences about what cannot be sent.
    pub(super) fn send(self, records: &mut Writer<'_>) -> Result<Vec<String>, Failure> {
        let mut sending = Sending {
            walk: &self,
            records,
            troubles: Vec::new(),
            names: HashMap::new(),
        };
        let mut levels = Vec::new();
        levels.extend(sending.file(&self.root, self.top.clone())?);
        while let Some(level) = levels.last_mut() {
            let Some(own) = level.names.pop() else {
                if let Some(level) = levels.pop() {
                    sending.folder(&level)?;
                }
                continue;
            };
            let path = level.path.join(&own);
            let name = match level.name.is_empty() {
                true => own.as_bytes().to_vec(),
                false => [&level.name, &b"/"[..], own.as_bytes()].concat(),
            };
            levels.extend(sending.file(&path, name)?);
        }
        Ok(sending.troubles)
    }
}

struct Sending<'a, 'w> {
    walk: &'a Walk,
    records: &'a mut Writer<'w>,
    troubles: Vec<String>,
    /// Of files that have several, by device and number.
    names: HashMap<(u64, u64), Vec<u8>>,
}

impl Sending<'_, '_> {
    /// Sends one; if it is a folder, what is in it is to follow.
    fn file(&mut self, path: &Path, name: Vec<u8>) -> Result<Option<Level>, Failure> {
        let is_root = path == self.walk.root;
        let file = match is_root && self.walk.follows {
            true => fs::metadata(path),
            false => fs::symlink_metadata(path),
        };
        let file = match file {
            Ok(file) => file,
            // It was there a moment ago.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_root => {
                return Ok(None);
            }
            Err(error) => return Err(Failure::file(path)(error)),
        };
        let keeps = self.walk.keeps_owners;
        let kind = file.file_type();
        if kind.is_dir() {
            let level = Level {
                path: path.into(),
                name,
                names: names_in(path)?,
                file,
            };
            self.folder(&level)?;
            return Ok(Some(level));
        }
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(Failure::file(path))?;
            let header = header_of(Kind::Symlink, &file, keeps);
            let target = target.as_os_str().as_bytes();
            let sent = self.records.record(&header, &name, target);
            sent.map_err(Failure::Lost)?;
        } else if kind.is_file() {
            self.regular(path, &file, &name)?;
        } else {
            self.troubles.push(format!(
                "{} was not copied: it is a device, a named pipe or a socket.",
                path.display()
            ));
        }
        Ok(None)
    }

    fn folder(&mut self, level: &Level) -> Result<(), Failure> {
        if level.name.is_empty() {
            return Ok(());
        }
        let header = header_of(Kind::Folder, &level.file, self.walk.keeps_owners);
        let sent = self.records.record(&header, &level.name, &[]);
        sent.map_err(Failure::Lost)
    }

    fn regular(&mut self, path: &Path, file: &Metadata, name: &[u8]) -> Result<(), Failure> {
        let keeps = self.walk.keeps_owners;
        if file.nlink() > 1 {
            let number = (file.dev(), file.ino());
            if let Some(first) = self.names.get(&number) {
                let header = header_of(Kind::Link, file, keeps);
                let sent = self.records.record(&header, name, first);
                return sent.map_err(Failure::Lost);
            }
            self.names.insert(number, name.to_vec());
        }
        let mut from = File::open(path).map_err(Failure::file(path))?;
        let header = header_of(Kind::File, file, keeps);
        let mut failed = None;
        let mut noting = Noting(&mut from, &mut failed);
        let sent = self.records.file(&header, name, &mut noting);
        match failed {
            Some(error) => Err(Failure::file(path)(error)),
            None => sent.map_err(Failure::Lost),
        }
    }
}

/// A file whose failure is told from that of the machine.
struct Noting<'a>(&'a mut File, &'a mut Option<std::io::Error>);

impl std::io::Read for Noting<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(to).map_err(|error| {
            let kind = error.kind();
            if kind != std::io::ErrorKind::Interrupted {
                *self.1 = Some(error);
            }
            kind.into()
        })
    }
}

/// The names in a folder.
fn names_in(path: &Path) -> Result<Vec<OsString>, Failure> {
    let entries = fs::read_dir(path).map_err(Failure::file(path))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names.collect::<Result<_, _>>().map_err(Failure::file(path))
}
