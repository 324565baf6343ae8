//! What the kernel's stack is told of a socket that goes over to it.

mod support;

use posix::{Errno, Portable, State, Trigger};
use support::*;

#[test]
fn a_connection_stands_still_with_what_is_unread_and_goes_on_if_it_is_not_taken() {
    let mut wire = Wire::connected();
    assert_eq!(send(wire.client(), CLIENT, b"unread"), Ok(6));
    wire.steps(10);
    let open = wire.server().socket(SERVED).unwrap();
    let Portable::Connected(snapshot) = wire.server().portable(&open).unwrap() else {
        panic!("it is a connection");
    };
    assert_eq!(snapshot.receiving.unread, b"unread");
    assert_eq!(snapshot.state, State::Established);
    assert!(send(wire.server(), SERVED, b"no").is_err());
    wire.server().reattach(&open);
    assert_eq!(receive(wire.server(), SERVED, 10).unwrap(), b"unread");
    assert_eq!(send(wire.server(), SERVED, b"answer"), Ok(6));
    wire.steps(10);
    assert_eq!(receive(wire.client(), CLIENT, 10).unwrap(), b"answer");
}

#[test]
fn an_accepted_connection_tells_the_options_that_were_set() {
    let mut wire = Wire::connected();
    let open = wire.server().socket(SERVED).unwrap();
    let one = 1_i32.to_ne_bytes();
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
    let set = wire.server().set_option(&open, level, name, &one);
    assert_eq!(set, Ok(()));
    let told = wire.server().portable_options(&open);
    assert!(told.contains(&(level, name, one.to_vec())), "{told:?}");
}

#[test]
fn what_a_set_watches_of_it_is_known_and_what_is_over_is_refused() {
    let mut wire = Wire::connected();
    watched(&mut wire, Trigger::EDGE);
    let open = wire.server().socket(SERVED).unwrap();
    let sets = wire.server().numbered_sets();
    let watches: Vec<_> = sets
        .iter()
        .flat_map(|(set, _)| set.watches(&open))
        .collect();
    let [(number, watch)] = watches.as_slice() else {
        panic!("it is watched once: {}", watches.len());
    };
    assert_eq!((*number, watch.trigger), (SERVED, Trigger::EDGE));
    assert!(sets.iter().all(|(set, _)| set.has_members()));
    wire.client().close(CLIENT);
    wire.steps(10);
    wire.server()
        .shutdown(&open, posix::Shutdown::Write)
        .unwrap();
    wire.steps(50);
    let portable = wire.server().portable(&open).err();
    assert_eq!(portable, Some(Errno::INVALID));
}
