//! The link layer in the kernel: VNICs, VLANs, etherstubs, flows and what links may claim.
//!
//! # Problem
//! `core/link` looks at each frame: whose it is, what its sender may claim, whose limit it
//! is under. Most machines have one card with one stack and nothing to look for; they
//! shall not pay for it.
//!
//! # Idea
//! An *active bypass*: nothing of the link layer lies in a frame's way until something is
//! configured. A shard holds its card as a `Box<dyn FramePort>`. As soon as the card's table
//! is not plain (`link::Table::is_plain`), the box is taken out and a *detour* ([`lane_port`])
//! is put in its place, which has the card behind a lane ([`lanes`]); when the table is plain
//! again, the card goes back. So the plain path has no branch more, and costs what it always did.
//!
//! ```text
//! plain:       shard ─▶ card
//! configured:  shard ─▶ detour ─┐
//!              station ─────────┼─▶ lane ─▶ card
//!              station ─────────┘     └──▶ inboxes of the others
//! ```
//!
//! A card with several pairs of queues has a detour and a lane for each.
//!
//! A VNIC or a VLAN is a [`station`]: an interface with a stack of its own, whose port sends
//! by the lane and receives from an inbox. Two stations of one machine therefore meet on
//! the link, by ARP and the lane, not over loopback.
//!
//! All changes come by /dev/linkctl ([`device`]), one after another; [`change`] brings lanes and
//! stations in step with the links after each.
//!
//! # When it runs
//! The card's shard polls the detour as it would the card. Stations run from one timer, due
//! at once when a frame came into an inbox, else when a stack, a limit or a lease says
//! ([`wake`]).
//!
//! # Bounds
//! 16 stations; 1024 frames in an inbox, more are dropped and counted; what waits to be sent
//! is bounded by the lane.
//!
//! # Lock order
//! The lock of changes (sleeping); a shard or a station, never two; a ring; a lane; the
//! links, an inbox, the list of ports, the alarm.
//!
//! # Not here
//! What lanes do (`core/link`), the messages (`core/linkctl`), the tools (`user/admin`).

mod change;
mod control;
mod device;
mod inbox;
mod lane_port;
mod lanes;
mod shell;
mod station;
mod wake;
mod wire;

pub use change::restore;
pub use device::register;
pub(super) use station::{dropped as dropped_in, with as with_station};
