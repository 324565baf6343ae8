//! From a path to a place: path_resolution(7).
//!
//! A walk goes name by name. At each directory it checks the right to search; `.` and
//! `..` need no lookup, and `..` never leaves the root of the program. A symbolic link
//! puts its text before what is left of the path; at most [`LINKS_MAX`] of them, so
//! every walk ends. A slash at the end demands a directory and follows a last link.
//!
//! Nothing is locked between names: each step holds counted references.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bitflags::bitflags;
use sync::{Error, Result};

use super::access::{self, EXECUTE, Subject, Who};
use super::{Dentry, FileType, MountFlags, Path, absent, access_times, mount};
use crate::mount::with_context;

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
        /// The end is to be unmounted: it does not count as entered, and is the topmost mount.
        const UNMOUNT = 256;
    }
}

/// A directory and a name in it that may or may not exist.
pub struct LastComponent {
    /// The directory.
    pub directory: Path,
    /// The last name; empty if the path ends in `.`, `..` or is `/`.
    pub name: Vec<u8>,
    /// The path ended in a slash.
    pub wants_directory: bool,
}

/// Finds what `path` names, starting at `start` (`None`: the working directory).
pub fn resolve(start: Option<&Path>, path: &[u8], how: Walk) -> Result<Path> {
    let found = look(start, path, how);
    match &found {
        Ok(_) => absent::note_find(path),
        Err(Error::NotFound) => absent::note_miss(start, path),
        Err(_) => {}
    }
    found
}

/// The same for the kernel's own looks: what they do not find no program lacks ([`absent`]).
pub fn look(start: Option<&Path>, path: &[u8], how: Walk) -> Result<Path> {
    let mut walker = Walker::new(start, path, how)?;
    match walker.run(path, true)? {
        None if how.contains(Walk::UNMOUNT) => Ok(walker.at.enter_mounts()),
        None => Ok(walker.at),
        Some(_) => Err(Error::NotFound),
    }
}

/// Finds the directory that holds the last name of `path`; a link at the end stays.
pub fn resolve_parent(start: Option<&Path>, path: &[u8], how: Walk) -> Result<LastComponent> {
    let mut walker = Walker::new(start, path, how)?;
    let tail = walker.run(path, false)?;
    let (name, wants_directory) = tail.unwrap_or_default();
    Ok(LastComponent {
        directory: walker.at,
        name,
        wants_directory,
    })
}

struct Walker {
    at: Path,
    /// Where `..` may not lead out of (RESOLVE_BENEATH).
    fence: Option<Path>,
    /// The program's root; `None` for the top of the tree.
    root: Option<Path>,
    how: Walk,
    searches_all: bool,
    links: u32,
}

/// The last name, and whether a slash follows it.
type Tail = (Vec<u8>, bool);

impl Walker {
    fn new(start: Option<&Path>, path: &[u8], how: Walk) -> Result<Self> {
        if path.is_empty() && !how.contains(Walk::EMPTY) {
            return Err(Error::NotFound);
        }
        let absolute = path.first() == Some(&b'/');
        if absolute && how.contains(Walk::BENEATH) {
            return Err(Error::CrossDevice);
        }
        let (root, place) = with_context(|context| context.begin(absolute));
        let in_root = how.contains(Walk::IN_ROOT);
        let at = match start {
            Some(start) if !absolute || in_root => start.clone(),
            _ => place,
        };
        Ok(Self {
            fence: how.contains(Walk::BENEATH).then(|| at.clone()),
            root: if in_root { Some(at.clone()) } else { root },
            at,
            how,
            searches_all: access::is_above_permissions(),
            links: 0,
        })
    }

    /// Walks `path`. With `to_end` the last name is entered too, else it is returned.
    fn run(&mut self, path: &[u8], to_end: bool) -> Result<Option<Tail>> {
        let mut text = Cow::Borrowed(path);
        let mut done = 0;
        while let Some(step) = next_step(&text, done) {
            let name = text.get(step.name.clone()).unwrap_or(&[]);
            self.check_search()?;
            if step.is_last && !to_end && name != b"." && name != b".." {
                return Ok(Some((name.to_vec(), step.slash_follows)));
            }
            let follow = !step.is_last || step.slash_follows || self.how.contains(Walk::FOLLOW);
            match self.enter(name, follow)? {
                None => done = step.rest,
                Some(target) => {
                    text = Cow::Owned(join(target, &text, &step)?);
                    done = 0;
                    continue;
                }
            }
            if step.is_last && step.slash_follows && !self.at.dentry.is_directory() {
                return Err(Error::NotDirectory);
            }
        }
        match to_end && self.how.contains(Walk::DIRECTORY) && !self.at.dentry.is_directory() {
            true => Err(Error::NotDirectory),
            false => Ok(None),
        }
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
        if child.kind() == FileType::Symlink && follow {
            return self.follow(&child);
        }
        if child.is_mounted_on() {
            let covered = Path {
                mount: self.at.mount.clone(),
                dentry: child,
            };
            return self.go(covered.enter_mounts()).map(|()| None);
        }
        self.at.dentry = child;
        Ok(None)
    }

    fn go(&mut self, to: Path) -> Result<()> {
        let crosses = !Arc::ptr_eq(&to.mount, &self.at.mount);
        if crosses && self.how.contains(Walk::ONE_MOUNT) {
            return Err(Error::CrossDevice);
        }
        if !self.how.contains(Walk::UNMOUNT) {
            to.mount.mark_entered();
        }
        self.at = to;
        Ok(())
    }

    fn leave(&mut self) -> Result<()> {
        if self.fence.as_ref().is_some_and(|fence| self.at.is(fence)) {
            return Err(Error::CrossDevice);
        }
        match self.root.as_ref().is_some_and(|root| self.at.is(root)) {
            true => Ok(()),
            false => self.go(self.at.parent().enter_mounts()),
        }
    }

    /// Follows a link: an object's place is entered, a text is given back.
    fn follow(&mut self, link: &Arc<Dentry>) -> Result<Option<Vec<u8>>> {
        self.links += 1;
        let forbidden = self.how.contains(Walk::NO_SYMLINKS);
        let on_mount = self.at.mount.has(MountFlags::NOSYMFOLLOW);
        if self.links > LINKS_MAX || forbidden || on_mount {
            return Err(Error::TooManySymlinks);
        }
        if let Some(target) = link.inode().jump() {
            let forbidden = Walk::NO_MAGIC | Walk::BENEATH | Walk::IN_ROOT;
            if self.how.intersects(forbidden) {
                return Err(Error::TooManySymlinks);
            }
            return self.go(target?).map(|()| None);
        }
        let target = link.inode().read_link()?;
        access_times::note(&self.at.sibling(link.clone()));
        match target.first() {
            None => return Err(Error::NotFound),
            Some(b'/') if self.how.contains(Walk::BENEATH) => return Err(Error::CrossDevice),
            Some(b'/') => self.at = self.root.clone().unwrap_or_else(mount::root),
            Some(_) => {}
        }
        Ok(Some(target))
    }

    fn check_search(&self) -> Result<()> {
        if !self.at.dentry.is_directory() {
            return Err(Error::NotDirectory);
        }
        if self.searches_all {
            return Ok(());
        }
        let inode = self.at.inode();
        match Subject::current(Who::Effective).check(&inode.metadata()?, EXECUTE) {
            Err(_) if inode.is_open_to_caller() => Ok(()),
            result => result,
        }
    }
}

/// The text of a link in front of what follows `step` in `text`.
fn join(mut target: Vec<u8>, text: &[u8], step: &Step) -> Result<Vec<u8>> {
    if step.slash_follows {
        target.push(b'/');
        target.extend_from_slice(text.get(step.rest..).unwrap_or(&[]));
    }
    match target.len() < 2 * PATH_BYTES_MAX {
        true => Ok(target),
        false => Err(Error::NameTooLong),
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
    let start = skip_slashes(text, from);
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let len = rest
        .iter()
        .position(|byte| *byte == b'/')
        .unwrap_or(rest.len());
    let end = start + len;
    let rest = skip_slashes(text, end);
    Some(Step {
        name: start..end,
        rest,
        is_last: rest == text.len(),
        slash_follows: rest > end,
    })
}

fn skip_slashes(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while text.get(at) == Some(&b'/') {
        at += 1;
    }
    at
}
