//! Addresses that a client was given: by DHCP servers, and by routers' prefixes.
//!
//! A lease is believed if the client asked for it: its request leaves a pending
//! transaction, and only an answer to that one publishes the address, until the lease
//! ends. The client's release or decline, a server's refusal, or the end of the lease
//! withdraws it. From a router only the address that the station would make itself
//! (RFC 4862 with the station's own interface identifier) is taken.
//!
//! Everything here is rare and bounded; what is over a limit or malformed is not learned
//! and counted. Fragments are not learned from.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use base::{Duration, Instant};
use mbuf::Chain;
use wire::{MacAddr, UDP_HEADER_BYTES};

use super::dhcp::{DhcpVersion, Message4, Message6, to_client, to_server};
use super::{Methods, with_bytes};
use crate::headers::{ICMP6, Packet, Piece};
use crate::prefix::{from_mac, is_unspecified};

/// Requests without an answer that are remembered.
pub const PENDING_MAX: usize = 512;
/// How long they are.
pub const PENDING_FOR: Duration = Duration::from_secs(60);
/// Addresses of one client.
pub const LEASES_MAX: usize = 64;

const REQUEST4: u8 = 3;
const DECLINE4: u8 = 4;
const ACK4: u8 = 5;
const NAK4: u8 = 6;
const RELEASE4: u8 = 7;

const SOLICIT6: u8 = 1;
const REQUEST6: u8 = 3;
const RENEW6: u8 = 5;
const REBIND6: u8 = 6;
const REPLY6: u8 = 7;
const RELEASE6: u8 = 8;
const DECLINE6: u8 = 9;

const ROUTER_ADVERT: u8 = 134;
const ADVERT_OPTIONS_AT: usize = 16;
const PREFIX_OPTION: u8 = 3;
const AUTONOMOUS: u8 = 0x40;
const FOREVER: u32 = u32::MAX;

struct Pending {
    method: Methods,
    transaction: u32,
    id: Vec<u8>,
    since: Instant,
}

struct Lease {
    addr: IpAddr,
    method: Methods,
    id: Vec<u8>,
    until: Instant,
}

/// What one client has learned.
#[derive(Default)]
pub struct Learner {
    pending: Vec<Pending>,
    leases: Vec<Lease>,
    dropped: u64,
}

/// Whether a frame that a client sends or gets may teach something.
pub fn is_snooped(packet: &Packet, frame: &Chain, is_sent: bool) -> bool {
    if packet.piece != Piece::Whole {
        return false;
    }
    match is_sent {
        true => to_server(packet).is_some(),
        false => to_client(packet).is_some() || is_advert(packet, frame),
    }
}

fn is_advert(packet: &Packet, frame: &Chain) -> bool {
    let mut kind = [0];
    packet.protocol == ICMP6
        && frame.copy_to_slice(packet.transport_at, &mut kind) == 1
        && kind == [ROUTER_ADVERT]
}

impl Learner {
    /// What it has learned.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.leases.iter().map(|lease| lease.addr).collect()
    }

    /// Messages that taught nothing for being malformed or too many (`dhcpdropped`).
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Requests that wait for an answer.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// When something ends next.
    pub fn next_expiry(&self) -> Instant {
        let leases = self.leases.iter().map(|lease| lease.until);
        leases.min().unwrap_or(Instant::NEVER)
    }

    /// Withdraws what has ended. True if an address went.
    pub fn expire(&mut self, now: Instant) -> bool {
        self.pending
            .retain(|pending| now.since(pending.since) < PENDING_FOR);
        let before = self.leases.len();
        self.leases.retain(|lease| lease.until > now);
        self.leases.len() != before
    }

    /// Withdraws what was learned by any method but `methods`. True if an address went.
    pub fn keep_only(&mut self, methods: Methods) -> bool {
        let before = self.leases.len();
        self.leases.retain(|lease| methods.contains(lease.method));
        self.pending
            .retain(|pending| methods.contains(pending.method));
        self.leases.len() != before
    }

    /// The client sends a packet. True if an address went.
    pub fn sent(&mut self, now: Instant, methods: Methods, packet: &Packet, frame: &Chain) -> bool {
        let body_at = packet.transport_at + UDP_HEADER_BYTES;
        let changed = match to_server(packet) {
            Some(DhcpVersion::V4) if methods.contains(Methods::DHCPV4) => {
                with_bytes(frame, body_at, |body| self.sent_v4(now, body))
            }
            Some(DhcpVersion::V6) if methods.contains(Methods::DHCPV6) => {
                with_bytes(frame, body_at, |body| self.sent_v6(now, body))
            }
            _ => None,
        };
        changed == Some(true)
    }

    /// The client, whose address is `mac`, gets a packet. True if an address came or went.
    pub fn received(
        &mut self,
        now: Instant,
        methods: Methods,
        mac: MacAddr,
        packet: &Packet,
        frame: &Chain,
    ) -> bool {
        let body_at = packet.transport_at + UDP_HEADER_BYTES;
        let changed = match to_client(packet) {
            Some(DhcpVersion::V4) if methods.contains(Methods::DHCPV4) => {
                with_bytes(frame, body_at, |body| self.received_v4(now, mac, body))
            }
            Some(DhcpVersion::V6) if methods.contains(Methods::DHCPV6) => {
                with_bytes(frame, body_at, |body| self.received_v6(now, body))
            }
            None if packet.protocol == ICMP6 && methods.contains(Methods::SLAAC) => {
                let body_at = packet.transport_at;
                with_bytes(frame, body_at, |body| self.received_advert(now, mac, body))
            }
            _ => None,
        };
        changed == Some(true)
    }

    fn sent_v4(&mut self, now: Instant, body: &[u8]) -> bool {
        let Some(message) = Message4::parse(body) else {
            self.dropped += 1;
            return false;
        };
        let id = message.client_id.unwrap_or(&message.client_mac.0);
        match message.kind {
            REQUEST4 => self.remember(now, Methods::DHCPV4, message.transaction, id),
            RELEASE4 | DECLINE4 => return self.withdraw(Methods::DHCPV4, id),
            _ => {}
        }
        false
    }

    fn sent_v6(&mut self, now: Instant, body: &[u8]) -> bool {
        let named = Message6::parse(body).and_then(|message| Some((message, message.duid?)));
        let Some((message, duid)) = named else {
            self.dropped += 1;
            return false;
        };
        match message.kind {
            SOLICIT6 | REQUEST6 | RENEW6 | REBIND6 => {
                self.remember(now, Methods::DHCPV6, message.transaction, duid);
            }
            RELEASE6 | DECLINE6 => return self.withdraw(Methods::DHCPV6, duid),
            _ => {}
        }
        false
    }

    fn received_v4(&mut self, now: Instant, mac: MacAddr, body: &[u8]) -> bool {
        let Some(message) = Message4::parse(body) else {
            self.dropped += 1;
            return false;
        };
        if !message.is_reply || message.client_mac != mac {
            return false;
        }
        match (message.kind, message.lease_secs) {
            (ACK4, Some(secs)) => {
                let Some(id) = self.answered(now, Methods::DHCPV4, message.transaction) else {
                    return false;
                };
                self.leases
                    .retain(|lease| lease.method != Methods::DHCPV4 || lease.id != id);
                self.grant(now, Methods::DHCPV4, &id, message.your_ip.into(), secs);
                true
            }
            (NAK4, _) => match self.answered(now, Methods::DHCPV4, message.transaction) {
                Some(id) => self.withdraw(Methods::DHCPV4, &id),
                None => false,
            },
            _ => false,
        }
    }

    fn received_v6(&mut self, now: Instant, body: &[u8]) -> bool {
        let Some(message) = Message6::parse(body) else {
            self.dropped += 1;
            return false;
        };
        if message.kind != REPLY6 {
            return false;
        }
        let Some(id) = self.answered(now, Methods::DHCPV6, message.transaction) else {
            return false;
        };
        if message.duid != Some(&id) {
            return false;
        }
        let mut changed = false;
        for (addr, secs) in message.addresses() {
            changed |= self.grant(now, Methods::DHCPV6, &id, addr.into(), secs);
        }
        changed
    }

    /// RFC 4861, section 4.2 and 4.6.2.
    fn received_advert(&mut self, now: Instant, mac: MacAddr, body: &[u8]) -> bool {
        if body.first() != Some(&ROUTER_ADVERT) {
            return false;
        }
        let mut changed = false;
        let mut options = body.get(ADVERT_OPTIONS_AT..).unwrap_or_default();
        while let &[kind, units, ..] = options {
            let Some((option, rest)) = options.split_at_checked(usize::from(units) * 8) else {
                break;
            };
            if option.is_empty() {
                break;
            }
            if let (PREFIX_OPTION, Some((prefix, secs))) = (kind, prefix_of(option)) {
                let addr = from_mac(prefix, mac).into();
                changed |= self.grant(now, Methods::SLAAC, &[], addr, secs);
            }
            options = rest;
        }
        changed
    }

    /// A request that is sent again keeps one entry.
    fn remember(&mut self, now: Instant, method: Methods, transaction: u32, id: &[u8]) {
        self.expire_pending(now);
        let same =
            |pending: &&mut Pending| pending.method == method && pending.transaction == transaction;
        if let Some(pending) = self.pending.iter_mut().find(same) {
            pending.since = now;
            pending.id = id.to_vec();
        } else if self.pending.len() < PENDING_MAX {
            self.pending.push(Pending {
                method,
                transaction,
                id: id.to_vec(),
                since: now,
            });
        } else {
            self.dropped += 1;
        }
    }

    fn expire_pending(&mut self, now: Instant) {
        self.pending
            .retain(|pending| now.since(pending.since) < PENDING_FOR);
    }

    /// Who made the request that this answers; it is pending no longer.
    fn answered(&mut self, now: Instant, method: Methods, transaction: u32) -> Option<Vec<u8>> {
        self.expire_pending(now);
        let index = self
            .pending
            .iter()
            .position(|pending| pending.method == method && pending.transaction == transaction)?;
        Some(self.pending.swap_remove(index).id)
    }

    /// A lifetime of zero takes the address back. True if the set of addresses changed.
    fn grant(&mut self, now: Instant, method: Methods, id: &[u8], addr: IpAddr, secs: u32) -> bool {
        let at = self
            .leases
            .iter()
            .position(|lease| lease.addr == addr && lease.method == method);
        let until = match secs {
            FOREVER => Instant::NEVER,
            secs => now + Duration::from_secs(secs.into()),
        };
        match (at, secs) {
            (Some(at), 0) => drop(self.leases.swap_remove(at)),
            (Some(at), _) => {
                self.leases[at].until = until;
                return false;
            }
            (None, 0) => return false,
            (None, _) if is_unspecified(addr) => return false,
            (None, _) if self.leases.len() == LEASES_MAX => {
                self.dropped += 1;
                return false;
            }
            (None, _) => self.leases.push(Lease {
                addr,
                method,
                id: id.to_vec(),
                until,
            }),
        }
        true
    }

    /// True if an address went.
    fn withdraw(&mut self, method: Methods, id: &[u8]) -> bool {
        let before = self.leases.len();
        self.leases
            .retain(|lease| lease.method != method || lease.id != id);
        self.leases.len() != before
    }
}

/// The prefix that stations make addresses from, and for how many seconds.
fn prefix_of(option: &[u8]) -> Option<(Ipv6Addr, u32)> {
    let option: &[u8; 32] = option.first_chunk()?;
    let [_, _, bits, flags, v0, v1, v2, v3, ..] = *option;
    let prefix = Ipv6Addr::from(*option[16..].first_chunk::<16>()?);
    let is_usable = bits == 64 && flags & AUTONOMOUS != 0;
    is_usable.then_some((prefix, u32::from_be_bytes([v0, v1, v2, v3])))
}
