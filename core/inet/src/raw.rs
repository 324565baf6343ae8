//! Packets whose transport is the program's own.

use core::net::{IpAddr, Ipv4Addr};

use mbuf::Chain;
use wire::{IPV4_HEADER_BYTES, Protocol};

use crate::addr::Addresses;
use crate::env::Env;
use crate::error::Error;
use crate::ip::IpHeader;
use crate::output::Offload;
use crate::stack::Stack;

/// What the IP header in front of a program's bytes shall say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawHeader {
    /// Our address; `None` for the one that the route has.
    pub src: Option<Ipv4Addr>,
    /// Whom it is for.
    pub dst: Ipv4Addr,
    /// IANA's number of what follows.
    pub protocol: u8,
    /// Hops that it may take.
    pub ttl: u8,
    /// The type of service.
    pub tos: u8,
    /// Whether it may go to everybody on the network.
    pub may_broadcast: bool,
}

impl Stack {
    /// Sends `payload` behind an IP header.
    ///
    /// What is larger than the path takes goes in fragments.
    ///
    /// Errors: `NetworkUnreachable` without a way, `MessageTooLong` for more than a packet
    /// has, `BroadcastNotAllowed`.
    pub fn send_raw<E: Env>(
        &mut self,
        env: &mut E,
        header: &RawHeader,
        payload: Chain,
    ) -> Result<(), Error> {
        let dst = header.dst;
        let IpAddr::V4(source) = self.net.source_for(IpAddr::V4(dst))? else {
            return Err(Error::NetworkUnreachable);
        };
        if payload.len() > usize::from(u16::MAX) - IPV4_HEADER_BYTES {
            return Err(Error::MessageTooLong);
        }
        if self.net.is_broadcast(dst) && !header.may_broadcast {
            return Err(Error::BroadcastNotAllowed);
        }
        let header = IpHeader {
            addresses: Addresses::V4 {
                src: header.src.unwrap_or(source),
                dst,
            },
            protocol: Protocol::from_number(header.protocol),
            hop_limit: header.ttl,
            tos: header.tos,
        };
        self.context(env)
            .send_ip(header, payload, Offload::default());
        self.deliver_loopback(env);
        Ok(())
    }
}
