//! From a path to a place: path_resolution(7).
//!
//! A walk goes name by name. At each directory it checks the right to search; `.` and
//! `..` need no lookup, and `..` never leaves the root of the program. A symbolic link
//! puts its text before what is left of the path; at most [`LINKS_MAX`] of them, so
//! every walk ends. A slash at the end demands a directory and follows a last link.
//!
//! Nothing is locked between names: each step holds counted references.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use bitflags::bitflags;

use super::access::{EXECUTE, Subject, Who};
use super::{Dentry, FileType, Path, context};
use crate::error::{Error, Result};

/// The longest path with its closing zero (`PATH_MAX` of Linux).
pub const PATH_BYTES_MAX: usize = 4096;
/// Symbolic links followed in one walk.
const LINKS_MAX: u32 = 40;

bitflags! {
    /// How to walk.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Walk: u32 {
        /// A symbolic link at the end is followed.
        const FOLLOW = 1;
        /// The end must be a directory.
        const DIRECTORY = 2;
        /// An empty path means the start.
        const EMPTY = 4;
        /// No symbolic link is followed (RESOLVE_NO_SYMLINKS).
        const NO_SYMLINKS = 8;
        /// The walk stays below its start (RESOLVE_BENEATH).
        const BENEATH = 16;
        /// The start is the root (RESOLVE_IN_ROOT).
        const IN_ROOT = 32;
        /// The walk stays on its mount (RESOLVE_NO_XDEV).
        const ONE_MOUNT = 64;
        /// Links of /proc that lead to objects are not followed.
        const NO_MAGIC = 128;
    }
}

/// A directory and a name in it that may or may not exist.
pub struct Spot {
    /// The directory.
    pub directory: Path,
    /// The last name; empty if the path ends in `.`, `..` or is `/`.
    pub name: Vec<u8>,
    /// The path ended in a slash.
    pub wants_directory: bool,
}

/// Finds what `path` names, starting at `start` (`None`: the working directory).
pub fn resolve(start: Option<&Path>, path: &[u8], how: Walk) -> Result<Path> {
    let mut walker = Walker::new(start, path, how)?;
    match walker.run(path, true)? {
        None => Ok(walker.at),
        Some(_) => Err(Error::NotFound),
    }
}

/// Finds the directory that holds the last name of `path`; a link at the end stays.
pub fn resolve_spot(start: Option<&Path>, path: &[u8], how: Walk) -> Result<Spot> {
    let mut walker = Walker::new(start, path, how)?;
    let tail = walker.run(path, false)?;
    let (name, wants_directory) = tail.unwrap_or_default();
    Ok(Spot {
        directory: walker.at,
        name,
        wants_directory,
    })
}

struct Walker {
    at: Path,
    start: Path,
    root: Path,
    how: Walk,
    subject: Subject,
    links: u32,
}

/// The last name, and whether a slash follows it.
type Tail = (Vec<u8>, bool);

impl Walker {
    fn new(start: Option<&Path>, path: &[u8], how: Walk) -> Result<Self> {
        if path.is_empty() && !how.contains(Walk::EMPTY) {
            return Err(Error::NotFound);
        }
        let context = context();
        let absolute = path.first() == Some(&b'/');
        let mut root = context.root();
        let start = match start {
            Some(start) if !absolute || how.contains(Walk::IN_ROOT) => start.clone(),
            None if !absolute => context.cwd(),
            _ => root.clone(),
        };
        if absolute && how.contains(Walk::BENEATH) {
            return Err(Error::CrossDevice);
        }
        if how.contains(Walk::IN_ROOT) {
            root = start.clone();
        }
        let subject = Subject::current(Who::Effective);
        Ok(Self {
            at: start.clone(),
            start,
            root,
            how,
            subject,
            links: 0,
        })
    }

    /// Walks `path`. With `to_end` the last name is entered too, else it is returned.
    fn run(&mut self, path: &[u8], to_end: bool) -> Result<Option<Tail>> {
        let mut text = Cow::Borrowed(path);
        let mut done = 0;
        while let Some(step) = next_step(&text, done) {
            let name = &text[step.name.clone()];
            self.check_search()?;
            let last = step.is_last;
            if last && !to_end && name != b"." && name != b".." {
                return Ok(Some((name.to_vec(), step.slash_follows)));
            }
            let follow = !last || step.slash_follows || self.how.contains(Walk::FOLLOW);
            let wants_directory =
                last && (step.slash_follows || self.how.contains(Walk::DIRECTORY));
            match self.enter(name, follow)? {
                None => {}
                Some(mut target) => {
                    if step.rest < text.len() {
                        target.push(b'/');
                        target.extend_from_slice(&text[step.rest..]);
                    } else if step.slash_follows {
                        target.push(b'/');
                    }
                    if target.len() >= PATH_BYTES_MAX * 2 {
                        return Err(Error::NameTooLong);
                    }
                    text = Cow::Owned(target);
                    done = 0;
                    continue;
                }
            }
            if wants_directory && !self.at.dentry.is_directory() {
                return Err(Error::NotDirectory);
            }
            done = step.rest;
        }
        if self.how.contains(Walk::DIRECTORY) && to_end && !self.at.dentry.is_directory() {
            return Err(Error::NotDirectory);
        }
        Ok(None)
    }

    /// Goes to `name` in the current directory; a link to follow gives its text.
    fn enter(&mut self, name: &[u8], follow: bool) -> Result<Option<Vec<u8>>> {
        if name == b"." {
            return Ok(None);
        }
        if name == b".." {
            return self.leave().map(|()| None);
        }
        let child = self.at.dentry.child(name)?.ok_or(Error::NotFound)?;
        let kind = child.inode().kind();
        if kind == FileType::Symlink && follow {
            return self.follow(&child);
        }
        self.go(Path {
            mount: self.at.mount.clone(),
            dentry: child,
        }
        .enter_mounts())?;
        Ok(None)
    }

    fn go(&mut self, to: Path) -> Result<()> {
        let crosses = !alloc::sync::Arc::ptr_eq(&to.mount, &self.at.mount);
        if crosses && self.how.contains(Walk::ONE_MOUNT) {
            return Err(Error::CrossDevice);
        }
        self.at = to;
        Ok(())
    }

    fn leave(&mut self) -> Result<()> {
        if self.how.contains(Walk::BENEATH) && self.at.is(&self.start) {
            return Err(Error::CrossDevice);
        }
        match self.at.is(&self.root) {
            true => Ok(()),
            false => self.go(self.at.parent().enter_mounts()),
        }
    }

    /// Follows a link: an object's place is entered, a text is given back.
    fn follow(&mut self, link: &Dentry) -> Result<Option<Vec<u8>>> {
        self.links += 1;
        if self.links > LINKS_MAX || self.how.contains(Walk::NO_SYMLINKS) {
            return Err(Error::TooManySymlinks);
        }
        if let Some(target) = link.inode().jump() {
            if self
                .how
                .intersects(Walk::NO_MAGIC | Walk::BENEATH | Walk::IN_ROOT)
            {
                return Err(Error::TooManySymlinks);
            }
            return self.go(target?).map(|()| None);
        }
        let target = link.inode().read_link()?;
        match target.first() {
            None => return Err(Error::NotFound),
            Some(b'/') if self.how.contains(Walk::BENEATH) => return Err(Error::CrossDevice),
            Some(b'/') => self.at = self.root.clone(),
            Some(_) => {}
        }
        Ok(Some(target))
    }

    fn check_search(&self) -> Result<()> {
        if !self.at.dentry.is_directory() {
            return Err(Error::NotDirectory);
        }
        if self.subject.overrides_permissions() {
            return Ok(());
        }
        self.subject.check(&self.at.inode().metadata()?, EXECUTE)
    }
}

/// One name of a path.
struct Step {
    /// Where it stands in the text.
    name: core::ops::Range<usize>,
    /// Where what follows begins, without slashes; the text's length at its end.
    rest: usize,
    /// No name follows.
    is_last: bool,
    /// A slash follows.
    slash_follows: bool,
}

/// The first name of `text` at or after `from`.
fn next_step(text: &[u8], from: usize) -> Option<Step> {
    let skip = |from: usize| {
        let slashes = text
            .iter()
            .skip(from)
            .take_while(|byte| **byte == b'/')
            .count();
        from + slashes
    };
    let start = skip(from);
    let len = text
        .iter()
        .skip(start)
        .take_while(|byte| **byte != b'/')
        .count();
    if len == 0 {
        return None;
    }
    let end = start + len;
    let rest = skip(end);
    Some(Step {
        name: start..end,
        rest,
        is_last: rest == text.len(),
        slash_follows: rest > end,
    })
}
