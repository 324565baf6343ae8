//! Which pool is in which VLAN: 32 filters (7.10.3.3), each an identifier and a bit for each pool.
//!
//! While anybody filters, the first filter lets frames with a priority only into all pools, and
//! a pool hears only VLANs that it is in. A physical function that never said in which it is
//! hears all until then.

use hal::{NicError, Registers, VlanFilter};

use crate::registers_pools::{VLVF_FILTERS, VLVF_POOLS_SHIFT, VLVF_VALID, vlvf};

/// Frames without a VLAN, but with a priority.
const PRIORITY_ONLY: u16 = 0;
const ALL_POOLS: u8 = 0xff;
const IDS: u16 = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Filter {
    id: u16,
    /// A bit for each pool.
    pools: u8,
}

const UNUSED: Filter = Filter { id: 0, pools: 0 };

pub(super) struct Vlans {
    filters: [Filter; VLVF_FILTERS],
    /// The physical function's pool.
    own: u16,
    /// It said in which it is.
    own_filters: bool,
}

impl Vlans {
    /// Nobody is in any; the physical function has pool `own`.
    pub(super) fn new(own: u16) -> Self {
        let mut filters = [UNUSED; VLVF_FILTERS];
        filters[0] = Filter {
            id: PRIORITY_ONLY,
            pools: ALL_POOLS,
        };
        Self {
            filters,
            own,
            own_filters: false,
        }
    }

    /// A pool is in the VLAN from now on; false if no filter is left.
    pub(super) fn join(&mut self, pool: u16, id: u16) -> bool {
        let is_used = |filter: &&mut Filter| filter.pools != 0 && filter.id == id;
        let mut place = self.filters.iter_mut().find(is_used);
        if place.is_none() {
            place = self.filters.iter_mut().find(|filter| filter.pools == 0);
        }
        let Some(filter) = place else {
            return false;
        };
        filter.id = id;
        filter.pools |= 1 << pool;
        true
    }

    /// A pool is in it no longer.
    pub(super) fn leave(&mut self, pool: u16, id: u16) {
        for filter in &mut self.filters[1..] {
            if filter.id == id {
                filter.pools &= !(1 << pool);
            }
        }
    }

    /// A pool is in none; says whether it was in one.
    pub(super) fn leave_all(&mut self, pool: u16) -> bool {
        let mut was_in = false;
        for filter in &mut self.filters[1..] {
            was_in |= filter.pools >> pool & 1 != 0;
            filter.pools &= !(1 << pool);
        }
        was_in
    }

    /// What the physical function is in. Without room for all it stays as it was.
    pub(super) fn set_own(&mut self, wanted: VlanFilter<'_>) -> Result<(), NicError> {
        let before = self.filters;
        self.leave_all(self.own);
        let VlanFilter::Only(ids) = wanted else {
            self.own_filters = false;
            return Ok(());
        };
        let is_possible = ids.iter().all(|id| *id < IDS);
        if !is_possible || !ids.iter().all(|id| self.join(self.own, *id)) {
            self.filters = before;
            return Err(match is_possible {
                true => NicError::FiltersFull,
                false => NicError::Unsupported,
            });
        }
        self.own_filters = true;
        Ok(())
    }

    /// Whether anybody filters.
    pub(super) fn is_needed(&self) -> bool {
        self.own_filters || self.filters[1..].iter().any(|filter| filter.pools != 0)
    }

    /// All VLANs that anybody is in.
    pub(super) fn listed(&self) -> impl Iterator<Item = u16> {
        let used = self.filters.iter().filter(|filter| filter.pools != 0);
        used.map(|filter| filter.id)
    }

    /// Tells the card.
    pub(super) fn write(&self, registers: &impl Registers) {
        for (place, filter) in self.filters.iter().enumerate() {
            let valid = if filter.pools != 0 { VLVF_VALID } else { 0 };
            let pools = u32::from(filter.pools) << VLVF_POOLS_SHIFT;
            registers.write32(vlvf(place), u32::from(filter.id) | pools | valid);
        }
    }
}
