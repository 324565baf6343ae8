//! Where the servers are, and that we are where clients look for us (ARP, RFC 826).

use std::net::Ipv4Addr;

use wire::{ArpOperation, ArpRepr, MacAddr};

const ETHERNET_BYTES: usize = 14;
const FRAME_BYTES: usize = ETHERNET_BYTES + ArpRepr::BYTES;
const ARP: [u8; 2] = [0x08, 0x06];
const EVERYBODY: [u8; 6] = [0xff; 6];

struct Server {
    address: Ipv4Addr,
    station: Option<[u8; 6]>,
}

/// See the module.
pub struct Stations {
    own: [u8; 6],
    address: Ipv4Addr,
    servers: Vec<Server>,
}

impl Stations {
    /// We are at `own` and have an address; of the servers' stations none is known.
    pub fn new(own: [u8; 6], address: Ipv4Addr, servers: Vec<Ipv4Addr>) -> Self {
        let servers = servers.into_iter().map(|address| Server {
            address,
            station: None,
        });
        Self {
            own,
            address,
            servers: servers.collect(),
        }
    }

    pub fn own(&self) -> [u8; 6] {
        self.own
    }

    /// Where a server is, if it has told.
    pub fn server(&self, number: usize) -> Option<(Ipv4Addr, [u8; 6])> {
        let server = self.servers.get(number)?;
        Some((server.address, server.station?))
    }

    /// Frames that ask for those that have not.
    pub fn questions(&self) -> Vec<[u8; FRAME_BYTES]> {
        let unknown = self
            .servers
            .iter()
            .filter(|server| server.station.is_none());
        let ask = |server: &Server| {
            let question = ArpRepr {
                operation: ArpOperation::Request,
                sender_mac: MacAddr(self.own),
                sender_ip: self.address,
                target_mac: MacAddr([0; 6]),
                target_ip: server.address,
            };
            self.frame(EVERYBODY, &question)
        };
        unknown.map(ask).collect()
    }

    fn frame(&self, to: [u8; 6], packet: &ArpRepr) -> [u8; FRAME_BYTES] {
        let mut frame = [0; FRAME_BYTES];
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&self.own);
        frame[12..ETHERNET_BYTES].copy_from_slice(&ARP);
        packet.emit(&mut frame[ETHERNET_BYTES..]);
        frame
    }

    /// Learns from a frame; true if it is the answer to its question now.
    pub fn answer(&mut self, frame: &mut [u8]) -> bool {
        let Some((header, packet)) = frame.split_at_checked(ETHERNET_BYTES) else {
            return false;
        };
        let Some(heard) = ArpRepr::parse(packet)
            .ok()
            .filter(|_| header.ends_with(&ARP))
        else {
            return false;
        };
        let sender = self
            .servers
            .iter_mut()
            .find(|server| server.address == heard.sender_ip);
        if let Some(server) = sender {
            server.station = Some(heard.sender_mac.0);
        }
        if heard.operation != ArpOperation::Request || heard.target_ip != self.address {
            return false;
        }
        let answer = ArpRepr {
            operation: ArpOperation::Reply,
            sender_mac: MacAddr(self.own),
            sender_ip: self.address,
            target_mac: heard.sender_mac,
            target_ip: heard.sender_ip,
        };
        let answer = self.frame(heard.sender_mac.0, &answer);
        // The packet was as long.
        frame[..FRAME_BYTES].copy_from_slice(&answer);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 60);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);

    #[test]
    fn a_server_is_asked_for_until_it_answers_and_a_client_is_answered() {
        let mut ours = Stations::new([1; 6], OURS, vec![SERVER]);
        let mut theirs = Stations::new([2; 6], SERVER, vec![OURS]);
        assert_eq!(ours.server(0), None);
        let mut frame = ours.questions()[0];
        assert!(theirs.answer(&mut frame));
        assert_eq!(
            theirs.server(0),
            Some((OURS, [1; 6])),
            "who asks tells where he is"
        );
        assert!(!ours.answer(&mut frame));
        assert_eq!(ours.server(0), Some((SERVER, [2; 6])));
        assert!(ours.questions().is_empty());
    }

    #[test]
    fn frames_that_are_something_else_are_nobodys() {
        let mut ours = Stations::new([1; 6], OURS, vec![SERVER]);
        let whole = Stations::new([2; 6], SERVER, vec![OURS]).questions()[0];
        for len in 0..FRAME_BYTES {
            assert!(!ours.answer(&mut whole[..len].to_vec()));
        }
        let mut other = whole;
        other[13] = 0;
        assert!(!ours.answer(&mut other));
    }
}
