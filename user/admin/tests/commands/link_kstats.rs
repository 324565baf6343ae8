//! Section 1's counters, as `kstat` shows them.

use sim::lan::frames::{Flow, UDP};
use sim::lan::station;
use wire::MacAddr;

use crate::{Host, NIC};

fn frame(dst: MacAddr, src: MacAddr) -> Vec<u8> {
    let flow = Flow {
        dst,
        src,
        from: ([10, 0, 0, 1].into(), 1000),
        to: ([10, 0, 0, 2].into(), 80),
        protocol: UDP,
    };
    flow.frame(0)
}

/// What `kstat` says of the statistics that a pattern chooses: names without the module and
/// the instance, and values.
fn kstats(host: &Host, pattern: &str) -> Vec<(String, i64)> {
    let text = host.prints(&format!("kstat -p {pattern}"));
    let row = |line: &str| {
        let (name, value) = line.split_once('\t')?;
        let name = name.splitn(3, ':').nth(2)?;
        Some((name.to_string(), value.parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

fn sum(host: &Host, pattern: &str) -> i64 {
    kstats(host, pattern).iter().map(|(_, value)| value).sum()
}

#[test]
fn a_links_lanes_rings_and_drops_have_illumos_names_in_their_order() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    host.lan(|lan| lan.settle());
    let mut names: Vec<String> = Vec::new();
    for (name, _) in kstats(&host, "net0") {
        let (block, _) = name.split_once(':').expect("four names");
        if names.last().is_none_or(|last| last != block) {
            names.push(block.into());
        }
    }
    let of_ring = |ring: usize| {
        let lane = format!("mac_rx_hwlane{ring}");
        [
            lane,
            format!("mac_rx_ring_0_{ring}"),
            format!("mac_tx_ring{ring}"),
        ]
    };
    let mut expected = vec!["mac_misc_stat".to_string(), "mac_rx_swlane0".into()];
    expected.extend((0..3).flat_map(of_ring));
    expected.extend((0..3).map(|ring| format!("mac_tx_hwlane{ring}")));
    assert_eq!(names, expected);
    let statistics = |pattern: &str| -> String {
        let all = kstats(&host, pattern);
        let names = all.iter().filter_map(|(name, _)| name.split_once(':'));
        names.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        statistics("net0:0:mac_rx_hwlane0"),
        "ipackets rbytes intrs intrbytes polls pollbytes rxsdrops chainunder10 chain10to50 \
         chainover50 intrspacing cpu polling pollstarts"
    );
    assert_eq!(
        statistics("vnic1:0:mac_rx_swlane0"),
        "ipackets rbytes local localbytes intrs intrbytes rxsdrops"
    );
    assert_eq!(
        statistics("vnic1:0:mac_tx_hwlane0"),
        "obytes opackets oerrors blockcnt unblockcnt txsdrops"
    );
    assert_eq!(
        statistics("link:0:vnic1"),
        "link_state link_up promisc ifspeed multircv brdcstrcv multixmt brdcstxmt norcvbuf \
         ierrors unknowns noxmtbuf oerrors collisions uflo oflo rbytes ipackets obytes opackets \
         rbytes64 ipackets64 obytes64 opackets64"
    );
    let drops = statistics("vnic1:0:mac_misc_stat");
    let first = "macspoofed restricted ipspoofed dhcpspoofed dhcpdropped overflowed malformed";
    assert!(drops.starts_with(first), "{drops}");
}

#[test]
fn what_a_program_counts_is_shown_while_it_has_the_link() {
    let host = Host::new();
    host.fails("kstat -p net0:0:xdp:");
    let first = (0, vec![("ipackets", 7), ("rx_ring_full", 2)]);
    let further = (12, vec![("ipackets", 100)]);
    host.machine.borrow_mut().owner_counts = vec![first, further];
    assert_eq!(sum(&host, "net0:0:xdp:ipackets"), 7);
    assert_eq!(sum(&host, "net0:0:xdp:"), 9);
    assert_eq!(sum(&host, "net0:0:xdp12:ipackets"), 100);
}

#[test]
fn frames_count_at_the_ring_that_brought_them_and_at_the_link_that_got_them() {
    let host = Host::new();
    for last in 1..=2 {
        let create = format!("dladm create-vnic -l net0 -m 2:0:0:0:0:{last} vnic{last}");
        host.prints(&create);
        let vnic = host.link(&format!("vnic{last}"));
        host.lan(|lan| lan.stack_on(vnic)).expect("a stack");
    }
    for _ in 0..5 {
        host.lan(|lan| lan.arrive(&frame(station(2), station(99))));
    }
    let vnic = host.link("vnic1");
    host.lan(|lan| lan.send(vnic, &frame(station(2), station(1))));
    host.lan(|lan| lan.settle());
    assert_eq!(sum(&host, "net0:0:mac_rx_hwlane?:ipackets"), 5);
    let by = sum(&host, "net0:0:mac_rx_hwlane?:intrs") + sum(&host, "net0:0:mac_rx_hwlane?:polls");
    assert_eq!(by, 5);
    assert!(sum(&host, "net0:0:mac_rx_hwlane?:/^chain/") >= 1);
    assert_eq!(sum(&host, "vnic2:0:mac_rx_swlane0:ipackets"), 6);
    assert_eq!(sum(&host, "vnic2:0:mac_rx_swlane0:local"), 1);
    assert_eq!(sum(&host, "vnic1:0:mac_tx_hwlane?:opackets"), 1);
    assert_eq!(sum(&host, "link:0:vnic2:ipackets64"), 6);
    host.lan(|lan| lan.arrive(&frame(station(77), NIC)));
    host.lan(|lan| lan.settle());
    assert_eq!(sum(&host, "net0:0:mac_misc_stat:no_client"), 1);
}
