//! One sequence: run, cut at every event, judged.

use ext4::{Allocate, Error, FileType, ROOT_INODE, Rename, Sync, Unlinked, Volume};

use super::model::{Files, name};
use super::operation::{ALLOCATED, Action, FOLDERS, OPERATIONS, Operation, PUNCHED, SHORT};
use super::oracle::{Demand, Record};
use super::scene::{NOW, Scene, mount, new};
use crate::cuts::{Cache, Event, Fate};
use crate::drive::Drive;
use crate::image;
use crate::medium::Medium;
use crate::random::Random;

/// How many images of each kind a sequence gives.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Images with torn writes for each cut where the cache is full.
    pub torn: usize,
    /// Cuts during the recovery after a cut.
    pub again: usize,
    /// Images with a flipped bit in the log.
    pub rotten: usize,
    /// Events behind which the power is cut at most, chosen by chance.
    pub cuts: usize,
    /// One in so many images goes to `e2fsck`; none with 0.
    pub fsck_every: u64,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Sequences.
    pub sequences: u64,
    /// Images.
    pub images: u64,
    /// Those that e2fsck saw.
    pub checked: u64,
}

/// All sequences of up to `longest` operations that make sense.
pub fn all(longest: usize, before: &Files) -> Vec<Vec<Operation>> {
    let mut found: Vec<Vec<Operation>> = vec![Vec::new()];
    let mut ends = vec![(Vec::new(), before.clone())];
    for _ in 0..longest {
        let mut longer = Vec::new();
        for (sequence, files) in &ends {
            for operation in (0..OPERATIONS).map(super::operation::operation) {
                if files.allows(&operation) {
                    let mut sequence: Vec<Operation> = sequence.clone();
                    let mut files = files.clone();
                    files.apply(&operation, 1, super::operation::APPENDED);
                    sequence.push(operation);
                    longer.push((sequence, files));
                }
            }
        }
        found.extend(longer.iter().map(|(sequence, _)| sequence.clone()));
        ends = longer;
    }
    found
}

/// A sequence that was run: what happened on the disk, and what was promised.
struct Ran {
    before: Medium,
    history: Vec<Event>,
    record: Record,
    /// Events when the last commit was over.
    committed: usize,
}

/// Runs a sequence and judges all images; an error says which one is wrong.
pub fn try_cuts(
    scene: &Scene,
    operations: &[Operation],
    effort: &Effort,
    seed: u64,
    tally: &mut Tally,
) -> Result<(), String> {
    let ran = run(scene, operations)?;
    tally.sequences += 1;
    let mut random = Random::new(seed);
    let mut cache = Cache::new(ran.before.clone());
    let mut images = Vec::new();
    let every = (ran.history.len() / effort.cuts).max(1);
    for (index, event) in ran.history.iter().enumerate() {
        cache.pass(event);
        if !random.once_in(every) {
            continue;
        }
        let cut = index + 1;
        images.push((cut, Fate::All));
        judge(&ran, &cache, cut, Fate::All, effort, tally)?;
        let next = ran.history.get(cut);
        let is_full = event.is_ordering() || next.is_none_or(Event::is_ordering);
        if is_full {
            for fate in cache.fates(effort.torn, &mut random) {
                images.push((cut, fate));
                judge(&ran, &cache, cut, fate, effort, tally)?;
            }
        }
    }
    if images.is_empty() {
        return Ok(());
    }
    for _ in 0..effort.again {
        let (cut, fate) = images[random.below(images.len())];
        cut_again(&ran, cut, fate, &mut random, tally)?;
    }
    for _ in 0..effort.rotten {
        rot(&ran, &mut random, tally)?;
    }
    Ok(())
}

fn run(scene: &Scene, operations: &[Operation]) -> Result<Ran, String> {
    let (drive, mut volume) = scene.begin()?;
    let before = drive.medium();
    let mut record = Record::new(scene.files.clone());
    let mut held = Vec::new();
    for operation in operations {
        if !record.now().allows(operation) {
            // A disk that was full has made another sequence of it.
            continue;
        }
        let begun = drive.events();
        let step = record.operations().len() + 1;
        let data = record.now().written(operation, step);
        let count = match perform(&mut volume, operation, data, record.now(), &mut held) {
            Ok(count) => count,
            Err(Error::NoSpace) => continue,
            Err(error) => return Err(format!("{operation:?} of {operations:?}: {error:?}")),
        };
        record.done(*operation, count, begun, drive.events());
    }
    let end = |error| format!("the end of {operations:?}: {error:?}");
    volume.commit().map_err(end)?;
    let committed = drive.events();
    record.synced(committed);
    for gone in held {
        volume.evict(gone, NOW).map_err(end)?;
    }
    volume.checkpoint().map_err(end)?;
    Ok(Ran {
        before,
        history: drive.take_history(),
        record,
        committed,
    })
}

/// Does it; of a write returns how many bytes there was room for.
fn perform(
    volume: &mut Volume,
    operation: &Operation,
    data: (usize, Vec<u8>),
    files: &Files,
    held: &mut Vec<u32>,
) -> ext4::Result<usize> {
    let folder =
        |volume: &mut Volume, place: usize| volume.lookup(ROOT_INODE, FOLDERS[place].as_bytes());
    let (place, other) = (operation.place, 1 - operation.place);
    let here = (folder(volume, place)?, name(place));
    let there = (folder(volume, other)?, name(other));
    if let Action::Create = operation.action {
        volume.create(here.0, here.1, &new(FileType::Regular), NOW)?;
        return Ok(0);
    }
    if let Action::FsyncFolder = operation.action {
        volume.sync_file(here.0, Sync::All)?;
        return Ok(0);
    }
    let file = volume.lookup(here.0, here.1)?;
    let size = files.at(place).map_or(0, |file| files.of(file).len()) as u64;
    match operation.action {
        Action::Write | Action::Append => {
            return volume.write(file, data.0 as u64, &data.1, NOW);
        }
        Action::Rename => {
            let lost = volume.rename(here, there, Rename::Replace, NOW)?;
            if let Some(lost) = lost.filter(|lost| lost.links == 0) {
                volume.evict(lost.inode, NOW)?;
            }
        }
        Action::Link => volume.link(there.0, there.1, file, NOW)?,
        Action::Unlink => {
            let Unlinked { inode, links } = volume.unlink(here.0, here.1, NOW)?;
            match (links, place) {
                (0, 0) => volume.evict(inode, NOW)?,
                (0, _) => held.push(inode),
                _ => {}
            }
        }
        Action::Shorten => volume.truncate(file, SHORT as u64, NOW)?,
        Action::Empty => volume.truncate(file, 0, NOW)?,
        Action::Allocate => {
            let range = size..size + ALLOCATED as u64;
            volume.fallocate(file, range, Allocate::Extend, NOW)?;
        }
        Action::Punch => {
            let range = PUNCHED.start as u64..PUNCHED.end as u64;
            volume.fallocate(file, range, Allocate::PunchHole, NOW)?;
        }
        Action::Fsync => volume.sync_file(file, Sync::All)?,
        Action::Fdatasync => volume.sync_file(file, Sync::Data)?,
        Action::Create | Action::FsyncFolder => {}
    }
    Ok(0)
}

/// Mounts what a cut left, unmounts it, and reads what is there then.
pub fn recover(medium: Medium) -> Result<(Medium, Vec<Event>), String> {
    let drive = Drive::new(medium);
    let volume = mount(&drive)?;
    if let Some(failure) = volume.failure() {
        return Err(format!("the mount found {failure:?}"));
    }
    let ended = volume.unmount();
    ended.map_err(|error| format!("an unmount: {error:?}"))?;
    Ok((drive.medium(), drive.take_history()))
}

fn judge(
    ran: &Ran,
    cache: &Cache,
    cut: usize,
    fate: Fate,
    effort: &Effort,
    tally: &mut Tally,
) -> Result<(), String> {
    tally.images += 1;
    let is_sampled = effort.fsck_every != 0 && tally.images.is_multiple_of(effort.fsck_every);
    let judged = recover(cache.after(fate)).and_then(|(medium, _)| {
        if is_sampled {
            tally.checked += 1;
            crate::e2fsck(&medium)?;
        }
        ran.record.check(&image::judge(&medium)?, cut, Demand::Kept)
    });
    judged.map_err(|error| told(ran, cut, &format!("{fate:?}"), &error))
}

/// Operations that a message shows: those right before the cut.
const TOLD_MAX: usize = 12;

fn told(ran: &Ran, cut: usize, fate: &str, error: &str) -> String {
    let (begun, events) = (ran.record.begun_before(cut), ran.history.len());
    let operations = &begun[begun.len().saturating_sub(TOLD_MAX)..];
    format!("{operations:?}, cut after {cut} of {events} events, {fate}: {error}")
}

fn cache_at(ran: &Ran, cut: usize) -> Cache {
    let mut cache = Cache::new(ran.before.clone());
    ran.history
        .iter()
        .take(cut)
        .for_each(|event| cache.pass(event));
    cache
}

/// The power fails again while the image is mounted.
fn cut_again(
    ran: &Ran,
    cut: usize,
    fate: Fate,
    random: &mut Random,
    tally: &mut Tally,
) -> Result<(), String> {
    let medium = cache_at(ran, cut).after(fate);
    let tell = |error: &str| told(ran, cut, &format!("{fate:?} and again"), error);
    let (_, history) = recover(medium.clone()).map_err(|error| tell(&error))?;
    let mut cache = Cache::new(medium);
    let again = random.below(history.len() + 1);
    history
        .iter()
        .take(again)
        .for_each(|event| cache.pass(event));
    let fates = cache.fates(2, random);
    for fate in fates.into_iter().chain([Fate::All]) {
        tally.images += 1;
        let judged = recover(cache.after(fate))
            .and_then(|(medium, _)| ran.record.check(&image::judge(&medium)?, cut, Demand::Kept));
        judged.map_err(|error| tell(&format!("after {again}, {fate:?}: {error}")))?;
    }
    Ok(())
}

/// The disk has changed a bit of what was written last before an ordering write: the log, mostly.
///
/// Whoever finds that out may refuse the mount or forget the transaction, and must not bring it to its place.
fn rot(ran: &Ran, random: &mut Random, tally: &mut Tally) -> Result<(), String> {
    let is_commit = |event: &Event| {
        matches!(
            event,
            Event::Write {
                is_forced: true,
                ..
            }
        )
    };
    let commits = &ran.history[..ran.committed];
    let Some(cut) = commits.iter().position(is_commit) else {
        return Ok(());
    };
    let before = &ran.history[..cut];
    let log = before.iter().rev().find_map(|event| match event {
        Event::Write { pieces, .. } => Some(pieces),
        Event::Flush => None,
    });
    let Some(log) = log else {
        return Ok(());
    };
    let (sector, bytes) = &log[random.below(log.len())];
    let mut rotten = **bytes;
    rotten[random.below(512)] ^= 1 << random.below(8);
    let mut medium = cache_at(ran, cut + 1).after(Fate::All);
    medium.put(*sector, rotten.into());
    tally.images += 1;
    let found = match recover(medium) {
        Ok((medium, _)) => {
            image::judge(&medium).and_then(|tree| ran.record.check(&tree, cut + 1, Demand::Nothing))
        }
        Err(error) if error.contains("Corrupt(Journal)") => Ok(()),
        Err(error) => Err(error),
    };
    found.map_err(|error| told(ran, cut + 1, &format!("rotten sector {sector}"), &error))
}
