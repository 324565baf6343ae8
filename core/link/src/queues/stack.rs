//! What of a link that has queues is its network stack's.
//!
//! A program may let go of a socket: the kernel's stack goes on with it, while the program's queue keeps the rest of the
//! link. So the stack is a recipient like a queue, of single *flows* and of *ports*: all flows of a local port that no queue has
//! begun. It gets copies of what goes to all queues, because it has neighbours of its own to ask. What it sends is learned as what
//! queues send, so its flows end as theirs do.
//!
//! Ports stay its own until a program asks for one again, whether a socket has it there or not: what comes for it then is
//! refused by the stack, as is right for a port without a socket.

use alloc::vec::Vec;

use base::Instant;

use super::flows::Flow;
use super::{Ends, NotMoved, Queues, bit};
use crate::headers::Packet;

/// The stack among the numbers of queues.
pub const STACK: u16 = 0xff;

/// Ports that the stack may be given at most.
const PORTS_MAX: usize = 1024;

/// The stack's part.
#[derive(Default, Debug)]
pub(super) struct StackPart {
    /// It has been given something, and may have it still.
    pub is_here: bool,
    /// In order: protocols with ports.
    ports: Vec<(u8, u16)>,
}

impl StackPart {
    /// Whether new flows to the packet's port are the stack's.
    pub fn has_port_of(&self, packet: &Packet) -> bool {
        let has = |port| self.ports.binary_search(&(packet.protocol, port)).is_ok();
        packet.ports.is_some_and(|(_, port)| has(port))
    }

    /// Errors: `NoRoom`.
    fn add(&mut self, port: (u8, u16)) -> Result<(), NotMoved> {
        let Err(place) = self.ports.binary_search(&port) else {
            return Ok(());
        };
        if self.ports.len() == PORTS_MAX || self.ports.try_reserve(1).is_err() {
            return Err(NotMoved::NoRoom);
        }
        self.ports.insert(place, port);
        Ok(())
    }
}

impl Queues {
    /// Gives a flow to a queue, or to the [`STACK`]: what its peer sends from here to us is the recipient's from now on. It is no
    /// more than a queue does with a SYN-ACK that it sends. No queue of these may have a filter.
    ///
    /// Errors: `NoSuchQueue`, `NoRoom`; nothing has changed then.
    pub fn move_flow(&mut self, ends: Ends, to: u16, now: Instant) -> Result<(), NotMoved> {
        self.check_recipient(to)?;
        let hosts = (ends.peer.ip(), ends.local.ip());
        let ports = (ends.peer.port(), ends.local.port());
        let flow = Flow::new(self.key, hosts, Some(ports));
        if !self.flows.give(flow, to, now) {
            return Err(NotMoved::NoRoom);
        }
        self.note_recipient(to);
        Ok(())
    }

    /// Gives a port of a protocol to the [`STACK`], or takes it back for whichever queue it is by the other rules. Flows that somebody
    /// has begun stay his.
    ///
    /// Errors: `NoSuchQueue`, `NoRoom`.
    pub fn move_port(&mut self, port: (u8, u16), to: u16) -> Result<(), NotMoved> {
        self.check_recipient(to)?;
        match to {
            STACK => self.stack.add(port)?,
            _ => self.stack.ports.retain(|other| *other != port),
        }
        self.note_recipient(to);
        Ok(())
    }

    fn check_recipient(&self, to: u16) -> Result<(), NotMoved> {
        match to == STACK || self.members & bit(to) != 0 {
            true => Ok(()),
            false => Err(NotMoved::NoSuchQueue),
        }
    }

    fn note_recipient(&mut self, to: u16) {
        if to == STACK && !self.stack.is_here {
            self.stack.is_here = true;
            // What an only queue has begun nobody has learned.
            self.elder = self.only();
        }
    }

    /// Whether the stack still has a flow or a port.
    pub fn is_stacks_in_part(&self) -> bool {
        self.stack.is_here && (!self.stack.ports.is_empty() || self.flows.has_any_of(STACK))
    }
}
