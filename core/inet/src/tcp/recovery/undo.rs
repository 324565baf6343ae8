//! Losses that were none.
//!
//! If the acknowledgement of what was sent again echoes a clock older than the
//! retransmission, it was the original that arrived (Eifel, RFC 3522). If the peer reports all
//! that was sent again as received twice, it was sent in vain (RFC 3708). Either way
//! nothing was lost, and the window becomes what it was (RFC 4015).

use base::Instant;

use super::super::congestion::Congestion;
use super::super::delivery::Delivery;
use super::super::tcb::Tcb;
use super::Phase;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;

/// What an episode needs to be undone.
pub(super) struct Undo {
    before: Congestion,
    /// When something was first sent again.
    resent_at: Option<Instant>,
    /// Bytes sent again, less those that the peer got twice.
    resent: u32,
}

impl Undo {
    pub fn new(before: &Congestion) -> Self {
        Self {
            before: before.clone(),
            resent_at: None,
            resent: 0,
        }
    }

    fn is_echo_older(&self, news: &Delivery) -> bool {
        let (Some(echo), Some(resent_at)) = (news.echo, self.resent_at) else {
            return false;
        };
        (echo.wrapping_sub(resent_at.as_millis() as u32) as i32) < 0
    }
}

impl Tcb {
    /// Something leaves again.
    pub(super) fn note_resent(&mut self, bytes: u32, now: Instant) {
        if let Some(episode) = &mut self.recovery.episode {
            let undo = &mut episode.undo;
            undo.resent_at.get_or_insert(now);
            undo.resent = undo.resent.saturating_add(bytes);
        }
    }

    /// RFC 3522: whether the original of what was sent again has arrived, and if so, undoes
    /// the episode.
    pub(super) fn undo_by_clock<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        news: &Delivery,
    ) -> bool {
        let is_spurious = news.is_resent_acked
            && matches!(self.recovery.phase, Phase::Fast | Phase::Loss)
            && self
                .recovery
                .episode
                .as_ref()
                .is_some_and(|episode| episode.undo.is_echo_older(news));
        if is_spurious {
            cx.net.count(if self.recovery.phase == Phase::Loss {
                Count::SpuriousTimeouts
            } else {
                Count::FullUndos
            });
            self.undo();
        }
        is_spurious
    }

    /// The peer says that something arrived twice.
    pub(super) fn note_doubled<E: Env>(&mut self, cx: &mut Context<'_, E>, news: &Delivery) {
        if news.doubled == 0 {
            return;
        }
        let (una, nxt) = (self.sender.una, self.sender.nxt);
        self.recovery.rack.widen(una, nxt);
        let Some(episode) = &mut self.recovery.episode else {
            return;
        };
        let had = episode.undo.resent;
        episode.undo.resent = had.saturating_sub(news.doubled);
        if had > 0 && episode.undo.resent == 0 && self.recovery.board.lost() == 0 {
            cx.net.count(Count::DuplicateSackUndos);
            self.undo();
        }
    }

    fn undo(&mut self) {
        if let Some(episode) = self.recovery.episode.take() {
            self.congestion.undo(&episode.undo.before);
        }
        self.recovery.board.find_lost();
        self.recovery.phase = Phase::Open;
        self.timers.backoff = 0;
    }
}
