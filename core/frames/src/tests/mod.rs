//! Machines of a few frames, and what is expected of them. Random use is tested against
//! bitmaps in `tests/oracle.rs`.

mod layout;
mod local;
mod nodes;
mod zones;

use core::ops::DerefMut;
use core::sync::atomic::AtomicU64;
use std::sync::Mutex;
use std::vec::Vec;

use crate::{Backing, FrameInfo, FrameNo, FrameTable, Layout, Node, Zone, ZoneLock, Zones};

/// First frame behind 4 GiB.
const LOW_END: FrameNo = 1 << 20;

/// Local and far, as firmware says it.
const NEAR: u8 = 10;
const FAR: u8 = 20;

#[derive(Debug)]
struct Lock(Mutex<Zone>);

impl ZoneLock for Lock {
    const UNLOCKED: Self = Self(Mutex::new(Zone::EMPTY));

    fn lock(&self) -> impl DerefMut<Target = Zone> {
        self.0.lock().unwrap()
    }
}

struct Memory {
    table: FrameTable,
    zones: Zones<Lock>,
    zeroed: Mutex<Vec<FrameNo>>,
}

impl Backing for Memory {
    type Lock = Lock;

    fn table(&self) -> &FrameTable {
        &self.table
    }

    fn zones(&self) -> &Zones<Lock> {
        &self.zones
    }

    fn zero(&self, frame: FrameNo) {
        self.zeroed.lock().unwrap().push(frame);
    }
}

fn describe(table: &mut FrameTable, first: FrameNo, frames: usize) {
    let infos = (0..frames).map(|_| FrameInfo::reserved()).collect();
    let words = FrameTable::zero_words(first, frames);
    let zeros = (0..words).map(|_| AtomicU64::new(0)).collect();
    let added = table.add(first, Vec::leak(infos), Vec::leak(zeros));
    added.unwrap();
}

/// Any other node is as far as the next.
fn distance(from: Node, to: Node) -> u8 {
    if from == to { NEAR } else { FAR }
}

/// A machine with RAM at `sections`, whose nodes start at `starts`.
fn nodes(starts: &[(FrameNo, Node)], sections: &[(FrameNo, usize)]) -> (FrameTable, Zones<Lock>) {
    let mut table = FrameTable::new();
    let zones = Zones::new(Layout::new(starts, distance));
    for &(first, frames) in sections {
        describe(&mut table, first, frames);
        assert_eq!(zones.donate(&table, first, frames as u64), frames as u64);
    }
    (table, zones)
}

/// A machine of one node with a zone below 4 GiB, one above, and RAM at `sections`.
fn ram(sections: &[(FrameNo, usize)]) -> (FrameTable, Zones<Lock>) {
    nodes(&[], sections)
}

fn memory((table, zones): (FrameTable, Zones<Lock>)) -> Memory {
    Memory {
        table,
        zones,
        zeroed: Mutex::new(Vec::new()),
    }
}
