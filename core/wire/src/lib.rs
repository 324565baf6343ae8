//! Packet views and their legal representations.
#![no_std]
#![forbid(unsafe_code)]
