//! Frames on their way from one port to others, and whose turn it is to be read.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use rustix::event::PollFlags;

use super::{Connections, Switch};
use crate::fabric::{Left, MemberId, Port};
use crate::socket::{NotQueued, Socket};

/// Reads of one port until another one has its turn.
const READS_PER_TURN: usize = 4;

impl Switch {
    /// Passes on what a port has, for a turn.
    pub(super) fn pass_on(&mut self, port: Port, now: Instant) {
        for _ in 0..READS_PER_TURN {
            if !self.may_read(port, now) {
                return;
            }
            let Some(socket) = socket_of(&mut self.connections, port) else {
                return;
            };
            if !socket.fill(now) {
                return;
            }
            // Taken out meanwhile, as frames may go to any socket.
            let mut inbox = std::mem::take(&mut socket.inbox);
            let is_sound = loop {
                match inbox.take() {
                    Ok(Some(frame)) => self.forward(port, frame, now),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            let Some(socket) = socket_of(&mut self.connections, port) else {
                return;
            };
            socket.inbox = inbox;
            if !is_sound {
                self.fabric.drops.bad_length += 1;
                return socket.cut(now);
            }
        }
    }

    /// Whether who receives what this port sends keeps up.
    fn may_read(&mut self, port: Port, now: Instant) -> bool {
        let other = match port {
            Port::Card(id) => Port::WayOut(id),
            Port::WayOut(id) => Port::Card(id),
        };
        socket_of(&mut self.connections, other).is_none_or(|socket| {
            socket.flush(now);
            socket.keeps_up()
        })
    }

    fn forward(&mut self, from: Port, frame: &[u8], now: Instant) {
        let (mut full, mut absent) = (0, 0);
        let connections = &mut self.connections;
        let asked = self.fabric.forward(from, frame, &mut |to, frame| {
            let queued = socket_of(connections, to).map(|socket| socket.queue(frame));
            match queued {
                Some(Ok(())) => {}
                Some(Err(NotQueued::Full)) => full += 1,
                Some(Err(NotQueued::NotConnected)) | None => absent += 1,
            }
        });
        self.fabric.drops.queue_full += full;
        self.fabric.drops.not_connected += absent;
        match asked {
            Some(Left::Question(asked)) => self.ask_others(asked, now),
            Some(Left::Segment(frame)) => self.take_segment(frame, now),
            None => {}
        }
    }
}

/// What is waited for at `socket`, whose frames go to `other` and perhaps elsewhere.
pub(super) fn interest<'a>(
    socket: &'a Socket,
    other: Option<&Socket>,
) -> Option<(BorrowedFd<'a>, PollFlags)> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, other.is_none_or(Socket::keeps_up));
    flags.set(PollFlags::OUT, socket.has_output());
    Some((socket.stream()?.as_fd(), flags))
}

pub(super) fn socket_of(
    connections: &mut BTreeMap<MemberId, Connections>,
    port: Port,
) -> Option<&mut Socket> {
    match port {
        Port::Card(id) => Some(&mut connections.get_mut(&id)?.card),
        Port::WayOut(id) => connections.get_mut(&id)?.way_out.as_mut(),
    }
}
