//! When the kernel is told of frames.
//!
//! Each time costs a system call, so answers to several ready sockets leave together: a program that was just told of
//! `n` ready sockets has `n` sends that may be left lying, and the last of them takes all along, as does the next
//! question for what is ready. A program that answers several questions of one socket sends more often: it has
//! as many as it sent the last time, and from there on each flush waits for twice as many; what it sends until frames come
//! again counts together. Where fewer sockets are ready
//! than before, the rest is about to be: while some are, what lies there waits for their answers, for [`TURNS_MAX`]
//! questions for what is ready. And where many were answered and frames have come meanwhile, all wait for the answers to these, for as many
//! questions; longer where the link says that it is worth it ([`FrameIo::may_gather`]), also for frames that are found
//! instead of a wait. A program that accepts connections without asking what is ready comes back where more wait: if it came soon the last
//! time, the answers to [`ACCEPTS_MAX`] of them leave together. What one socket sends behind a frame that lies there is one segment ([`autocork`](inet::Stack::autocork)). One that took a
//! datagram while more wait comes back for them, so its answer may lie as well. If the program does neither, somebody else must look after what lies there: while nobody
//! does ([`Host::watch`]) each send leaves at once.
//!
//! More than a part of the ring is never left lying: what does not fit there is lost.

use base::{Duration, Instant};
use inet::Env;
use rt::FrameIo;

use crate::host::{Host, Link};

/// Who looks from time to time does so at whole multiples of this. It is how long what was left lying may lie, where
/// the program has not been in the library all the time.
pub const LOOK_NANOS: u64 = 16_000_000;

/// So often what lies there is left lying for what comes.
const TURNS_MAX: u8 = 3;
/// Answers on so many connections that were accepted one after the other leave together, of a program that came back for the last one
/// within so long.
const ACCEPTS_MAX: u8 = 8;
const SOON: Duration = Duration::from_micros(500);
/// Sends on each of them, and one more, so that the last one is not the last of all: an answer, and ends.
const SENDS_PER_ACCEPT: usize = 4;
/// So many answers are of a program that has many peers, and is back at once.
const MANY_ANSWERS: usize = 8;

/// See the module.
pub(crate) struct Sending {
    /// Sends that may be left lying.
    deferrable: usize,
    /// Since the program was told of ready sockets while nothing lay there, if it was of any.
    sent: Option<usize>,
    /// Of how many it was told since then.
    told: usize,
    /// Something lies there.
    lies: bool,
    /// Turns through which it has.
    turns: u8,
    /// The last answer of this turn has waited for frames that had come.
    has_waited: bool,
    is_watched: bool,
    /// When whoever looks from time to time does it again, at the latest.
    next_look: Instant,
    /// Connections that were accepted while something lay there, and when the last one was.
    accepts: u8,
    accepted_at: Instant,
    /// With so many frames in flight they leave at once.
    frames_max: u32,
}

impl Sending {
    pub(crate) fn new(ring_entries: u32) -> Self {
        Self {
            deferrable: 0,
            sent: None,
            told: 0,
            lies: false,
            turns: 0,
            has_waited: false,
            is_watched: false,
            next_look: Instant::START,
            accepts: 0,
            accepted_at: Instant::START,
            frames_max: ring_entries / 4,
        }
    }

    #[inline]
    fn begin_round(&mut self, ready: usize, goes_on: bool) {
        if goes_on && ready != 0 {
            self.deferrable = self.deferrable.max(ready);
            self.told += ready;
            return;
        }
        let sent = self.sent.filter(|_| ready != 0);
        self.deferrable = sent.map_or(ready, |sent| sent.max(ready));
        self.sent = (ready != 0).then_some(0);
        self.told = ready;
    }

    /// Sockets are ready: whether what lies there waits for the answers to them. So may an acknowledgement, before a
    /// program that answers.
    #[inline]
    fn goes_on(&mut self, may_gather: bool) -> bool {
        let is_answered = self.sent.is_some_and(|sent| sent != 0);
        self.lies |= may_gather && self.is_watched && is_answered;
        let goes_on = self.lies && (self.turns < TURNS_MAX || may_gather);
        self.turns = self.turns.saturating_add(u8::from(goes_on));
        self.has_waited = false;
        goes_on
    }

    /// So many sockets are ready after so many frames came; whether what lies there leaves before the answers. An
    /// acknowledgement that begins to wait is no answer: the round before it is over.
    #[inline]
    fn begin_turn(
        &mut self,
        (ready, taken): (usize, usize),
        may_gather: bool,
        is_crowded: bool,
    ) -> bool {
        let lay = self.lies;
        let leaves = !self.goes_on(may_gather) || is_crowded;
        self.begin_round(ready, lay && !leaves || taken == 0);
        leaves
    }

    #[inline]
    fn note_flush(&mut self) {
        self.lies = false;
        self.turns = 0;
        self.accepts = 0;
    }

    /// Whether what lies there has lain for long enough when a connection is accepted, or its program is not back soon.
    fn is_over(&self, is_soon: bool) -> bool {
        self.lies && (!is_soon || self.accepts >= ACCEPTS_MAX)
    }

    /// A connection was accepted, soon after the one before, and more wait.
    fn begin_accepted(&mut self) {
        self.accepts = self.accepts.saturating_add(1);
        self.deferrable = self.deferrable.max(SENDS_PER_ACCEPT);
    }

    /// Whether what is sent now may be left lying; the last of many may if frames have come meanwhile.
    #[inline]
    fn may_lie(&mut self, may_gather: bool, has_received: impl FnOnce() -> bool) -> bool {
        self.deferrable = self.deferrable.saturating_sub(1);
        if let Some(sent) = &mut self.sent {
            *sent += 1;
            if self.deferrable == 0 {
                let may_wait = *sent >= MANY_ANSWERS && !self.has_waited && self.is_watched;
                // More answers than sockets: the next question is likely to be there already.
                if may_wait && may_gather && *sent > self.told {
                    self.deferrable = *sent;
                }
                let is_early = self.turns < TURNS_MAX || may_gather;
                let has_more = || self.deferrable != 0 || has_received();
                self.has_waited = may_wait && is_early && has_more();
                if self.has_waited {
                    self.lies = true;
                    return true;
                }
                self.deferrable = *sent;
                return false;
            }
        }
        let may_lie = self.is_watched && self.deferrable != 0;
        self.lies |= may_lie;
        may_lie
    }
}

impl<L: Link> Host<L> {
    /// The program was told of so many ready sockets.
    #[inline]
    pub fn expect_answers(&mut self, count: usize) {
        let goes_on = self.sending.lies;
        self.sending.begin_round(count, goes_on);
    }

    /// The program asked what is ready and is told of so many sockets, one at least, after so many frames came: what was
    /// staged may wait for its answers.
    #[inline]
    pub fn turn_to_answer(&mut self, count: usize, taken: usize) {
        let may_gather = self.may_gather();
        let is_crowded = self.is_crowded();
        let counts = (count, taken);
        if self.sending.begin_turn(counts, may_gather, is_crowded) {
            self.flush();
        }
    }

    /// The program took something, and `has_more` waits on the same socket.
    #[inline]
    pub(crate) fn expect_return(&mut self, has_more: bool) {
        if has_more {
            self.sending.deferrable = self.sending.deferrable.max(2);
        }
    }

    /// The program has accepted a connection, and `has_more` wait. Who asks what is ready comes back for that.
    pub(crate) fn note_accept(&mut self, has_more: bool) {
        let now = self.parts().1.now();
        let is_soon = now.since(self.sending.accepted_at) < SOON;
        self.sending.accepted_at = now;
        if self.sending.sent.is_some() {
            return;
        }
        if self.sending.is_over(is_soon) {
            self.flush();
        }
        match is_soon && has_more {
            true => self.sending.begin_accepted(),
            // What the ones before have not used is for nobody else.
            false => self.sending.deferrable = 0,
        }
    }

    /// Somebody looks from time to time whether frames were left lying, or does not any more.
    pub fn watch(&mut self, is_watched: bool) {
        self.sending.is_watched = is_watched;
        if !is_watched {
            self.flush();
        }
    }

    /// Whoever does looks again then.
    pub fn watch_again_at(&mut self, next_look: Instant) {
        self.sending.next_look = next_look;
    }

    /// Whether somebody looks then.
    pub(crate) fn is_watched_at(&self, time: Instant) -> bool {
        self.sending.is_watched && self.sending.next_look <= time
    }

    /// The program has sent something.
    #[inline(always)]
    pub(crate) fn after_sending(&mut self) {
        self.sends += 1;
        let may_gather = self.may_gather();
        let Self {
            sending, station, ..
        } = self;
        if !sending.may_lie(may_gather, || station.io().has_received()) || self.is_crowded() {
            self.flush();
        } else {
            self.parts().0.autocork();
        }
    }

    #[inline]
    fn may_gather(&mut self) -> bool {
        let now = self.parts().1.now();
        self.station.io().may_gather(now)
    }

    /// Before a wait, or at the end of one: lets go what lies there, unless frames are found before a wait whose answers it
    /// may wait for. True if they are.
    pub fn flush_or_gather(&mut self, is_wait: bool) -> bool {
        let may_wait = is_wait && self.sending.lies && !self.is_crowded();
        let finds_more = may_wait && self.station.io().finds_more();
        if !finds_more {
            self.flush();
        }
        finds_more
    }

    /// Whether so much is under way that more could be lost.
    pub(crate) fn is_crowded(&mut self) -> bool {
        self.station.io().has_in_flight(self.sending.frames_max)
    }

    /// Has the kernel send all that was staged.
    #[inline]
    pub fn flush(&mut self) {
        self.sending.note_flush();
        let (stack, world) = self.parts();
        stack.end_autocork(world);
        let io = self.station.io();
        if io.flush() && self.link.kick(io).is_err() {
            self.lose_link();
        }
        self.station.io().reclaim();
    }

    /// One turn of who looks from time to time; true if there is nothing that it could do before `now`, and a
    /// frame or the next deadline brings something to do.
    pub fn look_after(&mut self, now: Instant) -> bool {
        self.flush();
        let taken = self.look(now);
        self.flush();
        taken == 0 && self.station.io().in_flight() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many turns, in each of which so many sockets are ready and so many answers are sent, how many flushes there were.
    fn flushes(may_gather: bool, turns: usize, ready: usize, answers: usize) -> usize {
        let mut sending = Sending::new(1024);
        sending.is_watched = true;
        let mut flushes = 0;
        for _ in 0..turns {
            // What has been queued may.
            if !sending.goes_on(may_gather && sending.lies) {
                flushes += usize::from(sending.lies);
                sending.note_flush();
            }
            let goes_on = sending.lies;
            sending.begin_round(ready, goes_on);
            for _ in 0..answers {
                if !sending.may_lie(may_gather, || false) {
                    sending.note_flush();
                    flushes += 1;
                }
            }
        }
        flushes
    }

    #[test]
    fn answers_of_one_socket_wait_for_the_next_question_while_they_may_gather() {
        let alone = flushes(false, 100, 1, 20);
        assert!((30..=40).contains(&alone), "{alone}");
        let gathered = flushes(true, 100, 1, 20);
        assert!(gathered <= 10, "{gathered}");
    }

    #[test]
    fn an_acknowledgement_waits_for_the_answer_of_a_program_that_answers() {
        let mut sending = Sending::new(1024);
        sending.is_watched = true;
        sending.begin_round(1, false);
        assert!(!sending.goes_on(true), "it has not answered yet");
        sending.may_lie(true, || false);
        sending.note_flush();
        assert!(!sending.goes_on(false), "nothing is queued");
        assert!(sending.goes_on(true));
    }

    #[test]
    fn one_answer_leaves_at_once_behind_an_acknowledgement_that_waited_for_it() {
        let mut sending = Sending::new(1024);
        sending.is_watched = true;
        for _ in 0..100 {
            // A question of several segments, whose acknowledgement is queued.
            sending.begin_turn((1, 3), true, false);
            assert!(!sending.may_lie(true, || false));
            sending.note_flush();
        }
    }

    #[test]
    fn one_answer_to_each_socket_leaves_with_the_last_one() {
        for may_gather in [false, true] {
            assert_eq!(flushes(may_gather, 100, 1, 1), 100);
            assert_eq!(flushes(may_gather, 100, 20, 20), 100);
        }
    }
}
