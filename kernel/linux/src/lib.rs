//! The Linux system-call ABI: decode, call the kernel, encode.
#![no_std]
