//! Records to files of this host.
//!
//! The machine that sends them may be hostile. Each name is walked from the folder that was asked for, an open folder at a
//! time, and no symbolic link on the way is followed (O_NOFOLLOW); so neither a name nor a link that came before leads
//! out of it. A file is written as a draft beside its place, and renamed when it is whole. Set-id bits stay away unless
//! owners are wanted too: a program of the machine is not to run on this host for whoever copied it.
//!
//! One more name of a file that came before is made a hard link to it (`links`), if what has its first name is still that file.
//!
//! Folders get their modes and times at the end: one that nobody may write to has to be filled first.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use agent::tree::{Header, Kind, components};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown,
    fstat, futimens, linkat, mkdirat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::links::{First, Links};
use super::machine::copy_chunks;
use super::records::{Chunks, Record};
use crate::copy_error::CopyError;
use crate::failure::Failure;

/// What is on a folder's way: open, and no link.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// For who copies, until all is there.
const DRAFT_FOLDER: u32 = 0o700;
const DRAFT_FILE: u32 = 0o600;

/// What tells a file of this host from others: device and number.
type Inode = (u64, u64);

/// A tree that is being unpacked.
pub(super) struct Unpack {
    folder: PathBuf,
    root: OwnedFd,
    top: Vec<u8>,
    keeps_owners: bool,
    /// Folders that still get what they are to have.
    folders: Vec<(Vec<u8>, Header)>,
    links: Links<Inode>,
    draft: String,
}

impl Unpack {
    /// Into `folder`, the tree's root under the name `top`; if that is empty, only what is in it.
    pub(super) fn new(folder: &Path, top: &[u8], keeps_owners: bool) -> Result<Self, Failure> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(folder, how, Mode::empty());
        Ok(Self {
            folder: folder.into(),
            root: root.map_err(|error| Failure::file(folder)(error.into()))?,
            top: top.to_vec(),
            keeps_owners,
            folders: Vec::new(),
            links: Links::default(),
            draft: format!(".sietch-cp-{}", std::process::id()),
        })
    }

    /// Takes one record.
    pub(super) fn take(&mut self, record: &Record, chunks: &mut dyn Chunks) -> Result<(), Failure> {
        let name = self.name_of(&record.name)?;
        let Some((parent, own)) = self.parent_of(&name)? else {
            // What is in the root is wanted, and not the root.
            return match record.header.kind {
                Kind::Folder => Ok(()),
                _ => Err(bad_name(&record.name)),
            };
        };
        let path = self.folder.join(OsStr::from_bytes(&name));
        let failed = |error: Errno| self.failed(&path, error);
        match record.header.kind {
            Kind::Folder => {
                match mkdirat(&parent, own.as_slice(), Mode::from_raw_mode(DRAFT_FOLDER)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(failed(error)),
                }
                // A file or a link that was there is none.
                open_folder(&parent, &own).map_err(failed)?;
                self.folders.push((name, record.header));
                Ok(())
            }
            Kind::File => {
                if !self.link(&parent, &own, &path, record, chunks)? {
                    let inode = self.file(&parent, &own, &path, &record.header, chunks)?;
                    self.links.note(record, &name, inode);
                }
                Ok(())
            }
            _ => self.symlink(&parent, &own, record).map_err(failed),
        }
    }

    /// Gives folders what they are to have.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        while let Some((name, header)) = self.folders.pop() {
            let path = self.folder.join(OsStr::from_bytes(&name));
            let failed = |error: Errno| self.failed(&path, error);
            if let Some((parent, own)) = self.parent_of(&name)? {
                let folder = open_folder(&parent, &own).map_err(failed)?;
                self.adorn(&folder, &header, 0o1777).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Why a file of this host is not what it is to be.
    fn failed(&self, path: &Path, error: Errno) -> Failure {
        match error {
            Errno::PERM if self.keeps_owners => {
                CopyError::NotRoot(path.display().to_string()).into()
            }
            error => Failure::file(path)(error.into()),
        }
    }

    /// The name below the folder of what the tree has under `name`.
    fn name_of(&self, name: &[u8]) -> Result<Vec<u8>, Failure> {
        if components(name).is_none() {
            return Err(bad_name(name));
        }
        Ok(match (self.top.is_empty(), name.is_empty()) {
            (true, _) => name.to_vec(),
            (false, true) => self.top.clone(),
            (false, false) => [&self.top, &b"/"[..], name].concat(),
        })
    }

    /// The open folder in which `name` is, and its last part; `None` for the root.
    fn parent_of(&self, name: &[u8]) -> Result<Option<(OwnedFd, Vec<u8>)>, Failure> {
        let mut parts = components(name).ok_or_else(|| bad_name(name))?;
        let Some(last) = parts.next_back() else {
            return Ok(None);
        };
        let failed = |error: Errno| {
            let path = self.folder.join(OsStr::from_bytes(name));
            Failure::file(path)(error.into())
        };
        let root = self.root.try_clone().map_err(Failure::file(&self.folder))?;
        let parent = parts.try_fold(root, |at, part| open_folder(&at, part));
        Ok(Some((parent.map_err(failed)?, last.to_vec())))
    }

    fn file(
        &self,
        parent: &OwnedFd,
        own: &[u8],
        path: &Path,
        header: &Header,
        chunks: &mut dyn Chunks,
    ) -> Result<Inode, Failure> {
        let failed = |error: Errno| self.failed(path, error);
        let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // One of a process of that number that was killed.
        let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        let open = openat(parent, &self.draft, how, Mode::from_raw_mode(DRAFT_FILE));
        let mut file = File::from(open.map_err(failed)?);
        let written = copy_chunks(chunks, |chunk| {
            file.write_all(chunk).map_err(Failure::file(path))
        });
        let done = written.and_then(|()| {
            self.adorn(&file, header, 0o777).map_err(failed)?;
            let inode = fstat(&file).map(|file| (file.st_dev, file.st_ino));
            renameat(parent, &self.draft, parent, own).map_err(failed)?;
            inode.map_err(failed)
        });
        if done.is_err() {
            // It may be gone, which is as good.
            let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        }
        done
    }

    /// Makes it one more name of a file that came before; false if it is none, or that can have no more. Nothing was read then.
    fn link(
        &self,
        parent: &OwnedFd,
        own: &[u8],
        path: &Path,
        record: &Record,
        chunks: &mut dyn Chunks,
    ) -> Result<bool, Failure> {
        let first = self.links.first(record);
        if !first.is_some_and(|first| self.is_draft_of(first, parent)) {
            return Ok(false);
        }
        let done = copy_chunks(chunks, |_| Ok(())).and_then(|()| {
            let renamed = renameat(parent, &self.draft, parent, own);
            renamed.map_err(|error| self.failed(path, error))
        });
        // A rename does nothing where both names are of one file already.
        let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        done.map(|()| true)
    }

    /// Gives a file the draft's name in the folder `parent`; whether it is still the one that was written.
    fn is_draft_of(&self, first: &First<Inode>, parent: &OwnedFd) -> bool {
        let Ok(Some((folder, own))) = self.parent_of(&first.name) else {
            return false;
        };
        let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        let linked = linkat(&folder, own, parent, &self.draft, AtFlags::empty());
        let found = linked.and_then(|()| statat(parent, &self.draft, AtFlags::SYMLINK_NOFOLLOW));
        let is_same = found.is_ok_and(|file| (file.st_dev, file.st_ino) == first.here);
        if !is_same {
            let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        }
        is_same
    }

    fn symlink(&self, parent: &OwnedFd, own: &[u8], record: &Record) -> Result<(), Errno> {
        let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        symlinkat(record.target.as_slice(), parent, &self.draft)?;
        let header = &record.header;
        let done = self
            .own_link(parent, header)
            .and_then(|()| {
                let times = times_of(header);
                utimensat(parent, &self.draft, &times, AtFlags::SYMLINK_NOFOLLOW)
            })
            .and_then(|()| renameat(parent, &self.draft, parent, own));
        if done.is_err() {
            let _ = unlinkat(parent, &self.draft, AtFlags::empty());
        }
        done
    }

    fn own_link(&self, parent: &OwnedFd, header: &Header) -> Result<(), Errno> {
        if !self.keeps_owners {
            return Ok(());
        }
        let (uid, gid) = owner_of(header);
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        chownat(parent, &self.draft, Some(uid), Some(gid), flags)
    }

    /// Owner, then mode, which a change of the owner may take bits from, then times.
    fn adorn(&self, file: impl AsFd, header: &Header, mode_mask: u32) -> Result<(), Errno> {
        let mut mode = u32::from(header.mode) & mode_mask;
        if self.keeps_owners {
            let (uid, gid) = owner_of(header);
            fchown(&file, Some(uid), Some(gid))?;
            mode = u32::from(header.mode) & 0o7777;
        }
        fchmod(&file, Mode::from_raw_mode(mode))?;
        futimens(&file, &times_of(header))
    }
}

fn bad_name(name: &[u8]) -> Failure {
    CopyError::NameFromMachine(name.escape_ascii().to_string()).into()
}

fn open_folder(parent: &OwnedFd, own: &[u8]) -> Result<OwnedFd, Errno> {
    openat(parent, own, FOLDER, Mode::empty())
}

fn owner_of(header: &Header) -> (Uid, Gid) {
    (Uid::from_raw(header.uid), Gid::from_raw(header.gid))
}

fn times_of(header: &Header) -> Timestamps {
    let (seconds, nanos) = header.modified;
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: i64::from(nanos),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use agent::tree::file_id;

    use super::*;

    /// The bytes of one file.
    struct Bytes(Vec<Vec<u8>>, Vec<u8>);

    impl Chunks for Bytes {
        fn next(&mut self) -> io::Result<&[u8]> {
            self.1 = self.0.pop().unwrap_or_default();
            Ok(&self.1)
        }
    }

    fn folder(name: &str) -> PathBuf {
        let name = format!("sietch-unpack-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("in")).expect("room");
        folder
    }

    fn record(kind: Kind, mode: u16, name: &[u8], target: &[u8]) -> Record {
        let header = Header {
            mode,
            modified: (1_000_000_000, 5),
            ..Header::of(kind)
        };
        let (name, target) = (name.to_vec(), target.to_vec());
        Record {
            header,
            name,
            target,
        }
    }

    fn take(unpack: &mut Unpack, record: &Record, bytes: &[u8]) -> Result<(), Failure> {
        unpack.take(record, &mut Bytes(vec![bytes.to_vec()], Vec::new()))
    }

    #[test]
    fn files_get_modes_and_times_and_no_set_id_bits() {
        let folder = folder("modes");
        let mut unpack = Unpack::new(&folder.join("in"), b"t", false).expect("there");
        take(&mut unpack, &record(Kind::Folder, 0o2555, b"", b""), b"").expect("made");
        take(&mut unpack, &record(Kind::File, 0o4751, b"f", b""), b"abc").expect("made");
        take(
            &mut unpack,
            &record(Kind::Symlink, 0o777, b"l", b"/etc"),
            b"",
        )
        .expect("made");
        unpack.finish().expect("finished");
        let at = |name: &str| folder.join("in/t").join(name);
        let mode = |name: &str| fs::metadata(at(name)).expect("there").mode() & 0o7777;
        assert_eq!((mode("f"), mode("")), (0o751, 0o555));
        assert_eq!(fs::read(at("f")).expect("there"), b"abc");
        assert_eq!(fs::read_link(at("l")).expect("there"), Path::new("/etc"));
        for name in ["", "f", "l"] {
            let file = fs::symlink_metadata(at(name)).expect("there");
            assert_eq!(file.mtime(), 1_000_000_000, "{name:?}");
        }
        fs::set_permissions(at(""), fs::Permissions::from_mode(0o755)).expect("ours");
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn no_name_and_no_link_of_a_hostile_machine_leads_out_of_the_folder() {
        let folder = folder("hostile");
        fs::create_dir(folder.join("outside")).expect("room");
        symlink("../../outside", folder.join("in/there")).expect("room");
        let mut unpack = Unpack::new(&folder.join("in"), b"", false).expect("there");
        for (kind, name) in [
            (Kind::File, &b"../outside/a"[..]),
            (Kind::File, b"/tmp/sietch-hostile"),
            (Kind::File, b"a/../../outside/a"),
            (Kind::File, b""),
            (Kind::Symlink, b""),
            (Kind::Folder, b".."),
            (Kind::File, b"there/a"),
            (Kind::Folder, b"there"),
            (Kind::File, b"missing/a"),
        ] {
            let record = record(kind, 0o644, name, b"x");
            let taken = take(&mut unpack, &record, b"x");
            assert!(taken.is_err(), "{kind:?} {}", name.escape_ascii());
        }
        let link = record(Kind::Symlink, 0o777, b"out", b"../outside");
        take(&mut unpack, &link, b"").expect("a link is only a link");
        let through = record(Kind::File, 0o644, b"out/a", b"");
        assert!(take(&mut unpack, &through, b"x").is_err());
        // A file of the link's name takes its place, and does not go through it.
        let over = record(Kind::File, 0o644, b"out", b"");
        take(&mut unpack, &over, b"x").expect("replaced");
        let outside = fs::read_dir(folder.join("outside")).expect("there");
        assert_eq!(outside.count(), 0);
        assert!(
            fs::symlink_metadata(folder.join("in/out"))
                .expect("there")
                .is_file()
        );
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_of_several_names_has_them_here_unless_it_is_another_one_by_now() {
        let folder = folder("links");
        let mut unpack = Unpack::new(&folder.join("in"), b"t", false).expect("there");
        let (one, two) = (file_id(1, 1), file_id(1, 2));
        for (kind, mode, name, target) in [
            (Kind::Folder, 0o755, &b""[..], &b""[..]),
            (Kind::File, 0o644, b"a", &one),
            (Kind::Folder, 0o755, b"d", b""),
            (Kind::File, 0o644, b"d/a", &one),
            // The same name once more.
            (Kind::File, 0o644, b"d/a", &one),
            // Another file of that number.
            (Kind::File, 0o600, b"b", &one),
            (Kind::File, 0o644, b"c", &two),
            (Kind::Symlink, 0o777, b"c", b"/etc/passwd"),
            (Kind::File, 0o644, b"e", &two),
        ] {
            take(&mut unpack, &record(kind, mode, name, target), b"x").expect("made");
        }
        unpack.finish().expect("finished");
        let at = |name: &str| folder.join("in/t").join(name);
        let file = |name: &str| fs::symlink_metadata(at(name)).expect("there");
        assert_eq!(file("a").ino(), file("d/a").ino());
        let names = ["a", "b", "e"].map(|name| (file(name).nlink(), file(name).mode() & 0o777));
        assert_eq!(names, [(2, 0o644), (1, 0o600), (1, 0o644)]);
        assert!(file("e").is_file() && file("c").is_symlink());
        assert_eq!(fs::read_dir(at("")).expect("there").count(), 5);
        assert_eq!(fs::read_dir(at("d")).expect("there").count(), 1);
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_file_that_is_cut_leaves_the_former_one_and_no_draft() {
        struct Cut(bool);
        impl Chunks for Cut {
            fn next(&mut self) -> io::Result<&[u8]> {
                match std::mem::replace(&mut self.0, true) {
                    false => Ok(b"new"),
                    true => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        }
        let folder = folder("cut");
        fs::write(folder.join("in/f"), b"old").expect("room");
        let mut unpack = Unpack::new(&folder.join("in"), b"", false).expect("there");
        let file = record(Kind::File, 0o644, b"f", b"");
        assert!(unpack.take(&file, &mut Cut(false)).is_err());
        assert_eq!(fs::read(folder.join("in/f")).expect("there"), b"old");
        assert_eq!(fs::read_dir(folder.join("in")).expect("there").count(), 1);
        fs::remove_dir_all(folder).expect("ours");
    }
}
