//! epoll_create, epoll_ctl, epoll_wait and their variants.
//!
//! `struct epoll_event` is packed on x86-64: 32 bits of events, then 64 bits of data.

use alloc::sync::Arc;

use base::{Instant, VirtAddr};
use ipc::epoll::{Epoll, Event, Trigger, Watch};
use linux_raw_sys::general::{
    __NR_epoll_create, __NR_epoll_create1, __NR_epoll_ctl, __NR_epoll_pwait, __NR_epoll_pwait2,
    __NR_epoll_wait, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, O_CLOEXEC,
};
use mm::user;
use sync::poll::Events;
use sync::{Error, Restart, Result, Wait};
use vfs::file::{OpenFile, StatusFlags};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::descriptor::only;
use linux_abi::errno::Errno;
use linux_abi::{deadline, sigmask};

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_epoll_create,
        name: "epoll_create",
        args: &[Arg::Int],
        handler: create,
    },
    Entry {
        number: __NR_epoll_create1,
        name: "epoll_create1",
        args: &[Arg::Flags],
        handler: create1,
    },
    Entry {
        number: __NR_epoll_ctl,
        name: "epoll_ctl",
        args: &[Arg::Fd, Arg::Int, Arg::Fd, Arg::Address],
        handler: ctl,
    },
    Entry {
        number: __NR_epoll_wait,
        name: "epoll_wait",
        args: &[Arg::Fd, Arg::Address, Arg::Int, Arg::Int],
        handler: wait,
    },
    Entry {
        number: __NR_epoll_pwait,
        name: "epoll_pwait",
        args: &[
            Arg::Fd,
            Arg::Address,
            Arg::Int,
            Arg::Int,
            Arg::Address,
            Arg::Size,
        ],
        handler: pwait,
    },
    Entry {
        number: __NR_epoll_pwait2,
        name: "epoll_pwait2",
        args: &[
            Arg::Fd,
            Arg::Address,
            Arg::Int,
            Arg::Address,
            Arg::Address,
            Arg::Size,
        ],
        handler: pwait2,
    },
];

/// Bytes of a `struct epoll_event`.
const EVENT_BYTES: usize = 12;
/// Bytes of the events that are stored in one copy.
const BATCH_BYTES: usize = 32 * EVENT_BYTES;
/// Most events that one call may ask for (EP_MAX_EVENTS).
const EVENTS_MAX: i32 = (i32::MAX as usize / EVENT_BYTES) as i32;
/// What may come along with EPOLLEXCLUSIVE.
const BESIDE_EXCLUSIVE: u32 = 0x1 | 0x4 | 0x8 | 0x10 | 1 << 29 | 1 << 31 | 1 << 28;

fn create(call: Call<'_>) -> Outcome {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL);
    }
    Ok(call.open_fd(Epoll::new(), StatusFlags::RDWR, 0)?)
}

fn create1(call: Call<'_>) -> Outcome {
    let flags = only(call.uint(0), O_CLOEXEC)?;
    Ok(call.open_fd(Epoll::new(), StatusFlags::RDWR, flags)?)
}

fn ctl(call: Call<'_>) -> Outcome {
    let operation = call.uint(1);
    let watch = if operation == EPOLL_CTL_DEL {
        None
    } else {
        Some(read_watch(call.addr(3))?)
    };
    let (set, target) = (call.file(0)?, call.file(2)?);
    if Arc::ptr_eq(&set, &target) {
        return Err(Errno::EINVAL);
    }
    let epoll = epoll_of(&set)?;
    let fd = call.uint(2);
    match (operation, watch) {
        (EPOLL_CTL_ADD, Some(watch)) => epoll.add(fd, &target, watch)?,
        // Who waits exclusively does so from the beginning.
        (EPOLL_CTL_MOD, Some(watch)) if watch.trigger.contains(Trigger::EXCLUSIVE) => {
            return Err(Errno::EINVAL);
        }
        (EPOLL_CTL_MOD, Some(watch)) => epoll.modify(fd, &target, watch)?,
        (EPOLL_CTL_DEL, _) => epoll.remove(fd, &target)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn epoll_of(open: &OpenFile) -> Result<&Epoll> {
    open.file
        .as_any()
        .downcast_ref::<Epoll>()
        .ok_or(Error::Invalid)
}

fn read_watch(at: VirtAddr) -> Result<Watch> {
    let [a, b, c, d, data @ ..]: [u8; EVENT_BYTES] = user::read(at)?;
    let bits = u32::from_ne_bytes([a, b, c, d]);
    let trigger = Trigger::from_bits_truncate(bits);
    if trigger.contains(Trigger::EXCLUSIVE) && bits & !BESIDE_EXCLUSIVE != 0 {
        return Err(Error::Invalid);
    }
    let interest = Events::from_bits_truncate(bits);
    Ok(Watch {
        interest,
        trigger,
        data: u64::from_ne_bytes(data),
    })
}

fn wait(call: Call<'_>) -> Outcome {
    let deadline = deadline::from_millis(&call, call.int(3));
    wait_until(&call, deadline)
}

fn pwait(call: Call<'_>) -> Outcome {
    let deadline = deadline::from_millis(&call, call.int(3));
    sigmask::exchange_for_call(&call, 4, 5)?;
    wait_until(&call, deadline)
}

fn pwait2(call: Call<'_>) -> Outcome {
    let deadline = deadline::from_timespec(&call, call.optional_addr(3))?;
    sigmask::exchange_for_call(&call, 4, 5)?;
    wait_until(&call, deadline)
}

fn wait_until(call: &Call<'_>, deadline: Instant) -> Outcome {
    let room = call.int(2);
    if room <= 0 || room > EVENTS_MAX {
        return Err(Errno::EINVAL);
    }
    let open = call.file(0)?;
    let epoll = epoll_of(&open)?;
    let how = Wait::INTERRUPTIBLE.until(deadline).restart(Restart::Never);
    loop {
        let count = deliver(epoll, call.addr(1), room as usize)?;
        if count != 0 || deadline == Instant::START {
            return Ok(count);
        }
        match epoll.wait(how) {
            Err(Error::TimedOut) => return Ok(0),
            outcome => outcome?,
        }
    }
}

/// Stores what is ready at `to`, at most `room` events.
fn deliver(epoll: &Epoll, to: VirtAddr, room: usize) -> Result<usize> {
    let mut out = Batch {
        bytes: [0; BATCH_BYTES],
        len: 0,
        to,
    };
    let count = epoll.collect(room, |event| out.push(event))?;
    out.flush()?;
    Ok(count)
}

/// Events on their way to the program, several in one copy.
struct Batch {
    bytes: [u8; BATCH_BYTES],
    len: usize,
    to: VirtAddr,
}

impl Batch {
    fn push(&mut self, event: Event) -> Result<()> {
        let (bits, data) = (event.events.bits().to_ne_bytes(), event.data.to_ne_bytes());
        if let Some(place) = self.bytes.get_mut(self.len..self.len + EVENT_BYTES) {
            let (first, second) = place.split_at_mut(bits.len());
            first.copy_from_slice(&bits);
            second.copy_from_slice(&data);
            self.len += EVENT_BYTES;
        }
        if self.len == BATCH_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    #[inline]
    fn flush(&mut self) -> Result<()> {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        user::copy_out(bytes, self.to)?;
        self.to = self.to + self.len as u64;
        self.len = 0;
        Ok(())
    }
}
