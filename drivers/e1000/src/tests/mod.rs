//! The driver against a simulated card.

mod card;
mod filters;
mod receive;
mod story;
mod transmit;
mod watch;

use card::Card;
use hal::FramePort;

#[test]
fn a_card_comes_up_with_its_address_and_full_of_buffers() {
    let card = Card::new(1024);
    let port = card.start().unwrap();
    assert_eq!(port.mac(), [0x52, 0x54, 0, 0x12, 0x34, 0x56]);
    assert_eq!(card.buffers(), 255);
    assert!(port.capabilities().checksum);
}

#[test]
fn a_card_without_buffers_does_not_start() {
    let card = Card::new(0);
    assert_eq!(card.start().err(), Some(crate::Error::NoBuffers));
}

#[test]
fn a_card_that_ignores_its_reset_keeps_the_memory_that_it_knows() {
    let card = Card::new(300);
    let port = card.start().unwrap();
    card.ignores_reset.set(true);
    let at_home = card.pool.free();
    drop(port);
    assert_eq!(card.pool.free(), at_home);
}
