//! Packets whose transport is the program's own.

use core::net::IpAddr;

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
    pub src: Option<IpAddr>,
    /// Whom it is for.
    pub dst: IpAddr,
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
    /// From now on raw sockets see packets of TCP and UDP too.
    pub fn show_transports(&mut self) {
        self.net.keeps_headers = true;
    }

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
        self.check_raw(header)?;
        let dst = header.dst;
        let src = match header.src {
            Some(src) => src,
            None => self.net.source_for(dst)?,
        };
        let addresses = Addresses::new(src, dst).ok_or(Error::NetworkUnreachable)?;
        let own = if dst.is_ipv4() { IPV4_HEADER_BYTES } else { 0 };
        if payload.len() > usize::from(u16::MAX) - own {
            return Err(Error::MessageTooLong);
        }
        let header = IpHeader {
            addresses,
            protocol: Protocol::from_number(header.protocol),
            hop_limit: header.ttl,
            tos: header.tos,
        };
        self.context(env)
            .send_ip(header, payload, Offload::default());
        self.deliver_loopback(env);
        Ok(())
    }

    /// Sends `payload` behind an IP header that a program has written, by the way to the
    /// destination in `header`, whatever `written` says.
    ///
    /// Errors: as of [`send_raw`](Self::send_raw); nothing is cut into fragments.
    pub fn send_written<E: Env>(
        &mut self,
        env: &mut E,
        header: &RawHeader,
        written: &[u8],
        mut payload: Chain,
    ) -> Result<(), Error> {
        self.check_raw(header)?;
        let next_hop = self.net.route(header.dst, header.src)?;
        if written.len() + payload.len() > usize::from(self.net.mtu_to(header.dst)) {
            return Err(Error::MessageTooLong);
        }
        let mut cx = self.context(env);
        cx.count_out(header.dst);
        if let Some(space) = cx.make_room(&mut payload, written.len()) {
            space.copy_from_slice(written);
            cx.send_packet(payload, &next_hop, Offload::default());
        }
        self.deliver_loopback(env);
        Ok(())
    }

    fn check_raw(&self, header: &RawHeader) -> Result<(), Error> {
        self.net.source_for(header.dst)?;
        match header.dst {
            IpAddr::V4(dst) if self.net.is_broadcast(dst) && !header.may_broadcast => {
                Err(Error::BroadcastNotAllowed)
            }
            _ => Ok(()),
        }
    }
}
