//! POSIX message queues: mq_open and its family.

use alloc::sync::Arc;

use base::VirtAddr;
use linux_raw_sys::general::{
    __NR_mq_getsetattr, __NR_mq_notify, __NR_mq_open, __NR_mq_timedreceive, __NR_mq_timedsend,
    __NR_mq_unlink, O_ACCMODE, O_CLOEXEC, O_CREAT, O_EXCL, O_NONBLOCK, SIGEV_NONE, SIGEV_SIGNAL,
    SIGEV_THREAD,
};
use mach::mem::fallible;
use mm::user;
use mqueue::limits::Shape;
use mqueue::{self, COOKIE_BYTES, Message, NotifyMethod, PRIORITIES, Queue};
use sync::Wait;
use task::signal::Signal;
use vfs::file::{OpenFile, StatusFlags};
use vfs::{CreationFlags, OpenHow, PATH_BYTES_MAX, Walk};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::timespec;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_mq_open,
        name: "mq_open",
        args: &[Arg::Path, Arg::Flags, Arg::Mode, Arg::Address],
        handler: mq_open,
    },
    Entry {
        number: __NR_mq_unlink,
        name: "mq_unlink",
        args: &[Arg::Path],
        handler: mq_unlink,
    },
    Entry {
        number: __NR_mq_timedsend,
        name: "mq_timedsend",
        args: &[Arg::Fd, Arg::Buffer, Arg::Size, Arg::Int, Arg::Address],
        handler: mq_timedsend,
    },
    Entry {
        number: __NR_mq_timedreceive,
        name: "mq_timedreceive",
        args: &[Arg::Fd, Arg::Address, Arg::Size, Arg::Address, Arg::Address],
        handler: mq_timedreceive,
    },
    Entry {
        number: __NR_mq_notify,
        name: "mq_notify",
        args: &[Arg::Fd, Arg::Address],
        handler: mq_notify,
    },
    Entry {
        number: __NR_mq_getsetattr,
        name: "mq_getsetattr",
        args: &[Arg::Fd, Arg::Address, Arg::Address],
        handler: mq_getsetattr,
    },
];

/// `struct mq_attr`: flags, messages, bytes of each, messages now, and four that are unused.
type Attributes = [i64; 8];

fn mq_open(call: Call<'_>) -> Outcome {
    let flags = call.uint(1);
    let attributes = call.optional_addr(3).map(user::read::<Attributes>);
    let shape = attributes
        .transpose()?
        .map(|[_, messages, message_bytes, ..]| Shape {
            messages,
            message_bytes,
        });
    let mut creation = CreationFlags::empty();
    creation.set(CreationFlags::CREATE, flags & O_CREAT != 0);
    creation.set(
        CreationFlags::EXCLUSIVE,
        flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL,
    );
    let how = OpenHow {
        creation,
        status: StatusFlags::from_bits_truncate(flags & (O_ACCMODE | O_NONBLOCK)),
        mode: call.uint(2),
        walk: Walk::empty(),
    };
    let name = call.path(0)?;
    if flags & O_ACCMODE == O_ACCMODE {
        return Err(Errno::EINVAL);
    }
    let opened = mqueue::open(&name, &how, shape)?;
    Ok(call.new_fd(opened, O_CLOEXEC)?)
}

fn mq_unlink(call: Call<'_>) -> Outcome {
    let name = user::read_string(call.addr(0), PATH_BYTES_MAX)?.ok_or(Errno::ENAMETOOLONG)?;
    mqueue::unlink(&name)?;
    Ok(0)
}

/// The open file of a queue; of anything else it is a bad one.
fn opened(call: &Call<'_>) -> Result<Arc<OpenFile>, Errno> {
    let open = call.file(0)?;
    match open.file.as_any().is::<Queue>() {
        true => Ok(open),
        false => Err(Errno::EBADF),
    }
}

fn queue(open: &OpenFile) -> Result<&Queue, Errno> {
    open.file.as_any().downcast_ref().ok_or(Errno::EBADF)
}

/// How long the call waits: until a moment of the wall clock, for ever, or not at all.
fn patience(open: &OpenFile, until: Option<Wait>) -> Option<Wait> {
    until.filter(|_| !open.is_nonblocking())
}

fn until(call: &Call<'_>) -> Result<Option<Wait>, Errno> {
    let limit = call.optional_addr(4).map(timespec::read).transpose()?;
    Ok(Some(match limit {
        Some(moment) => Wait::INTERRUPTIBLE.until(clock::instant_of_wall(moment)),
        None => Wait::INTERRUPTIBLE,
    }))
}

fn mq_timedsend(call: Call<'_>) -> Outcome {
    let until = until(&call)?;
    let (len, priority) = (call.size(2), call.uint(3));
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let open = opened(&call)?;
    if !open.is_writable() {
        return Err(Errno::EBADF);
    }
    let queue = queue(&open)?;
    if len > queue.message_bytes_max {
        return Err(Errno::EMSGSIZE);
    }
    let mut bytes = fallible::zeroed(len).map_err(|_| Errno::ENOMEM)?;
    user::copy_in(call.addr(1), &mut bytes)?;
    queue.send(Message { priority, bytes }, patience(&open, until))?;
    Ok(0)
}

fn mq_timedreceive(call: Call<'_>) -> Outcome {
    let until = until(&call)?;
    let open = opened(&call)?;
    if !open.is_readable() {
        return Err(Errno::EBADF);
    }
    let queue = queue(&open)?;
    if call.size(2) < queue.message_bytes_max {
        return Err(Errno::EMSGSIZE);
    }
    let message = queue.receive(patience(&open, until))?;
    if let Some(at) = call.optional_addr(3) {
        user::write(at, message.priority)?;
    }
    user::copy_out(&message.bytes, call.addr(1))?;
    Ok(message.bytes.len())
}

fn mq_notify(call: Call<'_>) -> Outcome {
    let means = call
        .optional_addr(1)
        .map(|at| means(&call, at))
        .transpose()?;
    let open = opened(&call)?;
    let queue = queue(&open)?;
    match means {
        Some(means) => queue.register(means)?,
        None => queue.unregister(),
    }
    Ok(0)
}

/// What a `struct sigevent` asks for: a value, a signal and a kind.
fn means(call: &Call<'_>, at: VirtAddr) -> Result<NotifyMethod, Errno> {
    let [value, kind]: [u64; 2] = user::read(at)?;
    let number = kind as u32;
    match (kind >> 32) as u32 {
        SIGEV_NONE => Ok(NotifyMethod::None),
        SIGEV_SIGNAL if number == 0 => Ok(NotifyMethod::Signal(None, value)),
        SIGEV_SIGNAL => {
            let signal = Signal::new(number).ok_or(Errno::EINVAL)?;
            Ok(NotifyMethod::Signal(Some(signal), value))
        }
        // The signal is a socket's number, the value a cookie's address.
        SIGEV_THREAD => {
            let cookie: [u8; COOKIE_BYTES] = user::read(VirtAddr(value))?;
            let socket = call.thread.files.with(|files| files.get(number))?;
            Ok(NotifyMethod::cookie(socket.file.clone(), cookie)?)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn mq_getsetattr(call: Call<'_>) -> Outcome {
    let wanted = call
        .optional_addr(1)
        .map(user::read::<Attributes>)
        .transpose()?;
    let nonblocking = i64::from(O_NONBLOCK);
    if wanted.is_some_and(|[flags, ..]| flags & !nonblocking != 0) {
        return Err(Errno::EINVAL);
    }
    let open = opened(&call)?;
    let status = queue(&open)?.status();
    let flags = open.flags();
    if let Some([wanted, ..]) = wanted {
        let mut changed = flags;
        changed.set(StatusFlags::NONBLOCK, wanted & nonblocking != 0);
        open.set_flags(changed);
    }
    if let Some(at) = call.optional_addr(2) {
        let mut told: Attributes = [0; 8];
        told[0] = i64::from((flags & StatusFlags::NONBLOCK).bits());
        told[1] = status.messages_max as i64;
        told[2] = status.message_bytes_max as i64;
        told[3] = status.messages as i64;
        user::write(at, told)?;
    }
    Ok(0)
}
