//! What packets look like, and that bytes that are none do no harm.

use std::time::Duration;

use clap::Parser;
use snoop::{Args, Printer, Seen, dissect};

const ETHERNET: i32 = 1;
const COOKED_2: i32 = 276;

/// A SYN from 10.0.0.1:40000 to 10.0.0.2:6379, with the options that it usually has.
const SYN: [u8; 58] = [
    0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
    0x45, 0, 0, 44, 0, 7, 0x40, 0, 64, 6, 0x26, 0xc3, 10, 0, 0, 1, 10, 0, 0, 2, // IP
    0x9c, 0x40, 0x18, 0xeb, 0, 0, 0, 100, 0, 0, 0, 0, 0x60, 0x02, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5,
    0xb4, // TCP
];

/// "Who has 10.0.0.2? Tell 10.0.0.1."
const ARP: [u8; 42] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0, 1, 0x08, 0x06, // Ethernet
    0, 1, 8, 0, 6, 4, 0, 1, 0x02, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
];

fn seen(number: u64, millis: u64, bytes: &[u8]) -> Seen<'_> {
    Seen {
        number,
        time: Duration::from_secs(36_000) + Duration::from_millis(millis),
        len: bytes.len() as u32,
        bytes,
    }
}

fn args(words: &[&str]) -> Args {
    Args::parse_from(["snoop"].iter().chain(words))
}

/// What two packets, a quarter of a second apart, look like.
fn shown(words: &[&str]) -> String {
    let args = args(words);
    let mut printer = Printer::new(&args);
    let first = printer.show(ETHERNET, &seen(1, 0, &ARP));
    first + &printer.show(ETHERNET, &seen(2, 250, &SYN))
}

#[test]
fn a_packet_is_a_line_about_its_innermost_header() {
    assert_eq!(
        shown(&[]),
        "  1   0.00000 02:00:00:00:00:01 -> ff:ff:ff:ff:ff:ff ARP C Who is 10.0.0.2 ?\n  \
         2   0.25000     10.0.0.1 -> 10.0.0.2     TCP D=6379 S=40000 Syn Seq=100 Len=0 Win=65535\n"
    );
}

#[test]
fn all_layers_have_a_line_each_when_asked_for() {
    let text = shown(&["-V"]);
    let of_second: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  2"))
        .collect();
    assert_eq!(of_second.len(), 3);
    assert!(of_second[0].ends_with("ETHER Type=0800 (IP), size=58 bytes"));
    assert!(of_second[1].ends_with("IP D=10.0.0.2 S=10.0.0.1 LEN=44, ID=7, TOS=0x0, TTL=64"));
}

#[test]
fn verbose_lines_name_all_fields() {
    let text = shown(&["-v"]);
    for line in [
        "ETHER:  ----- Ether Header -----",
        "ETHER:  Packet 2 arrived at 0.25000",
        "IP:     Do not fragment = true",
        "TCP:    Destination port = 6379",
        "TCP:    Flags = 0x02 (Syn)",
        "ARP:    Target protocol address = 10.0.0.2",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
}

#[test]
fn times_are_what_was_asked_for() {
    assert!(shown(&["-t", "a"]).contains("10:00:00.25000"));
    let args = args(&["-t", "r"]);
    let mut printer = Printer::new(&args);
    for millis in [0, 250, 500] {
        let line = printer.show(ETHERNET, &seen(1, millis, &ARP));
        assert!(line.contains(&format!(" 0.{millis:03}00 ")), "{line}");
    }
}

#[test]
fn bytes_are_shown_from_an_offset_on() {
    let text = shown(&["-x", "14,4", "-S"]);
    assert!(text.contains("length:   58"), "{text}");
    assert!(text.contains("\t  14: 4500 002c"), "{text}");
}

#[test]
fn packets_of_any_interface_have_a_header_of_their_own() {
    let mut bytes = vec![
        0x08, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0,
    ];
    bytes.extend(&SYN[14..]);
    let read = dissect(COOKED_2, &seen(1, 0, &bytes));
    let names: Vec<&str> = read.layers.iter().map(|layer| layer.name).collect();
    assert_eq!(names, ["COOKED", "IP", "TCP"]);
}

#[test]
fn a_packet_cut_anywhere_is_shown_as_far_as_it_goes() {
    for packet in [&SYN[..], &ARP[..]] {
        for len in 0..packet.len() {
            let read = dissect(ETHERNET, &seen(1, 0, &packet[..len]));
            let last = read.layers.last().expect("there is always a line");
            let has_all_fields = last.name == "TCP" && len >= 52;
            assert_eq!(
                last.summary.starts_with("malformed"),
                !has_all_fields,
                "{len}: {last:?}"
            );
        }
    }
}

#[test]
fn any_bytes_are_a_packet_of_some_kind() {
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut bytes = SYN.to_vec();
        for _ in 0..4 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 56) as u8;
        }
        for link_type in [ETHERNET, COOKED_2, 101, 113, 7] {
            let read = dissect(link_type, &seen(1, 0, &bytes));
            assert!(read.layers.iter().all(|layer| !layer.summary.is_empty()));
        }
    }
}
