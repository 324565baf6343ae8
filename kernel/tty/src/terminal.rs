//! A terminal: a line discipline, a screen, and programs that wait for them.

use alloc::sync::Arc;

use base::Duration;
use cred::Capability;
use mach::sync::Spin;
use mm::io::{Sink, Source, partial};
use sched::{Softirq, raise};
use sync::poll::{Events, Pollee};
use sync::{Error, Result, Wait};
use task::signal::{Info, Signal, send_to_group, send_to_process};
use task::{Pid, current, family};

use super::discipline::{Discipline, EXPANSION_MAX};
use super::driver::Driver;
use super::packet::PacketStatus;
use super::termios::{Input, Special, Termios};

/// Bytes moved at once, on the stack.
const CHUNK_BYTES: usize = 512;

/// `struct winsize`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WindowSize {
    pub(super) rows: u16,
    pub(super) columns: u16,
    pub(super) width_pixels: u16,
    pub(super) height_pixels: u16,
}

pub(super) struct State {
    pub(super) discipline: Discipline,
    pub(super) window: WindowSize,
    /// The session that it controls, and its group in the foreground.
    pub(super) session: Option<Pid>,
    pub(super) foreground: Option<Pid>,
    /// Nothing comes in or goes out any more.
    pub(super) is_hung_up: bool,
    /// Only who may do all opens it (TIOCEXCL).
    pub(super) is_exclusive: bool,
    /// Openings that programs have.
    pub(super) open_count: usize,
}

/// A terminal that programs read and write.
pub struct Terminal {
    pub(super) state: Spin<State>,
    pub(super) pollee: Pollee,
    pub(super) driver: Driver,
}

/// Whether ^S and ^Q halt and resume the output.
fn has_usual_keys(termios: &Termios) -> bool {
    const CTRL_S: u8 = 0x13;
    const CTRL_Q: u8 = 0x11;
    termios.input.contains(Input::IXON)
        && termios.get(Special::Stop) == CTRL_S
        && termios.get(Special::Start) == CTRL_Q
}

/// How a raw read waits (VMIN and VTIME).
struct ReadWait {
    least: usize,
    limit: Option<Duration>,
}

impl Terminal {
    pub(super) fn new(driver: Driver) -> Arc<Self> {
        let state = State {
            discipline: Discipline::new(),
            window: WindowSize::default(),
            session: None,
            foreground: None,
            is_hung_up: false,
            is_exclusive: false,
            open_count: 0,
        };
        Arc::new(Self {
            state: Spin::new(state),
            pollee: Pollee::new(),
            driver,
        })
    }

    /// Takes bytes from the keyboard.
    pub(super) fn input(&self, bytes: &[u8]) {
        for &byte in bytes {
            let (effect, foreground, halted, halts) = {
                let mut state = self.state.lock();
                let halted = state.discipline.is_output_halted;
                let effect = state.discipline.input(byte);
                self.show_echo(&mut state);
                let halts = state.discipline.is_output_halted;
                (effect, state.foreground, halted, halts)
            };
            self.note_flow(halted, halts);
            if let (Some(signal), Some(group)) = (effect.signal, foreground) {
                send_to_group(group, Info::kernel(signal));
            }
            if effect.readable {
                self.pollee.notify(Events::READABLE);
            }
            if effect.resumed {
                self.pollee.notify(Events::WRITABLE);
            }
        }
    }

    /// Bytes of input that would be kept. A line that is being edited always takes more,
    /// and drops what is too much: else nobody could end it.
    pub(super) fn input_room(&self) -> usize {
        let state = self.state.lock();
        let discipline = &state.discipline;
        let is_editing = discipline.termios.is_canonical() && discipline.readable() == 0;
        if state.is_hung_up || is_editing {
            usize::MAX
        } else {
            discipline.room()
        }
    }

    /// Shows what waits to be echoed, as far as the screen takes it.
    pub(super) fn show_echo(&self, state: &mut State) {
        let echo = &mut state.discipline.echo;
        let mut bytes = [0; EXPANSION_MAX];
        while !echo.is_empty() && self.driver.room() >= bytes.len() {
            let count = echo.len().min(bytes.len());
            for (place, byte) in bytes.iter_mut().zip(echo.drain(..count)) {
                *place = byte;
            }
            self.driver.put(&bytes[..count]);
        }
    }

    pub(super) fn read(&self, to: &mut Sink<'_>, nonblocking: bool) -> Result<usize> {
        if to.remaining() == 0 {
            return Ok(0);
        }
        let mut bytes = [0; CHUNK_BYTES];
        let wanted = to.remaining().min(bytes.len());
        let wait = self.wait(wanted);
        let count = loop {
            if !nonblocking {
                self.wait_for_input(&wait)?;
            }
            let mut state = self.state.lock();
            match state.discipline.read(&mut bytes[..wanted]) {
                Some(count) => break count,
                None if state.is_hung_up || wait.least == 0 => break 0,
                None if nonblocking => return Err(Error::WouldBlock),
                None if wait.limit.is_some() => break 0,
                // Another reader was faster, or a key threw the input away.
                None => {}
            }
        };
        // There is room for more input.
        match self.driver.master() {
            Some(master) => master.pollee.notify(Events::WRITABLE),
            None => raise(Softirq::Console),
        }
        to.put(&bytes[..count])
    }

    fn wait(&self, wanted: usize) -> ReadWait {
        let termios = self.state.lock().discipline.termios;
        if termios.is_canonical() {
            return ReadWait {
                least: 1,
                limit: None,
            };
        }
        let tenths = u64::from(termios.get(Special::Time));
        let limit = (tenths != 0).then(|| Duration::from_millis(tenths * 100));
        ReadWait {
            least: usize::from(termios.get(Special::Min)).min(wanted),
            limit,
        }
    }

    /// Waits as termios(3) says: for the first byte without limit if a least number is
    /// asked for, then for each further one no longer than the limit.
    fn wait_for_input(&self, wait: &ReadWait) -> Result<()> {
        let mut had = 0;
        loop {
            let how = match wait.limit {
                Some(limit) if had != 0 || wait.least == 0 => {
                    Wait::INTERRUPTIBLE.until(mach::time::now() + limit)
                }
                None if wait.least == 0 => return Ok(()),
                _ => Wait::INTERRUPTIBLE,
            };
            // With a limit each byte counts; without, only the least number.
            let enough = if wait.limit.is_some() {
                had + 1
            } else {
                wait.least
            };
            let has_come = || (self.readable() >= enough || self.is_hung_up()).then_some(());
            match self.pollee.queue.wait(how, has_come) {
                Err(Error::TimedOut) => return Ok(()),
                outcome => outcome?,
            }
            had = self.readable();
            if had >= wait.least || self.is_hung_up() {
                return Ok(());
            }
        }
    }

    fn readable(&self) -> usize {
        self.state.lock().discipline.readable()
    }

    pub(super) fn is_hung_up(&self) -> bool {
        self.state.lock().is_hung_up
    }

    pub(super) fn write(&self, from: &mut Source<'_>, nonblocking: bool) -> Result<usize> {
        let mut done = 0;
        while from.remaining() != 0 {
            let mut bytes = [0; CHUNK_BYTES / EXPANSION_MAX];
            let written = from
                .take(&mut bytes)
                .and_then(|count| self.write_chunk(&bytes[..count], nonblocking));
            match written {
                Ok(written) => done += written,
                Err(error) => return partial(done, error),
            }
        }
        Ok(done)
    }

    /// Writes a chunk that fits on an empty screen, waiting for room.
    fn write_chunk(&self, bytes: &[u8], nonblocking: bool) -> Result<usize> {
        let needed = bytes.len() * EXPANSION_MAX;
        let can_write = || {
            let state = self.state.lock();
            let is_free = !state.discipline.is_output_halted && self.driver.room() >= needed;
            (is_free || state.is_hung_up).then_some(())
        };
        if nonblocking {
            can_write().ok_or(Error::WouldBlock)?;
        } else {
            self.pollee.queue.wait(Wait::INTERRUPTIBLE, can_write)?;
        }
        let mut state = self.state.lock();
        if state.is_hung_up {
            return Err(Error::Io);
        }
        self.show_echo(&mut state);
        let mut processed = [0; CHUNK_BYTES];
        let mut len = 0;
        for &byte in bytes {
            let mut expanded = [0; EXPANSION_MAX];
            let count = state.discipline.output(byte, &mut expanded);
            processed[len..len + count].copy_from_slice(&expanded[..count]);
            len += count;
        }
        self.driver.put(&processed[..len]);
        Ok(bytes.len())
    }

    pub(super) fn poll(&self) -> Events {
        let state = self.state.lock();
        let mut events = Events::empty();
        if state.is_hung_up {
            return Events::READABLE | Events::WRITABLE | Events::ERR | Events::HUP;
        }
        let termios = &state.discipline.termios;
        let no_limit = !termios.is_canonical() && termios.get(Special::Time) == 0;
        let least = if no_limit {
            usize::from(termios.get(Special::Min)).max(1)
        } else {
            1
        };
        if state.discipline.readable() >= least {
            events |= Events::READABLE;
        }
        if !state.discipline.is_output_halted && self.driver.room() >= CHUNK_BYTES {
            events |= Events::WRITABLE;
        }
        events
    }

    /// The screen takes output again: what waits to be echoed first, then who writes.
    pub(super) fn screen_has_room(&self) {
        self.show_echo(&mut self.state.lock());
        self.pollee.notify(Events::WRITABLE);
    }

    pub(super) fn termios(&self) -> Termios {
        self.state.lock().discipline.termios
    }

    pub(super) fn set_termios(&self, termios: Termios) {
        let had_keys = {
            let mut state = self.state.lock();
            let had_keys = has_usual_keys(&state.discipline.termios);
            state.discipline.set_termios(termios);
            had_keys
        };
        match (had_keys, has_usual_keys(&termios)) {
            (true, false) => self.driver.note(PacketStatus::NO_KEYS),
            (false, true) => self.driver.note(PacketStatus::KEYS),
            _ => {}
        }
        self.pollee.notify(Events::READABLE | Events::WRITABLE);
    }

    /// Throws away what nobody has read.
    pub(super) fn flush_input(&self) {
        self.state.lock().discipline.flush_input();
        self.driver.note(PacketStatus::FLUSHED_INPUT);
        if let Some(master) = self.driver.master() {
            master.pollee.notify(Events::WRITABLE);
        }
    }

    /// Throws away what has not been shown.
    pub(super) fn flush_output(&self) {
        if let Some(master) = self.driver.master() {
            master.clear();
            self.driver.note(PacketStatus::FLUSHED_OUTPUT);
            self.pollee.notify(Events::WRITABLE);
        }
    }

    /// Tells a master in packet mode where the output has come to a halt, or goes on.
    pub(super) fn note_flow(&self, halted: bool, halts: bool) {
        match (halted, halts) {
            (false, true) => self.driver.note(PacketStatus::HALTED),
            (true, false) => self.driver.note(PacketStatus::RESUMED),
            _ => {}
        }
    }

    /// Changes the size; the programs in the foreground hear of it.
    pub(super) fn set_window(&self, window: WindowSize) {
        let foreground = {
            let mut state = self.state.lock();
            if core::mem::replace(&mut state.window, window) == window {
                return;
            }
            state.foreground
        };
        if let Some(group) = foreground {
            send_to_group(group, Info::kernel(Signal::WINCH));
        }
    }

    /// Whether the current program may open it.
    ///
    /// Errors: `Busy` if somebody uses it exclusively.
    pub(super) fn check_open(&self) -> Result<()> {
        let may_all = || current().credentials.get().has(Capability::SysAdmin);
        match self.state.lock().is_exclusive && !may_all() {
            true => Err(Error::Busy),
            false => Ok(()),
        }
    }

    /// Ends all use: readers see the end, writers an error, the session's leader SIGHUP, which
    /// tells the others (bash(1)).
    pub(super) fn hang_up(&self) {
        self.state.lock().is_hung_up = true;
        let leader = super::job::disconnect(self).and_then(family::find);
        for signal in [Signal::HUP, Signal::CONT] {
            if let Some(leader) = &leader {
                // One that waits already is enough.
                let _ = send_to_process(leader, Info::kernel(signal));
            }
        }
        let all = Events::READABLE | Events::WRITABLE | Events::ERR | Events::HUP;
        self.pollee.notify(all);
    }
}
