//! Filters: what a program that has no rights over a link may receive from it and send by it.
//!
//! # Problem
//! A program that owns a link's frames sees all of them and may claim what the link may claim. A server needs
//! one port of it; the rest is somebody else's, first of all the kernel's own stack's.
//!
//! # Idea
//! A [`Predicate`] names addresses, a protocol and ports of both ends. A filter has one for what its queue
//! receives and one for what it may send ([`Sending`]). Who may make filters is the shell's matter, as is the
//! descriptor that stands for one.
//!
//! # Which filter gets a frame
//! Receive predicates of one link are [apart or one inside the other](Predicate::may_stand_beside); any other
//! pair is refused when the second is made. So those that admit one frame lie in each other, and the innermost of them
//! that has a queue gets it ([`innermost`]). Of frames without a filter's ends:
//!
//! - An error of ICMP goes where the packet that it quotes would have been answered.
//! - Messages by which neighbours find each other (ARP, neighbour discovery) are [heard](Predicate::hears) by
//!   each filter that they concern, in copies, and by the rest of the link as ever.
//! - A fragment has no ports: a predicate that names some admits none, not even the first.
//!
//! # Invariants
//! - What is sent carries the link's own address, and claims addresses of the predicate only: in IP, in ARP, in
//!   neighbour discovery.
//! - What is not whole, has a tag or is of another protocol than IP and ARP passes no filter.
//!
//! # Not here
//! Queues and copies ([`queues`](crate::queues)), descriptors and quotas (the shell).

mod neighbours;
mod predicate;
mod sending;
#[cfg(test)]
mod tests;

pub(crate) use neighbours::Message;
pub use predicate::{BadPredicate, Ends, Ports, Predicate, Relation};
pub use sending::Sending;

/// Filters of a link at most.
pub const FILTERS_MAX: usize = 64;

/// The innermost of the predicates that admit something, by `admits`.
pub fn innermost<T>(
    all: impl Iterator<Item = (T, Predicate)>,
    mut admits: impl FnMut(&Predicate) -> bool,
) -> Option<T> {
    let admitting = all.filter(|(_, predicate)| admits(predicate));
    let inner = |one: (T, Predicate), other: (T, Predicate)| match other.1.relation(&one.1) {
        Relation::Inside => other,
        _ => one,
    };
    admitting.reduce(inner).map(|(filter, _)| filter)
}
