//! Files, read by a parser of the format's description.

use base::Duration;

use capture::pcapng::{Block, Direction, Interface, NoRoom, Packet, Statistics};

/// A block as a reader finds it: type, body without options, options.
#[derive(Debug, PartialEq)]
struct Read {
    kind: u32,
    fixed: Vec<u8>,
    options: Vec<(u16, Vec<u8>)>,
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes")) as usize
}

/// Reads one block and returns what is behind it.
fn read(bytes: &[u8]) -> (Read, &[u8]) {
    let (kind, len) = (u32_at(bytes, 0), u32_at(bytes, 4));
    assert_eq!(len % 4, 0);
    assert_eq!(u32_at(bytes, len - 4), len, "both lengths agree");
    let body = &bytes[8..len - 4];
    let fixed = match kind {
        0x0a0d_0d0a => 16,
        1 => 8,
        5 => 12,
        6 => 20 + u32_at(body, 12).next_multiple_of(4),
        kind => panic!("type {kind}"),
    };
    let (fixed, mut rest) = body.split_at(fixed);
    let mut options = Vec::new();
    loop {
        let (code, len) = (u16_at(rest, 0), u16_at(rest, 2));
        if code == 0 {
            assert_eq!((len, rest.len()), (0, 4), "the end is the end");
            break;
        }
        options.push((code as u16, rest[4..4 + len].to_vec()));
        rest = &rest[4 + len.next_multiple_of(4)..];
    }
    let block = Read {
        kind: kind as u32,
        fixed: fixed.to_vec(),
        options,
    };
    (block, &bytes[len..])
}

fn written(block: &Block) -> Vec<u8> {
    let mut buffer = vec![0xee; 4096];
    let len = block.emit(&mut buffer).expect("room");
    assert!(buffer[len..].iter().all(|&byte| byte == 0xee));
    buffer.truncate(len);
    buffer
}

const TIME: Duration = Duration::new(1_700_000_000, 123_456_789);

const PACKET: Block<'static> = Block::Packet(Packet {
    interface: 0,
    time: TIME,
    len: 1500,
    parts: &[b"seven", b"", b"by"],
    direction: Some(Direction::Out),
    lost: Some(3),
    comment: Some("no route"),
});

#[test]
fn a_file_of_all_blocks_is_read_back() {
    let interface = Block::Interface(Interface {
        link_type: 1,
        keep_max: 65_535,
        name: Some("net0"),
        filter: Some("tcp port 80"),
    });
    let statistics = Block::Statistics(Statistics {
        interface: 0,
        time: TIME,
        received: 9,
        dropped: 2,
    });
    let section = Block::Section {
        application: "snoop",
    };
    let file = [section, interface, PACKET, statistics]
        .map(|block| written(&block))
        .concat();
    let (section, rest) = read(&file);
    assert_eq!(u32_at(&section.fixed, 0), 0x1a2b_3c4d);
    assert_eq!(
        section.fixed[4..],
        [1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]
    );
    assert_eq!(section.options, [(4, b"snoop".to_vec())]);
    let (interface, rest) = read(rest);
    assert_eq!(interface.fixed, [1, 0, 0, 0, 255, 255, 0, 0]);
    let filter = [b"\0", &b"tcp port 80"[..]].concat();
    assert_eq!(
        interface.options,
        [(2, b"net0".to_vec()), (9, vec![9]), (11, filter)]
    );
    let (packet, rest) = read(rest);
    assert_eq!(packet.fixed[20..], *b"sevenby\0");
    assert_eq!(
        (u32_at(&packet.fixed, 12), u32_at(&packet.fixed, 16)),
        (7, 1500)
    );
    let nanos = (u32_at(&packet.fixed, 4) as u64) << 32 | u32_at(&packet.fixed, 8) as u64;
    assert_eq!(Duration::from_nanos(nanos), TIME);
    let lost = 3_u64.to_le_bytes().to_vec();
    assert_eq!(
        packet.options,
        [(1, b"no route".to_vec()), (2, vec![2, 0, 0, 0]), (4, lost)]
    );
    let (statistics, rest) = read(rest);
    let count = |number: u64| number.to_le_bytes().to_vec();
    assert_eq!(statistics.options, [(4, count(9)), (5, count(2))]);
    assert_eq!(rest, []);
}

#[test]
fn a_block_that_does_not_fit_is_not_half_counted() {
    let whole = written(&PACKET).len();
    for bytes in 0..whole {
        assert_eq!(PACKET.emit(&mut vec![0; bytes]), Err(NoRoom), "{bytes}");
    }
    assert_eq!(PACKET.emit(&mut vec![0; whole]), Ok(whole));
}

#[test]
fn texts_are_cut_to_what_an_option_holds() {
    let long = "x".repeat(70_000);
    let block = Block::Interface(Interface {
        link_type: 1,
        keep_max: 0,
        name: Some(&long),
        filter: Some(&long),
    });
    let mut buffer = vec![0; 200_000];
    let len = block.emit(&mut buffer).expect("room");
    let (read, _) = read(&buffer[..len]);
    let lengths: Vec<_> = read.options.iter().map(|(_, value)| value.len()).collect();
    assert_eq!(lengths, [65_535, 1, 65_535]);
}
