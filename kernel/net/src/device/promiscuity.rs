//! Whether the card takes frames for other stations.
//!
//! Two want it: the link layer while its links have more addresses than the card has filters, and
//! sniffers that ask for it (PACKET_MR_PROMISC). The card takes all while either does, and is told
//! of changes only. The stacks drop what is not for them.

use hal::{NicError, PromiscuousScope};
use mach::sync::Spin;

use super::config::with_control;

/// Who wants all frames of the card, the machine's one. Held while the card is told, so that it
/// hears changes in their order.
static WANTED: Spin<Wanted> = Spin::new(Wanted {
    by_links: false,
    sniffers: 0,
});

struct Wanted {
    by_links: bool,
    /// Sockets that ask for it.
    sniffers: u32,
}

impl Wanted {
    /// Tells the card if it is to do otherwise than before.
    ///
    /// Errors: the card's; then nothing has changed.
    fn change(&mut self, by_links: bool, sniffers: u32) -> Result<(), NicError> {
        let before = self.by_links || self.sniffers != 0;
        let after = by_links || sniffers != 0;
        if before != after {
            let tell = |card: &mut dyn hal::NicControl| {
                card.set_promiscuous(PromiscuousScope::Card, after)
            };
            with_control(tell).unwrap_or(Err(NicError::Unsupported))?;
        }
        *self = Self { by_links, sniffers };
        Ok(())
    }
}

/// The link layer wants all frames, or no longer.
pub(crate) fn by_links(on: bool) -> Result<(), NicError> {
    let mut wanted = WANTED.lock();
    let sniffers = wanted.sniffers;
    wanted.change(on, sniffers)
}

/// One sniffer more wants all frames, or one less. A card that has no such mode takes them all
/// anyway.
pub(crate) fn by_sniffer(is_more: bool) {
    let mut wanted = WANTED.lock();
    let by_links = wanted.by_links;
    let sniffers = match is_more {
        true => wanted.sniffers.saturating_add(1),
        false => wanted.sniffers.saturating_sub(1),
    };
    if wanted.change(by_links, sniffers).is_err() {
        wanted.sniffers = sniffers;
    }
}
