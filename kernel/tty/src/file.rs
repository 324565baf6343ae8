//! One open file of a terminal.

use alloc::sync::Arc;

use super::termios::Local;
use super::{Terminal, ioctl};
use mm::io::{Sink, Source};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use task::signal::files::current_owner;
use vfs::file::async_io::{Owner, OwnerKind};
use vfs::file::{File, OpenFile};

/// A terminal as a program holds it.
pub struct TerminalFile {
    /// The terminal.
    pub terminal: Arc<Terminal>,
}

impl TerminalFile {
    /// Opens `terminal`; closed when dropped.
    pub fn new(terminal: Arc<Terminal>) -> Arc<Self> {
        terminal.state.lock().open_count += 1;
        Arc::new(Self { terminal })
    }
}

impl File for TerminalFile {
    fn read(&self, open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        self.terminal.check_read()?;
        self.terminal.read(to, open.is_nonblocking())
    }

    fn write(&self, open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        if self.terminal.termios().local.contains(Local::TOSTOP) {
            self.terminal.check_change()?;
        }
        self.terminal.write(from, open.is_nonblocking())
    }

    fn poll(&self) -> Events {
        self.terminal.poll()
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.terminal.pollee)
    }

    /// The group in the foreground.
    fn async_owner(&self) -> Option<Owner> {
        let foreground = self.terminal.state.lock().foreground;
        let group = foreground.map(|id| Owner {
            kind: OwnerKind::Group,
            id,
        });
        Some(group.unwrap_or_else(current_owner))
    }

    fn ioctl(&self, _open: &OpenFile, request: u32, argument: u64) -> Result<usize> {
        if self.terminal.is_hung_up() {
            return Err(Error::Io);
        }
        ioctl::terminal(&self.terminal, request, argument)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Drop for TerminalFile {
    fn drop(&mut self) {
        let mut state = self.terminal.state.lock();
        state.open_count -= 1;
        let is_last = state.open_count == 0;
        drop(state);
        if is_last && let Some(master) = self.terminal.driver.master() {
            master.pollee.notify(Events::READABLE | Events::HUP);
        }
    }
}
