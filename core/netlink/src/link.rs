//! Links (`RTM_*LINK`, `struct ifinfomsg`, `IFLA_*`).

use crate::ParseError;
use crate::attribute::Attribute;
use crate::dump::Emit;
use crate::fields::{u8_at, u16_at, u32_at, u64_at};
use crate::parse::Parse;
use crate::writer::Body;

pub(crate) const NEW: u16 = 16;

/// Bytes of a name without its zero (`IFNAMSIZ`).
const NAME_MAX: usize = 15;
/// Bytes of an alternative name without its zero (`ALTIFNAMSIZ`).
const LONG_NAME_MAX: usize = 127;
/// Bytes of a link address (`MAX_ADDR_LEN`).
const ADDRESS_MAX: usize = 32;

mod kind {
    pub const ADDRESS: u16 = 1;
    pub const BROADCAST: u16 = 2;
    pub const NAME: u16 = 3;
    pub const MTU: u16 = 4;
    pub const LOWER: u16 = 5;
    pub const QUEUEING: u16 = 6;
    pub const MASTER: u16 = 10;
    pub const QUEUE_FRAMES: u16 = 13;
    pub const OPERATIONAL_STATE: u16 = 16;
    pub const INFO: u16 = 18;
    pub const NAMESPACE_PROCESS: u16 = 19;
    pub const STATISTICS: u16 = 23;
    pub const GROUP: u16 = 27;
    pub const NAMESPACE_FILE: u16 = 28;
    pub const EXTRAS: u16 = 29;
    pub const PROMISCUITY: u16 = 30;
    pub const TRANSMIT_QUEUES: u16 = 31;
    pub const RECEIVE_QUEUES: u16 = 32;
    pub const CARRIER: u16 = 33;
    pub const MTU_MIN: u16 = 50;
    pub const MTU_MAX: u16 = 51;
    pub const LONG_NAME: u16 = 53;
    /// In [`INFO`].
    pub const INFO_KIND: u16 = 1;
    /// In [`INFO`].
    pub const INFO_DATA: u16 = 2;
}

/// Frames and bytes, as `struct rtnl_link_stats64` starts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Received.
    pub rx_frames: u64,
    /// Sent.
    pub tx_frames: u64,
    /// Received.
    pub rx_bytes: u64,
    /// Sent.
    pub tx_bytes: u64,
    /// Bad frames received.
    pub rx_errors: u64,
    /// Frames not sent by an error.
    pub tx_errors: u64,
    /// Dropped for lack of room, after they were received.
    pub rx_dropped: u64,
    /// Dropped before they were sent.
    pub tx_dropped: u64,
    /// Multicast received.
    pub multicast: u64,
}

impl Statistics {
    /// Numbers in the structure; those behind `multicast` are never ours.
    const FIELDS: usize = 25;

    fn parse(value: &[u8]) -> Self {
        let field = |index: usize| u64_at(value, index * 8);
        Self {
            rx_frames: field(0),
            tx_frames: field(1),
            rx_bytes: field(2),
            tx_bytes: field(3),
            rx_errors: field(4),
            tx_errors: field(5),
            rx_dropped: field(6),
            tx_dropped: field(7),
            multicast: field(8),
        }
    }

    fn emit(&self, to: &mut Body) {
        let fields = [
            self.rx_frames,
            self.tx_frames,
            self.rx_bytes,
            self.tx_bytes,
            self.rx_errors,
            self.tx_errors,
            self.rx_dropped,
            self.tx_dropped,
            self.multicast,
        ];
        for field in fields {
            to.bytes(&field.to_le_bytes());
        }
        to.bytes(&[0; (Self::FIELDS - 9) * 8]);
    }
}

/// A link, or what a command says of one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Link<'a> {
    /// The family that asks; mostly none.
    pub family: u8,
    /// `ARPHRD_*`.
    pub hardware_type: u16,
    /// Its number; zero in a command that names it otherwise.
    pub index: u32,
    /// `IFF_*`.
    pub flags: u32,
    /// Which of the flags a command sets.
    pub changes: u32,
    /// Its name.
    pub name: Option<&'a [u8]>,
    /// A longer name by which a request looks for it.
    pub long_name: Option<&'a [u8]>,
    /// Its link address.
    pub address: Option<&'a [u8]>,
    /// The broadcast address.
    pub broadcast: Option<&'a [u8]>,
    /// Bytes behind the link header.
    pub mtu: Option<u32>,
    /// The least that `mtu` may be.
    pub mtu_min: Option<u32>,
    /// The most that `mtu` may be.
    pub mtu_max: Option<u32>,
    /// The number of the link under a VLAN or VNIC.
    pub lower: Option<u32>,
    /// The number of the bridge or bond that it is in.
    pub master: Option<u32>,
    /// Frames that may wait to be sent.
    pub queue_frames: Option<u32>,
    /// The queueing discipline's name.
    pub queueing: Option<&'a [u8]>,
    /// `IF_OPER_*` (RFC 2863).
    pub operational_state: Option<u8>,
    /// Whether there is a carrier.
    pub carrier: Option<u8>,
    /// The group's number.
    pub group: Option<u32>,
    /// How many want all frames.
    pub promiscuity: Option<u32>,
    /// Queues for sending.
    pub transmit_queues: Option<u32>,
    /// Queues for receiving.
    pub receive_queues: Option<u32>,
    /// `RTEXT_FILTER_*`: what a request wants besides, or instead.
    pub extras: Option<u32>,
    /// What kind of software link, such as `vlan`.
    pub kind: Option<&'a [u8]>,
    /// Attributes that the kind explains.
    pub kind_data: Option<&'a [u8]>,
    /// The process in whose network namespace it is to be.
    pub namespace_process: Option<u32>,
    /// The descriptor of that namespace.
    pub namespace_file: Option<u32>,
    /// Counters.
    pub statistics: Option<Statistics>,
}

impl<'a> Parse<'a> for Link<'a> {
    const STRUCTURE_BYTES: usize = 16;

    fn start(structure: &[u8]) -> Self {
        Self {
            family: u8_at(structure, 0),
            hardware_type: u16_at(structure, 2),
            index: u32_at(structure, 4),
            flags: u32_at(structure, 8),
            changes: u32_at(structure, 12),
            ..Self::default()
        }
    }

    fn take(&mut self, attribute: &Attribute<'a>) -> Result<bool, ParseError> {
        match attribute.kind {
            kind::ADDRESS => self.address = Some(attribute.bytes(ADDRESS_MAX)?),
            kind::BROADCAST => self.broadcast = Some(attribute.bytes(ADDRESS_MAX)?),
            kind::NAME => self.name = Some(attribute.text(NAME_MAX)?),
            kind::LONG_NAME => self.long_name = Some(attribute.text(LONG_NAME_MAX)?),
            kind::MTU => self.mtu = Some(attribute.u32()?),
            kind::MTU_MIN => self.mtu_min = Some(attribute.u32()?),
            kind::MTU_MAX => self.mtu_max = Some(attribute.u32()?),
            kind::LOWER => self.lower = Some(attribute.u32()?),
            kind::MASTER => self.master = Some(attribute.u32()?),
            kind::QUEUE_FRAMES => self.queue_frames = Some(attribute.u32()?),
            kind::QUEUEING => self.queueing = Some(attribute.text(NAME_MAX)?),
            kind::OPERATIONAL_STATE => self.operational_state = Some(attribute.u8()?),
            kind::CARRIER => self.carrier = Some(attribute.u8()?),
            kind::GROUP => self.group = Some(attribute.u32()?),
            kind::PROMISCUITY => self.promiscuity = Some(attribute.u32()?),
            kind::TRANSMIT_QUEUES => self.transmit_queues = Some(attribute.u32()?),
            kind::RECEIVE_QUEUES => self.receive_queues = Some(attribute.u32()?),
            kind::EXTRAS => self.extras = Some(attribute.u32()?),
            kind::NAMESPACE_PROCESS => self.namespace_process = Some(attribute.u32()?),
            kind::NAMESPACE_FILE => self.namespace_file = Some(attribute.u32()?),
            kind::STATISTICS => self.statistics = Some(Statistics::parse(attribute.value)),
            kind::INFO => return self.take_info(attribute),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'a> Link<'a> {
    /// What kind of link.
    fn take_info(&mut self, info: &Attribute<'a>) -> Result<bool, ParseError> {
        let mut all_known = true;
        for inner in info.nested() {
            match inner.kind {
                kind::INFO_KIND => self.kind = Some(inner.text(NAME_MAX)?),
                kind::INFO_DATA => self.kind_data = Some(inner.value),
                _ => all_known = false,
            }
        }
        Ok(all_known)
    }
}

impl Emit for Link<'_> {
    fn kind(&self) -> u16 {
        NEW
    }

    fn emit(&self, to: &mut Body) {
        to.u8(self.family).u8(0).u16(self.hardware_type);
        to.u32(self.index).u32(self.flags).u32(self.changes);
        to.optional_text(kind::NAME, self.name)
            .optional_text(kind::LONG_NAME, self.long_name)
            .optional_u32(kind::QUEUE_FRAMES, self.queue_frames)
            .optional_u8(kind::OPERATIONAL_STATE, self.operational_state)
            .optional_u32(kind::MTU, self.mtu)
            .optional_u32(kind::MTU_MIN, self.mtu_min)
            .optional_u32(kind::MTU_MAX, self.mtu_max)
            .optional_u32(kind::GROUP, self.group)
            .optional_u32(kind::PROMISCUITY, self.promiscuity)
            .optional_u32(kind::TRANSMIT_QUEUES, self.transmit_queues)
            .optional_u32(kind::RECEIVE_QUEUES, self.receive_queues)
            .optional_u32(kind::EXTRAS, self.extras)
            .optional_u32(kind::LOWER, self.lower)
            .optional_u32(kind::MASTER, self.master)
            .optional_u32(kind::NAMESPACE_PROCESS, self.namespace_process)
            .optional_u32(kind::NAMESPACE_FILE, self.namespace_file)
            .optional_u8(kind::CARRIER, self.carrier)
            .optional_text(kind::QUEUEING, self.queueing)
            .optional(kind::ADDRESS, self.address)
            .optional(kind::BROADCAST, self.broadcast);
        if let Some(statistics) = &self.statistics {
            to.nested(kind::STATISTICS, |to| statistics.emit(to));
        }
        if self.kind.is_some() || self.kind_data.is_some() {
            to.nested(kind::INFO, |to| {
                to.optional_text(kind::INFO_KIND, self.kind)
                    .optional(kind::INFO_DATA, self.kind_data);
            });
        }
    }
}
