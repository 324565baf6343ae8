//! Connections come to their wait, and segments meet it.

use base::Instant;
use wire::Seq;

use super::judge::{Verdict, classify, judge};
use crate::addr::{Endpoint, FourTuple};
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::net::Net;
use crate::stack::Stack;
use crate::tcp::segment::Segment;
use crate::tcp::tcb::Tcb;

impl Net {
    /// A port of ours for a connection to `remote`.
    pub(crate) fn free_port(
        &mut self,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
    ) -> Option<u16> {
        // Packets to ourselves stay in our memory, where none is lost or late.
        let is_same_host = self.is_local(remote.addr);
        let share = self.share;
        let (rules, time_wait) = (&self.config.time_wait, &self.time_wait);
        let is_free = |tuple: &FourTuple| {
            share.is_none_or(|share| share.owns(tuple))
                && time_wait.is_free(tuple, rules, is_same_host, now)
        };
        self.demux.port_for(local, remote, is_free)
    }

    /// Whether a connection of ours may have that name.
    pub(crate) fn is_name_free(&self, tuple: &FourTuple, now: Instant) -> bool {
        let is_same_host = self.is_local(tuple.remote.addr);
        let rules = &self.config.time_wait;
        self.demux.connection(tuple).is_none()
            && self.time_wait.is_free(tuple, rules, is_same_host, now)
    }

    /// Whether a connection of ours has that name, or had it a moment ago.
    pub(crate) fn is_known(&self, tuple: &FourTuple) -> bool {
        self.demux.connection(tuple).is_some() || self.time_wait.find(tuple).is_some()
    }

    /// Takes a free name; says where the numbers of the last connection that had it ended.
    pub(crate) fn recycle_name(&mut self, tuple: &FourTuple) -> Option<Seq> {
        let end = self.time_wait.take_over(tuple)?;
        self.count(Count::TimeWaitsRecycled);
        Some(end)
    }

    /// Remembers a connection that is over.
    pub(crate) fn enter_time_wait(&mut self, tcb: &Tcb, now: Instant) {
        self.count(Count::TimeWaits);
        let waits = self.config.time_wait.same_host_waits;
        if !waits && self.is_local(tcb.tuple.remote.addr) {
            self.count(Count::TimeWaitsSkipped);
        } else if self.time_wait.insert(tcb, now) {
            self.count(Count::TimeWaitsEvicted);
        }
    }

    /// Ends the waits whose time has come, `most` at once.
    pub(crate) fn expire_time_waits(&mut self, now: Instant, most: usize) {
        let ended = self.time_wait.expire(now, most);
        self.stats.counts.add(Count::TimeWaitsExpired, ended);
    }
}

impl Stack {
    /// A segment whose connection is over.
    pub(in crate::tcp) fn time_wait_input<E: Env>(
        &mut self,
        env: &mut E,
        at: u32,
        tuple: FourTuple,
        segment: Segment,
    ) -> Result<(), DropReason> {
        let entry = self.net.time_wait.entry(at);
        let (kind, place, clock) = classify(entry, &segment);
        let refused = entry.refused;
        let rules = &self.net.config.time_wait;
        match judge(rules, kind, place, clock, refused.is_some()) {
            Verdict::Reopen => self.reopen(env, at, tuple, segment),
            Verdict::TakeUp => match refused {
                Some(syn) => {
                    self.net.count(Count::TimeWaitsTakenUp);
                    self.reopen(env, at, tuple, syn.segment())
                }
                None => Err(DropReason::TimeWaitReset),
            },
            Verdict::Challenge => {
                self.net.time_wait.keep_refused(at, &segment);
                self.challenge(env, at, &tuple, DropReason::TimeWaitSyn)
            }
            Verdict::Acknowledge(reason) => self.challenge(env, at, &tuple, reason),
            Verdict::Restart => {
                self.net.time_wait.restart(at, env.now());
                self.challenge(env, at, &tuple, DropReason::TimeWaitSegment)
            }
            Verdict::Note => {
                self.net.time_wait.note_clock(at, &segment);
                Ok(())
            }
            Verdict::End => {
                self.net.time_wait.remove(at);
                self.net.count(Count::TimeWaitsReset);
                Ok(())
            }
            Verdict::Drop(reason) => Err(reason),
        }
    }

    /// Lets a SYN begin a new connection. The wait goes on if nobody takes the SYN.
    fn reopen<E: Env>(
        &mut self,
        env: &mut E,
        at: u32,
        tuple: FourTuple,
        syn: Segment,
    ) -> Result<(), DropReason> {
        let Some(listener) = self.listener_for(&tuple) else {
            return self.challenge(env, at, &tuple, DropReason::TimeWaitSyn);
        };
        let end = self.net.time_wait.entry(at).seq;
        self.open_passively(env, listener, tuple, &syn, Some(end))?;
        self.net.time_wait.remove(at);
        self.net.count(Count::TimeWaitsReused);
        Ok(())
    }

    /// Sends our last acknowledgement again, within the connection's limit.
    fn challenge<E: Env>(
        &mut self,
        env: &mut E,
        at: u32,
        tuple: &FourTuple,
        reason: DropReason,
    ) -> Result<(), DropReason> {
        let mut cx = self.context(env);
        match cx.net.time_wait.acknowledgement(at, cx.now) {
            Some(repr) => {
                cx.net.count(Count::TimeWaitAcks);
                cx.send_bare(tuple, &repr);
            }
            None => cx.net.count(Count::TimeWaitAcksSkipped),
        }
        Err(reason)
    }
}
