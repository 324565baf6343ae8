//! Whose a guest's instructions are: a program's own, those of the libraries that it is linked with, those of
//! `libsietch.so`, or the kernel's.

use std::collections::BTreeMap;
use std::ops::Range;

use bench_pair::counter::Counts;

/// Where the kernel's half of the addresses begins, in both systems.
const KERNEL: u64 = 1 << 63;
/// What ends the lines that [`TELLING`] writes.
const END: &str = "mapped";

/// Starts a program by a shell, and says where its code lies once the C library is there, which is loaded last. What the
/// program says would be in between.
pub const TELLING: &str = r#""$@" >/dev/null 2>&1 & until grep -q libc.so /proc/$!/maps; do :; done; sleep 1
    grep ' r-x' /proc/$!/maps; echo mapped; wait"#;

/// A part of what runs in a guest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// The program's file.
    Program,
    /// Its libraries, the C library among them.
    Libraries,
    /// `libsietch.so`: the program's own network.
    Sietch,
    /// The kernel.
    Kernel,
}

impl Part {
    /// In the order of the table.
    pub const ALL: [Self; 4] = [Self::Program, Self::Libraries, Self::Sietch, Self::Kernel];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "the program's",
            Self::Libraries => "its libraries'",
            Self::Sietch => "`libsietch.so`'s",
            Self::Kernel => "the kernel's",
        }
    }
}

/// Where the code of a program lies.
#[derive(Debug)]
pub struct Maps(Vec<(Range<u64>, Part)>);

impl Maps {
    /// What [`TELLING`] says; `None` until it has said all.
    pub fn told(said: &str) -> Option<Self> {
        let lines = said.lines().map(str::trim);
        let mapped = lines.clone().position(|line| line == END)?;
        Some(Self(lines.take(mapped).filter_map(mapping).collect()))
    }

    fn part(&self, address: u64) -> Part {
        if address >= KERNEL {
            return Part::Kernel;
        }
        let mapping = self.0.iter().find(|(range, _)| range.contains(&address));
        mapping.map_or(Part::Program, |&(_, part)| part)
    }

    /// Instructions of each part.
    pub fn split(&self, counts: &Counts) -> BTreeMap<Part, u64> {
        let mut parts = BTreeMap::new();
        for (address, count) in counts.iter() {
            *parts.entry(self.part(address)).or_default() += count;
        }
        parts
    }
}

/// A line as `7f0000002000-7f0000003000 r-xp 00001000 00:01 5   /lib/libc.so.6`.
fn mapping(line: &str) -> Option<(Range<u64>, Part)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |word| u64::from_str_radix(word, 16).ok();
    let range = address(start)?..address(end)?;
    let part = match words.nth(4)? {
        file if file.contains("libsietch") => Part::Sietch,
        file if file.contains(".so") || file.starts_with('[') => Part::Libraries,
        _ => Part::Program,
    };
    Some((range, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_where_the_maps_say() {
        let said = "Ready\n1000-2000 r-xp 00000000 00:01 5 /bin/program\r\n\
            3000-4000 r-xp 00000000 00:01 6    /lib/libsietch.so\n\
            5000-6000 r-xp 00000000 00:01 7 /lib/libc.so.6\n";
        assert!(Maps::told(said).is_none());
        let maps = Maps::told(&format!("{said}mapped\n")).unwrap();
        let parts = [0x1000, 0x5000, 0x3fff, KERNEL].map(|address| maps.part(address));
        assert_eq!(parts, Part::ALL);
    }
}
