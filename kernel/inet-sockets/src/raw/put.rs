//! What a raw socket sends: a packet at once, or a piece of one that is gathered ([`cork`]).
//!
//! A packet with a header that the program writes is never gathered.
//!
//! [`cork`]: sockets::cork

use core::net::IpAddr;
use core::sync::atomic::Ordering::Relaxed;

use inet::RawHeader;
use mm::io::Source;
use sync::{Error, Result};

use super::send;
use super::socket::RawSocket;
use crate::groups;
use crate::udp::socket::reached;
use sockets::cork::piece_of;
use vfs::socket::{Control, HeaderByte, Message, MessageFlags, OptionName, SocketAddress};

impl RawSocket {
    /// Sends the bytes of `message` as one packet, or as the next piece of one.
    pub(crate) fn put(&self, message: Message<'_, '_>, flags: MessageFlags) -> Result<usize> {
        let has_more = flags.contains(MessageFlags::MORE);
        let header = || self.header_to(message.to, &message.control);
        if self.options.has_headers() {
            return send::send_written(&self.stack, &header()?, message.from);
        }
        if self.cork.is_idle() && !has_more {
            return self.put_whole(&header()?, message.from);
        }
        let piece = piece_of(message.from)?;
        let most = 2 * self.listener.hearing.common.send_bytes() as usize;
        self.cork.add(&piece, most, header, send::check_size)?;
        if !has_more && let Some(whole) = self.cork.take() {
            self.put_whole(&whole.header, &mut Source::kernel(&whole.bytes))?;
        }
        Ok(piece.len())
    }

    fn put_whole(&self, header: &RawHeader, from: &mut Source<'_>) -> Result<usize> {
        let checksum_at = usize::try_from(self.listener.checksum_at.load(Relaxed)).ok();
        send::send(&self.stack, header, checksum_at, from)
    }

    /// What is said of a packet to `to`, or to the only peer.
    fn header_to(&self, to: Option<&SocketAddress>, control: &Control) -> Result<RawHeader> {
        let named = to.map(|name| self.address(name)).transpose()?;
        let named = named.map(|name| reached(name).addr);
        let peer = named.or(self.listener.names().peer);
        self.header(peer.ok_or(Error::DestinationRequired)?, control)
    }

    /// Where a packet goes, and what its header says if we write it.
    fn header(&self, dst: IpAddr, control: &Control) -> Result<RawHeader> {
        if let Some(info) = control.packet_info {
            groups::check_number(&self.stack, info.interface)?;
        }
        let given = control.packet_info.map(|info| info.local);
        let given = given.filter(|local| !local.is_unspecified());
        let named = control.packet_info.filter(|info| info.interface != 0);
        let bound = || self.listener.device.load(Relaxed);
        let device = named.map_or_else(bound, |info| info.interface);
        let byte = |given: Option<HeaderByte>, own| given.map_or(own, HeaderByte::value);
        Ok(RawHeader {
            src: given
                .or(self.listener.names().local)
                .or_else(|| self.stack.source_on(device, dst)),
            dst,
            protocol: self.listener.protocol,
            ttl: byte(control.hop_limit, self.options.hops()),
            tos: byte(control.traffic_class, self.options.type_of_service()),
            may_broadcast: self.listener.hearing.common.is_set(OptionName::Broadcast),
        })
    }
}
