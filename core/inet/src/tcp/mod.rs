//! TCP (RFC 9293), one concept a file.
//!
//! | file | what | source |
//! |---|---|---|
//! | `segment`, `syn` | a received segment, and a SYN that is kept | |
//! | `demux` | which connection, listener or TIME_WAIT a segment belongs to | |
//! | `listen` | listeners, half-open connections | |
//! | `hops` | segments from too far away | RFC 5082 |
//! | `cookies` | connections without state while half-open ones are too many | RFC 4987 |
//! | `held` | SYNs that wait for room in a listener's queue | |
//! | `handshake` | SYN-SENT, option negotiation | RFC 9293 3.10.7.3 |
//! | `arrive` | a segment in a synchronized state | 3.10.7.4, RFC 5961, RFC 7323 |
//! | `ack` | what an acknowledgement changes | RFC 5681, 6298 |
//! | `receive` | bytes in: order, window | RFC 1122 |
//! | `acknowledge` | when to acknowledge them | RFC 5681, 1122 |
//! | `assembler` | bytes that arrived too early | RFC 2018 |
//! | `send` | bytes out: the program's queue, and segments of it | |
//! | `choose` | what may be sent next: windows, Nagle, cork | RFC 9293 3.8.6, 1122 |
//! | `burst` | how much leaves in one frame | |
//! | `transmit` | one segment onto the wire | |
//! | `scoreboard`, `retransmit_queue`, `delivery` | what is in flight, and what arrives of it | RFC 2018, 2883 |
//! | `recovery` | what is lost and sent again | RFC 8985, 6582, 6937, 3522 |
//! | `congestion` | how much may be in flight | RFC 5681, 9438, 9406, 6928 |
//! | `autotune` | how large buffers are | |
//! | `ecn` | marks instead of losses | RFC 3168 |
//! | `rate`, `pacing` | how fast bytes arrive, and may leave | |
//! | `rtt` | how long to wait for an answer | RFC 6298 |
//! | `timers` | what happens when nothing arrives | RFC 1122 |
//! | `snapshot`, `export`, `import` | a connection as a value, for another stack | |
//! | `frozen`, `departed` | sockets that stand still, and names of connections that left | |
//! | `tcb`, `info` | the state of a connection, and what tools see of it | |
//! | `close`, `reset` | the ends of a connection | |
//! | `note` | what the journal of trouble hears | |
//! | `time_wait` | connections that are over, and segments that meet them | RFC 6191 |
//!
//! # How a connection keeps its bytes
//! Two chains of buffers: `flight` holds what was sent and is not acknowledged, `unsent`
//! what was not sent yet. Sending moves buffers from one to the other and shares
//! them with the frame; an acknowledgement drops them. Received buffers are queued as
//! they came. Idle connections hold no buffer at all; what only a second stretch in flight,
//! early bytes, a loss or a growing window need is boxed, and made when they do.
//!
//! Invariant: `flight.len() == nxt - una`, less one for a SYN and one for a FIN in flight.

mod ack;
mod acknowledge;
mod arrive;
mod assembler;
mod autocork;
mod autotune;
mod backlog;
mod burst;
mod choose;
mod close;
mod congestion;
mod cookies;
mod delivery;
mod demux;
mod departed;
mod ecn;
mod export;
mod frozen;
mod handover;
mod handshake;
mod held;
mod holding;
mod hops;
mod import;
mod info;
mod listen;
mod note;
mod pacing;
mod predicted;
mod rate;
mod receive;
mod recovery;
mod reset;
mod retransmit_queue;
mod rtt;
mod scoreboard;
mod segment;
mod send;
mod snapshot;
mod syn;
mod tcb;
mod time_wait;
mod timers;
mod transmit;

pub(crate) use autocork::Autocork;
pub use backlog::ListenTotals;
pub(crate) use backlog::Ready;
pub use congestion::Algorithm;
pub(crate) use departed::Departed;
pub(crate) use frozen::Frozen;
pub use frozen::FrozenQueue;
pub use handover::PastConnection;
pub(crate) use held::Held;
pub use info::{ConnectionEntry, State, TcpInfo};
pub(crate) use listen::Listener;
pub use listen::SynCookies;
pub use snapshot::{ClockSnapshot, ReceiveSnapshot, SendSnapshot, TcpSnapshot};
pub(crate) use tcb::Tcb;
pub(crate) use time_wait::TimeWait;
pub use time_wait::{Reuse, TimeWaitRules};
