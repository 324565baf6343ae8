//! ARP and neighbour discovery, IPv4 and IPv6, ICMP, UDP and TCP: events in, frames and
//! wakeups out.
//!
//! # Problem
//! The same stack serves a kernel's sockets, a program that drives its own NIC queue,
//! and a simulation with 20 % loss. So it owns no clock, no randomness, no lock and no
//! device, and everything that a peer controls is bounded and counted.
//!
//! # Idea
//! A [`Stack`] is one *shard*: all connections, ports, neighbours and timers that one
//! CPU serves. Nothing in it is global, so a machine has as many as it likes, each
//! behind one lock of the shell. Everything is a method call on it:
//!
//! ```text
//! shell:  receive(frame)* flush()     the NIC has a batch
//!         expire() -> deadline        a timer is due
//!         send / recv / accept / ...  a program calls
//! stack:  env.transmit(frame)  env.wake(socket, events)
//! ```
//!
//! A batch runs to completion: segments are queued in sockets without copying, sockets
//! are woken as their bytes arrive, and acknowledgements are sent once, by `flush`. A
//! small request is not acknowledged there: its acknowledgement rides on the response.
//!
//! # The socket interface
//! Calls that may send take the [`Env`] first; a socket is named by a [`SocketId`], an
//! index with a generation, and looked up in O(1).
//!
//! ```text
//! Stack::new(Config) -> Result<Stack, Error>; config() -> &Config; reconfigure(Config)
//! reserve_ports(Vec<PortRange>); reserved_ports() -> &[PortRange]
//! attach(Port { mac, mtu, offloads }); detach(env); set_address(Option<Cidr>); set_gateway(Option<Ipv4Addr>)
//! set_share(Share { number, owner_of }); number_events_by(Arc<EventNumbers>); follow_datagram(socket, local, peer)
//! share_totals(&Totals); choose_datagram_port(id, |port| -> bool) -> Option<u16>
//! start_dhcp(env); stop_dhcp(); lease() -> Option<&Lease>
//! start_ipv6(env, Ipv6Config); stop_ipv6(env); has_ipv6() -> bool; addresses_v6() -> impl Iterator<Item = &Ipv6Address>
//! add_address_v6(env, addr, prefix_len); remove_address_v6(env, addr)
//! ipv6_snapshot() -> Option<Ipv6Snapshot>; follow_ipv6(Option<&Ipv6Snapshot>)
//! add_route(Route); remove_route(|&Route| -> bool); routes() -> impl Iterator<Item = &Route>
//! reach(interface) -> Reach           what an Egress chooses by
//! path_mtu(dst) -> u32; report_black_hole(env, dst)
//!
//! receive(env, RxFrame); flush(env)
//! expire(env) -> Option<Instant>      run due timers; when to come back
//! next_deadline() -> Option<Instant>
//!
//! open(Transport::{Tcp, Udp}) -> Result<SocketId>; open_v6(Transport) hears both families
//! bind(id, Endpoint)                  port 0: ephemeral; address unspecified: any
//! bind_elsewhere(id, Endpoint)        by an address of another shard of the host
//! listen(id, backlog); listen_totals(id) -> Result<ListenTotals>; share_backlog(id, &ListenTotals)
//! accept(id) -> Result<SocketId>            WouldBlock if none waits
//! is_held_elsewhere(id) -> bool; use_room(env, id)   SYNs that another stack's accept made room for
//! connect(env, id, Endpoint)          TCP: starts; WRITABLE or ERROR follows
//! disconnect(id)                      UDP: no peer any more
//! send_with(env, id, max, &mut |space: &mut [u8]| -> usize) -> Result<usize>
//!                                     fills buffers in place; fewer than offered ends it
//! send_chain(env, id, &mut Chain) -> Result<usize>      takes what fits, no copy
//! autocork(); end_autocork(env)       small segments wait for others while frames lie in the port
//! recv_with(env, id, max, &mut |bytes: &[u8]| -> usize) -> Result<usize>
//!                                     Ok(0): end of stream
//! recv_chain(env, id, max) -> Result<Chain>            no copy
//! peek_with(id, skip, max, &mut |bytes: &[u8]| -> usize) -> Result<usize>
//! send_to(env, id, Option<Endpoint> or SendOptions, len, &mut |space: &mut [u8]| -> usize)
//!                                     -> Result<usize>
//! send_chain_to(env, id, Option<Endpoint> or SendOptions, Chain) -> Result<()>   no copy
//! recv_from(id) -> Result<Datagram>   { from, to, hop_limit, tos, payload: Chain, segment_bytes }
//! peek_from(id) -> Result<&Datagram>
//! shutdown(env, id, Shutdown::{Read, Write, Both})
//! close(env, id)                      the id is dead; the connection closes by itself
//! abort(env, id)                      with a reset
//! join_group(env, id, group), leave_group(env, id, group); groups()
//! poll(id) -> Events                  what is true now
//! options(id) -> Result<&Options>; configure(env, id, |options: &mut Options|)
//! local(id), remote(id) -> Result<Endpoint>
//! take_error(id) -> Option<Error>
//! state(id) -> Result<State>; info(id) -> Result<TcpInfo>; unread(id), unsent(id) -> Result<usize>
//! export(env, id) -> Result<TcpSnapshot>; import(env, id, &TcpSnapshot)   a connection as a value
//! freeze(env, id); thaw(env, id, asks); frozen(id) -> Option<&TcpSnapshot>; frozen_mut(id)
//! fill_frozen(id, FrozenQueue, &[u8]); frozen_room(id, FrozenQueue) -> Result<usize>; tcp_clock(env, id) -> Result<u32>
//! share_memory(&'static MemoryTotals); tcp_memory(), udp_memory() -> usize
//! buffers_grown() -> usize
//! stats() -> &Stats; journal() -> impl Iterator<Item = &Event>
//! connections() -> impl Iterator<Item = ConnectionEntry>
//! ```
//!
//! # Not here
//! errno, file descriptors, blocking (the shell), MAC-layer virtualization (`link`),
//! IPv4-mapped IPv6 addresses (the Linux layer unwraps them).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod addr;
mod arp;
mod boxed;
mod budget;
mod config;
mod context;
mod counters;
mod counters6;
mod dhcp;
mod echo;
mod egress;
mod env;
mod ephemeral;
mod error;
mod family;
mod filter;
mod hash;
mod icmp;
mod input;
mod ip;
mod ipv6;
mod journal;
mod membership;
mod memory;
mod mib;
mod multicast;
mod neighbor;
mod net;
mod options;
mod output;
mod path;
mod port;
mod ports;
mod raw;
mod reassembly;
mod reconfigure;
mod route;
mod routing;
mod share;
mod socket;
mod stack;
pub mod stack_table;
mod table;
mod tcp;
mod totals;
mod udp;
mod unsolicited;
mod wheel;

pub use addr::{Cidr, Endpoint, Prefix, SocketId, Transport};
pub use config::{Config, Ecn, Offers, RetryLimits};
pub use counters::{Count, Counts, DropReason, Drops, ResetReason, Resets, Stats};
pub use counters6::{Snmp6, Snmp6Counts};
pub use dhcp::Lease;
pub use egress::{Choices, Egress, Reach};
pub use env::{Env, Events, RawPacket};
pub use ephemeral::PortRange;
pub use error::Error;
pub use ipv6::{AddressOrigin, AddressState, InterfaceId, Ipv6Address, Ipv6Config, Ipv6Snapshot};
pub use journal::{
    Event, EventKind, EventNumbers, EventsEnd, JOURNAL_EVENTS_MAX, Resent, What, merged,
};
pub use memory::{MemoryLimits, MemoryTotals};
pub use neighbor::NeighborState;
pub use options::{Device, Options, PathDiscovery, Shutdown};
pub use port::{Offloads, Port};
pub use raw::RawHeader;
pub use route::{Route, RouteOrigin, Via};
pub use routing::NeighborEntry;
pub use share::Share;
pub use socket::SocketEntry;
pub use stack::Stack;
pub use tcp::{
    Algorithm, ClockSnapshot, ConnectionEntry, FrozenQueue, ListenTotals, PastConnection,
    ReceiveSnapshot, Reuse, SendSnapshot, State, SynCookies, TcpInfo, TcpSnapshot, TimeWaitRules,
};
pub use totals::Totals;
pub use udp::{Datagram, Failure, FailureMessage, SendOptions};
