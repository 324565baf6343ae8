//! The record of a sample.

use alloc::vec::Vec;

use mach::profile::tap::Sample;
use sync::Result;

use super::{EventIdentity, Record, SAMPLE, SampleContext};
use crate::attributes::{AttrBits, Fields};

// What was interrupted, among the bits that go with the kind.
const MODE_KERNEL: u16 = 1;
const MODE_USER: u16 = 2;

// What stands between the addresses of a call chain (`enum perf_callchain_context`).
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CONTEXT_USER: u64 = -512i64 as u64;

/// A sample that stands for `period_ns`; `numbers` says what the event has counted.
pub(crate) fn make(
    author: EventIdentity,
    moment: &SampleContext,
    sample: &Sample,
    period_ns: u64,
    numbers: impl FnOnce() -> Result<Vec<u64>>,
) -> Result<Record> {
    let fields = author.fields;
    let (mode, found) = match sample.kernel().first() {
        Some(address) => (MODE_KERNEL, *address),
        None => (MODE_USER, sample.user().first().copied().unwrap_or(0)),
    };
    let mut record = Record::new(SAMPLE, mode)?;
    if fields.contains(Fields::IDENTIFIER) {
        record.push(author.id)?;
    }
    if fields.contains(Fields::IP) {
        record.push(found)?;
    }
    record.identify(author, moment)?;
    if fields.contains(Fields::CPU) {
        record.pair(moment.cpu.0, 0)?;
    }
    if fields.contains(Fields::PERIOD) {
        record.push(period_ns)?;
    }
    if fields.contains(Fields::READ) {
        for number in numbers()? {
            record.push(number)?;
        }
    }
    if fields.contains(Fields::CALLCHAIN) {
        callers(&mut record, author.hears, sample)?;
    }
    Ok(record.finished())
}

fn callers(record: &mut Record, hears: AttrBits, sample: &Sample) -> Result<()> {
    let parts = [
        (
            CONTEXT_KERNEL,
            AttrBits::NO_KERNEL_CALLERS | AttrBits::NO_KERNEL,
            sample.kernel(),
        ),
        (CONTEXT_USER, AttrBits::NO_USER_CALLERS, sample.user()),
    ];
    let parts = parts.map(
        |(context, unless, addresses)| match hears.intersects(unless) {
            true => (context, &[][..]),
            false => (context, addresses),
        },
    );
    let used = parts.iter().filter(|(_, addresses)| !addresses.is_empty());
    record.push(
        used.clone()
            .map(|(_, addresses)| addresses.len() as u64 + 1)
            .sum(),
    )?;
    for (context, addresses) in used {
        record.push(*context)?;
        for address in *addresses {
            record.push(*address)?;
        }
    }
    Ok(())
}
