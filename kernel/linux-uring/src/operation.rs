//! What entries ask for, done once and without waiting.

use alloc::sync::Arc;

use base::{Instant, VirtAddr};
use ipc::eventfd::EventFd;
use kernel_uring::{Abi, Attempt, Failure};
use linux_abi::call::Outcome;
use linux_abi::{Errno, iovec, timespec};
use linux_net::{address, connect, header};
use linux_raw_sys::general::{RWF_DSYNC, RWF_HIPRI, RWF_NOWAIT, RWF_SYNC};
use mm::io::{Sink, Source, UserRange};
use sync::poll::Events;
use sync::{Error, Result};
use uring::{Buffers, Direction, Operation, Place, TimeoutFlags};
use vfs::file::OpenFile;
use vfs::socket::{Blocking, Control, Message, MessageFlags, OptionName, OptionValue, Socket};

use crate::{call, frame};

/// Linux's operations, for rings.
pub struct Linux;

impl Abi for Linux {
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<i32> {
        match attempt.open {
            Some(open) => on_file(attempt, open),
            None => Ok(answer(without_file(attempt))),
        }
    }

    fn number(&self, failure: Failure) -> i32 {
        let errno = match failure {
            Failure::Error(Error::Interrupted(_)) => Errno::EINTR,
            Failure::Error(error) => Errno::from(error),
            Failure::Cancelled => Errno::ECANCELED,
            Failure::Expired => Errno::ETIME,
        };
        -i32::from(errno.number())
    }

    fn signal(&self, counter: &OpenFile) {
        if let Some(counter) = counter.file.as_any().downcast_ref::<EventFd>() {
            counter.signal();
        }
    }

    fn deadline(&self, address: u64, flags: TimeoutFlags) -> Result<Instant> {
        let span = timespec::read(VirtAddr(address))?;
        Ok(match flags {
            flags if !flags.contains(TimeoutFlags::ABS) => mach::time::now() + span,
            flags if flags.contains(TimeoutFlags::REALTIME) => clock::instant_of_wall(span),
            _ => Instant::START + span,
        })
    }
}

/// A call's outcome as a completion has it.
fn answer(outcome: Outcome) -> i32 {
    match outcome {
        Ok(value) => i32::try_from(value).unwrap_or(i32::MAX),
        Err(errno) => -i32::from(errno.number()),
    }
}

fn without_file(attempt: &Attempt<'_>) -> Outcome {
    match *attempt.operation {
        Operation::Call { call, args } => call::run(attempt.thread, call, args),
        Operation::Close { .. } => {
            let fd = u64::from(attempt.fd as u32);
            let open = attempt
                .thread
                .files
                .with(|files| files.get_any(attempt.fd as u32))?;
            // A ring would end within its own work.
            if open.file.as_any().is::<kernel_uring::RingFile>() {
                return Err(Errno::EBADF);
            }
            call::with_args(attempt.thread, [fd, 0, 0, 0, 0, 0], call::CLOSE)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn on_file(attempt: &Attempt<'_>, open: &Arc<OpenFile>) -> Result<i32> {
    let moved = |count: Result<usize>| count.map(|count| count as i32);
    match *attempt.operation {
        Operation::Transfer {
            direction,
            buffers,
            place,
            flags,
        } => moved(transfer(attempt, open, direction, buffers, (place, flags))),
        Operation::Message {
            direction,
            buffers,
            flags,
            ..
        } => moved(message(attempt, open, direction, buffers, flags)),
        Operation::Header {
            address,
            flags,
            group: Some(_),
            ..
        } => frame::receive(attempt, open, VirtAddr(address), flags),
        Operation::Header {
            direction,
            address,
            flags,
            group: None,
        } => call::with_args(attempt.thread, [0; 6], |call| {
            let at = VirtAddr(address);
            moved(match direction {
                Direction::In => header::receive_through(&call, open, at, flags),
                Direction::Out => header::send_through(&call, open, at, flags),
            })
        }),
        Operation::Accept {
            address,
            len_address,
            flags,
            slot,
            ..
        } => {
            if slot != 0 {
                return Err(Error::Invalid);
            }
            let args = [0, address, len_address, 0, 0, 0];
            // `WouldBlock` must reach the ring, other errors the program.
            let accepted = call::with_args(attempt.thread, args, |call| {
                connect::accept_through(&call, open, Blocking::Never, flags)
            });
            match accepted {
                Err(Errno::EAGAIN) => Err(Error::WouldBlock),
                accepted => Ok(answer(accepted)),
            }
        }
        Operation::Connect { address, len } => connect_to(attempt, open, address, len),
        Operation::Shutdown { how } => Ok(answer(connect::shutdown_through(open, how))),
        Operation::Fsync { is_data_only } => open.bring_out(is_data_only).map(|()| 0),
        _ => Err(Error::Invalid),
    }
}

/// The memory of one range, as the ring or the entry says it, without what was moved before.
fn range_of(attempt: &Attempt<'_>, buffers: Buffers) -> Result<UserRange> {
    let range = match (attempt.buffer, buffers) {
        (Some(range), _) => range,
        (None, Buffers::One { address, len }) => UserRange::new(VirtAddr(address), len as usize)?,
        _ => return Err(Error::Invalid),
    };
    let done = attempt.done.min(range.len);
    Ok(UserRange {
        start: range.start + done as u64,
        len: (range.len - done).min(iovec::TRANSFER_BYTES_MAX),
    })
}

fn sink_of(attempt: &Attempt<'_>, buffers: Buffers) -> Result<Sink<'static>> {
    if let Buffers::Vector { address, count } = buffers {
        return iovec::sink(VirtAddr(address), count as usize);
    }
    let range = range_of(attempt, buffers)?;
    Ok(Sink::user(range.start, range.len))
}

fn source_of(attempt: &Attempt<'_>, buffers: Buffers) -> Result<Source<'static>> {
    if let Buffers::Vector { address, count } = buffers {
        return iovec::source(VirtAddr(address), count as usize);
    }
    let range = range_of(attempt, buffers)?;
    Ok(Source::user(range.start, range.len))
}

/// A file without positions has its current one only, whatever the entry says.
fn transfer(
    attempt: &Attempt<'_>,
    open: &OpenFile,
    direction: Direction,
    buffers: Buffers,
    (place, flags): (Place, u32),
) -> Result<usize> {
    let syncs = RWF_DSYNC | RWF_SYNC;
    if flags & !(RWF_HIPRI | RWF_NOWAIT | syncs) != 0 {
        return Err(Error::Unsupported);
    }
    let place = match open.file.is_seekable() {
        true => place,
        false => Place::Current,
    };
    match (direction, place) {
        (Direction::In, Place::Current) => open.read(&mut sink_of(attempt, buffers)?),
        (Direction::In, Place::At(at)) => {
            open.read_at(checked(at)?, &mut sink_of(attempt, buffers)?)
        }
        (Direction::Out, place) => {
            let from = &mut source_of(attempt, buffers)?;
            let count = match place {
                Place::Current => open.write(from)?,
                Place::At(at) => open.write_at(checked(at)?, from)?,
            };
            if flags & syncs != 0
                && let Some(inode) = open.inode()
            {
                inode.sync(flags & RWF_SYNC == 0)?;
            }
            Ok(count)
        }
    }
}

fn checked(offset: u64) -> Result<u64> {
    i64::try_from(offset).map_or(Err(Error::Invalid), |_| Ok(offset))
}

fn socket_of(open: &OpenFile) -> Result<&dyn Socket> {
    open.file.as_socket().ok_or(Error::NotSocket)
}

/// The flags say that the program does not wait in a call; whether the request waits is the
/// ring's matter.
fn message(
    attempt: &Attempt<'_>,
    open: &OpenFile,
    direction: Direction,
    buffers: Buffers,
    flags: u32,
) -> Result<usize> {
    let socket = socket_of(open)?;
    let flags = MessageFlags::from_bits_truncate(flags);
    match direction {
        Direction::In => {
            let received = socket.receive(&mut sink_of(attempt, buffers)?, flags)?;
            Ok(match flags.contains(MessageFlags::TRUNC) {
                true => received.length,
                false => received.bytes,
            })
        }
        Direction::Out => {
            let message = Message {
                from: &mut source_of(attempt, buffers)?,
                to: None,
                control: Control::default(),
            };
            socket.send(message, flags)
        }
    }
}

/// Begins to connect, or looks what came of it.
fn connect_to(attempt: &Attempt<'_>, open: &OpenFile, at: u64, len: u32) -> Result<i32> {
    let socket = socket_of(open)?;
    if !attempt.is_again {
        let name = address::read(VirtAddr(at), len)?;
        return socket.connect(&name, Blocking::Never).map(|()| 0);
    }
    let is_over = Events::OUT | Events::ALWAYS;
    if !open.file.poll().intersects(is_over) {
        return Err(Error::WouldBlock);
    }
    match socket.option(OptionName::Error)? {
        OptionValue::PendingError(Some(error)) => Err(error),
        _ => Ok(0),
    }
}
