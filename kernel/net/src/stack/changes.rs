//! Who is to hear that addresses, routes or neighbours have changed, and when that is looked for.
//!
//! Nobody who changes something says so: changes are found by a look, which polling asks for.
//! How to look, and whom to tell, is what those above know who speak with programs
//! (`kernel/netlink`); here is only whether anybody listens, which is one load while nobody does.

use core::sync::atomic::{AtomicUsize, Ordering};

use mach::sync::Once;

use super::NetStack;

/// Listeners of all stacks: polling is of the machine, and asks of none in particular.
static LISTENERS: AtomicUsize = AtomicUsize::new(0);
/// How changes are looked for; of the machine, as there is one kernel above.
static LOOK: Once<fn()> = Once::new();

/// Says how changes are looked for; once at boot.
pub fn on_changes(look: fn()) {
    LOOK.call_once(|| look);
}

/// Looks for changes, if anybody listens.
#[inline]
pub fn look_for_changes() {
    if LISTENERS.load(Ordering::Relaxed) != 0
        && let Some(look) = LOOK.get()
    {
        look();
    }
}

impl NetStack {
    /// One more wants to hear of changes of this stack, or one less.
    pub fn count_change_listener(&self, is_more: bool) {
        for listeners in [&LISTENERS, &self.shared.change_listeners] {
            match is_more {
                true => listeners.fetch_add(1, Ordering::Relaxed),
                false => listeners.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// Whether anybody wants to hear of them.
    pub fn has_change_listeners(&self) -> bool {
        self.shared.change_listeners.load(Ordering::Relaxed) != 0
    }
}
