//! ARP (RFC 826): IPv4's way to fill the neighbour cache.
//!
//! Anybody on the link can claim anything. So a claim changes only what we have asked for,
//! and adds a neighbour only if it is addressed to us and lies on our network.

use core::net::{IpAddr, Ipv4Addr};

use mbuf::Chain;
use wire::{ArpOperation, ArpRepr, EtherType, EthernetRepr, MacAddr};

use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::neighbor::{Claim, LinkHeader};
use crate::output::Offload;
use crate::stack::Stack;

impl Stack {
    pub(crate) fn arp_input<E: Env>(
        &mut self,
        env: &mut E,
        packet: &Chain,
    ) -> Result<(), DropReason> {
        let mut bytes = [0; ArpRepr::BYTES];
        let len = packet.copy_to_slice(0, &mut bytes);
        let arp = ArpRepr::parse(&bytes[..len])?;
        self.net.count(Count::ArpIn);
        let own = self.net.address.ok_or(DropReason::WrongAddress)?.addr();
        if !arp.sender_mac.is_station() || arp.sender_ip == own {
            return Err(DropReason::BadSource);
        }
        let is_for_us = arp.target_ip == own;
        let mut cx = self.context(env);
        if !arp.sender_ip.is_unspecified() && !arp.sender_ip.is_multicast() {
            let ip = IpAddr::V4(arp.sender_ip);
            let claim = Claim {
                header: Some(cx.net.link_header(arp.sender_mac, ip)),
                is_answer: is_for_us,
                is_override: true,
                is_welcome: is_for_us && cx.net.routes.is_on_link(ip),
            };
            let learned = cx.net.neighbors_mut(ip).learn(ip, claim, cx.now);
            cx.on_learned(learned);
        }
        if is_for_us && arp.operation == ArpOperation::Request {
            cx.send_arp(ArpOperation::Reply, arp.sender_mac, arp.sender_ip);
        }
        Ok(())
    }
}

impl Stack {
    /// Tells everybody on the link our IPv4 address (RFC 5227 2.3): who knew another station by it, or
    /// none, sends to ours from now on.
    pub fn announce<E: Env>(&mut self, env: &mut E) {
        if let Some(own) = self.net.address {
            self.context(env)
                .send_arp_request(MacAddr::BROADCAST, own.addr());
        }
    }
}

impl<E: Env> Context<'_, E> {
    /// Asks `station`, or everybody, who has `ip`.
    pub fn send_arp_request(&mut self, station: MacAddr, ip: Ipv4Addr) {
        self.net.count(Count::ArpRequests);
        self.send_arp(ArpOperation::Request, station, ip);
    }

    fn send_arp(&mut self, operation: ArpOperation, station: MacAddr, ip: Ipv4Addr) {
        let Some(port) = self.net.port else { return };
        let Some(mut buffer) = self.buffer() else {
            self.net.drop(DropReason::NoBuffer);
            return;
        };
        let arp = ArpRepr {
            operation,
            sender_mac: port.mac,
            sender_ip: self
                .net
                .address
                .map_or(Ipv4Addr::UNSPECIFIED, |own| own.addr()),
            target_mac: match operation {
                ArpOperation::Request => MacAddr::default(),
                ArpOperation::Reply => station,
            },
            target_ip: ip,
        };
        if let Some(space) = buffer.extend(ArpRepr::BYTES) {
            arp.emit(space);
        }
        let link = LinkHeader::new(&EthernetRepr {
            dst: station,
            src: port.mac,
            ether_type: EtherType::Arp,
        });
        self.send_frame(Chain::from(buffer), &link, Offload::default());
    }
}
