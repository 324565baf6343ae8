//! Section 2.2: properties of links.

use linkctl::Rights;

use crate::Host;

fn value(host: &Host, name: &str) -> String {
    let out = host.prints(&format!("dladm show-linkprop -c -o value -p {name} vnic1"));
    out.trim_end().into()
}

fn host() -> Host {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 vnic1");
    host
}

#[test]
fn show_linkprop_has_its_columns_in_order() {
    let host = host();
    let expected = concat!(
        "LINK         PROPERTY        PERM VALUE          DEFAULT        POSSIBLE\n",
        "vnic1        mtu             rw   1500           1500           68-1500\n",
        "vnic1        priority        rw   high           high           low,medium,high\n",
        "vnic1        speed           r-   10000          --             --\n",
    );
    let out = host.prints("dladm show-linkprop -p mtu,priority,speed vnic1");
    assert_eq!(out, expected);
    let all = host.prints("dladm show-linkprop -c -o link,property");
    let names = |link: &str| all.lines().filter(|line| line.starts_with(link)).count();
    assert_eq!((names("net0:"), names("vnic1:")), (16, 16));
    let unknown = host.fails("dladm show-linkprop -p colour");
    assert_eq!(unknown, "dladm: there is no property colour\n");
}

/// Section 2, check 8.
#[test]
fn what_is_not_set_is_two_dashes_and_what_nobody_knows_a_question_mark() {
    let host = host();
    for name in ["maxbw", "cpus", "allowed-ips", "protection", "rxrings"] {
        assert_eq!(value(&host, name), "--", "{name}");
    }
    host.prints("dladm create-etherstub stub0");
    let speed = host.prints("dladm show-linkprop -c -o value -p speed stub0");
    assert_eq!(speed, "?\n");
}

/// Section 2, check 7, the running system.
#[test]
fn what_is_read_only_or_out_of_range_fails_and_keeps_its_value() {
    let host = host();
    host.prints("dladm set-linkprop -p mtu=1400 vnic1");
    for (name, bad, why) in [
        ("speed", "1", "read-only"),
        ("state", "down", "read-only"),
        ("mtu", "67", "out of range"),
        ("mtu", "1501", "out of range"),
        ("mtu", "many", "cannot have that value"),
        ("maxbw", "1M", "at least 1.2M"),
        ("cpus", "64", "cpus: the machine's CPUs are 0 to 63"),
        ("cpus", "0-64", "cpus: the machine's CPUs are 0 to 63"),
        ("cpus", "", "cpus: no CPU is named"),
        ("cpus", "one", "cannot have that value"),
        ("maxbw", "1X", "number with K, M or G"),
        ("priority", "top", "cannot have that value"),
        ("protection", "none", "cannot have that value"),
        ("rxrings", "0", "out of range"),
        ("promisc-filtered", "yes", "cannot have that value"),
    ] {
        let before = value(&host, name);
        let err = host.fails(&format!("dladm set-linkprop -p {name}={bad} vnic1"));
        assert!(
            err.contains(&format!("{name}: ")) && err.contains(why),
            "{err}"
        );
        assert_eq!(value(&host, name), before, "{name}");
    }
    let kept = host.prints("dladm show-linkprop -P -c -o value -p mtu,maxbw vnic1");
    assert_eq!(kept, "1400\n--\n");
    let unknown = host.fails("dladm set-linkprop -p zone=z1 vnic1");
    assert!(
        unknown.contains("zone: there is no such property"),
        "{unknown}"
    );
    assert!(
        host.fails("dladm reset-linkprop -p speed vnic1")
            .contains("read-only")
    );
}

#[test]
fn a_property_is_set_in_any_unit_and_reset_to_its_default() {
    let host = host();
    for (text, shown) in [
        ("100", "100"),
        ("100M", "100"),
        ("1.5G", "1500"),
        ("1200K", "1.200"),
        ("0", "0"),
    ] {
        host.prints(&format!("dladm set-linkprop -p maxbw={text} vnic1"));
        assert_eq!(value(&host, "maxbw"), shown);
    }
    host.prints("dladm set-linkprop -p cpus=0-1,priority=low vnic1");
    assert_eq!(
        (value(&host, "cpus"), value(&host, "priority")),
        ("0,1".into(), "low".into())
    );
    host.prints("dladm reset-linkprop -p cpus,priority vnic1");
    assert_eq!(
        (value(&host, "cpus"), value(&host, "priority")),
        ("--".into(), "high".into())
    );
    host.prints("dladm set-linkprop -p mtu=1400 vnic1");
    host.prints("dladm reset-linkprop vnic1");
    assert_eq!(
        (value(&host, "maxbw"), value(&host, "mtu")),
        ("--".into(), "1500".into())
    );
    assert!(
        host.fails("dladm set-linkprop -p mtu=1400 no1")
            .contains("there is no link no1")
    );
}

/// Section 2, check 5, the list.
#[test]
fn a_33rd_allowed_address_is_rejected() {
    let host = host();
    let list = |most: usize| {
        let all: Vec<_> = (1..=most)
            .map(|last| format!("192.168.10.{last}"))
            .collect();
        all.join(",")
    };
    host.prints(&format!(
        "dladm set-linkprop -p allowed-ips={} vnic1",
        list(32)
    ));
    let err = host.fails(&format!(
        "dladm set-linkprop -p allowed-ips={} vnic1",
        list(33)
    ));
    assert!(err.contains("allowed-ips: more than 32 entries"), "{err}");
    assert_eq!(value(&host, "allowed-ips"), list(32));
}

#[test]
fn who_may_only_look_changes_nothing() {
    let host = host();
    host.machine.borrow_mut().rights = Rights::Look;
    for line in [
        "dladm set-linkprop -p mtu=1400 vnic1",
        "dladm reset-linkprop -p mtu vnic1",
        "dladm create-vnic -l net0 vnic2",
        "dladm create-vlan -l net0 -v 2",
        "dladm create-etherstub stub0",
        "dladm delete-vnic vnic1",
        "flowadm add-flow -l vnic1 -a transport=tcp tcp1",
        "flowadm remove-flow -l vnic1",
    ] {
        let err = host.fails(line);
        assert!(
            err.contains("only the administrator may do that"),
            "{line}: {err}"
        );
    }
    assert_eq!(host.prints("dladm show-link -p -o link"), "net0\nvnic1\n");
}

#[test]
fn a_value_that_no_terminal_should_see_is_refused() {
    let host = host();
    let err = host.fails("dladm set-linkprop -p allowed-dhcp-cids=\u{1b}[2J vnic1");
    assert!(err.contains("control characters"), "{err}");
    assert_eq!(value(&host, "allowed-dhcp-cids"), "--");
}
