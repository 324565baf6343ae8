//! Empty last-level tables that wait for a use: those that large pages may need to fall apart
//! (`large`), and a few that were swept (`sweep`).

use frames::FrameNo;

use super::Gather;
use super::large::Large;
use super::walk::Tree;

/// Spare tables that are kept besides those that large pages need.
const SPARES_KEPT: usize = 8;

impl Large {
    /// Keeps an empty last-level table; false if there is no room for it.
    pub fn keep_spare(&mut self, table: FrameNo) -> bool {
        let has_room = self.spares.try_reserve(1).is_ok();
        if has_room {
            self.spares.push(table);
        }
        has_room
    }

    /// How many spares no large page needs.
    pub fn surplus(&self) -> usize {
        self.spares.len().saturating_sub(self.mapped)
    }

    /// One of them.
    pub fn take_surplus(&mut self) -> Option<FrameNo> {
        (self.surplus() > 0).then(|| self.spares.pop()).flatten()
    }
}

impl Tree {
    /// A spare table for one large page more.
    pub(super) fn add_spare(&mut self) -> Option<()> {
        // For this one, and for the table whose place the large page takes.
        self.large.spares.try_reserve(2).ok()?;
        if self.large.surplus() == 0 {
            let table = self.add_table()?;
            self.large.spares.push(table);
        }
        Some(())
    }

    /// Gives spares back if there are many more than large pages need.
    pub(super) fn trim_spares(&mut self, gather: &mut Gather) {
        if self.large.surplus() > SPARES_KEPT {
            while let Some(spare) = self.large.take_surplus() {
                self.unlist(spare);
                gather.push_table(spare);
            }
        }
    }
}
