//! What requests of a ring ask for, done by the library's own functions.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::Arc;

use base::Instant;
use libc::{iovec, msghdr, sockaddr, socklen_t, timespec};
use posix::uring::{Memory, Target, Task, World};
use posix::{Direction, Errno, Events, Open, Result, Trigger, Watch, WatchSet};
use uring::{Buffers, Call, Direction as Way, Operation, Sqe, TimeoutFlags};

use super::entering::after;
use super::framed;
use super::kernels::KernelRing;
use crate::answer;
use crate::blocking;
use crate::descriptors;
use crate::next;
use crate::numbers::{self, Whose, whose};
use crate::patience::{poll_files, readable};
use crate::sets;
use crate::sockets;
use crate::state::{self, Held};
use crate::{reading, writing};

/// See the module.
pub struct Hands<'a> {
    pub set: &'a Arc<WatchSet>,
    pub kernel: &'a mut KernelRing,
    /// By their numbers.
    pub watched: &'a mut Vec<Option<Arc<Open>>>,
}

impl Memory for Hands<'_> {
    fn words(&self, address: u64) -> [u64; 2] {
        // SAFETY: **Caller**: the program has said what lies there.
        unsafe { (address as usize as *const [u64; 2]).read_unaligned() }
    }

    fn half(&self, address: u64) -> u16 {
        let at = address as usize as *mut u16;
        // SAFETY: **Caller**: as above, and aligned, as all of a ring of buffers is.
        unsafe { std::sync::atomic::AtomicU16::from_ptr(at) }
            .load(std::sync::atomic::Ordering::Acquire)
    }

    fn number(&self, address: u64) -> i32 {
        // SAFETY: **Caller**: as above.
        unsafe { (address as usize as *const i32).read_unaligned() }
    }
}

impl World for Hands<'_> {
    fn target(&mut self, number: i32) -> Result<Target> {
        match whose(number) {
            Whose::Socket | Whose::Parent => Ok(Target::Own(number)),
            Whose::Library => Err(Errno::BAD_NUMBER),
            _ => Ok(Target::Kernel(number)),
        }
    }

    fn attempt(&mut self, task: &Task<'_>) -> Result<i32> {
        match task.target {
            // SAFETY: **Caller**: the entry says where its memory is, as a call would.
            Target::Own(number) => unsafe { attempt(number, task) },
            Target::Kernel(number) => {
                let mut files = [readable(number)];
                match poll_files(&mut files, Some(0), ptr::null()) {
                    // SAFETY: as above.
                    Ok(1..) => unsafe { attempt_kernels(number, task) },
                    _ => Err(Errno::AGAIN),
                }
            }
            Target::KernelFixed(_) => Err(Errno::NOT_SUPPORTED),
        }
    }

    fn ready(&mut self, number: i32) -> Result<Events> {
        let mut held = Held::of(number)?;
        Ok(held.host().socket(number.cast_unsigned())?.ready())
    }

    fn watch(&mut self, number: i32) -> Result<()> {
        let mut held = Held::of(number)?;
        let open = held.host().socket(number.cast_unsigned())?;
        let watch = Watch {
            interest: Events::READABLE | Events::WRITABLE | Events::RDHUP | Events::PRI,
            trigger: Trigger::EDGE,
            data: number as u64,
        };
        self.set.add(number.cast_unsigned(), &open, watch)?;
        held.host().note_watched(&open);
        let at = number as usize;
        if self.watched.len() <= at {
            self.watched.resize(at + 1, None);
        }
        if let Some(place) = self.watched.get_mut(at) {
            *place = Some(open);
        }
        Ok(())
    }

    fn forget(&mut self, number: i32) {
        let place = usize::try_from(number).ok();
        let place = place.and_then(|at| self.watched.get_mut(at));
        if let Some(open) = place.and_then(Option::take) {
            // With its last number it has left already.
            self.set.remove(number.cast_unsigned(), &open).ok();
        }
    }

    fn call(&mut self, call: Call, arguments: [u64; 6]) -> Result<i32> {
        let [first, second, third, fourth, ..] = arguments;
        let done = match call {
            Call::Socket => sockets::socket(first as c_int, second as c_int, third as c_int),
            // SAFETY: **Caller**.
            Call::EpollCtl => unsafe {
                let event = fourth as usize as *mut libc::epoll_event;
                sets::epoll_ctl(first as c_int, second as c_int, third as c_int, event)
            },
            _ => return Err(Errno::INVALID),
        };
        told(done as isize)
    }

    fn close(&mut self, number: i32) -> Result<()> {
        match numbers::seen(number) {
            // A ring would end within its own work.
            Whose::Ring => Err(Errno::BAD_NUMBER),
            _ => told(descriptors::close(number) as isize).map(drop),
        }
    }

    fn forward(&mut self, sqe: &Sqe) {
        self.kernel.push(sqe);
    }

    fn deadline(&mut self, address: u64, flags: TimeoutFlags) -> Result<Instant> {
        // SAFETY: **Caller**.
        let span = unsafe { (address as usize as *const timespec).as_ref() };
        let span = span.ok_or(Errno::BAD_ADDRESS)?;
        if span.tv_sec < 0 || !(0..1_000_000_000).contains(&span.tv_nsec) {
            return Err(Errno::INVALID);
        }
        let now = state::now();
        if !flags.contains(TimeoutFlags::ABS) {
            return Ok(after(now, span));
        }
        let moment = after(Instant::START, span).as_nanos();
        let clock = match flags.contains(TimeoutFlags::REALTIME) {
            true => libc::CLOCK_REALTIME,
            false if flags.contains(TimeoutFlags::BOOTTIME) => libc::CLOCK_BOOTTIME,
            false => return Ok(Instant::from_nanos(moment)),
        };
        // SAFETY: zeros are a time.
        let mut there: timespec = unsafe { mem::zeroed() };
        // SAFETY: the time is ours.
        unsafe { libc::clock_gettime(clock, &raw mut there) };
        let left = moment.saturating_sub(after(Instant::START, &there).as_nanos());
        Ok(Instant::from_nanos(now.as_nanos().saturating_add(left)))
    }

    fn duplicate(&mut self, number: i32) -> Result<i32> {
        if matches!(numbers::seen(number), Whose::Ring | Whose::Library) {
            return Err(Errno::BAD_NUMBER);
        }
        // SAFETY: no memory is passed.
        let copy = unsafe { descriptors::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
        told(copy as isize)
    }

    fn give_back(&mut self, number: i32) {
        descriptors::close(number);
    }
}

/// What a function of C has answered.
pub fn told(answer: isize) -> Result<i32> {
    match answer {
        -1 => Err(Errno::from_number(answer::errno())),
        answer => Ok(i32::try_from(answer).unwrap_or(i32::MAX)),
    }
}

/// The memory of one range, without what was moved before.
fn range_of(task: &Task<'_>, buffers: Buffers) -> Result<(*mut c_void, usize)> {
    let (address, len) = match (task.buffer, buffers) {
        (Some(range), _) => range,
        (None, Buffers::One { address, len }) => (address, len),
        _ => return Err(Errno::INVALID),
    };
    let done = task.done.min(len as usize);
    let at = (address as usize + done) as *mut c_void;
    Ok((at, len as usize - done))
}

/// # Safety
/// **Caller**.
unsafe fn attempt(number: c_int, task: &Task<'_>) -> Result<i32> {
    // SAFETY: **Caller**.
    unsafe {
        match *task.operation {
            Operation::Transfer {
                direction, buffers, ..
            } => transfer(number, task, direction, buffers),
            Operation::Message {
                direction,
                buffers,
                flags,
                ..
            } => message(number, task, (direction, flags as c_int), buffers),
            Operation::Header {
                address,
                flags,
                group: Some(_),
                ..
            } => framed::receive(number, task, (address, flags), reading::recvmsg),
            Operation::Header {
                direction,
                address,
                flags,
                group: None,
            } => header(number, direction, address as usize as *mut msghdr, flags),
            Operation::Accept {
                address,
                len_address,
                flags,
                slot: 0,
                ..
            } => {
                let name = address as usize as *mut sockaddr;
                let len = len_address as usize as *mut socklen_t;
                let way = blocking::Way {
                    direction: Direction::Receive,
                    is_impatient: true,
                };
                sockets::accept_by(number, (name, len), flags as c_int, way)
            }
            Operation::Connect { .. } if task.is_again => sockets::connected(number).map(|()| 0),
            Operation::Connect { address, len } => {
                let name = address as usize as *const sockaddr;
                match sockets::connect_by(number, (name, len), false)? {
                    true => Ok(0),
                    false => Err(Errno::MOVED),
                }
            }
            Operation::Shutdown { how } => told(sockets::shutdown(number, how as c_int) as isize),
            _ => Err(Errno::INVALID),
        }
    }
}

/// # Safety
/// **Caller**.
unsafe fn transfer(
    number: c_int,
    task: &Task<'_>,
    direction: Way,
    buffers: Buffers,
) -> Result<i32> {
    let Buffers::Vector { address, count } = buffers else {
        // SAFETY: **Caller**.
        return unsafe { message(number, task, (direction, 0), buffers) };
    };
    // SAFETY: zeros are a header of nothing.
    let mut whole: msghdr = unsafe { mem::zeroed() };
    whole.msg_iov = address as usize as *mut iovec;
    whole.msg_iovlen = count as usize;
    // SAFETY: **Caller**.
    unsafe { header(number, direction, &raw mut whole, 0) }
}

/// # Safety
/// **Caller**.
unsafe fn message(
    number: c_int,
    task: &Task<'_>,
    (direction, flags): (Way, c_int),
    buffers: Buffers,
) -> Result<i32> {
    let (at, len) = range_of(task, buffers)?;
    let flags = flags & !libc::MSG_WAITALL | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: **Caller**.
    told(unsafe {
        match direction {
            Way::In => reading::recv(number, at, len, flags),
            Way::Out => writing::sendto(number, at, len, flags, ptr::null(), 0),
        }
    })
}

/// # Safety
/// **Caller**.
unsafe fn header(number: c_int, direction: Way, at: *mut msghdr, flags: u32) -> Result<i32> {
    let flags = flags as c_int | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: **Caller**.
    told(unsafe {
        match direction {
            Way::In => reading::recvmsg(number, at, flags),
            Way::Out => writing::sendmsg(number, at, flags),
        }
    })
}

/// A file of the kernel's that has something to read, into a buffer that was lent.
///
/// # Safety
/// **Caller**.
unsafe fn attempt_kernels(number: c_int, task: &Task<'_>) -> Result<i32> {
    if let Operation::Header { address, flags, .. } = *task.operation {
        // SAFETY: **Caller**.
        return unsafe { framed::receive(number, task, (address, flags), next::recvmsg.get()) };
    }
    let none = Buffers::One { address: 0, len: 0 };
    let (at, len) = range_of(task, none)?;
    // SAFETY: **Caller**.
    told(unsafe {
        match *task.operation {
            Operation::Message { flags, .. } => {
                let flags = flags as c_int & !libc::MSG_WAITALL | libc::MSG_DONTWAIT;
                next::recvfrom.get()(number, at, len, flags, ptr::null_mut(), ptr::null_mut())
            }
            Operation::Transfer {
                place: uring::Place::At(offset),
                ..
            } if libc::lseek(number, 0, libc::SEEK_CUR) >= 0 => {
                next::pread.get()(number, at, len, offset as i64)
            }
            _ => next::read.get()(number, at, len),
        }
    })
}
