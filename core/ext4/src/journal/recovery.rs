//! After a crash: what the log has as a whole is brought to its place.
//!
//! One pass finds out how far complete transactions reach and notes their blocks and revokes; the
//! second writes. Nothing is written before the first has ended well. Each block of the log is
//! looked at once, so a log that leads in circles ends, too.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Log;
use super::format::{self, COMMIT, DESCRIPTOR, MAGIC, REVOKE, TAG_ESCAPED, Tag};
use crate::bytes::put_be32;
use crate::device::Durability;
use crate::error::{Corrupt, Result};
use crate::store::Store;

/// A copy in the log.
struct Copy {
    at: u32,
    sequence: u32,
    tag: Tag,
}

/// What complete transactions have.
#[derive(Default)]
struct Found {
    copies: Vec<Copy>,
    revoked: Vec<(u64, u32)>,
    /// Those of transactions with a commit block.
    complete: (usize, usize),
    sequence: u32,
}

/// Replays the log; returns how many transactions were complete.
pub(crate) fn replay(log: &mut Log, store: &mut Store) -> Result<u32> {
    let found = scan(log, store)?;
    let mut revoked: BTreeMap<u64, u32> = BTreeMap::new();
    for (block, sequence) in found.revoked.iter().take(found.complete.1) {
        let latest = revoked.entry(*block).or_insert(*sequence);
        if is_after(*sequence, *latest) {
            *latest = *sequence;
        }
    }
    let complete = match planted::is("a transaction without its commit block is replayed") {
        true => found.copies.len(),
        false => found.complete.0,
    };
    for copy in found.copies.iter().take(complete) {
        let is_revoked = |sequence: &u32| !is_after(copy.sequence, *sequence);
        if !revoked.get(&copy.tag.block).is_some_and(is_revoked) {
            restore(log, store, copy)?;
        }
    }
    if !planted::is("recovery empties the log before its blocks are in their places") {
        store.device.flush()?;
    }
    let transactions = found.sequence.wrapping_sub(log.state.sequence);
    // A sequence number is skipped: an incomplete transaction may still stand where the next goes.
    log.set_recovered(store, found.sequence.wrapping_add(1))?;
    Ok(transactions)
}

/// Whether `this` comes later than `other`; numbers wrap around.
fn is_after(this: u32, other: u32) -> bool {
    (this.wrapping_sub(other) as i32) > 0
}

fn scan(log: &Log, store: &mut Store) -> Result<Found> {
    let format = log.state.format;
    let mut found = Found {
        sequence: log.state.sequence,
        ..Found::default()
    };
    let mut at = log.state.start.max(log.state.first);
    let mut block = store.zeroed()?;
    let mut left = log.state.len;
    while left > 0 {
        left -= 1;
        store.read_data(log.place(at)?, 0, &mut block)?;
        let here = at;
        at = log.after(at);
        match format::kind(&block, found.sequence) {
            Some(DESCRIPTOR) if format.has_right_tail(&block) => {
                for tag in format.tags(&block) {
                    found.copies.push(Copy {
                        at,
                        sequence: found.sequence,
                        tag,
                    });
                    at = log.after(at);
                    left = left.saturating_sub(1);
                }
            }
            Some(REVOKE) if format.has_right_tail(&block) => {
                let numbers = format
                    .revoked(&block)
                    .map(|number| (number, found.sequence));
                found.revoked.extend(numbers);
            }
            Some(COMMIT) if format.has_right_commit(&block) && here != 0 => {
                found.complete = (found.copies.len(), found.revoked.len());
                found.sequence = found.sequence.wrapping_add(1);
            }
            _ => break,
        }
    }
    Ok(found)
}

fn restore(log: &Log, store: &mut Store, copy: &Copy) -> Result<()> {
    let mut block = store.zeroed()?;
    store.read_data(log.place(copy.at)?, 0, &mut block)?;
    let sum = log.state.format.copy_checksum(copy.sequence, &block);
    if copy.tag.checksum != sum && !planted::is("sums of copies are not looked at") {
        return Err(Corrupt::Journal.into());
    }
    if copy.tag.flags & TAG_ESCAPED != 0 {
        put_be32(&mut block, 0, MAGIC);
    }
    store.write_data(copy.tag.block, &block, Durability::Volatile)
}
