//! Section 1's counters, as `show-link -s` and `show-flow -s` show them.

use hal::CardCounters;
use sim::lan::frames::{Flow, TCP};
use sim::lan::station;
use wire::MacAddr;

use crate::{Host, NIC};

fn frame(dst: MacAddr, src: MacAddr) -> Vec<u8> {
    let flow = Flow {
        dst,
        src,
        from: ([10, 0, 0, 1].into(), 1000),
        to: ([10, 0, 0, 2].into(), 80),
        protocol: TCP,
    };
    flow.frame(0)
}

/// A machine with two VNICs, and stacks on them.
fn host() -> Host {
    let host = Host::new();
    for last in 1..=2 {
        host.prints(&format!(
            "dladm create-vnic -l net0 -m 2:0:0:0:0:{last} vnic{last}"
        ));
        let vnic = host.link(&format!("vnic{last}"));
        host.lan(|lan| lan.stack_on(vnic)).expect("a stack");
    }
    host
}

/// Section 1, check 3: the card is not in it.
#[test]
fn two_vnics_that_talk_count_and_the_cards_rings_do_not() {
    let host = host();
    let vnic = host.link("vnic1");
    let local = frame(station(2), station(1));
    let bytes = local.len();
    host.lan(|lan| lan.send(vnic, &local));
    host.lan(|lan| lan.arrive(&frame(station(2), station(99))));
    host.lan(|lan| lan.settle());
    let expected = format!(
        "LINK           IPACKETS  RBYTES  IERRORS   OPACKETS    OBYTES      OERRORS\n\
         vnic1          0         0       0         1           {bytes:<11} 0\n"
    );
    assert_eq!(host.prints("dladm show-link -s vnic1"), expected);
    let received = host.prints("dladm show-link -s -p -o ipackets,rbytes vnic2");
    assert_eq!(received, format!("2:{}\n", 2 * bytes));
    assert_eq!(host.prints("dladm show-link -s -p -o ipackets net0"), "1\n");
    host.machine.borrow_mut().card = Some(CardCounters {
        rx_frames: 1,
        rx_bytes: 64,
        rx_missed: 2,
        tx_frames: 3,
        tx_bytes: 192,
        tx_collided: 4,
        ..CardCounters::default()
    });
    let card = host.prints("dladm show-link -s -p -o all net0");
    assert_eq!(card, "net0:1:60:2:3:180:4:0:0:0:0:0\n");
}

#[test]
fn an_interval_shows_what_was_carried_in_it_until_nobody_listens() {
    let host = host();
    let vnic = host.link("vnic1");
    let send = |times: usize| {
        for _ in 0..times {
            host.lan(|lan| lan.send(vnic, &frame(station(2), station(1))));
        }
    };
    send(5);
    let mut waits = Vec::new();
    let line = "dladm show-link -s -i 3 -p -o opackets vnic1";
    let (code, out, _) = host.run_while(line, &mut |seconds| {
        waits.push(seconds);
        send(waits.len());
        waits.len() < 3
    });
    assert_eq!((code, out.as_str()), (0, "5\n1\n2\n"));
    assert_eq!(waits, [3, 3, 3]);
    let (code, ..) = host.run("dladm show-link -i 3");
    assert_eq!(code, 2);
    let (code, ..) = host.run("dladm show-link -s -i 0");
    assert_eq!(code, 2);
}

#[test]
fn a_flow_is_shown_with_what_it_carried() {
    let host = host();
    host.prints("flowadm add-flow -l vnic1 -a transport=tcp tcp1");
    host.prints("flowadm add-flow -l vnic1 -a transport=udp udp1");
    let vnic = host.link("vnic1");
    let out = frame(station(99), station(1));
    host.lan(|lan| lan.send(vnic, &out));
    host.lan(|lan| lan.arrive(&frame(station(1), NIC)));
    host.lan(|lan| lan.settle());
    let bytes = out.len();
    let expected = format!("tcp1:1:{bytes}:0:1:{bytes}:0\nudp1:0:0:0:0:0:0\n");
    assert_eq!(host.prints("flowadm show-flow -s -p -o all"), expected);
    let head = host.prints("flowadm show-flow -s udp1");
    let columns = "FLOW IPACKETS RBYTES IERRORS OPACKETS OBYTES OERRORS";
    let words: Vec<_> = head
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    assert_eq!(words.join(" "), columns);
}
