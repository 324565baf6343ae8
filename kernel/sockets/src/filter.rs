//! A socket's filter: a program (`bpf`) that says how much of each packet the socket wants.
//!
//! Packet and raw sockets, UDP, TCP and Unix sockets with messages have one; each shows it what
//! arrives before that is queued. It is shared with the connections that a listener accepts, and
//! runs without the lock, so that nobody waits for it who attaches another.
//! Not here: where a packet is dropped and counted; the layout of programs in memory.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bpf::Program;
use capture::{Frame, Sender};
use mach::sync::Spin;
use sync::{Error, Result};
use task::bpf_program::check_by;

use super::filter_facts::Known;
use mach::mem::fallible;
use vfs::socket::{Filter, FilterInstruction};

/// A program that somebody attached.
pub struct Attached {
    program: Program,
    /// As it was given to us.
    instructions: Box<[FilterInstruction]>,
}

/// See the module.
#[derive(Default)]
pub struct SocketFilter(Spin<State>);

#[derive(Default)]
struct State {
    attached: Option<Arc<Attached>>,
    /// It stays as it is.
    is_locked: bool,
}

impl Filter for SocketFilter {
    fn attach(&self, instructions: Vec<FilterInstruction>) -> Result<()> {
        let program = check_by(&instructions, Program::check)?;
        let instructions = instructions.into_boxed_slice();
        let attached = fallible::arc(Attached {
            program,
            instructions,
        })?;
        self.replace(Some(attached))
    }

    fn detach(&self) -> Result<()> {
        self.replace(None)
    }

    fn lock(&self, is_locked: bool) -> Result<()> {
        let mut state = self.0.lock();
        if state.is_locked && !is_locked {
            return Err(Error::NotPermitted);
        }
        state.is_locked = is_locked;
        Ok(())
    }

    fn is_locked(&self) -> bool {
        self.0.lock().is_locked
    }

    fn show(&self, to: &mut dyn FnMut(&[FilterInstruction]) -> Result<()>) -> Result<()> {
        let attached = self.attached();
        to(attached.as_ref().map_or(&[][..], |one| &one.instructions))
    }
}

impl SocketFilter {
    fn replace(&self, attached: Option<Arc<Attached>>) -> Result<()> {
        let mut state = self.0.lock();
        if state.is_locked {
            return Err(Error::NotPermitted);
        }
        if attached.is_none() && state.attached.is_none() {
            return Err(Error::NotFound);
        }
        // What was there is freed when the lock is free again.
        let old = core::mem::replace(&mut state.attached, attached);
        drop(state);
        drop(old);
        Ok(())
    }

    /// What is attached.
    pub fn attached(&self) -> Option<Arc<Attached>> {
        self.0.lock().attached.clone()
    }

    /// Becomes that of `other`, lock and all.
    pub fn inherit(&self, other: &Self) {
        let (attached, is_locked) = {
            let other = other.0.lock();
            (other.attached.clone(), other.is_locked)
        };
        *self.0.lock() = State {
            attached,
            is_locked,
        };
    }

    /// How many bytes of a frame behind the first `skip` are wanted.
    pub fn keep(&self, frame: &Frame<'_>, skip: usize) -> usize {
        self.attached()
            .map_or(usize::MAX, |attached| attached.keep(frame, skip))
    }
}

impl Attached {
    fn keep(&self, frame: &Frame<'_>, skip: usize) -> usize {
        let packet = bpf::Packet::new(frame.parts, skip, frame.network);
        let mut known = Known { frame, start: skip };
        self.program.run(&packet, &mut known) as usize
    }

    /// How many bytes of a message are wanted that never was on a network.
    pub fn keep_of_message(&self, parts: &[&[u8]]) -> usize {
        let frame = Frame {
            parts,
            network: 0,
            interface: 0,
            hardware_type: 0,
            protocol: 0,
            packet_type: 0,
            sender: Sender::default(),
            tag: None,
            flow_hash: 0,
            checksum: 0,
        };
        self.keep(&frame, 0)
    }
}
