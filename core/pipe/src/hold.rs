//! Bytes that splice is about to move, which nobody else takes meanwhile.
//!
//! Splice looks at bytes, gives them to their target, which may let it wait, and drops them
//! once they are there. Another reader must not take the same bytes in between: to it a held
//! pipe is empty, but has not ended, for what the target refuses stays.

use base::Memory;
use base::lock::{Family, Flag, Lock};

use crate::Pipe;
use crate::flow::News;

impl<F: Family, M: Memory> Pipe<F, M> {
    /// Makes the next bytes nobody else's until [`Pipe::release`]; also if none will come. Fails if
    /// another was faster: it holds the bytes, or has read them.
    pub fn hold(&self) -> bool {
        let contents = self.contents.lock();
        if self.held.get() || contents.len() == 0 && self.has_writers() {
            return false;
        }
        self.held.set(true);
        self.publish(&contents);
        true
    }

    /// Drops the next `count` bytes, which are held.
    pub fn skip(&self, count: usize) -> News {
        let mut contents = self.contents.lock();
        let room_before = self.room();
        contents.skip(count);
        self.publish(&contents);
        self.news_of_room(room_before)
    }

    /// The bytes that are left are anybody's again.
    pub fn release(&self) -> News {
        let contents = self.contents.lock();
        self.held.set(false);
        self.publish(&contents);
        match self.has_come(0) {
            true => News::FirstBytes,
            false => News::None,
        }
    }
}
