//! The files, and the descriptors that name them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io::{self, ErrorKind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use sietch_io::storage::{self, BUFFER_BYTES, FileNumber, LogFiles};

use super::{Result, config};
use crate::numbers::{self, Whose};

/// What open(2) made: dup(2) makes another number of the same.
#[derive(Debug)]
pub struct Description {
    pub file: FileNumber,
    pub flags: c_int,
    pub offset: u64,
    numbers: usize,
}

impl Description {
    pub fn is_readable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_WRONLY
    }

    pub fn is_writable(&self) -> bool {
        self.flags & libc::O_ACCMODE != libc::O_RDONLY
    }
}

#[derive(Default)]
enum Area {
    /// No file on it was asked for yet.
    #[default]
    Unopened,
    Open(Box<LogFiles>),
    /// It could not be had.
    Refused(c_int),
}

/// What the lock guards.
#[derive(Default)]
pub struct Logged {
    area: Area,
    numbers: BTreeMap<c_int, usize>,
    descriptions: BTreeMap<usize, Description>,
    next_description: usize,
    /// A thread waits for the device without the lock: files are written to, as far as that needs no device, and nothing else.
    pub is_out: bool,
    /// By where [`ME`] lies in it.
    last_to_sync: Option<usize>,
}

thread_local! {
    /// Nothing of it is to be destroyed, so handlers of exit(3), which run when a thread's values are gone, have it still.
    static ME: Cell<u8> = const { Cell::new(0) };
}

/// It is back.
pub static BACK: Condvar = Condvar::new();

pub static LOGGED: Mutex<Logged> = Mutex::new(Logged {
    area: Area::Unopened,
    numbers: BTreeMap::new(),
    descriptions: BTreeMap::new(),
    next_description: 0,
    is_out: false,
    last_to_sync: None,
});

/// For everything.
pub fn lock() -> MutexGuard<'static, Logged> {
    let mut logged = lock_beside();
    while logged.is_out {
        logged = wait(logged);
    }
    logged
}

/// Perhaps beside a thread that is out.
pub fn lock_beside() -> MutexGuard<'static, Logged> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until a thread has come back.
pub fn wait(logged: MutexGuard<'static, Logged>) -> MutexGuard<'static, Logged> {
    BACK.wait(logged).unwrap_or_else(PoisonError::into_inner)
}

/// The same at the end of the program, perhaps in a handler that has interrupted who has the lock or is out: not for long.
pub fn lock_at_the_end() -> Option<MutexGuard<'static, Logged>> {
    const PATIENCE: Duration = Duration::from_secs(1);
    const STEP: Duration = Duration::from_millis(1);
    let end = Instant::now() + PATIENCE;
    // Who looks for the device's end has it nearly all the time.
    let logged = loop {
        match LOGGED.try_lock() {
            Ok(logged) => break logged,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(STEP),
            Err(TryLockError::WouldBlock) => return None,
        }
    };
    let waited = BACK.wait_timeout_while(logged, PATIENCE, |logged| logged.is_out);
    let (logged, _) = waited.unwrap_or_else(PoisonError::into_inner);
    (!logged.is_out).then_some(logged)
}

/// The errno of what the storage says.
pub fn errno_of(error: &io::Error) -> c_int {
    match error.kind() {
        ErrorKind::StorageFull => libc::ENOSPC,
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::InvalidFilename => libc::ENAMETOOLONG,
        ErrorKind::FileTooLarge => libc::EFBIG,
        ErrorKind::WouldBlock => libc::EBUSY,
        _ => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

impl Logged {
    /// The files, opened with the first call that needs them.
    ///
    /// Errors: EBUSY, another process has the area; those of opening it. A sentence is printed once.
    pub fn files(&mut self) -> Result<&mut LogFiles> {
        if let Area::Unopened = self.area {
            self.area = match open_area() {
                Ok(files) => Area::Open(Box::new(files)),
                Err(error) => Area::Refused(complain(&error)),
            };
        }
        match &mut self.area {
            Area::Open(files) => Ok(files),
            Area::Refused(why) => Err(*why),
            Area::Unopened => Err(libc::EIO),
        }
    }

    /// The files and what a number names.
    pub fn described(&mut self, number: c_int) -> Result<(&mut LogFiles, &mut Description)> {
        let description = self.numbers.get(&number).ok_or(libc::EBADF)?;
        let description = self.descriptions.get_mut(description);
        match &mut self.area {
            Area::Open(files) => Ok((files, description.ok_or(libc::EBADF)?)),
            _ => Err(libc::EBADF),
        }
    }

    /// The number names the file from now on.
    pub fn name(&mut self, number: c_int, file: FileNumber, flags: c_int) -> Result<()> {
        self.files()?.hold(file);
        let description = Description {
            file,
            flags,
            offset: 0,
            numbers: 0,
        };
        self.next_description += 1;
        self.descriptions.insert(self.next_description, description);
        self.add(number, self.next_description);
        Ok(())
    }

    fn add(&mut self, number: c_int, description: usize) {
        if let Some(description) = self.descriptions.get_mut(&description) {
            description.numbers += 1;
        }
        self.numbers.insert(number, description);
        numbers::set(number, Whose::LogFile);
    }

    /// `new` names what `old` does.
    pub fn copy(&mut self, old: c_int, new: c_int) {
        if let Some(description) = self.numbers.get(&old).copied() {
            self.add(new, description);
        }
    }

    /// The number names nothing of ours any more.
    pub fn close(&mut self, number: c_int) {
        numbers::set(number, Whose::Kernel);
        let Some(at) = self.numbers.remove(&number) else {
            return;
        };
        let Some(description) = self.descriptions.get_mut(&at) else {
            return;
        };
        description.numbers -= 1;
        if description.numbers == 0 {
            let file = description.file;
            self.descriptions.remove(&at);
            if let Area::Open(files) = &mut self.area {
                files.release(file);
            }
        }
    }

    /// The running thread syncs; whether it was the last that did so.
    pub fn is_alone(&mut self) -> bool {
        let me = ME.with(|me| me.as_ptr().addr());
        self.last_to_sync.replace(me) == Some(me)
    }

    /// In a child: the area is the parent's.
    pub fn forget(&mut self) {
        self.numbers.clear();
        self.descriptions.clear();
        if !matches!(self.area, Area::Unopened) {
            self.area = Area::Refused(libc::EBUSY);
        }
    }

    /// Brings out what was written.
    pub fn sync_all(&mut self) {
        let Area::Open(files) = &mut self.area else {
            return;
        };
        if let Err(error) = files.sync_all() {
            complain(&error);
        }
    }
}

fn open_area() -> io::Result<LogFiles> {
    let config = config::get().ok_or(ErrorKind::NotFound)?;
    let (queue, descriptors) = storage::open(&config.area, BUFFER_BYTES)?;
    for descriptor in descriptors {
        numbers::set(descriptor, Whose::Library);
    }
    LogFiles::open(queue)
}

/// Says why files on the log cannot be had.
fn complain(error: &io::Error) -> c_int {
    let area = config::get().map(|config| config.area.display().to_string());
    eprintln!("libsietch: {}: {error}.", area.unwrap_or_default());
    errno_of(error)
}
