//! Commits and flushes that run beside changes: a loss of power at any moment leaves what some transaction left, and nothing
//! older than what was promised.

mod support;

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use ext4::{Commit, ROOT_INODE, Rename, Step, Sync, SyncPoint, Volume};
use models::{Random, for_each_seed};
use planted::Planted;
use support::{Disk, Event, NOW, after_loss, at, contents, folder, image, names, regular};

/// Names in the directory and their bytes.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const FIXED_BYTES: usize = 8192;

/// What is under way.
enum UnderWay {
    Commit(Commit),
    Written,
    Flush,
    Flushed,
}

/// A volume, what was done to it, and what was promised.
struct World {
    disk: Disk,
    volume: Volume,
    dir: u32,
    /// After each operation.
    models: Vec<Model>,
    /// The operation that changed a file last.
    changed_in: BTreeMap<Vec<u8>, usize>,
    under_way: Option<UnderWay>,
    /// For each transaction that has begun to be written: events by then, and operations in it.
    transactions: Vec<(usize, usize)>,
    /// From so many events on so many operations survive.
    promises: Vec<(usize, usize)>,
    /// Bytes that the file of a fixed length has been given, with the events by then.
    given: Vec<(usize, u8)>,
    /// From so many events on it has this byte or a later one.
    kept: Vec<(usize, u8)>,
}

impl World {
    fn new(sound: &Disk) -> (Self, Vec<u8>) {
        let disk = sound.copy();
        let mut volume = disk.open();
        let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
        let fixed = volume.create(ROOT_INODE, b"fixed", &regular(), NOW);
        let fixed = fixed.unwrap();
        volume.write(fixed, 0, &[0; FIXED_BYTES], NOW).unwrap();
        volume.checkpoint().unwrap();
        let before = disk.bytes();
        disk.0.lock().unwrap().history = Some(Vec::new());
        let world = Self {
            disk,
            volume,
            dir,
            models: vec![Model::new()],
            changed_in: BTreeMap::new(),
            under_way: None,
            transactions: vec![(0, 0)],
            promises: vec![(0, 0)],
            given: vec![(0, 0)],
            kept: vec![(0, 0)],
        };
        (world, before)
    }

    fn events(&self) -> usize {
        self.disk.0.lock().unwrap().history.as_ref().unwrap().len()
    }

    fn last(&self) -> usize {
        self.models.len() - 1
    }

    fn operate(&mut self, random: &mut Random) {
        let mut model = self.models.last().unwrap().clone();
        let name = format!("file-{}", random.below(12)).into_bytes();
        let (volume, dir) = (&mut self.volume, self.dir);
        match (random.below(4), model.contains_key(&name)) {
            (0 | 1, false) => {
                let file = volume.create(dir, &name, &regular(), NOW).unwrap();
                let data = vec![random.bits() as u8; 1 + random.below(40_000usize)];
                let done = volume.write(file, 0, &data, NOW).unwrap();
                model.insert(name.clone(), data[..done].to_vec());
            }
            (2, true) => {
                let gone = volume.unlink(dir, &name, NOW).unwrap();
                volume.evict(gone.inode, NOW).unwrap();
                model.remove(&name);
            }
            (3, true) => {
                let to = format!("other-{}", random.below(6)).into_bytes();
                let names = ((dir, &name[..]), (dir, &to[..]));
                let lost = volume.rename(names.0, names.1, Rename::Replace, NOW);
                if let Some(lost) = lost.unwrap() {
                    volume.evict(lost.inode, NOW).unwrap();
                }
                let data = model.remove(&name).unwrap();
                model.insert(to.clone(), data);
                self.changed_in.insert(to, self.models.len());
            }
            _ => return,
        }
        self.changed_in.insert(name, self.models.len());
        self.models.push(model);
    }

    fn overwrite(&mut self) {
        let byte = self.given.last().unwrap().1.wrapping_add(1);
        let fixed = at(&mut self.volume, "fixed");
        self.given.push((self.events(), byte));
        let written = self.volume.write(fixed, 0, &[byte; FIXED_BYTES], NOW);
        assert_eq!(written, Ok(FIXED_BYTES));
    }

    /// Somebody syncs a file, and does what is to be done next.
    fn sync(&mut self, random: &mut Random) {
        let known = self.models.last().unwrap().keys().cloned();
        let known: Vec<Vec<u8>> = known.collect();
        match random.below(3) {
            0 => {
                let fixed = at(&mut self.volume, "fixed");
                let byte = self.given.last().unwrap().1;
                let point = self.volume.sync_point(fixed, Sync::Data);
                if self.step(&point) {
                    self.kept.push((self.events(), byte));
                }
            }
            1 if !known.is_empty() => {
                let name = &known[random.below(known.len())];
                let file = self.volume.lookup(self.dir, name).unwrap();
                let point = self.volume.sync_point(file, Sync::All);
                if self.step(&point) {
                    self.promises.push((self.events(), self.changed_in[name]));
                }
            }
            _ => {
                let (point, last) = (self.volume.whole_point(), self.last());
                if self.step(&point) {
                    self.promises.push((self.events(), last));
                }
            }
        }
    }

    /// Whether the point is reached.
    fn step(&mut self, point: &SyncPoint) -> bool {
        let (events, last) = (self.events(), self.last());
        match self.volume.next_step(point).unwrap() {
            Step::Reached => return true,
            Step::Wait => assert!(self.under_way.is_some()),
            Step::Commit(commit) => {
                self.transactions.push((events, last));
                self.under_way = Some(UnderWay::Commit(commit));
            }
            Step::Flush => self.under_way = Some(UnderWay::Flush),
        }
        false
    }

    /// What is under way goes on.
    fn go_on(&mut self) {
        let mut device: Box<dyn ext4::Device> = Box::new(self.disk.clone());
        self.under_way = match self.under_way.take() {
            Some(UnderWay::Commit(commit)) => {
                commit.write(&mut *device).unwrap();
                Some(UnderWay::Written)
            }
            Some(UnderWay::Flush) => {
                device.flush().unwrap();
                Some(UnderWay::Flushed)
            }
            Some(UnderWay::Written) => {
                self.volume.end_commit(Ok(())).unwrap();
                None
            }
            Some(UnderWay::Flushed) => {
                self.volume.end_flush(Ok(())).unwrap();
                None
            }
            None => None,
        };
    }

    /// Brings all to its place, which others may not do meanwhile.
    fn checkpoint(&mut self) {
        if self.under_way.is_some() {
            assert_eq!(self.volume.checkpoint(), Err(ext4::Error::Busy));
            return;
        }
        let last = self.last();
        self.transactions.push((self.events(), last));
        self.volume.checkpoint().unwrap();
        self.promises.push((self.events(), last));
    }

    /// Asserts that a disk has what it may have after a loss of power after `cut` events.
    fn judge(&self, after: &Disk, cut: usize) {
        let mut volume = after.open();
        let dir = at(&mut volume, "dir");
        let mut found = Model::new();
        for name in names(&mut volume, dir) {
            if name != b"." && name != b".." {
                let file = volume.lookup(dir, &name).unwrap();
                found.insert(name, contents(&mut volume, file));
            }
        }
        let by_then = |list: &[(usize, usize)]| {
            let list = list.iter().filter(|(events, _)| *events <= cut);
            list.map(|(_, operations)| *operations).max().unwrap()
        };
        let least = by_then(&self.promises);
        let fits = |(events, last): &(usize, usize)| {
            *events <= cut && *last >= least && self.models[*last] == found
        };
        assert!(self.transactions.iter().any(fits), "after {cut} events");
        let byte_by = |list: &[(usize, u8)]| {
            let list = list.iter().filter(|(events, _)| *events <= cut);
            list.map(|(_, byte)| *byte).max().unwrap()
        };
        let (least, most) = (byte_by(&self.kept), byte_by(&self.given));
        let fixed = at(&mut volume, "fixed");
        let bytes = contents(&mut volume, fixed);
        assert!(
            bytes.iter().all(|byte| (least..=most).contains(byte)),
            "written in place, after {cut} events"
        );
        volume.unmount().unwrap();
        after.assert_clean("a loss of power");
    }
}

fn history(sound: &Disk, random: &mut Random) {
    let (mut world, before) = World::new(sound);
    for _ in 0..200 {
        match random.below(16) {
            0..7 => world.operate(random),
            7 => world.overwrite(),
            8..12 => world.sync(random),
            12 if random.once_in(4) => world.checkpoint(),
            _ => world.go_on(),
        }
    }
    let events: Vec<Event> = world.disk.0.lock().unwrap().history.take().unwrap();
    for _ in 0..8 {
        let cut = random.below(events.len() + 1);
        world.judge(&after_loss(&before, &events, cut, random), cut);
    }
    for (cut, _) in world.promises.iter().chain(&world.transactions).step_by(4) {
        world.judge(&after_loss(&before, &events, *cut, random), *cut);
    }
}

fn histories(count: u64) {
    let sound = image(&["-b", "4096"], "16M");
    for_each_seed(count, |_, mut random| history(&sound, &mut random));
}

#[test]
fn a_loss_of_power_beside_a_commit_leaves_what_was_promised() {
    histories(12);
}

#[test]
fn mistakes_of_commits_beside_changes_are_found() {
    for bug in [
        "a commit covers what was written after it began",
        "freed blocks are used before the commit has ended",
        "a sync does not wait for the commit under way",
        "a commit block does not wait for its transaction",
        "fsync does not flush what is written in place",
    ] {
        let found = catch_unwind(|| {
            let _planted = Planted::new(bug);
            histories(30);
        });
        assert!(found.is_err(), "{bug}");
    }
}
