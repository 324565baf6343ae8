//! Spreads TCP connections over servers, by the headers of their segments (an L4 load balancer, or middlebox), on a
//! link of its own:
//!
//!     balancer vnic0 10.0.2.60:80 10.0.2.61 10.0.2.62
//!
//! No TCP runs here, and no byte is copied: a frame that comes from a client goes on to a server from a port of ours
//! that stands for the client, and what the server sends to that port goes back ([`flows`]); the same buffer is
//! received, changed and sent ([`segment`]). This is the interface below `sietch_io::Queue`: rings and packet memory (`rt`).
//!
//! All stations are on one network. Not here: fragments, UDP, IPv6, servers that are looked after.

mod flows;
mod segment;
mod stations;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mbuf::{Chain, Pool};
use rt::{Exchange, Interface, RingMemory, Setup, XdpSocket, wait_for};

use flows::{Flows, Origin};
use segment::{Ends, Segment};
use stations::Stations;

/// Frames that are taken at once.
const BATCH_FRAMES: usize = 64;
const SETUP: Setup = Setup {
    entries: 1024,
    chunks: 4096,
    reserve: 256,
};
/// Servers whose station nobody has told are asked for so often.
const ASK_AGAIN: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [link, service, servers @ ..] = arguments.as_slice() else {
        eprintln!("balancer LINK ADDRESS:PORT SERVER...");
        return ExitCode::from(2);
    };
    match serve(link, service, servers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("balancer: {link}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until the link is gone.
fn serve(link: &str, service: &str, servers: &[String]) -> Result<(), Box<dyn Error>> {
    let servers: Vec<Ipv4Addr> = servers
        .iter()
        .map(|server| server.parse())
        .collect::<Result<_, _>>()?;
    let interface = Interface::find(link)?;
    let (socket, io) = XdpSocket::open(interface.index, 0..=0, SETUP)?;
    let service: SocketAddrV4 = service.parse()?;
    let mut balancer = Balancer {
        io,
        service,
        flows: Flows::new(servers.len()),
        stations: Stations::new(interface.mac, *service.ip(), servers),
    };
    println!("serving");
    io::stdout().flush()?;
    let mut asked: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if asked.is_none_or(|asked| now.duration_since(asked) >= ASK_AGAIN) {
            balancer.ask();
            asked = Some(now);
        }
        let taken = balancer.turn(now);
        if balancer.io.submit() {
            socket.kick()?;
        }
        if taken == 0 {
            wait_for(socket.as_fd(), None, Some(ASK_AGAIN.as_nanos() as u64))?;
        }
    }
}

struct Balancer {
    io: Exchange<RingMemory>,
    /// What clients connect to.
    service: SocketAddrV4,
    flows: Flows,
    stations: Stations,
}

impl Balancer {
    /// Takes a batch of frames, and sends those on that go somewhere; how many came.
    fn turn(&mut self, now: Instant) -> usize {
        self.io.complete();
        let mut taken = 0;
        while taken < BATCH_FRAMES
            && let Some(mut frame) = self.io.take()
        {
            taken += 1;
            let goes_on = frame
                .bytes_mut()
                .is_some_and(|bytes| self.handle(bytes, now));
            if goes_on {
                self.io.stage_frame(Chain::from(frame));
            }
        }
        self.io.received();
        self.io.supply();
        taken
    }

    /// Changes a frame so that it goes where it is to go; false if it goes nowhere.
    fn handle(&mut self, frame: &mut [u8], now: Instant) -> bool {
        match Segment::parse(frame) {
            Some(mut segment) => self.redirect(&mut segment, now).is_some(),
            None => self.stations.answer(frame),
        }
    }

    fn redirect(&mut self, segment: &mut Segment<'_>, now: Instant) -> Option<()> {
        let ends = segment.ends();
        if ends.to == self.service {
            let origin = Origin {
                client: ends.from,
                station: segment.sender(),
            };
            let (port, server) = self.flows.of_client(origin, segment.flags(), now)?;
            let (address, station) = self.stations.server(server)?;
            let ends = Ends {
                from: SocketAddrV4::new(*self.service.ip(), port),
                to: SocketAddrV4::new(address, self.service.port()),
            };
            segment.redirect((self.stations.own(), station), ends);
        } else {
            let Origin { client, station } =
                self.flows.of_server(ends.to.port(), segment.flags(), now)?;
            let ends = Ends {
                from: self.service,
                to: client,
            };
            segment.redirect((self.stations.own(), station), ends);
        }
        Some(())
    }

    /// Asks for stations that are not known.
    fn ask(&mut self) {
        for question in self.stations.questions() {
            if let Some(mut frame) = self.io.umem().alloc() {
                frame.append(&question);
                self.io.stage_frame(Chain::from(frame));
            }
        }
    }
}
