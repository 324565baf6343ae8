//! What the kernel does: an entry of its own for each request, whose name there is its place in our table.

use ::uring::{CqeFlags, Operation, Sqe};
use base::SharedMemory;

use super::Ring;
use super::request::{Forwarded, Request, Slot};
use super::world::{Target, World};
use crate::errno::Errno;

/// The upper half of our names there. What the ring's program gave to the kernel itself, before the ring was ours, has
/// names of its own, none of which is an address with such bits.
const OURS: u64 = 0x9e37_79b9 << 32;
/// A cancellation that nobody waits for.
const NOBODY: u64 = OURS | 0xffff_ffff;
/// A request that does nothing, whose completion shows that there are some.
pub const MARK: u64 = OURS | 0xffff_fffe;

/// IORING_OP_* and IOSQE_FIXED_FILE.
mod op {
    pub const READ_FIXED: u8 = 4;
    pub const WRITE_FIXED: u8 = 5;
    pub const POLL_ADD: u8 = 6;
    pub const ASYNC_CANCEL: u8 = 14;
    pub const READ: u8 = 22;
    pub const WRITE: u8 = 23;
    pub const FIXED_FILE: u8 = 1;
}

impl<M: SharedMemory> Ring<M> {
    /// Gives a request to the kernel.
    pub(super) fn forward(&mut self, world: &mut impl World, slot: Slot, target: Target) {
        let Some(request) = self.requests.get(slot) else {
            return;
        };
        let mut sqe = entry(request, target);
        if let Some(index) = fixed_index(&request.sqe) {
            if let Err(error) = self.registered.within(index, sqe.addr, sqe.len) {
                return self.finish(world, slot, Err(error));
            }
            sqe.buf_index = 0;
        }
        self.send(world, slot, sqe, Forwarded::Whole);
    }

    /// The same for a request about another one that the kernel has.
    pub(super) fn forward_about(&mut self, world: &mut impl World, slot: Slot, other: Slot) {
        let Some(request) = self.requests.get(slot) else {
            return;
        };
        let mut sqe = entry(request, Target::Kernel(-1));
        sqe.addr = name(other);
        if let Operation::PollUpdate { .. } = request.operation {
            const UPDATE_USER_DATA: u32 = 4;
            sqe.len &= !UPDATE_USER_DATA;
            sqe.off = 0;
        } else {
            // By its name, whatever it was found by.
            (sqe.op_flags, sqe.fd) = (0, -1);
        }
        self.send(world, slot, sqe, Forwarded::Whole);
    }

    /// Has the kernel say when a file of its own can be read.
    pub(super) fn forward_wait(&mut self, world: &mut impl World, slot: Slot, target: Target) {
        let mut sqe = Sqe {
            opcode: op::POLL_ADD,
            op_flags: (libc::EPOLLIN | libc::EPOLLRDHUP) as u32,
            ..Sqe::default()
        };
        point(&mut sqe, target);
        self.send(world, slot, sqe, Forwarded::Poll);
    }

    fn send(&mut self, world: &mut impl World, slot: Slot, mut sqe: Sqe, how: Forwarded) {
        if let Some(request) = self.requests.get_mut(slot) {
            request.forwarded = how;
            sqe.user_data = name(slot);
            self.forwarded += 1;
            world.forward(&sqe);
        }
    }

    /// Has the kernel end a request, which is told as it tells all.
    pub(super) fn forward_cancel(&mut self, world: &mut impl World, slot: Slot) {
        world.forward(&Sqe {
            opcode: op::ASYNC_CANCEL,
            fd: -1,
            addr: name(slot),
            user_data: NOBODY,
            ..Sqe::default()
        });
    }

    /// The kernel has completed something.
    pub fn note_completed(
        &mut self,
        world: &mut impl World,
        user_data: u64,
        (result, flags): (i32, u32),
    ) {
        if matches!(user_data, NOBODY | MARK) {
            return;
        }
        let flags = CqeFlags::from_bits_retain(flags);
        if user_data & !0xffff_ffff != OURS {
            return self.carry(user_data, result, flags);
        }
        let slot = user_data as Slot;
        let Some(request) = self.requests.get_mut(slot) else {
            return;
        };
        if flags.contains(CqeFlags::MORE) {
            let others = flags - CqeFlags::MORE;
            if !request.is_finished && !self.post_more(slot, result, others) {
                // There is no room for more: this one is its last.
                self.finish_flagged(world, slot, Ok(result), others);
            }
            return;
        }
        let how = core::mem::replace(&mut request.forwarded, Forwarded::No);
        self.forwarded = self.forwarded.saturating_sub(1);
        match (request.is_finished, how) {
            (true, _) => self.requests.remove(slot),
            (false, Forwarded::Poll) if result >= 0 => self.wake(slot),
            (false, _) => self.finish_with(world, slot, (result, flags), result >= 0),
        }
    }

    /// What the program gave to the kernel itself.
    fn carry(&mut self, user_data: u64, result: i32, flags: CqeFlags) {
        let cqe = ::uring::Cqe {
            user_data,
            result,
            flags,
        };
        // Without memory it has to find room, as a request that goes on.
        match self.completions.reserve() {
            Ok(()) => self.completions.post(&self.rings, cqe),
            Err(_) => drop(self.completions.post_more(&self.rings, cqe)),
        }
    }
}

fn name(slot: Slot) -> u64 {
    OURS | u64::from(slot)
}

fn point(sqe: &mut Sqe, target: Target) {
    match target {
        Target::Own(number) | Target::Kernel(number) => sqe.fd = number,
        Target::KernelFixed(index) => (sqe.fd, sqe.flags) = (index, op::FIXED_FILE),
    }
}

/// Its entry, alone: what it is linked to is our matter, and so are registered buffers.
fn entry(request: &Request, target: Target) -> Sqe {
    let mut sqe = request.sqe;
    sqe.flags = 0;
    point(&mut sqe, target);
    sqe.opcode = match sqe.opcode {
        op::READ_FIXED => op::READ,
        op::WRITE_FIXED => op::WRITE,
        other => other,
    };
    sqe
}

fn fixed_index(sqe: &Sqe) -> Option<u16> {
    matches!(sqe.opcode, op::READ_FIXED | op::WRITE_FIXED).then_some(sqe.buf_index)
}

impl Errno {
    /// Somebody ended it.
    pub const CANCELED: Self = Self::from_number(libc::ECANCELED);
    /// There is no such request.
    pub const NOT_FOUND: Self = Self::from_number(libc::ENOENT);
}
