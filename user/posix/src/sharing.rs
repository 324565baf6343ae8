//! Whether this program's queue gets new peers, when its link has others.
//!
//! A listener that a child has, too, stays open in the parent, but the parent may never look at it again, as nginx'
//! master. Peers whose connections lie in its backlog would wait for ever. So from the fork on the parent's queue takes
//! no new flows, until the parent itself watches or accepts from such a socket, unless it has accepted since the last
//! fork, as one that forks for each connection; and no queue does whose
//! program has closed the last of them. A child takes none either before it looks for them: it may be nginx' new master, which
//! asks for names only. A program that never forked tells nothing.
//!
//! Who lies in such a backlog already is for the child that is the first to look (`checkpoint`, `backlog`). The parent's listener
//! is kept for that as long as a child may ask, whatever the parent closes, but not if the parent takes new peers again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::host::{Host, Link};
use crate::open::Open;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Sharing {
    /// Nobody else has a queue, so far as we know.
    #[default]
    Alone,
    /// New flows come here, too.
    Taking,
    /// They do not.
    Withdrawn,
}

impl<L: Link> Host<L> {
    /// A child has got our sockets. Who waits for them by an epoll set will look at them; so will who has accepted since
    /// the last child, and forks for each connection.
    pub fn share_with_child(&mut self) {
        let has_accepted = core::mem::take(&mut self.has_accepted);
        let serving = || self.opens().filter(|open| open.serves.load(Relaxed));
        if serving().count() == 0 {
            return;
        }
        let is_watched = has_accepted || serving().any(|open| open.is_watched());
        match is_watched {
            true => self.sharing = Sharing::Taking,
            false => self.withdraw(),
        }
    }

    /// This is a child, on a queue of its own that gets no new flows, and its listeners are there.
    pub fn share_as_child(&mut self) {
        if self.sharing == Sharing::Alone {
            self.sharing = Sharing::Withdrawn;
        }
    }

    /// Whether new flows go to others only.
    pub fn is_withdrawn(&self) -> bool {
        self.sharing == Sharing::Withdrawn
    }

    /// Another queue of the program's own link is to get new flows for a while.
    pub fn take_no_new_flows(&mut self) {
        self.link.take_new_flows(false);
    }

    /// That is over.
    pub fn take_new_flows_again(&mut self) {
        self.link.take_new_flows(self.sharing != Sharing::Withdrawn);
    }

    fn withdraw(&mut self) {
        self.sharing = Sharing::Withdrawn;
        self.link.take_new_flows(false);
    }

    /// The program looks whether peers have come to this socket.
    #[inline]
    pub fn note_watched(&mut self, open: &Open) {
        if self.sharing == Sharing::Withdrawn && open.serves.load(Relaxed) {
            self.begin_to_take();
        }
    }

    #[cold]
    fn begin_to_take(&mut self) {
        self.sharing = Sharing::Taking;
        let kept = |open: &&Arc<Open>| self.may_be_ended(open);
        let kept: Vec<_> = self.opens().filter(kept).cloned().collect();
        kept.iter().for_each(|listener| self.end(listener));
        self.link.take_new_flows(true);
    }

    /// Whether a socket that no number names is nobody else's: no process may claim it, or it would get new peers for nobody.
    pub(crate) fn may_be_ended(&self, open: &Open) -> bool {
        let is_held = open.holds.load(Relaxed) != 0;
        let would_take = open.serves.load(Relaxed) && !self.is_withdrawn();
        open.numbers.load(Relaxed) == 0 && (!is_held || would_take)
    }

    /// This socket is no more.
    pub(crate) fn note_end(&mut self, ended: &Open) {
        let is_last = ended.serves.load(Relaxed)
            && !self
                .opens()
                .any(|open| open.id() != ended.id() && open.serves.load(Relaxed));
        if self.sharing == Sharing::Taking && is_last {
            self.withdraw();
        }
    }
}
