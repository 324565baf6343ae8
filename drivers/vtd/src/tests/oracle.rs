//! Random mappings of several devices, beside a map of pages that says what each reaches.
//!
//! Requests are made all the time, so the unit remembers translations that are then taken
//! away.

use std::collections::HashMap;
use std::vec::Vec;

use hal::pci::PciAddress;

use super::model::{CACHING_MODE, LARGE_PAGES, LEVELS_4, Making, Model};
use super::{Rig, function};
use crate::{DomainId, Pages, Rights};

const SEEDS: u64 = 48;
const STEPS: usize = 120;
const DEVICES: u8 = 3;
/// Pages of the window in which mappings are made: more than two large pages.
const WINDOW_PAGES: u64 = 1200;
const LARGE_PAGES_PAGES: u64 = 512;

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A device, its domain, and what it reaches: page by page, and where that lies.
struct Device {
    function: PciAddress,
    domain: DomainId,
    reached: HashMap<u64, u64>,
}

struct World {
    rig: Rig,
    devices: Vec<Device>,
    random: Random,
    has_large_pages: bool,
    /// The window's first page.
    base: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let bits = [LEVELS_4, LARGE_PAGES, CACHING_MODE];
        let chosen = bits.iter().filter(|_| random.below(2) == 0);
        let capabilities = chosen.fold(0, |all, bit| all | bit);
        let faults = 1 + random.below(4) as usize;
        let mut rig = Rig::new(Model::new(Making {
            capabilities,
            faults,
        }));
        let devices = (0..DEVICES).map(|number| Device {
            function: function(number / 2, number, 0),
            domain: rig.attach(function(number / 2, number, 0)),
            reached: HashMap::new(),
        });
        let devices = devices.collect();
        // On both sides of a border between two tables of the third level.
        let base = (1 << 18) - random.below(2) * LARGE_PAGES_PAGES;
        Self {
            rig,
            devices,
            random,
            has_large_pages: capabilities & LARGE_PAGES != 0,
            base,
        }
    }

    /// Pages of the window, now and then such as make large ones.
    fn range(&mut self) -> (u64, u64) {
        let random = &mut self.random;
        let (first, count) = match random.below(4) {
            0 => (
                random.below(2) * LARGE_PAGES_PAGES,
                LARGE_PAGES_PAGES * (1 + random.below(2)),
            ),
            1 => (random.below(WINDOW_PAGES), 1 + random.below(600)),
            _ => (random.below(WINDOW_PAGES), 1 + random.below(8)),
        };
        (self.base + first, count)
    }

    fn map(&mut self, number: usize) {
        let (first, count) = self.range();
        let shift = self.random.below(2) * LARGE_PAGES_PAGES + self.random.below(2) * 3;
        let device = &mut self.devices[number];
        let mapped = self.rig.unit.map(
            device.domain,
            Pages {
                device: first << 12,
                physical: (first + shift) << 12,
                bytes: count << 12,
                rights: Rights::ReadWrite,
            },
        );
        let mut pages = first..first + count;
        let is_free = pages.all(|page| !device.reached.contains_key(&page));
        assert_eq!(mapped.is_ok(), is_free, "{mapped:?}");
        if is_free {
            let pages = first..first + count;
            device
                .reached
                .extend(pages.map(|page| (page, page + shift)));
        }
    }

    fn unmap(&mut self, number: usize) {
        let (first, count) = self.range();
        let device = &mut self.devices[number];
        let unmapped = self.rig.unit.unmap(device.domain, first << 12, count << 12);
        let mut pages = first..first + count;
        let is_whole = pages.all(|page| device.reached.contains_key(&page));
        // A part of a large page stays where it is; of that the oracle knows nothing.
        assert!(unmapped.is_err() || is_whole);
        assert!(unmapped.is_ok() || !is_whole || self.has_large_pages);
        if unmapped.is_ok() {
            (first..first + count).for_each(|page| _ = device.reached.remove(&page));
        }
    }

    /// Every device asks for some pages, those around a change among them.
    fn compare(&mut self) {
        let pages: Vec<u64> = (0..24)
            .map(|_| self.base + self.random.below(WINDOW_PAGES + LARGE_PAGES_PAGES))
            .chain([self.base, self.base + LARGE_PAGES_PAGES - 1])
            .collect();
        for device in &self.devices {
            for page in &pages {
                let is_write = page % 3 == 0;
                let went = self
                    .rig
                    .model
                    .request(device.function, page << 12 | 0x5a, is_write);
                let wanted = device.reached.get(page).map(|at| at << 12 | 0x5a);
                assert_eq!(went, wanted, "page {page:#x} of {:?}", device.function);
            }
        }
        self.rig.unit.take_faults(&mut |_| {});
    }
}

#[test]
fn devices_reach_what_a_map_of_pages_says_after_any_changes() {
    for seed in 0..SEEDS {
        std::println!("SEED={seed}");
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            let number = world.random.below(DEVICES.into()) as usize;
            match world.random.below(5) {
                0..3 => world.map(number),
                _ => world.unmap(number),
            }
            world.compare();
        }
    }
}
