//! The table that the library keeps, as `user/umem/src/stats.rs` lays it out.

use std::slice::ChunksExact;

use crate::memory::bytes_of;
use crate::snapshot::{HEAD, Layout, MADE, MAGAZINE, NAME, ROW, Snapshot, THREAD};

/// One cache.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    pub name: String,
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
    /// The caches behind malloc, and those that the program made.
    pub caches: Vec<Cache>,
    pub made: Vec<Cache>,
    pub threads: Vec<Thread>,
}

impl Statistics {
    /// The tables of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Result<Self, String> {
        let (head, rest) = split(&snapshot.0, HEAD)?;
        let layout = Layout::of(head)?;
        let (rows, rest) = split(rest, layout.rows)?;
        let (listed, rest) = split(rest, layout.listed)?;
        let many = listed.chunks_exact(THREAD).filter(|place| place[1] != 0);
        let (magazines, rest) = split(rest, many.count() * layout.magazines)?;
        let (made, _) = split(rest, layout.made)?;
        let mut caches: Vec<Cache> = rows.chunks_exact(ROW).skip(1).map(own_cache).collect();
        let threads = threads(listed, magazines.chunks_exact(layout.magazines))?;
        for thread in &threads {
            for (cache, kept) in caches.iter_mut().zip(&thread.kept) {
                cache.in_ptc = cache.in_ptc.saturating_add(*kept);
            }
        }
        Ok(Self {
            cap: head[3],
            mapped: head[4],
            used: head[5],
            caches,
            made: made.chunks_exact(MADE).filter_map(made_cache).collect(),
            threads,
        })
    }
}

fn split(words: &[u64], at: usize) -> Result<(&[u64], &[u64]), String> {
    let parts = words.split_at_checked(at);
    parts.ok_or("the snapshot is cut off".into())
}

/// The threads of a list, each with its magazines.
fn threads(listed: &[u64], mut magazines: ChunksExact<'_, u64>) -> Result<Vec<Thread>, String> {
    let places = listed.chunks_exact(THREAD).filter(|place| place[1] != 0);
    let threads = places.map(|place| {
        let magazines = magazines.next().ok_or("the snapshot is cut off")?;
        let rounds = magazines.chunks_exact(MAGAZINE).skip(1).map(rounds);
        Ok(Thread {
            number: place[0],
            kept: rounds.collect(),
        })
    });
    threads.collect()
}

/// A cache behind malloc: it is named after what it serves.
fn own_cache(row: &[u64]) -> Cache {
    cache(format!("umem_alloc_{}", row[0]), row)
}

/// A cache that the program made, if it still exists.
fn made_cache(words: &[u64]) -> Option<Cache> {
    let (name, row) = words[2..].split_at(NAME);
    let name = bytes_of(name);
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let name: String =
        String::from_utf8_lossy(name).replace(|letter: char| letter.is_control(), "?");
    (words[1] == 1).then(|| cache(name, row))
}

fn cache(name: String, row: &[u64]) -> Cache {
    Cache {
        name,
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
