//! Who has a pipe open.

use base::Memory;
use base::lock::{Count, Family, Lock};

use crate::{ATOMIC_BYTES, Pipe};

/// What an open file of a pipe may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Take bytes out.
    pub reads: bool,
    /// Put bytes in.
    pub writes: bool,
}

impl Access {
    /// To read.
    pub const READ: Self = Self {
        reads: true,
        writes: false,
    };
    /// To write.
    pub const WRITE: Self = Self {
        reads: false,
        writes: true,
    };
    /// To do both.
    pub const BOTH: Self = Self {
        reads: true,
        writes: true,
    };

    /// Whether it may do all that `other` may.
    pub fn contains(self, other: Self) -> bool {
        (self.reads || !other.reads) && (self.writes || !other.writes)
    }
}

/// Those who read, or those who write.
pub(crate) struct Side<F: Family> {
    open: F::Count,
    /// How often it was opened, ever.
    opens: F::Count,
}

impl<F: Family> Default for Side<F> {
    fn default() -> Self {
        Self {
            open: F::Count::default(),
            opens: F::Count::default(),
        }
    }
}

impl<F: Family> Side<F> {
    pub(crate) fn is_open(&self) -> bool {
        self.open.get() != 0
    }

    fn enter(&self) {
        self.open.add(1);
        self.opens.add(1);
    }
}

/// What an open file remembers of the pipe as it was when it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenedAt {
    /// How often it had been opened to be written: a reader sees a hang-up only after one more.
    writer_opens: usize,
}

/// What poll(2) sees at an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sight {
    /// There are bytes.
    pub is_readable: bool,
    /// An atomic write fits.
    pub is_writable: bool,
    /// All writers have gone, after there was one.
    pub is_hung_up: bool,
    /// Nobody reads what is written.
    pub is_broken: bool,
}

impl<F: Family, M: Memory> Pipe<F, M> {
    /// Whether somebody reads.
    pub fn has_readers(&self) -> bool {
        self.readers.is_open()
    }

    /// Whether somebody writes.
    pub fn has_writers(&self) -> bool {
        self.writers.is_open()
    }

    /// How often it was opened to be read.
    pub fn reader_opens(&self) -> usize {
        self.readers.opens.get()
    }

    /// How often it was opened to be written.
    pub fn writer_opens(&self) -> usize {
        self.writers.opens.get()
    }

    /// Opens it.
    pub fn enter(&self, access: Access) -> OpenedAt {
        let before = self.writer_opens();
        let had_writers = self.has_writers();
        if access.reads {
            self.readers.enter();
        }
        if access.writes {
            self.writers.enter();
        }
        // One may have come between the two looks: then the difference wraps, and is one.
        OpenedAt {
            writer_opens: before.wrapping_sub(usize::from(had_writers)),
        }
    }

    /// Closes it; bytes that nobody can read any more are dropped. Everybody is to be told.
    pub fn leave(&self, access: Access) {
        if access.reads {
            self.readers.open.sub(1);
        }
        if access.writes {
            self.writers.open.sub(1);
        }
        if !self.has_readers() && !self.has_writers() {
            let mut contents = self.contents.lock();
            contents.clear();
            self.publish(&contents);
        }
    }

    /// What poll(2) sees.
    pub fn look(&self, access: Access, opened: &OpenedAt) -> Sight {
        let mut sight = Sight::default();
        if access.reads {
            sight.is_readable = !self.is_empty();
            let is_new = self.writer_opens() != opened.writer_opens;
            sight.is_hung_up = is_new && !self.has_writers();
        }
        if access.writes {
            sight.is_writable = self.room() >= ATOMIC_BYTES;
            sight.is_broken = !self.has_readers();
        }
        sight
    }
}
