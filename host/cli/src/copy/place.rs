//! `NAME:PATH`, `-` and paths, and where a copy lands: docker's rules.
//!
//! A source that is a folder is copied under its own name into a folder that is there, or becomes the folder that is not;
//! with `/.` at its end only what is in it. A file goes into a folder that is there, else it gets the name that was given.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::copy_error::CopyError;

/// One side of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a machine.
    Machine { name: String, path: Vec<u8> },
    /// On this host.
    Host(PathBuf),
    /// A tar at standard input or output.
    Stdio,
}

impl Place {
    /// As docker reads it: a path of this host begins with `/` or `.`, or has no colon.
    pub(super) fn parse(text: &OsStr) -> Self {
        let bytes = text.as_bytes();
        if bytes == b"-" {
            return Self::Stdio;
        }
        let is_path = bytes.starts_with(b"/") || bytes.starts_with(b".");
        let colon = bytes.iter().position(|&byte| byte == b':');
        let name = colon.and_then(|at| str::from_utf8(&bytes[..at]).ok());
        match (name, colon) {
            (Some(name), Some(at)) if !is_path && !name.is_empty() => Self::Machine {
                name: name.into(),
                path: from_root(&bytes[at + 1..]),
            },
            _ => Self::Host(text.into()),
        }
    }

    /// For people.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Machine { name, path } => format!("{name}:{}", String::from_utf8_lossy(path)),
            Self::Host(path) => path.display().to_string(),
            Self::Stdio => "-".into(),
        }
    }
}

/// Paths in a machine begin at its root.
fn from_root(path: &[u8]) -> Vec<u8> {
    match path.starts_with(b"/") {
        true => path.to_vec(),
        false => [b"/", path].concat(),
    }
}

/// What is at the target now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Folder,
    File,
    /// Nothing, in a folder that is there.
    Missing,
    /// Nothing, and the folder is not there either.
    Nowhere,
}

impl Target {
    /// At a path of this host.
    pub(super) fn of_host(path: &Path) -> Self {
        let is_folder = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_dir());
        let parent = OsStr::from_bytes(split(path.as_os_str().as_bytes()).0);
        match (is_folder(path), fs::symlink_metadata(path).is_ok()) {
            (true, _) => Self::Folder,
            (false, true) => Self::File,
            (false, false) if is_folder(Path::new(parent)) => Self::Missing,
            (false, false) => Self::Nowhere,
        }
    }
}

/// Where a tree goes: into `folder`, its root under the name `top`; if that is empty, what is in the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Landing {
    pub(super) folder: Vec<u8>,
    pub(super) top: Vec<u8>,
}

impl Landing {
    /// That of `from`, which is a folder or not, at `to`, which is to be one or not.
    pub(super) fn of(
        is_folder: bool,
        from: &[u8],
        to: &[u8],
        to_wants_folder: bool,
        target: Target,
    ) -> Result<Self, CopyError> {
        let shown = || String::from_utf8_lossy(to).into_owned();
        match target {
            Target::Folder => {
                let top = match is_folder && is_content(from) {
                    true => b"",
                    false => split(from).1,
                };
                let (folder, top) = (to.to_vec(), top.to_vec());
                Ok(Self { folder, top })
            }
            Target::File if is_folder => Err(CopyError::OverFile(shown())),
            Target::File | Target::Missing if to_wants_folder && !is_folder => {
                Err(CopyError::NoFolder(shown()))
            }
            Target::File | Target::Missing => {
                let (folder, top) = split(to);
                let (folder, top) = (folder.to_vec(), top.to_vec());
                Ok(Self { folder, top })
            }
            Target::Nowhere => {
                let parent = String::from_utf8_lossy(split(to).0).into_owned();
                Err(CopyError::NoFolder(parent))
            }
        }
    }
}

/// Whether a path says by its end that it is a folder's.
pub(super) fn wants_folder(path: &[u8]) -> bool {
    path.ends_with(b"/") || is_content(path)
}

/// Whether what is in a folder is meant and not the folder: it ends in `/.`, or is a root or a `..` that has no name.
pub(super) fn is_content(path: &[u8]) -> bool {
    path == b"." || path.ends_with(b"/.") || split(path).1.is_empty()
}

/// The folder in which a path's file is, and its name, which is empty for a root.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let mut path = path;
    loop {
        path = match (path.strip_suffix(b"/."), path.strip_suffix(b"/")) {
            (Some(rest), _) | (_, Some(rest)) => rest,
            _ => break,
        };
    }
    let slash = path.iter().rposition(|&byte| byte == b'/');
    let (folder, name): (&[u8], &[u8]) = match slash {
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None if path.is_empty() => (b"/", b""),
        None => (b".", path),
    };
    match name == b"." || name == b".." {
        true => (folder, b""),
        false => (folder, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn landing(from: &str, is_folder: bool, to: &str, target: Target) -> Option<(String, String)> {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let landing = Landing::of(is_folder, from, to, wants_folder(to), target).ok()?;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Some((text(landing.folder), text(landing.top)))
    }

    #[test]
    fn a_side_is_a_machines_if_a_name_and_a_colon_come_first() {
        let machine = |name: &str, path: &str| Place::Machine {
            name: name.into(),
            path: path.into(),
        };
        let parse = |text: &str| Place::parse(OsStr::new(text));
        assert_eq!(parse("web:/etc"), machine("web", "/etc"));
        assert_eq!(parse("web:etc:x"), machine("web", "/etc:x"));
        assert_eq!(parse("-"), Place::Stdio);
        for path in ["./a:b", "/a:b", "a", ":b", "../a:b"] {
            assert_eq!(parse(path), Place::Host(path.into()));
        }
    }

    #[test]
    fn a_file_lands_as_with_docker() {
        let file = |to, target| landing("/x/f", false, to, target);
        let at = |folder: &str, top: &str| Some((folder.to_string(), top.to_string()));
        assert_eq!(file("/d", Target::Folder), at("/d", "f"));
        assert_eq!(file("/d/g", Target::Missing), at("/d", "g"));
        assert_eq!(file("/d/g", Target::File), at("/d", "g"));
        assert_eq!(file("g", Target::Missing), at(".", "g"));
        assert_eq!(file("/g", Target::Missing), at("/", "g"));
        assert_eq!(file("/d/g/", Target::Missing), None);
        assert_eq!(file("/d/g", Target::Nowhere), None);
    }

    #[test]
    fn a_folder_lands_as_with_docker() {
        let at = |folder: &str, top: &str| Some((folder.to_string(), top.to_string()));
        assert_eq!(landing("/x/s", true, "/d", Target::Folder), at("/d", "s"));
        assert_eq!(landing("/x/s/", true, "/d", Target::Folder), at("/d", "s"));
        assert_eq!(landing("/x/s/.", true, "/d", Target::Folder), at("/d", ""));
        for root in ["/", ".", "..", "/x/..", "/."] {
            assert_eq!(landing(root, true, "/d", Target::Folder), at("/d", ""));
        }
        assert_eq!(
            landing("/x/s", true, "/d/t", Target::Missing),
            at("/d", "t")
        );
        assert_eq!(
            landing("/x/s/.", true, "/d/t/", Target::Missing),
            at("/d", "t")
        );
        assert_eq!(landing("/x/s", true, "/d/f", Target::File), None);
    }
}
