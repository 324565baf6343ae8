//! Whether this program's queue gets new peers, when its link has others.
//!
//! A listener that a child has, too, stays open in the parent, but the parent may never look at it again, as nginx'
//! master. Peers whose connections lie in its backlog would wait for ever. So from the fork on the parent's queue takes
//! no new flows, until the parent itself watches or accepts from such a socket, unless it has accepted since the last
//! fork, as one that forks for each connection; and no queue does whose
//! program has closed the last of them. A program that never forked tells nothing.

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

    /// This is a child, on a queue of its own.
    pub fn share_as_child(&mut self) {
        self.sharing = Sharing::Taking;
    }

    /// It serves peers that nobody knows, now that its listeners are there.
    pub fn begin_to_take(&mut self) {
        self.share_as_child();
        self.link.take_new_flows(true);
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
            self.sharing = Sharing::Taking;
            self.link.take_new_flows(true);
        }
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
