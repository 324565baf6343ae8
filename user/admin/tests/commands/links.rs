//! Section 2.1: links, and how they are shown.

use sim::lan::Card;

use crate::{Host, NIC};

#[test]
fn show_link_has_its_columns_in_order() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 vnic1");
    host.prints("dladm create-etherstub stub0");
    host.lan(|lan| lan.links.set_up(lan.port, true))
        .expect("a port");
    let expected = concat!(
        "LINK        CLASS     MTU    STATE    BRIDGE     OVER\n",
        "net0        phys      1500   up       --         --\n",
        "vnic1       vnic      1500   up       --         net0\n",
        "stub0       etherstub 9000   unknown  --         --\n",
    );
    assert_eq!(host.prints("dladm show-link"), expected);
    let one = host.prints("dladm show-link -o over,LINK vnic1");
    assert_eq!(
        one,
        "OVER                          LINK\nnet0                          vnic1\n"
    );
    let none = host.fails("dladm show-link net9");
    assert_eq!(none, "dladm: there is no link net9\n");
    assert!(host.fails("dladm show-link -o colour").contains("colour"));
}

/// Section 2, check 1.
#[test]
fn parsable_output_escapes_colons_unless_one_field_is_asked_for() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    let two = host.prints("dladm show-link -p -o link,mtu net0");
    assert_eq!(two, "net0:1500\n");
    let two = host.prints("dladm show-vnic -p -o LINK,macaddress");
    assert_eq!(two, "vnic1:02\\:00\\:00\\:00\\:00\\:01\n");
    let one = host.prints("dladm show-vnic -p -o macaddress");
    assert_eq!(one, "02:00:00:00:00:01\n");
    let all = host.prints("dladm show-link -p -o all vnic1");
    assert_eq!(all, "vnic1:vnic:1500:unknown:--:net0\n");
    let (code, out, _) = host.run("dladm show-link -p");
    assert_eq!((code, out.as_str()), (2, ""));
}

#[test]
fn a_thousand_links_come_page_by_page_each_once() {
    let host = Host::new();
    for number in 0..1000 {
        host.prints(&format!("dladm create-etherstub -t stub{number}"));
    }
    let out = host.prints("dladm show-link -p -o link");
    let mut expected = vec!["net0".to_string()];
    expected.extend((0..1000).map(|number| format!("stub{number}")));
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn show_phys_shows_cards_their_addresses_and_their_rings() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 own1");
    host.prints("dladm create-vnic -l net0 shared1");
    host.lan(|lan| lan.links.set_up(lan.port, true))
        .expect("a port");
    let expected = concat!(
        "LINK         MEDIA                STATE      SPEED  DUPLEX    DEVICE\n",
        "net0         Ethernet             up         10000  full      card-of-net0\n",
    );
    assert_eq!(host.prints("dladm show-phys"), expected);
    let address = "net0:primary:02\\:00\\:00\\:00\\:00\\:00:no:--\n";
    assert_eq!(host.prints("dladm show-phys -m -p -o all"), address);
    let expected = concat!(
        "LINK         RINGTYPE RINGS            CPUS     CLIENTS\n",
        "net0         RX       0-1              0,1      <default,mcast>,net0,\n",
        "                                                shared1\n",
        "net0         RX       2                2        own1\n",
        "net0         TX       0-2              --       <default>,net0\n",
        "net0         TX       0                --       shared1,own1\n",
    );
    assert_eq!(host.prints("dladm show-phys -H"), expected);
    let wrong = host.fails("dladm show-phys own1");
    assert_eq!(wrong, "dladm: own1 is not a card's own\n");
    assert_eq!(
        host.fails("dladm show-phys no1"),
        "dladm: there is no link no1\n"
    );
    let stack = host.lan(|lan| lan.stack_on(lan.port));
    assert!(stack.is_ok());
    assert_eq!(
        host.prints("dladm show-phys -m -p -o inuse,client"),
        "yes:net0\n"
    );
}

/// Section 1, check 2, as the administrator sees it.
#[test]
fn vnics_beyond_the_groups_are_shown_in_the_default_group() {
    let card = Card::new(NIC.0, &[(1, 2), (1, 1), (1, 1)], true);
    let host = Host::with_card(card.clone());
    for number in 1..=4 {
        assert_eq!(card.promiscuous(), None);
        host.prints(&format!("dladm create-vnic -l net0 vnic{number}"));
    }
    assert!(card.promiscuous().is_some());
    let clients = host.prints("dladm show-phys -H -p -o clients");
    let expected = [
        "<default,mcast>,net0,vnic3,vnic4",
        "vnic1",
        "vnic2",
        "<default>,net0",
        "vnic3,vnic4,vnic1,vnic2",
    ];
    assert_eq!(clients.lines().collect::<Vec<_>>(), expected);
}

/// Section 2, check 2.
#[test]
fn a_vlan_without_a_name_is_bge2001_and_identifiers_0_and_4095_are_rejected() {
    let host = Host::new();
    let card = Card::new([2, 0, 0, 0, 0, 9], &[(1, 1)], true);
    host.lan(|lan| {
        lan.links
            .attach("bge1", card.control(), &link::rss::Rss::default())
    })
    .expect("a card");
    assert_eq!(host.prints("dladm create-vlan -l bge1 -v 2"), "");
    let expected = concat!(
        "LINK            VID      OVER         FLAGS\n",
        "bge2001         2        bge1         -----\n",
    );
    assert_eq!(host.prints("dladm show-vlan"), expected);
    for bad in ["0", "4095", "65538", "x"] {
        let (code, _, err) = host.run(&format!("dladm create-vlan -l bge1 -v {bad}"));
        assert_eq!(code, 2, "{bad}");
        assert!(err.contains("from 1 to 4094"), "{err}");
    }
    host.prints("dladm create-vlan -f -l bge1 -v 4094 high1");
    assert_eq!(host.prints("dladm show-vlan -p -o vid high1"), "4094\n");
    let again = host.fails("dladm create-vlan -l bge1 -v 2");
    assert_eq!(
        again,
        "dladm: the VLAN is not created: a link has that name\n"
    );
    host.prints("dladm delete-vlan bge2001");
    assert_eq!(host.prints("dladm show-vlan -p -o link"), "high1\n");
    let wrong = host.fails("dladm show-vlan bge1");
    assert_eq!(wrong, "dladm: bge1 is not a VLAN\n");
}

#[test]
fn show_vnic_says_where_an_address_came_from() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 02:00:00:00:00:01 -v 7 vnic1");
    host.prints("dladm create-vnic -l net0 -m random -r 2:aa:bb vnic2");
    host.prints("dladm create-etherstub stub0");
    host.prints("dladm create-vnic -l stub0 vnic3");
    let expected = concat!(
        "LINK         OVER       SPEED MACADDRESS        MACADDRTYPE VID\n",
        "vnic1        net0       10000 02:00:00:00:00:01 fixed       7\n",
        "vnic2        net0       10000 02:aa:bb:00:00:02 random      0\n",
        "vnic3        stub0      0     02:08:20:00:00:03 random      0\n",
    );
    assert_eq!(host.prints("dladm show-vnic"), expected);
    assert_eq!(
        host.prints("dladm show-vnic -l stub0 -p -o link"),
        "vnic3\n"
    );
    assert_eq!(host.prints("dladm show-etherstub"), "LINK\nstub0\n");
    let wrong = host.fails("dladm show-vnic stub0");
    assert_eq!(wrong, "dladm: stub0 is not a VNIC\n");
    let wrong = host.fails("dladm show-etherstub net0");
    assert_eq!(wrong, "dladm: net0 is not an etherstub\n");
}

#[test]
fn a_vnic_that_is_refused_leaves_no_trace_and_a_sentence() {
    let host = Host::new();
    host.prints("dladm create-vnic -l net0 -m 2:0:0:0:0:1 vnic1");
    for (arguments, why) in [
        ("-l net9 vnic2", "there is no link net9"),
        ("-l vnic1 vnic2", "class"),
        ("-l net0 vnic1", "has that name"),
        ("-l net0 vnic", "ends in a digit"),
        ("-l net0 -m 2:0:0:0:0:1 vnic2", "has that address"),
        ("-l net0 -m 1:0:0:0:0:1 vnic2", "no station's address"),
        ("-l net0 -m factory -n 1 vnic2", "no addresses to spare"),
        ("-l net0 -m random -n 1 vnic2", "factory"),
        ("-l net0 -m 2:0:0:0:0:2 -r 2:8:20 vnic2", "random"),
        (
            "-l net0 -p mtu=1400,maxbw=1M vnic2",
            "maxbw: a limit is 0 or at least 1.2M",
        ),
        (
            "-l net0 -p speed=1 vnic2",
            "speed: the property is read-only",
        ),
        ("-l net0 -p mtu vnic2", "no property with its value"),
    ] {
        let err = host.fails(&format!("dladm create-vnic {arguments}"));
        assert!(err.starts_with("dladm: ") && err.contains(why), "{err}");
        assert_eq!(host.prints("dladm show-link -p -o link"), "net0\nvnic1\n");
    }
    assert_eq!(host.prints("dladm show-vnic -P -p -o link"), "vnic1\n");
}

#[test]
fn a_link_is_deleted_by_its_own_command_and_only_while_nobody_uses_it() {
    let host = Host::new();
    host.prints("dladm create-etherstub stub0");
    host.prints("dladm create-vnic -l stub0 vnic1");
    let wrong = host.fails("dladm delete-vlan vnic1");
    assert_eq!(
        wrong,
        "dladm: vnic1 is not deleted: the link is not a VLAN\n"
    );
    assert!(host.fails("dladm delete-etherstub stub0").contains("busy"));
    let vnic = host.link("vnic1");
    let stream = host.lan(|lan| lan.links.open(vnic)).expect("a stream");
    assert!(host.fails("dladm delete-vnic vnic1").contains("busy"));
    host.lan(|lan| lan.links.close(stream)).expect("open");
    host.prints("dladm delete-vnic vnic1");
    host.prints("dladm delete-etherstub stub0");
    assert_eq!(host.prints("dladm show-link -p -o link"), "net0\n");
    let gone = host.fails("dladm delete-vnic vnic1");
    assert_eq!(
        gone,
        "dladm: vnic1 is not deleted: there is no link vnic1\n"
    );
}
