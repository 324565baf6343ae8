//! How many members a group has, and in which session: POSIX wants all of them in one.
//!
//! Who joins a group has looked at its session before, on a CPU that knows nothing of the others:
//! meanwhile its last member may have left it, and its leader begun a session. So session and
//! number of members are one word, and an exchange of it decides who joins. Those count who are in
//! the table as members of the group, and those about to be put there.

use base::lock::Count;

/// The bits of the word that count members; the session is above them.
const MEMBERS_BITS: u32 = usize::BITS / 2;
const MEMBERS_MASK: usize = (1 << MEMBERS_BITS) - 1;

/// Session and number of members.
#[derive(Default)]
pub(crate) struct Group<C: Count>(C);

impl<C: Count> Group<C> {
    /// One member more, which begins the group; false if it has members.
    pub fn begin(&self, session: u32) -> bool {
        self.0.exchange(0, word(session, 1))
    }

    /// One member more, in `session`; false if the group has no members, or in another session.
    pub fn join(&self, session: u32) -> bool {
        loop {
            let now = self.0.get();
            if now == 0 || now >> MEMBERS_BITS != session as usize {
                return false;
            }
            if self.0.exchange(now, now + 1) {
                return true;
            }
        }
    }

    /// One member less; a group without members has no session.
    pub fn leave(&self) {
        loop {
            let now = self.0.get();
            let left = match now & MEMBERS_MASK {
                1 => 0,
                _ => now - 1,
            };
            if self.0.exchange(now, left) {
                return;
            }
        }
    }
}

fn word(session: u32, members: usize) -> usize {
    (session as usize) << MEMBERS_BITS | members
}
