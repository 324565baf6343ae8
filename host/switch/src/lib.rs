//! A switch between the machines of one network, in a process of its own, without rights.
//!
//! ```text
//!   machine a ── card.sock ──┐            ┌── card.sock ── machine b
//!                          switch ── names (the address .1)
//!   a's way out ─ net.sock ──┘            └── net.sock ── b's way out
//! ```
//!
//! QEMU (or passt, for a way out) listens at each of these sockets, and the switch calls: a frame is its length in four
//! bytes and itself ([`stream`]). A machine's *way out* is what it would have by itself, QEMU's user network or passt: it
//! leads published ports in and connections out. It belongs to one machine, and no other one's frame reaches it.
//!
//! There is nothing to learn: each machine has the station and the address that the switch gave it ([`Lease`]), and what
//! it sends in another's name is dropped ([`fabric`]). So the tables are as large as the network has members, and who asks for an
//! address is answered by the switch itself. Names are answered by [`names`]; what has a dot and is nobody's name goes
//! to the host's resolver ([`resolver`]). Who finds an answer cut asks again by TCP, which the project's own stack serves ([`dns_tcp`]).
//!
//! A machine is a member as long as its `sietch run` holds a connection to the switch ([`protocol`], [`join`]). The last
//! one that leaves ends the switch. If the switch is killed, the members start another and join it with the addresses that
//! they had ([`leases`]); QEMU and passt listen again, so their machines lose frames, and no connection.
//!
//! All queues are bounded, and each frame that is dropped is counted under its reason ([`Drops`]).
//!
//! Not here: which networks there are, and where their files lie (`cli`); DHCP, which a machine's way out serves.

#![forbid(unsafe_code)]

mod counts;
pub mod dns_tcp;
pub mod fabric;
pub mod join;
pub mod leases;
pub mod names;
mod network;
mod peers;
pub mod protocol;
pub mod resolver;
mod serve;
mod socket;
pub mod stream;

pub use counts::Drops;
pub use join::{Kept, Membership};
pub use network::{Alone, Lease, Network};
pub use serve::{Files, serve};
