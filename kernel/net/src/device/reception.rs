//! What the card takes beside the frames for its stations: the sum of all who ask
//! (`link::reception`).
//!
//! Stacks ask for groups, whatever interface they are on; programs for all frames of the card or
//! all groups, by an interface's flags and by packet sockets; the link layer for all frames while
//! its links have more addresses than the card has filters. The stacks drop what is not for them,
//! so what the card lets in too much does no harm.
//!
//! Lock order: after shards and links, before the card's control half.

use hal::NicError;
use link::reception::Reception;
use mach::sync::Spin;
use wire::MacAddr;

use super::config::with_control;

/// Of the card, the machine's one. Held while the card is told, so that it hears changes in their
/// order.
static WANTED: Spin<Reception> = Spin::new(Reception::new());

/// A card that has no filters takes everything anyway, and one that failed is told with the next
/// change.
fn change(act: impl FnOnce(&mut Reception)) {
    let mut wanted = WANTED.lock();
    act(&mut wanted);
    let _ = with_control(|card| wanted.tell(card));
}

/// There is a card now.
pub(super) fn attached() {
    change(|_| {});
}

/// A stack listens to a group, or no longer.
pub(crate) fn group(station: MacAddr, is_member: bool) {
    change(|wanted| match is_member {
        true => wanted.join(station),
        false => wanted.leave(station),
    });
}

/// One more wants all frames of the card, or one less.
pub(crate) fn all(is_more: bool) {
    change(|wanted| wanted.want_all(is_more));
}

/// One more wants frames for all groups, or one less.
pub(crate) fn all_groups(is_more: bool) {
    change(|wanted| wanted.want_all_groups(is_more));
}

/// The link layer wants all frames, or no longer.
///
/// Errors: the card's; then nothing has changed.
pub(crate) fn all_for_links(on: bool) -> Result<(), NicError> {
    let mut wanted = WANTED.lock();
    let before = wanted.want_all_for_links(on);
    let told = with_control(|card| wanted.tell(card)).unwrap_or(Err(NicError::Unsupported));
    if told.is_err() {
        wanted.want_all_for_links(before);
    }
    told
}
