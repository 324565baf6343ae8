//! The table that the library keeps, as `user/umem/src/stats.rs` lays it out.

use crate::memory::Memory;

const VERSION: u64 = 0x756d_656d_0000_0001;
/// Words in front of the rows, of a row, of a thread, and of a magazine.
const HEAD: usize = 6;
const ROW: usize = 7;
const THREAD: usize = 2;
const MAGAZINE: usize = 4;
/// More classes or threads than any version has.
const MANY: u64 = 1 << 16;

/// One cache.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    pub object_bytes: u64,
    pub slab_bytes: u64,
    pub slabs: u64,
    /// Objects in all slabs, and those that no thread has.
    pub total: u64,
    pub free: u64,
    /// Objects that went to threads so far, and times that there were none.
    pub taken: u64,
    pub failed: u64,
    /// Objects in the magazines of all threads.
    pub in_ptc: u64,
}

/// One thread, with the objects that it keeps of each class.
#[derive(Clone, Debug)]
pub struct Thread {
    pub number: u64,
    pub kept: Vec<u64>,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Bytes that each thread may keep.
    pub cap: u64,
    /// Bytes of segments, and of spans in use in them.
    pub mapped: u64,
    pub used: u64,
    pub caches: Vec<Cache>,
    pub threads: Vec<Thread>,
}

impl Statistics {
    /// Reads the table of a program.
    pub fn read(memory: &Memory) -> Result<Self, String> {
        let start = memory.symbol("umem_statistics")?;
        let head = memory.words(start, HEAD)?;
        let [version, classes, places, cap, mapped, used] = head[..] else {
            return Err("the table is too short".into());
        };
        if version != VERSION || classes > MANY || places > MANY {
            return Err("the library is of another version".into());
        }
        let rows_at = start + 8 * HEAD as u64;
        let rows = memory.words(rows_at, (classes as usize + 1) * ROW)?;
        let mut caches: Vec<Cache> = rows.chunks_exact(ROW).skip(1).map(cache).collect();
        let threads_at = rows_at + 8 * rows.len() as u64;
        let listed = memory.words(threads_at, places as usize * THREAD)?;
        let mut threads = Vec::new();
        for place in listed.chunks_exact(THREAD).filter(|place| place[1] != 0) {
            // A thread that ends just now takes its memory with it.
            if let Ok(magazines) = memory.words(place[1], (classes as usize + 1) * MAGAZINE) {
                let kept = magazines
                    .chunks_exact(MAGAZINE)
                    .skip(1)
                    .map(rounds)
                    .collect();
                threads.push(Thread {
                    number: place[0],
                    kept,
                });
            }
        }
        for thread in &threads {
            for (cache, kept) in caches.iter_mut().zip(&thread.kept) {
                cache.in_ptc += kept;
            }
        }
        Ok(Self {
            cap,
            mapped,
            used,
            caches,
            threads,
        })
    }
}

fn cache(row: &[u64]) -> Cache {
    Cache {
        object_bytes: row[0],
        slab_bytes: row[1],
        slabs: row[2],
        total: row[3],
        free: row[4],
        taken: row[5],
        failed: row[6],
        in_ptc: 0,
    }
}

/// Rounds between a magazine's top and its floor.
fn rounds(magazine: &[u64]) -> u64 {
    magazine[0].saturating_sub(magazine[1]) / 8
}
