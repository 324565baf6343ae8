//! Records to files.
//!
//! Each name is walked from the folder that was asked for, and no link on the way is followed. A file is written under a
//! name of its own beside its place and renamed when it is whole, so that a copy that is cut leaves the file that was there
//! before, and programs that have that one open keep it. A folder that is there stays, and gets the mode and the times of
//! the one that comes.

use alloc::vec::Vec;

use agent::tree::{Header, Kind, Trouble, components};
use sync::{Error, Result};
use vfs::file::StatusFlags;
use vfs::names::{self, Replace, Wanted};
use vfs::{Change, FileType, LastComponent, OpenHow, Path, Timestamp, Walk, notify};

use super::stream::{Input, write_all};
use super::trouble_of;

/// Why a tree is not received as a whole, and at which name.
type Failed = (Trouble, Vec<u8>);

/// For who owns it from then on and may read it: nobody else until the file is whole.
const DRAFT_MODE: u32 = 0o600;

/// Puts a tree into `folder`. What is whole when it fails stays.
pub(super) fn receive(folder: &[u8], input: &mut Input) -> core::result::Result<(), Failed> {
    let root = vfs::look(None, folder, Walk::FOLLOW | Walk::DIRECTORY);
    let root = root.map_err(|error| (trouble_of(error), Vec::new()))?;
    loop {
        let header = input.header().map_err(|error| (bad(error), Vec::new()))?;
        let name = input.bytes(header.name_len);
        let name = name.map_err(|error| (bad(error), Vec::new()))?;
        let target = input.bytes(header.target_len);
        let target = target.map_err(|error| (bad(error), Vec::new()))?;
        if header.kind == Kind::End {
            return Ok(());
        }
        let Some(component) = parent_of(&root, &name) else {
            return Err((Trouble::BadRecord, name));
        };
        let done = component.and_then(|component| match header.kind {
            Kind::Folder => folder_at(&component, &header),
            Kind::Parent => parent_at(&component),
            Kind::File => file_at(component, &header, input),
            Kind::Symlink => symlink_at(component, &header, &target),
            Kind::Link => link_at(&root, component, &target),
            Kind::Special | Kind::Trouble | Kind::End => Err(Error::Invalid),
        });
        if let Err(error) = done {
            return Err((bad(error), name));
        }
        sched::resched_point();
    }
}

/// A record that is none is not the files' fault.
fn bad(error: Error) -> Trouble {
    match error {
        Error::Invalid => Trouble::BadRecord,
        error => trouble_of(error),
    }
}

/// The folder in which `name` is, and its last part; `None` if the name is not one below the root.
fn parent_of(root: &Path, name: &[u8]) -> Option<Result<LastComponent>> {
    let mut parts = components(name)?;
    let last = parts.next_back()?;
    let mut at = root.clone();
    for part in parts {
        // Not following: what is no folder, a link too, is refused.
        match vfs::look(Some(&at), part, Walk::DIRECTORY) {
            Ok(place) => at = place,
            Err(error) => return Some(Err(error)),
        }
    }
    Some(vfs::resolve_parent(Some(&at), last, Walk::empty()))
}

/// What is at that name now.
fn existing(component: &LastComponent) -> Result<Option<Path>> {
    match vfs::look(Some(&component.directory), &component.name, Walk::empty()) {
        Ok(place) => Ok(Some(place)),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn folder_at(component: &LastComponent, header: &Header) -> Result<()> {
    let place = match existing(component)? {
        Some(place) if place.dentry.is_directory() => place,
        Some(_) => return Err(Error::NotDirectory),
        None => names::create(component, &Wanted::new(FileType::Directory, DRAFT_MODE))?,
    };
    adorn(&place, header)
}

fn parent_at(component: &LastComponent) -> Result<()> {
    match existing(component)? {
        Some(place) if place.dentry.is_directory() => Ok(()),
        Some(_) => Err(Error::NotDirectory),
        None => names::create(component, &Wanted::new(FileType::Directory, 0o755)).map(drop),
    }
}

fn file_at(component: LastComponent, header: &Header, input: &mut Input) -> Result<()> {
    if let Some(place) = existing(&component)?
        && place.dentry.is_directory()
    {
        return Err(Error::IsDirectory);
    }
    replace(component, |draft| {
        let place = names::create(draft, &Wanted::new(FileType::Regular, DRAFT_MODE))?;
        let how = OpenHow {
            status: StatusFlags::WRONLY,
            ..OpenHow::READ
        };
        let open = vfs::open_path(place.clone(), &how)?;
        loop {
            match input.chunk()? {
                [] => break,
                chunk => write_all(&open, chunk)?,
            }
            sched::resched_point();
        }
        drop(open);
        adorn(&place, header)
    })
}

fn symlink_at(component: LastComponent, header: &Header, target: &[u8]) -> Result<()> {
    if target.is_empty() {
        return Err(Error::Invalid);
    }
    replace(component, |draft| {
        let wanted = Wanted {
            target,
            ..Wanted::new(FileType::Symlink, 0o777)
        };
        adorn(&names::create(draft, &wanted)?, header)
    })
}

fn link_at(root: &Path, component: LastComponent, target: &[u8]) -> Result<()> {
    let old = parent_of(root, target).ok_or(Error::Invalid)??;
    let old = existing(&old)?.ok_or(Error::NotFound)?;
    replace(component, |draft| names::link(&old, draft))
}

/// Lets `make` make something under a name that nobody else uses, and gives it that of `to`. It goes if either fails.
fn replace(to: LastComponent, make: impl FnOnce(&LastComponent) -> Result<()>) -> Result<()> {
    let name = alloc::format!(".sietch-cp-{}", task::current().process.id());
    let draft = LastComponent {
        directory: to.directory.clone(),
        name: name.into_bytes(),
        wants_directory: false,
    };
    // One that was cut off by the end of a machine whose disk this was.
    match names::unlink(&draft) {
        Ok(()) | Err(Error::NotFound) => {}
        Err(error) => return Err(error),
    }
    let done = make(&draft).and_then(|()| names::rename(&draft, &to, Replace::Yes));
    // Two names of one file are not renamed over each other: the draft is left then, too.
    match names::unlink(&draft) {
        Ok(()) | Err(_) => done,
    }
}

/// Gives a file owner, mode and times. A file system that knows no owners keeps its own.
fn adorn(place: &Path, header: &Header) -> Result<()> {
    place.mount.check_writable()?;
    let inode = place.inode();
    let owner = Change {
        uid: Some(header.uid),
        gid: Some(header.gid),
        ..Change::default()
    };
    match inode.change(&owner) {
        Ok(()) | Err(Error::NotPermitted | Error::Unsupported | Error::Invalid) => {}
        Err(error) => return Err(error),
    }
    let (seconds, nanos) = header.modified;
    let modified = Timestamp { seconds, nanos };
    let is_link = inode.kind() == FileType::Symlink;
    // A change of the owner may have taken set-id bits away.
    let rest = Change {
        mode: (!is_link).then_some(u32::from(header.mode) & 0o7777),
        modified: Some(modified),
        ..Change::default()
    };
    match inode.change(&rest) {
        Ok(()) => {}
        // Links whose time cannot be set there.
        Err(Error::NotPermitted | Error::Unsupported | Error::Invalid) if is_link => {}
        Err(error) => return Err(error),
    }
    notify::changed(&place.dentry, notify::Mask::ATTRIB);
    Ok(())
}
