//! Where packets come from: an interface or a file, by libpcap.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use pcap::{Active, Capture, Error, Offline, Precision};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Seen;
use crate::args::Args;

/// How long packets may wait to be handed over many at once.
const WAIT_MS: i32 = 100;

/// What an interface counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missed {
    /// Packets that the filter let pass.
    pub received: u64,
    /// Those for which there was no room.
    pub dropped: u64,
}

/// What comes next.
#[derive(Debug)]
pub enum Next<'a> {
    /// A packet.
    Packet(Seen<'a>),
    /// Nothing passes at the moment.
    Quiet,
    /// Nothing: the file is over, or a signal came.
    End,
}

enum Kind {
    Live(Capture<Active>),
    Kept(Capture<Offline>),
}

/// An open interface or file.
pub struct Source {
    kind: Kind,
    /// The interface's name.
    pub name: Option<String>,
}

impl Source {
    /// Opens what `args` name, with their filter.
    pub fn open(args: &Args) -> Result<Self, String> {
        match &args.input {
            Some(path) => Self::open_file(path, &args.filter()),
            None => Self::open_interface(args),
        }
    }

    fn open_file(path: &Path, filter: &str) -> Result<Self, String> {
        let opened = Capture::from_file_with_precision(path, Precision::Nano);
        let mut capture = opened.map_err(|error| format!("{}: {error}", path.display()))?;
        capture.filter(filter, true).map_err(not_a_filter)?;
        Ok(Self {
            kind: Kind::Kept(capture),
            name: None,
        })
    }

    fn open_interface(args: &Args) -> Result<Self, String> {
        let name = match &args.device {
            Some(name) => name.clone(),
            None => first_interface()?,
        };
        let opened = Capture::from_device(name.as_str())
            .map(|capture| capture.promisc(!args.no_promiscuous))
            .map(|capture| capture.snaplen(i32::try_from(args.snaplen).unwrap_or(i32::MAX)))
            .map(|capture| capture.timeout(WAIT_MS).precision(Precision::Nano))
            .and_then(Capture::open);
        let mut capture = opened.map_err(|error| format!("{name}: {error}"))?;
        capture.filter(&args.filter(), true).map_err(not_a_filter)?;
        end_with_signals(&mut capture)?;
        let how = match args.no_promiscuous {
            true => "non-promiscuous",
            false => "promiscuous mode",
        };
        eprintln!("Using device {name} ({how})");
        Ok(Self {
            kind: Kind::Live(capture),
            name: Some(name),
        })
    }

    /// The link's type in tcpdump.org's list.
    pub fn link_type(&self) -> i32 {
        match &self.kind {
            Kind::Live(capture) => capture.get_datalink().0,
            Kind::Kept(capture) => capture.get_datalink().0,
        }
    }

    /// The next packet, which becomes the one with this number.
    pub fn next(&mut self, number: u64) -> Result<Next<'_>, String> {
        let next = match &mut self.kind {
            Kind::Live(capture) => capture.next_packet(),
            Kind::Kept(capture) => capture.next_packet(),
        };
        match next {
            Ok(packet) => Ok(Next::Packet(seen(number, &packet))),
            Err(Error::TimeoutExpired) => Ok(Next::Quiet),
            Err(Error::NoMorePackets) => Ok(Next::End),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What was missed; `None` for a file.
    pub fn statistics(&mut self) -> Result<Option<Missed>, String> {
        let Kind::Live(capture) = &mut self.kind else {
            return Ok(None);
        };
        let counted = capture.stats().map_err(|error| error.to_string())?;
        Ok(Some(Missed {
            received: counted.received.into(),
            dropped: counted.dropped.into(),
        }))
    }
}

fn seen<'a>(number: u64, packet: &pcap::Packet<'a>) -> Seen<'a> {
    let stamp = packet.header.ts;
    let seconds = u64::try_from(stamp.tv_sec).unwrap_or(0);
    // Nanoseconds, as they were asked for.
    let nanos = u32::try_from(stamp.tv_usec).unwrap_or(0);
    Seen {
        number,
        time: Duration::new(seconds, nanos),
        len: packet.header.len,
        bytes: packet.data,
    }
}

fn not_a_filter(error: Error) -> String {
    format!("the expression is no filter: {error}")
}

/// The first interface in /proc/net/dev that is not loopback.
fn first_interface() -> Result<String, String> {
    let table = fs::read_to_string("/proc/net/dev").map_err(|error| error.to_string())?;
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names
        .map(|(name, _)| name.trim().to_string())
        .find(|name| name != "lo")
        .ok_or_else(|| "there is no interface but loopback: name it with -d".into())
}

/// A signal ends the packets and not the program, which has a file to finish.
fn end_with_signals(capture: &mut Capture<Active>) -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| error.to_string())?;
    let end = capture.breakloop_handle();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            end.breakloop();
        }
    });
    Ok(())
}
