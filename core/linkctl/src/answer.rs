//! What tools are told.

use alloc::string::String;
use alloc::vec::Vec;

use link::flow::{FlowProps, Rule};
use link::links::{Class, LinkError, MacOrigin};
use link::vlan::VlanId;
use wire::MacAddr;

use crate::bytes::{choice, message, record};

/// What a tool is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// It is made.
    Created {
        /// Its name.
        name: String,
        /// Its address.
        mac: MacAddr,
    },
    /// At most [`crate::PAGE_LINKS`] links.
    Links {
        /// In their order.
        rows: Vec<LinkRow>,
        /// Where the next page begins, if there is one.
        next: Option<u16>,
    },
    /// The groups of a card, in its order; then by which rings its links send.
    Groups(Vec<GroupRow>),
    /// The properties of a link, in the order of tools.
    Props(Vec<PropRow>),
    /// What a link has carried.
    Statistics(Statistics),
    /// Statistics of a link.
    Kstats {
        /// At most [`crate::PAGE_BLOCKS`] blocks, in their order.
        blocks: Vec<KstatBlock>,
        /// Where the next page begins, if there is one.
        next: Option<u16>,
    },
    /// Frames that one ring of a port dropped.
    Drops {
        /// Of one reason after the other, the oldest first.
        rows: Vec<DropRow>,
        /// The next ring, if there is one.
        next: Option<u16>,
    },
    /// The flows of one link.
    Flows {
        /// In the order in which they were made.
        rows: Vec<FlowRow>,
        /// Where to look further, if there are more.
        next: Option<u16>,
    },
    /// What a flow has carried.
    FlowStatistics(Statistics),
    /// The filters of a link, in the order in which they were made.
    Filters(Vec<FilterRow>),
    /// The queues of a link that programs have, in their order.
    Doorbells(Vec<DoorbellRow>),
    /// It is not done, and nothing has changed.
    Refused(Refusal),
}

/// Why something is not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The bytes are no request.
    Malformed,
    /// The answer is longer than an answer may be.
    TooLong,
    /// Who asks may only look.
    NotPermitted,
    /// There is no link of that name.
    NoSuchLink {
        /// Which name.
        name: String,
    },
    /// The link is not of the class that it must be.
    NotA {
        /// What it must be.
        class: Class,
    },
    /// A property cannot be set so.
    Setting {
        /// Which property.
        name: String,
        /// Why.
        error: LinkError,
    },
    /// The link layer refuses.
    Link(LinkError),
    /// The stack refuses.
    Address(AddressError),
    /// The link has no filter of that number.
    NoSuchFilter,
}

/// Why a stack does not take or give up an address or a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressError {
    /// The link has no interface in the first stack.
    NoInterface,
    /// It is there already.
    Exists,
    /// It is not there.
    NotThere,
    /// There is no room for it; an interface has one address of IPv4.
    NoRoom,
    /// No host or network can have it.
    BadAddress,
    /// The router is no neighbour.
    NoRouter,
    /// The stack cannot do that.
    Unsupported,
}

/// What a link is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkRow {
    /// Its name.
    pub name: String,
    /// What it is.
    pub class: Class,
    /// Its largest payload, in bytes.
    pub mtu: u16,
    /// Whether frames can move; `None` if nobody knows.
    pub is_up: Option<bool>,
    /// Megabits a second; zero if unknown.
    pub speed_mbps: u64,
    /// Its port, if that is another link.
    pub over: Option<String>,
    /// Its address.
    pub mac: MacAddr,
    /// Where that came from.
    pub mac_origin: MacOrigin,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// The device that drives it, if it is a card's own.
    pub device: Option<String>,
    /// Whether a stream holds it.
    pub is_held: bool,
}

/// A group of a card's rings, or those that links send by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupRow {
    /// Whether frames leave by them, or come.
    pub is_tx: bool,
    /// Its first ring.
    pub first: u16,
    /// How many there are.
    pub rings: u16,
    /// The CPU that polls each of them and that it interrupts, if they bring frames; `None` where
    /// whichever CPU waits polls it.
    pub cpus: Vec<Option<u32>>,
    /// Links whose addresses it has, or that send by it.
    pub clients: Vec<String>,
}

/// A property of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PropRow {
    /// Its name.
    pub name: String,
    /// Whether nobody can set it.
    pub is_read_only: bool,
    /// What holds.
    pub value: String,
    /// What would hold if nobody had set it.
    pub default: String,
    /// What it can be.
    pub possible: String,
}

/// What is counted at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KstatBlock {
    /// Who counts: `link`, or a link's name.
    pub module: String,
    /// What is counted at, by illumos' names where it has one.
    pub name: String,
    /// Names and values.
    pub rows: Vec<Kstat>,
}

/// A statistic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kstat {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: u64,
}

/// A frame that went no further.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropRow {
    /// How many such events the ring had of this reason before.
    pub serial: u64,
    /// Nanoseconds since the boot.
    pub time_ns: u64,
    /// Whose it was; `None` if it was nobody's.
    pub link: Option<String>,
    /// Why, by the name of the counter.
    pub reason: String,
    /// How many frames; the rest is about the first.
    pub frames: u32,
    /// Bytes of the frame.
    pub len: u32,
    /// Who sent it: an IP address and, if it has one, a port, or a station.
    pub from: String,
    /// Whom it was for.
    pub to: String,
    /// The number of IP's protocol; `None` if it is not IP.
    pub protocol: Option<u8>,
    /// The frame's EtherType; zero if it has no header.
    pub ether_type: u16,
}

/// What a flow is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowRow {
    /// Its name.
    pub name: String,
    /// Its link.
    pub link: String,
    /// What it matches.
    pub rule: Rule,
    /// What its traffic gets.
    pub props: FlowProps,
}

/// A filter over a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilterRow {
    /// Its number.
    pub id: u32,
    /// The queue that somebody has by it.
    pub queue: Option<u16>,
    /// The process that took the queue.
    pub process: Option<u32>,
    /// Its user.
    pub user: Option<u32>,
    /// What may be received.
    pub receives: String,
    /// What may be sent.
    pub sends: String,
    /// Frames that the queue got because of it.
    pub hits: u64,
    /// Frames that were not to leave.
    pub refused: u64,
}

/// A queue that a program has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DoorbellRow {
    /// Which one.
    pub queue: u16,
    /// The process that took it.
    pub process: u32,
    /// Somebody waits and is woken by the next frame.
    pub is_armed: bool,
    /// How often somebody was.
    pub wakes: u64,
    /// Entries that wait in the ring of received frames; `None` without it.
    pub rx: Option<u32>,
    /// Chunks that are to be filled.
    pub fill: Option<u32>,
    /// Frames that are to be sent.
    pub tx: Option<u32>,
    /// Chunks whose frames are sent.
    pub completion: Option<u32>,
}

/// `ipackets rbytes ierrors opackets obytes oerrors`: frames and bytes received, frames
/// lost, and the same for what was sent.
pub type Statistics = [u64; 6];

choice!(Answer {
    0 => Done,
    1 => Created { name, mac },
    2 => Links { rows, next },
    3 => Groups(rows),
    4 => Props(rows),
    5 => Statistics(counts),
    6 => Flows { rows, next },
    7 => FlowStatistics(counts),
    8 => Refused(refusal),
    9 => Kstats { blocks, next },
    10 => Drops { rows, next },
    11 => Filters(rows),
    12 => Doorbells(rows),
});
choice!(Refusal {
    0 => Malformed,
    1 => TooLong,
    2 => NotPermitted,
    3 => NoSuchLink { name },
    4 => NotA { class },
    5 => Setting { name, error },
    6 => Link(error),
    7 => Address(error),
    8 => NoSuchFilter,
});
choice!(AddressError {
    0 => NoInterface,
    1 => Exists,
    2 => NotThere,
    3 => NoRoom,
    4 => BadAddress,
    5 => NoRouter,
    6 => Unsupported,
});
record!(LinkRow {
    name,
    class,
    mtu,
    is_up,
    speed_mbps,
    over,
    mac,
    mac_origin,
    vid,
    device,
    is_held,
});
record!(GroupRow {
    is_tx,
    first,
    rings,
    cpus,
    clients
});
record!(PropRow {
    name,
    is_read_only,
    value,
    default,
    possible
});
record!(KstatBlock { module, name, rows });
record!(Kstat { name, value });
record!(DropRow {
    serial,
    time_ns,
    link,
    reason,
    frames,
    len,
    from,
    to,
    protocol,
    ether_type,
});
record!(FlowRow {
    name,
    link,
    rule,
    props
});
record!(FilterRow {
    id,
    queue,
    process,
    user,
    receives,
    sends,
    hits,
    refused
});
record!(DoorbellRow {
    queue,
    process,
    is_armed,
    wakes,
    rx,
    fill,
    tx,
    completion
});
message!(Answer);
