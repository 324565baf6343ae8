//! io_setup(2), io_submit(2) and their kin (include/uapi/linux/aio_abi.h).
//!
//! A control block is copied once and its transfer begun; a file that cannot begin one (`vfs::file::transfer`)
//! moves the bytes within the call, and the end stands in the ring before it returns, as on Linux. Of
//! the transfers that a device has, none can be cancelled.

use alloc::sync::Arc;

use base::{Instant, VirtAddr};
use ipc::aio::{Context, Reserved};
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::{deadline, iovec, sigmask};
use linux_raw_sys::general::*;
use mm::io::{Sink, Source, UserRange};
use mm::{Mapping, Object, Place, Rights, Traits, user};
use sync::{Error, Restart, Result, Wait};
use vfs::file::OpenFile;
use vfs::file::transfer::{Begun, Memory, Tag, Transfer};

/// IOCB_CMD_*.
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;
const PREADV: u16 = 7;
const PWRITEV: u16 = 8;
/// IOCB_FLAG_RESFD, IOCB_FLAG_IOPRIO; the latter says nothing that a disk here would heed.
const RESFD: u32 = 1;
const IOPRIO: u32 = 2;

/// More than any context may be for.
const REQUESTS_MAX: u32 = 0x1000_0000 / 32;

const CONTEXT_AND_BLOCKS: &[Arg] = &[Arg::Address, Arg::Int, Arg::Address];

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_io_setup,
        name: "io_setup",
        args: &[Arg::Int, Arg::Address],
        handler: setup,
    },
    Entry {
        number: __NR_io_destroy,
        name: "io_destroy",
        args: &[Arg::Address],
        handler: destroy,
    },
    Entry {
        number: __NR_io_submit,
        name: "io_submit",
        args: CONTEXT_AND_BLOCKS,
        handler: submit,
    },
    Entry {
        number: __NR_io_cancel,
        name: "io_cancel",
        args: &[Arg::Address, Arg::Address, Arg::Address],
        handler: cancel,
    },
    Entry {
        number: __NR_io_getevents,
        name: "io_getevents",
        args: &[Arg::Address, Arg::Int, Arg::Int, Arg::Address, Arg::Address],
        handler: getevents,
    },
    Entry {
        number: __NR_io_pgetevents,
        name: "io_pgetevents",
        args: &[
            Arg::Address,
            Arg::Int,
            Arg::Int,
            Arg::Address,
            Arg::Address,
            Arg::Address,
        ],
        handler: pgetevents,
    },
];

fn number(error: Error) -> i32 {
    -i32::from(Errno::from(error).number())
}

/// What is mapped at the address by which a program calls a context.
fn mapped(call: &Call<'_>, index: usize) -> Result<Object> {
    user::space()
        .object_at(call.addr(index))
        .ok_or(Error::Invalid)
}

/// The context that is mapped there.
fn context(object: &Object) -> Result<&Context> {
    let known = object.memory.as_any();
    known
        .and_then(|memory| memory.downcast_ref())
        .ok_or(Error::Invalid)
}

fn setup(call: Call<'_>) -> Outcome {
    let requests = call.uint(0);
    let known: u64 = user::read(call.addr(1))?;
    if known != 0 || requests == 0 || requests > REQUESTS_MAX {
        return Err(Errno::EINVAL);
    }
    let context = Context::new(requests, number)?;
    let rights = Rights {
        read: true,
        write: true,
        exec: false,
    };
    let mapping = Mapping {
        traits: Traits {
            shared: true,
            no_fork: true,
            ..Traits::default()
        },
        limit: rights,
        object: Some((Object::new(context.clone(), None), 0)),
        ..Mapping::anonymous(Place::Hint(VirtAddr(0)), context.bytes(), rights)
    };
    let space = user::space();
    let at = space.map(mapping)?;
    if let Err(error) = user::write(call.addr(1), at.0) {
        // It was mapped just now.
        let _ = space.unmap(at, context.bytes());
        return Err(error.into());
    }
    Ok(0)
}

fn destroy(call: Call<'_>) -> Outcome {
    let object = mapped(&call, 0)?;
    let context = context(&object)?;
    context.end()?;
    user::space().unmap(call.addr(0), context.bytes())?;
    Ok(0)
}

/// A transfer that a device has is not taken back.
fn cancel(call: Call<'_>) -> Outcome {
    let object = mapped(&call, 0)?;
    context(&object)?;
    let _block: [u64; 8] = user::read(call.addr(1))?;
    Err(Errno::EINVAL)
}

fn submit(call: Call<'_>) -> Outcome {
    let object = mapped(&call, 0)?;
    let context = context(&object)?.arc().ok_or(Errno::EINVAL)?;
    let count = u32::try_from(call.arg(1) as i64).map_err(|_| Errno::EINVAL)?;
    if count == 0 {
        return Ok(0);
    }
    let mut room = context.reserve(count)?;
    let mut begun = Begun::default();
    let mut done = 0;
    for index in 0..u64::from(count) {
        let submitted = submit_one(
            &call,
            &context,
            call.addr(2) + index * 8,
            &mut room,
            &mut begun,
        );
        match submitted {
            Ok(()) => done += 1,
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
        if done & 63 == 0 {
            sched::resched_point();
        }
    }
    Ok(done)
}

/// `struct iocb`, taken apart.
struct Block {
    data: u64,
    address: u64,
    flags: u32,
    opcode: u16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: u64,
    /// IOCB_FLAG_*, and the eventfd.
    block_flags: u32,
    counter: u32,
}

impl Block {
    fn read(at: VirtAddr) -> Result<Self> {
        let address: u64 = user::read(at)?;
        let [data, key, kind, buffer, bytes, offset, reserved, last] =
            user::read::<[u64; 8]>(VirtAddr(address))?;
        let block_flags = last as u32;
        let is_known = reserved == 0 && block_flags & !(RESFD | IOPRIO) == 0;
        if !is_known || (bytes as i64) < 0 {
            return Err(Error::Invalid);
        }
        if key as u32 != 0 {
            // KIOCB_KEY, by which io_cancel(2) of Linux knows one that was submitted.
            user::write(VirtAddr(address) + 8, 0u32)?;
        }
        Ok(Self {
            data,
            address,
            flags: (key >> 32) as u32,
            opcode: kind as u16,
            fd: (kind >> 32) as u32,
            buffer,
            bytes,
            offset,
            block_flags,
            counter: (last >> 32) as u32,
        })
    }
}

fn submit_one(
    call: &Call<'_>,
    context: &Arc<Context>,
    at: VirtAddr,
    room: &mut Reserved<'_>,
    begun: &mut Begun,
) -> Result<()> {
    if !room.take() {
        return Err(Error::WouldBlock);
    }
    let started = Block::read(at).and_then(|block| start(call, context, &block, begun));
    if started.is_err() {
        room.give_back();
    }
    started
}

/// Begins what a block asks for, or does it.
///
/// Errors: what Linux refuses at once; nothing is posted then.
fn start(call: &Call<'_>, context: &Arc<Context>, block: &Block, begun: &mut Begun) -> Result<()> {
    let open = call.thread.files.with(|files| files.get(block.fd))?;
    let request = Request::of(block, &open)?;
    let signal = match block.block_flags & RESFD {
        0 => 0,
        _ => {
            let counter = call.thread.files.with(|files| files.get(block.counter))?;
            context.add_signal(counter)?
        }
    };
    let tag = Tag([block.data, block.address, signal]);
    let result = match request {
        Request::Sync { data_only } => open.bring_out(data_only).map(|()| 0),
        Request::Move { ranges, is_write } => {
            let transfer = Transfer {
                is_write,
                offset: block.offset,
                memory: Memory::Ranges(ranges.all()),
                is_synced: block.flags & (RWF_DSYNC | RWF_SYNC) != 0,
                end: context.clone(),
                tag,
            };
            match open.begin(transfer) {
                Some(Ok(())) => {
                    begun.note(&open.file);
                    return Ok(());
                }
                Some(Err(error)) => Err(error),
                None => {
                    // What was begun before shall not wait for this.
                    begun.send();
                    move_now(&open, block, ranges, is_write)
                }
            }
        }
    };
    context.post(tag, result);
    Ok(())
}

/// The program's memory, as most requests have it without an allocation.
enum Ranges {
    One([UserRange; 1]),
    Many(alloc::vec::Vec<UserRange>),
}

impl Ranges {
    fn all(&self) -> &[UserRange] {
        match self {
            Self::One(one) => one,
            Self::Many(many) => many,
        }
    }
}

/// What is asked for.
enum Request {
    Move { ranges: Ranges, is_write: bool },
    Sync { data_only: bool },
}

impl Request {
    fn of(block: &Block, open: &OpenFile) -> Result<Self> {
        let is_write = matches!(block.opcode, PWRITE | PWRITEV);
        let ranges = match block.opcode {
            PREAD | PWRITE => {
                let bytes = (block.bytes as usize).min(iovec::TRANSFER_BYTES_MAX);
                Ranges::One([UserRange::new(VirtAddr(block.buffer), bytes)?])
            }
            PREADV | PWRITEV => {
                let count = block.bytes as usize;
                Ranges::Many(iovec::read_ranges(VirtAddr(block.buffer), count)?)
            }
            FSYNC | FDSYNC => return Self::sync(block, open),
            _ => return Err(Error::Invalid),
        };
        let may = match is_write {
            true => open.is_writable(),
            false => open.is_readable(),
        };
        let known = RWF_HIPRI | RWF_NOWAIT | RWF_DSYNC | RWF_SYNC;
        match (may, block.flags & !known, block.offset as i64) {
            (false, ..) => Err(Error::BadFile),
            (_, 1.., _) => Err(Error::Unsupported),
            (_, _, ..0) => Err(Error::Invalid),
            _ => Ok(Self::Move { ranges, is_write }),
        }
    }

    fn sync(block: &Block, open: &OpenFile) -> Result<Self> {
        let others = [block.buffer, block.bytes, block.offset, block.flags.into()];
        match others == [0; 4] && open.inode().is_some() {
            true => Ok(Self::Sync {
                data_only: block.opcode == FDSYNC,
            }),
            false => Err(Error::Invalid),
        }
    }
}

/// Moves the bytes within the call.
fn move_now(open: &Arc<OpenFile>, block: &Block, ranges: Ranges, is_write: bool) -> Result<usize> {
    let ranges = match ranges {
        Ranges::One([one]) => {
            let mut all = alloc::vec::Vec::new();
            mach::mem::fallible::TryPush::try_push(&mut all, one)?;
            all
        }
        Ranges::Many(many) => many,
    };
    let is_stream = !open.file.is_seekable();
    match is_write {
        true => {
            let mut from = Source::user_vec(ranges);
            let moved = match is_stream {
                true => open.write(&mut from),
                false => open.write_at(block.offset, &mut from),
            }?;
            if block.flags & (RWF_DSYNC | RWF_SYNC) != 0 && open.inode().is_some() {
                open.bring_out(block.flags & RWF_SYNC == 0)?;
            }
            Ok(moved)
        }
        false => {
            let mut to = Sink::user_vec(ranges);
            match is_stream {
                true => open.read(&mut to),
                false => open.read_at(block.offset, &mut to),
            }
        }
    }
}

fn getevents(call: Call<'_>) -> Outcome {
    take(&call)
}

fn pgetevents(call: Call<'_>) -> Outcome {
    if let Some(at) = call.optional_addr(5) {
        let [mask, bytes] = user::read::<[u64; 2]>(at)?;
        sigmask::exchange(&call, mask, bytes)?;
    }
    take(&call)
}

fn take(call: &Call<'_>) -> Outcome {
    let object = mapped(call, 0)?;
    let context = context(&object)?;
    let (least, most) = (call.arg(1) as i64, call.arg(2) as i64);
    if least < 0 || most < least {
        return Err(Errno::EINVAL);
    }
    let limit = match call.optional_addr(4) {
        None => Instant::NEVER,
        Some(at) => mach::time::now() + deadline::read_timespec(at)?,
    };
    let bound = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
    let (least, most) = (bound(least), bound(most));
    let bytes = most as usize * ipc::aio::EVENT_BYTES;
    let start = call.addr(3);
    let mut to = Sink::user(start, bytes);
    let how = Wait::INTERRUPTIBLE.restart(Restart::Never).until(limit);
    match context.take(least, most, &mut to, how) {
        Ok(count) => Ok(count as usize),
        Err(Error::TimedOut) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
