//! The directory of a process or of one of its threads.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::fmt;
use core::sync::atomic::Ordering;

use super::descriptors::Descriptors;
use super::guard::{self, Guarded};
use super::image::Memory;
use super::namespaces::Namespaces;
use super::{fail_nth, list, memory, mounts, oom, status};
use mach::mem::fallible;
use mm::AddressSpace;
use sync::{Error, Result};
use task::{Process, Thread};
use vfs::file::File;
use vfs::inode::Emit;
use vfs::pseudo::{Link, Take, Target, Text, TextFile, number_of};
use vfs::{FileType, Inode, InodeRef, Metadata};

/// The directories that a thread or process has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// /proc/PID.
    Process,
    /// /proc/TID of a thread that is not the first: its process, as told by that thread. It is
    /// found by name but not listed.
    ProcessByThread,
    /// /proc/PID/task/TID.
    Thread,
}

/// What a file tells about: a process, and the thread that stands for it.
#[derive(Clone)]
pub struct Subject {
    /// The process.
    pub process: Arc<Process>,
    /// The thread that is named, else the first one; a dead process has none.
    pub thread: Option<Arc<Thread>>,
    /// Which directory it is in.
    pub place: Place,
    /// If it tells about one program only: that one's memory (`super::guard`).
    pub space: Option<Weak<AddressSpace>>,
}

impl Subject {
    /// The thread; `NoSuchProcess` for a dead one.
    pub fn thread(&self) -> Result<&Arc<Thread>> {
        self.thread.as_ref().ok_or(Error::NoSuchProcess)
    }

    /// The memory; `NoSuchProcess` for a dead one, and where another program has taken the
    /// place of the one that it tells about.
    pub fn space(&self) -> Result<Arc<AddressSpace>> {
        self.thread()?;
        let now = self.process.space.get();
        let is_meant = |meant: &Weak<_>| core::ptr::eq(meant.as_ptr(), Arc::as_ptr(&now));
        match self.space.as_ref().is_none_or(is_meant) {
            true => Ok(now),
            false => Err(Error::NoSuchProcess),
        }
    }

    /// The number in the directory's name.
    pub fn id(&self) -> u32 {
        match &self.thread {
            Some(thread) if self.place != Place::Process => thread.id(),
            _ => self.process.id(),
        }
    }

    /// Whether it tells about one thread only.
    pub fn is_thread(&self) -> bool {
        self.place == Place::Thread
    }
}

/// A file of a process: name, mode, text.
type Entry = (&'static str, u32, fn(&Subject, &mut Text) -> fmt::Result);

const FILES: &[Entry] = &[
    ("auxv", 0o400, status::auxv),
    ("cgroup", 0o444, status::cgroup),
    ("comm", 0o644, status::comm),
    ("fail-nth", 0o644, fail_nth::left),
    ("io", 0o400, status::io),
    ("limits", 0o444, status::limits),
    ("loginuid", 0o644, status::loginuid),
    ("mountinfo", 0o444, mounts::mountinfo),
    ("mounts", 0o444, mounts::mounts),
    ("oom_adj", 0o644, oom::old_adjustment),
    ("oom_score", 0o444, oom::score),
    ("oom_score_adj", 0o644, oom::adjustment),
    ("personality", 0o400, status::personality),
    ("sessionid", 0o444, status::loginuid),
    ("smaps_rollup", 0o444, memory::smaps_rollup),
    ("stat", 0o444, status::stat),
    ("statm", 0o444, memory::statm),
    ("status", 0o444, status::status),
    ("wchan", 0o444, status::wchan),
];

/// What makes a piece of a long text, as `pseudo::GeneratePiece` says.
pub type Part = core::result::Result<Option<u64>, fmt::Error>;

/// A file of a process whose text is as long as the process makes it: name, mode, piece.
type LongEntry = (&'static str, u32, fn(&Subject, u64, &mut Text) -> Part);

const LONG_FILES: &[LongEntry] = &[
    ("cmdline", 0o444, memory::cmdline),
    ("environ", 0o400, memory::environ),
    ("maps", 0o444, memory::maps),
    ("smaps", 0o444, memory::smaps),
];

/// Takes what is written to a file of a process.
type Store = fn(&Subject, &[u8]) -> Result<()>;

/// Files that take what is written to them; the other writable ones ignore it.
const STORES: &[(&str, Store)] = &[
    ("fail-nth", fail_nth::set),
    ("oom_adj", oom::set_old_adjustment),
    ("oom_score_adj", oom::set_adjustment),
];

/// The memory as a file.
const MEMORY: (&str, u32) = ("mem", 0o600);

/// Files only for those who may look into the process.
const GUARDED: &[&str] = &[
    "auxv",
    "environ",
    "io",
    "personality",
    "maps",
    "mem",
    "smaps",
    "smaps_rollup",
];

const LINKS: &[&str] = &["cwd", "exe", "root"];
const DIRECTORIES: &[&str] = &["fd", "fdinfo", "ns"];

/// The inode of /proc/PID or /proc/PID/task/TID.
#[derive(Clone)]
pub struct TaskDirectory {
    device: u64,
    subject: Subject,
}

impl TaskDirectory {
    /// That of a process.
    pub fn of_process(device: u64, process: Arc<Process>) -> Self {
        let thread = process.first_thread();
        Self {
            device,
            subject: Subject {
                process,
                thread,
                place: Place::Process,
                space: None,
            },
        }
    }

    /// That of a thread, in one place or the other.
    pub fn of_thread(device: u64, thread: Arc<Thread>, place: Place) -> Self {
        let process = thread.process.clone();
        Self {
            device,
            subject: Subject {
                process,
                thread: Some(thread),
                place,
                space: None,
            },
        }
    }

    /// The same directory for what tells about one program only.
    pub fn about(&self, space: &Arc<AddressSpace>) -> Self {
        let subject = Subject {
            space: Some(Arc::downgrade(space)),
            ..self.subject.clone()
        };
        Self { subject, ..*self }
    }

    /// What it tells about.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What is called `name`, whoever asks.
    pub fn child(&self, name: &str) -> Result<InodeRef> {
        if let Some(entry) = FILES.iter().find(|(known, ..)| *known == name) {
            return Ok(self.text(entry));
        }
        if let Some(entry) = LONG_FILES.iter().find(|(known, ..)| *known == name) {
            return Ok(self.long_text(entry));
        }
        if name == MEMORY.0 {
            let metadata = self.metadata_of(name, FileType::Regular, MEMORY.1);
            return Ok(Memory::new(metadata, &self.subject));
        }
        if let Some(link) = LINKS.iter().find(|known| **known == name) {
            return Ok(self.link(link));
        }
        if name == "ns" {
            let metadata = self.metadata_of(name, FileType::Directory, 0o511);
            let subject = self.subject.clone();
            return Ok(Arc::new(Namespaces::new(metadata, subject)));
        }
        if DIRECTORIES.contains(&name) {
            let metadata = self.metadata_of(name, FileType::Directory, 0o500);
            return Ok(Arc::new(Descriptors::new(
                metadata,
                self.subject.clone(),
                name == "fd",
            )));
        }
        if name == "task" && !self.subject.is_thread() {
            let metadata = self.metadata_of(name, FileType::Directory, 0o555);
            return Ok(Arc::new(Tasks {
                metadata,
                process: self.subject.process.clone(),
            }));
        }
        Err(Error::NotFound)
    }

    fn metadata_of(&self, name: &str, kind: FileType, mode: u32) -> Metadata {
        let path = alloc::format!("{}/{}/{name}", self.subject.id(), self.subject.is_thread());
        owned(
            &self.subject,
            Metadata::new(self.device, number_of(path.as_bytes()), kind, mode),
        )
    }

    fn text(&self, entry: &'static Entry) -> InodeRef {
        let (name, mode, write) = *entry;
        let subject = self.subject.clone();
        let generate = Box::new(move |text: &mut Text| {
            write(&subject, text).map_err(|_| Error::NoSuchProcess)
        });
        let subject = self.subject.clone();
        let known = STORES.iter().find(|(known, _)| *known == name);
        let take = known.map_or(ignore as Store, |(_, store)| *store);
        let store =
            (mode & 0o200 != 0).then(|| Box::new(move |text: &[u8]| take(&subject, text)) as Take);
        TextFile::new(
            self.metadata_of(name, FileType::Regular, mode),
            generate,
            store,
        )
    }

    fn long_text(&self, entry: &'static LongEntry) -> InodeRef {
        let (name, mode, write) = *entry;
        let subject = self.subject.clone();
        let generate = Box::new(move |cursor: u64, text: &mut Text| {
            write(&subject, cursor, text).map_err(|_| Error::NoSuchProcess)
        });
        TextFile::in_pieces(self.metadata_of(name, FileType::Regular, mode), generate)
    }

    fn link(&self, name: &'static str) -> InodeRef {
        let subject = self.subject.clone();
        let find = Box::new(move || guard::check(&subject).and_then(|()| target(&subject, name)));
        Link::new(self.metadata_of(name, FileType::Symlink, 0o777), find)
    }
}

fn ignore(_: &Subject, _: &[u8]) -> Result<()> {
    Ok(())
}

/// With the owner that the process acts for; root if others of that user may not look into
/// it. Directories that all may list are the user's in any case.
pub fn owned(subject: &Subject, mut metadata: Metadata) -> Metadata {
    let is_listed = metadata.kind == FileType::Directory && metadata.mode == 0o555;
    let is_users = is_listed || subject.process.dumpable.load(Ordering::Relaxed);
    if let Some(thread) = subject.thread.as_ref().filter(|_| is_users) {
        let credentials = thread.credentials.get();
        metadata.uid = credentials.user.effective;
        metadata.gid = credentials.group.effective;
    }
    metadata
}

fn target(subject: &Subject, name: &str) -> Result<Target> {
    let context = subject.thread()?.fs.get();
    match name {
        "cwd" => Ok(Target::Place(context.cwd())),
        "root" => Ok(Target::Place(context.root())),
        _ => {
            let executable = subject.process.image.lock().executable.clone();
            let place = executable.and_then(|open| open.path.clone());
            place.map(Target::Place).ok_or(Error::NotFound)
        }
    }
}

impl File for TaskDirectory {
    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = self.metadata_of("", FileType::Directory, 0o555);
        metadata.links = 2;
        Ok(metadata)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for TaskDirectory {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        let name = core::str::from_utf8(name).map_err(|_| Error::NotFound)?;
        match GUARDED.iter().find(|known| **known == name) {
            Some(name) => Ok(Guarded::new(self, name)),
            None => self.child(name),
        }
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let long = LONG_FILES.iter().map(|(name, ..)| *name);
        let files = FILES.iter().map(|(name, ..)| *name).chain(long);
        let files = files.chain([MEMORY.0]);
        let files = files.map(|name| (name, FileType::Regular));
        let links = LINKS.iter().map(|name| (*name, FileType::Symlink));
        let task: &[&str] = if self.subject.is_thread() {
            &[]
        } else {
            &["task"]
        };
        let folders = DIRECTORIES
            .iter()
            .chain(task)
            .map(|name| (*name, FileType::Directory));
        let names = files.chain(links).chain(folders);
        list::list(
            cursor,
            emit,
            names,
            core::iter::empty(),
            FileType::Directory,
        )
    }
}

/// /proc/PID/task.
struct Tasks {
    metadata: Metadata,
    process: Arc<Process>,
}

impl File for Tasks {
    fn metadata(&self) -> Result<Metadata> {
        Ok(self.metadata)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Tasks {
    fn kind(&self) -> FileType {
        FileType::Directory
    }

    fn lookup(&self, name: &[u8]) -> Result<InodeRef> {
        let id = list::parse(name).ok_or(Error::NotFound)?;
        let thread = self
            .process
            .threads()
            .into_iter()
            .find(|thread| thread.id() == id);
        let thread = thread.ok_or(Error::NotFound)?;
        let device = self.metadata.device;
        Ok(Arc::new(TaskDirectory::of_thread(
            device,
            thread,
            Place::Thread,
        )))
    }

    fn list(&self, cursor: u64, emit: Emit<'_>) -> Result<()> {
        let threads = self.process.threads();
        let mut ids = fallible::collected(threads.iter().map(|thread| thread.id()))?;
        ids.sort_unstable();
        list::list(
            cursor,
            emit,
            core::iter::empty(),
            ids.into_iter(),
            FileType::Directory,
        )
    }
}
