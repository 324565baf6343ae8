//! The property `cpus`: which CPUs may take a link's frames.
//!
//! A list of numbers and ranges, as in `0,2-3`. What was parsed are CPUs of this machine, and at
//! least one: a link without the property is another thing, whose frames any CPU takes.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base::{CpuId, CpuSet};

use crate::props::PropError;

/// Entries of a list at most.
pub const ENTRIES_MAX: usize = 256;

/// From the text of the property, for a machine with so many CPUs.
///
/// Errors: `NoCpu`, `TooMany`, `NoSuchCpu`, `BadValue`.
pub fn parse(text: &str, cpus: u32) -> Result<CpuSet, PropError> {
    if text.is_empty() {
        return Err(PropError::NoCpu);
    }
    let most = ENTRIES_MAX;
    if text.split(',').count() > most {
        return Err(PropError::TooMany { most });
    }
    let known = CpuSet::first_of(cpus as usize);
    let mut set = CpuSet::EMPTY;
    for entry in text.split(',') {
        let (first, last) = range(entry).ok_or(PropError::BadValue)?;
        if !known.contains(CpuId(last)) {
            return Err(PropError::NoSuchCpu { cpus });
        }
        set = set | (first..=last).map(CpuId).collect();
    }
    Ok(set)
}

/// A number, or two that do not descend.
fn range(entry: &str) -> Option<(u32, u32)> {
    let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// The list; nothing for no CPU.
pub fn show(cpus: CpuSet) -> String {
    let numbers: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_cpus_of_the_machine() {
        for (text, shown) in [
            ("0", "0"),
            ("3,1", "1,3"),
            ("0-3", "0,1,2,3"),
            ("2-2,0", "0,2"),
            ("1-2,2-3", "1,2,3"),
        ] {
            let shown_of = |text| parse(text, 4).map(show);
            assert_eq!(shown_of(text).as_deref(), Ok(shown), "{text}");
        }
        assert_eq!(show(CpuSet::EMPTY), "");
    }

    #[test]
    fn no_cpu_and_one_that_is_not_there_are_different_mistakes() {
        for (text, error) in [
            ("", PropError::NoCpu),
            ("4", PropError::NoSuchCpu { cpus: 4 }),
            ("0,3-4", PropError::NoSuchCpu { cpus: 4 }),
            ("0-4294967295", PropError::NoSuchCpu { cpus: 4 }),
            ("0,", PropError::BadValue),
            ("3-1", PropError::BadValue),
            ("-1", PropError::BadValue),
            ("1-", PropError::BadValue),
            ("1-2-3", PropError::BadValue),
            ("all", PropError::BadValue),
            ("4294967296", PropError::BadValue),
        ] {
            assert_eq!(parse(text, 4).err(), Some(error), "{text:?}");
        }
        let many = "0,".repeat(ENTRIES_MAX);
        let most = ENTRIES_MAX;
        assert_eq!(
            parse(&alloc::format!("{many}0"), 4).err(),
            Some(PropError::TooMany { most })
        );
        let largest = base::CPUS_MAX as u32;
        let beyond = parse(&largest.to_string(), u32::MAX).err();
        assert_eq!(beyond, Some(PropError::NoSuchCpu { cpus: u32::MAX }));
    }
}
