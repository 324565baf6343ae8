//! A tar archive as a folder: its headers are read once, its files where they lie.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::files::Files;
use crate::error::{Error, Result};

/// Magic numbers of gzip and zstd.
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];

/// An archive that is not compressed.
pub(super) struct Archive {
    path: PathBuf,
    file: File,
    members: HashMap<String, Member>,
}

/// Where a file lies, or which one it is another name of.
enum Member {
    File { offset: u64, bytes: u64 },
    Link(String),
}

impl Archive {
    /// Reads the headers.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(|_| Error::NoSuchImage {
            name: path.display().to_string(),
            way_out: "there is no such file, so correct the path".into(),
        })?;
        let damaged = |reason: String| Error::NotAnImage {
            origin: path.display().to_string(),
            reason,
        };
        let mut start = [0; 4];
        let length = file.read(&mut start).map_err(Error::file(path))?;
        if COMPRESSED
            .iter()
            .any(|magic| start[..length].starts_with(magic))
        {
            return Err(damaged(
                "it is compressed: unpack it with gunzip or unzstd first".into(),
            ));
        }
        file.rewind().map_err(Error::file(path))?;
        let members = members(&file).map_err(|error| damaged(error.to_string()))?;
        Ok(Self {
            path: path.into(),
            file,
            members,
        })
    }
}

fn members(file: &File) -> std::io::Result<HashMap<String, Member>> {
    let mut members = HashMap::new();
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let name = entry.path()?.to_string_lossy().into_owned();
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let kind = entry.header().entry_type();
        let member = match entry.link_name()? {
            Some(target) if kind.is_symlink() => {
                Member::Link(beside(folder, &target.to_string_lossy()))
            }
            Some(target) if kind.is_hard_link() => Member::Link(plain(&target.to_string_lossy())),
            _ if kind.is_file() => Member::File {
                offset: entry.raw_file_position(),
                bytes: entry.size(),
            },
            _ => continue,
        };
        members.insert(plain(&name), member);
    }
    Ok(members)
}

fn plain(name: &str) -> String {
    name.trim_start_matches("./").to_string()
}

/// The path to which a link in `folder` leads; `..` leaves a folder.
fn beside(folder: &str, target: &str) -> String {
    let mut words: Vec<&str> = folder.split('/').collect();
    for word in target.split('/') {
        match word {
            ".." => drop(words.pop()),
            _ => words.push(word),
        }
    }
    words.retain(|word| !word.is_empty() && *word != ".");
    words.join("/")
}

impl Files for Archive {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&mut self, name: &str) -> Result<Option<Box<dyn Read + '_>>> {
        let mut member = self.members.get(name);
        // One link, as old versions of docker wrote them; two would be a trap.
        if let Some(Member::Link(target)) = member {
            member = self.members.get(target);
        }
        let Some(Member::File { offset, bytes }) = member else {
            return Ok(None);
        };
        self.file
            .seek(SeekFrom::Start(*offset))
            .map_err(Error::file(&self.path))?;
        Ok(Some(Box::new((&self.file).take(*bytes))))
    }
}

impl Archive {
    /// How long a file is.
    pub(super) fn bytes_of(&self, name: &str) -> Option<u64> {
        match self.members.get(name)? {
            Member::File { bytes, .. } => Some(*bytes),
            Member::Link(target) => match self.members.get(target)? {
                Member::File { bytes, .. } => Some(*bytes),
                Member::Link(_) => None,
            },
        }
    }

    /// Whether it has that file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_from_its_folder_and_not_out_of_the_archive() {
        assert_eq!(beside("abc", "../def.tar"), "def.tar");
        assert_eq!(beside("", "../../x"), "x");
        assert_eq!(beside("a/b", "c"), "a/b/c");
    }
}
