//! A host as a value.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use epoll::Watch;
use inet::{Endpoint, SocketId, State, Transport};

use super::{Checkpoint, Member, SetRecord, SocketRecord, SocketState};
use crate::errno::Result;
use crate::host::{Host, Link};
use crate::open::{Direction, Open};
use crate::sets::WatchSet;
use crate::sharing::Sharing;

/// Each with its numbers.
type Sockets = Vec<(Arc<Open>, Vec<u32>)>;

impl<L: Link> Host<L> {
    /// Connections that peers have asked for, and that cannot go along before they are made.
    pub fn half_open(&mut self) -> usize {
        self.parts().0.half_open()
    }

    /// All that the host has, as bytes for [`restore`](Self::restore). Nothing changes by that.
    ///
    /// Errors: `NO_BUFFERS`.
    pub fn checkpoint(&mut self) -> Result<Vec<u8>> {
        let sockets = grouped(self.table.sockets());
        let records = sockets
            .iter()
            .map(|(open, numbers)| self.record(open, numbers));
        let records = records.collect::<Result<_>>()?;
        let sets = grouped(self.table.sets());
        let sets = sets.iter().map(|(set, numbers)| SetRecord {
            numbers: numbers.clone(),
            members: members_of(set, &sockets),
        });
        let sets = sets.collect();
        let (stack, world) = self.parts();
        let orphans = stack.orphan_snapshots(world)?;
        let checkpoint = Checkpoint {
            host: Endpoint::v4(self.address.host(), 0),
            sockets: records,
            orphans,
            sets,
            is_shared: self.sharing != Sharing::Alone,
        };
        Ok(checkpoint.encode())
    }

    pub(super) fn record(&mut self, open: &Open, numbers: &[u32]) -> Result<SocketRecord> {
        Ok(SocketRecord {
            numbers: numbers.to_vec(),
            is_stream: open.transport == Transport::Tcp,
            is_nonblocking: open.is_nonblocking(),
            is_outcome_untold: open.is_outcome_untold.load(Relaxed),
            is_settled: open.is_settled(),
            serves: open.serves.load(Relaxed),
            timeouts: (
                open.timeout_nanos(Direction::Receive),
                open.timeout_nanos(Direction::Send),
            ),
            options: *self.parts().0.options(open.id())?,
            state: match open.transport {
                Transport::Tcp => self.state_of(open.id())?,
                Transport::Udp => self.names(open.id()),
            },
        })
    }

    fn state_of(&mut self, id: SocketId) -> Result<SocketState> {
        let (stack, world) = self.parts();
        let state = stack.state(id)?;
        if let State::Listen = state {
            let backlog = stack.accept_queue(id)?.1;
            let listener = (stack.local(id)?, u32::try_from(backlog).unwrap_or(u32::MAX));
            return Ok(SocketState::Listening(
                listener,
                stack.waiting_snapshots(world, id)?,
            ));
        }
        if let Some(past) = stack.past(id)? {
            return Ok(SocketState::Past(past));
        }
        Ok(match state {
            State::Closed => self.names(id),
            State::SynSent | State::SynReceived => {
                SocketState::Connecting((stack.local(id)?, stack.remote(id)?))
            }
            _ => SocketState::Connected(stack.snapshot(world, id)?),
        })
    }

    fn names(&mut self, id: SocketId) -> SocketState {
        let (stack, _) = self.parts();
        let local = stack.local(id).ok().filter(|local| local.port != 0);
        match (local, stack.remote(id)) {
            (Some(local), Ok(remote)) => SocketState::Datagrams((local, remote)),
            (local, _) => SocketState::Unconnected(local),
        }
    }

    /// Frames that lie in the queue's ring, to be heard by another host.
    pub fn take_frames(&mut self) -> Vec<Vec<u8>> {
        self.station.take_frames()
    }
}

pub(super) fn grouped<T>(all: impl Iterator<Item = (u32, Arc<T>)>) -> Vec<(Arc<T>, Vec<u32>)> {
    let mut found: Vec<(Arc<T>, Vec<u32>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (number, one) in all {
        let place = *places.entry(Arc::as_ptr(&one)).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, numbers)) => numbers.push(number),
            None => found.push((one, vec![number])),
        }
    }
    found
}

fn members_of(set: &WatchSet, sockets: &Sockets) -> Vec<Member> {
    let mut members = Vec::new();
    set.members(|number, open, watch: Watch| {
        let place = sockets
            .iter()
            .position(|(known, _)| Arc::ptr_eq(known, open));
        if let Some(place) = place {
            members.push(Member {
                number,
                socket: place as u32,
                interest: watch.interest.bits(),
                trigger: watch.trigger.bits(),
                data: watch.data,
            });
        }
    });
    members
}
