//! A file system that is configured step by step: fsopen(2), fsconfig(2), fspick(2).
//!
//! ```text
//! fsopen → Collecting ──create──▶ Made ──fsmount──▶ Mounted ◀── fspick
//!              └────fails────▶ Failed                 └ reconfigure ┘
//! ```
//!
//! Parameters are collected as mount(2) has them, with commas between, so that each kind has
//! one parser. What is wrong with them can be read from the descriptor, the oldest first; at
//! most [`MESSAGES_MAX`] messages are kept.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use mach::mem::fallible;
use mm::io::Sink;
use sync::{Error, Mutex, Result};

use super::kinds::{self, Kind};
use super::{Mount, MountFlags, SuperBlock, change};
use crate::FileSystem;
use crate::file::{File, OpenFile};

/// Messages that are kept.
const MESSAGES_MAX: usize = 8;
/// Bytes of all parameters together, as for mount(2).
const OPTIONS_BYTES_MAX: usize = 4096;

enum Phase {
    Collecting,
    Made(Arc<dyn FileSystem>),
    Mounted(Arc<SuperBlock>),
    Failed,
}

struct State {
    phase: Phase,
    source: Option<Vec<u8>>,
    options: Vec<u8>,
    is_read_only: Option<bool>,
    messages: Vec<String>,
}

/// What the descriptor of fsopen(2) stands for.
pub struct Configuration {
    kind: Kind,
    state: Mutex<State>,
}

/// One parameter of fsconfig(2).
#[derive(Clone, Copy, Debug)]
pub enum Parameter<'a> {
    /// What is there or not.
    Flag(&'a [u8]),
    /// A name and its value.
    Text(&'a [u8], &'a [u8]),
    /// A name and something that no file system here takes.
    Other(&'a [u8]),
}

impl Configuration {
    /// For a new file system of the kind `name`.
    ///
    /// Errors: `WrongDevice` for an unknown kind, `OutOfMemory`.
    pub fn open(name: &[u8]) -> Result<Arc<Self>> {
        Self::new(kinds::find(name)?, Phase::Collecting)
    }

    /// For one that is mounted.
    ///
    /// Errors: `OutOfMemory`.
    pub fn pick(block: &Arc<SuperBlock>) -> Result<Arc<Self>> {
        let kind = kinds::find(block.system.kind().as_bytes())?;
        Self::new(kind, Phase::Mounted(block.clone()))
    }

    fn new(kind: Kind, phase: Phase) -> Result<Arc<Self>> {
        let state = Mutex::new(State {
            phase,
            source: None,
            options: Vec::new(),
            is_read_only: None,
            messages: Vec::new(),
        });
        Ok(fallible::arc(Self { kind, state })?)
    }

    /// Takes a parameter.
    ///
    /// Errors: `Busy` where none is taken now, `Invalid` with a message, `OutOfMemory`.
    pub fn set(&self, parameter: Parameter<'_>) -> Result<()> {
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Collecting | Phase::Mounted(_)) {
            return Err(Error::Busy);
        }
        match parameter {
            Parameter::Flag(b"ro") => state.is_read_only = Some(true),
            Parameter::Flag(b"rw") => state.is_read_only = Some(false),
            Parameter::Text(b"source", value) => return self.set_source(&mut state, value),
            Parameter::Flag(name) | Parameter::Text(name, _) if !self.kind.takes(name) => {
                return Err(self.refuse(&mut state, "Unknown parameter", name));
            }
            Parameter::Other(name) => return Err(self.refuse(&mut state, "Bad value for", name)),
            Parameter::Flag(name) => state.add(name, None)?,
            Parameter::Text(name, value) => state.add(name, Some(value))?,
        }
        Ok(())
    }

    fn set_source(&self, state: &mut State, source: &[u8]) -> Result<()> {
        if state.source.is_some() {
            return Err(self.refuse(state, "Multiple sources", source));
        }
        state.source = Some(fallible::copied(source)?);
        Ok(())
    }

    /// Keeps what is wrong, for whoever reads.
    fn refuse(&self, state: &mut State, what: &str, name: &[u8]) -> Error {
        if state.messages.len() == MESSAGES_MAX {
            state.messages.remove(0);
        }
        let name = String::from_utf8_lossy(name);
        let message = format!("e {}: {what} '{name}'\n", self.kind.name);
        state.messages.push(message);
        Error::Invalid
    }

    /// Makes the file system.
    ///
    /// Errors: `Busy` if it was tried before, and what the kind says.
    pub fn create(&self) -> Result<()> {
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Collecting) {
            return Err(Error::Busy);
        }
        state.phase = Phase::Failed;
        let source = state.source.as_deref().unwrap_or(b"none");
        let made = (self.kind.make)(source, &state.options)?;
        state.phase = Phase::Made(made);
        state.options.clear();
        Ok(())
    }

    /// Applies to a mounted system what was set since.
    ///
    /// Errors: `Busy` if it is not mounted, or open for writing; what the system says.
    pub fn reconfigure(&self) -> Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Phase::Mounted(block) = &state.phase else {
            return Err(Error::Busy);
        };
        block.system.reconfigure(&mem::take(&mut state.options))?;
        match state.is_read_only.take() {
            Some(read_only) => block.set_read_only(read_only),
            None => Ok(()),
        }
    }

    /// Mounts what was made, at no place yet.
    ///
    /// Errors: `Invalid` if nothing was made, `Busy` if it was mounted already, `NoSpace`,
    /// `OutOfMemory`.
    pub fn mount(&self, flags: MountFlags) -> Result<Arc<Mount>> {
        let mut state = self.state.lock();
        let system = match &state.phase {
            Phase::Made(system) => system.clone(),
            Phase::Mounted(_) => return Err(Error::Busy),
            Phase::Collecting | Phase::Failed => return Err(Error::Invalid),
        };
        let source = state.source.as_deref().unwrap_or(b"none");
        let mount = change::new_detached(system, source, flags, state.is_read_only == Some(true))?;
        state.phase = Phase::Mounted(mount.block.clone());
        state.is_read_only = None;
        Ok(mount)
    }
}

impl State {
    fn add(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<()> {
        let bytes = name.len() + value.map_or(0, <[u8]>::len) + 2;
        if self.options.len() + bytes > OPTIONS_BYTES_MAX
            || value.is_some_and(|v| v.contains(&b','))
        {
            return Err(Error::Invalid);
        }
        fallible::reserve(|| self.options.try_reserve(bytes))?;
        if !self.options.is_empty() {
            self.options.push(b',');
        }
        self.options.extend_from_slice(name);
        if let Some(value) = value {
            self.options.push(b'=');
            self.options.extend_from_slice(value);
        }
        Ok(())
    }
}

impl File for Configuration {
    /// The next message; the buffer must hold all of it.
    fn read(&self, _open: &OpenFile, to: &mut Sink<'_>) -> Result<usize> {
        let mut state = self.state.lock();
        let message = state.messages.first().ok_or(Error::NoData)?;
        if message.len() > to.remaining() {
            return Err(Error::MessageTooLong);
        }
        let taken = to.put(message.as_bytes())?;
        state.messages.remove(0);
        Ok(taken)
    }

    fn label(&self) -> String {
        String::from("anon_inode:[fscontext]")
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
