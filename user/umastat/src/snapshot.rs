//! The words that the tables are made of, from a program or from a file.
//!
//! They lie as in the program (`user/umem/src/stats.rs`): the head, a row for each class, the
//! list of threads. Behind them stand the magazines of each listed thread, in the list's order,
//! and the caches that the program made; the head's last word, in the program the address of
//! the first of them, is their number.
//! A file holds nothing else, in little endian, and is read as carefully as a program is: it
//! may be cut off or be something else.

use std::fs;

use crate::memory::{Memory, bytes_of, words_of};

const VERSION: u64 = 0x756d_656d_0000_0002;
/// Words in front of the rows, of a row, of a thread, of a magazine, and of a cache that the
/// program made: the address of the next, whether it exists, its name, its row.
pub const HEAD: usize = 7;
pub const ROW: usize = 7;
pub const THREAD: usize = 2;
pub const MAGAZINE: usize = 4;
pub const NAME: usize = 4;
pub const MADE: usize = 2 + NAME + ROW;
/// Where the head says how many caches the program made.
const MADE_AT: usize = 6;
/// More classes, threads or caches than are shown.
const MANY: u64 = 1 << 16;

/// Words of each part, as the head tells them.
pub struct Layout {
    pub rows: usize,
    pub listed: usize,
    /// The magazines of one thread.
    pub magazines: usize,
    /// The caches that the program made, in a snapshot.
    pub made: usize,
}

impl Layout {
    /// What follows a head.
    pub fn of(head: &[u64]) -> Result<Self, String> {
        let [version, classes, places, _, _, _, made] = head[..] else {
            return Err("the table is too short".into());
        };
        if version != VERSION || classes > MANY || places > MANY {
            return Err("the library is of another version, or this is no snapshot".into());
        }
        let classes = classes as usize + 1;
        Ok(Self {
            rows: classes * ROW,
            listed: places as usize * THREAD,
            magazines: classes * MAGAZINE,
            made: made.min(MANY) as usize * MADE,
        })
    }
}

/// The words.
#[derive(Debug, PartialEq)]
pub struct Snapshot(pub Vec<u64>);

impl Snapshot {
    /// Reads them from a program.
    pub fn take(memory: &Memory) -> Result<Self, String> {
        let start = memory.symbol("umem_statistics")?;
        let layout = Layout::of(&memory.words(start, HEAD)?)?;
        let threads_at = HEAD + layout.rows;
        let mut words = memory.words(start, threads_at + layout.listed)?;
        for place in (threads_at..threads_at + layout.listed).step_by(THREAD) {
            let address = words[place + 1];
            match memory.words(address, layout.magazines) {
                Ok(magazines) if address != 0 => words.extend(magazines),
                // A thread that ends just now takes its memory with it: it is not listed.
                _ => words[place + 1] = 0,
            }
        }
        let made = made(memory, words[MADE_AT])?;
        words[MADE_AT] = (made.len() / MADE) as u64;
        words.extend(made);
        Ok(Self(words))
    }

    /// Reads them from a file.
    pub fn load(path: &str) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self(words_of(&bytes)))
    }

    /// Writes them to a file.
    pub fn save(&self, path: &str) -> Result<(), String> {
        fs::write(path, bytes_of(&self.0)).map_err(|error| format!("{path}: {error}"))
    }
}

/// The caches of the list that starts at an address.
fn made(memory: &Memory, first: u64) -> Result<Vec<u64>, String> {
    let (mut all, mut next) = (Vec::new(), first);
    while next != 0 && all.len() < MANY as usize * MADE {
        let made = memory.words(next, MADE)?;
        next = made[0];
        all.extend(made);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Statistics;

    /// One class of 64 bytes, two places for threads, of which thread 7 has the second, and
    /// a cache that the program made after one that it destroyed.
    fn example() -> Snapshot {
        let head = [VERSION, 1, 2, 1024, 4096, 2048, 2];
        let rows = [0, 0, 0, 0, 0, 0, 0, 64, 16384, 1, 256, 200, 56, 3];
        let listed = [0, 0, 7, 0x1000];
        let magazines = [0, 0, 0, 0, 80, 16, 0, 0];
        let name = u64::from_le_bytes(*b"thing\0\0\0");
        let made = [0, 1, name, 0, 0, 0, 48, 16384, 1, 341, 300, 99, 0];
        let destroyed = [0; MADE];
        Snapshot([&head[..], &rows, &listed, &magazines, &made, &destroyed].concat())
    }

    #[test]
    fn a_saved_snapshot_reads_back_as_the_same_tables() {
        let path = std::env::temp_dir().join(format!("umastat-{}", std::process::id()));
        let path = path.to_string_lossy();
        example().save(&path).expect("the folder is writable");
        let loaded = Snapshot::load(&path);
        fs::remove_file(&*path).expect("it was written");
        assert_eq!(loaded, Ok(example()));
        let tables = Statistics::of(&example()).expect("it is whole");
        assert_eq!((tables.cap, tables.caches[0].in_ptc), (1024, 8));
        assert_eq!(
            (tables.made.len(), tables.made[0].name.as_str()),
            (1, "thing")
        );
        assert_eq!(tables.made[0].object_bytes, 48);
        assert_eq!((tables.threads[0].number, tables.threads.len()), (7, 1));
    }

    #[test]
    fn a_snapshot_that_is_cut_off_is_refused() {
        let words = example().0;
        for length in 0..words.len() {
            let cut = Snapshot(words[..length].to_vec());
            assert!(Statistics::of(&cut).is_err(), "{length} words");
        }
    }
}
