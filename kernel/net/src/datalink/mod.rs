//! The link layer in the kernel: VNICs, VLANs, etherstubs, flows and what links may claim.
//!
//! # Problem
//! `core/link` looks at each frame: whose it is, what its sender may claim, whose limit it
//! is under. Most machines have one card with one stack and nothing to look for; they
//! shall not pay for it.
//!
//! # Idea
//! Nothing of the link layer lies in a frame's way until something is configured. As soon as the
//! card's table is not plain (`link::Table::is_plain`), a lane ([`port_lane`]) is put beside each of
//! the card's pairs of queues ([`crate::device::pair`]), and frames for and of others than the card's
//! stack take it; when the table is plain again, the lanes are taken away.
//!
//! ```text
//! plain:       shard ─▶ card
//! configured:  shard ─▶ card ◀─▶ lane ◀─ NICs
//!                                  └──▶ their inboxes
//! ```
//!
//! A VNIC or a VLAN has a [`nic`]: an interface of one network stack, the first unless it is moved
//! (`ip link set dev vnic0 netns ...`), with a shard there whose port sends by the lane and
//! receives from an inbox. Two NICs of one machine therefore meet on the link, by ARP and the
//! lane, not over loopback. A program may take a NIC's frames in its stack's place ([`owner`]), or
//! several, by a queue each ([`queues`]), or one a part of them by a filter ([`filters`]).
//!
//! All changes come by /dev/linkctl ([`device`]), one after another; [`change`] brings lanes and
//! NICs in step with the links after each.
//!
//! # When it runs
//! The card's shard polls the card, and the same CPU then runs the shards of those NICs for which
//! there were frames. A lane that waits for a limit or for room, and leases, have a
//! timer ([`wake`]).
//!
//! # Bounds
//! As many NICs as a stack may have shards, a link more is refused; 1024 frames in an inbox, more
//! are dropped and counted; what waits to be sent is bounded by the lane.
//!
//! # Lock order
//! The lock of changes (sleeping); where a NIC is; the shard of a NIC; the card's shard, where there is
//! one, or a ring, and with it the lane beside; the links, an inbox, the list of ports, who waits, the
//! alarm.
//!
//! # Not here
//! What lanes do (`core/link`), the messages (`core/linkctl`), the tools (`user/admin`).

mod addresses;
mod change;
mod control;
mod device;
mod filters;
mod inbox;
mod lanes;
mod nic;
mod nic_port;
mod onlooker;
mod owner;
mod port_lane;
mod queues;
mod shell;
mod wake;
mod wire;

pub use change::{move_interface, own, remove_vnic, restore};
pub use device::register;
pub use filters::{Attachment, Filter, Outgoing};
pub use owner::{Doorbell, FrameOwner, OwnedLink, Ownership, has_queue};
pub use queues::Redirected;
