//! Unsolicited packets: what they may cost while connections are at work.
//!
//! # Problem
//! A ping wants an answer, and so does each SYN behind a listener's full queue, which gets a
//! cookie. A stack that answers a flood of them does nothing else (Mogul and Ramakrishnan,
//! "Eliminating receive livelock"): open connections wait behind each burst, and when the
//! queue in front of the card runs over, it is their segments that are lost.
//!
//! # Idea
//! While connections are at work, answers to unsolicited packets take [`SHARE`] of the time. Whoever
//! comes when that is spent is dropped before any work, and counted. An emulated CPU is some
//! twenty times slower than a real one, so no fixed number of answers would do: what one
//! takes is learned from how long batches last ([`Env::spent`](crate::Env::spent)).
//! A batch's drops are paid for by its answers, so that they lie within the share, too.
//! While no connection is at work, nobody is in the way and everybody is answered.
//!
//! Most of a flood of SYNs goes to one listener. Once its queue was found full, a SYN for it that
//! will not be answered is not even looked up. As soon as there is time for an answer again, one
//! is looked up, and tells whether the queue is still full.
//!
//! # Invariant
//! Credit never exceeds [`CREDIT_MAX`]: unsolicited packets in a row hold up a connection for no longer.
//!
//! # Not here
//! A SYN that finds a place in the listener's queue is not unsolicited, nor is what comes from
//! within this host. Resets, ICMP errors and challenges have limits of their own (`budget`).

use base::{Duration, Instant};

use crate::addr::Endpoint;

/// Of the time, one part in so many.
const SHARE: u64 = 8;
/// Connections are at work for so long after a segment: longer than a lost one's
/// retransmission takes, or a flood that had its way once would go on having it.
const AT_WORK: Duration = Duration::from_secs(1);
/// Time that may be saved up: a crowd of clients that come at once is no flood.
const CREDIT_MAX: Duration = Duration::from_millis(5);
/// No answer takes longer; if it seemed so, the CPU was away.
const COST_MAX: Duration = Duration::from_micros(100);
const _: () = assert!(
    COST_MAX.as_nanos() < CREDIT_MAX.as_nanos(),
    "one is always affordable"
);
/// What one is thought to take before the first.
const COST_AT_FIRST: Duration = Duration::from_micros(20);
/// One batch's part in what is thought to be the cost.
const SMOOTHING: u64 = 8;

/// The time that is left for unsolicited packets.
pub(crate) struct Unsolicited {
    /// Connections are at work until then.
    work_ends: Instant,
    refilled_at: Instant,
    credit: Duration,
    /// Of one answer.
    cost: Duration,
    /// In this batch.
    answered: u64,
    /// In this batch.
    dropped: u64,
    /// Frames that had come when it began.
    frames_before: u64,
    /// The listener whose queue was full when a SYN was last looked up.
    crowded: Option<Endpoint>,
}

impl Unsolicited {
    pub const fn new() -> Self {
        Self {
            work_ends: Instant::START,
            refilled_at: Instant::START,
            credit: Duration::ZERO,
            cost: COST_AT_FIRST,
            answered: 0,
            dropped: 0,
            frames_before: 0,
            crowded: None,
        }
    }

    /// An open connection has got a segment.
    #[inline]
    pub fn note_work(&mut self, now: Instant) {
        self.work_ends = now + AT_WORK;
    }

    /// Whether an unsolicited packet is answered, which then is paid for.
    pub fn admit(&mut self, now: Instant) -> bool {
        let is_admitted = self.affords(now);
        if is_admitted {
            self.credit -= self.cost;
            self.answered += 1;
        } else {
            self.dropped += 1;
        }
        is_admitted
    }

    /// A SYN has found a listener's queue full, or not.
    pub fn note_queue(&mut self, listener: Endpoint, is_crowded: bool) {
        self.crowded = is_crowded.then_some(listener);
    }

    /// Whether a SYN for `listener` is dropped, because its queue is full and there is no time
    /// for an answer.
    pub fn turns_away(&mut self, now: Instant, listener: Endpoint) -> bool {
        let is_refused = self.crowded == Some(listener) && !self.affords(now);
        self.dropped += u64::from(is_refused);
        is_refused
    }

    fn affords(&mut self, now: Instant) -> bool {
        self.refill(now);
        now >= self.work_ends || self.credit >= self.cost
    }

    fn refill(&mut self, now: Instant) {
        let earned = now.since(self.refilled_at).as_nanos() / SHARE;
        self.credit = (self.credit + Duration::from_nanos(earned)).min(CREDIT_MAX);
        self.refilled_at = now;
    }

    /// Ends a batch, which took so long; `frames` have come since the start.
    #[inline]
    pub fn end_batch(&mut self, frames: u64, spent: impl FnOnce() -> Duration) {
        let before = core::mem::replace(&mut self.frames_before, frames);
        if self.answered + self.dropped != 0 {
            self.learn(frames.saturating_sub(before), spent());
        }
    }

    fn learn(&mut self, frames: u64, spent: Duration) {
        let served = frames.saturating_sub(self.dropped);
        if self.answered != 0 && served != 0 {
            let seen = spent.as_nanos() / served;
            let seen = seen.min(COST_MAX.as_nanos());
            let known = self.cost.as_nanos();
            let cost = known - known / SMOOTHING + seen / SMOOTHING;
            self.cost = Duration::from_nanos(cost);
        }
        self.answered = 0;
        self.dropped = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Duration = Duration::from_micros(10);
    const BURST: u64 = 100;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A batch of unsolicited packets, of which an answer takes `answer` and a refusal `refusal`; how many
    /// are answered.
    fn batch(
        unsolicited: &mut Unsolicited,
        now: Instant,
        answer: Duration,
        refusal: Duration,
    ) -> u64 {
        let answered = (0..BURST).filter(|_| unsolicited.admit(now)).count() as u64;
        let spent = answer * answered as u32 + refusal * (BURST - answered) as u32;
        unsolicited.end_batch(unsolicited.frames_before + BURST, || spent);
        answered
    }

    /// What a second of batches, one each millisecond, takes for answers.
    fn second(
        unsolicited: &mut Unsolicited,
        begin: u64,
        answer: Duration,
        refusal: Duration,
    ) -> u64 {
        let instants = (begin..begin + 1000).map(at);
        instants
            .map(|now| {
                unsolicited.note_work(now);
                batch(unsolicited, now, answer, refusal)
            })
            .sum()
    }

    #[test]
    fn everybody_is_answered_while_no_connection_is_at_work() {
        let mut unsolicited = Unsolicited::new();
        let zero = Duration::ZERO;
        let all = (0..1000).all(|now| batch(&mut unsolicited, at(now), ANSWER, zero) == BURST);
        assert!(all);
        unsolicited.note_work(at(1000));
        assert!(batch(&mut unsolicited, at(1001), ANSWER, zero) < BURST);
        let rest = at(1000) + AT_WORK;
        assert_eq!(batch(&mut unsolicited, rest, ANSWER, zero), BURST);
    }

    #[test]
    fn connections_at_work_leave_them_an_eighth_of_the_time_whatever_an_answer_takes() {
        for micros in [5, 10, 50] {
            let mut unsolicited = Unsolicited::new();
            let answer = Duration::from_micros(micros);
            second(&mut unsolicited, 0, answer, Duration::ZERO);
            let answered = second(&mut unsolicited, 1000, answer, Duration::ZERO);
            let fair = 1_000_000 / SHARE / micros;
            let bounds = fair * 9 / 10..=fair * 11 / 10;
            assert!(bounds.contains(&answered), "{answered} of {fair}");
        }
    }

    #[test]
    fn what_their_refusal_takes_lies_within_that_time() {
        let mut unsolicited = Unsolicited::new();
        let refusal = Duration::from_micros(1);
        second(&mut unsolicited, 0, ANSWER, refusal);
        let answered = second(&mut unsolicited, 1000, ANSWER, refusal);
        let refused = 1000 * BURST - answered;
        let spent = answered * 10 + refused;
        assert!(answered > 0);
        assert!(spent < 1_000_000 / SHARE * 11 / 10, "{spent} us");
    }

    #[test]
    fn a_pause_earns_them_no_more_than_a_short_burst() {
        let mut unsolicited = Unsolicited::new();
        second(&mut unsolicited, 0, ANSWER, Duration::ZERO);
        let later = at(60_000);
        unsolicited.note_work(later);
        let most = CREDIT_MAX.as_nanos() / unsolicited.cost.as_nanos();
        let answered = (0..).take_while(|_| unsolicited.admit(later)).count() as u64;
        assert_eq!(answered, most);
    }

    #[test]
    fn only_syns_for_a_full_listener_are_turned_away_and_only_without_time() {
        let [full, other] = [80, 81].map(|port| Endpoint::v4([10, 0, 0, 1].into(), port));
        let mut unsolicited = Unsolicited::new();
        unsolicited.note_work(at(0));
        assert!(!unsolicited.turns_away(at(0), full), "not known to be full");
        unsolicited.note_queue(full, true);
        assert!(unsolicited.turns_away(at(0), full));
        assert!(!unsolicited.turns_away(at(0), other));
        unsolicited.note_queue(full, false);
        assert!(!unsolicited.turns_away(at(0), full), "there is room again");
        unsolicited.note_queue(full, true);
        assert!(!unsolicited.turns_away(at(10), full), "there is time");
    }

    #[test]
    fn a_cpu_that_was_away_for_a_while_does_not_end_their_answers() {
        let mut unsolicited = Unsolicited::new();
        let away = Duration::from_secs(1);
        second(&mut unsolicited, 0, away, away);
        assert!(second(&mut unsolicited, 1000, ANSWER, Duration::ZERO) > 1000);
    }
}
