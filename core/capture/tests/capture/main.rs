//! Rings and files of packets.

mod geometry;
mod linux;
mod pcapng;
mod random_ring;
mod ring;
mod slots;
mod world;
