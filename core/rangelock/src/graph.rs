//! Who waits for whom.

use alloc::vec::Vec;

/// Edges from owners that wait to owners in their way; an owner may wait several times.
#[derive(Debug)]
pub struct WaitGraph<O> {
    edges: Vec<(O, O)>,
}

impl<O> Default for WaitGraph<O> {
    fn default() -> Self {
        Self { edges: Vec::new() }
    }
}

impl<O: Copy + PartialEq> WaitGraph<O> {
    /// Without edges.
    pub const fn new() -> Self {
        Self { edges: Vec::new() }
    }

    /// Whether `waiter` would wait for itself, over others, if it waited for `holder`.
    pub fn would_deadlock(&self, waiter: O, holder: O) -> bool {
        let mut reached = alloc::vec![holder];
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            if at == waiter {
                return true;
            }
            for (_, to) in self.edges.iter().filter(|(from, _)| *from == at) {
                if !reached.contains(to) {
                    reached.push(*to);
                }
            }
            next += 1;
        }
        false
    }

    /// `waiter` waits for `holder` from now on.
    pub fn add(&mut self, waiter: O, holder: O) {
        self.edges.push((waiter, holder));
    }

    /// It no longer does.
    pub fn remove(&mut self, waiter: O, holder: O) {
        if let Some(at) = self.edges.iter().position(|edge| *edge == (waiter, holder)) {
            self.edges.swap_remove(at);
        }
    }
}
