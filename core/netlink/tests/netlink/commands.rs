//! What `ip` and `ss` ask, as typed commands.

use core::net::IpAddr;

use netlink::{
    Address, DiagRequest, Flags, Link, Neighbour, Nexthop, Object, ParseError, Request, Route,
    Rule, Verb,
};

use crate::{first, parse, recorded};

/// The last thing that a command sends is the command itself, and expects `object`.
fn expect(command: &str, verb: Verb, object: Object) {
    let sent = recorded(command, ">");
    let last = sent.last().expect(command);
    let unread = None;
    let expected = Request {
        verb,
        object,
        unread,
    };
    assert_eq!(parse(last), expected, "{command}");
}

fn ip(text: &str) -> Option<IpAddr> {
    Some(text.parse().expect("an address"))
}

/// What `ip link set` and `add` start from.
const LINK: Link = Link {
    family: 0,
    hardware_type: 0,
    index: 0,
    flags: 0,
    changes: 0,
    name: None,
    long_name: None,
    address: None,
    broadcast: None,
    mtu: None,
    mtu_min: None,
    mtu_max: None,
    lower: None,
    master: None,
    queue_frames: None,
    queueing: None,
    operational_state: None,
    carrier: None,
    group: None,
    promiscuity: None,
    transmit_queues: None,
    receive_queues: None,
    extras: None,
    kind: None,
    kind_data: None,
    statistics: None,
    namespace_process: None,
    namespace_file: None,
};

const LINK_3: Link = Link { index: 3, ..LINK };

#[test]
fn links_are_changed_made_and_deleted() {
    let new = |command, link| expect(command, Verb::New, Object::Link(link));
    new(
        "ip link set d0 up",
        Link {
            flags: 1,
            changes: 1,
            ..LINK_3
        },
    );
    new(
        "ip link set d0 mtu 1400",
        Link {
            mtu: Some(1400),
            ..LINK_3
        },
    );
    new(
        "ip link set d0 promisc on",
        Link {
            flags: 0x100,
            changes: 0x100,
            ..LINK_3
        },
    );
    new(
        "ip link set d0 name d1",
        Link {
            name: Some(b"d1"),
            ..LINK_3
        },
    );
    let address = Some(&[2, 0, 0, 0, 0, 2][..]);
    new(
        "ip link set d0 address 02:00:00:00:00:02",
        Link { address, ..LINK_3 },
    );
    new(
        "ip link add d2 type bridge",
        Link {
            name: Some(b"d2"),
            kind: Some(b"bridge"),
            ..LINK
        },
    );
    let vnic = Link {
        name: Some(b"m1"),
        lower: Some(3),
        kind: Some(b"macvlan"),
        kind_data: Some(&[8, 0, 1, 0, 4, 0, 0, 0]),
        ..LINK
    };
    new("ip link add link d1 name m1 type macvlan mode bridge", vnic);
    expect(
        "ip link del d2",
        Verb::Delete,
        Object::Link(Link { index: 4, ..LINK }),
    );
}

#[test]
fn flags_say_how_a_new_object_meets_an_old_one() {
    let flags = |command| {
        first(recorded(command, ">").last().expect(command))
            .header()
            .flags
    };
    let request = Flags::REQUEST | Flags::ACK;
    assert_eq!(flags("ip link set d0 up"), request);
    assert_eq!(
        flags("ip link add d2 type bridge"),
        request | Flags::CREATE | Flags::EXCLUSIVE
    );
    let replace = "ip route replace default via 192.0.2.250 dev d1";
    assert_eq!(flags(replace), request | Flags::CREATE | Flags::REPLACE);
    assert!(flags("ip rule show").any(Flags::DUMP));
}

#[test]
fn addresses_are_added_and_deleted() {
    let four = Address {
        family: 2,
        prefix_len: 24,
        link: 3,
        local: ip("192.0.2.1"),
        address: ip("192.0.2.1"),
        broadcast: ip("192.0.2.255"),
        ..Address::default()
    };
    expect(
        "ip addr add 192.0.2.1/24 brd + dev d1",
        Verb::New,
        Object::Address(four),
    );
    let six = Address {
        family: 10,
        prefix_len: 64,
        link: 3,
        flags: 2,
        local: ip("2001:db8::1"),
        address: ip("2001:db8::1"),
        ..Address::default()
    };
    expect(
        "ip addr add 2001:db8::1/64 dev d1 nodad",
        Verb::New,
        Object::Address(six),
    );
    let peer = Address {
        family: 2,
        prefix_len: 32,
        link: 3,
        local: ip("198.51.100.1"),
        address: ip("198.51.100.2"),
        ..Address::default()
    };
    let labelled = Address {
        label: Some(b"d1:x"),
        ..peer
    };
    expect(
        "ip addr add 198.51.100.1 peer 198.51.100.2 dev d1 label d1:x",
        Verb::New,
        Object::Address(labelled),
    );
    expect(
        "ip addr del 198.51.100.1 peer 198.51.100.2 dev d1",
        Verb::Delete,
        Object::Address(peer),
    );
}

/// What `ip route add` starts from: main table, by hand, a unicast route.
fn route() -> Route<'static> {
    Route {
        family: 2,
        table: 254,
        protocol: 3,
        kind: 1,
        ..Route::default()
    }
}

#[test]
fn routes_are_added_replaced_and_deleted() {
    let default = Route {
        gateway: ip("192.0.2.254"),
        ..route()
    };
    expect(
        "ip route add default via 192.0.2.254",
        Verb::New,
        Object::Route(default),
    );
    let all = Route {
        destination: ip("203.0.113.0"),
        destination_len: 24,
        gateway: ip("192.0.2.253"),
        link: Some(3),
        metric: Some(50),
        mtu: Some(1300),
        preferred_source: ip("192.0.2.1"),
        ..route()
    };
    let command =
        "ip route add 203.0.113.0/24 via 192.0.2.253 dev d1 metric 50 mtu 1300 src 192.0.2.1";
    expect(command, Verb::New, Object::Route(all));
    let blackhole = Route {
        destination: ip("198.18.0.0"),
        destination_len: 15,
        kind: 6,
        ..route()
    };
    expect(
        "ip route add blackhole 198.18.0.0/15",
        Verb::New,
        Object::Route(blackhole),
    );
    let delete = Route {
        destination: ip("203.0.113.0"),
        destination_len: 24,
        protocol: 0,
        kind: 0,
        scope: 255,
        ..route()
    };
    expect(
        "ip route del 203.0.113.0/24",
        Verb::Delete,
        Object::Route(delete),
    );
}

#[test]
fn a_route_of_several_ways_names_each() {
    let sent = recorded(
        "ip route add 198.51.100.0/24 nexthop via 192.0.2.252 weight 1 nexthop via 192.0.2.251 weight 2",
        ">",
    );
    let Object::Route(route) = parse(sent.last().expect("sent")).object else {
        panic!("a route");
    };
    let hop = |weight_less_one, gateway| Nexthop {
        weight_less_one,
        gateway: ip(gateway),
        ..Nexthop::default()
    };
    let hops: Vec<_> = route.nexthops.expect("ways").iter().collect();
    assert_eq!(hops, [hop(0, "192.0.2.252"), hop(1, "192.0.2.251")]);
}

#[test]
fn a_route_is_looked_up_by_address_and_shown_by_table() {
    let get = Route {
        family: 2,
        destination: ip("203.0.113.9"),
        destination_len: 32,
        flags: 0x1000,
        ..Route::default()
    };
    expect("ip route get 203.0.113.9", Verb::Get, Object::Route(get));
    let sent = recorded("ip route show", ">");
    let main = Route {
        family: 2,
        table: 254,
        ..Route::default()
    };
    assert_eq!(
        parse(&sent[0]),
        Request {
            verb: Verb::Dump,
            object: Object::Route(main),
            unread: None
        }
    );
}

#[test]
fn neighbours_are_added_shown_and_deleted() {
    let neighbour = Neighbour {
        family: 2,
        link: 3,
        state: 0x80,
        address: ip("192.0.2.9"),
        ..Neighbour::default()
    };
    let permanent = Neighbour {
        link_address: Some(&[2, 0, 0, 0, 0, 9]),
        ..neighbour
    };
    expect(
        "ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev d1 nud permanent",
        Verb::New,
        Object::Neighbour(permanent),
    );
    expect(
        "ip neigh get 192.0.2.9 dev d1",
        Verb::Get,
        Object::Neighbour(Neighbour {
            state: 0,
            ..neighbour
        }),
    );
    expect(
        "ip neigh show",
        Verb::Dump,
        Object::Neighbour(Neighbour::default()),
    );
    expect(
        "ip neigh del 192.0.2.9 dev d1",
        Verb::Delete,
        Object::Neighbour(neighbour),
    );
}

#[test]
fn rules_are_added_shown_and_deleted() {
    let rule = Rule {
        family: 2,
        source: ip("192.0.2.0"),
        source_len: 24,
        table: 100,
        action: 1,
        priority: Some(1000),
        ..Rule::default()
    };
    expect(
        "ip rule add from 192.0.2.0/24 lookup 100 priority 1000",
        Verb::New,
        Object::Rule(rule),
    );
    let marked = Rule {
        family: 2,
        destination: ip("203.0.113.0"),
        destination_len: 24,
        from_link: Some(b"d1"),
        mark: Some(7),
        mark_mask: Some(0xff),
        table: 300,
        action: 1,
        priority: Some(1001),
        ..Rule::default()
    };
    expect(
        "ip rule add fwmark 0x7/0xff iif d1 to 203.0.113.0/24 table 300 priority 1001",
        Verb::New,
        Object::Rule(marked),
    );
    expect(
        "ip rule show",
        Verb::Dump,
        Object::Rule(Rule {
            family: 2,
            ..Rule::default()
        }),
    );
    expect(
        "ip rule del priority 1000",
        Verb::Delete,
        Object::Rule(Rule {
            family: 2,
            priority: Some(1000),
            ..Rule::default()
        }),
    );
}

fn diag(command: &str) -> Vec<Vec<u8>> {
    recorded(command, ">")
}

#[test]
fn ss_asks_for_sockets_by_family_protocol_and_state() {
    let sent = diag("ss -tanie");
    let requests: Vec<_> = sent
        .iter()
        .map(|one| DiagRequest::parse(&first(one)).expect("a request"))
        .collect();
    let families: Vec<_> = requests
        .iter()
        .map(|request| (request.family, request.protocol))
        .collect();
    assert_eq!(families, [(2, 6), (10, 6)]);
    let tcp = requests[0];
    assert!(tcp.is_dump && !tcp.is_destroy && tcp.filter.is_none());
    assert_eq!(tcp.states, 0xfff);
    let wanted: Vec<_> = (0..=9).filter(|&number| tcp.wants(number)).collect();
    assert_eq!(
        wanted,
        [2, 3, 4],
        "tcp_info, Vegas' numbers, congestion control"
    );
    let udp = diag("ss -uan");
    assert_eq!(
        DiagRequest::parse(&first(&udp[0]))
            .expect("a request")
            .protocol,
        17
    );
}

#[test]
fn sockets_of_other_families_are_refused_by_name() {
    let sent = diag("ss -xa");
    assert_eq!(
        DiagRequest::parse(&first(&sent[0])),
        Err(ParseError::Family(1))
    );
}
