//! Rings and files of packets.

mod geometry;
mod linux;
mod pcapng;
#[path = "../../../virtq/tests/virtq/random.rs"]
mod random;
mod random_ring;
mod ring;
mod slots;
mod world;
