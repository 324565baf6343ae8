//! Those who wait at a listener go to a child that accepts there (`lending`, `docs/bypass.md`, "fork").
//!
//! The listener's own process takes no new peers since the fork, so that nobody comes to wait here meanwhile. Frames that come between
//! the copy and the change of their way are lost, and peers send them again.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};

use posix::{Errno, Host, Open, Result};

use crate::claims::{Channel, Kind, Message, as_file};
use crate::lending::TAKING_SECS;
use crate::state::{self, Held, Port};
use crate::waiting::finish_handshakes;

/// Gives them to the queue of who has asked; whether it has them all.
///
/// Errors: `NOT_CONNECTED` if the listener is gone, or accepts again; `NO_BUFFERS`, `CONNECTION_RESET`. They wait here then.
pub fn give(open: &Open, queue: u16, answer: &Channel) -> Result<bool> {
    let mut held = Held::of_open(open)?;
    let own = held.queue().ok_or(Errno::NOT_CONNECTED)?;
    let host = held.host();
    if !host.is_here(open) || !host.is_withdrawn() {
        return Err(Errno::NOT_CONNECTED);
    }
    host.look_at_all(state::now());
    finish_handshakes(host);
    let all = host.waiting_ends(open)?;
    let file = as_file(&host.copy(open)?).map_err(|_| Errno::NO_BUFFERS)?;
    let taken = lead(host, &all, queue).and_then(|()| offer(&file, answer));
    let count = *taken.as_ref().unwrap_or(&0);
    // Without the link there is nothing to go on with.
    lead(host, all.get(count..).unwrap_or_default(), own).ok();
    host.forget_waiting(open, count);
    taken.map(|count| count == all.len())
}

/// How many are taken.
fn offer(file: &OwnedFd, answer: &Channel) -> Result<usize> {
    let offer = Message::plain(Kind::Offer, 0);
    answer.set_patience(TAKING_SECS);
    let taken = answer
        .say(offer, Some(file.as_raw_fd()))
        .and_then(|()| answer.hear());
    match taken {
        Ok((message, _)) if message.kind == Kind::Taken => Ok(message.value as usize),
        _ => Err(Errno::CONNECTION_RESET),
    }
}

fn lead(host: &Host<Port>, all: &[(SocketAddrV4, SocketAddrV4)], queue: u16) -> Result<()> {
    for (local, peer) in all {
        let moved = host.link().move_flow(*local, *peer, queue);
        moved.map_err(|_| Errno::NO_BUFFERS)?;
    }
    Ok(())
}
