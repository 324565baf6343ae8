//! The kernel's counters of what programs hold: frames, open files, sockets.

use crate::operator::Operator;

const READ: &str = "for file in sys/fs/file-nr net/sockstat net/packet_buffers meminfo; do \
    while read -r line; do echo \"$line\"; done < /proc/$file; done";

/// What was in use at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Memory in KiB that is free, or can be made so at once.
    pub free_kib: u64,
    /// Open file descriptions.
    pub files: u64,
    /// Sockets that programs hold, of all families.
    pub sockets: u64,
    /// TCP sockets, those included that no program holds any more.
    pub tcp: u64,
    /// Packet buffers in use, those included that wait in the device.
    pub packet_buffers: u64,
}

impl Counters {
    /// Reads them inside the machine. The shell reads them by itself: another program
    /// would be counted, too.
    pub fn read(operator: &mut Operator) -> Result<Self, String> {
        let text = operator.ask(READ)?;
        let number = |line: &str, after: &str| {
            let mut words = text
                .lines()
                .filter(|text| text.starts_with(line))
                .flat_map(str::split_whitespace)
                .skip_while(|word| *word != after)
                .skip(1);
            let word = words.next().and_then(|word| word.parse().ok());
            word.ok_or_else(|| format!("no number after {after} in {text}"))
        };
        let files = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|words| words.len() == 3 && words[1] == "0")
            .and_then(|words| words[0].parse().ok());
        Ok(Self {
            free_kib: number("MemAvailable:", "MemAvailable:")?,
            files: files.ok_or_else(|| format!("no count of files in {text}"))?,
            sockets: number("sockets:", "used")?,
            tcp: number("TCP:", "alloc")?,
            packet_buffers: number("in_use", "in_use")?,
        })
    }
}
