//! Names of AF_XDP's sockets.

use bitflags::bitflags;

/// Which link a socket takes: `struct sockaddr_xdp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpAddress {
    /// How.
    pub flags: BindFlags,
    /// The interface's number.
    pub interface: u32,
    /// Which of its queues.
    pub queue: u32,
}

bitflags! {
    /// How a link is taken; the bits are Linux's own (XDP_*).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct BindFlags: u16 {
        /// The UMEM of another socket is used.
        const SHARED_UMEM = 0x1;
        /// Frames are copied.
        const COPY = 0x2;
        /// Frames are not copied.
        const ZEROCOPY = 0x4;
        /// Rings say when the program is to call.
        const USE_NEED_WAKEUP = 0x8;
        /// A frame may lie in several chunks.
        const USE_SG = 0x10;
    }
}
