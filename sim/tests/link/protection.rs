//! Section 2.3: protection as a link property, with learning through the lanes.

use link::LinkId;
use link::counters::{DropReason, Drops};
use sim::frame::ethernet;
use sim::lan::frames::dhcp;
use sim::lan::{Card, Lan, station};
use wire::{DhcpMessage, EtherType, MacAddr};

use crate::{flow, vnic};

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);
const ALL: &str = "mac-nospoof,restricted,ip-nospoof,dhcp-nospoof";

fn lan() -> Lan {
    Lan::with_card(Card::new(NIC.0, &[(1, 16)], true)).expect("a card")
}

fn drops(lan: &Lan, link: LinkId) -> &Drops {
    &lan.lanes[0].counters(link).expect("a client").drops
}

/// Section 2, check 4 (each forgery alone is tested in core/link).
#[test]
fn each_forged_frame_bumps_exactly_one_counter_and_does_not_leave() {
    let mut lan = lan();
    let (link, _) = vnic(&mut lan, 1, None);
    lan.links.set_prop(link, "protection", ALL).expect("known");
    lan.links
        .set_prop(link, "allowed-ips", "10.0.0.1")
        .expect("known");
    let foreign_ip = sim::lan::frames::Flow {
        from: ([10, 0, 0, 2].into(), 1),
        ..flow(PEER, station(1))
    };
    let mut wrong_chaddr = dhcp(DhcpMessage::Discover, 0, 1, [68, 67]);
    wrong_chaddr[14 + 20 + 8 + 28 + 5] = 9;
    let forgeries = [
        (flow(PEER, station(2)).frame(0), DropReason::MacSpoofed),
        (
            ethernet(PEER, station(1), EtherType::Other(0x88cc), &[0; 46]),
            DropReason::Restricted,
        ),
        (foreign_ip.frame(0), DropReason::IpSpoofed),
        (wrong_chaddr, DropReason::DhcpSpoofed),
    ];
    for (at, (frame, reason)) in forgeries.iter().enumerate() {
        lan.send(link, frame);
        assert_eq!(drops(&lan, link).get(*reason), 1, "{reason:?}");
        let all: u64 = drops(&lan, link).iter().map(|(_, count)| count).sum();
        assert_eq!(all, at as u64 + 1);
    }
    assert!(lan.take_wire().is_empty());
    lan.send(link, &flow(PEER, station(1)).frame(0));
    assert_eq!(lan.take_wire().len(), 1);
}

/// Section 2, check 6.
#[test]
fn a_leased_address_passes_after_the_exchange_and_drops_after_the_release() {
    let mut lan = lan();
    let (link, stream) = vnic(&mut lan, 1, None);
    lan.links
        .set_prop(link, "protection", "ip-nospoof")
        .expect("known");
    let data = flow(PEER, station(1)).frame(0);
    let passes = |lan: &mut Lan| {
        lan.take_wire();
        lan.send(link, &data);
        lan.take_wire() == [data.clone()]
    };
    assert!(!passes(&mut lan));
    lan.send(link, &dhcp(DhcpMessage::Discover, 0, 7, [68, 67]));
    lan.arrive(&dhcp(DhcpMessage::Offer, 2, 7, [67, 68]));
    lan.send(link, &dhcp(DhcpMessage::Request, 0, 7, [68, 67]));
    lan.settle();
    assert!(!passes(&mut lan));
    lan.arrive(&dhcp(DhcpMessage::Ack, 5, 7, [67, 68]));
    lan.settle();
    assert!(passes(&mut lan));
    assert_eq!(lan.take(stream).len(), 2, "the client got offer and answer");
    lan.send(link, &dhcp(DhcpMessage::Release, 0, 8, [68, 67]));
    assert!(!passes(&mut lan));
    assert_eq!(drops(&lan, link).get(DropReason::IpSpoofed), 3);
}

#[test]
fn a_lease_ends_with_its_time_and_with_allowed_addresses() {
    for ends_by_time in [true, false] {
        let mut lan = lan();
        let (link, _) = vnic(&mut lan, 1, None);
        lan.links
            .set_prop(link, "protection", "ip-nospoof")
            .expect("known");
        lan.send(link, &dhcp(DhcpMessage::Request, 0, 7, [68, 67]));
        lan.arrive(&dhcp(DhcpMessage::Ack, 5, 7, [67, 68]));
        lan.settle();
        let next = lan.links.expire(lan.shell.now);
        assert_eq!(next, lan.shell.now + base::Duration::from_secs(3600));
        match ends_by_time {
            true => _ = lan.links.expire(next),
            false => {
                let allowed = lan.links.set_prop(link, "allowed-ips", "10.9.9.9");
                allowed.expect("known");
            }
        }
        lan.take_wire();
        lan.send(link, &flow(PEER, station(1)).frame(0));
        assert!(lan.take_wire().is_empty());
    }
}
