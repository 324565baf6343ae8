//! Connections that other processes may claim (`docs/bypass.md`, "fork").
//!
//! # Problem
//! A child inherits a connection's number, and the program behind it goes on in either process, or in both. On a kernel's
//! socket they would share it. Here its stack, its buffers and its frames' way are one process's.
//!
//! # Idea
//! One process has it at a time: who uses it. At a fork the parent *lends* its connections: it keeps each open, whatever it
//! closes itself, as long as somebody may claim it, which is what a socket with several holders does in the kernel. Parent
//! and child have a channel for that (`claims`), on which a thread of the parent's waits. A child that uses one of the
//! numbers claims it there (`claiming`); one that closes them says so; and one that ends, or is another program, has
//! closed the channel.
//!
//! A claim: frames of the connection go to the child's queue from now on, and those that came before are heard
//! here; then it is copied and stands still, and when the child has it it is forgotten here. If anything
//! fails it goes on here, and its frames come here again. If the parent has numbers of it still, the child lends it
//! to the parent, by the same means.
//!
//! # Invariants
//! - A connection is in one stack that speaks for it, or, between `Offer` and `Yours`, in one that stands still and one whose
//!   state is locked.
//! - A thread of ours waits without the state's lock.
//!
//! # Not here
//! A card of the program's own, which has one queue. Connections that are still being made. Of several children
//! that have inherited one connection, the first that uses it has it.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use posix::{Errno, Open};

use crate::backlog;
use crate::claims::{Channel, Kind, Message, as_file};
use crate::keeper;
use crate::state::{self, Held, Lent};

/// How long a child may take to make a connection that it has claimed.
pub const TAKING_SECS: i64 = 10;

/// Runs when the library is loaded, before sockets are taken over that were left to the program (`inherited_fds`).
#[used]
#[unsafe(link_section = ".init_array.00200")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // Nobody has before.
    state::LEND.set(start).ok();
    state::RETURN.set(wait_for_return).ok();
}

/// How often it is looked whether it was claimed or closed meanwhile.
const RETURN_LOOK_SECS: i64 = 1;

/// Claims a connection that another process has, when that one is about to end.
fn wait_for_return(channel: Arc<Channel>) {
    channel.set_patience(RETURN_LOOK_SECS);
    keeper::spawn("sietch-return", move || {
        while Arc::strong_count(&channel) > 1 {
            match channel.hear() {
                Ok((message, _)) if message.kind == Kind::Return => {
                    state::claim_back(&channel);
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    });
}

/// Waits for claims on a thread of its own, until nothing is lent any more. What is lent is held already.
fn start(lent: Lent) {
    keeper::spawn("sietch-lending", move || serve(lent));
}

fn serve(mut lent: Lent) {
    while lent.opens.iter().any(Option::is_some) {
        // Whatever ends the talk, nobody claims any more.
        let Ok((message, descriptor)) = lent.channel.hear() else {
            break;
        };
        let place = lent.opens.get_mut(message.place as usize);
        match (message.kind, descriptor) {
            (Kind::Claim, Some(descriptor)) => {
                let answer = Channel::from_descriptor(descriptor);
                let open = place.and_then(Option::take);
                let Some(open) = open else {
                    refuse(&answer, Errno::NOT_CONNECTED);
                    continue;
                };
                let queue = message.value as u16;
                let kept = match open.listens() {
                    true => give_backlog(open, queue, &answer),
                    false => give(&open, queue, answer),
                };
                if let Some(place) = lent.opens.get_mut(message.place as usize) {
                    *place = kept;
                }
            }
            (Kind::Release, _) => {
                if let Some(open) = place.and_then(Option::take) {
                    let_go([open]);
                }
            }
            _ => {}
        }
    }
    let_go(lent.opens.into_iter().flatten());
    state::lock().forget_lending(lent.channel);
}

/// Gives those who wait at a listener. Who is not given waits here, and may be claimed later.
fn give_backlog(open: Arc<Open>, queue: u16, answer: &Channel) -> Option<Arc<Open>> {
    let given = backlog::give(&open, queue, answer);
    if let Err(error) = given {
        refuse(answer, error);
    }
    match given {
        Ok(true) | Err(Errno::NOT_CONNECTED) => {
            let_go([open]);
            None
        }
        _ => Some(open),
    }
}

fn let_go(opens: impl IntoIterator<Item = Arc<Open>>) {
    if let Ok(mut held) = Held::wait() {
        for open in opens {
            held.host().let_go_of(&open);
        }
        held.host().flush();
    }
}

fn refuse(answer: &Channel, error: Errno) {
    // Who has asked may be gone.
    answer
        .say(Message::plain(Kind::Refuse, error.number() as u32), None)
        .ok();
}

/// Gives a connection to who has asked for it. It is returned if it goes on here, and can be lent again.
fn give(open: &Arc<Open>, queue: u16, answer: Channel) -> Option<Arc<Open>> {
    let (ends, file) = match offer(open, queue) {
        Ok(offered) => offered,
        Err((kept, error)) => {
            refuse(&answer, error);
            return kept;
        }
    };
    let taken = answer
        .say(Message::plain(Kind::Offer, 0), Some(file.as_raw_fd()))
        .and_then(|()| {
            answer.set_patience(TAKING_SECS);
            answer.hear()
        });
    answer.set_patience(0);
    let mut held = Held::wait().ok()?;
    let is_taken = taken.is_ok_and(|(message, _)| message.kind == Kind::Taken);
    if is_taken && held.hand_over(open, answer).is_ok() {
        return None;
    }
    take_back(&mut held, open, ends);
    Some(open.clone())
}

/// A connection that is not given goes on, and is still lent if it can be.
type NotGiven = (Option<Arc<Open>>, Errno);

type Ends = Option<(SocketAddrV4, SocketAddrV4)>;

/// Detaches it; its ends and what it is.
fn offer(open: &Arc<Open>, queue: u16) -> Result<(Ends, OwnedFd), NotGiven> {
    let mut held = Held::wait().map_err(|error| (None, error))?;
    if !held.host().is_here(open) {
        return Err((None, Errno::NOT_CONNECTED));
    }
    let kept = |error| (Some(open.clone()), error);
    held.host().look_at_all(state::now());
    let ends = held.host().ends(open).map_err(kept)?;
    if let Some((local, peer)) = ends {
        let moved = held.host().link().move_flow(local, peer, queue);
        moved.map_err(|_| kept(Errno::NO_BUFFERS))?;
        held.host().look_at_all(state::now());
    }
    let offered = held.host().detach(open).and_then(|bytes| {
        let file = as_file(&bytes);
        file.map_err(|_| Errno::NO_BUFFERS)
    });
    match offered {
        Ok(file) => {
            held.begin_move(open);
            Ok((ends, file))
        }
        Err(error) => {
            take_back(&mut held, open, ends);
            Err(kept(error))
        }
    }
}

fn take_back(held: &mut Held, open: &Arc<Open>, ends: Ends) {
    if let (Some((local, peer)), Some(queue)) = (ends, held.queue()) {
        // Without the link there is nothing to go on with.
        held.host().link().move_flow(local, peer, queue).ok();
    }
    held.host().reattach(open);
    held.host().flush();
    held.end_move(open);
}
