//! What is known of one neighbour, and what is said of it.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use base::{Duration, Instant};
use mbuf::Chain;
use wire::{ETHERNET_HEADER_BYTES, EthernetRepr, MacAddr};

use crate::output::Offload;

/// The header of frames to one station, as it lies on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkHeader(pub [u8; ETHERNET_HEADER_BYTES]);

impl LinkHeader {
    pub fn new(header: &EthernetRepr) -> Self {
        let mut bytes = [0; ETHERNET_HEADER_BYTES];
        header.emit(&mut bytes);
        Self(bytes)
    }

    pub fn station(&self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = self.0;
        MacAddr([a, b, c, d, e, f])
    }
}

/// A packet that waits for a station.
pub(crate) struct Waiting {
    pub packet: Chain,
    pub offload: Offload,
}

/// How long answers are trusted and questions wait; routers may change it (RFC 4861 6.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timing {
    pub reachable: Duration,
    pub retransmit: Duration,
}

impl Timing {
    pub const DEFAULT: Self = Self {
        reachable: Duration::from_secs(30),
        retransmit: Duration::from_secs(1),
    };
}

/// What is known of a neighbour (RFC 4861 7.3.2), or that an administrator has said so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeighborState {
    /// A question is out to everybody.
    Incomplete,
    /// Confirmed lately.
    Reachable,
    /// Perhaps still there.
    Stale,
    /// Used since it was stale.
    Delay,
    /// A question is out to the station.
    Probe,
    /// It was set: nobody is asked and nobody is believed.
    Permanent,
}

use NeighborState as State;

pub(super) struct Entry {
    pub state: State,
    /// Meaningless while incomplete.
    pub header: LinkHeader,
    pub confirmed: Instant,
    pub questions: u8,
    /// When the state ends by itself; never, if it does not.
    pub due: Instant,
    pub waiting: VecDeque<Waiting>,
}

/// What to do with a packet for a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resolution {
    /// Send it with this header.
    Known(LinkHeader),
    /// Let it wait and ask.
    Ask,
    /// Let it wait; a question is out.
    Wait,
}

/// A question to repeat, or a neighbour that is gone with the packets that waited.
pub(crate) enum Overdue {
    Ask(IpAddr, Option<MacAddr>),
    Gone(VecDeque<Waiting>),
}

/// What somebody says of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The station; an answer may leave it out.
    pub header: Option<LinkHeader>,
    /// It answers a question of ours: the neighbour hears us.
    pub is_answer: bool,
    /// It replaces another station.
    pub is_override: bool,
    /// It is remembered although we did not ask.
    pub is_welcome: bool,
}

/// What a claim leads to.
#[derive(Default)]
pub(crate) struct Learned {
    /// Packets that waited, and the header that they get.
    pub waiting: VecDeque<Waiting>,
    pub header: Option<LinkHeader>,
    /// A copy somewhere is now wrong.
    pub is_changed: bool,
    /// Packets of another neighbour that had to go.
    pub displaced: VecDeque<Waiting>,
}

impl Entry {
    /// Of a station that is known without a question; it stays in `state` until it is used.
    pub fn known(state: State, header: LinkHeader) -> Self {
        Self {
            state,
            header,
            confirmed: Instant::START,
            questions: 0,
            due: Instant::NEVER,
            waiting: VecDeque::new(),
        }
    }

    /// The first question goes out with it.
    pub fn incomplete(due: Instant) -> Self {
        Self {
            questions: 1,
            due,
            ..Self::known(State::Incomplete, LinkHeader([0; ETHERNET_HEADER_BYTES]))
        }
    }
}
