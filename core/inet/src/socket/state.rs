//! What is true of a socket, and what may be changed.

use crate::addr::SocketId;
use crate::context::Context;
use crate::env::{Env, Events};
use crate::error::Error;
use crate::options::Options;
use crate::stack::Stack;
use crate::table::Socket;
use crate::tcp::{ConnectionEntry, State, Tcb, TcpInfo};
use crate::udp::Datagram;

use super::names::sharing_of;

impl Stack {
    /// What is true now. A stale id has hung up.
    #[inline]
    pub fn poll(&self, id: SocketId) -> Events {
        match self.sockets.get(id) {
            Ok(Socket::Tcp(tcb)) => tcb.poll(&self.net),
            Ok(Socket::Listener(listener)) => listener.poll(),
            Ok(Socket::Udp(socket)) => socket.poll(),
            Ok(Socket::Frozen(_)) => Events::empty(),
            _ => Events::HANGUP | Events::ERROR,
        }
    }

    /// The same without a look at whether there is room to send.
    #[inline]
    pub fn poll_but_writable(&self, id: SocketId) -> Events {
        match self.sockets.get(id) {
            Ok(Socket::Tcp(tcb)) => tcb.poll_but_writable(),
            _ => self.poll(id) - Events::WRITABLE,
        }
    }

    /// The same after bytes were read. `None` if fewer bytes may come than the program waits for: what is true then is not
    /// known from wakes.
    #[inline]
    pub fn poll_after_read(&self, id: SocketId) -> Option<Events> {
        match self.sockets.get(id) {
            Ok(Socket::Tcp(tcb)) if tcb.options.receive_low_water > 1 => None,
            Ok(Socket::Tcp(tcb)) => Some(tcb.poll_but_writable()),
            _ => Some(self.poll(id) - Events::WRITABLE),
        }
    }

    /// Whether so many bytes wait in a stream, as many as there is room for, or no more will come: for who wants more
    /// or fewer at once than [`Options::receive_low_water`]. There is nothing to wait for in others.
    pub fn has_unread(&self, id: SocketId, least: usize) -> bool {
        match self.sockets.get(id) {
            Ok(Socket::Tcp(tcb)) => tcb.has_unread(least) || tcb.receives_no_more(),
            _ => true,
        }
    }

    /// Whether a stream has room to send.
    #[inline]
    pub fn is_writable(&self, id: SocketId) -> bool {
        match self.sockets.get(id) {
            Ok(Socket::Tcp(tcb)) => tcb.is_writable(&self.net),
            _ => self.poll(id).contains(Events::WRITABLE),
        }
    }

    /// The options as they are.
    pub fn options(&self, id: SocketId) -> Result<&Options, Error> {
        match self.sockets.get(id)? {
            Socket::Tcp(tcb) => Ok(&tcb.options),
            Socket::Listener(listener) => Ok(&listener.options),
            Socket::Udp(socket) => Ok(&socket.options),
            Socket::Frozen(frozen) => Ok(&frozen.snapshot.options),
            Socket::Free { .. } => Err(Error::BadSocket),
        }
    }

    /// Corks a stream, or ends that, which sends what waited: servers do both for each answer.
    pub fn cork<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        is_corked: bool,
    ) -> Result<(), Error> {
        let Socket::Tcp(tcb) = self.sockets.get_mut(id)? else {
            return self.configure(env, id, |options| options.cork = is_corked);
        };
        tcb.options.cork = is_corked;
        // What waits already does not wait longer for a cork than others.
        if !is_corked || !tcb.is_all_sent() {
            self.push_out(env, id);
        }
        Ok(())
    }

    /// Changes options. Ending `cork` or setting `no_delay` sends what waited.
    pub fn configure<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        change: impl FnOnce(&mut Options),
    ) -> Result<(), Error> {
        let now = env.now();
        match self.sockets.get_mut(id)? {
            Socket::Tcp(tcb) => {
                let had = tcb.options;
                let was_readable = tcb.poll_but_writable().contains(Events::READABLE);
                change(&mut tcb.options);
                let keepalive = |options: &Options| {
                    (
                        options.keepalive,
                        options.keep_idle_secs,
                        options.keep_interval_secs,
                    )
                };
                if keepalive(&had) != keepalive(&tcb.options) {
                    tcb.arm_keepalive(now);
                }
                tcb.choose_congestion();
                let net = &mut self.net;
                tcb.follow_buffer_options(&had, &mut Context { now, env, net });
                tcb.tell_if_readable_by_options(&had, was_readable, env);
                let (local, sharing) = (tcb.tuple.local, sharing_of(&tcb.options, false));
                if tcb.is_bound
                    && let Some(entry) = self.net.demux.tcp.entry(local.port, id.index)
                {
                    entry.sharing = sharing;
                }
                self.push_out(env, id);
            }
            Socket::Listener(listener) => {
                change(&mut listener.options);
                let most = self.net.config.recv_buffer_max;
                listener.options.limit_low_water(most);
            }
            Socket::Frozen(frozen) => change(&mut frozen.snapshot.options),
            Socket::Udp(socket) => {
                let queued = |of: &Options| (of.queue_failures_v4, of.queue_failures_v6);
                let had = queued(&socket.options);
                change(&mut socket.options);
                socket.drop_template();
                let (v4, v6) = queued(&socket.options);
                if had.0 && !v4 || had.1 && !v6 {
                    socket.forget_failures(&mut self.net);
                }
                let (port, sharing) = (socket.local.port, sharing_of(&socket.options, false));
                if let Some(entry) = self.net.demux.udp.entry(port, id.index) {
                    entry.sharing = sharing;
                }
            }
            Socket::Free { .. } => return Err(Error::BadSocket),
        }
        let options = *self.options(id)?;
        self.net.keeps_headers |= options.is_filtered;
        self.net.limits_hops |= options.min_ttl != 0 || options.min_hop_count != 0;
        Ok(())
    }

    /// Takes the error that waits.
    pub fn take_error(&mut self, id: SocketId) -> Option<Error> {
        match self.sockets.get_mut(id) {
            Ok(Socket::Tcp(tcb)) => tcb.take_error(),
            Ok(Socket::Udp(socket)) => socket.error.take(),
            _ => None,
        }
    }

    /// The state of a stream socket.
    pub fn state(&self, id: SocketId) -> Result<State, Error> {
        match self.sockets.get(id)? {
            Socket::Tcp(tcb) => Ok(tcb.state),
            Socket::Listener(_) => Ok(State::Listen),
            Socket::Frozen(frozen) => Ok(frozen.snapshot.state),
            _ => Err(Error::InvalidState),
        }
    }

    /// A snapshot of a stream socket.
    pub fn info(&self, id: SocketId) -> Result<TcpInfo, Error> {
        match self.sockets.get(id)? {
            Socket::Frozen(frozen) => Ok(frozen.snapshot.info()),
            _ => Ok(self.sockets.tcp(id)?.info()),
        }
    }

    /// Connections that a listener and its like in other stacks have to accept, and how many may
    /// wait.
    pub fn accept_queue(&self, id: SocketId) -> Result<(usize, usize), Error> {
        match self.sockets.get(id)? {
            Socket::Listener(listener) => Ok((listener.ready.all(), listener.backlog)),
            _ => Err(Error::InvalidState),
        }
    }

    /// Bytes that a receive call would find; of a datagram socket, those of its first one.
    pub fn unread(&self, id: SocketId) -> Result<usize, Error> {
        match self.sockets.get(id)? {
            Socket::Tcp(tcb) => Ok(tcb.unread().len()),
            Socket::Frozen(frozen) => Ok(frozen.snapshot.receiving.unread.len()),
            Socket::Udp(socket) => Ok(socket.front().map_or(0, |first| first.payload.len())),
            _ => Err(Error::InvalidState),
        }
    }

    /// Memory that waiting datagrams are charged with, and how many found no room.
    pub fn datagram_memory(&self, id: SocketId) -> Result<(usize, u32), Error> {
        match self.sockets.get(id)? {
            Socket::Udp(socket) => Ok((socket.queued_bytes(), socket.drops())),
            _ => Err(Error::InvalidState),
        }
    }

    /// Bytes without an acknowledgement, sent or not.
    pub fn unsent(&self, id: SocketId) -> Result<usize, Error> {
        match self.sockets.get(id)? {
            Socket::Frozen(frozen) => Ok(frozen.snapshot.sending.len()),
            _ => Ok(self.sockets.tcp(id)?.unsent()),
        }
    }

    /// Bytes, a FIN counted as one, that peers have not acknowledged of connections that nobody holds any more.
    pub fn orphaned(&self) -> usize {
        let left = |socket: &Socket| match socket {
            Socket::Tcp(tcb) => tcb.orphaned(),
            _ => 0,
        };
        self.sockets.iter().map(left).sum()
    }

    /// Takes the first datagram.
    pub fn recv_from(&mut self, id: SocketId) -> Result<Datagram, Error> {
        let socket = self.sockets.udp_mut(id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        socket.pop(&mut self.net).ok_or(Error::WouldBlock)
    }

    /// Looks at the first datagram.
    pub fn peek_from(&mut self, id: SocketId) -> Result<&Datagram, Error> {
        let socket = self.sockets.udp_mut(id)?;
        if let Some(error) = socket.error.take() {
            return Err(error);
        }
        socket.front().ok_or(Error::WouldBlock)
    }

    pub(crate) fn entry_of(socket: &Socket) -> Option<ConnectionEntry> {
        match socket {
            Socket::Tcp(tcb) => Some(ConnectionEntry {
                socket: Some(tcb.id),
                state: tcb.state,
                local: tcb.tuple.local,
                remote: tcb.tuple.remote,
                unread: tcb.unread().len(),
                unacked: tcb.unsent(),
            }),
            Socket::Frozen(frozen) => Some(ConnectionEntry {
                socket: Some(frozen.id),
                state: frozen.snapshot.state,
                local: frozen.snapshot.local,
                remote: frozen.snapshot.remote,
                unread: frozen.snapshot.receiving.unread.len(),
                unacked: frozen.snapshot.sending.len(),
            }),
            Socket::Listener(listener) => Some(ConnectionEntry {
                socket: Some(listener.id),
                state: State::Listen,
                local: listener.local,
                remote: crate::addr::Endpoint::any_of(listener.local.addr),
                unread: listener.ready.all(),
                unacked: listener.backlog,
            }),
            _ => None,
        }
    }
}

impl Tcb {
    /// Options were changed that say for how many bytes the program waits and how many there is room for.
    fn follow_buffer_options<E: Env>(&mut self, had: &Options, cx: &mut Context<'_, E>) {
        if had.receive_low_water != self.options.receive_low_water {
            self.make_room_for_low_water(cx.net);
        }
        let waits_for = |options: &Options| (options.receive_low_water, options.window_max());
        if waits_for(had) == waits_for(&self.options) {
            return;
        }
        // The peer may wait for the room that there is now.
        self.on_read(cx);
    }

    /// A new low water is an event where it is reached, as Linux has it; a smaller buffer where it is full with it.
    fn tell_if_readable_by_options<E: Env>(&self, had: &Options, was_readable: bool, env: &mut E) {
        let is_news = !was_readable || had.receive_low_water != self.options.receive_low_water;
        if is_news && self.poll_but_writable().contains(Events::READABLE) {
            env.wake(self.id, Events::READABLE);
        }
    }
}
