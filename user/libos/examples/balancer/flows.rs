//! Which connection goes to which server: each has a port of ours, by which the server knows it.
//!
//! There are as many connections as ports. A SYN takes the next port in turn that is free: of a connection that both
//! ends have closed or one has reset, or of which nothing was heard for a minute. Where none of the next few is, it is
//! dropped, and the client asks again.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use wire::TcpFlags;

/// Ports that stand for clients.
const PORT_FIRST: u16 = 32_768;
const PORTS: usize = 16_384;
/// So many are looked at for one that is free.
const LOOKS_MAX: usize = 64;
const IDLE: Duration = Duration::from_secs(60);
/// Last acknowledgements of a closed connection still find their way.
const LINGER: Duration = Duration::from_secs(2);

/// Whom a connection comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub client: SocketAddrV4,
    /// The client's, or the router's before it.
    pub station: [u8; 6],
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    origin: Origin,
    server: usize,
    heard: Instant,
    /// The client and the server have sent all they had.
    are_done: [bool; 2],
}

#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

impl Flow {
    fn note(&mut self, side: Side, flags: TcpFlags, now: Instant) {
        self.heard = now;
        if flags.has(TcpFlags::RST) {
            self.are_done = [true; 2];
        } else if flags.has(TcpFlags::FIN) {
            self.are_done[side as usize] = true;
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let patience = match self.are_done {
            [true, true] => LINGER,
            _ => IDLE,
        };
        now.saturating_duration_since(self.heard) >= patience
    }
}

/// See the module.
pub struct Flows {
    servers: usize,
    /// By their ports.
    all: Vec<Option<Flow>>,
    places: HashMap<SocketAddrV4, usize>,
    next_place: usize,
    next_server: usize,
}

impl Flows {
    /// None, to so many servers.
    pub fn new(servers: usize) -> Self {
        Self {
            servers,
            all: vec![None; PORTS],
            places: HashMap::new(),
            next_place: 0,
            next_server: 0,
        }
    }

    /// The port and the server for what a client sends.
    pub fn of_client(
        &mut self,
        origin: Origin,
        flags: TcpFlags,
        now: Instant,
    ) -> Option<(u16, usize)> {
        let known = self.places.get(&origin.client).copied();
        let opens = flags.has(TcpFlags::SYN);
        let place = match known {
            Some(place) => place,
            None if opens => self.open(origin, now)?,
            None => return None,
        };
        let flow = self.all.get_mut(place)?.as_mut()?;
        if opens {
            flow.are_done = [false; 2];
        }
        flow.note(Side::Client, flags, now);
        Some((PORT_FIRST + place as u16, flow.server))
    }

    /// The client for what a server sends to a port.
    pub fn of_server(&mut self, port: u16, flags: TcpFlags, now: Instant) -> Option<Origin> {
        let place = usize::from(port.checked_sub(PORT_FIRST)?);
        let flow = self.all.get_mut(place)?.as_mut()?;
        flow.note(Side::Server, flags, now);
        Some(flow.origin)
    }

    fn open(&mut self, origin: Origin, now: Instant) -> Option<usize> {
        let place = self.free_place(now)?;
        if let Some(old) = self.all[place].take() {
            self.places.remove(&old.origin.client);
        }
        self.all[place] = Some(Flow {
            origin,
            server: self.next_server,
            heard: now,
            are_done: [false; 2],
        });
        self.next_server = (self.next_server + 1) % self.servers.max(1);
        self.places.insert(origin.client, place);
        Some(place)
    }

    fn free_place(&mut self, now: Instant) -> Option<usize> {
        (0..LOOKS_MAX).find_map(|_| {
            let place = self.next_place;
            self.next_place = (place + 1) % PORTS;
            let is_free = self.all[place].is_none_or(|flow| flow.is_over(now));
            is_free.then_some(place)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const ACK: TcpFlags = TcpFlags::ACK;
    const SYN: TcpFlags = TcpFlags::SYN;

    fn origin(number: u32) -> Origin {
        let host = Ipv4Addr::new(10, 1, (number >> 16) as u8, 1);
        Origin {
            client: SocketAddrV4::new(host, number as u16),
            station: [2; 6],
        }
    }

    #[test]
    fn connections_go_to_servers_in_turn_and_stay_there() {
        let (mut flows, now) = (Flows::new(3), Instant::now());
        let opened: Vec<_> = (0..30)
            .map(|number| flows.of_client(origin(number), SYN, now).unwrap())
            .collect();
        for (number, (port, server)) in (0..).zip(&opened) {
            assert_eq!(*server, number as usize % 3);
            assert_eq!(
                flows.of_client(origin(number), ACK, now),
                Some((*port, *server))
            );
            assert_eq!(flows.of_server(*port, ACK, now), Some(origin(number)));
        }
    }

    #[test]
    fn what_nobody_has_opened_goes_nowhere() {
        let (mut flows, now) = (Flows::new(2), Instant::now());
        assert_eq!(flows.of_client(origin(1), ACK, now), None);
        for port in [0, 80, PORT_FIRST, PORT_FIRST + PORTS as u16, u16::MAX] {
            assert_eq!(flows.of_server(port, SYN, now), None);
        }
    }

    #[test]
    fn a_full_table_refuses_until_connections_are_closed_or_silent() {
        let (mut flows, now) = (Flows::new(2), Instant::now());
        for number in 0..PORTS as u32 {
            assert!(flows.of_client(origin(number), SYN, now).is_some());
        }
        assert_eq!(flows.of_client(origin(70_000), SYN, now), None);
        let (port, _) = flows.of_client(origin(64), TcpFlags::FIN, now).unwrap();
        assert_eq!(flows.of_server(port, TcpFlags::FIN, now), Some(origin(64)));
        assert_eq!(
            flows.of_client(origin(70_000), SYN, now),
            None,
            "last segments are on their way"
        );
        let later = now + LINGER;
        let taken = (0..PORTS / LOOKS_MAX)
            .filter_map(|_| flows.of_client(origin(70_000), SYN, later))
            .next();
        assert_eq!(taken.map(|(port, _)| port), Some(port));
        assert!(flows.of_client(origin(80_000), SYN, now + IDLE).is_some());
        assert!(flows.places.len() <= PORTS);
    }
}
