//! Sweeps: one after the other, all members of a group or all processes are sent a signal.
//!
//! POSIX has no process miss it that is forked meanwhile. But a sweep locks nothing between two
//! members. It may have gone past a child's place before the child is put there, and come to the
//! parent afterwards: then the parent hears of it, and the child never would.
//!
//! So who forks puts the child into the table first, and then waits until all sweeps are over that
//! had begun by then. Later ones find the child. What the parent was sent from the beginning of the
//! fork until now, the child is sent too.
//!
//! Nor may a child be sent what its parent had taken before the fork: a server that forks workers as
//! it is told to begin anew would see them told so, too. So sweeps pass over those whose fork began
//! after them ([`Sweep::reaches`]): all that these are to hear they have from their parents.
//!
//! Sweeps are of two generations. Those that begin are of the younger one; once the older one is
//! over, the younger becomes the older. So a wait is for two generations at most, however many
//! begin meanwhile.

use base::lock::{Count, Lock};

use crate::host::{CountOf, Host, LockOf};

/// How many sweeps of each generation are under way.
#[derive(Default)]
pub struct Generations {
    /// The number of the younger one.
    number: usize,
    older: usize,
    younger: usize,
}

impl Generations {
    /// No sweeps.
    pub const fn new() -> Self {
        Self {
            number: 0,
            older: 0,
            younger: 0,
        }
    }

    fn advance(&mut self) {
        self.older = core::mem::take(&mut self.younger);
        self.number += 1;
    }
}

/// The sweeps that are under way.
pub struct Sweeps<H: Host> {
    /// How many there are, for looks without the lock.
    running: CountOf<H>,
    /// How many have ever begun.
    begun: CountOf<H>,
    generations: LockOf<H, Generations>,
}

/// A sweep that is under way. It is over when this is dropped.
pub struct Sweep<'a, H: Host> {
    of: &'a Sweeps<H>,
    generation: usize,
    /// How many had begun before it.
    before: usize,
}

impl<H: Host> Sweep<'_, H> {
    /// Whether it is for a process that [`Sweeps::count`] was asked for after its fork began.
    #[inline]
    pub fn reaches(&self, count: usize) -> bool {
        count <= self.before
    }
}

/// All sweeps that had begun at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Begun(usize);

impl<H: Host> Sweeps<H> {
    /// From twice 0 and no sweeps.
    pub const fn new(
        running: CountOf<H>,
        begun: CountOf<H>,
        generations: LockOf<H, Generations>,
    ) -> Self {
        Self {
            running,
            begun,
            generations,
        }
    }

    /// How many have begun, ever.
    pub fn count(&self) -> usize {
        self.begun.get()
    }

    /// One begins.
    pub fn begin(&self) -> Sweep<'_, H> {
        self.running.add(1);
        let mut generations = self.generations.lock();
        generations.younger += 1;
        // With the lock held, so that who counts it in finds it under way.
        let before = self.begun.add(1);
        let generation = generations.number;
        Sweep {
            of: self,
            generation,
            before,
        }
    }

    /// Those that have begun, if any are under way.
    #[inline]
    pub fn begun(&self) -> Option<Begun> {
        match self.running.get() {
            0 => None,
            _ => self.begun_lately(),
        }
    }

    #[cold]
    fn begun_lately(&self) -> Option<Begun> {
        let mut generations = self.generations.lock();
        if generations.older > 0 {
            return Some(Begun(generations.number + 1));
        }
        generations.advance();
        (generations.older > 0).then_some(Begun(generations.number))
    }

    /// Whether all of them are over.
    pub fn are_over(&self, begun: Begun) -> bool {
        let generations = self.generations.lock();
        match generations.number.cmp(&begun.0) {
            core::cmp::Ordering::Less => false,
            core::cmp::Ordering::Equal => generations.older == 0,
            core::cmp::Ordering::Greater => true,
        }
    }
}

impl<H: Host> Drop for Sweep<'_, H> {
    fn drop(&mut self) {
        {
            let mut generations = self.of.generations.lock();
            if generations.number == self.generation {
                generations.younger -= 1;
            } else {
                generations.older -= 1;
                if generations.older == 0 {
                    generations.advance();
                }
            }
        }
        self.of.running.sub(1);
    }
}
