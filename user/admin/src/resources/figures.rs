//! All counters of /proc that matter here, each under one name.
//!
//! `cpu.user`, `mem.MemTotal`, `vm.oom_kill`, `Tcp.RetransSegs`, `port.eth0.in`,
//! `volume.data.BUSY`, `disk.vda.BUSY`. Times of CPUs are ticks, those of volumes and disks nanoseconds.

use std::collections::BTreeMap;

use crate::files::Files;
use crate::prstat::{Snapshot, grown};

/// The figures of one moment.
#[derive(Debug, Default)]
pub struct Figures {
    numbers: BTreeMap<String, u64>,
    threads: Snapshot,
    /// Hundredths of a second since the boot.
    up: u64,
}

/// The columns of `/proc/net/dev` that are taken, behind the port's name.
const PORT: [(usize, &str); 6] = [
    (0, "in"),
    (2, "bad_in"),
    (3, "dropped_in"),
    (8, "out"),
    (10, "bad_out"),
    (11, "dropped_out"),
];

impl Figures {
    /// Asks the kernel. What it does not know is left out, but there must be CPUs and a clock.
    pub fn read(files: &mut dyn Files) -> Result<Self, String> {
        let mut figures = Self {
            threads: Snapshot::read(files).unwrap_or_default(),
            up: parse_uptime(&files.read("/proc/uptime")?).ok_or("/proc/uptime makes no sense")?,
            ..Self::default()
        };
        figures.add_cpus(&files.read("/proc/stat")?);
        let mut read = |path: &str| files.read(path).unwrap_or_default();
        figures.add_pairs("mem", &read("/proc/meminfo"));
        figures.add_pairs("vm", &read("/proc/vmstat"));
        figures.add_ports(&read("/proc/net/dev"));
        figures.add_families(&read("/proc/net/snmp"));
        figures.add_families(&read("/proc/net/netstat"));
        figures.add_servers("volume", &read("/proc/volumes"));
        figures.add_servers("disk", &read("/proc/disks"));
        figures.add_stretches(&read("/proc/resched"));
        Ok(figures)
    }

    /// The number of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    /// How much it grew since `before`.
    pub fn grown(&self, before: &Self, name: &str) -> Option<u64> {
        let old = before.get(name).unwrap_or(0);
        Some(self.get(name)?.saturating_sub(old))
    }

    /// Nanoseconds since `before`; never 0.
    pub fn passed_ns(&self, before: &Self) -> u64 {
        self.up.saturating_sub(before.up).max(1) * 10_000_000
    }

    /// Nanoseconds that threads waited for a CPU since `before`, together; nothing where the
    /// kernel does not tell.
    pub fn latency_ns(&self, before: &Self) -> Option<u64> {
        let threads = &self.threads.threads;
        (!threads.is_empty()).then(|| {
            let waits = grown(&before.threads, &self.threads);
            waits.map(|thread| thread.latency_ns()).sum()
        })
    }

    /// What stands between `prefix` and a point in the names, each once.
    pub fn members(&self, prefix: &str) -> Vec<&str> {
        let names = self
            .numbers
            .keys()
            .filter_map(|name| name.strip_prefix(prefix));
        let mut members: Vec<&str> = names
            .filter_map(|name| Some(name.rsplit_once('.')?.0))
            .collect();
        members.dedup();
        members
    }

    fn put(&mut self, group: &str, name: &str, number: &str) {
        if let Ok(number) = number.parse() {
            self.numbers.insert(format!("{group}.{name}"), number);
        }
    }

    fn add_cpus(&mut self, text: &str) {
        let names = ["user", "nice", "system", "idle"];
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("cpu") => {
                    let pairs = names.iter().zip(words);
                    pairs.for_each(|(name, number)| self.put("cpu", name, number));
                }
                Some(name) if name.starts_with("cpu") => {
                    *self.numbers.entry("cpu.count".into()).or_default() += 1;
                }
                _ => {}
            }
        }
    }

    /// Lines of a name and a number.
    fn add_pairs(&mut self, group: &str, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(number)) = (words.next(), words.next()) {
                self.put(group, name.trim_end_matches(':'), number);
            }
        }
    }

    fn add_ports(&mut self, text: &str) {
        for (port, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
            let numbers: Vec<&str> = numbers.split_whitespace().collect();
            let group = format!("port.{}", port.trim());
            for (at, name) in PORT {
                self.put(&group, name, numbers.get(at).unwrap_or(&""));
            }
        }
    }

    /// Two lines for each family: names, then numbers.
    fn add_families(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let [names, numbers] = [pair[0], pair[1]].map(str::split_whitespace);
            let family = pair[0].split(':').next().unwrap_or("");
            for (name, number) in names.zip(numbers).skip(1) {
                self.put(family, name, number);
            }
        }
    }

    /// How many times the kernel kept a CPU for over a millisecond, and for how long at most.
    fn add_stretches(&mut self, text: &str) {
        let mut hertz = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
            let milliseconds = |ticks: u64| u128::from(ticks) * 1000 / u128::from(hertz.max(1));
            match (words.first(), number(1), number(2)) {
                (Some(&"hertz"), Some(ticks), _) => {
                    hertz = ticks;
                    self.numbers.insert("kernel.long".into(), 0);
                    self.numbers.insert("kernel.longest_us".into(), 0);
                }
                (Some(&"below"), Some(end), Some(count)) if milliseconds(end / 2) >= 1 => {
                    *self.numbers.entry("kernel.long".into()).or_default() += count;
                }
                (Some(&"longest"), Some(ticks), _) => {
                    let us = u128::from(ticks) * 1_000_000 / u128::from(hertz.max(1));
                    let longest = self.numbers.entry("kernel.longest_us".into()).or_default();
                    *longest = (*longest).max(u64::try_from(us).unwrap_or(u64::MAX));
                }
                _ => {}
            }
        }
    }

    /// A line of heads, the last of which is the name.
    fn add_servers(&mut self, kind: &str, text: &str) {
        let mut lines = text.lines();
        let heads: Vec<&str> = lines.next().unwrap_or("").split(' ').collect();
        for line in lines {
            let fields: Vec<&str> = line.splitn(heads.len(), ' ').collect();
            let Some((name, numbers)) = fields.split_last() else {
                continue;
            };
            let group = format!("{kind}.{}", name.replace('.', "_"));
            for (head, number) in heads.iter().zip(numbers) {
                self.put(&group, head, number);
            }
        }
    }
}

/// In hundredths of a second.
fn parse_uptime(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let hundredths = rest.split(' ').next()?;
    Some(seconds.parse::<u64>().ok()? * 100 + hundredths.trim().parse::<u64>().ok()?)
}
