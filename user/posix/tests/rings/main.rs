//! Rings of io_uring whose sockets are ours: chains, drains, timeouts, cancellations, lent buffers, what the kernel has, and
//! completions without room, with a world that does what a test says.

mod kernels;
mod own;
mod world;
