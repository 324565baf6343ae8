//! All sockets of a program on its queue.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::Instant;
use inet::{SocketId, Stack, Transport};
use rt::FrameIo;
use sietch_io::{Address, Station, World};

use crate::errno::{Errno, Result};
use crate::events;
use crate::open::{Named, Open};
use crate::sending::{LOOK_NANOS, Sending};
use crate::sets::WatchSet;
use crate::sharing::Sharing;
use crate::table::Table;
use epoll::Events;

/// While so many frames wait for their link that memory or places are short, we look this often whether they
/// came back.
const PATIENCE_NANOS: u64 = 10_000_000;

/// What tells the kernel of frames.
pub trait Link {
    /// What moves the frames.
    type Io: FrameIo;

    /// Has the kernel send what was let go.
    ///
    /// Errors: the link is gone.
    fn kick(&mut self, io: &Self::Io) -> io::Result<()>;

    /// Whether the queue gets flows that no queue of the link has. If the link is gone that is
    /// found elsewhere.
    fn take_new_flows(&mut self, is_taker: bool);
}

/// See the crate.
pub struct Host<L: Link> {
    pub(crate) link: L,
    pub(crate) station: Station<L::Io>,
    pub(crate) table: Table,
    /// By their slots in the stack.
    pub(crate) opens: Vec<Option<Arc<Open>>>,
    /// Which of the program's hosts this is.
    pub(crate) place: u8,
    pub(crate) address: Address,
    pub(crate) sending: Sending,
    pub(crate) sharing: Sharing,
    /// The program has accepted a connection since it forked.
    pub(crate) has_accepted: bool,
    is_down: bool,
    /// Something has happened to sockets since somebody was told.
    pub(crate) has_news: bool,
    /// Turns so far.
    turns: u64,
    /// What the program sent so far, in calls.
    pub(crate) sends: u64,
}

impl<L: Link> Host<L> {
    /// Without sockets; the station has the address already, and rings of so many entries.
    pub fn new(link: L, station: Station<L::Io>, address: Address, ring_entries: u32) -> Self {
        Self {
            link,
            station,
            table: Table::default(),
            opens: Vec::new(),
            place: 0,
            address,
            sending: Sending::new(ring_entries),
            sharing: Sharing::default(),
            has_accepted: false,
            is_down: false,
            has_news: false,
            turns: 0,
            sends: 0,
        }
    }

    /// The same as one of several hosts of the program's (`shifting`).
    pub fn at_place(self, place: u8) -> Self {
        Self { place, ..self }
    }

    /// The link, and the station.
    pub fn into_parts(self) -> (L, Station<L::Io>) {
        (self.link, self.station)
    }

    /// The link.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// The queue's stack.
    pub fn station(&mut self) -> &mut Station<L::Io> {
        &mut self.station
    }

    /// What time it is until it is said again.
    #[inline]
    pub fn set_now(&mut self, now: Instant) {
        self.station.set_now(now);
    }

    /// How many turns there were.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// How much the program did: turns, and calls that sent.
    pub fn steps(&self) -> u64 {
        self.turns + self.sends
    }

    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Stack, &mut World<L::Io>) {
        self.station.parts()
    }

    /// Receives a batch of frames, and runs what is due. Returns how many frames came.
    pub fn look(&mut self, now: Instant) -> usize {
        if self.is_down {
            return 0;
        }
        self.turns += 1;
        let taken = self.station.turn(now);
        self.note_changes();
        taken
    }

    /// The same, after all that was staged is on its way.
    pub fn turn(&mut self, now: Instant) -> usize {
        self.flush();
        self.look(now)
    }

    /// Nothing is left to do until then, unless frames come.
    pub fn next_deadline(&mut self, now: Instant) -> Option<Instant> {
        let due = self.station.next_deadline();
        let is_waiting = self.is_crowded() || self.station.io().is_scarce();
        let patience = is_waiting.then(|| Instant::from_nanos(now.as_nanos() + PATIENCE_NANOS));
        due.into_iter().chain(patience).min()
    }

    /// The same for a program that waits: what falls due at a look from time to time is left to who looks, so that an
    /// alarm serves both.
    pub fn wait_deadline(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next_deadline(now)?;
        let is_at_look = due > now && due.as_nanos().is_multiple_of(LOOK_NANOS);
        (!is_at_look || !self.is_watched_at(due)).then_some(due)
    }

    /// Who waits for the link's descriptor hears of the next frame; true if frames are there already.
    pub fn arm(&mut self) -> bool {
        self.station.io().arm()
    }

    /// The link is gone: all sockets are told.
    pub fn lose_link(&mut self) {
        self.is_down = true;
        let opens: Vec<_> = self.opens.iter().flatten().cloned().collect();
        for open in opens {
            self.refresh(&open);
            open.tell();
        }
        self.has_news = true;
    }

    /// Whether the link is there.
    pub fn is_up(&self) -> bool {
        !self.is_down
    }

    /// Whether anything has happened to a socket since this was asked last: threads that wait must hear
    /// of it.
    #[inline]
    pub fn take_news(&mut self) -> bool {
        self.note_changes();
        core::mem::take(&mut self.has_news)
    }

    /// Brings what is known of sockets up to date to which something has happened, and tells their sets.
    #[inline]
    pub(crate) fn note_changes(&mut self) {
        if self.station.has_changed() {
            self.note_each_change();
        }
    }

    fn note_each_change(&mut self) {
        while let Some(id) = self.station.next_changed() {
            let known = self.opens.get(id.index()).and_then(Option::as_ref);
            if let Some(open) = known.filter(|open| open.id() == id).cloned() {
                self.refresh(&open);
                open.tell();
                self.has_news = true;
            }
        }
    }

    /// What is ready now.
    #[inline]
    pub(crate) fn refresh(&mut self, open: &Open) {
        let ready = match self.is_down {
            true => Events::READABLE | Events::WRITABLE | Events::ERR | Events::HUP,
            false => events::of(self.parts().0.poll(open.id())),
        };
        open.set_ready(ready);
    }

    /// The same after bytes were sent, all of them, which changes nothing but how much room is left.
    #[inline]
    pub(crate) fn refresh_after_send(&mut self, open: &Open) {
        let mut ready = open.ready();
        ready.set(Events::WRITABLE, self.parts().0.is_writable(open.id()));
        open.set_ready(ready);
    }

    /// The same after bytes were taken, which makes no room to send and takes none.
    #[inline]
    pub(crate) fn refresh_after_read(&mut self, open: &Open) {
        let ready = events::of(self.parts().0.poll_but_writable(open.id()));
        open.set_ready(ready | open.ready() & Events::WRITABLE);
    }

    /// Errors: `NETWORK_DOWN` without the link.
    #[inline]
    pub(crate) fn check_link(&self) -> Result<()> {
        match self.is_down {
            true => Err(Errno::NETWORK_DOWN),
            false => Ok(()),
        }
    }

    /// What a number names.
    #[inline]
    pub fn named(&self, number: u32) -> Option<&Named> {
        self.table.get(number)
    }

    /// The socket of a number.
    #[inline]
    pub fn socket(&self, number: u32) -> Result<Arc<Open>> {
        self.table.socket(number)
    }

    /// The set of a number.
    pub fn set(&self, number: u32) -> Option<Arc<WatchSet>> {
        self.table.set(number)
    }

    /// The number names a set from now on.
    pub fn add_set(&mut self, number: u32) -> Result<()> {
        self.give(number, Named::Set(WatchSet::new()))
    }

    /// The number names a new socket from now on.
    ///
    /// Errors: `NO_BUFFERS`, `TOO_MANY`.
    pub fn add_socket(&mut self, number: u32, kind: Transport, is_nonblocking: bool) -> Result<()> {
        self.check_link()?;
        let id = self.parts().0.open(kind)?;
        self.adopt(number, id, kind, is_nonblocking).map(drop)
    }

    /// The number names a socket that the stack has. On an error the socket is closed.
    pub(crate) fn adopt(
        &mut self,
        number: u32,
        id: SocketId,
        transport: Transport,
        is_nonblocking: bool,
    ) -> Result<Arc<Open>> {
        let open = Open::new((id, self.place), transport, is_nonblocking);
        self.keep(&open);
        if let Err(error) = self.give(number, Named::Socket(open.clone())) {
            self.end(&open);
            return Err(error);
        }
        Ok(open)
    }

    /// The socket is one of this host's from now on.
    pub(crate) fn keep(&mut self, open: &Arc<Open>) {
        let id = open.id();
        if self.opens.len() <= id.index() {
            self.opens.resize(id.index() + 1, None);
        }
        self.opens[id.index()] = Some(open.clone());
        self.station.watch(id);
        self.refresh(open);
    }

    /// Another number for the same.
    pub fn duplicate(&mut self, old: u32, new: u32) -> Result<()> {
        let named = self.table.get(old).cloned().ok_or(Errno::BAD_NUMBER)?;
        self.give(new, named)
    }

    fn give(&mut self, number: u32, named: Named) -> Result<()> {
        let socket = match &named {
            Named::Socket(open) => Some(open.clone()),
            Named::Set(_) => None,
        };
        let before = self.table.insert(number, named)?;
        if let Some(open) = socket {
            open.numbers.fetch_add(1, Relaxed);
        }
        self.let_go(before);
        Ok(())
    }

    /// The number names nothing of ours any more; a socket without any number is closed: what was sent still
    /// reaches the peer.
    pub fn close(&mut self, number: u32) {
        let named = self.table.remove(number);
        self.let_go(named);
    }

    pub(crate) fn let_go(&mut self, named: Option<Named>) {
        if let Some(Named::Socket(open)) = named
            && open.numbers.fetch_sub(1, Relaxed) == 1
        {
            open.leave_sets();
            self.end_unless_held(&open);
        }
    }

    /// Closes a socket that has no number, once no other process may claim it.
    pub(crate) fn end_unless_held(&mut self, open: &Open) {
        if self.may_be_ended(open) {
            self.end(open);
            self.after_sending();
        }
    }

    /// All sockets.
    pub(crate) fn opens(&self) -> impl Iterator<Item = &Arc<Open>> {
        self.opens.iter().flatten()
    }

    pub(crate) fn end(&mut self, open: &Open) {
        self.note_end(open);
        if let Some(slot) = self.opens.get_mut(open.id().index()) {
            *slot = None;
        }
        self.station.forget_plain(open.id());
        let (stack, world) = self.parts();
        // It is a socket of the stack until here.
        stack.close(world, open.id()).ok();
    }

    /// Closes all sockets, as the end of the program does.
    pub fn close_all(&mut self) {
        let opens: Vec<_> = self.opens.iter().flatten().cloned().collect();
        for open in opens {
            self.end(&open);
        }
        self.flush();
    }

    /// Bytes, and ends of streams, that peers of closed connections have not acknowledged.
    pub fn orphaned(&mut self) -> usize {
        self.parts().0.orphaned()
    }
}
