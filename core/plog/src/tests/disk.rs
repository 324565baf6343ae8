//! A disk in memory: commands end in any order, a cache that a loss of power undoes sector by
//! sector, faults on order, and lies.

use std::vec;
use std::vec::Vec;

use block::{Done, Durability, Failure, Order};
use models::Random;

use super::{Area, CommandId};

const SECTOR: usize = 512;

/// What a device does to a write that it calls complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    Lost,
    Misdirected,
    Torn,
    Flipped,
}

#[derive(Clone, Debug)]
enum Operation {
    Write {
        block: u64,
        bytes: Vec<u8>,
        durability: Durability,
    },
    /// What was complete when it was sent.
    Flush {
        up_to: u64,
        flushing: block::order::Flushing,
    },
}

/// A sector of a write that is complete and not flushed.
#[derive(Clone)]
struct Cached {
    number: u64,
    sector: usize,
    bytes: [u8; SECTOR],
}

/// The disk. A copy shares nothing.
pub struct SimDisk {
    pub block_bytes: u32,
    /// What reads see.
    pub bytes: Vec<u8>,
    medium: Vec<u8>,
    cache: Vec<Cached>,
    pending: Vec<(CommandId, Operation)>,
    order: Order,
    number: u64,
    /// So many writes and flushes of an opening still work.
    pub works_for: Option<usize>,
    /// Of a thousand commands so many fail.
    pub failing: u32,
    /// Of a thousand writes so many are lied about.
    pub lying: u32,
    /// A loss of power tears within sectors as well.
    pub tears: bool,
}

impl SimDisk {
    pub fn new(block_bytes: u32, blocks: u64) -> Self {
        let bytes = vec![0; block_bytes as usize * blocks as usize];
        Self {
            block_bytes,
            medium: bytes.clone(),
            bytes,
            cache: Vec::new(),
            pending: Vec::new(),
            order: Order::new(),
            number: 0,
            works_for: None,
            failing: 0,
            lying: 0,
            tears: true,
        }
    }

    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Sectors whose fate a loss of power decides.
    pub fn undecided(&self) -> usize {
        let under_way = self.pending.iter().map(|(_, operation)| match operation {
            Operation::Write { bytes, .. } => bytes.len() / SECTOR,
            Operation::Flush { .. } => 0,
        });
        self.cache.len() + under_way.sum::<usize>()
    }

    pub fn write_begins(
        &mut self,
        id: CommandId,
        block: u64,
        bytes: Vec<u8>,
        durability: Durability,
    ) {
        assert!(bytes.len().is_multiple_of(self.block_bytes as usize) && !bytes.is_empty());
        self.pending.push((
            id,
            Operation::Write {
                block,
                bytes,
                durability,
            },
        ));
    }

    pub fn flush_begins(&mut self) {
        let flushing = self.order.flush_begins();
        let flush = Operation::Flush {
            up_to: self.number,
            flushing,
        };
        self.pending.push((CommandId::Flush, flush));
    }

    /// Ends the `at`-th of its commands.
    pub fn finish(&mut self, at: usize, random: &mut Random) -> (CommandId, Result<Done, Failure>) {
        let (id, operation) = self.pending.remove(at);
        let fails = random.below(1000) < self.failing;
        let result = match (operation, fails) {
            (
                Operation::Write {
                    block,
                    bytes,
                    durability,
                },
                false,
            ) => self.write_ends(block, bytes, durability, random),
            (Operation::Write { block, bytes, .. }, true) => {
                self.store(block, &bytes, |_| random.once_in(2));
                Err(Failure::Medium)
            }
            (Operation::Flush { up_to, flushing }, false) => {
                self.bring_out(up_to);
                Ok(Done::Flushed(self.order.flush_succeeded(flushing)))
            }
            (Operation::Flush { .. }, true) => {
                self.order.flush_failed();
                self.lose(&mut |_| random.below(2usize));
                Err(Failure::Medium)
            }
        };
        (id, result)
    }

    fn write_ends(
        &mut self,
        block: u64,
        bytes: Vec<u8>,
        durability: Durability,
        random: &mut Random,
    ) -> Result<Done, Failure> {
        let lies = [Lie::Lost, Lie::Misdirected, Lie::Torn, Lie::Flipped];
        let lie = (random.below(1000) < self.lying).then(|| lies[random.below(4usize)]);
        let blocks = (self.bytes.len() - bytes.len()) as u64 / u64::from(self.block_bytes);
        match lie {
            None => self.store(block, &bytes, |_| true),
            Some(Lie::Lost) => {}
            Some(Lie::Misdirected) => self.store(random.below(blocks + 1), &bytes, |_| true),
            Some(Lie::Torn) => self.store(block, &bytes, |_| random.once_in(2)),
            Some(Lie::Flipped) => {
                let mut bytes = bytes.clone();
                // Where it matters: in the header of an entry, and all that an anchor has.
                bytes[random.below(100usize)] ^= 1 << random.below(8);
                self.store(block, &bytes, |_| true);
            }
        }
        match durability {
            Durability::Volatile => Ok(Done::Written(self.order.completed())),
            Durability::Forced => {
                let written = self.order.completed();
                // A forced write is as one with a flush of its own.
                let first = block as usize * self.block_bytes as usize / SECTOR;
                let own = first..first + bytes.len() / SECTOR;
                self.bring_out_sectors(|cached| own.contains(&cached.sector));
                let flush = self.order.flush_begins();
                let flushed = self.order.flush_succeeded(flush);
                Ok(written
                    .settle(&flushed)
                    .map_or(Done::Discarded, Done::Durable))
            }
        }
    }

    fn store(&mut self, block: u64, bytes: &[u8], mut lands: impl FnMut(usize) -> bool) {
        self.number += 1;
        let first = block as usize * self.block_bytes as usize / SECTOR;
        for (index, part) in bytes.chunks(SECTOR).enumerate() {
            if lands(index) {
                let sector = first + index;
                self.bytes[sector * SECTOR..][..SECTOR].copy_from_slice(part);
                let bytes = part.try_into().expect("a sector");
                self.cache.push(Cached {
                    number: self.number,
                    sector,
                    bytes,
                });
            }
        }
    }

    fn bring_out(&mut self, up_to: u64) {
        self.bring_out_sectors(|cached| cached.number <= up_to);
    }

    fn bring_out_sectors(&mut self, is_out: impl Fn(&Cached) -> bool) {
        for cached in self.cache.extract_if(.., |cached| is_out(cached)) {
            self.medium[cached.sector * SECTOR..][..SECTOR].copy_from_slice(&cached.bytes);
        }
    }

    /// Each sector keeps one of its versions, the first the one on the medium.
    fn lose(&mut self, pick: &mut dyn FnMut(usize) -> usize) {
        let cache = core::mem::take(&mut self.cache);
        let mut sectors: Vec<usize> = cache.iter().map(|cached| cached.sector).collect();
        sectors.sort_unstable();
        sectors.dedup();
        for sector in sectors {
            let versions: Vec<_> = cache
                .iter()
                .filter(|cached| cached.sector == sector)
                .collect();
            let survivor = pick(versions.len() + 1).min(versions.len());
            let is_torn = self.tears && pick(3) == 1;
            if let Some(version) = survivor.checked_sub(1).map(|at| versions[at]) {
                let kept = match is_torn {
                    true => pick(SECTOR),
                    false => SECTOR,
                };
                let at = sector * SECTOR;
                self.medium[at..at + kept].copy_from_slice(&version.bytes[..kept]);
            }
        }
        self.bytes = self.medium.clone();
    }

    /// What is under way may have been done, or a part of it.
    fn end_all(&mut self) {
        for (_, operation) in core::mem::take(&mut self.pending) {
            if let Operation::Write { block, bytes, .. } = operation {
                self.store(block, &bytes, |_| true);
            }
        }
    }

    /// The disk after a loss of power, where `pick` has a number below its argument.
    pub fn after_loss(&self, pick: &mut dyn FnMut(usize) -> usize) -> Self {
        let mut after = self.copy();
        after.end_all();
        after.lose(pick);
        after
    }

    /// The disk after its machine went down and the disk did not.
    pub fn after_stop(&self, random: &mut Random) -> Self {
        let mut after = self.copy();
        after.pending.retain(|_| random.once_in(2));
        after.end_all();
        after
    }

    /// The same in another machine.
    pub fn copy(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            medium: self.medium.clone(),
            cache: self.cache.clone(),
            pending: self.pending.clone(),
            order: Order::new(),
            works_for: None,
            ..*self
        }
    }

    fn works(&mut self) -> Result<(), Failure> {
        match &mut self.works_for {
            Some(0) => Err(Failure::Gone),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Area for SimDisk {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn blocks(&self) -> u64 {
        self.bytes.len() as u64 / u64::from(self.block_bytes)
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), Failure> {
        let at = first as usize * self.block_bytes as usize;
        let from = self.bytes.get(at..at + into.len());
        into.copy_from_slice(from.expect("reads within the area"));
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), Failure> {
        self.works()?;
        self.store(first, from, |_| true);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.works()?;
        self.bring_out(u64::MAX);
        Ok(())
    }
}
