//! The network: stacks, the card they share, and links over it.
//!
//! A [`NetStack`] is a value ([`stack`]): programs of a network namespace hold one.
//!
//! ```text
//! one CPU, or one pair of queues:
//! card ─ FramePort::receive ─▶ device/poll ─▶ inet::Stack ─ Env::wake (stack/env) ─▶ a socket's Pollee
//!
//! several: each CPU has a pair of the card, a shard and an inbox
//! card ─▶ device/ring ─ link::steer ─▶ device/inbox of the owner ─▶ device/poll ─▶ its inet::Stack
//!
//! a socket's call ─▶ stack/locked ─▶ inet::Stack ─ Env::transmit (stack/env) ─▶ FramePort
//! ```
//!
//! # Where to look
//! [`device`] is the card and the rhythm of polling; [`stack`] what is of one stack; [`packet`] who
//! sees its frames pass; [`datalink`] links over the card.
//!
//! # Shards
//! A stack (`core/inet`) behind one spin lock is a *shard* ([`stack::shard`]); a batch of frames
//! gives way to a program that waits for the lock ([`stack::locked`]). A connection lives
//! in the shard that a hash of its ends names ([`steer`]), on the CPU that runs it
//! ([`device::runners`]). Sockets
//! that wait for unknown peers, listeners and datagram sockets, have a member in each shard
//! in which they hear something ([`stack::member`]). What stays within loopback is spread over all of
//! them by ports ([`stack::loopback`]). Nothing blocks under a shard's lock. Each interface beside the card ([`datalink`]) is a shard more: it has
//! the connections and addresses of that interface, and [`stack::egress`] says what leaves by it.
//!
//! # Polling
//! While the machine is loaded it polls: the device is asked whenever a program waits
//! for readiness, frames to send are announced once per batch ([`device::poll`]). The doorbell is
//! armed only before a CPU halts.
//!
//! # Lock order
//! A socket's `naming`; a stack's `settings`; one shard, never two; a ring; a queue of an inbox;
//! published routes; what interfaces reach; the list of interfaces; a pollee's lists; run queues; a CPU's timers. A ring is also taken
//! without a shard.
//!
//! # Not here
//! Protocol (`core/inet`), devices (`drivers`), sockets of TCP and UDP and raw ones
//! (`kernel/inet-sockets`); following a thread that moves to another CPU: a connection stays.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod datalink;
mod device;
pub mod packet;
mod refusal;
pub mod stack;

pub use datalink::{
    Attachment, Doorbell, Filter, FrameOwner, Outgoing, OwnedLink, Ownership, Redirected,
};
pub use datalink::{has_queue, own};
pub use datalink::{move_interface, remove_vnic, restore as restore_links};
pub use device::attend::card_asked;
pub use device::config::{Config, TimeWait, attach_pairs, configure, init};
pub use device::config6::{Config6, configure6, start6};
pub use device::memory::{AREA_BYTES, PacketBuffers, packet_buffers, packet_pool};
pub use device::poll::{after_bytes, after_refusal, after_send, drain, poll_now};
pub use device::ring::{RingCounters, port_counters, ring_counters};
pub use device::runners::{LeadInterrupt, interrupted};
pub use device::steer;
pub use linkctl::{FILE as LINKS_FILE, FILE_BYTES_MAX as LINKS_FILE_BYTES_MAX};
pub use refusal::{Answer, Refusal, refused};
pub use stack::changes::{look_for_changes, on_changes};
pub use stack::env::Port;
pub use stack::interface::{CARD, Interface, InterfaceFlags, LOOPBACK, Traffic};
pub use stack::{NetStack, current_stack, first, of_namespace, plan};

/// Exceptions (ARP, ICMP errors, DHCP) dropped between shards.
pub fn exceptions_dropped() -> u64 {
    device::inbox::dropped()
}

/// Adds the device files of links and of cards that programs drive.
pub fn register_devices() {
    datalink::register();
    packet::register();
}
