//! The power fails at each write and each flush of random histories, and again while it is opened.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;
use std::{format, println};

use models::{Random, for_each_seed};

use super::disk::{NoDisk, SimDisk};
use crate::{Area, COPY_BYTES, Catalogue, CopyState, Disk, Error, New, OpenError};

const BLOCK: u32 = 4096;
const BLOCKS: usize = 64 + 40;

/// What went wrong: a sentence.
pub type Found = Result<(), String>;

/// What is in the first byte of each block of an area.
fn mark(area: &Area) -> u8 {
    area.id().number() as u8
}

/// Writes an area's mark into all of its blocks, and brings it to the medium.
fn fill(disk: &mut SimDisk, area: &Area) -> Result<(), crate::DiskError> {
    for extent in area.extents() {
        let bytes = vec![mark(area); (extent.count() * u64::from(BLOCK)) as usize];
        disk.write(extent.first(), &bytes)?;
    }
    disk.flush()
}

fn check_contents(disk: &SimDisk, areas: &[Area], filled: &[Area]) -> Found {
    for area in areas {
        let before = filled.iter().find(|before| before.id() == area.id());
        let mut blocks = area
            .extents()
            .iter()
            .flat_map(|extent| extent.first()..extent.end());
        let own = before.map_or(0, Area::blocks) as usize;
        for (index, block) in blocks.by_ref().enumerate() {
            let byte = disk.bytes[block as usize * BLOCK as usize];
            let is_right = byte == mark(area) || (index >= own && byte == 0);
            if !is_right {
                return Err(format!(
                    "block {index} of area {:?} has {byte:#x}",
                    area.name()
                ));
            }
        }
    }
    Ok(())
}

/// A random change.
fn change(
    catalogue: &mut Catalogue,
    disk: &mut dyn Disk,
    random: &mut Random,
) -> Result<(), Error> {
    let name = [b'a' + random.below(4u8)];
    let blocks = 1 + random.below(12u64);
    let new = New {
        name: &name,
        owner: 1,
        blocks,
    };
    match (catalogue.acquire(&name, 0), random.below(4)) {
        (Err(_), _) => catalogue.create(disk, &new).map(|_| ()),
        (Ok(map), 0) => catalogue.delete(disk, map.area(), 0),
        (Ok(map), _) => catalogue.resize(disk, map.area(), 0, blocks).map(|_| ()),
    }
}

/// What is known of the disk.
struct History {
    disk: SimDisk,
    random: Random,
    /// The last state that was acknowledged, then those that were tried since.
    possible: Vec<Vec<Area>>,
    /// Areas whose blocks have their mark, on the medium.
    filled: Vec<Area>,
}

impl History {
    fn new(seed: u64) -> Result<Self, String> {
        let mut disk = SimDisk::new(BLOCK, BLOCKS, 0xaa);
        Catalogue::format(&mut disk).map_err(|why| format!("{why:?}"))?;
        disk.events = 0;
        Ok(Self {
            disk,
            random: Random::new(seed),
            possible: vec![Vec::new()],
            filled: Vec::new(),
        })
    }

    /// Opens the disk, looks, and makes some changes, until it works no more.
    fn session(&mut self, changes: usize) -> Found {
        let opened = Catalogue::open(&mut self.disk);
        let mut catalogue = match opened {
            // The disk says so itself.
            Err(OpenError::Disk) => return Ok(()),
            opened => opened.map_err(|why| format!("not opened: {why:?}"))?,
        };
        if !self.possible.iter().any(|state| state == catalogue.list()) {
            return Err(format!("was never there: {:?}", catalogue.list()));
        }
        self.possible = vec![catalogue.list().to_vec()];
        let is_there = |before: &Area| catalogue.list().iter().any(|now| now.id() == before.id());
        self.filled.retain(is_there);
        check_contents(&self.disk, catalogue.list(), &self.filled)?;
        for _ in 0..changes {
            self.step(&mut catalogue)?;
        }
        Ok(())
    }

    fn step(&mut self, catalogue: &mut Catalogue) -> Found {
        let (before, mut intended) = (catalogue.list().to_vec(), catalogue.clone());
        let _ = change(&mut intended, &mut NoDisk, &mut self.random.clone());
        match change(catalogue, &mut self.disk, &mut self.random) {
            Err(Error::Disk) if catalogue.list() != before => {
                return Err("a failed change stays in memory".to_string());
            }
            Err(Error::Disk) => self.possible.push(intended.list().to_vec()),
            _ => self.possible = vec![catalogue.list().to_vec()],
        }
        for area in catalogue.list() {
            if fill(&mut self.disk, area).is_ok() {
                self.filled.retain(|before| before.id() != area.id());
                self.filled.push(area.clone());
            }
        }
        self.filled.retain(is_in_all(&self.possible));
        Ok(())
    }

    fn lose_power(&mut self) {
        self.disk = self.disk.after_loss(&mut self.random);
    }

    /// Either copy may be damaged, or be written over the other.
    fn damage(&mut self) -> Found {
        let mut catalogue =
            Catalogue::open(&mut self.disk).map_err(|why| format!("not opened: {why:?}"))?;
        let state = catalogue.repair(&mut self.disk);
        if state != Ok(CopyState::Both) {
            return Err(format!("no second copy: {state:?}"));
        }
        let _ = change(&mut catalogue, &mut self.disk, &mut self.random);
        for copy in 0..2 {
            let mut damaged = self.disk.clone();
            let (at, other) = (copy * COPY_BYTES, (1 - copy) * COPY_BYTES);
            match self.random.below(3) {
                0 => damaged.bytes[at + self.random.below(72usize)] ^= 1,
                1 => damaged.bytes[at..at + 8192].fill(0),
                _ => damaged.bytes.copy_within(other..other + COPY_BYTES, at),
            }
            let again = Catalogue::open(&mut damaged).map_err(|why| format!("damaged: {why:?}"))?;
            if again.list() != catalogue.list() || again.copy_state() != CopyState::One {
                return Err(format!("copy {copy} was damaged and believed"));
            }
        }
        Ok(())
    }
}

/// Whether an area has its blocks in every state that may be on the disk.
fn is_in_all(possible: &[Vec<Area>]) -> impl Fn(&Area) -> bool {
    move |area| {
        let has = |state: &Vec<Area>| {
            let now = state.iter().find(|now| now.id() == area.id());
            now.is_none_or(|now| now.blocks() >= area.blocks())
        };
        possible.iter().all(has)
    }
}

/// One history: the disk stops or errs at an event and loses power; what is opened then stops at a
/// random event, twice. Returns the events of the first session.
pub fn run(seed: u64, off_at: Option<usize>, fails_at: Option<usize>) -> Result<usize, String> {
    let mut history = History::new(seed)?;
    (history.disk.off_at, history.disk.fails_at) = (off_at, fails_at);
    history.session(6)?;
    let events = history.disk.events;
    for _ in 0..2 {
        history.lose_power();
        history.disk.off_at = Some(history.random.below(24));
        history.session(2)?;
    }
    history.lose_power();
    history.session(0)?;
    history.damage()?;
    Ok(events)
}

/// All cuts and all faults of one history.
pub fn run_all(seed: u64) -> Result<usize, String> {
    let events = run(seed, None, None)?;
    for at in 0..events {
        run(seed, Some(at), None).map_err(|why| format!("off at {at}: {why}"))?;
        run(seed, None, Some(at)).map_err(|why| format!("error at {at}: {why}"))?;
    }
    Ok(2 * events)
}

#[test]
fn what_was_acknowledged_is_there_wherever_the_power_fails() {
    let count = std::env::var("VSA_HISTORIES").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(5);
    let mut images = 0;
    for_each_seed(count, |seed, _| {
        images += run_all(seed).unwrap_or_else(|why| panic!("{why}"));
    });
    println!("{images} images");
}
