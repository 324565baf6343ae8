//! The retransmission queue (RFC 9293 3.4), which costs nothing while it is short.
//!
//! A request or an answer is one stretch, so the first lives inside the list and only those
//! behind it need memory, which goes back when the list is empty: an idle connection has
//! none.
//!
//! Invariant: there is a `first` if there are others.

use alloc::collections::VecDeque;

use super::scoreboard::Sent;

/// What was sent and is not acknowledged, in the order of the stream.
#[derive(Default)]
pub(super) struct RetransmitQueue {
    first: Option<Sent>,
    others: VecDeque<Sent>,
}

impl RetransmitQueue {
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub fn first(&self) -> Option<&Sent> {
        self.first.as_ref()
    }

    #[inline]
    pub fn first_mut(&mut self) -> Option<&mut Sent> {
        self.first.as_mut()
    }

    pub fn last(&self) -> Option<&Sent> {
        self.others.back().or(self.first.as_ref())
    }

    pub fn get(&self, index: usize) -> Option<&Sent> {
        match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(behind) => self.others.get(behind),
        }
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut Sent> {
        match index.checked_sub(1) {
            None => self.first.as_mut(),
            Some(behind) => self.others.get_mut(behind),
        }
    }

    /// The only one there is.
    #[inline]
    pub fn only(&self) -> Option<&Sent> {
        self.first.as_ref().filter(|_| self.others.is_empty())
    }

    #[inline]
    pub fn push(&mut self, sent: Sent) {
        match self.first {
            None => self.first = Some(sent),
            Some(_) => self.others.push_back(sent),
        }
    }

    /// Drops the first.
    #[inline]
    pub fn pop_first(&mut self) {
        self.first = self.others.pop_front();
        if self.first.is_none() && self.others.capacity() > 0 {
            self.others = VecDeque::new();
        }
    }

    /// Puts one behind that at `index`, which exists.
    pub fn insert_behind(&mut self, index: usize, sent: Sent) {
        self.others.insert(index, sent);
    }

    /// Takes the one behind that at `index` out.
    pub fn remove_behind(&mut self, index: usize) {
        self.others.remove(index);
    }

    /// The index of the first for which `is_before` does not hold, if it holds for all in
    /// front of that one.
    pub fn partition_point(&self, mut is_before: impl FnMut(&Sent) -> bool) -> usize {
        match &self.first {
            Some(first) if is_before(first) => 1 + self.others.partition_point(is_before),
            _ => 0,
        }
    }

    /// Those from `index` on.
    pub fn from(&self, index: usize) -> impl Iterator<Item = &Sent> {
        let first = self.first.iter().filter(move |_| index == 0);
        let behind = index.saturating_sub(1).min(self.others.len());
        first.chain(self.others.range(behind..))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        self.first.iter_mut().chain(&mut self.others)
    }
}

#[cfg(test)]
mod tests {
    use base::Instant;
    use wire::Seq;

    use super::*;

    #[test]
    fn an_empty_list_has_given_its_memory_back() {
        let mut list = RetransmitQueue::default();
        for index in 0..100 {
            let (start, end) = (Seq(index), Seq(index + 1));
            list.push(Sent::new(start, end, Instant::START, Default::default()));
        }
        assert!(list.others.capacity() >= 99);
        for _ in 0..100 {
            list.pop_first();
        }
        assert_eq!((list.len(), list.others.capacity()), (0, 0));
    }
}
