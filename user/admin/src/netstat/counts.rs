//! The kernel's counters, by the names that Linux has for them.

use std::collections::BTreeMap;

use crate::Files;

/// Values by section and name, such as `Tcp`, `ActiveOpens`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(String, String), i64>);

impl Counts {
    /// Reads all that there are; files that are missing hold none.
    ///
    /// Errors: a sentence if there is not even the first file.
    pub fn read(files: &mut dyn Files) -> Result<Self, String> {
        let mut counts = Self::default();
        counts.take_pairs(&files.read("/proc/net/snmp")?);
        counts.take_pairs(&files.read("/proc/net/netstat").unwrap_or_default());
        counts.take_lines(&files.read("/proc/net/snmp6").unwrap_or_default());
        Ok(counts)
    }

    /// A line of names, then a line of values, both after their section.
    fn take_pairs(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let [names, values] = [pair[0], pair[1]].map(str::split_whitespace);
            let mut columns = names.zip(values);
            let Some((section, _)) = columns.next() else {
                continue;
            };
            for (name, value) in columns {
                self.set(section.trim_end_matches(':'), name, value);
            }
        }
    }

    /// A name and a value a line; the name starts with the section, which ends in a 6.
    fn take_lines(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(name), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            if let Some((section, name)) = name.split_once('6') {
                self.set(&format!("{section}6"), name, value);
            }
        }
    }

    fn set(&mut self, section: &str, name: &str, value: &str) {
        // What is beyond the type is "no limit", which illumos says by -1.
        let value = value.parse().unwrap_or(-1);
        self.0.insert((section.into(), name.into()), value);
    }

    /// The value of that name, if the kernel counts it.
    pub fn get(&self, section: &str, name: &str) -> Option<i64> {
        self.0.get(&(section.into(), name.into())).copied()
    }

    /// All names of a section.
    pub fn names(&self, section: &str) -> impl Iterator<Item = &str> {
        let own = self.0.keys().filter(move |(of, _)| of == section);
        own.map(|(_, name)| name.as_str())
    }
}
