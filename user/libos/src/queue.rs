//! A link, its frames and a stack, and the loop that runs them.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use base::Instant;
use hal::PortCounters;
use inet::{Endpoint, Error, Stats, TcpSnapshot};
use mbuf::{Chain, Mbuf};
use rt::{AnyIo, Counts, FrameIo};

use crate::config::QueueConfig;
use crate::doorbell::Doorbell;
use crate::event::Event;
use crate::opening;
use crate::socket::{Connection, Listener, UdpSocket};
use crate::station::Station;

/// While frames wait for their link the loop looks this often whether their chunks came back.
const PATIENCE_NANOS: u64 = 10_000_000;

/// Everything of one link, and the only one who has it: a queue belongs to one thread at a time.
pub struct Queue {
    station: Station<AnyIo>,
    /// Last: a driver stops its card before the card is given back.
    doorbell: Doorbell,
}

impl Queue {
    /// Takes a link, or a card.
    ///
    /// Errors: those of the system: no such link, somebody has it, no right to
    /// (CAP_NET_RAW), a limit on pinned memory; `InvalidInput` for a configuration that cannot be,
    /// `Unsupported` for a device that is no card with a driver here.
    pub fn open(config: &QueueConfig) -> io::Result<Self> {
        let (doorbell, link) = opening::open(config)?;
        let mut seed = [0; 16];
        rt::random(&mut seed)?;
        let seed = split(seed);
        let mut station = Station::new(link.io, link.mac, link.mtu, link.stack, seed);
        station.set_address(config.address, config.gateway);
        Ok(Self { doorbell, station })
    }

    /// What it is made of, for who drives it in another way.
    pub fn into_parts(self) -> (Doorbell, Station<AnyIo>) {
        (self.doorbell, self.station)
    }

    /// Sends what the program has sent since the last call, and receives until there is something for it
    /// ([`receive`](Self::receive)), waiting for at most `timeout`. It may come back without.
    ///
    /// Errors: the link is gone.
    pub fn poll(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let end = timeout.map(|timeout| later(now(), timeout));
        loop {
            self.flush()?;
            let now = now();
            let taken = self.station.turn(now);
            if self.station.has_events() || end.is_some_and(|end| end <= now) {
                return Ok(());
            }
            if taken == 0 {
                self.wait(now, end)?;
            }
        }
    }

    /// Gets ready to wait in another way, epoll(7) for instance, until the queue's descriptor is readable, and
    /// then to [`poll`](Self::poll). Returns for how long at most; zero if there is something to do.
    ///
    /// Errors: the link is gone.
    pub fn arm(&mut self) -> io::Result<Option<Duration>> {
        self.arm_by(AnyIo::arm)
    }

    /// The same for who waits for something else that will come sooner than frames do: frames are not looked for before.
    ///
    /// Errors: the link is gone.
    pub fn arm_at_once(&mut self) -> io::Result<Option<Duration>> {
        self.arm_by(AnyIo::arm_at_once)
    }

    fn arm_by(&mut self, arm: impl FnOnce(&mut AnyIo) -> bool) -> io::Result<Option<Duration>> {
        self.flush()?;
        if self.station.has_events() {
            return Ok(Some(Duration::ZERO));
        }
        self.doorbell.forget();
        if arm(self.station.io()) {
            return Ok(Some(Duration::ZERO));
        }
        Ok(self.longest_wait(now()).map(Duration::from_nanos))
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.station.io().flush() {
            true => self.doorbell.kick(),
            false => Ok(()),
        }
    }

    fn wait(&mut self, now: Instant, end: Option<Instant>) -> io::Result<()> {
        // What a timer has sent.
        self.flush()?;
        if self.station.io().arm() {
            return Ok(());
        }
        let to_end = end.map(|end| end.since(now).as_nanos());
        let waits = [self.longest_wait(now), to_end];
        self.doorbell.wait(waits.into_iter().flatten().min())
    }

    /// For so many nanoseconds the stack has nothing to do unless frames come.
    fn longest_wait(&mut self, now: Instant) -> Option<u64> {
        let due = self.station.next_deadline();
        let to_due = due.map(|due| due.since(now).as_nanos());
        let patience = (self.station.io().in_flight() != 0).then_some(PATIENCE_NANOS);
        to_due.into_iter().chain(patience).min()
    }

    /// The next thing that happened to a socket of the queue; `None` when it is time to
    /// [`poll`](Self::poll).
    #[inline]
    pub fn receive(&mut self) -> Option<Event> {
        self.station.receive()
    }

    /// Receives datagrams to a port; zero picks one.
    pub fn bind(&mut self, port: u16) -> Result<UdpSocket, Error> {
        self.station.bind(port)
    }

    /// Sends a datagram, which is given away: not copied, if it is in one piece.
    #[inline]
    pub fn send_to(&mut self, socket: UdpSocket, to: Endpoint, data: Chain) -> Result<(), Error> {
        self.station.send_to(socket, to, data)
    }

    /// Sends a datagram of bytes that are copied.
    pub fn send_bytes_to(
        &mut self,
        socket: UdpSocket,
        to: Endpoint,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.station.send_bytes_to(socket, to, bytes)
    }

    /// Lets peers connect to a port; `backlog` of them wait until they are received.
    pub fn listen(&mut self, port: u16, backlog: usize) -> Result<Listener, Error> {
        self.station.listen(port, backlog)
    }

    /// Asks a peer; [`Event::Connected`] or [`Event::Lost`] follows.
    pub fn connect(&mut self, host: Ipv4Addr, port: u16) -> Result<Connection, Error> {
        self.station.connect(Endpoint::v4(host, port))
    }

    /// Sends what there is room for of `data`, not copied, and leaves the rest in it;
    /// [`Event::Sendable`] follows then.
    ///
    /// Errors: `WouldBlock` if there is none.
    pub fn send(&mut self, connection: Connection, data: &mut Chain) -> Result<usize, Error> {
        self.station.send(connection, data)
    }

    /// Sends what there is room for of bytes that are copied.
    ///
    /// Errors: `WouldBlock` if there is none; [`Event::Sendable`] follows.
    pub fn send_bytes(&mut self, connection: Connection, bytes: &[u8]) -> Result<usize, Error> {
        self.station.send_bytes(connection, bytes)
    }

    /// Lets a connection go: what was sent still reaches the peer. Its name is dead.
    pub fn close(&mut self, connection: Connection) -> Result<(), Error> {
        self.station.close(connection)
    }

    /// Takes a connection out of the queue as a value, for another queue of the same address
    /// ([`Station::export`]).
    pub fn export(&mut self, connection: Connection) -> Result<TcpSnapshot, Error> {
        self.station.export(connection)
    }

    /// Puts a connection into the queue that was taken out of another ([`Station::import`]).
    pub fn import(&mut self, snapshot: &TcpSnapshot) -> Result<Connection, Error> {
        self.station.import(snapshot)
    }

    /// Receives no more datagrams.
    pub fn unbind(&mut self, socket: UdpSocket) -> Result<(), Error> {
        self.station.unbind(socket)
    }

    /// Lets no more peers connect.
    pub fn stop_listening(&mut self, listener: Listener) -> Result<(), Error> {
        self.station.stop_listening(listener)
    }

    /// An empty buffer of packet memory, with room for headers in front; `None` while memory is
    /// scarce.
    pub fn buffer(&mut self) -> Option<Mbuf> {
        self.station.buffer()
    }

    /// What happened to frames.
    pub fn counts(&mut self) -> Counts {
        self.station.io().counts().clone()
    }

    /// What the driver of the program's own card counted, drops among it.
    pub fn port_counters(&mut self) -> Option<PortCounters> {
        self.station.io().port_counters()
    }

    /// What the stack did and dropped.
    pub fn stats(&self) -> &Stats {
        self.station.stats()
    }
}

/// To wait for, after [`Queue::arm`].
impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }
}

fn now() -> Instant {
    Instant::from_nanos(rt::monotonic_nanos())
}

fn later(now: Instant, timeout: Duration) -> Instant {
    let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(now.as_nanos().saturating_add(nanos))
}

fn split(seed: [u8; 16]) -> [u64; 2] {
    let (words, _) = seed.as_chunks();
    let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
    [0; 2].map(|zero: u64| words.next().unwrap_or(zero))
}
