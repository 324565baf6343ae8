//! The network in a program: a TCP/IP stack over a link whose frames the program moves itself.
//!
//! # Problem
//! A server that asks the kernel for each message pays for the crossing, the wake-up, the
//! copy and the descriptor's layers, every time.
//!
//! # Idea
//! A [`Queue`] is one link (a VNIC), its four rings (`rt`), one [`inet::Stack`] and one pool of packet
//! memory that the kernel shares. It runs to completion: a batch of frames is taken from the ring and
//! received by the stack; the program is handed what came of it as [`Event`]s that carry the data; what
//! it sends is staged; and the next [`poll`](Queue::poll) shows the kernel all of it with one
//! system call. It waits in the kernel only when nothing is left to do, and then until a frame comes
//! or the stack's next timer is due.
//!
//! ```no_run
//! use sietch_io::{Event, Queue, QueueConfig};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut queue = Queue::open(&QueueConfig::new("vnic0", "10.0.2.61/24".parse()?))?;
//!     queue.bind(7)?;
//!     loop {
//!         queue.poll(None)?;
//!         while let Some(event) = queue.receive() {
//!             if let Event::Datagram { socket, from, data } = event {
//!                 // What the peer's window or our memory does not take is lost, as datagrams are.
//!                 queue.send_to(socket, from, data).ok();
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! # Who owns what
//! Data is a [`Chain`] of slices of packet memory. What the program [receives](Queue::receive) lies where
//! the kernel wrote it and is the program's until it is dropped, which is all there is of `done`: the
//! chunk goes home by itself. What it sends is given away: the chunk comes home when the kernel
//! has sent the frame and, of a stream, the peer has acknowledged it. Buffers to be filled come from
//! [`Queue::buffer`]; bytes from elsewhere are copied into some by the calls that take slices.
//!
//! A program that keeps what it receives runs out of packet memory; then its own link loses frames,
//! nobody else's.
//!
//! # Bounds
//! Batches have [`BATCH_FRAMES`] frames. Packet memory, sockets and the stack's queues have the limits
//! of the [`QueueConfig`]; what does not fit is dropped and counted by reason ([`Queue::counts`],
//! [`Queue::stats`]).
//!
//! # Not here
//! POSIX's sockets (`user/posix`, by [`Station::parts`]), IPv6 and DHCP of the queue's own address (the stack has both), programs that
//! fork and go on using the queue in the child: it opens another one of the link ([`QueueConfig::queues`]).
#![forbid(unsafe_code)]

mod config;
mod doorbell;
mod event;
mod opening;
mod queue;
mod readiness;
mod socket;
mod station;
pub mod storage;
mod world;

pub use config::{Address, NoAddress, QUEUES, QueueConfig};
pub use doorbell::Doorbell;
pub use event::Event;
pub use hal::PortCounters;
pub use inet::{Endpoint, Error, Stats, TcpSnapshot};
pub use link::filters::{Ends, Ports, Predicate};
pub use link::prefix::IpPrefix;
pub use mbuf::{Chain, Mbuf};
pub use queue::Queue;
pub use rt::{Count, Counts, Filter, Interface};
pub use socket::{Connection, Listener, UdpSocket};
pub use station::{BATCH_FRAMES, Station};
pub use world::World;
