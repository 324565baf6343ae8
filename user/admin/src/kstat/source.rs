//! Where statistics come from.

use std::fmt;

use linkctl::KstatBlock;

use crate::ask::{kstats, links};
use crate::netstat;
use crate::{Kernel, World};

/// A number with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// Who counts.
    pub module: String,
    /// Which of several.
    pub instance: u32,
    /// What is counted at.
    pub name: String,
    /// What kind of thing that is.
    pub class: &'static str,
    /// What is counted.
    pub statistic: String,
    /// How much.
    pub value: i64,
}

impl fmt::Display for Statistic {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            module,
            instance,
            name,
            statistic,
            ..
        } = self;
        write!(to, "{module}:{instance}:{name}:{statistic}")
    }
}

impl Statistic {
    /// Whether both are counted at the same thing.
    pub fn is_beside(&self, other: &Self) -> bool {
        let place = |one: &Self| (one.module.clone(), one.instance, one.name.clone());
        place(self) == place(other)
    }
}

/// All there are. A kernel without links has none of theirs.
///
/// Errors: a sentence if there are no counters at all.
pub fn read(world: &mut World<'_>) -> Result<Vec<Statistic>, String> {
    let mut all = Vec::new();
    for (protocol, name, value) in netstat::mib(world.files)? {
        all.push(Statistic {
            module: protocol.into(),
            instance: 0,
            name: protocol.into(),
            class: "mib2",
            statistic: name,
            value,
        });
    }
    cpus(
        &world.files.read("/proc/stat").unwrap_or_default(),
        &mut all,
    );
    rings(
        &world.files.read("/proc/net/card").unwrap_or_default(),
        &mut all,
    );
    locks(
        &world.files.read("/proc/lock_stat").unwrap_or_default(),
        &mut all,
    );
    programs(
        &world
            .files
            .read("/proc/net/stack_counters")
            .unwrap_or_default(),
        &mut all,
    );
    all.extend(of_links(world.kernel).unwrap_or_default());
    Ok(all)
}

/// Ticks of each CPU, a line of /proc/stat each.
fn cpus(text: &str, all: &mut Vec<Statistic>) {
    const NAMES: [&str; 4] = [
        "cpu_ticks_user",
        "cpu_ticks_nice",
        "cpu_ticks_kernel",
        "cpu_ticks_idle",
    ];
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().and_then(|name| name.strip_prefix("cpu"));
        let Some(instance) = name.and_then(|number| number.parse().ok()) else {
            continue;
        };
        all.extend(NAMES.iter().zip(words).filter_map(|(statistic, value)| {
            Some(Statistic {
                module: "cpu".into(),
                instance,
                name: "sys".into(),
                class: "misc",
                statistic: (*statistic).into(),
                value: value.parse().ok()?,
            })
        }));
    }
}

/// What a card's driver counted at each pair of queues: a number, a name and a count a line.
fn rings(text: &str, all: &mut Vec<Statistic>) {
    let parse = |line: &str| {
        let [ring, statistic, count] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        Some(Statistic {
            module: "card".into(),
            instance: ring.parse().ok()?,
            name: "ring".into(),
            class: "net",
            statistic: String::from(statistic),
            value: count.parse().ok()?,
        })
    };
    all.extend(text.lines().filter_map(parse));
}

/// How often locks were waited for: waits, turns of the waiting loops, naps, and what is protected, a
/// line each. A path has dots in a name, since colons part the names of a statistic.
fn locks(text: &str, all: &mut Vec<Statistic>) {
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let counts = ["waits", "turns", "naps"].map(|name| (name, words.next()));
        let Some(class) = words.next() else {
            continue;
        };
        all.extend(counts.into_iter().filter_map(|(statistic, value)| {
            Some(Statistic {
                module: "locks".into(),
                instance: 0,
                name: class.replace("::", "."),
                class: "misc",
                statistic: statistic.into(),
                value: value?.parse().ok()?,
            })
        }));
    }
}

/// What stacks in programs have counted: the process, its link, its address, a group, a name and a count a line.
fn programs(text: &str, all: &mut Vec<Statistic>) {
    let parse = |line: &str| {
        let words = line.split(' ').collect::<Vec<_>>();
        let [process, _, _, group, statistic, count] = words.try_into().ok()?;
        Some(Statistic {
            module: "sietch".into(),
            instance: process.parse().ok()?,
            name: String::from(group),
            class: "net",
            statistic: String::from(statistic),
            // A program may say any count.
            value: count.parse::<u64>().ok()?.cast_signed(),
        })
    };
    all.extend(text.lines().filter_map(parse));
}

/// What is counted of links, as the kernel names it.
fn of_links(kernel: &mut dyn Kernel) -> Result<Vec<Statistic>, String> {
    let mut all = Vec::new();
    for link in links(kernel)? {
        // A link may be gone by now.
        let blocks = kstats(kernel, &link.name).unwrap_or_default();
        all.extend(blocks.into_iter().flat_map(of_block));
    }
    Ok(all)
}

fn of_block(block: KstatBlock) -> impl Iterator<Item = Statistic> {
    let KstatBlock { module, name, rows } = block;
    rows.into_iter().map(move |row| Statistic {
        module: module.clone(),
        instance: 0,
        name: name.clone(),
        class: "net",
        statistic: row.name,
        value: row.value.cast_signed(),
    })
}
