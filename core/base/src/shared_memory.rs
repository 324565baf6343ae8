//! Memory of a ring that a program has mapped.

/// Memory that the program can write to at any time: nothing that is read from it is trusted.
///
/// Words are aligned, and no entry lies across two pages.
pub trait SharedMemory {
    /// The word at `at`, read at once and before all that is read later.
    fn load(&self, at: usize) -> u32;
    /// Writes the word at `at` at once and after all that was written before.
    fn store(&self, at: usize, value: u32);
    /// Copies from `at` into all of `to`.
    fn read(&self, at: usize, to: &mut [u8]);
    /// Copies all of `from` to `at`.
    fn write(&self, at: usize, from: &[u8]);
}

impl<M: SharedMemory + ?Sized> SharedMemory for &M {
    fn load(&self, at: usize) -> u32 {
        (**self).load(at)
    }

    fn store(&self, at: usize, value: u32) {
        (**self).store(at, value);
    }

    fn read(&self, at: usize, to: &mut [u8]) {
        (**self).read(at, to);
    }

    fn write(&self, at: usize, from: &[u8]) {
        (**self).write(at, from);
    }
}
