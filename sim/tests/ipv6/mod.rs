//! IPv6 between two hosts, and what a router and a liar on the link can do to one.

mod addresses;
mod discovery;
mod groups;
mod messages;
mod place;
mod shards;
mod transport;
