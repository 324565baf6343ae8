//! Hosts in simulated time: a file for each concern, all in one program.
//!
//! The simulator is generic code that a program compiles for itself, so a program for each file
//! would compile it as often. The link layer has a program of its own, `link`.
#![forbid(unsafe_code)]

mod address;
mod buffers;
mod burst;
mod datagrams;
mod ecn;
mod egress;
mod exchange;
mod exhaustion;
mod floods;
mod flows;
mod followers;
mod given;
mod groups_v4;
mod hostile;
mod ipv6;
mod journal;
mod low_water;
mod middleboxes;
mod moves;
mod narrow;
mod predicted_segments;
mod predictions;
mod raw;
mod recovery;
mod segments;
mod settings;
mod sockets_v6;
mod time_wait;
mod transfers;
