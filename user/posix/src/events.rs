//! What the stack says of a socket, in the words of poll(2); as `kernel/net/src/stack/env.rs`.

use epoll::Events;

const WORDS: [(inet::Events, Events); 6] = [
    (inet::Events::READABLE, Events::READABLE),
    (inet::Events::WRITABLE, Events::WRITABLE),
    (inet::Events::READ_CLOSED, Events::RDHUP),
    (inet::Events::HANGUP, Events::HUP),
    (inet::Events::ERROR, Events::ERR),
    (inet::Events::FAILURE, Events::ERR),
];

/// The same in the words of poll(2).
#[inline]
pub fn of(events: inet::Events) -> Events {
    let there = WORDS.iter().filter(|(theirs, _)| events.contains(*theirs));
    there.fold(Events::empty(), |all, (_, ours)| all | *ours)
}
