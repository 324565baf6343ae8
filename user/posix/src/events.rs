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

/// What each set of the stack's events is in the words of poll(2): this is asked for several times for each request.
static MEANINGS: [Events; SETS] = meanings();

const SETS: usize = inet::Events::all().bits() as usize + 1;

const fn meanings() -> [Events; SETS] {
    let mut all = [Events::empty(); SETS];
    let mut at = 0;
    while at < all.len() {
        let mut word = 0;
        while word < WORDS.len() {
            let (theirs, ours) = WORDS[word];
            if at & theirs.bits() as usize != 0 {
                all[at] = all[at].union(ours);
            }
            word += 1;
        }
        at += 1;
    }
    all
}

/// The same in the words of poll(2).
#[inline]
pub fn of(events: inet::Events) -> Events {
    let known = MEANINGS.get(usize::from(events.bits()));
    known.copied().unwrap_or_default()
}
