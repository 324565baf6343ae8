//! Taking a connection apart and putting it together again (TCP_REPAIR).
//!
//! A program that moves others between hosts (CRIU) stops a connection, reads what both kernels'
//! ends have agreed on and the bytes in its queues, closes it without a word to the peer, and makes
//! the same anew elsewhere. Each of its calls reads or changes a part of the value that the
//! frozen socket holds (`inet::TcpSnapshot`). When it is done the stack checks the whole.
//!
//! Other than on Linux the connection stands still meanwhile: what arrives is dropped, so nobody
//! needs a packet filter in front of it; and the name of one that was closed stays quiet for a
//! minute (`docs/tcp-repair.md`).

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use inet::{ClockSnapshot, FrozenQueue, State, TcpSnapshot};
use mach::mem::fallible;
use mm::io::{Sink, Source, partial};
use net::after_send;
use sync::{Error, Result};
use vfs::socket::{OptionName, OptionValue, RepairWindow};

use super::TcpSocket;

/// TCP_NO_QUEUE and its like.
const NO_QUEUE: u8 = 0;
const RECEIVE_QUEUE: u8 = 1;
const SEND_QUEUE: u8 = 2;

/// A value of TCP_REPAIR that Linux has not: the connection waits at the listener of its name, to be accepted.
const TO_LISTENER: i32 = 2;

/// What options of a SYN are called in TCP_REPAIR_OPTIONS.
const OPTION_MSS: u32 = 2;
const OPTION_WINDOW: u32 = 3;
const OPTION_SACK_PERMITTED: u32 = 4;
const OPTION_TIMESTAMP: u32 = 8;
/// RFC 7323 2.3.
const SCALE_MAX: u32 = 14;

/// Bytes that go into a queue at once.
const STEP_BYTES: usize = 16 * 1024;

/// Whether the option is one of those for repair.
pub(super) fn is_option(name: OptionName) -> bool {
    matches!(
        name,
        OptionName::Repair
            | OptionName::RepairQueue
            | OptionName::QueueSequence
            | OptionName::RepairOptions
            | OptionName::RepairWindow
            | OptionName::TcpClock
    )
}

impl TcpSocket {
    /// Whether it is being repaired.
    pub(super) fn is_frozen(&self) -> bool {
        let frozen = self.handle.look(|id, stack| stack.frozen(id).is_some());
        frozen.unwrap_or(false)
    }

    /// What the socket holds that is being repaired.
    ///
    /// Errors: `otherwise` if it is not.
    fn see<R>(&self, otherwise: Error, look: impl FnOnce(&TcpSnapshot) -> R) -> Result<R> {
        let seen = self
            .handle
            .look(|id, stack| stack.frozen(id).map(look))
            .flatten();
        seen.ok_or(otherwise)
    }

    fn change(
        &self,
        otherwise: Error,
        change: impl FnOnce(&mut TcpSnapshot) -> Result<()>,
    ) -> Result<()> {
        self.handle.with(|id, stack, _| {
            let snapshot = stack.frozen_mut(id).map_err(|_| otherwise)?;
            Ok(change(snapshot)?)
        })
    }

    /// Reads an option.
    pub(super) fn repaired(&self, name: OptionName) -> Result<OptionValue> {
        let number = |value: u32| OptionValue::Number(value.cast_signed());
        match name {
            OptionName::Repair => Ok(self.is_frozen().into()),
            OptionName::RepairQueue => {
                let queue = self.repair_queue.load(Ordering::Relaxed);
                self.see(Error::Invalid, |_| number(queue.into()))
            }
            OptionName::QueueSequence => self.queue_end().map(number),
            OptionName::RepairWindow => self
                .see(Error::NotPermitted, window_of)
                .map(OptionValue::RepairWindow),
            OptionName::TcpClock => {
                let clock = |id, stack: &mut inet::Stack, link: &mut _| {
                    Ok(stack.tcp_clock(link, id).unwrap_or(0))
                };
                self.handle.with(clock).map(number)
            }
            _ => Err(Error::NoSuchOption),
        }
    }

    /// Sets an option.
    pub(super) fn repair(&self, name: OptionName, value: OptionValue) -> Result<()> {
        match (name, value) {
            (OptionName::Repair, value) => self.freeze_or_thaw(value.number()?),
            (OptionName::RepairQueue, value) => self.choose_queue(value.number()?),
            (OptionName::QueueSequence, value) => self.place_queue(value.number()?.cast_unsigned()),
            (OptionName::TcpClock, value) => {
                let own = value.number()?.cast_unsigned();
                self.change(Error::NotPermitted, |snapshot| {
                    if let Some(clocks) = &mut snapshot.clocks {
                        clocks.own = own;
                    }
                    Ok(())
                })
            }
            (OptionName::RepairOptions, OptionValue::RepairOptions(options)) => {
                self.change(Error::Invalid, |snapshot| {
                    if snapshot.state != State::Established {
                        return Err(Error::NotPermitted);
                    }
                    let given = options.iter().filter(|(code, _)| *code != 0);
                    given
                        .copied()
                        .try_for_each(|option| agree(snapshot, option))
                })
            }
            (OptionName::RepairWindow, OptionValue::RepairWindow(window)) => self
                .change(Error::NotPermitted, |snapshot| {
                    set_window(snapshot, &window)
                }),
            _ => Err(Error::NoSuchOption),
        }
    }

    fn freeze_or_thaw(&self, value: i32) -> Result<()> {
        if self.state()? == State::Listen {
            return Err(Error::NotPermitted);
        }
        match value {
            1 => {
                self.handle
                    .with(|id, stack, link| Ok(stack.freeze(link, id)?))?;
                self.repair_queue.store(NO_QUEUE, Ordering::Relaxed);
                Ok(())
            }
            0 | -1 if self.is_frozen() => self.handle.with(|id, stack, link| {
                stack.thaw(link, id, value == 0)?;
                after_send(link);
                Ok(())
            }),
            0 | -1 => Ok(()),
            TO_LISTENER if self.is_frozen() => self.handle.with(|id, stack, link| {
                stack.give_to_listener(link, id)?;
                after_send(link);
                Ok(())
            }),
            _ => Err(Error::Invalid),
        }
    }

    fn choose_queue(&self, number: i32) -> Result<()> {
        self.see(Error::NotPermitted, |_| ())?;
        let queue = u8::try_from(number)
            .ok()
            .filter(|queue| *queue <= SEND_QUEUE);
        let queue = queue.ok_or(Error::Invalid)?;
        self.repair_queue.store(queue, Ordering::Relaxed);
        Ok(())
    }

    fn queue(&self) -> Result<FrozenQueue> {
        match self.repair_queue.load(Ordering::Relaxed) {
            RECEIVE_QUEUE => Ok(FrozenQueue::Receive),
            SEND_QUEUE => Ok(FrozenQueue::Send),
            _ => Err(Error::Invalid),
        }
    }

    fn queue_end(&self) -> Result<u32> {
        let queue = self.queue();
        self.see(Error::Invalid, |snapshot| match queue? {
            FrozenQueue::Send => Ok(snapshot.sending.end()),
            FrozenQueue::Receive => Ok(snapshot.receiving.nxt),
        })?
    }

    /// Says where a queue begins, of a socket that has neither a connection nor bytes.
    fn place_queue(&self, seq: u32) -> Result<()> {
        if self.state()? != State::Closed {
            return Err(Error::NotPermitted);
        }
        let queue = self.queue()?;
        self.change(Error::Invalid, |snapshot| {
            match queue {
                FrozenQueue::Send => snapshot.sending.una = seq,
                FrozenQueue::Receive => snapshot.receiving.nxt = seq,
            }
            Ok(())
        })
    }

    /// Adds bytes to the chosen queue, as many as it takes.
    pub(super) fn fill(&self, from: &mut Source<'_>) -> Result<usize> {
        let (queue, before) = (self.queue()?, from.done());
        let mut bytes = fallible::zeroed(STEP_BYTES.min(from.remaining()))?;
        while from.remaining() != 0 {
            if let Err(error) = self.fill_step(queue, from, &mut bytes) {
                return partial(from.done() - before, error);
            }
        }
        Ok(from.done() - before)
    }

    fn fill_step(&self, queue: FrozenQueue, from: &mut Source<'_>, bytes: &mut [u8]) -> Result<()> {
        let room = self
            .handle
            .with(|id, stack, _| Ok(stack.frozen_room(id, queue)?))?;
        let step = room.min(bytes.len()).min(from.remaining());
        let bytes = bytes.get_mut(..step).unwrap_or_default();
        if bytes.is_empty() {
            return Err(Error::WouldBlock);
        }
        let taken = from.take(bytes)?;
        let filled = self.handle.with(|id, stack, _| {
            let bytes = bytes.get(..taken).unwrap_or_default();
            Ok(stack.fill_frozen(id, queue, bytes)?)
        });
        filled.inspect_err(|_| from.rewind(taken))
    }

    /// Copies the chosen queue to `to` (MSG_PEEK).
    pub(super) fn peek_frozen(&self, to: &mut Sink<'_>) -> Result<usize> {
        let (queue, most) = (self.queue()?, to.remaining());
        let bytes = self.see(Error::Invalid, |snapshot| -> Result<Vec<u8>> {
            let (sending, receiving) = (&snapshot.sending, &snapshot.receiving);
            let parts: [&[u8]; 2] = match queue {
                FrozenQueue::Send => [&sending.unacked, &sending.unsent],
                FrozenQueue::Receive => [&receiving.unread, &[]],
            };
            let held: usize = parts.iter().map(|part| part.len()).sum();
            let mut bytes = fallible::zeroed(most.min(held))?;
            let mut room = bytes.as_mut_slice();
            for part in parts {
                let fits = part.len().min(room.len());
                let (place, rest) = room.split_at_mut(fits);
                place.copy_from_slice(part.get(..fits).unwrap_or_default());
                room = rest;
            }
            Ok(bytes)
        })??;
        if bytes.is_empty() && queue == FrozenQueue::Receive {
            return Err(Error::WouldBlock);
        }
        to.put(&bytes)
    }
}

fn window_of(snapshot: &TcpSnapshot) -> RepairWindow {
    RepairWindow {
        send_wl1: snapshot.sending.wl1,
        send: snapshot.sending.window,
        send_max: snapshot.sending.window_max,
        receive: snapshot.receiving.window,
        receive_from: snapshot.receiving.nxt,
    }
}

fn set_window(snapshot: &mut TcpSnapshot, window: &RepairWindow) -> Result<()> {
    let is_after = |seq: u32, other: u32| (seq.wrapping_sub(other) as i32) > 0;
    let nxt = snapshot.receiving.nxt;
    let is_wrong = window.send_max < window.send
        || is_after(window.send_wl1, nxt.wrapping_add(window.receive))
        || is_after(window.receive_from, nxt);
    if is_wrong {
        return Err(Error::Invalid);
    }
    let (sending, receiving) = (&mut snapshot.sending, &mut snapshot.receiving);
    sending.wl1 = window.send_wl1;
    sending.window = window.send;
    sending.window_max = window.send_max;
    // What came since it was offered has used it up.
    let used = nxt.wrapping_sub(window.receive_from);
    receiving.window = window.receive.saturating_sub(used);
    Ok(())
}

/// Takes an option for one that both ends have agreed on.
fn agree(snapshot: &mut TcpSnapshot, (code, value): (u32, u32)) -> Result<()> {
    match code {
        OPTION_MSS => snapshot.sending.mss = u16::try_from(value).unwrap_or(u16::MAX),
        OPTION_WINDOW => {
            let (send, receive) = (value & 0xffff, value >> 16);
            if send.max(receive) > SCALE_MAX {
                return Err(Error::FileTooLarge);
            }
            snapshot.sending.scale = send as u8;
            snapshot.receiving.scale = receive as u8;
        }
        OPTION_SACK_PERMITTED | OPTION_TIMESTAMP if value != 0 => return Err(Error::Invalid),
        OPTION_SACK_PERMITTED => snapshot.has_sack = true,
        OPTION_TIMESTAMP => {
            let unknown = ClockSnapshot { own: 0, recent: 0 };
            snapshot.clocks.get_or_insert(unknown);
        }
        // Linux passes over what it does not know.
        _ => {}
    }
    Ok(())
}
