//! DHCP for IPv4 (RFC 2131, 2132), the client's half.

use core::net::Ipv4Addr;

use crate::bytes::{ipv4_at, put, put_u16, put_u32, u8_at, u32_at};
use crate::{MacAddr, Malformed};

const BOOT_REQUEST: u8 = 1;
const BOOT_REPLY: u8 = 2;
const MAGIC: u32 = 0x6382_5363;
const FIXED_BYTES: usize = 236;
const OPTIONS_AT: usize = FIXED_BYTES + 4;
const BROADCAST_FLAG: u16 = 0x8000;

const PAD: u8 = 0;
const SUBNET_MASK: u8 = 1;
const ROUTER: u8 = 3;
const DNS_SERVER: u8 = 6;
const HOST_NAME: u8 = 12;
const REQUESTED_IP: u8 = 50;
const LEASE_TIME: u8 = 51;
const MESSAGE_TYPE: u8 = 53;
const SERVER_ID: u8 = 54;
const PARAMETER_LIST: u8 = 55;
const RENEWAL_TIME: u8 = 58;
const REBINDING_TIME: u8 = 59;
const CLIENT_ID: u8 = 61;
const END: u8 = 255;

/// The message type option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DhcpMessage {
    /// Who offers addresses?
    Discover,
    /// A server offers one.
    Offer,
    /// The client wants it, or wants to keep it.
    Request,
    /// The client found it in use.
    Decline,
    /// The server grants it.
    Ack,
    /// The server refuses.
    Nak,
    /// The client gives it back.
    Release,
}

impl DhcpMessage {
    fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Discover,
            2 => Self::Offer,
            3 => Self::Request,
            4 => Self::Decline,
            5 => Self::Ack,
            6 => Self::Nak,
            7 => Self::Release,
            _ => return None,
        })
    }

    const fn number(self) -> u8 {
        match self {
            Self::Discover => 1,
            Self::Offer => 2,
            Self::Request => 3,
            Self::Decline => 4,
            Self::Ack => 5,
            Self::Nak => 6,
            Self::Release => 7,
        }
    }
}

/// A message from a server.
#[derive(Clone, Copy, Debug)]
pub struct DhcpView<'a> {
    bytes: &'a [u8],
}

/// What a server's message says in its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DhcpOptions {
    /// What it is.
    pub message: Option<DhcpMessage>,
    /// The network's mask.
    pub subnet_mask: Option<Ipv4Addr>,
    /// The default gateway.
    pub router: Option<Ipv4Addr>,
    /// Up to two name servers.
    pub dns: [Option<Ipv4Addr>; 2],
    /// Who says so.
    pub server: Option<Ipv4Addr>,
    /// Seconds that the address is ours.
    pub lease_secs: Option<u32>,
    /// Seconds until we ask the same server again.
    pub renew_secs: Option<u32>,
    /// Seconds until we ask any server.
    pub rebind_secs: Option<u32>,
}

impl<'a> DhcpView<'a> {
    /// Checks that `bytes` are a server's message on Ethernet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() < OPTIONS_AT {
            return Err(Malformed::Truncated);
        }
        let is_reply =
            u8_at(bytes, 0) == BOOT_REPLY && u8_at(bytes, 1) == 1 && u8_at(bytes, 2) == 6;
        if !is_reply || u32_at(bytes, FIXED_BYTES) != MAGIC {
            return Err(Malformed::Version);
        }
        Ok(Self { bytes })
    }

    /// The client's random number, returned.
    pub fn transaction(&self) -> u32 {
        u32_at(self.bytes, 4)
    }

    /// The address offered or granted.
    pub fn your_ip(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, 16)
    }

    /// For whom it is.
    pub fn client_mac(&self) -> MacAddr {
        MacAddr(crate::bytes::array(self.bytes, 28))
    }

    /// The options that a client needs; malformed ones end the list.
    pub fn options(&self) -> DhcpOptions {
        let mut options = DhcpOptions::default();
        let mut rest = self.bytes.get(OPTIONS_AT..).unwrap_or_default();
        loop {
            match rest {
                [PAD, tail @ ..] => rest = tail,
                [END, ..] => return options,
                [kind, len, tail @ ..] if usize::from(*len) <= tail.len() => {
                    let (value, tail) = tail.split_at(usize::from(*len));
                    options.set(*kind, value);
                    rest = tail;
                }
                _ => return options,
            }
        }
    }
}

impl DhcpOptions {
    fn set(&mut self, kind: u8, value: &[u8]) {
        let address = |at: usize| (value.len() >= at + 4).then(|| ipv4_at(value, at));
        let seconds = (value.len() == 4).then(|| u32_at(value, 0));
        match kind {
            SUBNET_MASK => self.subnet_mask = address(0),
            ROUTER => self.router = address(0),
            DNS_SERVER => self.dns = [address(0), address(4)],
            LEASE_TIME => self.lease_secs = seconds,
            RENEWAL_TIME => self.renew_secs = seconds,
            REBINDING_TIME => self.rebind_secs = seconds,
            SERVER_ID => self.server = address(0),
            MESSAGE_TYPE => self.message = DhcpMessage::from_number(u8_at(value, 0)),
            _ => {}
        }
    }
}

/// A message to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DhcpRepr<'a> {
    /// What it is.
    pub message: DhcpMessage,
    /// A random number that the answer returns.
    pub transaction: u32,
    /// Seconds since the client began.
    pub elapsed_secs: u16,
    /// Our station.
    pub mac: MacAddr,
    /// Our address, if we may already answer for it; unspecified otherwise.
    pub client_ip: Ipv4Addr,
    /// The address that we want.
    pub requested_ip: Option<Ipv4Addr>,
    /// The server whose offer we take.
    pub server: Option<Ipv4Addr>,
    /// A name to be known by, at most 63 bytes.
    pub host_name: Option<&'a str>,
}

impl DhcpRepr<'_> {
    /// Bytes of a message: BOOTP's least size with room for the options.
    pub const BYTES: usize = OPTIONS_AT + 128;

    /// Writes [`Self::BYTES`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let Some(bytes) = bytes.get_mut(..Self::BYTES) else {
            return;
        };
        bytes.fill(0);
        put(bytes, 0, [BOOT_REQUEST, 1, 6, 0]);
        put_u32(bytes, 4, self.transaction);
        put_u16(bytes, 8, self.elapsed_secs);
        if self.client_ip.is_unspecified() {
            put_u16(bytes, 10, BROADCAST_FLAG);
        }
        put(bytes, 12, self.client_ip.octets());
        put(bytes, 28, self.mac.0);
        put_u32(bytes, FIXED_BYTES, MAGIC);
        self.emit_options(&mut bytes[OPTIONS_AT..]);
    }

    fn emit_options(&self, bytes: &mut [u8]) {
        let mut at = 0;
        let mut add = |kind: u8, value: &[u8]| {
            if let Some(room) = bytes.get_mut(at..at + 2 + value.len()) {
                room[0] = kind;
                room[1] = value.len() as u8;
                room[2..].copy_from_slice(value);
                at += room.len();
            }
        };
        add(MESSAGE_TYPE, &[self.message.number()]);
        let mut client_id = [1; 7];
        client_id[1..].copy_from_slice(&self.mac.0);
        add(CLIENT_ID, &client_id);
        if let Some(ip) = self.requested_ip {
            add(REQUESTED_IP, &ip.octets());
        }
        if let Some(server) = self.server {
            add(SERVER_ID, &server.octets());
        }
        if let Some(name) = self.host_name.filter(|name| name.len() <= 63) {
            add(HOST_NAME, name.as_bytes());
        }
        add(
            PARAMETER_LIST,
            &[
                SUBNET_MASK,
                ROUTER,
                DNS_SERVER,
                LEASE_TIME,
                RENEWAL_TIME,
                REBINDING_TIME,
            ],
        );
        if let Some(end) = bytes.get_mut(at) {
            *end = END;
        }
    }
}
