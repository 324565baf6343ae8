//! Spaces that somebody else lets go of last than who ended their program.
//!
//! # Problem
//! Who searches all spaces for a file's pages ([`super::truncate`]) has the one that it looks at for a moment, and may be
//! the last to have it if its program ends meanwhile. But the end of a space closes what was mapped, a file that is
//! closed brings its pages down, and who searches may be just doing that, and hold the file's locks.
//!
//! # Idea
//! It leaves such a space to a thread that holds nothing ([`super::leave`], [`close_left`]). Room for it is made with the
//! space.
//!
//! Not here: a server that does not answer holds up what is closed behind its file.
//!
//! Lock order: the list's lock is innermost.

use alloc::boxed::Box;

use mach::mem::fallible;
use mach::sync::Spin;
use sync::{Result, Wait, WaitQueue};

use super::AddressSpace;

/// A space that has ended, in a list of these; room for one until then.
#[derive(Default)]
pub(super) struct Left {
    space: Option<AddressSpace>,
    next: Option<Box<Left>>,
}

/// Who leaves a space knows only that, and one thread ends those of all programs.
static LEFT: Spin<Option<Box<Left>>> = Spin::new(None);
/// Where that thread waits.
static ANY: WaitQueue = WaitQueue::new();

impl Left {
    /// Room for a space.
    pub(super) fn room() -> Result<Box<Self>> {
        Ok(fallible::boxed(Self::default())?)
    }

    /// Leaves the space to the thread that closes.
    pub(super) fn leave(mut self: Box<Self>, space: AddressSpace) {
        self.space = Some(space);
        let mut first = LEFT.lock();
        self.next = first.take();
        *first = Some(self);
        drop(first);
        ANY.wake_one();
    }
}

/// Ends spaces that were left. The body of a thread of the kernel.
pub fn close_left(_: usize) -> ! {
    sched::finish_switch();
    loop {
        let next = || {
            let mut first = LEFT.lock();
            let mut left = first.take()?;
            *first = left.next.take();
            left.space
        };
        // Only a signal or a deadline would end this otherwise, and there is neither.
        if let Ok(space) = ANY.wait(Wait::UNINTERRUPTIBLE, next) {
            space.dismantle();
        }
    }
}
