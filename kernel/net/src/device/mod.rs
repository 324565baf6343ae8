//! The card: when it is asked and told, and whose frames are whose.
//!
//! There is one card in a machine, so what is here is of the machine and not of a stack: its pairs
//! of queues ([`ring`], [`pair`]), the hash that says which shard a frame belongs to ([`steer`]), frames on
//! their way to another CPU's shard ([`inbox`]), the memory of packets ([`memory`]), and the
//! rhythm of it all ([`poll`], with [`runners`] for which CPU has which shard, [`alarm`] for shards that nobody polls and [`batch_end`] for
//! those whose frames came with the card's). The card's own message
//! has [`attend`]. Boot attaches the card and gives it addresses ([`config`], [`config6`]).
//!
//! Not here: drivers, and links over the card (`datalink`).

pub(crate) mod alarm;
pub(crate) mod attend;
pub(crate) mod batch_end;
pub(crate) mod config;
pub(crate) mod config6;
pub(crate) mod inbox;
pub(crate) mod memory;
pub(crate) mod moderation;
pub(crate) mod pair;
pub(crate) mod poll;
pub(crate) mod pulls;
pub(crate) mod reception;
pub(crate) mod ring;
pub(crate) mod runners;
pub mod steer;
pub(crate) mod watchdog;
