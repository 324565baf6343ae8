//! Unix sockets: what `ss -x` asks, and what Linux answers.

use netlink::{Dump, Emit, ParseError, Progress, UnixRequest, UnixSocket, Writer};

use crate::{bytes, first};

/// About one socket: its name, its peer, who waits, queues and owner.
const LISTENER: (&str, &str) = (
    "2800000014000100070000000000000001000000ffffffff3ec92d005d000000ffffffffffffffff",
    "4c0000001400000007000000c87c000001010a003ec92d001f020000000000000c000000006e6c2d74657374\
     040003000c000400000000000500000005000600000000000800070000000000",
);

/// About one of a pair: its name, its peer and queues.
const PAIR: (&str, &str) = (
    "2800000014000100070000000000000001000000ffffffff3fc92d0015000000ffffffffffffffff",
    "3c0000001400000007000000c87c0000010201003fc92d0020020000000000000800020040c92d00\
     0c00040000000000000000000500060000000000",
);

/// The answer to `request` as we write it.
fn answer(request: &str, socket: &UnixSocket<'_>) -> Vec<u8> {
    let datagram = bytes(request);
    let request = UnixRequest::parse(&first(&datagram)).expect("a request");
    assert_eq!(request.inode, socket.inode);
    let mut buffer = [0; 256];
    let mut writer = Writer::new(&mut buffer);
    let picked = request.pick(socket);
    picked.answer(7, 31944, &mut writer).expect("room");
    let len = writer.len();
    buffer[..len].to_vec()
}

#[test]
fn a_listener_is_told_as_linux_tells_it() {
    let socket = UnixSocket {
        socket_type: 1,
        state: 10,
        inode: 0x2d_c93e,
        cookie: 0x21f,
        name: Some(b"\0nl-test"),
        waiting: Some(&[]),
        queues: Some([0, 5]),
        socket_memory: Some([1; 9]),
        shutdown: Some(0),
        user: Some(0),
        ..UnixSocket::default()
    };
    assert_eq!(answer(LISTENER.0, &socket), bytes(LISTENER.1));
}

#[test]
fn one_of_a_pair_is_told_with_its_peer_and_nothing_that_was_not_asked_for() {
    let socket = UnixSocket {
        socket_type: 2,
        state: 1,
        inode: 0x2d_c93f,
        cookie: 0x220,
        peer: Some(0x2d_c940),
        queues: Some([0, 0]),
        shutdown: Some(0),
        user: Some(0),
        ..UnixSocket::default()
    };
    assert_eq!(answer(PAIR.0, &socket), bytes(PAIR.1));
}

#[test]
fn requests_that_are_not_whole_or_not_about_unix_sockets_are_refused() {
    let mut datagram = bytes(PAIR.0);
    datagram[16] = 2;
    let parsed = UnixRequest::parse(&first(&datagram));
    assert_eq!(parsed, Err(ParseError::Family(2)));
    let mut cut = bytes(PAIR.0);
    cut.truncate(32);
    cut[0] = 32;
    let (has, needs) = (16, 24);
    let parsed = UnixRequest::parse(&first(&cut));
    assert_eq!(parsed, Err(ParseError::Truncated { has, needs }));
}

#[test]
fn any_bytes_are_read_or_refused() {
    let start = bytes(PAIR.0);
    for at in 0..start.len() {
        for value in 0..=u8::MAX {
            let mut datagram = start.clone();
            datagram[at] = value;
            for message in netlink::Messages::new(&datagram) {
                let is_unix = UnixRequest::is_meant(&message);
                let parsed = UnixRequest::parse(&message);
                assert!(is_unix || parsed.is_err(), "byte {at} is {value}");
            }
        }
    }
}

#[test]
fn a_dump_goes_on_where_the_buffer_ended() {
    let datagram = bytes(PAIR.0);
    let header = first(&datagram).header();
    let sockets = [UnixSocket::default(); 3];
    let mut buffer = [0; 40];
    let mut writer = Writer::new(&mut buffer);
    let progress = Dump::new(&header, 1).fill(&mut writer, sockets.iter());
    assert_eq!(progress, Progress::More { taken: 1 });
}
