//! Streams of bytes between the machine and its host.

use core::fmt;

/// Names a stream of one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortNumber(pub usize);

/// What the host does with its end of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostEnd {
    /// It has not come yet.
    #[default]
    Awaited,
    /// It sends and receives.
    Held,
    /// It was there, and is gone.
    LetGo,
}

/// The device has no memory for a stream's buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoBuffers;

impl fmt::Display for NoBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for the buffers of a stream")
    }
}

/// A device with several streams, each in both directions, in order and without loss.
///
/// What has no room waits: bytes that nobody receives stay with the sender on either side.
/// Whoever looks and finds nothing (or no room) is told by the device's interrupt when to
/// look again.
pub trait BytePorts {
    /// Takes what the device has said about its streams since the last call.
    fn service(&mut self);

    /// The stream that the host calls `name`; `None` until it has said so.
    fn find(&self, name: &[u8]) -> Option<PortNumber>;

    /// Opens a stream with so many buffers for what comes and for what goes; once.
    fn open(&mut self, port: PortNumber, incoming: usize, outgoing: usize)
    -> Result<(), NoBuffers>;

    /// What the host does with its end. Bytes that it sent before it let go can still be
    /// received afterwards.
    fn host_end(&self, port: PortNumber) -> HostEnd;

    /// Bytes that have come and were not received yet.
    fn readable(&mut self, port: PortNumber) -> usize;

    /// Shows bytes that have come, from the first, to `take`, which says how many it has
    /// taken; returns that number. `take` is not called if there are none.
    fn receive(&mut self, port: PortNumber, take: &mut dyn FnMut(&[u8]) -> usize) -> usize;

    /// Whether something can be sent at once.
    fn has_room(&mut self, port: PortNumber) -> bool;

    /// Lets `fill` write what is to be sent into room for it and say how much that is;
    /// returns that number. `fill` is not called if there is no room.
    fn send(&mut self, port: PortNumber, fill: &mut dyn FnMut(&mut [u8]) -> usize) -> usize;

    /// Whether the host has everything that was sent.
    fn is_flushed(&mut self, port: PortNumber) -> bool;
}
