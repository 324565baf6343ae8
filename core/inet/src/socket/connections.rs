//! Connections begin and end.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::names::sharing_of;
use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::boxed::Boxed;
use crate::context::Context;
use crate::counters::ResetReason;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::options::Shutdown;
use crate::stack::Stack;
use crate::table::Socket;
use crate::tcp::{Held, Listener, Ready, State, Tcb};
use crate::totals::Tally;

impl Stack {
    /// Turns a socket into one that waits for connections; again, to change the backlog.
    pub fn listen(&mut self, id: SocketId, backlog: usize) -> Result<(), Error> {
        match self.sockets.get_mut(id)? {
            Socket::Listener(listener) => {
                listener.backlog = backlog;
                return Ok(());
            }
            Socket::Tcp(tcb) if tcb.state == State::Closed => {
                if tcb.tuple.local.port == 0 {
                    let any = Endpoint::any_of(tcb.tuple.local.addr);
                    self.bind(id, any)?;
                }
            }
            _ => return Err(Error::InvalidState),
        }
        let tcb = self.sockets.tcp(id)?;
        let (local, options) = (tcb.tuple.local, tcb.options);
        let sharing = sharing_of(&options, true);
        let ports = &mut self.net.demux.tcp;
        if ports.has_other_listener(local.port, id.index, local.addr, sharing) {
            return Err(Error::AddressInUse);
        }
        if let Some(entry) = ports.entry(local.port, id.index) {
            entry.sharing = sharing;
        }
        let listener = Listener {
            id,
            local,
            options,
            backlog,
            ready: Ready::default(),
            half_open: Tally::default(),
            held: Held::default(),
            cookie_sent_at: None,
        };
        self.sockets.tcp_mut(id)?.forget_unread(&mut self.net);
        let listener = Boxed::new(listener).ok_or(Error::NoBuffers)?;
        *self.sockets.get_mut(id)? = Socket::Listener(listener);
        Ok(())
    }

    /// Takes a connection that waits; who waited for its place is answered.
    pub fn accept<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<SocketId, Error> {
        let child = self.next_ready(id)?;
        if self.answer_held(env, id.index) {
            self.flush(env);
        }
        Ok(child)
    }

    /// Whether an accept that made room here made it for SYNs that are held in another stack.
    pub fn is_held_elsewhere(&self, id: SocketId) -> bool {
        match self.sockets.get(id) {
            Ok(Socket::Listener(listener)) => listener.held.is_elsewhere(),
            _ => false,
        }
    }

    /// Answers who waited for room that an accept made in another stack.
    pub fn use_room<E: Env>(&mut self, env: &mut E, id: SocketId) {
        if self.sockets.get(id).is_ok() && self.answer_held(env, id.index) {
            self.flush(env);
        }
    }

    pub(crate) fn next_ready(&mut self, id: SocketId) -> Result<SocketId, Error> {
        loop {
            let Socket::Listener(listener) = self.sockets.get_mut(id)? else {
                return Err(Error::InvalidState);
            };
            let child = listener.ready.pop().ok_or(Error::WouldBlock)?;
            if let Ok(tcb) = self.sockets.tcp_mut(child) {
                tcb.adopt();
                return Ok(child);
            }
        }
    }

    /// Names the peer. A datagram socket takes only its datagrams from now on; a stream
    /// socket starts to connect, and is woken when that has ended.
    pub fn connect<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        remote: Endpoint,
    ) -> Result<(), Error> {
        let mut remote = remote;
        if remote.addr.is_unspecified() {
            remote.addr = match remote.addr {
                IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            };
        }
        match self.sockets.get(id)? {
            Socket::Udp(_) => self.connect_datagram(id, remote),
            Socket::Tcp(tcb) => {
                self.check_connectable(tcb)?;
                self.connect_stream(env, id, remote)?;
                self.flush(env);
                Ok(())
            }
            Socket::Frozen(_) => self.connect_frozen(env, id, remote),
            _ => Err(Error::InvalidState),
        }
    }

    fn check_connectable(&self, tcb: &Tcb) -> Result<(), Error> {
        match tcb.state {
            State::Closed if tcb.poll(&self.net).contains(Events::READ_CLOSED) => Ok(()),
            State::SynSent | State::SynReceived => Err(Error::InProgress),
            _ => Err(Error::AlreadyConnected),
        }
    }

    fn connect_datagram(&mut self, id: SocketId, remote: Endpoint) -> Result<(), Error> {
        let device = self.sockets.udp_mut(id)?.options.device;
        self.net.check_device(remote.addr, device)?;
        let source = self.net.source_for(remote.addr)?;
        self.name_datagram(id, remote.addr)?;
        let socket = self.sockets.udp_mut(id)?;
        if socket.local.addr.is_unspecified() {
            socket.local.addr = source;
        }
        if socket.local.addr.is_ipv4() != remote.addr.is_ipv4() {
            return Err(Error::NetworkUnreachable);
        }
        socket.peer = (remote.port != 0).then_some(remote);
        self.rename_datagram(id)
    }

    /// Takes a datagram socket's peer away, and the address that was chosen for it.
    pub fn disconnect(&mut self, id: SocketId) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        socket.peer = None;
        socket.local.addr = socket.bound;
        self.rename_datagram(id)
    }

    fn connect_stream<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        remote: Endpoint,
    ) -> Result<(), Error> {
        if remote.port == 0 || !self.net.is_host(remote.addr) {
            return Err(Error::NetworkUnreachable);
        }
        let old = self.sockets.tcp(id)?;
        let (bound, options, is_bound) = (old.tuple.local, old.options, old.is_bound);
        self.net.check_device(remote.addr, options.device)?;
        let bound = match is_bound {
            true => bound,
            false => Endpoint::any_of(remote.addr),
        };
        let now = env.now();
        let local = self.choose_local(bound, remote, now)?;
        let tuple = FourTuple { local, remote };
        if !self.net.is_name_free(&tuple, now) {
            return Err(Error::AddressInUse);
        }
        self.net.admit(&tuple, id.index)?;
        let beyond = self.net.recycle_name(&tuple);
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let tcb = self.sockets.tcp_mut(id)?;
        tcb.forget_unread(cx.net);
        *tcb = Tcb::new(id);
        (tcb.tuple, tcb.options, tcb.is_bound, tcb.is_in_demux) = (tuple, options, is_bound, true);
        tcb.connect(&mut cx, beyond);
        self.settle(env, id.index);
        Ok(())
    }

    /// Ends one or both directions.
    pub fn shutdown<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        how: Shutdown,
    ) -> Result<(), Error> {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        match self.sockets.get_mut(id)? {
            Socket::Tcp(tcb) => tcb.shutdown(&mut cx, how)?,
            Socket::Udp(socket) => {
                // Linux: without a peer it is an error, and done all the same.
                socket.shut(how);
                let has_peer = socket.peer.is_some();
                env.wake(id, Events::READABLE | Events::READ_CLOSED);
                return has_peer.then_some(()).ok_or(Error::NotConnected);
            }
            Socket::Listener(_) if how == Shutdown::Write => return Ok(()),
            Socket::Listener(_) => return self.stop_listening(env, id),
            Socket::Frozen(_) => return Err(Error::InvalidState),
            Socket::Free { .. } => return Err(Error::BadSocket),
        }
        self.settle(env, id.index);
        self.flush(env);
        Ok(())
    }

    /// Lets go of a socket. A connection that is open ends by itself.
    pub fn close<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<(), Error> {
        match self.sockets.get_mut(id)? {
            Socket::Tcp(_) => self.close_stream(env, id),
            Socket::Listener(_) => self.close_listener(env, id),
            Socket::Frozen(_) => drop(self.remove_frozen(env, id)),
            Socket::Udp(socket) => {
                let port = socket.local.port;
                let groups = core::mem::take(&mut socket.groups);
                self.net.udp_memory.bill(socket.queued_bytes(), 0);
                self.net.demux.udp.unbind(port, id.index);
                self.sockets.remove(id.index);
                for group in groups {
                    self.context(env).leave(group);
                }
            }
            Socket::Free { .. } => return Err(Error::BadSocket),
        }
        self.flush(env);
        Ok(())
    }

    fn close_stream<E: Env>(&mut self, env: &mut E, id: SocketId) {
        self.sockets.disown(id.index);
        self.net.orphans.add(1);
        let is_crowded = self.net.orphans.all() > self.net.config.orphans_max;
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let Some(tcb) = self.sockets.tcp_at(id.index) else {
            return;
        };
        tcb.close(&mut cx);
        if is_crowded && tcb.state != State::Closed {
            tcb.reset(&mut cx, ResetReason::OrphanLimit);
        }
        self.settle(env, id.index);
    }

    /// Ends a connection with a reset, and lets go of it.
    pub fn abort<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<(), Error> {
        if let Ok(tcb) = self.sockets.tcp_mut(id) {
            let mut cx = Context {
                now: env.now(),
                env,
                net: &mut self.net,
            };
            tcb.reset(&mut cx, ResetReason::Aborted);
        }
        self.close(env, id)
    }

    /// A listener takes everything with it that nobody has accepted.
    fn close_listener<E: Env>(&mut self, env: &mut E, id: SocketId) {
        let Some(Socket::Listener(listener)) = self.sockets.remove(id.index) else {
            return;
        };
        self.net.demux.tcp.unbind(listener.local.port, id.index);
        self.reset_children(env, id);
    }

    /// Linux: a listener whose receiving side is shut down is a socket with a name again, and
    /// who waits to accept hears of it.
    fn stop_listening<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<(), Error> {
        self.reset_children(env, id);
        let socket = self.sockets.get_mut(id)?;
        if let Socket::Listener(listener) = socket {
            let (local, options) = (listener.local, listener.options);
            let mut tcb = Boxed::new(Tcb::new(id)).ok_or(Error::NoBuffers)?;
            (tcb.tuple.local, tcb.options, tcb.is_bound) = (local, options, true);
            *socket = Socket::Tcp(tcb);
            if let Some(entry) = self.net.demux.tcp.entry(local.port, id.index) {
                entry.sharing = sharing_of(&options, false);
            }
        }
        let events = Events::READABLE | Events::WRITABLE | Events::READ_CLOSED | Events::HANGUP;
        env.wake(id, events);
        Ok(())
    }

    /// Ends all that a listener has and nobody has accepted.
    fn reset_children<E: Env>(&mut self, env: &mut E, id: SocketId) {
        for index in 0..self.sockets.slots() as u32 {
            let mut cx = Context {
                now: env.now(),
                env,
                net: &mut self.net,
            };
            if let Some(tcb) = self.sockets.tcp_at(index)
                && tcb.is_child_of(id)
            {
                tcb.reset(&mut cx, ResetReason::ListenerClosed);
                self.settle(env, index);
            }
        }
    }
}
