//! What a program leaves to the one that it becomes by execve(2), or starts.
//!
//! # Problem
//! An execve keeps descriptors and nothing else: the stack is gone with the memory that it was in, and the new program may
//! have the descriptors under other numbers, or not all of them.
//!
//! # Idea
//! Sockets are told as a value, each by the *inode* of the kernel's socket behind its numbers, by which the new program finds
//! the numbers that it has. Listeners and sockets for datagrams are [opened again](crate::Host::inherit); connections of another
//! process's are claimed by the channel that it listens on; and those that the program had itself are copied, as they are when they
//! go to another process (`checkpoint`, `moving`). Nothing of the program's changes by that, so an execve that fails needs no
//! undoing.
//!
//! # Invariants
//! Nothing is believed: the bytes may come from anybody.

use crate::checkpoint::FORMAT;
use crate::encoding::{Encode, structures};
use crate::inherit::UnconnectedSocket;

/// See the module.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct InheritedSockets {
    /// Sockets without a peer, whose numbers are left out.
    pub unconnected: Vec<Left<UnconnectedSocket>>,
    /// Connections of other processes': by which channel, a descriptor, and which of its connections.
    pub loans: Vec<Left<(u32, u32)>>,
    /// Connections of the program's own, as bytes for [`Host::attach`](crate::Host::attach).
    pub connections: Vec<Left<Vec<u8>>>,
    /// A descriptor of the queue that their frames come to until they are made.
    pub queue: Option<u32>,
}

/// A socket by the inode behind its numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Left<T> {
    /// The inode.
    pub inode: u64,
    /// What is left.
    pub what: T,
}

structures! {
    InheritedSockets { unconnected, loans, connections, queue }
}

impl<T: Encode> Encode for Left<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.inode.put(to);
        self.what.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            inode: u64::take(from)?,
            what: T::take(from)?,
        })
    }
}

impl InheritedSockets {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.unconnected.is_empty() && self.loans.is_empty() && self.connections.is_empty()
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        FORMAT.put(&mut bytes);
        self.put(&mut bytes);
        bytes
    }

    /// `None` for bytes of another format, and for those that are none of it.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let is_known = u64::take(&mut bytes)? == FORMAT;
        let inherited = is_known.then(|| Self::take(&mut bytes))??;
        bytes.is_empty().then_some(inherited)
    }
}
