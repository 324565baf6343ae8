//! A root file system under construction, and its cpio archive.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use cpio::{Entry, Writer};

use super::PackError;

/// Linux follows as many links before it gives up (path_resolution(7)).
const LINKS_MAX: u32 = 40;

const PAGE_BYTES: usize = 4096;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// A tree of files by absolute path. Parents exist: inserting makes them.
#[derive(Debug)]
pub struct Image {
    nodes: BTreeMap<PathBuf, Node>,
    /// Whether one of its programs or libraries calls a shell.
    calls_shell: bool,
}

#[derive(Debug, Clone)]
struct Node {
    content: Content,
    mode: u32,
    mtime_s: u32,
}

#[derive(Debug, Clone)]
enum Content {
    Directory,
    /// Read from the host when the archive is written.
    HostFile(PathBuf),
    Bytes(Vec<u8>),
    Symlink(PathBuf),
}

impl Default for Image {
    fn default() -> Self {
        Self::new()
    }
}

impl Image {
    /// An image with nothing but its root.
    pub fn new() -> Self {
        let root = Node {
            content: Content::Directory,
            mode: 0o755,
            mtime_s: 0,
        };
        Self {
            nodes: BTreeMap::from([(PathBuf::from("/"), root)]),
            calls_shell: false,
        }
    }

    /// One of its files calls a shell.
    pub fn note_shell_caller(&mut self) {
        self.calls_shell = true;
    }

    /// Whether one does.
    pub fn calls_shell(&self) -> bool {
        self.calls_shell
    }

    /// Whether `path`, which leads through no link, is a folder.
    pub fn has_folder(&self, path: &Path) -> bool {
        let node = self.nodes.get(path);
        node.is_some_and(|node| matches!(node.content, Content::Directory))
    }

    /// All paths, parents first.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.nodes.keys().map(PathBuf::as_path)
    }

    /// The path that `path` leads to through the image's own links, if it is there.
    pub fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut path = normalised(path);
        for _ in 0..LINKS_MAX {
            match self.first_link(&path) {
                Some((link, target)) => path = redirect(&path, &link, &target),
                None => return self.nodes.contains_key(&path).then_some(path),
            }
        }
        None
    }

    /// Makes a folder and its parents.
    pub fn add_folder(&mut self, path: impl AsRef<Path>, mode: u32) {
        let path = self.place(path.as_ref());
        let node = Node {
            content: Content::Directory,
            mode,
            mtime_s: 0,
        };
        self.insert(path, node);
    }

    /// Makes a file with the given text.
    pub fn add_bytes(&mut self, path: impl AsRef<Path>, mode: u32, bytes: impl Into<Vec<u8>>) {
        let path = self.place(path.as_ref());
        let node = Node {
            content: Content::Bytes(bytes.into()),
            mode,
            mtime_s: 0,
        };
        self.insert(path, node);
    }

    /// Makes a symbolic link, unless something is at `path` already.
    pub fn add_link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        let path = self.place(path.as_ref());
        let node = Node {
            content: Content::Symlink(target.into()),
            mode: 0o777,
            mtime_s: 0,
        };
        if !self.nodes.contains_key(&path) {
            self.insert(path, node);
        }
    }

    /// Adds what is at `path` on the host at the same path, with every symbolic link
    /// on the way there. A folder is added with all that it holds.
    pub fn add_same(&mut self, path: &Path) -> Result<(), PackError> {
        let mut at = normalised(path);
        for _ in 0..LINKS_MAX {
            let Some((link, target)) = first_host_link(&at) else {
                return self.add_tree(&at, &at);
            };
            let node = Node {
                content: Content::Symlink(target.clone()),
                mode: 0o777,
                mtime_s: 0,
            };
            self.insert(link.clone(), node);
            at = redirect(&at, &link, &target);
        }
        Err(PackError::LinkLoop { path: path.into() })
    }

    /// Adds the file or folder `host` as `guest`. A link is followed at the top and
    /// kept as a link below.
    pub fn add(&mut self, host: &Path, guest: &Path) -> Result<(), PackError> {
        let host = fs::canonicalize(host).map_err(PackError::unreadable(host))?;
        let guest = self.place(guest);
        self.add_tree(&host, &guest)
    }

    fn add_tree(&mut self, host: &Path, guest: &Path) -> Result<(), PackError> {
        let metadata = fs::symlink_metadata(host).map_err(PackError::unreadable(host))?;
        let kind = metadata.file_type();
        let content = if kind.is_dir() {
            Content::Directory
        } else if kind.is_symlink() {
            Content::Symlink(fs::read_link(host).map_err(PackError::unreadable(host))?)
        } else if kind.is_file() {
            Content::HostFile(host.into())
        } else {
            // Sockets, FIFOs and devices are the host's, not the program's.
            return Ok(());
        };
        let mode = metadata.permissions().mode() & 0o7777;
        let mtime_s = u32::try_from(metadata.mtime()).unwrap_or(0);
        self.insert(
            guest.into(),
            Node {
                content,
                mode,
                mtime_s,
            },
        );
        if kind.is_dir() {
            let listing = fs::read_dir(host).map_err(PackError::unreadable(host))?;
            for entry in listing.flatten() {
                self.add_tree(&entry.path(), &guest.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Removes a path with all that is below it.
    pub fn remove(&mut self, path: &Path) {
        self.nodes.retain(|node, _| !node.starts_with(path));
    }

    /// Host files in the image, as (path in the image, path on the host).
    pub fn host_files(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.nodes
            .iter()
            .filter_map(|(path, node)| match &node.content {
                Content::HostFile(host) => Some((path.as_path(), host.as_path())),
                _ => None,
            })
    }

    /// Where `path` ends up when the links above it are followed.
    pub fn place(&self, path: &Path) -> PathBuf {
        let path = normalised(path);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path;
        };
        let mut parent = parent.to_path_buf();
        for _ in 0..LINKS_MAX {
            match self.first_link(&parent) {
                Some((link, target)) => parent = redirect(&parent, &link, &target),
                None => break,
            }
        }
        parent.join(name)
    }

    fn first_link(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        prefixes(path).find_map(|prefix| match &self.nodes.get(&prefix)?.content {
            Content::Symlink(target) => Some((prefix, target.clone())),
            _ => None,
        })
    }

    fn insert(&mut self, path: PathBuf, node: Node) {
        for parent in prefixes(&path).take_while(|prefix| *prefix != path) {
            let folder = Node {
                content: Content::Directory,
                mode: 0o755,
                mtime_s: 0,
            };
            self.nodes.entry(parent).or_insert(folder);
        }
        match self.nodes.entry(path) {
            // A folder that exists keeps its children; only its mode may change.
            Slot::Occupied(mut slot) => *slot.get_mut() = node,
            Slot::Vacant(slot) => drop(slot.insert(node)),
        }
    }

    /// Writes the archive.
    pub fn to_cpio(&self) -> Result<Vec<u8>, PackError> {
        let mut writer = Writer::new();
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            let (kind, data) = match &node.content {
                Content::Directory => (DIRECTORY, vec![]),
                Content::HostFile(host) => {
                    (FILE, fs::read(host).map_err(PackError::unreadable(host))?)
                }
                Content::Bytes(bytes) => (FILE, bytes.clone()),
                Content::Symlink(target) => {
                    (SYMLINK, target.to_string_lossy().into_owned().into_bytes())
                }
            };
            let name = path.strip_prefix("/").unwrap_or(path).to_string_lossy();
            let name = if name.is_empty() { ".".into() } else { name };
            let entry = Entry {
                name: name.as_bytes(),
                mode: kind | node.mode,
                uid: 0,
                gid: 0,
                links: if kind == DIRECTORY { 2 } else { 1 },
                inode: number as u32 + 1,
                mtime_s: node.mtime_s,
                rdev: (0, 0),
                data: &data,
            };
            // Whole pages of a file can then be mapped from where the archive lies.
            let align_bytes = if data.len() >= PAGE_BYTES {
                PAGE_BYTES
            } else {
                4
            };
            writer
                .append_aligned(&entry, align_bytes)
                .map_err(|_| PackError::TooLarge { path: path.clone() })?;
        }
        Ok(writer.finish())
    }
}

/// `/a/b` gives `/a`, `/a/b`.
fn prefixes(path: &Path) -> impl Iterator<Item = PathBuf> {
    let mut all: Vec<PathBuf> = path.ancestors().map(Path::to_path_buf).collect();
    all.reverse();
    all.into_iter().skip(1)
}

fn first_host_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    prefixes(path).find_map(|prefix| fs::read_link(&prefix).ok().map(|target| (prefix, target)))
}

/// `path`, which goes through `link`, as it goes on from the link's target.
fn redirect(path: &Path, link: &Path, target: &Path) -> PathBuf {
    let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
    let folder = link.parent().unwrap_or(Path::new("/"));
    normalised(&folder.join(target).join(rest))
}

/// An absolute path without `.` and `..`; paths are taken from the root.
fn normalised(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(name) => plain.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_through_a_link_lands_behind_the_link() {
        let mut image = Image::new();
        image.add_folder("/usr/lib", 0o755);
        image.add_link("/lib", "usr/lib");
        image.add_bytes("/lib/a.so", 0o644, "x");
        assert_eq!(
            image.resolve(Path::new("/lib/a.so")),
            Some("/usr/lib/a.so".into())
        );
        assert!(!image.paths().any(|path| path == Path::new("/lib/a.so")));
    }

    #[test]
    fn parents_come_before_children_in_the_archive() {
        let mut image = Image::new();
        image.add_bytes("/a/b/c", 0o600, "hello");
        let bytes = image.to_cpio().expect("small");
        let names: Vec<String> = cpio::Archive::new(&bytes)
            .map(|entry| String::from_utf8_lossy(entry.expect("whole").name).into_owned())
            .collect();
        assert_eq!(names, [".", "a", "a/b", "a/b/c"]);
    }

    #[test]
    fn links_of_the_host_are_kept_as_links() {
        let folder = std::env::temp_dir().join(format!("sietch-image-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        fs::write(folder.join("real-1.0"), "x").expect("written");
        let _ = std::os::unix::fs::symlink("real-1.0", folder.join("name"));
        let mut image = Image::new();
        image
            .add_same(&folder.join("name"))
            .expect("both are there");
        let real = fs::canonicalize(folder.join("real-1.0")).expect("it exists");
        assert_eq!(image.resolve(&folder.join("name")), Some(real));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_loop_of_links_ends() {
        let mut image = Image::new();
        image.add_link("/a", "b");
        image.add_link("/b", "a");
        assert_eq!(image.resolve(Path::new("/a/x")), None);
        image.add_bytes("/a/x", 0o644, "");
    }
}
