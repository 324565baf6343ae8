//! Claims connections that another process has (`lending`).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use base::Instant;
use posix::{Errno, Host, Link, Open, Result};

use crate::claims::{Channel, Kind, Message, bytes_of};

/// How long who has it may take to look at what we ask.
const ASKING_SECS: i64 = 10;
/// And to hear that we have it: longer than that who has it goes on itself.
const AGREEING_SECS: i64 = 60;

/// Gets a connection into our host, whose frames come by this queue. What is returned is to be lent to who had it.
///
/// Errors: why not, as errno(3) has it.
pub fn claim<L: Link>(
    (host, queue): (&mut Host<L>, u16),
    (channel, place): (&Channel, u32),
    numbers: &[u32],
    now: Instant,
) -> Result<Option<(Channel, Arc<Open>)>> {
    let (ours, bytes) = ask(queue, (channel, place))?;
    let made = host.attach(&bytes, numbers, now);
    let open = match made {
        Ok(open) => open,
        Err(error) => {
            let refused = Message::plain(Kind::Refuse, error.number() as u32);
            // Who does not hear it hears that we close it.
            ours.say(refused, None).ok();
            return Err(error);
        }
    };
    match agree(&ours) {
        Ok(0) => Ok(None),
        Ok(_) => {
            // It may be claimed back at any time.
            ours.set_patience(0);
            host.hold(&open);
            Ok(Some((ours, open)))
        }
        Err(_) => {
            // It is still the other's, or has ended with it: not a word of ours to its peer.
            host.detach(&open).ok();
            host.forget_moved(&open);
            Err(Errno::CONNECTION_RESET)
        }
    }
}

/// Gets those who wait at a listener into our host, whose frames come by this queue, to wait at our own one; whether that
/// are all, and not only as many as there is memory for.
///
/// Errors: those of [`claim`].
pub fn claim_backlog<L: Link>(
    (host, queue): (&mut Host<L>, u16),
    from: (&Channel, u32),
    listener: &Open,
    now: Instant,
) -> Result<bool> {
    let (ours, bytes) = ask(queue, from)?;
    let (made, all) = host.attach_waiting(&bytes, listener, now)?;
    // Who does not hear it hears that we are gone.
    ours.say(Message::plain(Kind::Taken, made as u32), None)
        .ok();
    Ok(made == all)
}

/// What is to be made here, and where the rest is said.
fn ask(queue: u16, (channel, place): (&Channel, u32)) -> Result<(Channel, Vec<u8>)> {
    let [ours, theirs] = Channel::pair().map_err(|_| Errno::TOO_MANY)?;
    let message = Message {
        kind: Kind::Claim,
        place,
        value: queue.into(),
    };
    let asked = channel.say(message, Some(theirs.number()));
    asked.map_err(|_| Errno::CONNECTION_RESET)?;
    drop(theirs);
    ours.set_patience(ASKING_SECS);
    let bytes = offered(&ours)?;
    Ok((ours, bytes))
}

fn offered(ours: &Channel) -> Result<Vec<u8>> {
    let heard = ours.hear();
    match heard {
        Ok((message, Some(file))) if message.kind == Kind::Offer => read(file),
        Ok((message, _)) if message.kind == Kind::Refuse => {
            Err(Errno::from_number(message.value as i32))
        }
        _ => Err(Errno::CONNECTION_RESET),
    }
}

fn read(file: OwnedFd) -> Result<Vec<u8>> {
    bytes_of(file).map_err(|_| Errno::NO_BUFFERS)
}

/// Says that we have it, and hears that the other has not any more; how many numbers of it are left there.
fn agree(ours: &Channel) -> io::Result<u32> {
    ours.say(Message::plain(Kind::Taken, 0), None)?;
    ours.set_patience(AGREEING_SECS);
    let (message, _) = ours.hear()?;
    match message.kind {
        Kind::Yours => Ok(message.value),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
