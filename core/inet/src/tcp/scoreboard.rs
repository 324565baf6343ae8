//! What is in flight, stretch by stretch: when each left, how often, and what is known of it.
//!
//! The stretches cover `[una, nxt)` without gaps, in the order of the stream. What left
//! in one go (up to 64 KiB, when a device cuts segments) is one stretch until a SACK block or a
//! retransmission cuts it. Neighbours that the peer holds are joined, so that the list is
//! as long as what is under way is torn.
//!
//! Invariant: `held` and `lost` are the bytes of the stretches with that fate.
//! A peer's blocks cut at most [`STRETCHES_MAX`] stretches; retransmissions cut no finer
//! than segments. Not here: who is lost (`recovery`).

use base::Instant;
use wire::{SackBlock, Seq};

use super::delivery::Delivery;
use super::rate::Stamp;
use super::retransmit_queue::RetransmitQueue;

/// Blocks of the peer cut no further when there are so many stretches.
const STRETCHES_MAX: usize = 8192;

/// What is known of a stretch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Nothing: it is probably under way.
    InFlight,
    /// The peer has reported it (SACK), but not acknowledged it.
    Held,
    /// Taken for lost, and not sent again yet.
    Lost,
}

/// A stretch of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub start: Seq,
    pub end: Seq,
    /// When it left last.
    pub at: Instant,
    /// What had been delivered then.
    pub stamp: Stamp,
    /// How often it was sent again.
    pub times: u8,
    pub fate: Fate,
}

impl Sent {
    /// A stretch that leaves for the first time.
    pub fn new(start: Seq, end: Seq, at: Instant, stamp: Stamp) -> Self {
        Self {
            start,
            end,
            at,
            stamp,
            times: 0,
            fate: Fate::InFlight,
        }
    }

    pub fn len(&self) -> u32 {
        self.end.since(self.start)
    }

    /// RFC 8985 6.2 `RACK_sent_after`: whether it left behind `(at, end)`.
    pub fn is_after(&self, at: Instant, end: Seq) -> bool {
        self.at > at || self.at == at && self.end.after(end)
    }
}

/// All that is in flight.
#[derive(Default)]
pub(super) struct Scoreboard {
    sent: RetransmitQueue,
    held: u32,
    lost: u32,
}

impl Scoreboard {
    /// Whether nothing is known beyond the acknowledgement.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.held == 0 && self.lost == 0
    }

    /// Bytes that the peer holds.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Bytes that are to be sent again.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    pub fn get(&self, index: usize) -> Option<&Sent> {
        self.sent.get(index)
    }

    pub fn last(&self) -> Option<&Sent> {
        self.sent.last()
    }

    /// Notes what leaves behind all others.
    #[inline]
    pub fn push(&mut self, sent: Sent) {
        self.sent.push(sent);
    }

    /// Takes all that is in flight, if it left in one go, and once, and ends at `una`.
    #[inline]
    pub fn take_whole(&mut self, una: Seq) -> Option<Sent> {
        let whole = *self.sent.only()?;
        if whole.end != una || whole.times > 0 || !self.is_quiet() {
            return None;
        }
        self.sent.pop_first();
        Some(whole)
    }

    /// Everything before `una` has arrived.
    #[inline]
    pub fn acknowledge(&mut self, una: Seq, news: &mut Delivery) {
        while let Some(first) = self.sent.first_mut() {
            if !una.after(first.start) {
                return;
            }
            let mut arrived = *first;
            arrived.end = first.end.min(una);
            if una.before(first.end) {
                first.start = una;
            } else {
                self.sent.pop_first();
            }
            match arrived.fate {
                Fate::Held => self.held -= arrived.len(),
                Fate::Lost => self.lost -= arrived.len(),
                Fate::InFlight => {}
            }
            news.note_acknowledged(&arrived);
        }
    }

    /// The peer holds a block of what is in flight; returns whether that is new.
    pub fn hold(&mut self, block: SackBlock, news: &mut Delivery) -> bool {
        let before = self.held;
        let first = self.index_of(block.start);
        let Some(first) = self.cut_for_peer(first, block.start) else {
            return false;
        };
        let mut index = first;
        while let Some(sent) = self.sent.get(index)
            && sent.start.before(block.end)
        {
            if sent.end.after(block.end) && self.cut_for_peer(index, block.end).is_none() {
                break;
            }
            self.hold_at(index, news);
            index += 1;
        }
        self.join_held(first, index);
        self.held != before
    }

    fn hold_at(&mut self, index: usize, news: &mut Delivery) {
        let Some(sent) = self.sent.get_mut(index) else {
            return;
        };
        if sent.fate == Fate::Held {
            return;
        }
        news.note(sent);
        if sent.fate == Fate::Lost {
            self.lost -= sent.len();
        }
        self.held += sent.len();
        sent.fate = Fate::Held;
    }

    /// Joins held neighbours around `[first, end)`.
    fn join_held(&mut self, first: usize, end: usize) {
        let mut index = end.min(self.sent.len().saturating_sub(1));
        while index > first.saturating_sub(1) {
            let right = self.sent.get(index).copied();
            if let Some(right) = right.filter(|right| right.fate == Fate::Held)
                && let Some(left) = self.sent.get_mut(index - 1)
                && left.fate == Fate::Held
            {
                left.end = right.end;
                self.sent.remove_behind(index - 1);
            }
            index -= 1;
        }
    }

    /// The first stretch that ends behind `seq`.
    fn index_of(&self, seq: Seq) -> usize {
        self.sent.partition_point(|sent| !sent.end.after(seq))
    }

    /// Sees to it that a stretch begins at `seq`, which lies in the one at `index` or in front
    /// of it; returns its index. `None` if the peer has cut enough.
    fn cut_for_peer(&mut self, index: usize, seq: Seq) -> Option<usize> {
        let sent = self.sent.get(index)?;
        if !seq.after(sent.start) {
            return Some(index);
        }
        // The rest of what it holds needs no stretch of its own.
        if self.sent.len() >= STRETCHES_MAX && sent.fate != Fate::Held {
            return None;
        }
        self.cut(index, seq);
        Some(index + 1)
    }

    /// Cuts the stretch at `index` in two at `seq`, which lies within it.
    pub fn cut(&mut self, index: usize, seq: Seq) {
        let Some(front) = self.sent.get_mut(index) else {
            return;
        };
        if !seq.after(front.start) || !seq.before(front.end) {
            return;
        }
        let mut back = *front;
        front.end = seq;
        back.start = seq;
        self.sent.insert_behind(index, back);
    }

    /// Takes the stretch at `index` for lost; returns its bytes, none if it was not in flight.
    pub fn lose(&mut self, index: usize) -> u32 {
        let Some(sent) = self.sent.get_mut(index) else {
            return 0;
        };
        if sent.fate != Fate::InFlight {
            return 0;
        }
        sent.fate = Fate::Lost;
        self.lost += sent.len();
        sent.len()
    }

    /// The first lost stretch at or behind `from`.
    pub fn next_lost(&self, from: Seq) -> Option<usize> {
        let first = self.index_of(from);
        self.sent
            .from(first)
            .position(|sent| sent.fate == Fate::Lost)
            .map(|offset| first + offset)
    }

    /// The index of what is to leave again from `start` on, cut there.
    pub fn cut_from(&mut self, start: Seq) -> usize {
        let index = self.index_of(start);
        match self.sent.get(index) {
            Some(sent) if start.after(sent.start) => {
                self.cut(index, start);
                index + 1
            }
            _ => index,
        }
    }

    /// The stretch at `index` leaves again.
    pub fn resend(&mut self, index: usize, at: Instant, stamp: Stamp) {
        let Some(sent) = self.sent.get_mut(index) else {
            return;
        };
        if sent.fate == Fate::Lost {
            self.lost -= sent.len();
        }
        sent.fate = Fate::InFlight;
        sent.times = sent.times.saturating_add(1);
        (sent.at, sent.stamp) = (at, stamp);
    }

    /// Nothing was lost after all.
    pub fn find_lost(&mut self) {
        for sent in self.sent.iter_mut() {
            if sent.fate == Fate::Lost {
                sent.fate = Fate::InFlight;
            }
        }
        self.lost = 0;
    }

    /// The peer has dropped what it held, as it may (RFC 2018 section 8): it holds the
    /// oldest stretch and does not acknowledge it.
    pub fn is_reneged(&self) -> bool {
        self.sent
            .first()
            .is_some_and(|sent| sent.fate == Fate::Held)
    }

    /// Believes nothing that the peer has reported.
    pub fn distrust(&mut self) {
        for sent in self.sent.iter_mut() {
            if sent.fate == Fate::Held {
                sent.fate = Fate::InFlight;
            }
        }
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u32, end: u32) -> SackBlock {
        SackBlock {
            start: Seq(start),
            end: Seq(end),
        }
    }

    fn news() -> Delivery {
        Delivery::new(Instant::from_millis(9), 0, None, Seq(0))
    }

    /// Stretches of ten bytes.
    fn board(count: u32) -> Scoreboard {
        let mut board = Scoreboard::default();
        for index in 0..count {
            let (start, end) = (Seq(10 * index), Seq(10 * index + 10));
            let at = Instant::from_millis(u64::from(index));
            board.push(Sent::new(start, end, at, Stamp::default()));
        }
        board
    }

    fn fates(board: &Scoreboard) -> Vec<(u32, u32, Fate)> {
        board
            .sent
            .from(0)
            .map(|sent| (sent.start.0, sent.end.0, sent.fate))
            .collect()
    }

    use Fate::{Held, InFlight, Lost};
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn blocks_cut_and_join_stretches() {
        let mut board = board(5);
        let mut news = news();
        assert!(board.hold(block(15, 20), &mut news));
        assert!(board.hold(block(20, 34), &mut news));
        assert!(!board.hold(block(16, 30), &mut news), "nothing new");
        assert_eq!((board.held(), news.bytes), (19, 19));
        let expected = vec![
            (0, 10, InFlight),
            (10, 15, InFlight),
            (15, 34, Held),
            (34, 40, InFlight),
            (40, 50, InFlight),
        ];
        assert_eq!(fates(&board), expected);
    }

    #[test]
    fn what_was_held_is_delivered_once() {
        let mut board = board(4);
        let mut first = news();
        board.hold(block(10, 30), &mut first);
        let mut second = news();
        board.acknowledge(Seq(35), &mut second);
        assert_eq!((first.bytes, second.bytes, second.acked), (20, 15, 35));
        assert_eq!((board.held(), board.lost()), (0, 0));
        assert_eq!(fates(&board), vec![(35, 40, InFlight)]);
    }

    #[test]
    fn what_is_lost_leaves_again_piece_by_piece() {
        let mut board = board(3);
        assert_eq!((board.lose(1), board.lose(1)), (10, 0));
        let index = board.next_lost(Seq(0)).expect("a loss");
        board.cut(index, Seq(14));
        board.resend(index, Instant::from_millis(7), Stamp::default());
        assert_eq!(board.lost(), 6);
        assert_eq!(board.next_lost(Seq(0)), Some(2));
        let expected = vec![
            (0, 10, InFlight),
            (10, 14, InFlight),
            (14, 20, Lost),
            (20, 30, InFlight),
        ];
        assert_eq!(fates(&board), expected);
        board.hold(block(10, 20), &mut news());
        assert_eq!((board.held(), board.lost()), (10, 0));
    }

    #[test]
    fn a_peer_cannot_cut_without_end() {
        let mut board = Scoreboard::default();
        let (start, end) = (Seq(0), Seq(1_000_000));
        board.push(Sent::new(start, end, Instant::START, Stamp::default()));
        for index in 0..100_000 {
            board.hold(block(4 * index + 1, 4 * index + 2), &mut news());
        }
        assert!(board.sent.len() <= STRETCHES_MAX + 1);
    }
}
