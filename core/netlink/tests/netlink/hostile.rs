//! Bytes that no tool sends.

use netlink::{
    Candidate, DiagRequest, Emit, Header, Link, Messages, Nexthop, Nexthops, Object, ParseError,
    Request, Route, Rule, Writer,
};

use crate::{all, first};
use models::{Random, for_each_seed};

/// The object, written and read again.
fn again(object: &Object, check: impl FnOnce(Result<Request, ParseError>)) {
    let mut buffer = vec![0; 1 << 17];
    let mut writer = Writer::new(&mut buffer);
    let written = match object {
        Object::Link(link) => link.answer(0, 0, &mut writer),
        Object::Address(address) => address.answer(0, 0, &mut writer),
        Object::Route(route) => route.answer(0, 0, &mut writer),
        Object::Neighbour(neighbour) => neighbour.answer(0, 0, &mut writer),
        Object::Rule(rule) => rule.answer(0, 0, &mut writer),
    };
    written.expect("room");
    check(Request::parse(&first(&buffer)));
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        bytes[at] = random.bits() as u8;
    }
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
}

#[test]
fn a_bent_message_is_refused_or_means_the_same_when_written_again() {
    let seeds = all();
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        for original in &seeds {
            let mut bytes = original.clone();
            mutate(random, &mut bytes);
            for message in Messages::new(&bytes) {
                if let Ok(asked) = DiagRequest::parse(&message)
                    && let Some(filter) = asked.filter
                {
                    let id = asked.id;
                    filter.selects(&Candidate {
                        id,
                        is_port_automatic: true,
                        mark: 0,
                    });
                }
                if let Ok(request) = Request::parse(&message) {
                    again(&request.object, |read| {
                        assert_eq!(read.map(|read| read.object), Ok(request.object));
                    });
                }
            }
        }
    });
}

#[test]
fn a_length_that_is_impossible_ends_the_datagram() {
    let mut bytes = [0; 64];
    assert_eq!(Messages::new(&bytes).count(), 0, "zeros");
    bytes[0] = 15;
    assert_eq!(Messages::new(&bytes).count(), 0, "shorter than a header");
    bytes[0] = 17;
    assert_eq!(Messages::new(&bytes).count(), 1, "the second starts at 20");
    bytes[20] = 45;
    assert_eq!(Messages::new(&bytes).count(), 1, "longer than the datagram");
    bytes[20] = 44;
    assert_eq!(Messages::new(&bytes).count(), 2);
    assert_eq!(Messages::new(&[16, 0, 0]).count(), 0);
}

/// The message of a type and body.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; 256];
    let header = Header {
        kind,
        flags: netlink::Flags(flags),
        sequence: 0,
        port: 0,
    };
    let mut writer = Writer::new(&mut buffer);
    writer
        .message(header, |to| {
            to.bytes(body);
        })
        .expect("room");
    buffer
}

fn error(kind: u16, flags: u16, body: &[u8]) -> Option<ParseError> {
    Request::parse(&first(&message(kind, flags, body))).err()
}

#[test]
fn a_command_needs_its_structure_and_a_dump_the_family() {
    for (kind, needs) in [(18, 16), (22, 8), (26, 12), (30, 12), (34, 12)] {
        assert_eq!(error(kind, 1, &[0; 16][..needs]), None);
        let has = needs - 1;
        assert_eq!(
            error(kind, 1, &[0; 16][..has]),
            Some(ParseError::Truncated { has, needs })
        );
        assert_eq!(error(kind, 0x301, &[2]), None);
        assert_eq!(
            error(kind, 0x301, &[]),
            Some(ParseError::Truncated { has: 0, needs: 1 })
        );
    }
}

#[test]
fn other_types_are_named() {
    for kind in [0, 3, 15, 23, 27, 36, 80, u16::MAX] {
        assert_eq!(error(kind, 1, &[0; 32]), Some(ParseError::Kind(kind)));
    }
    assert_eq!(error(19, 1, &[0; 16]), None, "setting a link");
}

#[test]
fn an_attribute_of_a_wrong_size_is_named_with_its_place() {
    let with = |structure: &[u8], attributes: &[u8]| [structure, attributes].concat();
    let link = with(&[0; 16], &[8, 0, 13, 0, 1, 0, 0, 0, 7, 0, 4, 0, 1, 2, 3, 0]);
    assert_eq!(
        error(16, 1, &link),
        Some(ParseError::Attribute {
            kind: 4,
            offset: 40
        })
    );
    let long_name = with(&[0; 16], &[&[20, 0, 3, 0][..], &[b'a'; 16]].concat());
    assert_eq!(
        error(16, 1, &long_name),
        Some(ParseError::Attribute {
            kind: 3,
            offset: 32
        })
    );
    let four_of_six = with(
        &[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[8, 0, 5, 0, 1, 2, 3, 4],
    );
    assert_eq!(
        error(24, 1, &four_of_six),
        Some(ParseError::Attribute {
            kind: 5,
            offset: 28
        })
    );
    let prefix_of_33 = with(
        &[2, 33, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[8, 0, 1, 0, 1, 2, 3, 4],
    );
    assert_eq!(
        error(24, 1, &prefix_of_33),
        Some(ParseError::Attribute {
            kind: 1,
            offset: 28
        })
    );
    let way_of_7_bytes = with(
        &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[12, 0, 9, 0, 7, 0, 0, 0, 0, 0, 0, 0],
    );
    assert_eq!(
        error(24, 1, &way_of_7_bytes),
        Some(ParseError::Attribute {
            kind: 9,
            offset: 28
        })
    );
}

#[test]
fn an_attribute_that_is_passed_over_is_named() {
    // IFLA_MAP, then the MTU, then IFLA_WEIGHT.
    let attributes = [
        8, 0, 14, 0, 1, 0, 0, 0, 8, 0, 4, 0, 2, 0, 0, 0, 8, 0, 15, 0, 3, 0, 0, 0,
    ];
    let bytes = message(16, 1, &[&[0; 16][..], &attributes].concat());
    let request = Request::parse(&first(&bytes)).expect("a command");
    assert_eq!(
        request.unread,
        Some(ParseError::Attribute {
            kind: 14,
            offset: 32
        })
    );
    let mtu = Some(2);
    assert_eq!(
        request.object,
        Object::Link(Link {
            mtu,
            ..Link::default()
        })
    );
}

#[test]
fn a_metric_or_kind_that_is_half_known_is_named_as_a_whole() {
    let unread = |kind, structure: &[u8], attribute: &[u8]| {
        let bytes = message(kind, 1, &[structure, attribute].concat());
        Request::parse(&first(&bytes)).expect("a command").unread
    };
    // RTAX_ADVMSS beside RTAX_MTU.
    let metrics = [20, 0, 8, 0, 8, 0, 2, 0, 1, 0, 0, 0, 8, 0, 8, 0, 1, 0, 0, 0];
    let error = |kind, offset| Some(ParseError::Attribute { kind, offset });
    assert_eq!(unread(24, &[0; 12], &metrics), error(8, 28));
    // IFLA_INFO_SLAVE_KIND.
    assert_eq!(
        unread(16, &[0; 16], &[12, 0, 18, 0, 6, 0, 4, 0, b'a', 0, 0, 0]),
        error(18, 32)
    );
}

#[test]
fn a_table_beyond_a_byte_is_in_the_attribute() {
    let route = Route {
        family: 2,
        table: 300,
        ..Route::default()
    };
    again(&Object::Route(route), |read| {
        assert_eq!(read.map(|read| read.object), Ok(Object::Route(route)))
    });
    let rule = Rule {
        family: 10,
        table: 70_000,
        ..Rule::default()
    };
    again(&Object::Rule(rule), |read| {
        assert_eq!(read.map(|read| read.object), Ok(Object::Rule(rule)))
    });
}

#[test]
fn a_router_of_the_other_family_is_written_with_its_family() {
    for (family, gateway) in [(2, "fe80::1"), (10, "192.0.2.1")] {
        let gateway = Some(gateway.parse().expect("an address"));
        let hops = [Nexthop {
            gateway,
            ..Nexthop::default()
        }; 2];
        let nexthops = Some(Nexthops::new(&hops));
        let route = Object::Route(Route {
            family,
            gateway,
            nexthops,
            ..Route::default()
        });
        again(&route, |read| {
            assert_eq!(read.map(|read| read.object), Ok(route))
        });
    }
}

#[test]
fn of_an_attribute_that_comes_twice_the_last_counts() {
    let twice = [
        &[0; 16][..],
        &[8, 0, 4, 0, 1, 0, 0, 0],
        &[8, 0, 4, 0, 2, 0, 0, 0],
    ]
    .concat();
    let bytes = message(16, 1, &twice);
    let read = Request::parse(&first(&bytes)).map(|read| read.object);
    assert_eq!(
        read,
        Ok(Object::Link(Link {
            mtu: Some(2),
            ..Link::default()
        }))
    );
}
