//! Sockets that stand still: a connection that is taken apart, or put together, in its place.
//!
//! A frozen socket holds a [`TcpSnapshot`] instead of a connection, which whoever has frozen it
//! may read and change. It keeps its name, so that what arrives is dropped without an answer and
//! nobody else takes the name. It has no timers and holds no packet memory; its bytes lie on the
//! heap, and are as many as buffers hold. Moving a connection to another stack is freezing it
//! here, taking the value out, and thawing it there.
//!
//! Invariant: the demultiplexer knows a frozen socket by `name`, whatever its snapshot says, and
//! thawing refuses a snapshot that says something else.

use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::boxed::Boxed;
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::stack::Stack;
use crate::table::Socket;

use super::info::State;
use super::snapshot::{TcpSnapshot, push};
use super::tcb::Tcb;

/// A socket that stands still.
pub(crate) struct Frozen {
    pub id: SocketId,
    pub snapshot: TcpSnapshot,
    /// What the demultiplexer knows it by.
    name: Option<FourTuple>,
    /// It has an entry of its own for its local port.
    pub(super) is_bound: bool,
}

/// A queue of a frozen socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrozenQueue {
    /// What the program has sent, as far as the peer has not acknowledged it. What is added
    /// counts as sent.
    Send,
    /// What the program has not received.
    Receive,
}

impl Stack {
    /// Freezes a stream socket. Nothing is sent.
    ///
    /// Errors: `InvalidState` while a connection is being made, and when it is over;
    /// `NoBuffers`; the socket is as it was then.
    pub fn freeze<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<(), Error> {
        let socket = self.sockets.get_mut(id)?;
        let tcb = match socket {
            Socket::Tcp(tcb) => tcb,
            Socket::Frozen(_) => return Ok(()),
            _ => return Err(Error::InvalidState),
        };
        let frozen = Frozen {
            id,
            snapshot: tcb.snapshot(env.now())?,
            name: tcb.is_in_demux.then_some(tcb.tuple),
            is_bound: tcb.is_bound,
        };
        let frozen = Boxed::new(frozen).ok_or(Error::NoBuffers)?;
        self.net.shrink(tcb.grown());
        self.net.tcp_memory.bill(tcb.billed as usize, 0);
        self.net.wheel.disarm(id.index);
        *socket = Socket::Frozen(frozen);
        Ok(())
    }

    /// Makes a connection of what a frozen socket holds, or a socket without one. If it `asks`,
    /// the peer is asked at once where it is.
    ///
    /// Errors: what `import` says; the socket stays frozen then.
    pub fn thaw<E: Env>(&mut self, env: &mut E, id: SocketId, asks: bool) -> Result<(), Error> {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let frozen = self.sockets.frozen(id)?;
        let mut tcb = Boxed::new(Tcb::new(id)).ok_or(Error::NoBuffers)?;
        tcb.options = frozen.snapshot.options;
        tcb.tuple.local = frozen.snapshot.local;
        tcb.is_bound = frozen.is_bound;
        if frozen.snapshot.state != State::Closed {
            frozen.restore(&mut cx, &mut tcb)?;
            tcb.resume(&mut cx, asks);
        }
        *self.sockets.get_mut(id)? = Socket::Tcp(tcb);
        self.settle(env, id.index);
        self.flush(env);
        let events = self.poll(id);
        if events.intersects(Events::all()) {
            env.wake(id, events);
        }
        Ok(())
    }

    /// What a frozen socket holds; `None` of any other.
    pub fn frozen(&self, id: SocketId) -> Option<&TcpSnapshot> {
        match self.sockets.get(id) {
            Ok(Socket::Frozen(frozen)) => Some(&frozen.snapshot),
            _ => None,
        }
    }

    /// The same, to be changed.
    ///
    /// Errors: `InvalidState` if it is not frozen.
    pub fn frozen_mut(&mut self, id: SocketId) -> Result<&mut TcpSnapshot, Error> {
        Ok(&mut self.sockets.frozen_mut(id)?.snapshot)
    }

    /// Our clock in the timestamps of a stream socket, in milliseconds.
    pub fn tcp_clock<E: Env>(&self, env: &E, id: SocketId) -> Result<u32, Error> {
        match self.sockets.get(id)? {
            Socket::Frozen(frozen) => Ok(frozen.snapshot.clocks.map_or(0, |clocks| clocks.own)),
            _ => Ok(self.sockets.tcp(id)?.clock(env.now())),
        }
    }

    /// Bytes that a queue of a frozen socket still takes.
    pub fn frozen_room(&self, id: SocketId, queue: FrozenQueue) -> Result<usize, Error> {
        let snapshot = &self.sockets.frozen(id)?.snapshot;
        let options = &snapshot.options;
        let (held, limit) = match queue {
            FrozenQueue::Send => (snapshot.sending.len(), options.send_buffer),
            FrozenQueue::Receive => (snapshot.receiving.unread.len(), options.recv_buffer),
        };
        Ok((limit as usize).saturating_sub(held))
    }

    /// Adds bytes to a queue of a frozen connection.
    ///
    /// Errors: `NotConnected` without one; `WouldBlock` if they are more than its buffer takes.
    pub fn fill_frozen(
        &mut self,
        id: SocketId,
        queue: FrozenQueue,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if bytes.len() > self.frozen_room(id, queue)? {
            return Err(Error::WouldBlock);
        }
        let snapshot = &mut self.sockets.frozen_mut(id)?.snapshot;
        if snapshot.state == State::Closed {
            return Err(Error::NotConnected);
        }
        match queue {
            FrozenQueue::Send => push(&mut snapshot.sending.unacked, bytes),
            FrozenQueue::Receive => {
                push(&mut snapshot.receiving.unread, bytes)?;
                let nxt = &mut snapshot.receiving.nxt;
                *nxt = nxt.wrapping_add(bytes.len() as u32);
                Ok(())
            }
        }
    }

    /// Gives a frozen socket its peer: from now on it holds a connection, of which that peer is
    /// not told.
    ///
    /// Errors: those of a connection's names.
    pub(crate) fn connect_frozen<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        remote: Endpoint,
    ) -> Result<(), Error> {
        let snapshot = &self.sockets.frozen(id)?.snapshot;
        if snapshot.state != State::Closed {
            return Err(Error::AlreadyConnected);
        }
        let local = self.choose_local(snapshot.local, remote, env.now())?;
        let tuple = FourTuple { local, remote };
        let path = self.context(env).segment_to(remote.addr);
        let frozen = self.sockets.frozen_mut(id)?;
        let snapshot = &mut frozen.snapshot;
        let window = snapshot.options.window_max().min(u32::from(u16::MAX));
        (snapshot.local, snapshot.remote) = (local, remote);
        snapshot.state = State::Established;
        snapshot.sending.mss = path;
        snapshot.receiving.window = window;
        let named = snapshot.check(&self.net);
        let named = named.and_then(|()| self.name_frozen(env, id, tuple));
        if named.is_err() {
            let snapshot = &mut self.sockets.frozen_mut(id)?.snapshot;
            snapshot.remote = Endpoint::any_of(remote.addr);
            snapshot.state = State::Closed;
        }
        named
    }

    /// Takes a free name for a frozen socket.
    fn name_frozen<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        tuple: FourTuple,
    ) -> Result<(), Error> {
        if !self.net.is_name_free(&tuple, env.now()) {
            return Err(Error::AddressInUse);
        }
        self.net.admit(&tuple, id.index)?;
        self.net.recycle_name(&tuple);
        let key = self.net.key;
        self.net.departed.forget(&key, &tuple);
        self.sockets.frozen_mut(id)?.name = Some(tuple);
        Ok(())
    }

    /// Names the end of a frozen socket, without an entry for its port: the connection's
    /// four-tuple suffices, so it may be a port at which others listen.
    pub(crate) fn bind_frozen(&mut self, id: SocketId, local: Endpoint) -> Result<(), Error> {
        let snapshot = &mut self.sockets.frozen_mut(id)?.snapshot;
        let is_nameless = snapshot.state == State::Closed && snapshot.local.port == 0;
        if !is_nameless || local.port == 0 {
            return Err(Error::InvalidState);
        }
        snapshot.local = local;
        Ok(())
    }

    /// Takes a connection out of the stack: its socket is gone, and the peer is told nothing.
    /// For a minute, what it sends is dropped rather than refused.
    ///
    /// Errors: `NotConnected` without a connection, and those of [`freeze`](Self::freeze).
    pub fn export<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<TcpSnapshot, Error> {
        if !self.state(id)?.is_portable() {
            return Err(Error::NotConnected);
        }
        self.freeze(env, id)?;
        self.remove_frozen(env, id).ok_or(Error::BadSocket)
    }

    /// What comes for a connection that has left is refused from now on: its frames go to the stack that has it, so what
    /// comes here comes because that is gone.
    pub fn refuse_departed(&mut self, local: Endpoint, remote: Endpoint) {
        let key = self.net.key;
        let tuple = FourTuple { local, remote };
        self.net.departed.forget(&key, &tuple);
    }

    /// Puts a connection into a new socket of the stack. The socket's owner, its device and its
    /// filter stay its own; of the snapshot's options come those of its manners.
    ///
    /// Errors: `InvalidState` for a socket that has a name, and for a connection that cannot be;
    /// `AddressNotAvailable` for ends that are not ours and a peer's, `AddressInUse` if there is
    /// such a connection; `NoBuffers`. The socket is without a connection then.
    pub fn import<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        snapshot: &TcpSnapshot,
    ) -> Result<(), Error> {
        let tcb = self.sockets.tcp(id)?;
        if tcb.state != State::Closed || tcb.tuple.local.port != 0 {
            return Err(Error::InvalidState);
        }
        let (own, copy) = (tcb.options, snapshot.try_clone()?);
        self.freeze(env, id)?;
        let frozen = self.sockets.frozen_mut(id)?;
        let fresh = core::mem::replace(&mut frozen.snapshot, copy);
        let config = &self.net.config;
        let buffers_max = (config.send_buffer_max, config.recv_buffer_max);
        frozen.snapshot.options = snapshot.options.carried_to(&own, buffers_max);
        let (local, remote) = (snapshot.local, snapshot.remote);
        let checked = frozen.snapshot.check(&self.net);
        let named = checked.and_then(|()| self.name_frozen(env, id, FourTuple { local, remote }));
        let imported = named.and_then(|()| self.thaw(env, id, true));
        if imported.is_err() {
            self.forget_frozen(env, id, fresh);
        }
        imported
    }

    /// A frozen socket is as fresh as it was.
    pub(super) fn forget_frozen<E: Env>(&mut self, env: &mut E, id: SocketId, fresh: TcpSnapshot) {
        if let Ok(frozen) = self.sockets.frozen_mut(id) {
            frozen.snapshot = fresh;
            if let Some(name) = frozen.name.take() {
                self.net.demux.disconnect(&name);
            }
            // A socket without a connection needs no more than it had.
            self.thaw(env, id, false).ok();
        }
    }

    /// Lets go of a frozen socket, and of its connection without a word to the peer.
    pub(crate) fn remove_frozen<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
    ) -> Option<TcpSnapshot> {
        self.sockets.frozen(id).ok()?;
        let Some(Socket::Frozen(frozen)) = self.sockets.remove(id.index) else {
            return None;
        };
        let frozen = frozen.into_inner();
        if frozen.is_bound {
            let port = frozen.snapshot.local.port;
            self.net.demux.tcp.unbind(port, id.index);
        }
        if let Some(name) = &frozen.name {
            let key = self.net.key;
            self.net.demux.disconnect(name);
            self.net.departed.note(&key, name, env.now());
        }
        Some(frozen.snapshot)
    }

    /// A segment has come for the socket in slot `index`, which has no connection.
    #[cold]
    pub(super) fn drop_for_frozen(&mut self, index: u32) {
        if let Some(Socket::Frozen(_)) = self.sockets.at_mut(index) {
            self.net.drop(DropReason::Frozen);
        }
    }
}

impl Frozen {
    /// Makes `tcb` the connection of the snapshot.
    fn restore<E: Env>(&self, cx: &mut Context<'_, E>, tcb: &mut Tcb) -> Result<(), Error> {
        let snapshot = &self.snapshot;
        let tuple = FourTuple {
            local: snapshot.local,
            remote: snapshot.remote,
        };
        if self.name != Some(tuple) {
            return Err(Error::InvalidState);
        }
        snapshot.check(cx.net)?;
        (tcb.tuple, tcb.is_in_demux) = (tuple, true);
        let restored = tcb.restore(cx, snapshot);
        if restored.is_err() {
            cx.net.shrink(tcb.grown());
        }
        restored
    }
}
