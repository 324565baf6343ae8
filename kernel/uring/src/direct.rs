//! Plain transfers of files that begin them: they go out without a request of the ring's.
//!
//! Most of what a ring moves to and from disks is plain ([`uring::Plain`]): nothing is linked to it, no drain
//! is before it, and nobody cancels what a device has. Of such a transfer only the name is kept, by the block layer,
//! and its end is posted by whoever takes what the device has ended ([`TransferEnd`]): no thread
//! is woken for it that has not as many completions as it waits for.
//!
//! A thread that ends leaves its transfers to the device: they keep their pages and the ring until then.

use alloc::sync::Arc;

use base::VirtAddr;
use mm::io::UserRange;
use sync::Result;
use task::Thread;
use uring::{Cqe, CqeFlags, Plain, Sqe};
use vfs::file::OpenFile;
use vfs::file::transfer::{Begun, Memory, Tag, Transfer, TransferEnd};

use crate::abi::Failure;
use crate::registered::Registered;
use crate::ring::Ring;
use crate::submit::REQUESTS_MAX;

/// RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_NOWAIT.
const HINTS: u32 = 1 | 8;
const SYNCS: u32 = 2 | 4;

impl Ring {
    /// Begins a transfer; false if it is to be a request like any other.
    pub fn begin(self: &Arc<Self>, thread: &Thread, sqe: &Sqe, begun: &mut Begun) -> bool {
        let plain = sqe
            .plain()
            .filter(|plain| plain.flags & !(HINTS | SYNCS) == 0 && i64::try_from(sqe.off).is_ok());
        let Some(plain) = plain else {
            return false;
        };
        let registered = plain.buffer.is_some().then(|| self.registered.lock());
        let open = match &registered {
            Some(registered) if plain.is_fixed_file => registered.file(sqe.fd),
            _ => self.file(thread, sqe.fd, plain.is_fixed_file),
        };
        let Ok(open) = open else {
            return false;
        };
        if !self.promise_end() {
            return false;
        }
        match self.begin_on(&open, sqe, plain, registered.as_deref()) {
            Some(Ok(())) => begun.note(&open.file),
            Some(Err(error)) => self.ended(Tag([sqe.user_data, 0, 0]), Err(error)),
            None => {
                let mut state = self.state.lock();
                state.completions.release();
                state.drain.done();
                return false;
            }
        }
        true
    }

    /// Sees to it that the end can be posted; false if it cannot begin now.
    fn promise_end(&self) -> bool {
        let mut state = self.state.lock();
        let has_room = state.completions.owed() < REQUESTS_MAX;
        if !has_room || state.completions.reserve().is_err() {
            return false;
        }
        let starts = state.drain.start_now();
        if !starts {
            state.completions.release();
        }
        starts
    }

    fn begin_on(
        self: &Arc<Self>,
        open: &OpenFile,
        sqe: &Sqe,
        plain: Plain,
        registered: Option<&Registered>,
    ) -> Option<Result<()>> {
        let range = UserRange::new(VirtAddr(sqe.addr), sqe.len as usize).ok()?;
        let transfer = |memory| Transfer {
            is_write: plain.is_write,
            offset: sqe.off,
            memory,
            is_synced: plain.flags & SYNCS != 0,
            end: self.clone(),
            tag: Tag([sqe.user_data, 0, 0]),
        };
        match plain.buffer {
            None => open.begin(transfer(Memory::Ranges(&[range]))),
            Some(index) => {
                let (pages, bytes) = registered?.pinned(index, range)?;
                open.begin(transfer(Memory::Pages(pages, bytes)))
            }
        }
    }
}

impl TransferEnd for Ring {
    fn ended(&self, tag: Tag, result: Result<usize>) {
        let result = match result {
            Ok(bytes) => bytes as i32,
            Err(error) => self.abi.number(Failure::Error(error)),
        };
        let Tag([user_data, ..]) = tag;
        let cqe = Cqe {
            user_data,
            result,
            flags: CqeFlags::empty(),
        };
        let (goes_on, is_enough) = {
            let mut state = self.state.lock();
            state.completions.post(&*self.rings, cqe);
            state.drain.done();
            let goes_on = state.drain.has_waiting() || !state.counted.is_empty();
            (goes_on, state.is_enough(&self.rings))
        };
        if goes_on {
            self.go_on();
        }
        if is_enough {
            self.enough.wake_all();
        }
        self.tell();
    }
}
