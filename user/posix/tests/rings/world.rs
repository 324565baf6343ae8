//! A program with its ring, and a world of sockets and files that a test opens and shuts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use base::{Instant, SharedMemory};
use posix::uring::{Memory, Ring, Target, Task, World};
use posix::{Errno, Events, Result};
use uring::{CQE_BYTES, Call, Geometry, SQE_BYTES, Sqe, TimeoutFlags, offset};

/// Numbers below this are sockets of ours.
pub const KERNELS: i32 = 100;

/// Bytes that both can change.
#[derive(Clone)]
pub struct Shared(Rc<RefCell<Vec<u8>>>);

impl SharedMemory for Shared {
    fn load(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        self.read(at, &mut word);
        u32::from_ne_bytes(word)
    }

    fn store(&self, at: usize, value: u32) {
        self.write(at, &value.to_ne_bytes());
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.0.borrow()[at..at + to.len()]);
    }

    fn write(&self, at: usize, from: &[u8]) {
        self.0.borrow_mut()[at..at + from.len()].copy_from_slice(from);
    }
}

fn shared(bytes: usize) -> Shared {
    Shared(Rc::new(RefCell::new(vec![0; bytes])))
}

/// What a test opens and shuts.
#[derive(Default)]
pub struct Sockets {
    /// What a try on a number moves; it waits without any.
    pub bytes: HashMap<i32, Vec<i32>>,
    pub ready: HashMap<i32, Events>,
    pub watched: Vec<i32>,
    /// Entries that the kernel got.
    pub forwarded: Vec<Sqe>,
    pub closed: Vec<i32>,
    /// Numbers of ours that have become the kernel's.
    pub handed_over: Vec<i32>,
    pub tail: u16,
    pub now: u64,
}

impl Memory for Sockets {
    /// A list of buffers: the address says which.
    fn words(&self, address: u64) -> [u64; 2] {
        let index = address % 4096 / 16;
        [0x1000 * (index + 1), index << 32 | 64]
    }

    fn half(&self, _: u64) -> u16 {
        self.tail
    }

    fn number(&self, address: u64) -> i32 {
        address as i32
    }
}

impl World for Sockets {
    fn target(&mut self, number: i32) -> Result<Target> {
        let is_ours = number < KERNELS && !self.handed_over.contains(&number);
        Ok(match is_ours {
            true => Target::Own(number),
            false => Target::Kernel(number),
        })
    }

    fn attempt(&mut self, task: &Task<'_>) -> Result<i32> {
        let (Target::Own(number) | Target::Kernel(number)) = task.target else {
            return Err(Errno::NOT_SUPPORTED);
        };
        let moved = self.bytes.get_mut(&number).and_then(Vec::pop);
        moved.ok_or(Errno::AGAIN)
    }

    fn ready(&mut self, number: i32) -> Result<Events> {
        Ok(self.ready.get(&number).copied().unwrap_or(Events::empty()))
    }

    fn watch(&mut self, number: i32) -> Result<()> {
        self.watched.push(number);
        Ok(())
    }

    fn forget(&mut self, number: i32) {
        self.watched.retain(|one| *one != number);
    }

    fn call(&mut self, _: Call, _: [u64; 6]) -> Result<i32> {
        Ok(7)
    }

    fn close(&mut self, number: i32) -> Result<()> {
        self.closed.push(number);
        Ok(())
    }

    fn forward(&mut self, sqe: &Sqe) {
        self.forwarded.push(*sqe);
    }

    /// The address is the time.
    fn deadline(&mut self, address: u64, _: TimeoutFlags) -> Result<Instant> {
        Ok(Instant::from_nanos(self.now + address))
    }

    fn duplicate(&mut self, number: i32) -> Result<i32> {
        Ok(number)
    }

    fn give_back(&mut self, number: i32) {
        self.closed.push(number);
    }
}

/// A program with its ring.
pub struct Program {
    pub ring: Ring<Shared>,
    pub world: Sockets,
    geometry: Geometry,
    rings: Shared,
    entries: Shared,
    given: u32,
}

impl Program {
    pub fn new(entries: u32) -> Self {
        let geometry = Geometry::check(entries, None, false).unwrap();
        let (rings, sqes) = (shared(geometry.ring_bytes()), shared(geometry.sqe_bytes()));
        geometry.publish(&rings);
        Self {
            ring: Ring::new(geometry, false, rings.clone(), sqes.clone()),
            world: Sockets::default(),
            geometry,
            rings,
            entries: sqes,
            given: 0,
        }
    }

    /// Gives an entry.
    pub fn give(&mut self, sqe: Sqe) {
        let slot = self.given % self.geometry.sq_entries();
        self.entries
            .write(slot as usize * SQE_BYTES, &sqe.to_bytes());
        self.rings
            .store(self.geometry.array() + slot as usize * 4, slot);
        self.given += 1;
        self.rings.store(offset::SQ_TAIL, self.given);
    }

    /// Has all that was given taken, and does what can be done.
    pub fn enter(&mut self) -> u32 {
        let taken = self.ring.submit(u32::MAX).unwrap();
        self.work();
        taken
    }

    pub fn work(&mut self) {
        let now = Instant::from_nanos(self.world.now);
        self.ring.work(&mut self.world, now);
    }

    /// A socket moves so many bytes from now on, once each.
    pub fn feed(&mut self, number: i32, moved: &[i32]) {
        let queue = self.world.bytes.entry(number).or_default();
        queue.splice(0..0, moved.iter().rev().copied());
        self.ring.note_ready(number);
        self.work();
    }

    /// The kernel completes the entry that it got as the `index`th.
    pub fn complete(&mut self, index: usize, result: i32, flags: u32) {
        let name = self.world.forwarded[index].user_data;
        self.ring
            .note_completed(&mut self.world, name, (result, flags));
        self.work();
    }

    /// What has completed: names, results, flags.
    pub fn take(&mut self) -> Vec<(u64, i32, u32)> {
        let ready = self.ring.ready();
        let head = self.rings.load(offset::CQ_HEAD);
        let taken = (0..ready).map(|index| {
            let slot = (head.wrapping_add(index) % self.geometry.cq_entries()) as usize;
            let mut bytes = [0; CQE_BYTES];
            self.rings.read(offset::CQES + slot * CQE_BYTES, &mut bytes);
            let cqe = u128::from_ne_bytes(bytes);
            (cqe as u64, (cqe >> 64) as i32, (cqe >> 96) as u32)
        });
        let taken = taken.collect();
        self.rings.store(offset::CQ_HEAD, head.wrapping_add(ready));
        taken
    }
}

/// An entry of an operation, for a number, by a name.
pub fn entry(opcode: u8, fd: i32, user_data: u64) -> Sqe {
    Sqe {
        opcode,
        fd,
        user_data,
        ..Sqe::default()
    }
}
