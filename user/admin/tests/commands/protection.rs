//! Sections 2.3 and 1: what `dladm` sets is what lanes do.

use link::counters::DropReason;
use sim::frame;
use sim::lan::frames::{self, Flow, UDP};
use sim::lan::station;
use wire::{DhcpMessage, EtherType, MacAddr};

use crate::Host;

const ALL: &str = "protection=mac-nospoof,ip-nospoof,dhcp-nospoof,restricted";

fn udp(src: u8, host: [u8; 4]) -> Vec<u8> {
    let flow = Flow {
        dst: station(99),
        src: station(src),
        from: (host.into(), 1000),
        to: ([192, 168, 10, 1].into(), 80),
        protocol: UDP,
    };
    flow.frame(0)
}

/// Who has 192.168.10.1? The first station says that it has `host` (RFC 826).
fn arp(host: [u8; 4]) -> Vec<u8> {
    let mut body = vec![0, 1, 8, 0, 6, 4, 0, 1];
    body.extend_from_slice(&station(1).0);
    body.extend_from_slice(&host);
    body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 192, 168, 10, 1]);
    frame::ethernet(MacAddr::BROADCAST, station(1), EtherType::Arp, &body)
}

fn host() -> Host {
    let host = Host::new();
    let props = format!("{ALL},allowed-ips=192.168.10.0/24");
    let create = format!("dladm create-vnic -l net0 -m 2:0:0:0:0:1 -p {props} vnic1");
    host.prints(&create);
    host
}

fn drops(host: &Host) -> Vec<(&'static str, u64)> {
    let vnic = host.link("vnic1");
    host.lan(|lan| {
        // A lane hears of a new client with its next frame.
        let counters = lan.lanes[0].counters(vnic).into_iter();
        let drops = counters.flat_map(|counters| counters.drops.iter());
        drops.filter(|(_, count)| *count > 0).collect()
    })
}

/// Section 2, check 4.
#[test]
fn protection_that_dladm_sets_drops_forgeries_for_one_reason_each() {
    let host = host();
    let vnic = host.link("vnic1");
    let lldp = frame::ethernet(station(99), station(1), EtherType::Other(0x88cc), &[0; 46]);
    let mut wrong_chaddr = frames::dhcp(DhcpMessage::Discover, 0, 1, [68, 67]);
    wrong_chaddr[14 + 20 + 8 + 28 + 5] = 9;
    for (frame, reason) in [
        (wrong_chaddr, DropReason::DhcpSpoofed),
        (arp([192, 168, 11, 1]), DropReason::IpSpoofed),
        (udp(2, [192, 168, 10, 77]), DropReason::MacSpoofed),
        (lldp, DropReason::Restricted),
        (udp(1, [192, 168, 11, 1]), DropReason::IpSpoofed),
    ] {
        let before = drops(&host);
        host.lan(|lan| lan.send(vnic, &frame));
        let after = drops(&host);
        let count = |drops: &[(&str, u64)]| -> u64 { drops.iter().map(|(_, count)| count).sum() };
        let of = |drops: &[(&str, u64)]| {
            let mut named = drops.iter().filter(|(name, _)| *name == reason.name());
            named.next().map_or(0, |(_, count)| *count)
        };
        assert_eq!(
            (of(&after), count(&after)),
            (of(&before) + 1, count(&before) + 1)
        );
        assert!(host.lan(|lan| lan.take_wire()).is_empty());
    }
    let errors = host.prints("dladm show-link -s -p -o opackets,oerrors vnic1");
    assert_eq!(errors, "0:5\n");
    let reasons = "macspoofed,restricted,ipspoofed,dhcpspoofed,dhcpdropped";
    let line = format!("dladm show-link -s -p -o {reasons} vnic1");
    assert_eq!(host.prints(&line), "1:1:2:1:0\n");
    for (reason, count) in [("macspoofed", 1), ("restricted", 1), ("ipspoofed", 2)] {
        let name = format!("vnic1:0:mac_misc_stat:{reason}");
        assert_eq!(
            host.prints(&format!("kstat -p {name}")),
            format!("{name}\t{count}\n")
        );
    }
}

/// Section 2, check 5, the frames.
#[test]
fn allowed_ips_that_dladm_sets_let_77_pass_and_drop_the_neighbouring_network() {
    let host = host();
    let vnic = host.link("vnic1");
    let good = udp(1, [192, 168, 10, 77]);
    host.lan(|lan| lan.send(vnic, &good));
    host.lan(|lan| lan.send(vnic, &udp(1, [192, 168, 11, 1])));
    assert_eq!(host.lan(|lan| lan.take_wire()), [good]);
    host.prints("dladm reset-linkprop -p protection vnic1");
    host.lan(|lan| lan.send(vnic, &udp(1, [192, 168, 11, 1])));
    assert_eq!(host.lan(|lan| lan.take_wire()).len(), 1);
}

/// Section 2, check 6.
#[test]
fn a_leased_address_passes_after_the_exchange_and_drops_after_the_release() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 -p protection=ip-nospoof vnic1");
    let vnic = host.link("vnic1");
    let passes = || {
        let data = udp(1, [10, 0, 0, 1]);
        host.lan(|lan| {
            lan.take_wire();
            lan.send(vnic, &data);
            lan.take_wire() == [data]
        })
    };
    let dhcp = |message, is_sent| {
        let (kind, ports) = match message {
            DhcpMessage::Offer => (2, [67, 68]),
            DhcpMessage::Ack => (5, [67, 68]),
            _ => (0, [68, 67]),
        };
        let frame = frames::dhcp(message, kind, 7, ports);
        host.lan(|lan| match is_sent {
            true => lan.send(vnic, &frame),
            false => {
                lan.arrive(&frame);
                lan.settle();
            }
        });
    };
    assert!(!passes());
    dhcp(DhcpMessage::Discover, true);
    dhcp(DhcpMessage::Offer, false);
    dhcp(DhcpMessage::Request, true);
    assert!(!passes());
    dhcp(DhcpMessage::Ack, false);
    assert!(passes());
    dhcp(DhcpMessage::Release, true);
    assert!(!passes());
}

#[test]
fn linkdrop_shows_each_forgery_with_its_ends_as_it_happens() {
    let host = host();
    let vnic = host.link("vnic1");
    let forge = |times: usize| {
        for _ in 0..times {
            host.lan(|lan| lan.send(vnic, &udp(1, [192, 168, 11, 1])));
        }
    };
    forge(3);
    let words = |out: &str| -> Vec<Vec<String>> {
        let lines = out.lines().skip(1);
        let words = lines.map(|line| line.split_whitespace().skip(1).map(String::from).collect());
        words.collect()
    };
    let mut looks = 0;
    let (code, out, err) = host.run_while("linkdrop 1 3", &mut |_| {
        looks += 1;
        forge(if looks == 1 { 1 } else { 20 });
        true
    });
    assert_eq!((code, err.as_str()), (0, ""));
    let event = "vnic1 ipspoofed 1 42 udp 192.168.11.1:1000 192.168.10.1:80";
    let lines = words(&out);
    assert_eq!(lines[0].join(" "), event, "{out}");
    assert!(out.contains("(4 events were missed)\n"), "{out}");
    assert_eq!(lines.len(), 1 + 1 + 16);
    let (_, out, _) = host.run("linkdrop -a 1 1");
    assert_eq!(words(&out).len(), 16);
    let (_, out, _) = host.run("linkdrop -a -l net0 1 1");
    assert_eq!(words(&out).len(), 0);
}
