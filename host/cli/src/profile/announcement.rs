//! What the kernel's log says of the profiler.
//!
//! ```text
//! sietch: profile ring cpu=0 samples=0x100000 events=0x200000 words=131072 hertz=2590860360
//! sietch: profile started source=hpet hertz=997
//! sietch: profile stopped
//! sietch: profile failed reason=memory
//! ```

/// Where the rings of a CPU are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// The CPU.
    pub cpu: u32,
    /// The physical address of its samples.
    pub samples: u64,
    /// The physical address of its waits, wake-ups and mappings.
    pub events: u64,
    /// Ticks a second of the clock in the records.
    pub hertz: u64,
}

/// Everything that was said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The rings, by CPU.
    pub rings: Vec<RingPlace>,
    /// How often recording was started.
    pub starts: usize,
    /// How often it was stopped.
    pub stops: usize,
    /// What there was not enough of when it failed to start.
    pub failures: Vec<String>,
}

impl Announcement {
    /// Reads a log, or the beginning of one.
    pub fn parse(log: &str) -> Self {
        let mut said = Self::default();
        // A line that is still being written has no end.
        for line in log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let Some(words) = line.trim_end().strip_prefix("sietch: profile ") else {
                continue;
            };
            if words.starts_with("started ") {
                said.starts += 1;
            } else if words == "stopped" {
                said.stops += 1;
            } else if words.starts_with("failed ") {
                said.failures
                    .push(field(words, "reason").unwrap_or("?").into());
            } else {
                said.rings.extend(parse_ring(words));
            }
        }
        said
    }
}

fn parse_ring(words: &str) -> Option<RingPlace> {
    words.strip_prefix("ring ")?;
    let address = |key| u64::from_str_radix(field(words, key)?.strip_prefix("0x")?, 16).ok();
    Some(RingPlace {
        cpu: field(words, "cpu")?.parse().ok()?,
        samples: address("samples")?,
        events: address("events")?,
        hertz: field(words, "hertz")?.parse().ok()?,
    })
}

fn field<'a>(words: &'a str, key: &str) -> Option<&'a str> {
    let mut words = words.split(' ');
    words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_and_an_unfinished_line_is_not() {
        let log = "sietch: profile ring cpu=1 samples=0x1000 events=0x2000 words=64 hertz=9\n\
                   sietch: profile started source=hpet hertz=997\n\
                   sietch: profile failed reason=memory\n\
                   sietch: profile started sou";
        let said = Announcement::parse(log);
        let ring = RingPlace {
            cpu: 1,
            samples: 0x1000,
            events: 0x2000,
            hertz: 9,
        };
        assert_eq!(said.rings, [ring]);
        assert_eq!(said.starts, 1);
        assert_eq!(said.failures, ["memory"]);
    }
}
