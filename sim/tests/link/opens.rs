//! Section 4: modes of streams, promiscuity, changed addresses.

use link::StreamId;
use link::links::LinkError;
use link::open::OpenError;
use link::promisc::Promiscuity;
use sim::lan::{Card, Lan, station};
use wire::MacAddr;

use crate::{flow, vnic};

const NIC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0]);
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 99]);
const BUSY: Result<(), LinkError> = Err(LinkError::Open(OpenError::Busy));

fn lan() -> Lan {
    Lan::with_card(Card::new(NIC.0, &[(1, 16)], true)).expect("a card")
}

/// A passive stream with these flags.
fn snoop(lan: &mut Lan, link: link::LinkId, flags: Promiscuity) -> StreamId {
    let stream = lan.links.open(link).expect("a stream");
    lan.links.set_passive(stream).expect("fresh");
    lan.links.promisc_on(stream, flags).expect("promiscuous");
    stream
}

/// Section 4, checks 1 and 2.
#[test]
fn ip_and_an_exclusive_stream_exclude_each_other_while_snoop_watches_both() {
    let mut lan = lan();
    let (vnic0, ip) = vnic(&mut lan, 1, None);
    let watcher = snoop(&mut lan, vnic0, Promiscuity::PHYS);
    let vnd = lan.links.open(vnic0).expect("a stream");
    assert_eq!(lan.links.set_exclusive(vnd), BUSY);
    lan.arrive(&flow(station(1), PEER).frame(0));
    lan.settle();
    assert_eq!((lan.take(ip).len(), lan.take(watcher).len()), (1, 1));
    lan.links.close(ip).expect("open");
    lan.links.set_exclusive(vnd).expect("free");
    let ip = lan.links.open(vnic0).expect("a stream");
    assert_eq!(lan.links.bind(ip, 0x0800), BUSY);
    let odd = sim::frame::ethernet(station(1), PEER, wire::EtherType::Other(0x1234), &[0; 50]);
    lan.arrive(&odd);
    lan.settle();
    let all = std::slice::from_ref(&odd);
    assert_eq!(lan.take(vnd), all, "it takes every protocol");
    assert_eq!(lan.take(watcher), all);
    lan.links.close(vnd).expect("open");
    assert_eq!(lan.links.bind(ip, 0x0800), Ok(()));
}

#[test]
fn a_stream_takes_every_protocol_while_it_asks_for_that() {
    let mut lan = lan();
    let (_, ip) = vnic(&mut lan, 1, None);
    let odd = sim::frame::ethernet(station(1), PEER, wire::EtherType::Other(0x88b5), &[0; 50]);
    for takes_all in [false, true, false] {
        lan.links.take_all(ip, takes_all).expect("open");
        lan.arrive(&odd);
        lan.settle();
        assert_eq!(lan.take(ip).len(), usize::from(takes_all));
    }
    lan.links.close(ip).expect("open");
    assert_eq!(lan.links.take_all(ip, true), Err(LinkError::NotFound));
}

/// Section 4, check 3.
#[test]
fn an_exclusive_stream_that_never_bound_leaves_the_link_free() {
    let mut lan = lan();
    let (link, ip) = vnic(&mut lan, 1, None);
    lan.links.close(ip).expect("open");
    let vnd = lan.links.open(link).expect("a stream");
    lan.links.set_exclusive(vnd).expect("free");
    lan.links.close(vnd).expect("open");
    assert!(lan.stack_on(link).is_ok());
}

#[test]
fn two_stacks_on_one_link_do_not_both_get_ip() {
    let mut lan = lan();
    let (link, first) = vnic(&mut lan, 1, None);
    let second = lan.links.open(link).expect("a stream");
    assert_eq!(lan.links.bind(second, 0x0800), BUSY);
    assert_eq!(lan.links.bind(second, 0x88cc), Ok(()));
    lan.links.unbind(first, 0x0800).expect("bound");
    assert_eq!(lan.links.bind(second, 0x0800), Ok(()));
}

#[test]
fn a_passive_stream_that_binds_gets_copies() {
    let mut lan = lan();
    let (link, ip) = vnic(&mut lan, 1, None);
    let copy = lan.links.open(link).expect("a stream");
    lan.links.set_passive(copy).expect("fresh");
    lan.links.bind(copy, 0x0800).expect("passive");
    lan.arrive(&flow(station(1), PEER).frame(0));
    lan.settle();
    assert_eq!((lan.take(ip).len(), lan.take(copy).len()), (1, 1));
}

/// Section 4, check 4.
#[test]
fn a_receive_only_stream_sees_no_own_frames_and_another_does() {
    let mut lan = lan();
    let (link, _) = vnic(&mut lan, 1, None);
    let both = snoop(&mut lan, link, Promiscuity::PHYS);
    let receive_only = snoop(&mut lan, link, Promiscuity::PHYS | Promiscuity::RX_ONLY);
    let probe = flow(MacAddr([0x33, 0x33, 0xff, 0, 0, 1]), station(1)).frame(0);
    lan.send(link, &probe);
    assert_eq!(lan.take(both), [probe]);
    assert!(lan.take(receive_only).is_empty(), "DAD would meet itself");
    lan.arrive(&flow(station(1), PEER).frame(1));
    lan.settle();
    assert_eq!((lan.take(both).len(), lan.take(receive_only).len()), (1, 1));
}

/// Section 4, check 5.
#[test]
fn turning_receive_only_off_while_unset_is_an_error() {
    let mut lan = lan();
    let (link, _) = vnic(&mut lan, 1, None);
    let stream = snoop(&mut lan, link, Promiscuity::PHYS);
    let off = lan.links.promisc_off(stream, Promiscuity::RX_ONLY);
    assert!(matches!(off, Err(LinkError::NotPromiscuous(_))));
    assert_eq!(lan.links.promiscuity(stream), Some(Promiscuity::PHYS));
}

#[test]
fn flags_that_the_card_refuses_leave_the_old_ones() {
    let card = Card::new(NIC.0, &[(1, 4)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let stream = lan.links.open(lan.port).expect("a stream");
    lan.links
        .promisc_on(stream, Promiscuity::MULTI)
        .expect("no card needed");
    card.set_refusing(true);
    assert!(lan.links.promisc_on(stream, Promiscuity::PHYS).is_err());
    assert_eq!(lan.links.promiscuity(stream), Some(Promiscuity::MULTI));
    card.set_refusing(false);
    lan.links
        .promisc_on(stream, Promiscuity::PHYS)
        .expect("it works again");
    assert!(card.promiscuous().is_some());
    lan.links.close(stream).expect("open");
    assert_eq!(card.promiscuous(), None);
}

#[test]
fn only_physical_promiscuity_makes_the_card_promiscuous() {
    let card = Card::new(NIC.0, &[(1, 4)], true);
    let mut lan = Lan::with_card(card.clone()).expect("a card");
    let stream = lan.links.open(lan.port).expect("a stream");
    for flags in [Promiscuity::SAP, Promiscuity::MULTI, Promiscuity::RX_ONLY] {
        lan.links.promisc_on(stream, flags).expect("set");
        assert_eq!(card.promiscuous(), None, "{flags:?}");
    }
    let (vnic0, _) = vnic(&mut lan, 1, None);
    snoop(&mut lan, vnic0, Promiscuity::PHYS);
    assert_eq!(
        card.promiscuous(),
        None,
        "a filtered VNIC sees no neighbours anyway"
    );
    lan.links
        .set_prop(vnic0, "promisc-filtered", "off")
        .expect("known");
    assert!(card.promiscuous().is_some());
}

#[test]
fn a_filtered_vnic_does_not_see_its_neighbours_unicast() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, None);
    let (two, _) = vnic(&mut lan, 2, None);
    vnic(&mut lan, 3, None);
    let watcher = snoop(&mut lan, one, Promiscuity::PHYS);
    let frame = flow(station(3), station(2)).frame(0);
    lan.send(two, &frame);
    assert!(lan.take(watcher).is_empty());
    lan.links
        .set_prop(one, "promisc-filtered", "off")
        .expect("known");
    lan.send(two, &frame);
    assert_eq!(lan.take(watcher), [frame]);
}

#[test]
fn a_copy_with_fixups_has_its_checksum_and_the_receivers_has_none_to_do() {
    let mut lan = lan();
    let (one, _) = vnic(&mut lan, 1, None);
    let (_, two) = vnic(&mut lan, 2, None);
    let watcher = snoop(&mut lan, one, Promiscuity::PHYS | Promiscuity::FIXUPS);
    let udp = sim::lan::frames::Flow {
        protocol: sim::lan::frames::UDP,
        ..flow(station(2), station(1))
    };
    let bytes = udp.frame(0x0008_0000);
    let mut frame = sim::lan::frames::sent(&lan.shell.pool, &bytes).expect("a buffer");
    frame.checksum = Some(mbuf::ChecksumOffload {
        start: 34,
        offset: 6,
    });
    let mut chain: link::TxChain = [frame].into_iter().collect();
    let flags = link::lane::TxFlags::empty();
    lan.send_chain(0, one, &mut chain, flags).expect("room");
    let fixed = lan.take(watcher).remove(0);
    assert!(wire::Sum::new().bytes(&fixed[34..]).is_valid());
    assert_eq!(lan.take(two), [bytes]);
}

/// Section 4, check 6 (the table says so before the next batch; rebuilding headers is the
/// stack's).
#[test]
fn a_changed_address_is_in_the_next_table_and_old_frames_do_not_arrive() {
    let mut lan = lan();
    let (link, stream) = vnic(&mut lan, 1, None);
    lan.links
        .set_prop(link, "protection", "mac-nospoof")
        .expect("known");
    let (generation, before) = lan.links.table(lan.port).expect("a port");
    lan.links.set_address(link, station(9)).expect("free");
    assert!(generation.is_newer_than(&before));
    let (_, after) = lan.links.table(lan.port).expect("a port");
    assert_eq!(after.address_of(link), Some(station(9)));
    lan.send(link, &flow(PEER, station(1)).frame(0));
    lan.send(link, &flow(PEER, station(9)).frame(1));
    assert_eq!(lan.take_wire(), [flow(PEER, station(9)).frame(1)]);
    assert_eq!(lan.arrive(&flow(station(1), PEER).frame(2)), None);
    lan.arrive(&flow(station(9), PEER).frame(3));
    lan.settle();
    assert_eq!(lan.take(stream).len(), 1);
}
