//! Machines of a few frames, and what is expected of them. Random use is tested against
//! bitmaps in `tests/oracle.rs`.

mod local;
mod zones;

use core::ops::DerefMut;
use core::sync::atomic::AtomicU64;
use std::sync::Mutex;
use std::vec::Vec;

use crate::{Backing, FrameInfo, FrameNo, FrameTable, Node, PAGES_MAX, Zones};

/// First frame behind 4 GiB.
const LOW_END: FrameNo = 1 << 20;

struct Memory {
    table: FrameTable,
    zones: Mutex<Zones>,
    zeroed: Mutex<Vec<FrameNo>>,
}

impl Backing for Memory {
    fn table(&self) -> &FrameTable {
        &self.table
    }

    fn zones(&self) -> impl DerefMut<Target = Zones> {
        self.zones.lock().unwrap()
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

/// A machine of one node with a zone below 4 GiB, one above, and RAM at `sections`.
fn ram(sections: &[(FrameNo, usize)]) -> (FrameTable, Zones) {
    let (mut table, mut zones) = (FrameTable::new(), Zones::new());
    zones.add(Node(0), LOW_END..LOW_END * PAGES_MAX).unwrap();
    zones.add(Node(0), 0..LOW_END).unwrap();
    for &(first, frames) in sections {
        describe(&mut table, first, frames);
        assert_eq!(zones.donate(&table, first, frames as u64), frames as u64);
    }
    (table, zones)
}

fn memory(sections: &[(FrameNo, usize)]) -> Memory {
    let (table, zones) = ram(sections);
    Memory {
        table,
        zones: Mutex::new(zones),
        zeroed: Mutex::new(Vec::new()),
    }
}
