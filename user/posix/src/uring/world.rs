//! What a ring needs of its surroundings.

use core::cell::Cell;

use ::uring::{Call, Operation, Sqe, TimeoutFlags};
use base::Instant;

use crate::Events;
use crate::errno::Result;

/// Who has what a number names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A socket of ours.
    Own(i32),
    /// The kernel, under this number.
    Kernel(i32),
    /// The kernel, as the file at this index of its own ring.
    KernelFixed(i32),
}

/// One try.
#[derive(Debug)]
pub struct Task<'a> {
    /// What is to be done.
    pub operation: &'a Operation,
    /// With which socket.
    pub target: Target,
    /// The address and length of the memory that was chosen for it: lent, or registered.
    pub buffer: Option<(u64, u32)>,
    /// Bytes that were moved before.
    pub done: usize,
    /// It was tried before.
    pub is_again: bool,
    /// Set by a try that has received nothing, as at the end of a stream: after it no more shots come.
    pub has_ended: Cell<bool>,
}

/// What a program has written, by its addresses.
pub trait Memory {
    /// Two words of the program's.
    fn words(&self, address: u64) -> [u64; 2];

    /// A half word that another thread may write meanwhile.
    fn half(&self, address: u64) -> u16;

    /// A small number of the program's, which lies in a list.
    fn number(&self, address: u64) -> i32;
}

/// See the module.
pub trait World: Memory {
    /// Who has a number.
    ///
    /// Errors: `BAD_NUMBER`.
    fn target(&mut self, number: i32) -> Result<Target>;

    /// Tries, without waiting.
    ///
    /// Errors: `AGAIN` if it would have to wait; those of the operation.
    fn attempt(&mut self, task: &Task<'_>) -> Result<i32>;

    /// What is ready of a socket of ours.
    ///
    /// Errors: `BAD_NUMBER`.
    fn ready(&mut self, number: i32) -> Result<Events>;

    /// Says from now on when something happens to a socket of ours.
    ///
    /// Errors: `BAD_NUMBER`, `NO_BUFFERS`.
    fn watch(&mut self, number: i32) -> Result<()>;

    /// Nobody waits for it any more, and it may be another one's.
    fn forget(&mut self, number: i32);

    /// Runs a call that is about numbers, and does not wait.
    ///
    /// Errors: those of the call.
    fn call(&mut self, call: Call, args: [u64; 6]) -> Result<i32>;

    /// Closes a number.
    ///
    /// Errors: `BAD_NUMBER`.
    fn close(&mut self, number: i32) -> Result<()>;

    /// Gives an entry to the kernel.
    fn forward(&mut self, sqe: &Sqe);

    /// The moment that a `struct timespec` means.
    ///
    /// Errors: `INVALID`.
    fn deadline(&mut self, address: u64, flags: TimeoutFlags) -> Result<Instant>;

    /// Another number for the same, which its program does not know of.
    ///
    /// Errors: `BAD_NUMBER`, `TOO_MANY`.
    fn duplicate(&mut self, number: i32) -> Result<i32>;

    /// That is not needed any more.
    fn give_back(&mut self, number: i32);
}
