//! Rings whose numbers are in an epoll set, or in poll.
//!
//! The number is that of the kernel's ring, which can be read as long as it has a completion that nobody has taken. So one
//! of a request that does nothing, the *mark*, lies there while the program's ring has completions. Whoever waits for
//! what the kernel completes otherwise waits for an eventfd of the library's.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use uring::Sqe;

use super::entering::{Inside, OwnRing};
use super::syscalls::raw_register;
use super::table::{self, Found};
use crate::numbers::{Whose, seen};
use crate::patience::make_bell;

/// IORING_REGISTER_EVENTFD.
const REGISTER_EVENTFD: c_uint = 4;
/// Rings of ours whose numbers somebody waits for.
static POLLED: AtomicUsize = AtomicUsize::new(0);

/// What a ring has of it.
pub struct Polled {
    /// What can be read when the kernel has completed something.
    pub bell: c_int,
    /// The mark lies there.
    is_marked: bool,
}

/// Somebody is about to wait for a number, by epoll or poll.
#[inline]
pub fn note_polled(number: c_int) {
    if seen(number) == Whose::Ring {
        begin(number);
    }
}

#[cold]
fn begin(number: c_int) {
    match table::find(number) {
        Found::Ours(ring) => ring.set_polled(),
        _ => drop(table::with_known(number, |known| known.is_polled = true)),
    }
}

/// Somebody is about to wait for whatever has such numbers: those whose completions were all taken are marked no longer.
#[inline]
pub fn before_wait() {
    if POLLED.load(Ordering::Acquire) != 0 {
        table::for_each(|ring| {
            if let Some(mut inside) = ring.try_lock() {
                inside.mark(false);
            }
        });
    }
}

impl OwnRing {
    /// Its number tells of completions from now on.
    pub fn set_polled(self: &Arc<Self>) {
        let mut inside = self.lock();
        if inside.polled.is_some() {
            return;
        }
        let Ok(bell) = make_bell() else { return };
        let at = (&raw const bell).cast_mut().cast();
        // SAFETY: it reads one number.
        unsafe { raw_register(self.number, REGISTER_EVENTFD, at, 1) };
        inside.polled = Some(Polled {
            bell,
            is_marked: false,
        });
        self.wait_for.store(bell, Ordering::Release);
        POLLED.fetch_add(1, Ordering::AcqRel);
        inside.mark(true);
        drop(inside);
        self.keeper.is_prompt.store(true, Ordering::Release);
        self.wake();
        self.keeper.note_left(self);
    }

    /// It is over.
    pub fn end_polling(inside: &mut Inside) {
        if let Some(polled) = inside.polled.take() {
            POLLED.fetch_sub(1, Ordering::AcqRel);
            crate::patience::close_own(polled.bell);
        }
    }
}

impl Inside {
    /// Whether the kernel has completed anything but the mark.
    pub fn has_completed(&self) -> bool {
        let mark = self.polled.as_ref().is_some_and(|polled| polled.is_marked);
        self.kernel.completed() > u32::from(mark) || self.kernel.has_overflow()
    }

    /// The mark was taken with other completions.
    pub fn note_mark_taken(&mut self) {
        if let Some(polled) = &mut self.polled {
            polled.is_marked = false;
        }
    }

    /// What the kernel has completed is about to be looked at.
    pub fn drain_bell(&self) {
        if let Some(polled) = &self.polled {
            drain(polled.bell);
        }
    }

    /// Has the mark lie there if there are completions, anew if some `are_new`: who waits for a change sees one.
    pub fn mark(&mut self, are_new: bool) {
        let has_some = self.ring.ready() != 0;
        let Some(polled) = &mut self.polled else {
            return;
        };
        if polled.is_marked && (!has_some || are_new) && self.kernel.completed() == 1 {
            self.kernel.take();
            polled.is_marked = false;
        }
        if has_some && !polled.is_marked {
            self.kernel.push(&Sqe {
                user_data: posix::uring::MARK,
                ..Sqe::default()
            });
            self.kernel.submit();
            polled.is_marked = true;
            drain(polled.bell);
        }
    }
}

fn drain(bell: c_int) {
    let mut count = 0_u64;
    // SAFETY: **Ours**; eight bytes go to `count`.
    unsafe { libc::syscall(libc::SYS_read, bell, &raw mut count, size_of::<u64>()) };
}
