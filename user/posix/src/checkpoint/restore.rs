//! A host that goes on with what another had.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::Instant;
use epoll::{Events, Trigger, Watch};
use inet::{Endpoint, Error, PastConnection, SocketId, TcpSnapshot, Transport};

use super::{Checkpoint, Restored, SetRecord, SocketRecord, SocketState};
use crate::errno::{Errno, Result};
use crate::host::{Host, Link};
use crate::open::{Direction, Open};

impl<L: Link> Host<L> {
    /// Takes over what [`save`](Self::checkpoint) of another host says. This host has nothing yet; on an error it is to
    /// be dropped, and nobody has noticed.
    ///
    /// Errors: `INVALID` for bytes that are nothing of that kind, or of another address; those of the calls
    /// that make such sockets.
    pub fn restore(&mut self, bytes: &[u8], now: Instant) -> Result<Restored> {
        let checkpoint = Checkpoint::decode(bytes).ok_or(Errno::INVALID)?;
        if checkpoint.host != Endpoint::v4(self.address.host(), 0) {
            return Err(Errno::INVALID);
        }
        self.set_now(now);
        let mut restored = Restored::default();
        let mut opens = Vec::new();
        for record in &checkpoint.sockets {
            opens.push(self.restore_socket(record, &mut restored)?);
        }
        for orphan in &checkpoint.orphans {
            self.restore_orphan(orphan)?;
        }
        restored.connections += checkpoint.orphans.len();
        for record in &checkpoint.sets {
            self.restore_set(record, &opens, &mut restored)?;
        }
        if checkpoint.is_shared {
            // Who waits without a set says so again.
            self.share_with_child();
        }
        Ok(restored)
    }

    /// Receives frames that another queue of the link has got.
    pub fn hear(&mut self, frame: &[u8], now: Instant) {
        self.set_now(now);
        self.station.hear(frame);
        self.note_changes();
    }

    pub(super) fn restore_socket(
        &mut self,
        record: &SocketRecord,
        restored: &mut Restored,
    ) -> Result<Arc<Open>> {
        let (first, others) = record.numbers.split_first().ok_or(Errno::INVALID)?;
        let all = &record.numbers;
        if all.iter().any(|number| self.named(*number).is_some()) {
            return Err(Errno::INVALID);
        }
        let transport = match record.is_stream {
            true => Transport::Tcp,
            false => Transport::Udp,
        };
        self.add_socket(*first, transport, record.is_nonblocking)?;
        for other in others {
            self.duplicate(*first, *other)?;
        }
        let open = self.socket(*first)?;
        let (receiving, sending) = record.timeouts;
        open.set_timeout_nanos(Direction::Receive, receiving.unwrap_or(0));
        open.set_timeout_nanos(Direction::Send, sending.unwrap_or(0));
        restored.connections += self.restore_state(open.id(), record)?;
        open.is_outcome_untold
            .store(record.is_outcome_untold, Relaxed);
        open.serves.store(record.serves, Relaxed);
        if record.is_settled {
            open.settle();
        }
        self.refresh(&open);
        restored.sockets.extend(all);
        Ok(open)
    }

    /// Puts a new socket where the other stood; how many connections that are.
    pub(super) fn restore_state(&mut self, id: SocketId, record: &SocketRecord) -> Result<usize> {
        let (stack, world) = self.parts();
        stack.configure(world, id, |options| *options = record.options)?;
        let is_stream = record.is_stream;
        match &record.state {
            SocketState::Unconnected(local) => {
                local.map(|local| stack.bind(id, local)).transpose()?;
                Ok(0)
            }
            SocketState::Datagrams((local, remote)) if !is_stream => {
                stack.bind(id, *local)?;
                stack.connect(world, id, *remote)?;
                Ok(0)
            }
            SocketState::Listening((local, backlog), waiting) if is_stream => {
                stack.bind(id, *local)?;
                stack.listen(id, *backlog as usize)?;
                for connection in waiting {
                    stack.import_waiting(world, id, connection)?;
                }
                Ok(waiting.len())
            }
            SocketState::Connecting(ends) if is_stream => self.reconnect(id, *ends, record),
            SocketState::Connected(connection) if is_stream => {
                stack.import(world, id, connection)?;
                Ok(1)
            }
            SocketState::Past(past) if is_stream => {
                stack.import_past(world, id, past)?;
                Ok(0)
            }
            _ => Err(Errno::INVALID),
        }
    }

    /// The program waits for this peer; if it cannot be asked any more, it hears that nothing came of it.
    fn reconnect(
        &mut self,
        id: SocketId,
        (local, remote): (Endpoint, Endpoint),
        record: &SocketRecord,
    ) -> Result<usize> {
        let (stack, world) = self.parts();
        let asked = stack
            .bind(id, local)
            .and_then(|()| stack.connect(world, id, remote));
        if asked.is_ok() {
            return Ok(1);
        }
        let past = PastConnection {
            local,
            remote,
            unread: Vec::new(),
            error: Some(Error::ConnectionAborted),
            options: record.options,
        };
        stack.import_past(world, id, &past)?;
        Ok(0)
    }

    /// What the program has let go still has to reach its peer.
    pub(super) fn restore_orphan(&mut self, orphan: &TcpSnapshot) -> Result<()> {
        let (stack, world) = self.parts();
        let id = stack.open(Transport::Tcp)?;
        stack.import(world, id, orphan)?;
        Ok(stack.close(world, id)?)
    }

    fn restore_set(
        &mut self,
        record: &SetRecord,
        opens: &[Arc<Open>],
        restored: &mut Restored,
    ) -> Result<()> {
        let (first, others) = record.numbers.split_first().ok_or(Errno::INVALID)?;
        let mut numbers = record.numbers.iter();
        if numbers.any(|number| self.named(*number).is_some()) {
            return Err(Errno::INVALID);
        }
        self.add_set(*first)?;
        for other in others {
            self.duplicate(*first, *other)?;
        }
        let set = self.set(*first).ok_or(Errno::INVALID)?;
        for member in &record.members {
            let open = opens.get(member.socket as usize).ok_or(Errno::INVALID)?;
            let watch = Watch {
                interest: Events::from_bits_truncate(member.interest),
                trigger: Trigger::from_bits_truncate(member.trigger),
                data: member.data,
            };
            set.restore(member.number, open, watch)?;
        }
        restored.sets.extend(&record.numbers);
        Ok(())
    }
}
