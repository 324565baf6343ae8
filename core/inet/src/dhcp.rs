//! The DHCP client (RFC 2131 section 4.4): a small state machine over the stack.
//!
//! It has no socket: its packets are recognised by their ports and its transaction. It
//! asks, takes the first offer, and installs address and gateway; it renews at half the
//! lease, asks anybody at seven eighths, and starts over when the lease ends.

use core::net::{IpAddr, Ipv4Addr};

use base::{Duration, Instant};
use mbuf::Chain;
use wire::{DhcpMessage, DhcpOptions, DhcpRepr, DhcpView, Protocol, UDP_HEADER_BYTES};

use crate::addr::{Addresses, Cidr, Endpoint};
use crate::env::Env;
use crate::ip::IpHeader;
use crate::options::Options;
use crate::stack::Stack;
use crate::udp::{Destination, PacketOptions};

const CLIENT_PORT: u16 = 68;
const SERVER_PORT: u16 = 67;
/// RFC 2131 4.1: the interval doubles from here ...
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// ... to here.
const RETRY_MAX: Duration = Duration::from_secs(64);
/// Requests without an answer before we look for another server.
const REQUESTS_MAX: u8 = 4;
const MESSAGE_BYTES_MAX: usize = 1500;
const LEASE_DEFAULT_SECS: u32 = 3600;

/// What a server has granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Our address and network.
    pub address: Cidr,
    /// The way to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Name servers.
    pub dns: [Option<Ipv4Addr>; 2],
    /// Who granted it.
    pub server: Ipv4Addr,
    /// When it ends.
    pub expires: Instant,
    renew: Instant,
    rebind: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Discovering,
    Requesting { offered: Ipv4Addr, server: Ipv4Addr },
    Bound,
    Renewing,
}

/// The client's state.
pub(crate) struct Dhcp {
    phase: Phase,
    transaction: u32,
    started: Instant,
    deadline: Instant,
    tries: u8,
    lease: Option<Lease>,
}

impl Dhcp {
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    fn retry_after(&self, random: u64) -> Duration {
        let base = (RETRY_FIRST * (1 << self.tries.min(6))).min(RETRY_MAX);
        base + Duration::from_millis(random % 500)
    }
}

/// Whether a datagram is a server's answer to a client.
pub(crate) fn is_dhcp(from: Endpoint, to: Endpoint) -> bool {
    to.port == CLIENT_PORT && from.port == SERVER_PORT
}

impl Stack {
    /// Starts to look for a server. The address is installed when one has granted it.
    pub fn start_dhcp<E: Env>(&mut self, env: &mut E) {
        let now = env.now();
        self.dhcp = Some(Dhcp {
            phase: Phase::Discovering,
            transaction: env.random() as u32,
            started: now,
            deadline: now,
            tries: 0,
            lease: None,
        });
        self.expire_dhcp(env);
    }

    /// Asks no server any more, and forgets what one has granted; the address stays. For who sets or takes away an
    /// address by hand: a lease would put its own in that place.
    pub fn stop_dhcp(&mut self) {
        self.dhcp = None;
    }

    /// What a server has granted, while it lasts.
    pub fn lease(&self) -> Option<&Lease> {
        self.dhcp.as_ref()?.lease.as_ref()
    }

    pub(crate) fn expire_dhcp<E: Env>(&mut self, env: &mut E) {
        let now = env.now();
        let Some(dhcp) = self.dhcp.as_mut().filter(|dhcp| dhcp.deadline <= now) else {
            return;
        };
        match dhcp.lease {
            Some(lease) if lease.expires <= now => {
                self.forget_lease(env, now);
                return;
            }
            Some(lease) => {
                dhcp.phase = Phase::Renewing;
                let next = if now < lease.rebind {
                    lease.rebind
                } else {
                    lease.expires
                };
                let halfway = now + next.since(now) / 2;
                dhcp.deadline = halfway
                    .max(now + Duration::from_secs(60))
                    .min(lease.expires);
            }
            None => {
                dhcp.tries = dhcp.tries.saturating_add(1);
                if dhcp.tries > REQUESTS_MAX && dhcp.phase != Phase::Discovering {
                    (dhcp.phase, dhcp.tries) = (Phase::Discovering, 1);
                }
                dhcp.deadline = now + dhcp.retry_after(env.random());
            }
        }
        self.send_dhcp(env);
    }

    fn forget_lease<E: Env>(&mut self, env: &mut E, now: Instant) {
        if let Some(dhcp) = &mut self.dhcp {
            dhcp.lease = None;
            (dhcp.phase, dhcp.tries, dhcp.started) = (Phase::Discovering, 1, now);
            dhcp.transaction = env.random() as u32;
            dhcp.deadline = now + dhcp.retry_after(env.random());
        }
        self.set_address(None);
        self.set_gateway(None);
        self.send_dhcp(env);
    }

    fn send_dhcp<E: Env>(&mut self, env: &mut E) {
        let (Some(dhcp), Some(port)) = (&self.dhcp, self.net.port) else {
            return;
        };
        let now = env.now();
        let mut repr = DhcpRepr {
            message: DhcpMessage::Request,
            transaction: dhcp.transaction,
            elapsed_secs: now.since(dhcp.started).as_secs().min(u64::from(u16::MAX)) as u16,
            mac: port.mac,
            client_ip: Ipv4Addr::UNSPECIFIED,
            requested_ip: None,
            server: None,
            host_name: Some("sietch"),
        };
        let mut dst = Ipv4Addr::BROADCAST;
        match (dhcp.phase, &dhcp.lease) {
            (Phase::Discovering, _) => repr.message = DhcpMessage::Discover,
            (Phase::Requesting { offered, server }, _) => {
                (repr.requested_ip, repr.server) = (Some(offered), Some(server));
            }
            (Phase::Bound | Phase::Renewing, Some(lease)) => {
                repr.client_ip = lease.address.addr();
                if now < lease.rebind {
                    dst = lease.server;
                }
            }
            _ => return,
        }
        let mut cx = self.context(env);
        let Some(mut buffer) = cx.buffer() else {
            return;
        };
        if let Some(space) = buffer.extend(DhcpRepr::BYTES) {
            repr.emit(space);
        }
        let header = IpHeader {
            addresses: Addresses::V4 {
                src: repr.client_ip,
                dst,
            },
            protocol: Protocol::Udp,
            hop_limit: cx.net.config.hop_limit,
            tos: 0,
        };
        let ports = (CLIENT_PORT, SERVER_PORT);
        let mut destination = Destination::NONE;
        cx.net.look_up_destination(dst.into(), &mut destination);
        let options = PacketOptions::from(&Options::default());
        cx.send_datagram(
            header,
            ports,
            Chain::from(buffer),
            options,
            &mut destination,
        );
    }

    /// Takes a datagram if it is a server's answer to us.
    pub(crate) fn dhcp_input<E: Env>(
        &mut self,
        env: &mut E,
        from: Endpoint,
        to: Endpoint,
        datagram: &Chain,
    ) -> bool {
        if !is_dhcp(from, to) || self.dhcp.is_none() {
            return false;
        }
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        let len = datagram.copy_to_slice(UDP_HEADER_BYTES, &mut bytes);
        let (Ok(message), Some(dhcp), Some(port)) =
            (DhcpView::parse(&bytes[..len]), &self.dhcp, self.net.port)
        else {
            return true;
        };
        if message.transaction() == dhcp.transaction && message.client_mac() == port.mac {
            self.on_dhcp_answer(env, from, message.your_ip(), &message.options());
        }
        true
    }

    fn on_dhcp_answer<E: Env>(
        &mut self,
        env: &mut E,
        from: Endpoint,
        address: Ipv4Addr,
        options: &DhcpOptions,
    ) {
        let now = env.now();
        let Some(dhcp) = &mut self.dhcp else { return };
        let server = match (options.server, from.addr) {
            (Some(server), _) | (None, IpAddr::V4(server)) => server,
            _ => return,
        };
        match (dhcp.phase, options.message) {
            (Phase::Discovering, Some(DhcpMessage::Offer)) => {
                dhcp.phase = Phase::Requesting {
                    offered: address,
                    server,
                };
                dhcp.tries = 1;
                dhcp.deadline = now + dhcp.retry_after(env.random());
                self.send_dhcp(env);
            }
            (Phase::Requesting { .. } | Phase::Renewing, Some(DhcpMessage::Ack)) => {
                if let Some(lease) = lease_of(now, address, server, options) {
                    self.install(lease);
                }
            }
            (Phase::Requesting { .. } | Phase::Renewing, Some(DhcpMessage::Nak)) => {
                self.forget_lease(env, now);
            }
            _ => {}
        }
    }

    fn install(&mut self, lease: Lease) {
        if let Some(dhcp) = &mut self.dhcp {
            dhcp.phase = Phase::Bound;
            dhcp.tries = 0;
            dhcp.deadline = lease.renew;
            dhcp.lease = Some(lease);
        }
        if self.net.address != Some(lease.address) {
            self.set_address(Some(lease.address));
        }
        if self.net.gateway != lease.gateway {
            self.set_gateway(lease.gateway);
        }
    }
}

/// A lease that makes sense; `None` for addresses that no host can have.
fn lease_of(now: Instant, ip: Ipv4Addr, server: Ipv4Addr, options: &DhcpOptions) -> Option<Lease> {
    if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_loopback() {
        return None;
    }
    let mask = options
        .subnet_mask
        .unwrap_or(Ipv4Addr::new(255, 255, 255, 0));
    let secs = options.lease_secs.unwrap_or(LEASE_DEFAULT_SECS).max(60);
    let after = |secs: u32| now + Duration::from_secs(u64::from(secs));
    let renew = options
        .renew_secs
        .filter(|renew| *renew < secs)
        .unwrap_or(secs / 2);
    let rebind = options
        .rebind_secs
        .filter(|rebind| (renew..secs).contains(rebind));
    Some(Lease {
        address: Cidr::from_mask(ip, mask)?,
        gateway: options.router.filter(|router| !router.is_unspecified()),
        dns: options.dns,
        server,
        expires: after(secs),
        renew: after(renew),
        rebind: after(rebind.unwrap_or(secs / 8 * 7)),
    })
}
