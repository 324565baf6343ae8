//! The kernel's ring behind one of ours: the program's end of it.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use base::SharedMemory;
use rt::RingMemory;
use uring::{CQE_BYTES, Geometry, SQE_BYTES, SqFlags, Sqe, offset};

use super::abi::{self, ENTER_GETEVENTS};
use super::syscalls::raw_enter;
use super::taking;

/// See the module.
pub struct KernelRing {
    number: c_int,
    geometry: Geometry,
    rings: RingMemory,
    entries: RingMemory,
    /// Behind the last entry that was given.
    tail: u32,
    /// Given, and not submitted.
    unsubmitted: u32,
    /// The next completion to take.
    head: u32,
    /// Entries for which there was no room.
    backlog: VecDeque<Sqe>,
}

impl KernelRing {
    /// That of a number.
    ///
    /// Errors: those of mmap(2).
    pub fn of(number: c_int, geometry: Geometry) -> io::Result<Self> {
        // SAFETY: a ring's number is the program's, and stays open while the call that found it runs.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        let map = |bytes, offset: i64| RingMemory::map(file, bytes, offset.unsigned_abs());
        let rings = map(geometry.ring_bytes(), abi::OFF_SQ_RING)?;
        let entries = map(geometry.sqe_bytes(), abi::OFF_SQES)?;
        Ok(Self {
            tail: rings.load(offset::SQ_HEAD),
            head: rings.load(offset::CQ_HEAD),
            number,
            geometry,
            rings,
            entries,
            unsubmitted: 0,
            backlog: VecDeque::new(),
        })
    }

    /// Its program's memory is another one from now on, which gets all that is in it. Entries that the program has given are not
    /// for the kernel any more.
    pub fn hand_over(&mut self, rings: &RingMemory, entries: &RingMemory) {
        // What completes from here on is taken by us.
        self.head = self.rings.load(offset::CQ_TAIL);
        taking::copy(&self.rings, rings, self.geometry.ring_bytes());
        taking::copy(&self.entries, entries, self.geometry.sqe_bytes());
        rings.store(offset::CQ_TAIL, self.head);
        rings.store(offset::SQ_FLAGS, 0);
        self.rings.store(offset::CQ_HEAD, self.head);
        self.rings.store(offset::SQ_TAIL, self.tail);
    }

    /// Gives an entry, which is submitted with others.
    pub fn push(&mut self, sqe: &Sqe) {
        if !self.backlog.is_empty() || !self.has_room() {
            self.submit();
        }
        match self.backlog.is_empty() && self.has_room() {
            true => self.write(sqe),
            false => self.backlog.push_back(*sqe),
        }
    }

    fn has_room(&self) -> bool {
        let under_way = self.tail.wrapping_sub(self.rings.load(offset::SQ_HEAD));
        under_way < self.geometry.sq_entries()
    }

    fn write(&mut self, sqe: &Sqe) {
        let slot = self.tail & (self.geometry.sq_entries() - 1);
        self.entries
            .write(slot as usize * SQE_BYTES, &sqe.to_bytes());
        let place = self.geometry.array() + slot as usize * size_of::<u32>();
        self.rings.store(place, slot);
        self.tail = self.tail.wrapping_add(1);
        self.rings.store(offset::SQ_TAIL, self.tail);
        self.unsubmitted += 1;
    }

    /// Has the kernel take what was given; whether it took any.
    pub fn submit(&mut self) -> bool {
        let mut has_submitted = false;
        while self.unsubmitted != 0 {
            // SAFETY: no memory is passed.
            let taken = unsafe { raw_enter(self.number, [self.unsubmitted, 0, 0], ptr::null(), 0) };
            let Ok(taken @ 1..) = u32::try_from(taken) else {
                // It has no room now: with the next try.
                break;
            };
            has_submitted = true;
            self.unsubmitted = self.unsubmitted.saturating_sub(taken);
            while self.has_room()
                && let Some(sqe) = self.backlog.pop_front()
            {
                self.write(&sqe);
            }
        }
        has_submitted
    }

    /// Completions that were not taken.
    pub fn completed(&self) -> u32 {
        self.rings.load(offset::CQ_TAIL).wrapping_sub(self.head)
    }

    /// Whether it has completions for which there was no room.
    pub fn has_overflow(&self) -> bool {
        self.rings.load(offset::SQ_FLAGS) & SqFlags::CQ_OVERFLOW.bits() != 0
    }

    /// Whether it has completed anything that was not taken.
    fn has_completed(&self) -> bool {
        self.completed() != 0
    }

    /// Takes what it has completed: the name, the result, the flags.
    pub fn take(&mut self) -> Option<(u64, i32, u32)> {
        if !self.has_completed() {
            if !self.has_overflow() {
                return None;
            }
            // SAFETY: no memory is passed.
            unsafe { raw_enter(self.number, [0, 0, ENTER_GETEVENTS], ptr::null(), 0) };
            if !self.has_completed() {
                return None;
            }
        }
        let slot = (self.head & (self.geometry.cq_entries() - 1)) as usize;
        let mut bytes = [0; CQE_BYTES];
        self.rings.read(offset::CQES + slot * CQE_BYTES, &mut bytes);
        self.head = self.head.wrapping_add(1);
        self.rings.store(offset::CQ_HEAD, self.head);
        let cqe = u128::from_ne_bytes(bytes);
        let result = (cqe >> 64) as u32;
        Some((cqe as u64, result.cast_signed(), (cqe >> 96) as u32))
    }
}
