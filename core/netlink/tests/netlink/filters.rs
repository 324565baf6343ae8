//! Filters that `ss` compiles, and programs that nobody should.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use netlink::{Candidate, DiagFilter, DiagRequest, FILTER_BYTES_MAX, ParseError, SocketId};

use crate::{bytes, first, recorded};
use models::for_each_seed;

fn socket(local: &str, remote: &str) -> Candidate {
    let end = |text: &str| text.parse().expect("an address and a port");
    let id = SocketId {
        local: end(local),
        remote: end(remote),
        link: 2,
        cookie: 1,
    };
    Candidate {
        id,
        is_port_automatic: false,
        mark: 0x17,
    }
}

/// Whether the filter of a command of `ss` selects the socket.
fn selects(command: &str, socket: &Candidate) -> bool {
    let sent = recorded(command, ">");
    let request = DiagRequest::parse(&first(&sent[0])).expect("a request");
    request.filter.expect("a filter").selects(socket)
}

#[test]
fn a_port_is_compared_for_equality() {
    let command = "ss -tan sport = :7000";
    assert!(selects(command, &socket("127.0.0.1:7000", "0.0.0.0:0")));
    assert!(!selects(
        command,
        &socket("127.0.0.1:7001", "127.0.0.1:7000")
    ));
}

#[test]
fn an_address_is_compared_with_those_of_its_family_mapped_ones_too() {
    let command = "ss -tan state established dst 127.0.0.1";
    assert!(selects(command, &socket("192.0.2.1:1", "127.0.0.1:2")));
    assert!(!selects(command, &socket("127.0.0.1:2", "127.0.0.2:1")));
    assert!(selects(command, &socket("[::1]:1", "[::ffff:127.0.0.1]:2")));
    assert!(!selects(command, &socket("[::1]:1", "[::1]:2")));
}

#[test]
fn and_or_and_not_are_jumps() {
    let command = "ss -tan ( sport >= :1000 and dport < :2000 ) or not src 192.0.2.0/25";
    for (local, remote, selected) in [
        ("192.0.2.1:1000", "192.0.2.2:1999", true),
        ("192.0.2.1:999", "192.0.2.2:1999", false),
        ("192.0.2.1:1000", "192.0.2.2:2000", false),
        ("192.0.2.127:999", "192.0.2.2:2000", false),
        ("192.0.2.128:999", "192.0.2.2:2000", true),
        ("[2001:db8::1]:999", "[2001:db8::2]:2000", true),
    ] {
        assert_eq!(
            selects(command, &socket(local, remote)),
            selected,
            "{local} {remote}"
        );
    }
}

#[test]
fn prefixes_end_within_a_byte_and_the_kernel_knows_whose_port_it_chose() {
    let command = "ss -tan autobound or dst [2001:db8::/33]";
    let inside = socket("[::1]:1", "[2001:db8:7fff::1]:2");
    let outside = socket("[::1]:1", "[2001:db8:8000::1]:2");
    assert!(selects(command, &inside));
    assert!(!selects(command, &outside));
    assert!(selects(
        command,
        &Candidate {
            is_port_automatic: true,
            ..outside
        }
    ));
}

/// What a program of one comparison says of a socket of link 2 and mark 0x17.
fn one(code: u8, compared: &[u8]) -> Option<bool> {
    let bytes = 4 + compared.len() as u8;
    let program = [&[code, bytes, bytes + 4, 0], compared].concat();
    let filter = DiagFilter::check(&program)?;
    Some(filter.selects(&socket("192.0.2.1:80", "192.0.2.2:443")))
}

#[test]
fn each_code_asks_its_own_question() {
    let port = |code, port: u16| one(code, &[&[0, 0], &port.to_le_bytes()[..]].concat());
    for (code, port_there) in [(2, 80), (3, 80), (4, 443), (5, 443), (11, 80), (12, 443)] {
        let answers = [
            port(code, port_there - 1),
            port(code, port_there),
            port(code, port_there + 1),
        ];
        let expected = match code {
            2 | 4 => [true, true, false],
            3 | 5 => [false, true, true],
            _ => [false, true, false],
        };
        assert_eq!(answers, expected.map(Some), "{code}");
    }
    assert_eq!(
        (one(0, &[]), one(1, &[]), one(6, &[])),
        (Some(true), Some(false), Some(false))
    );
    assert_eq!(
        (one(9, &[2, 0, 0, 0]), one(9, &[3, 0, 0, 0])),
        (Some(true), Some(false))
    );
    assert_eq!(one(10, &[7, 0, 0, 0, 0xf, 0, 0, 0]), Some(true));
    assert_eq!(one(10, &[7, 0, 0, 0, 0x1f, 0, 0, 0]), Some(false));
    let any = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    assert_eq!((one(7, &any), one(8, &any)), (Some(true), Some(true)));
    let at_80 = [0, 0, 0, 0, 80, 0, 0, 0];
    assert_eq!((one(7, &at_80), one(8, &at_80)), (Some(true), Some(false)));
}

#[test]
fn programs_that_lead_astray_are_refused() {
    let check = |program: &[u8]| DiagFilter::check(program).is_some();
    assert!(check(&[]), "all sockets");
    assert!(check(&[1, 4, 8, 0]), "none");
    assert!(!check(&[1, 4, 12, 0]), "beyond beyond the end");
    assert!(!check(&[1, 8, 4, 0]), "the way on leads out");
    assert!(!check(&[1, 4, 0, 0]), "nowhere");
    assert!(!check(&[1, 0, 4, 0]), "for ever");
    assert!(!check(&[1, 4, 6, 0, 0, 4, 4, 0]), "between words");
    assert!(!check(&[13, 4, 4, 0]), "a code that is unknown");
    assert!(!check(&[2, 4, 4, 0]), "no port");
    assert!(!check(&[2, 4, 8, 0, 0, 0, 80, 0]), "into its own port");
    assert!(
        !check(&[1, 4, 8, 0, 2, 8, 8, 0, 0, 0, 80, 0]),
        "into another's port"
    );
    assert!(
        !check(&[7, 12, 12, 0, 2, 33, 0, 0, 255, 255, 255, 255, 1, 2, 3, 4]),
        "33 bits of 32"
    );
    assert!(
        !check(&[7, 12, 12, 0, 1, 0, 0, 0, 255, 255, 255, 255]),
        "another family"
    );
    let longest = [0, 4, 4, 0].repeat(FILTER_BYTES_MAX / 4);
    assert!(check(&longest));
    assert!(!check(&[&longest[..], &[0, 4, 4, 0]].concat()));
}

#[test]
fn linux_takes_and_refuses_the_same_programs() {
    let text = include_str!("../fixtures/filters.txt");
    let (mut taken, mut refused) = (0, 0);
    for line in text.lines() {
        let (verdict, hex) = line.split_once(' ').expect("a verdict");
        let is_taken = DiagFilter::check(&bytes(hex)).is_some();
        assert_eq!(is_taken, verdict == "taken", "{line}");
        *(if is_taken { &mut taken } else { &mut refused }) += 1;
    }
    assert!(
        taken >= 40 && refused >= 40,
        "{taken} taken, {refused} refused"
    );
}

#[test]
fn a_refused_filter_is_named_by_its_place() {
    let mut sent = recorded("ss -tan sport = :7000", ">")[0].clone();
    sent[16 + 56 + 4] = 99;
    let error = ParseError::Attribute {
        kind: 1,
        offset: 16 + 56,
    };
    assert_eq!(DiagRequest::parse(&first(&sent)), Err(error));
}

#[test]
fn what_is_not_refused_comes_to_an_end() {
    let candidates = [
        socket("192.0.2.1:80", "192.0.2.2:443"),
        socket("[2001:db8::1]:80", "[2001:db8::2]:443"),
    ];
    let accepted = AtomicU32::new(0);
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        for _ in 0..100 {
            let count = 1 + random.below(5);
            let program: Vec<u8> = (0..count)
                .flat_map(|_| {
                    [
                        random.below(13) as u8,
                        4 + 4 * random.below(3) as u8,
                        4 + 4 * random.below(4) as u8,
                        0,
                    ]
                })
                .collect();
            if let Some(filter) = DiagFilter::check(&program) {
                accepted.fetch_add(1, Relaxed);
                for candidate in &candidates {
                    filter.selects(candidate);
                }
            }
        }
    });
    assert!(accepted.load(Relaxed) > 100);
}
