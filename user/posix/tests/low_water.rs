//! For how many bytes a program waits (SO_RCVLOWAT).

mod support;

use std::io::IoSliceMut;
use std::sync::Arc;

use posix::{Errno, Events, Host, Open, Result, Scatter};
use support::*;

fn set(host: &mut Host<Shared>, open: &Open, name: i32, value: i32) {
    let value = value.to_ne_bytes();
    let set = host.set_option(open, libc::SOL_SOCKET, name, &value);
    assert_eq!(set, Ok(()));
}

fn low_water(host: &mut Host<Shared>, open: &Open) -> i32 {
    let value = host.option(open, libc::SOL_SOCKET, libc::SO_RCVLOWAT);
    i32::from_ne_bytes(value.unwrap().unwrap().try_into().unwrap())
}

/// The server's end of a connection on which its program waits for so many bytes.
fn waiting_for(wire: &mut Wire, bytes: i32) -> Arc<Open> {
    let open = wire.server().socket(SERVED).unwrap();
    set(wire.server(), &open, libc::SO_RCVLOWAT, bytes);
    open
}

/// Receives as a call does that waits.
fn receive_enough(host: &mut Host<Shared>, open: &Open, got: &mut Vec<u8>) -> Result<()> {
    let mut bytes = [0; 16];
    let mut pieces = [IoSliceMut::new(&mut bytes[got.len()..])];
    let mut to = Scatter::new(&mut pieces);
    let taken = host.take_enough(open, &mut to);
    let (had, done) = (got.len(), to.done());
    got.extend_from_slice(&bytes[had..had + done]);
    taken
}

/// The peer sends these, and they come.
fn arrive(wire: &mut Wire, open: &Open, bytes: &[u8]) {
    send(wire.client(), CLIENT, bytes).unwrap();
    wire.until(|wire| match wire.server().unread(open)? == bytes.len() {
        true => Ok(()),
        false => Err(Errno::AGAIN),
    })
    .unwrap();
}

fn is_readable(open: &Open) -> bool {
    open.ready().contains(Events::READABLE)
}

#[test]
fn a_stream_is_readable_from_its_low_water_on() {
    let mut wire = Wire::connected();
    let open = waiting_for(&mut wire, 10);
    assert_eq!(low_water(wire.server(), &open), 10);
    send(wire.client(), CLIENT, b"012345678").unwrap();
    wire.steps(20);
    assert!(!is_readable(&open));
    assert_eq!(wire.server().unread(&open), Ok(9));
    send(wire.client(), CLIENT, b"9").unwrap();
    wire.until(|_| is_readable(&open).then_some(()).ok_or(Errno::AGAIN))
        .unwrap();
    // Who does not wait has what there is.
    assert_eq!(receive(wire.server(), SERVED, 5).unwrap(), b"01234");
    assert!(!is_readable(&open));
    assert_eq!(receive(wire.server(), SERVED, 1).unwrap(), b"5");
    set(wire.server(), &open, libc::SO_RCVLOWAT, 4);
    assert!(is_readable(&open), "a lower one counts at once");
    set(wire.server(), &open, libc::SO_RCVLOWAT, 5);
    assert!(!is_readable(&open));
    wire.client().close(CLIENT);
    wire.until(|_| is_readable(&open).then_some(()).ok_or(Errno::AGAIN))
        .unwrap();
    assert_eq!(receive(wire.server(), SERVED, 100).unwrap(), b"6789");
}

#[test]
fn a_call_that_waits_goes_on_until_it_has_enough() {
    let mut wire = Wire::connected();
    let open = waiting_for(&mut wire, 10);
    open.set_nonblocking(false);
    let mut got = Vec::new();
    for bytes in [b"0123", b"4567"] {
        arrive(&mut wire, &open, bytes);
        let taken = receive_enough(wire.server(), &open, &mut got);
        assert_eq!(taken, Err(Errno::AGAIN));
    }
    assert_eq!(got, b"01234567", "it keeps what it has");
    arrive(&mut wire, &open, b"89ab");
    got.clear();
    // One that has no room for them has enough when it has as many as it has room for.
    got.extend_from_slice(&[0; 12]);
    assert_eq!(receive_enough(wire.server(), &open, &mut got), Ok(()));
    assert_eq!(got[12..], *b"89ab");
    wire.client().close(CLIENT);
    let end = wire.until(|wire| receive_enough(wire.server(), &open, &mut Vec::new()));
    assert_eq!(end, Ok(()), "the end is enough");
}

#[test]
fn a_call_that_throws_bytes_away_goes_on_until_it_has_enough() {
    let mut wire = Wire::connected();
    let open = waiting_for(&mut wire, 10);
    open.set_nonblocking(false);
    let mut to = Scatter::unseen(16);
    arrive(&mut wire, &open, b"01234567");
    let taken = wire.server().take_enough(&open, &mut to);
    assert_eq!((taken, to.done()), (Err(Errno::AGAIN), 8));
    arrive(&mut wire, &open, b"89ab");
    let taken = wire.server().take_enough(&open, &mut to);
    assert_eq!((taken, to.done()), (Ok(()), 12));
}

#[test]
fn a_buffer_that_holds_less_than_the_low_water_is_readable_when_it_is_full() {
    let mut wire = Wire::connected();
    let open = waiting_for(&mut wire, 60_000);
    // As the kernel makes it of half of that.
    set(wire.server(), &open, libc::SO_RCVBUF, 20_000);
    wire.until(|wire| {
        match send(wire.client(), CLIENT, &[7; 10_000]) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        is_readable(&open).then_some(()).ok_or(Errno::AGAIN)
    })
    .unwrap();
    let unread = wire.server().unread(&open).unwrap();
    assert!((10_000..60_000).contains(&unread), "{unread}");
}

#[test]
fn a_connection_has_its_listeners_low_water_and_room_for_it() {
    let mut wire = Wire::new();
    wire.listen();
    let listener = wire.server().socket(LISTENER).unwrap();
    set(wire.server(), &listener, libc::SO_RCVLOWAT, 1 << 20);
    wire.connect(CLIENT, SERVED);
    let open = wire.server().socket(SERVED).unwrap();
    assert_eq!(low_water(wire.server(), &open), 1 << 20);
    let (mut sent, mut steps) = (0, 0);
    while !is_readable(&open) {
        let left = (1 << 20) - sent;
        sent += send(wire.client(), CLIENT, &vec![1; left]).unwrap_or(0);
        wire.step();
        steps += 1;
        assert!(steps < 20_000, "{sent} bytes sent");
    }
    assert_eq!(wire.server().unread(&open), Ok(1 << 20));
}

#[test]
fn a_low_water_is_between_one_and_half_of_the_buffer() {
    let mut wire = Wire::connected();
    let open = waiting_for(&mut wire, 0);
    assert_eq!(low_water(wire.server(), &open), 1);
    set(wire.server(), &open, libc::SO_RCVBUF, 20_000);
    set(wire.server(), &open, libc::SO_RCVLOWAT, -1);
    assert_eq!(low_water(wire.server(), &open), 10_000);
}
