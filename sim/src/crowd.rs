//! Clients that open a connection for each request, as `ab` does without keep-alive.
//!
//! Each interval the next idle client begins: the interval is what a request costs, so the
//! rate is steady as long as a client is idle when its turn comes. A client that waits for
//! its peer takes no turn; that is how a stall shows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::Ipv4Addr;

use base::Duration;
use inet::{Endpoint, Error, Events, SocketId, Transport};

use crate::host::Host;
use crate::world::{Side, World};

const PORT: u16 = 3000;

/// Who closes first, and so has to remember the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closer {
    /// The server, behind its response.
    Server,
    /// The client, when it has the response.
    Client,
}

/// Clients on the left host, and the server that they ask.
pub struct Crowd {
    server: Side,
    address: Ipv4Addr,
    closer: Closer,
    listener: SocketId,
    idle: VecDeque<usize>,
    busy: HashMap<SocketId, usize>,
    sessions: HashSet<SocketId>,
    done: u64,
    /// Connections that could not be opened, or ended with an error.
    pub failures: u64,
}

impl Crowd {
    /// So many clients; `address` says which host the server is on.
    pub fn new(world: &mut World, clients: usize, address: Ipv4Addr, closer: Closer) -> Self {
        let server = if address == Host::address(2) {
            Side::Right
        } else {
            Side::Left
        };
        let Host { stack, .. } = world.host(server);
        let listener = stack.open(Transport::Tcp).expect("a socket");
        let name = Endpoint {
            port: PORT,
            ..Endpoint::ANY
        };
        stack.bind(listener, name).expect("a free port");
        stack.listen(listener, 511).expect("a bound socket");
        Self {
            server,
            address,
            closer,
            listener,
            idle: (0..clients).collect(),
            busy: HashMap::new(),
            sessions: HashSet::new(),
            done: 0,
            failures: 0,
        }
    }

    /// Requests answered in each of the next seconds.
    pub fn run(&mut self, world: &mut World, seconds: u32, interval: Duration) -> Vec<u64> {
        let turns = Duration::from_secs(1).as_nanos() / interval.as_nanos();
        let second = |_| {
            let before = self.done;
            for _ in 0..turns {
                self.begin(world);
                self.serve(world);
                world.run_for(interval);
            }
            self.done - before
        };
        (0..seconds).map(second).collect()
    }

    fn begin(&mut self, world: &mut World) {
        let Some(client) = self.idle.pop_front() else {
            return;
        };
        let Host { stack, env } = world.host(Side::Left);
        let socket = stack.open(Transport::Tcp).expect("a socket");
        let to = Endpoint::v4(self.address, PORT);
        match stack.connect(env, socket, to) {
            Ok(()) => drop(self.busy.insert(socket, client)),
            Err(_) => {
                stack.close(env, socket).expect("our socket");
                self.failures += 1;
                self.idle.push_back(client);
            }
        }
    }

    /// Does what programs do that were woken, until none is.
    fn serve(&mut self, world: &mut World) {
        loop {
            let mut was_woken = false;
            for side in [Side::Left, Side::Right] {
                let host = world.host(side);
                for (socket, _) in std::mem::take(&mut host.env.woken) {
                    was_woken = true;
                    self.react(host, side, socket);
                }
            }
            if !was_woken {
                return;
            }
        }
    }

    fn react(&mut self, host: &mut Host, side: Side, socket: SocketId) {
        if side == self.server && socket == self.listener {
            while let Ok(session) = host.stack.accept(&mut host.env, socket) {
                self.sessions.insert(session);
                self.answer(host, session);
            }
        } else if side == self.server && self.sessions.contains(&socket) {
            self.answer(host, socket);
        } else if side == Side::Left && self.busy.contains_key(&socket) {
            self.ask(host, socket);
        }
    }

    /// The server's part of one connection.
    fn answer(&mut self, host: &mut Host, session: SocketId) {
        let is_over = match receive(host, session) {
            Ok(0) => true,
            Ok(_) => {
                say(host, session, b"200 OK");
                self.closer == Closer::Server
            }
            Err(Error::WouldBlock) => false,
            Err(_) => true,
        };
        if is_over {
            self.sessions.remove(&session);
            host.stack
                .close(&mut host.env, session)
                .expect("it is ours");
        }
    }

    /// The client's part.
    fn ask(&mut self, host: &mut Host, socket: SocketId) {
        if host.stack.take_error(socket).is_some() {
            self.failures += 1;
            self.finish(host, socket);
            return;
        }
        let is_new = host.stack.unsent(socket) == Ok(0)
            && host.stack.poll(socket).contains(Events::WRITABLE)
            && !host.stack.poll(socket).contains(Events::READABLE);
        if is_new {
            say(host, socket, b"GET /");
        }
        let is_answered = match receive(host, socket) {
            Ok(0) => true,
            Ok(_) => self.closer == Closer::Client || receive(host, socket) == Ok(0),
            Err(_) => false,
        };
        if is_answered {
            self.done += 1;
            self.finish(host, socket);
        }
    }

    fn finish(&mut self, host: &mut Host, socket: SocketId) {
        host.stack.close(&mut host.env, socket).expect("it is ours");
        self.idle.extend(self.busy.remove(&socket));
    }
}

fn receive(host: &mut Host, socket: SocketId) -> Result<usize, Error> {
    let Host { stack, env } = host;
    stack.recv_with(env, socket, usize::MAX, &mut |bytes| bytes.len())
}

fn say(host: &mut Host, socket: SocketId, text: &[u8]) {
    let Host { stack, env } = host;
    let sent = stack.send_with(env, socket, text.len(), &mut |space| {
        space.copy_from_slice(text);
        space.len()
    });
    assert_eq!(sent, Ok(text.len()), "an empty buffer takes a line");
}
