//! How many queues there may be, and how large (/proc/sys/fs/mqueue).

use core::sync::atomic::{AtomicU64, Ordering};

use super::messages::PRIORITIES;
use cred::Capability;
use sync::{Error, Result};
use task::current;

/// Queues that users who are no administrators make. The administrator's, for the whole machine, as
/// those below.
pub static QUEUES: AtomicU64 = AtomicU64::new(256);
/// Messages of a queue at most (`msg_max`).
pub static MESSAGES: AtomicU64 = AtomicU64::new(10);
/// Bytes of a message at most (`msgsize_max`).
pub static MESSAGE_BYTES: AtomicU64 = AtomicU64::new(8192);
/// Messages of a queue whose maker did not say (`msg_default`).
pub static MESSAGES_USUAL: AtomicU64 = AtomicU64::new(10);
/// Bytes of its messages (`msgsize_default`).
pub static MESSAGE_BYTES_USUAL: AtomicU64 = AtomicU64::new(8192);

/// What no limit may be set beyond: queues, messages, bytes of a message.
pub const QUEUES_MOST: u64 = i32::MAX as u64;
/// See [`QUEUES_MOST`].
pub const MESSAGES_MOST: u64 = 65_536;
/// See [`QUEUES_MOST`].
pub const MESSAGE_BYTES_MOST: u64 = 16 << 20;
/// What a message may always have.
pub const MESSAGE_BYTES_LEAST: u64 = 128;

/// What Linux counts for a message besides its bytes, and for a priority.
const MESSAGE_COST: u64 = 48;
const PRIORITY_COST: u64 = 48;

/// How much a queue holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Messages.
    pub messages: i64,
    /// Bytes of each.
    pub message_bytes: i64,
}

impl Shape {
    /// Where the maker does not say.
    pub fn usual() -> Self {
        let least = |usual: &AtomicU64, most: &AtomicU64| {
            let bound = most.load(Ordering::Relaxed);
            usual.load(Ordering::Relaxed).min(bound) as i64
        };
        Self {
            messages: least(&MESSAGES_USUAL, &MESSAGES),
            message_bytes: least(&MESSAGE_BYTES_USUAL, &MESSAGE_BYTES),
        }
    }

    /// What the current thread may ask for: messages, and bytes of each.
    ///
    /// Errors: `Invalid`.
    pub fn check(self) -> Result<(usize, usize)> {
        let is_above = current()
            .credentials
            .with(|who| who.has(Capability::SysResource));
        let (messages, bytes) = match is_above {
            true => (MESSAGES_MOST, MESSAGE_BYTES_MOST),
            false => (
                MESSAGES.load(Ordering::Relaxed),
                MESSAGE_BYTES.load(Ordering::Relaxed),
            ),
        };
        let within = |wanted: i64, most: u64| {
            let wanted = u64::try_from(wanted).map_err(|_| Error::Invalid)?;
            let fits = (1..=most).contains(&wanted);
            fits.then_some(wanted as usize).ok_or(Error::Invalid)
        };
        Ok((
            within(self.messages, messages)?,
            within(self.message_bytes, bytes)?,
        ))
    }
}

/// What such a queue counts for its user.
pub fn cost(messages: usize, message_bytes: usize) -> u64 {
    let (messages, bytes) = (messages as u64, message_bytes as u64);
    messages * (bytes + MESSAGE_COST) + messages.min(u64::from(PRIORITIES)) * PRIORITY_COST
}
