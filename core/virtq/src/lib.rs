//! Split virtqueues, safe against a hostile device.
#![no_std]
#![forbid(unsafe_code)]
