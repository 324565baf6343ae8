//! The network: one stack, its device, and the sockets that programs hold.
//!
//! ```text
//! device ─ FramePort::receive ─▶ poll.rs ─▶ inet::Stack ─ Env::wake ─▶ a socket's Pollee
//! read(2) ─▶ tcp.rs / udp.rs ─▶ inet::Stack::recv_with ─▶ the program's memory
//! write(2) ─▶ tcp.rs / udp.rs ─▶ inet::Stack::send_with ─ Env::transmit ─▶ FramePort
//! ```
//!
//! The stack (`core/inet`) is one shard behind one spin lock ([`shard::lock`]); nothing
//! blocks under it. A copy to or from a program stops at a missing page, which is
//! brought in after the lock is dropped.
//!
//! While the machine is loaded it polls: the device is asked whenever a program waits
//! for readiness, frames to send are announced once per batch (`poll`). The doorbell is
//! armed only before a CPU halts.
//!
//! Lock order: the shard, then a pollee's lists, then run queues.
//! Not here: protocol (`core/inet`), devices (`drivers`), sockaddr and options' numbers
//! (`kernel/linux/socket`).

mod config;
mod error;
mod handle;
mod poll;
mod shard;
mod tcp;
mod udp;

pub use config::{Config, configure, init};
pub use poll::{attach, poll_now};
pub use shard::{stats, with_stack};
pub use tcp::TcpSocket;
pub use udp::UdpSocket;
