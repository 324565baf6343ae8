//! Those who wait at a listener go to a child that accepts there (`lending`, `docs/bypass.md`, "fork").
//!
//! The listener's own process takes no new peers since the fork, so that nobody comes to wait here meanwhile. Frames that come between
//! the copy and the change of their way are lost, and peers send them again.

use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;

use posix::{Errno, Host, Open, Result};

use crate::claims::{Channel, Kind, Message, as_file};
use crate::state::{self, Held, Port};
use crate::waiting::finish_handshakes;

/// Gives them to the queue of who has asked.
///
/// Errors: `NOT_CONNECTED` if the listener is gone, or accepts again; `NO_BUFFERS`. They wait here then.
pub fn give(open: &Open, queue: u16, answer: &Channel) -> Result<()> {
    let mut held = Held::of_open(open)?;
    let own = held.queue();
    let host = held.host();
    if !host.is_here(open) || !host.is_withdrawn() {
        return Err(Errno::NOT_CONNECTED);
    }
    host.look_at_all(state::now());
    finish_handshakes(host);
    let all = host.waiting_ends(open)?;
    let file = as_file(&host.copy(open)?).map_err(|_| Errno::NO_BUFFERS)?;
    let given = lead(host, &all, queue).and_then(|()| {
        let offer = Message::plain(Kind::Offer, 0);
        let said = answer.say(offer, Some(file.as_raw_fd()));
        said.map_err(|_| Errno::CONNECTION_RESET)
    });
    match (given, own) {
        (Ok(()), _) => drop(host.take_waiting_connections(open)),
        // Without the link there is nothing to go on with.
        (Err(_), Some(own)) => drop(lead(host, &all, own)),
        (Err(_), None) => {}
    }
    given
}

fn lead(host: &Host<Port>, all: &[(SocketAddrV4, SocketAddrV4)], queue: u16) -> Result<()> {
    for (local, peer) in all {
        let moved = host.link().move_flow(*local, *peer, queue);
        moved.map_err(|_| Errno::NO_BUFFERS)?;
    }
    Ok(())
}
