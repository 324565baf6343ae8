//! Section 3: flows by `flowadm`.

use base::Duration;
use link::lane::TxFlags;
use sim::lan::frames::{Flow, TCP, UDP};
use sim::lan::station;

use crate::Host;

fn host() -> Host {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    host
}

/// Section 3, check 1.
#[test]
fn a_443_flow_shows_tcp_443_and_dashes() {
    let host = host();
    host.prints("flowadm add-flow -l vnic1 -a transport=tcp,local_port=443 https1");
    let expected = concat!(
        "FLOW        LINK        IPADDR                   PROTO  LPORT   RPORT   DSFLD\n",
        "https1      vnic1       --                       tcp    443     --      --\n",
    );
    assert_eq!(host.prints("flowadm show-flow"), expected);
    let fields = host.prints("flowadm show-flow -p -o proto,lport,rport,dsfld https1");
    assert_eq!(fields, "tcp:443:--:--\n");
}

/// Section 3, check 2.
#[test]
fn a_local_ip_flow_beside_a_port_flow_fails() {
    let host = host();
    host.prints("flowadm add-flow -l vnic1 -a transport=tcp,local_port=443 https1");
    let err = host.fails("flowadm add-flow -l vnic1 -a local_ip=10.0.0.1 host1");
    assert!(err.contains("look at transport and local_port"), "{err}");
    assert_eq!(host.prints("flowadm show-flow -p -o flow"), "https1\n");
    host.prints("flowadm add-flow -l net0 -a local_ip=10.0.0.1 host1");
    let taken = host.fails("flowadm add-flow -l net0 -a local_ip=10.0.0.2 https1");
    assert!(taken.contains("a flow has that name"), "{taken}");
}

/// Section 3, check 3, and the other attributes that are refused.
#[test]
fn a_port_alone_fails_and_so_does_all_that_is_no_rule() {
    let host = host();
    for (attributes, why) in [
        ("local_port=25", "a port needs transport"),
        ("transport=icmp,local_port=25", "a port needs transport"),
        ("transport=tcp,transport=udp", "twice"),
        (
            "transport=tcp,local_port=1,remote_port=2",
            "do not go together",
        ),
        ("local_ip=10.0.0.1,transport=tcp", "do not go together"),
        ("dsfield=0x01:0x00", "makes no sense"),
        ("local_ip=10.0.0.1/33", "makes no sense"),
        ("colour=red", "no such attribute"),
    ] {
        let err = host.fails(&format!("flowadm add-flow -l vnic1 -a {attributes} f1"));
        assert!(
            err.starts_with("flowadm: f1 is not added: ") && err.contains(why),
            "{err}"
        );
    }
    assert!(
        host.fails("flowadm add-flow -l no1 -a transport=tcp f1")
            .contains("no link no1")
    );
    let err = host.fails("flowadm add-flow -l vnic1 -a transport=tcp -p maxbw=1M f1");
    assert!(
        err.contains("maxbw: a limit is 0 or at least 1.2M"),
        "{err}"
    );
    assert_eq!(host.prints("flowadm show-flow"), "");
}

#[test]
fn each_kind_of_rule_is_shown_in_its_columns() {
    for (attributes, shown) in [
        ("local_ip=10.1.0.0/16", "LCL\\:10.1.0.0/16:--:--:--:--"),
        (
            "remote_ip=2001:db8::1",
            "RMT\\:2001\\:db8\\:\\:1:--:--:--:--",
        ),
        ("transport=icmpv6", "--:icmpv6:--:--:--"),
        ("transport=udp,remote_port=53", "--:udp:--:53:--"),
        ("dsfield=0x2e", "--:--:--:--:0x2e\\:0xff"),
    ] {
        let host = host();
        host.prints(&format!("flowadm add-flow -l vnic1 -a {attributes} f1"));
        let fields = "ipaddr,proto,lport,rport,dsfld";
        let out = host.prints(&format!("flowadm show-flow -p -o {fields}"));
        assert_eq!(out.trim_end(), shown);
    }
}

/// Section 3, check 4.
#[test]
fn a_limit_on_udp_caps_udp_and_leaves_tcp_alone() {
    let host = host();
    host.prints("flowadm add-flow -l vnic1 -a transport=udp -p maxbw=10M udp1");
    let vnic = host.link("vnic1");
    let (mut udp, mut tcp) = (0, 0);
    host.lan(|lan| {
        for _ in 0..1000 {
            for protocol in [TCP, UDP] {
                let flow = Flow {
                    dst: station(99),
                    src: station(1),
                    from: ([10, 0, 0, 1].into(), 1000),
                    to: ([10, 0, 0, 99].into(), 80),
                    protocol,
                };
                let frames: Vec<_> = (0..40).map(|number| flow.frame(number)).collect();
                let _ = lan.send_by(0, vnic, &frames, TxFlags::DROP);
            }
            lan.run(0);
            let wire = lan.take_wire();
            let of_tcp = wire.iter().filter(|frame| frame[23] == TCP).count() as u64;
            tcp += of_tcp;
            udp += wire.len() as u64 - of_tcp;
            lan.shell.now += Duration::from_millis(1);
        }
    });
    assert_eq!(tcp, 40_000);
    let bits = udp * 42 * 8;
    assert!(
        (9_500_000..=10_500_000).contains(&bits),
        "{bits} bits in a second"
    );
    let counts = host.prints("flowadm show-flow -s -p -o opackets,oerrors udp1");
    assert_eq!(counts, format!("{udp}:{}\n", 40_000 - udp));
}

/// Section 3, check 5.
#[test]
fn a_limit_of_500m_is_shown_as_500_and_the_default_priority_is_medium() {
    let host = host();
    host.prints("flowadm add-flow -l vnic1 -a transport=tcp tcp1");
    host.prints("flowadm set-flowprop -p maxbw=500M tcp1");
    let expected = concat!(
        "FLOW         PROPERTY        VALUE          DEFAULT        POSSIBLE\n",
        "tcp1         maxbw           500            --             --\n",
        "tcp1         priority        medium         medium         low,medium,high\n",
    );
    assert_eq!(host.prints("flowadm show-flowprop tcp1"), expected);
    host.prints("flowadm set-flowprop -p priority=high tcp1");
    host.prints("flowadm reset-flowprop -p maxbw tcp1");
    let values = host.prints("flowadm show-flowprop -c -o value -l vnic1");
    assert_eq!(values, "--\nhigh\n");
    host.prints("flowadm reset-flowprop tcp1");
    assert_eq!(
        host.prints("flowadm show-flowprop -c -o value"),
        "--\nmedium\n"
    );
}

#[test]
fn a_flow_property_that_is_refused_keeps_its_value() {
    let host = host();
    host.prints("flowadm add-flow -l vnic1 -a transport=tcp -p maxbw=2M tcp1");
    for bad in ["maxbw=1M", "priority=top", "mtu=1400"] {
        let err = host.fails(&format!("flowadm set-flowprop -p {bad} tcp1"));
        assert!(err.starts_with("flowadm: tcp1 is not changed: "), "{err}");
    }
    let missing = host.fails("flowadm set-flowprop -p maxbw=2M tcp9");
    assert_eq!(
        missing,
        "flowadm: tcp9 is not changed: there is no such flow\n"
    );
    assert_eq!(
        host.prints("flowadm show-flowprop -c -o value -p maxbw"),
        "2\n"
    );
    assert!(
        host.fails("flowadm show-flowprop -p mtu")
            .contains("no property mtu")
    );
    assert!(
        host.fails("flowadm show-flowprop tcp9")
            .contains("no flow tcp9")
    );
}

/// Section 3, check 6.
#[test]
fn removing_by_link_removes_all_its_flows_and_no_others() {
    let host = host();
    host.prints("dladm create-vnic -l net0 vnic2");
    for (link, name, port) in [("vnic1", "a", 1), ("vnic1", "b", 2), ("vnic2", "c", 1)] {
        let rule = format!("transport=tcp,local_port={port}");
        host.prints(&format!("flowadm add-flow -l {link} -a {rule} {name}"));
    }
    assert_eq!(host.prints("flowadm show-flow -p -o flow"), "a\nb\nc\n");
    assert_eq!(host.prints("flowadm show-flow -l vnic2 -p -o flow"), "c\n");
    host.prints("flowadm remove-flow -l vnic1");
    assert_eq!(host.prints("flowadm show-flow -p -o flow"), "c\n");
    assert_eq!(host.prints("flowadm show-flow -P -p -o flow"), "c\n");
    host.prints("flowadm remove-flow c");
    assert_eq!(host.prints("flowadm show-flow"), "");
    assert!(
        host.fails("flowadm remove-flow c")
            .contains("there is no such flow")
    );
    assert!(host.fails("flowadm show-flow c").contains("no flow c"));
    assert!(
        host.fails("flowadm show-flow -l no1")
            .contains("no link no1")
    );
}
