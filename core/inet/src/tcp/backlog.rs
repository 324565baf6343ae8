//! What waits at a listener, which its backlog bounds.
//!
//! Where several stacks serve a host, a program's listener has one in each, and a connection waits
//! in that of its stack. All of them count together, so listen(2)'s number means the same however
//! many stacks there are. Two stacks may count at once and both find the last place free: then there is
//! one too many for each further stack.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::AtomicUsize;

use super::listen::Listener;
use crate::addr::SocketId;
use crate::error::Error;
use crate::stack::Stack;
use crate::table::Socket;
use crate::totals::Tally;

/// How much waits at the listeners that a program sees as one.
#[derive(Clone, Debug)]
pub struct ListenTotals {
    ready: Arc<AtomicUsize>,
    half_open: Arc<AtomicUsize>,
    held: Arc<AtomicUsize>,
}

/// Connections that wait to be accepted.
#[derive(Default)]
pub(crate) struct Ready {
    sockets: VecDeque<SocketId>,
    count: Tally,
}

impl Ready {
    /// Those of all stacks.
    pub fn all(&self) -> usize {
        self.count.all()
    }

    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// In the order in which they are taken.
    pub fn iter(&self) -> impl Iterator<Item = &SocketId> {
        self.sockets.iter()
    }

    pub fn contains(&self, id: SocketId) -> bool {
        self.sockets.contains(&id)
    }

    /// Makes room for `more`; whether there is memory for that.
    pub fn reserve(&mut self, more: usize) -> bool {
        self.sockets.try_reserve(more).is_ok()
    }

    /// Adds one for which there is room.
    pub fn push(&mut self, id: SocketId) {
        self.sockets.push_back(id);
        self.count.add(1);
    }

    /// Takes the one that has waited longest.
    pub fn pop(&mut self) -> Option<SocketId> {
        let next = self.sockets.pop_front()?;
        self.count.sub(1);
        Some(next)
    }
}

impl Listener {
    fn totals(&self) -> ListenTotals {
        ListenTotals {
            ready: self.ready.count.total(),
            half_open: self.half_open.total(),
            held: self.held.count.total(),
        }
    }

    fn join(&mut self, totals: &ListenTotals) {
        self.ready.count.join(&totals.ready);
        self.half_open.join(&totals.half_open);
        self.held.count.join(&totals.held);
    }
}

impl Stack {
    /// What a listener counts in.
    pub fn listen_totals(&self, id: SocketId) -> Result<ListenTotals, Error> {
        match self.sockets.get(id)? {
            Socket::Listener(listener) => Ok(listener.totals()),
            _ => Err(Error::InvalidState),
        }
    }

    /// From now on a listener counts in `totals`, as its like in other stacks do.
    pub fn share_backlog(&mut self, id: SocketId, totals: &ListenTotals) -> Result<(), Error> {
        match self.sockets.get_mut(id)? {
            Socket::Listener(listener) => {
                listener.join(totals);
                Ok(())
            }
            _ => Err(Error::InvalidState),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::{Endpoint, Transport};

    const BACKLOG: usize = 2;

    /// A stack, and a listener in it.
    fn listening() -> (Stack, SocketId) {
        let mut stack = Stack::new(Config::default(), [1, 2]).unwrap();
        let id = stack.open(Transport::Tcp).unwrap();
        let name = Endpoint::v4([127, 0, 0, 1].into(), 80);
        stack.bind(id, name).unwrap();
        stack.listen(id, BACKLOG).unwrap();
        (stack, id)
    }

    fn listener(stack: &mut Stack, id: SocketId) -> &mut Listener {
        stack.sockets.listener_at(id.index).unwrap()
    }

    #[test]
    fn listeners_of_two_stacks_are_full_together() {
        let [(mut left, one), (mut right, other)] = [listening(), listening()];
        let totals = left.listen_totals(one).unwrap();
        right.share_backlog(other, &totals).unwrap();
        for _ in 0..BACKLOG {
            listener(&mut left, one).ready.push(one);
        }
        assert!(!listener(&mut right, other).is_full());
        listener(&mut right, other).ready.push(other);
        assert!(listener(&mut left, one).is_full() && listener(&mut right, other).is_full());
        assert_eq!(left.accept_queue(one), Ok((BACKLOG + 1, BACKLOG)));
        for _ in 0..BACKLOG {
            listener(&mut left, one).ready.push(one);
        }
        assert!(listener(&mut right, other).is_overfull());
        assert_eq!(listener(&mut right, other).ready.pop(), Some(other));
        assert_eq!(listener(&mut right, other).ready.pop(), None);
        assert_eq!(left.accept_queue(one), Ok((2 * BACKLOG, BACKLOG)));
    }

    #[test]
    fn what_waited_at_a_listener_that_is_gone_leaves_its_room_to_others() {
        let [(mut left, one), (mut right, other)] = [listening(), listening()];
        right
            .share_backlog(other, &left.listen_totals(one).unwrap())
            .unwrap();
        listener(&mut right, other).ready.push(other);
        listener(&mut right, other).half_open.add(3);
        assert_eq!(listener(&mut left, one).half_open.all(), 3);
        drop(right);
        assert_eq!(left.accept_queue(one), Ok((0, BACKLOG)));
        assert_eq!(listener(&mut left, one).half_open.all(), 0);
    }

    #[test]
    fn who_accepts_hears_that_another_stack_holds_syns() {
        let [(left, one), (mut right, other)] = [listening(), listening()];
        right
            .share_backlog(other, &left.listen_totals(one).unwrap())
            .unwrap();
        assert!(!left.is_held_elsewhere(one));
        listener(&mut right, other).held.count.add(1);
        assert!(left.is_held_elsewhere(one));
        assert!(!right.is_held_elsewhere(other));
    }

    #[test]
    fn what_does_not_listen_has_no_backlog_to_share() {
        let (mut stack, one) = listening();
        let totals = stack.listen_totals(one).unwrap();
        let other = stack.open(Transport::Tcp).unwrap();
        let refused = stack.share_backlog(other, &totals);
        assert_eq!(refused, Err(Error::InvalidState));
        assert!(stack.listen_totals(other).is_err());
    }
}
