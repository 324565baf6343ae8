//! A whole stack is replaced: all its connections are copied as values, and put into the next stack.
//!
//! Nothing changes here meanwhile, so that nothing needs to be undone if the next stack cannot have them: who does this
//! drops one of the two stacks in the end, before it sends again. Besides connections that a program holds
//! (`snapshot`) there are those that wait at a listener, those that a program has let go and whose last bytes are
//! on their way, and those that are over, of which a program may still read the last bytes and the error.
//!
//! Not here: connections that are being made. Their peers ask again; who does this waits a moment for them
//! ([`half_open`](Stack::half_open)).

use alloc::vec::Vec;

use super::export::bytes_of;
use super::info::State;
use super::snapshot::TcpSnapshot;
use super::tcb::Tcb;
use crate::addr::{Endpoint, FourTuple, SocketId, Transport};
use crate::boxed::Boxed;
use crate::context::Context;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::options::Options;
use crate::stack::Stack;
use crate::table::Socket;

/// A connection that is over, and that its program has not let go.
#[derive(PartialEq, Eq, Debug)]
pub struct PastConnection {
    /// Our end.
    pub local: Endpoint,
    /// The peer's end.
    pub remote: Endpoint,
    /// Bytes that the program has not read.
    pub unread: Vec<u8>,
    /// What it was not told of yet.
    pub error: Option<Error>,
    /// The socket's options.
    pub options: Options,
}

impl Stack {
    /// A copy of a connection, which goes on.
    ///
    /// Errors: `InvalidState` while it is being made, and when it is over; `NoBuffers`.
    pub fn snapshot<E: Env>(&self, env: &E, id: SocketId) -> Result<TcpSnapshot, Error> {
        self.sockets.tcp(id)?.snapshot(env.now())
    }

    /// Copies of the connections that wait at a listener, in their order.
    ///
    /// Errors: `InvalidState` for what does not listen, `NoBuffers`.
    pub fn waiting_snapshots<E: Env>(
        &self,
        env: &E,
        id: SocketId,
    ) -> Result<Vec<TcpSnapshot>, Error> {
        let Socket::Listener(listener) = self.sockets.get(id)? else {
            return Err(Error::InvalidState);
        };
        let mut found = Vec::new();
        for child in listener.ready.iter() {
            // One that is over has nothing more to say to who accepts it.
            if let Ok(tcb) = self.sockets.tcp(*child)
                && tcb.state.is_portable()
            {
                push(&mut found, tcb.snapshot(env.now())?)?;
            }
        }
        Ok(found)
    }

    /// Takes the connections that wait at a listener out of the stack, in their order; those that are over are closed. SYNs
    /// that wait for room get none by that.
    pub fn export_waiting<E: Env>(&mut self, env: &mut E, id: SocketId) -> Vec<TcpSnapshot> {
        let mut found = Vec::new();
        while let Ok(child) = self.next_ready(id) {
            let exported = self.export(env, child);
            if exported.and_then(|it| push(&mut found, it)).is_err() {
                // It is ours, if it is there.
                self.close(env, child).ok();
            }
        }
        found
    }

    /// Copies of the connections that their programs have let go.
    ///
    /// Errors: `NoBuffers`.
    pub fn orphan_snapshots<E: Env>(&self, env: &E) -> Result<Vec<TcpSnapshot>, Error> {
        let mut found = Vec::new();
        for socket in self.sockets.iter() {
            if let Socket::Tcp(tcb) = socket
                && tcb.is_orphan
                && tcb.state.is_portable()
            {
                push(&mut found, tcb.snapshot(env.now())?)?;
            }
        }
        Ok(found)
    }

    /// Connections that peers have asked for and that are not made yet.
    pub fn half_open(&self) -> usize {
        let is_half_open = |socket: &&Socket| matches!(socket, Socket::Tcp(tcb) if tcb.state == State::SynReceived);
        self.sockets.iter().filter(is_half_open).count()
    }

    /// A copy of a connection that is over; `None` of any other socket.
    pub fn past(&self, id: SocketId) -> Result<Option<PastConnection>, Error> {
        let tcb = self.sockets.tcp(id)?;
        let is_past = match tcb.state {
            State::TimeWait => true,
            State::Closed => tcb.receiver.is_finished,
            _ => false,
        };
        if !is_past {
            return Ok(None);
        }
        Ok(Some(PastConnection {
            local: tcb.tuple.local,
            remote: tcb.tuple.remote,
            unread: bytes_of(&tcb.receiver.queue)?,
            error: tcb.error,
            options: tcb.options,
        }))
    }

    /// Puts a connection that is over into a new socket.
    ///
    /// Errors: `InvalidState` for a socket that has a name, `NoBuffers`.
    pub fn import_past<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        past: &PastConnection,
    ) -> Result<(), Error> {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let tcb = self.sockets.tcp_mut(id)?;
        if tcb.state != State::Closed || tcb.tuple.local.port != 0 {
            return Err(Error::InvalidState);
        }
        let config = &cx.net.config;
        let buffers_max = (config.send_buffer_max, config.recv_buffer_max);
        tcb.receiver.queue = cx.chain_of(&past.unread)?;
        tcb.options = past.options.carried_to(&tcb.options, buffers_max);
        tcb.tuple = FourTuple {
            local: past.local,
            remote: past.remote,
        };
        tcb.receiver.is_finished = true;
        tcb.error = past.error;
        tcb.bill(cx.net);
        Ok(())
    }

    /// Has a connection wait at a listener until it is accepted, whatever waits there already.
    ///
    /// Errors: `InvalidState` for what does not listen, and those of [`import`](Self::import).
    pub fn import_waiting<E: Env>(
        &mut self,
        env: &mut E,
        listener: SocketId,
        snapshot: &TcpSnapshot,
    ) -> Result<(), Error> {
        let child = self.open(Transport::Tcp)?;
        let queued = self
            .import(env, child, snapshot)
            .and_then(|()| self.queue_child(listener, child));
        if queued.is_err() {
            self.close(env, child)?;
            return queued;
        }
        env.wake(listener, Events::READABLE);
        Ok(())
    }

    /// Has the connection of a frozen socket wait at the listener of its local end until it is accepted; the socket is
    /// without a connection then.
    ///
    /// Errors: `InvalidState` for a socket that is not frozen, without a connection, or bound to a port beside it;
    /// `ConnectionRefused` if nobody listens there; it stays frozen then. Those of
    /// [`import_waiting`](Self::import_waiting); it goes on in its socket then.
    pub fn give_to_listener<E: Env>(&mut self, env: &mut E, id: SocketId) -> Result<(), Error> {
        let frozen = self.sockets.frozen(id)?;
        if frozen.is_bound || !frozen.snapshot.state.is_portable() {
            return Err(Error::InvalidState);
        }
        let snapshot = frozen.snapshot.try_clone()?;
        let tuple = FourTuple {
            local: snapshot.local,
            remote: snapshot.remote,
        };
        let index = self.listener_for(&tuple);
        let listener = index.and_then(|index| self.sockets.listener_at(index));
        let listener = listener.ok_or(Error::ConnectionRefused)?.id;
        let fresh = Boxed::new(Tcb::new(id)).ok_or(Error::NoBuffers)?;
        let fresh = fresh.snapshot(env.now())?;
        self.forget_frozen(env, id, fresh);
        let waits = self.import_waiting(env, listener, &snapshot);
        if waits.is_err() {
            // Without memory for it its peer hears of that when it asks.
            self.import(env, id, &snapshot).ok();
        }
        waits
    }

    fn queue_child(&mut self, parent: SocketId, child: SocketId) -> Result<(), Error> {
        let Socket::Listener(listener) = self.sockets.get_mut(parent)? else {
            return Err(Error::InvalidState);
        };
        if !listener.ready.reserve(1) {
            return Err(Error::NoBuffers);
        }
        listener.ready.push(child);
        self.sockets.tcp_mut(child)?.parent = Some(parent);
        Ok(())
    }
}

fn push(to: &mut Vec<TcpSnapshot>, snapshot: TcpSnapshot) -> Result<(), Error> {
    to.try_reserve(1).map_err(|_| Error::NoBuffers)?;
    to.push(snapshot);
    Ok(())
}
