//! Pseudo terminals: a terminal whose keyboard and screen are a file, the master.
//!
//! Each open of /dev/ptmx makes a pair. The master's drop hangs the terminal up; the
//! last closing of the terminal is the end of the master's input, until somebody opens it
//! again.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, Ordering};

use base::VirtAddr;
use cred::Resource;
use mach::sync::Spin;
use mm::io::{Sink, Source, partial};
use mm::user;
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};
use task::current;
use task::signal::files::current_owner;

use super::driver::{Driver, MasterQueue};
use super::ioctl::FIONREAD;
use super::terminal::WindowSize;
use super::{Terminal, TerminalFile, devices, ioctl};
use vfs::file::async_io::Owner;
use vfs::file::{File, OpenFile, StatusFlags};

/// Linux's major number of pseudo terminals.
pub(super) const MAJOR: u32 = 136;
/// Pairs at a time (kernel.pty.max).
pub(super) const PAIRS_MAX: u32 = 4096;
/// Bytes moved at once, on the stack.
const CHUNK_BYTES: usize = 512;

const TIOCPKT: u32 = 0x5420;
const TIOCGPKT: u32 = 0x8004_5438;
const TIOCGPTN: u32 = 0x8004_5430;
const TIOCSPTLCK: u32 = 0x4004_5431;
const TIOCGPTLCK: u32 = 0x8004_5439;
const TIOCGPTPEER: u32 = 0x5441;
const O_CLOEXEC: u64 = 0o2000000;

/// All pairs by number, as /dev/pts shows them, which is one however often it is mounted.
static PAIRS: Spin<BTreeMap<u32, Weak<Master>>> = Spin::new(BTreeMap::new());

/// The side of the program that plays keyboard and screen.
pub struct Master {
    number: u32,
    terminal: Arc<Terminal>,
    output: Arc<MasterQueue>,
    is_locked: AtomicBool,
    was_opened: AtomicBool,
}

/// A new pair: its master.
///
/// Errors: `NoSpace` if there are too many.
pub fn open_master() -> Result<Arc<Master>> {
    let master = {
        let mut pairs = PAIRS.lock();
        let free = (0..PAIRS_MAX).find(|number| !pairs.contains_key(number));
        let number = free.ok_or(Error::NoSpace)?;
        let master = Master::new(number);
        pairs.insert(number, Arc::downgrade(&master));
        master
    };
    devices::add_node(master.number)?;
    Ok(master)
}

/// A new pair whose terminal anybody may open: its master.
///
/// Errors: `NoSpace` if there are too many.
pub fn open_unlocked_master() -> Result<Arc<Master>> {
    let master = open_master()?;
    master.is_locked.store(false, Ordering::Relaxed);
    Ok(master)
}

/// Opens the terminal of that number.
///
/// Errors: `Io` if it does not exist or is locked.
pub fn open_slave(number: u32) -> Result<Arc<TerminalFile>> {
    let master = PAIRS
        .lock()
        .get(&number)
        .and_then(Weak::upgrade)
        .ok_or(Error::Io)?;
    master.open_terminal()
}

impl Master {
    fn new(number: u32) -> Arc<Self> {
        let output = Arc::<MasterQueue>::default();
        let terminal = Terminal::new(Driver::Master(output.clone()));
        Arc::new(Self {
            number,
            terminal,
            output,
            is_locked: AtomicBool::new(true),
            was_opened: AtomicBool::new(false),
        })
    }

    fn open_terminal(&self) -> Result<Arc<TerminalFile>> {
        if self.is_locked.load(Ordering::Relaxed) {
            return Err(Error::Io);
        }
        self.was_opened.store(true, Ordering::Relaxed);
        Ok(TerminalFile::new(self.terminal.clone()))
    }

    /// Opens the terminal by its node, and makes it the controlling one of the session that the current
    /// process leads, with its group in the foreground.
    pub fn control_current_session(&self) -> Result<Arc<OpenFile>> {
        devices::open_node(self.number, StatusFlags::RDWR)
    }

    /// Changes the window's size, of which the programs in the foreground hear.
    pub fn set_window(&self, rows: u16, columns: u16) {
        self.terminal.set_window(WindowSize {
            rows,
            columns,
            ..WindowSize::default()
        });
    }

    /// Whether nobody has the terminal open any more.
    fn is_abandoned(&self) -> bool {
        self.was_opened.load(Ordering::Relaxed) && self.terminal.state.lock().open_count == 0
    }

    /// Tries, and unless told otherwise waits until it succeeds.
    fn until<T>(&self, open: &OpenFile, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
        if open.is_nonblocking() {
            return attempt().ok_or(Error::WouldBlock);
        }
        let queue = &self.output.pollee.queue;
        queue.wait(Wait::INTERRUPTIBLE, attempt)
    }

    /// Opens the terminal without its name; `flags` are those of open(2).
    fn open_peer(&self, flags: u64) -> Result<usize> {
        let status = StatusFlags::from_bits_truncate(flags as u32);
        let open = devices::open_node(self.number, status)?;
        let me = current();
        let limit = me.process.limits.soft(Resource::Files);
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let fd = me
            .files
            .get()
            .insert(open, flags & O_CLOEXEC != 0, 0, limit)?;
        Ok(fd as usize)
    }
}

impl File for Master {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let mut bytes = [0; CHUNK_BYTES];
        let wanted = to.remaining().min(bytes.len());
        if wanted == 0 {
            return Ok(0);
        }
        // In packet mode the first byte says what follows.
        let header = usize::from(self.output.packet.is_on());
        let take = || {
            if let Some(happened) = self.output.packet.take() {
                bytes[0] = happened;
                return Some(1);
            }
            let is_over = self.is_abandoned();
            match self.output.take(&mut bytes[header..wanted]) {
                0 if wanted == header && self.output.len() != 0 => Some(header),
                0 => is_over.then_some(0),
                count => Some(header + count),
            }
        };
        let count = self.until(open, take)?;
        if count == 0 {
            return Err(Error::Io);
        }
        self.terminal.show_echo(&mut self.terminal.state.lock());
        self.terminal.pollee.notify(Events::WRITABLE);
        to.put(&bytes[..count])
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            let can_write = || (self.terminal.input_room() != 0).then_some(());
            if let Err(error) = self.until(open, can_write) {
                return partial(done, error);
            }
            let mut bytes = [0; CHUNK_BYTES];
            let room = self.terminal.input_room().min(bytes.len());
            match from.take(&mut bytes[..room]) {
                Ok(count) => {
                    self.terminal.input(&bytes[..count]);
                    done += count;
                }
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    fn poll(&self) -> Events {
        let mut events = Events::empty();
        if self.output.len() != 0 {
            events |= Events::READABLE;
        }
        if self.output.packet.has_news() {
            events |= Events::READABLE | Events::PRI;
        }
        if self.terminal.input_room() != 0 {
            events |= Events::WRITABLE;
        }
        if self.is_abandoned() {
            events |= Events::HUP;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.output.pollee)
    }

    fn async_owner(&self) -> Option<Owner> {
        Some(current_owner())
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        let at = VirtAddr(argument);
        match request {
            TIOCGPTN => user::write(at, self.number)?,
            TIOCSPTLCK => {
                let lock: u32 = user::read(at)?;
                self.is_locked.store(lock != 0, Ordering::Relaxed);
            }
            TIOCGPTLCK => user::write(at, u32::from(self.is_locked.load(Ordering::Relaxed)))?,
            TIOCGPTPEER => return self.open_peer(argument),
            TIOCPKT => self.output.packet.turn(user::read::<u32>(at)? != 0),
            TIOCGPKT => user::write(at, u32::from(self.output.packet.is_on()))?,
            FIONREAD => user::write(at, self.output.len() as u32)?,
            _ => return ioctl::master(&self.terminal, request, argument),
        }
        Ok(0)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        PAIRS.lock().remove(&self.number);
        devices::remove_node(self.number);
        self.terminal.hang_up();
    }
}
