//! The names of an image, and what they lead to.

use std::collections::BTreeMap;

use super::raw::{Inode, ROOT, Raw, le16, le32};

const KIND_MASK: u16 = 0xf000;
const DIRECTORY: u16 = 0x4000;
const REGULAR: u16 = 0x8000;
/// Names that are looked at: more is a directory that leads in circles.
const NAMES_MAX: usize = 100_000;

/// What a name leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its number.
    pub inode: u32,
    /// Whether it has names below.
    pub is_directory: bool,
    /// All its bytes, if it is a regular file.
    pub bytes: Vec<u8>,
}

/// All names of an image, by their paths without the first slash.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// What they lead to.
    pub files: BTreeMap<String, File>,
}

impl Tree {
    /// A file's bytes.
    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|file| file.bytes.as_slice())
    }

    /// How many names lead to each inode, without `.` and `..`; the root has none.
    pub fn links(&self) -> BTreeMap<u32, u32> {
        let mut links = BTreeMap::new();
        for file in self.files.values() {
            *links.entry(file.inode).or_default() += 1;
        }
        links
    }

    /// How many directories are right below each.
    pub fn subfolders(&self) -> BTreeMap<u32, u32> {
        let mut below = BTreeMap::new();
        for (path, _) in self.files.iter().filter(|(_, file)| file.is_directory) {
            let parent = match path.rsplit_once('/') {
                Some((parent, _)) => self.files.get(parent).map_or(0, |file| file.inode),
                None => ROOT,
            };
            *below.entry(parent).or_default() += 1;
        }
        below
    }
}

pub fn read(raw: &Raw<'_>) -> Result<Tree, String> {
    let mut tree = Tree::default();
    let mut folders = vec![(String::new(), ROOT, ROOT)];
    while let Some((path, number, parent)) = folders.pop() {
        for (name, child) in entries(raw, number, parent)? {
            let inode = raw.inode(child)?;
            let path = if path.is_empty() {
                name
            } else {
                format!("{path}/{name}")
            };
            let file = file(raw, child, &inode).map_err(|error| format!("{path}: {error}"))?;
            if file.is_directory {
                folders.push((path.clone(), child, number));
            }
            if tree.files.insert(path.clone(), file).is_some() || tree.files.len() > NAMES_MAX {
                return Err(format!("{path} is there twice"));
            }
        }
    }
    Ok(tree)
}

fn file(raw: &Raw<'_>, number: u32, inode: &Inode) -> Result<File, String> {
    if inode.links == 0 {
        return Err("a name leads to a free inode".into());
    }
    let kind = inode.mode & KIND_MASK;
    Ok(File {
        inode: number,
        is_directory: kind == DIRECTORY,
        bytes: match kind {
            REGULAR => raw.contents(inode)?,
            _ => Vec::new(),
        },
    })
}

/// The names of a directory, without `.` and `..`, which must lead where they should.
fn entries(raw: &Raw<'_>, number: u32, parent: u32) -> Result<Vec<(String, u32)>, String> {
    let bytes = raw.contents(&raw.inode(number)?)?;
    let (mut found, mut dots) = (Vec::new(), 0);
    for block in bytes.chunks(raw.block_bytes) {
        let mut at = 0;
        while at + 8 <= block.len() {
            let (child, len) = (le32(block, at), usize::from(le16(block, at + 4)));
            let name = block.get(at + 8..at + 8 + usize::from(block[at + 6]));
            if len < 8 || !len.is_multiple_of(4) || at + len > block.len() {
                return Err(format!("directory {number} has a bad entry"));
            }
            match name.ok_or("a name leaves its block")? {
                _ if child == 0 => {}
                b"." if child == number => dots += 1,
                b".." if child == parent => dots += 1,
                b"." | b".." => return Err(format!("directory {number} has wrong dots")),
                name => found.push((String::from_utf8_lossy(name).into_owned(), child)),
            }
            at += len;
        }
    }
    match dots {
        2 => Ok(found),
        _ => Err(format!("directory {number} has {dots} dots")),
    }
}
