//! The shared memory, as far as the ring needs it.

/// Memory that a program has mapped. Offsets count from the ring's first byte; the
/// implementer has as many bytes as [`crate::Geometry::bytes`] says and may ignore what lies beyond.
pub trait RingMemory {
    /// Writes bytes that the program may read once their block is published.
    fn write(&mut self, at: usize, bytes: &[u8]);

    /// Reads a status word, before anything that is written afterwards (acquire).
    fn status(&self, at: usize) -> u32;

    /// Writes a status word, after all that was written before (release).
    fn publish(&mut self, at: usize, status: u32);
}
