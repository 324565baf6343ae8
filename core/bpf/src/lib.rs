//! The classic packet filter: programs that say how much of a packet their owner wants.
//!
//! # Problem
//! A program hands the kernel instructions (`SO_ATTACH_FILTER`) that run for each packet,
//! before anybody decides to copy it. They come from whoever may open a socket, and the
//! packet from whoever may send one: neither may cost more than it is worth, read what is
//! not the packet's, or stop the machine.
//!
//! # Idea
//! [`Program::check`] turns the instructions into a type that can hold only what is allowed,
//! once; [`Program::run`] then needs no checks but those of the packet's length. The rules
//! are Linux's own (`bpf_check_classic` in `net/core/filter.c`), so that what Linux takes is
//! taken and what it refuses is refused. A machine has an accumulator `A`, an index `X` and
//! sixteen words of scratch memory; a load beyond the packet ends the run with "nothing".
//!
//! # Invariants
//! - **Forward:** a jump leads to a later instruction of the program, so a run takes at most
//!   [`INSTRUCTIONS_MAX`] steps.
//! - **Ends:** the last instruction returns.
//! - **Written:** no path reads a word of scratch memory that it has not written.
//! - **Searched:** one run looks at most at [`ATTRIBUTES_MAX`] netlink attributes.
//!
//! The same machine judges system calls ([`CallFilter`]).
//!
//! Sources: McCanne and Jacobson, "The BSD Packet Filter", 1993; `linux/filter.h`.
//! Not here: attaching to sockets, the extended machine, compiling to machine code, and
//! [`Fact`]s of a packet that do not lie in its bytes; the caller answers for those.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod calls;
mod check;
mod decode;
mod fact;
mod instruction;
mod packet;
mod run;
mod scratch;

pub use attributes::ATTRIBUTES_MAX;
pub use calls::{Action, CallData, CallFilter, Verdict};
pub use check::{CheckError, INSTRUCTIONS_MAX, Program};
pub use fact::{Fact, Facts};
pub use instruction::RawInstruction;
pub use packet::Packet;
