//! `libsietch-io`: the network in a program ([`sietch_io`]), for C. `include/sietch-io.h` is its interface and
//! says what each function does; here is how.
//!
//! # Problem
//! C has no owners. What Rust's types keep a program from, using what it gave away, must be refused
//! when it happens, at the price of a look.
//!
//! # Idea
//! All that a program has are a pointer to its queue and names: sockets are the stack's own ids, which have
//! a generation, with their kind between (`names`); data lies in a table of the queue's under a name
//! that is never given twice (`table`). So a wrong name finds nothing. Each function checks what it is
//! passed (`pointers`), calls the queue, and answers in the numbers of errno (`failure`).
//!
//! | module | what |
//! |---|---|
//! | `queue`, `sockets`, `sending`, `data`, `counters` | the functions, in the header's order |
//! | `config`, `event` | its structs |
//!
//! # Invariants (cited by the `SAFETY` comments)
//! - **Caller:** what a program passes is as the header says: a pointer is NULL, or leads to as much memory as
//!   the function reads or writes, and nobody else uses it meanwhile.
//! - **Queue:** a queue's pointer came from `sietch_queue_open`, was not closed, and one thread uses it at a time.
//!
//! # Not here
//! Waiting in C's way (`sietch_arm` is for that), errno itself, several queues of one link.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod config;
pub mod counters;
pub mod data;
pub mod event;
mod failure;
pub mod names;
mod pointers;
pub mod queue;
pub mod sending;
pub mod sockets;
mod table;
