//! The ends of a connection.

use mbuf::Chain;

use super::info::State;
use super::tcb::{Fin, Tcb};
use crate::context::Context;
use crate::counters::ResetReason;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::net::Net;
use crate::options::Shutdown;

impl Tcb {
    /// Ends directions of the stream, as the program says.
    pub(crate) fn shutdown<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        how: Shutdown,
    ) -> Result<(), Error> {
        if self.state == State::SynSent {
            // Linux: who waits for the connection hears that it was given up.
            self.die(cx, Some(Error::ConnectionAborted));
            return Ok(());
        }
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return Err(Error::NotConnected);
        }
        if how != Shutdown::Write {
            // Linux: what comes can still be read; only nobody waits for it any more.
            self.receiver.is_shut = true;
            cx.env.wake(self.id, Events::READABLE | Events::READ_CLOSED);
        }
        if how != Shutdown::Read {
            self.finish(cx);
        }
        Ok(())
    }

    /// Queues our FIN behind the last byte. Who waits for room to send need not wait longer.
    fn finish<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        if self.sender.fin != Fin::Open {
            return;
        }
        self.sender.fin = Fin::Queued;
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            state => state,
        };
        self.output(cx);
        cx.env.wake(self.id, Events::WRITABLE);
    }

    /// The program is done with the connection; it ends by itself.
    pub(crate) fn close<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        self.is_orphan = true;
        let is_unread = !self.receiver.queue.is_empty();
        let is_lingering_zero = self.options.linger_secs == Some(0);
        match self.state {
            State::Closed | State::TimeWait | State::Listen => {}
            State::SynSent => self.die(cx, None),
            // RFC 2525 2.17: bytes that nobody will read are lost, and the peer must know.
            _ if is_unread => self.reset(cx, ResetReason::Unread),
            _ if is_lingering_zero => self.reset(cx, ResetReason::LingerZero),
            _ => {
                self.finish(cx);
                if self.state == State::FinWait2 {
                    self.arm_fin_wait(cx);
                }
            }
        }
    }

    /// The connection is gone. Bytes that have arrived in order can still be read.
    pub(super) fn die<E: Env>(&mut self, cx: &mut Context<'_, E>, error: Option<Error>) {
        self.state = State::Closed;
        self.error = error;
        self.sender.flight = Chain::new();
        self.sender.unsent = Chain::new();
        self.recovery = Default::default();
        self.receiver.early = None;
        self.receiver.is_finished = true;
        self.stop_timers();
        let mut events = Events::READABLE | Events::WRITABLE | Events::READ_CLOSED | Events::HANGUP;
        events.set(Events::ERROR, error.is_some());
        cx.env.wake(self.id, events);
    }

    /// What is true now.
    #[inline(always)]
    pub(crate) fn poll(&self, net: &Net) -> Events {
        let mut events = self.poll_but_writable();
        events.set(Events::WRITABLE, self.is_writable(net));
        events
    }

    /// Whether it is true that there is room to send; if not, somebody waits for it.
    #[inline]
    pub(crate) fn is_writable(&self, net: &Net) -> bool {
        let is_connecting = matches!(self.state, State::SynSent | State::SynReceived);
        let is_writable = !is_connecting && (self.is_write_closed() || self.may_send_more(net));
        if !is_writable && !is_connecting {
            self.starve();
        }
        is_writable || self.error.is_some()
    }

    /// The same without a look at whether there is room to send.
    #[inline]
    pub(crate) fn poll_but_writable(&self) -> Events {
        let is_open = self.state == State::Established
            && self.error.is_none()
            && !self.receiver.is_finished
            && !self.receiver.is_shut;
        let mut events = Events::empty();
        events.set(Events::READABLE, self.is_readable());
        match is_open {
            true => events,
            false => events | self.poll_ends(),
        }
    }

    /// Whether so many bytes wait as the program waits for.
    #[inline]
    fn is_readable(&self) -> bool {
        self.has_unread(self.options.receive_low_water as usize)
    }

    /// Whether so many bytes wait, or as many as there is room for.
    #[inline]
    pub(crate) fn has_unread(&self, least: usize) -> bool {
        let unread = self.receiver.queue.len();
        unread != 0 && (unread >= least || self.is_full(unread))
    }

    /// Whether it has ended, or was never open.
    pub(crate) fn receives_no_more(&self) -> bool {
        self.poll_ends().contains(Events::READABLE)
    }

    /// Whether the peer may send next to nothing before the program reads.
    #[cold]
    fn is_full(&self, unread: usize) -> bool {
        let room = (self.options.window_max() as usize).saturating_sub(unread);
        self.is_window_held_back || room <= usize::from(self.receiver.segment_max)
    }

    /// Bytes have come. A call that sleeps looks at them in any case, for it may want fewer than the program waits for;
    /// who waits to read is told once these are there. While memory is tight fewer may be enough at any moment.
    #[inline]
    pub(super) fn wake_for_bytes<E: Env>(&self, cx: &mut Context<'_, E>) {
        let events = match self.is_readable() || cx.net.is_tcp_tight() {
            true => Events::READABLE,
            false => Events::empty(),
        };
        cx.env.wake(self.id, events);
    }

    /// Wakes a program whose bytes are too few for it, and will not be more.
    pub(super) fn wake_below_low_water<E: Env>(&self, cx: &mut Context<'_, E>) {
        let unread = self.receiver.queue.len();
        if unread != 0 && unread < self.options.receive_low_water as usize {
            cx.env.wake(self.id, Events::READABLE);
        }
    }

    /// What is true of errors and ends.
    fn poll_ends(&self) -> Events {
        let mut events = Events::empty();
        let is_ended = self.receiver.is_finished || self.receiver.is_shut;
        let is_unconnected = self.state == State::Closed && !self.receiver.is_finished;
        events.set(Events::ERROR, self.error.is_some());
        events.set(Events::READ_CLOSED, is_ended || is_unconnected);
        let is_hung_up = self.is_over() || is_ended && self.is_write_closed();
        events.set(Events::HANGUP, is_hung_up);
        let is_readable = is_ended || self.error.is_some() || is_unconnected;
        events.set(Events::READABLE, is_readable);
        events
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    fn is_write_closed(&self) -> bool {
        self.sender.fin != Fin::Open || self.is_over()
    }

    /// Why nothing can be sent, if so.
    pub(crate) fn check_sendable(&mut self) -> Result<(), Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        match self.state {
            State::SynSent | State::SynReceived => Err(Error::WouldBlock),
            _ if self.sender.fin != Fin::Open => Err(Error::BrokenPipe),
            State::Established | State::CloseWait => Ok(()),
            _ => Err(Error::BrokenPipe),
        }
    }

    /// Why nothing can be received, if so; `Ok(false)` is the end of the stream.
    pub(crate) fn check_receivable(&mut self) -> Result<bool, Error> {
        if !self.receiver.queue.is_empty() {
            return Ok(true);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.receiver.is_finished || self.receiver.is_shut {
            return Ok(false);
        }
        match self.state {
            State::Closed => Err(Error::NotConnected),
            _ => Err(Error::WouldBlock),
        }
    }

    /// Bytes for the program.
    pub(crate) fn received(&mut self) -> &mut Chain {
        &mut self.receiver.queue
    }

    /// Bytes for the program, to be looked at.
    pub(crate) fn unread(&self) -> &Chain {
        &self.receiver.queue
    }

    /// Bytes without an acknowledgement, sent or not.
    pub(crate) fn unsent(&self) -> usize {
        self.sender.flight.len() + self.sender.unsent.len()
    }

    /// The same of a connection that its program has let go, and its FIN, which counts as a byte.
    pub(crate) fn orphaned(&self) -> usize {
        let is_finishing = matches!(
            self.state,
            State::FinWait1 | State::Closing | State::LastAck
        );
        match self.is_orphan {
            true => self.unsent() + usize::from(is_finishing),
            false => 0,
        }
    }

    /// Takes the pending error.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }
}
