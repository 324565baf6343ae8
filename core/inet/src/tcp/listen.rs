//! Listeners: half-open connections, and those that wait to be accepted.
//!
//! A half-open connection is an ordinary one in SYN-RECEIVED with a parent. If there are
//! too many, the listener answers with cookies and keeps nothing (while connections are at
//! work, within `unsolicited`' limit), or drops the SYN if cookies are off. A listener whose
//! accept queue is full holds SYNs until there is room (`held`). Peers whose SYNs it has
//! answered before find a place in as much room again; only beyond that are last
//! acknowledgements dropped, and the peer repeats them.

use base::Instant;
use wire::{Seq, TcpFlags};

use super::backlog::Ready;
use super::held::Held;
use super::info::State;
use super::segment::Segment;
use super::tcb::{Clocks, Tcb};
use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::boxed::Boxed;
use crate::counters::{Count, DropReason};
use crate::env::{Env, Events};
use crate::options::Options;
use crate::stack::Stack;
use crate::table::Socket;
use crate::totals::Tally;

/// A socket that waits for connections.
pub(crate) struct Listener {
    pub id: SocketId,
    pub local: Endpoint,
    pub options: Options,
    /// Most connections that wait to be accepted.
    pub backlog: usize,
    pub ready: Ready,
    pub half_open: Tally,
    /// SYNs that found `ready` full.
    pub held: Held,
    /// When it last sent a cookie; acknowledgements are taken for the answer only so long
    /// as that may be true, or guessing would pay at any time.
    pub cookie_sent_at: Option<Instant>,
}

/// When listeners send cookies (Linux: `tcp_syncookies`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynCookies {
    /// Never: what is one too many is dropped.
    Never,
    /// For SYNs that find too many half-open connections.
    WhenFull,
    /// For all.
    Always,
}

impl SynCookies {
    fn is_wanted(self, is_crowded: bool) -> bool {
        match self {
            Self::Never => false,
            Self::WhenFull => is_crowded,
            Self::Always => true,
        }
    }
}

impl Listener {
    pub fn is_full(&self) -> bool {
        self.ready.all() > self.backlog
    }

    /// Whether even who was answered finds no place: a burst's SYNs are all answered before the
    /// first acknowledgement comes.
    pub fn is_overfull(&self) -> bool {
        self.ready.all() > 2 * self.backlog
    }

    pub fn poll(&self) -> Events {
        if self.ready.is_empty() {
            Events::empty()
        } else {
            Events::READABLE
        }
    }
}

impl Stack {
    /// A segment for a listener.
    pub(super) fn listener_input<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        tuple: FourTuple,
        segment: Segment,
    ) -> Result<(), DropReason> {
        if segment.has(TcpFlags::RST) {
            return Err(DropReason::Unexpected);
        }
        if segment.has(TcpFlags::ACK) {
            return self.answer_input(env, index, tuple, segment);
        }
        if !segment.has(TcpFlags::SYN) {
            return Err(DropReason::Unexpected);
        }
        self.open_passively(env, index, tuple, &segment, None)
    }

    /// A SYN for a listener. If an older connection had its name, `beyond` says where our
    /// numbers ended; then it is a real peer that sends it, and no cookie is needed.
    pub(super) fn open_passively<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        tuple: FourTuple,
        syn: &Segment,
        beyond: Option<Seq>,
    ) -> Result<(), DropReason> {
        let (limit, cookies) = (self.net.config.half_open_max, self.net.config.syn_cookies);
        let listener = self
            .sockets
            .listener_at(index)
            .ok_or(DropReason::NoSocket)?;
        if listener.is_full() {
            return match beyond {
                None => self.hold_syn(env.now(), index, tuple, syn),
                Some(_) => Err(DropReason::AcceptQueueFull),
            };
        }
        let is_crowded = listener.half_open.all() >= limit.min(listener.backlog.max(8));
        self.net.unsolicited.note_queue(tuple.local, is_crowded);
        let is_unsolicited = beyond.is_none();
        if is_unsolicited && cookies.is_wanted(is_crowded) {
            let now = env.now();
            if !self.net.admits_unsolicited(now) {
                return Err(DropReason::SynLimited);
            }
            listener.cookie_sent_at = Some(now);
            self.context(env).send_cookie(&tuple, syn);
            return Ok(());
        }
        if is_unsolicited && is_crowded {
            return Err(DropReason::SynQueueFull);
        }
        self.open_half(env, index, tuple, syn, beyond)
    }

    /// Makes a half-open connection of a SYN and answers it.
    pub(super) fn open_half<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        tuple: FourTuple,
        syn: &Segment,
        beyond: Option<Seq>,
    ) -> Result<(), DropReason> {
        let child = self.spawn(index, tuple)?;
        let mut cx = crate::context::Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let tcb = self.sockets.tcp_at(child).ok_or(DropReason::NoSocket)?;
        tcb.choose_numbers(&mut cx, beyond);
        tcb.is_sack_ok = true;
        tcb.clocks = Some(Clocks {
            recent: 0,
            recent_at: cx.now,
        });
        tcb.accept_syn(&cx, syn);
        tcb.state = State::SynReceived;
        tcb.sender.nxt += 1;
        tcb.timers.progress_at = cx.now;
        tcb.rtt.start();
        tcb.send_syn(&mut cx);
        tcb.arm_retransmit(cx.now);
        self.settle(env, child);
        Ok(())
    }

    /// Makes a connection that belongs to a listener, counted as half open.
    pub(super) fn spawn(&mut self, parent: u32, tuple: FourTuple) -> Result<u32, DropReason> {
        let listener = self
            .sockets
            .listener_at(parent)
            .ok_or(DropReason::NoSocket)?;
        let (parent, options) = (listener.id, listener.options);
        // It will wait to be accepted.
        let ready = listener.half_open.own() + 1;
        if self.net.is_heap_short || !listener.ready.reserve(ready) {
            return Err(DropReason::MemoryScarce);
        }
        listener.half_open.add(1);
        let child = self.sockets.insert(|id| {
            let mut tcb = Boxed::new(Tcb::new(id))?;
            tcb.tuple = tuple;
            tcb.options = options;
            tcb.parent = Some(parent);
            tcb.is_in_demux = true;
            Some(Socket::Tcp(tcb))
        });
        let admitted = child.and_then(|child| {
            let admitted = self.net.admit(&tuple, child.index);
            if admitted.is_err() {
                self.sockets.remove(child.index);
            }
            admitted.map(|()| child.index)
        });
        if admitted.is_err()
            && let Some(listener) = self.sockets.listener_at(parent.index)
        {
            listener.half_open.sub(1);
        }
        admitted.map_err(|_| DropReason::SocketLimit)
    }

    /// A half-open connection has become a whole one.
    pub(super) fn promote<E: Env>(&mut self, env: &mut E, child: u32) {
        let Some(tcb) = self.sockets.tcp_at(child) else {
            return;
        };
        let (child, parent) = (tcb.id, tcb.parent);
        self.net.count(Count::PassiveOpens);
        let Some(parent) = parent else { return };
        if let Ok(Socket::Listener(listener)) = self.sockets.get_mut(parent) {
            listener.half_open.sub(1);
            listener.ready.push(child);
            env.wake(parent, Events::READABLE);
        }
    }

    /// Whether a last acknowledgement must wait because nobody accepts.
    pub(super) fn is_accept_queue_full(&mut self, parent: Option<SocketId>) -> bool {
        match parent.map(|parent| self.sockets.get(parent)) {
            Some(Ok(Socket::Listener(listener))) => listener.is_overfull(),
            _ => false,
        }
    }
}
