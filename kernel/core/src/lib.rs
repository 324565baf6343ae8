//! The kernel: tasks, memory objects, files, sockets.
#![no_std]
