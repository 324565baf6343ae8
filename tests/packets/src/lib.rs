//! Scripts that say which packets a stack must send, and when.
//!
//! A script is a conversation between the stack under test and a peer that the script
//! plays, in the notation of tcpdump, on a simulated clock. It names the paragraphs that
//! it tests in its head. `tests/packets/scripts` has them; `docs/testing.md` tells the
//! language.
//!
//! ```text
//!           listen
//! +0        < S 0:0(0) win 1000 <mss 1460>       the peer sends
//! +0        > S. 0:0(0) ack 1                    the stack must answer, at once
//! +0.1      < . 1:1(0) ack 1 win 1000
//!           accept
//!           write 10
//! +0        > P. 1:11(10) ack 1
//! +1        > P. 1:11(10) ack 1                  again, after a second without an answer
//! ```
//!
//! Whatever the stack sends must be expected by the script, with its payload, checksums
//! and acknowledgement; so a script also says what must *not* be sent.
//!
//! - `notation` reads packets, `script` lines; `frame` makes frames of what the peer
//!   sends, and reads those of the stack; `play` runs a script.
//!
//! Sequence numbers are relative to the first of each side; the peer's lie close before the
//! point where they wrap around. Streams carry a pattern, so that each byte's
//! place is checked. ARP is answered behind the script's back.
//!
//! Not here: several connections at once, and other links than a perfect one (`sim`).

#![forbid(unsafe_code)]

mod frame;
mod notation;
mod play;
mod script;

pub use play::run;
pub use script::Script;

/// Byte `at` of both streams.
fn pattern(at: u32) -> u8 {
    (at % 251) as u8
}
