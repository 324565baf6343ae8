//! How long a machine lives: who starts it again, how it is asked to end, and what is written down of it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::failure::Failure;
use crate::signals;

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub struct LifeFlags {
    /// Start the machine again when its program has ended: no, on-failure[:TIMES], always or unless-stopped. The
    /// process in the background does it, so a restart of the host ends this
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "no",
        conflicts_with = "rm"
    )]
    pub restart: RestartPolicy,
    /// The signal that asks the program to end [default: the image's, or TERM]
    #[arg(long, value_name = "SIGNAL", value_parser = signals::parse)]
    pub stop_signal: Option<u8>,
    /// Seconds after which a program that was asked to end is ended [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub stop_timeout: Option<u64>,
    /// End the machine after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Take the place of a machine of the same name: end and remove it
    #[arg(long, requires = "name")]
    pub replace: bool,
    /// A word about the machine, for `ps --filter` and `inspect`
    #[arg(short = 'l', long, value_name = "KEY[=VALUE]")]
    pub label: Vec<String>,
    /// A file with labels, one a line
    #[arg(long, value_name = "FILE")]
    pub label_file: Vec<PathBuf>,
    /// A further word about the machine, shown by `inspect`
    #[arg(long, value_name = "KEY=VALUE")]
    pub annotation: Vec<String>,
    /// Write the machine's name into this file, which must not be there
    #[arg(long, value_name = "FILE")]
    pub cidfile: Option<PathBuf>,
    /// Write the number of QEMU's process into this file
    #[arg(long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
    /// Write the number of the process that keeps the machine into this file
    #[arg(long, value_name = "FILE")]
    pub conmon_pidfile: Option<PathBuf>,
    /// How readily the host's kernel kills the machine when its memory runs out
    #[arg(long, value_name = "-1000..1000", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i16).range(-1000..=1000))]
    pub oom_score_adj: Option<i16>,
    /// The host's CPUs that run the machine, such as 0-2,4
    #[arg(long, value_name = "LIST")]
    pub cpuset_cpus: Option<CpuList>,
}

impl LifeFlags {
    /// All labels: those of files, then those of the command line.
    ///
    /// Errors: a file that cannot be read.
    pub fn labels(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut labels = BTreeMap::new();
        for path in &self.label_file {
            let text = fs::read_to_string(path).map_err(Failure::file(path))?;
            labels.extend(text.lines().filter(|line| is_entry(line)).map(pair));
        }
        labels.extend(self.label.iter().map(|label| pair(label)));
        Ok(labels)
    }

    /// All annotations.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.annotation.iter().map(|word| pair(word)).collect()
    }
}

/// Whether a line of a file holds something.
pub(super) fn is_entry(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with('#')
}

/// `KEY=VALUE`, or `KEY` with an empty value.
fn pair(text: &str) -> (String, String) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    (key.trim_start().into(), value.into())
}

/// `--restart`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Never.
    #[default]
    No,
    /// If the status is not 0.
    OnFailure {
        /// So often at the most.
        times: Option<u32>,
    },
    /// Unless somebody ends the machine.
    Always,
}

impl RestartPolicy {
    /// Whether a machine that ended by itself with `status`, and was started again `restarts` times, is started again.
    pub fn wants(self, status: u8, restarts: u32) -> bool {
        match self {
            Self::No => false,
            Self::OnFailure { times } => status != 0 && times.is_none_or(|times| restarts < times),
            Self::Always => true,
        }
    }
}

impl fmt::Display for RestartPolicy {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("no"),
            Self::OnFailure { times: None } => f.write_str("on-failure"),
            Self::OnFailure { times: Some(times) } => write!(f, "on-failure:{times}"),
            Self::Always => f.write_str("always"),
        }
    }
}

impl FromStr for RestartPolicy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give no, on-failure[:TIMES], always or unless-stopped";
        Ok(match text.split_once(':') {
            None if text == "no" => Self::No,
            None if text == "on-failure" => Self::OnFailure { times: None },
            // They differ in what a restart of the host does only, which starts none here.
            None if text == "always" || text == "unless-stopped" => Self::Always,
            Some(("on-failure", times)) => Self::OnFailure {
                times: Some(times.parse().map_err(|_| FORM)?),
            },
            _ => return Err(FORM),
        })
    }
}

/// Numbers of CPUs, such as `0-2,4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

/// As many as an affinity mask of Linux has.
const CPUS_MAX: usize = 1024;

impl FromStr for CpuList {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give numbers and ranges below 1024, such as 0-2,4";
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse::<usize>().ok().filter(|cpu| *cpu < CPUS_MAX);
            let (first, last) = (number(first).ok_or(FORM)?, number(last).ok_or(FORM)?);
            all.extend(first..=last);
        }
        match all.is_empty() {
            true => Err(FORM),
            false => Ok(Self(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_dockers() {
        let policy = |text: &str| text.parse::<RestartPolicy>();
        assert_eq!(policy("no"), Ok(RestartPolicy::No));
        assert_eq!(policy("unless-stopped"), Ok(RestartPolicy::Always));
        let twice = policy("on-failure:2").unwrap();
        assert!(twice.wants(1, 1) && !twice.wants(1, 2) && !twice.wants(0, 0));
        assert!(policy("always").unwrap().wants(0, 1000));
        for text in ["no", "on-failure", "on-failure:2", "always"] {
            assert_eq!(
                policy(text).map(|policy| policy.to_string()),
                Ok(text.into())
            );
        }
        for wrong in ["", "never", "always:3", "on-failure:", "on-failure:-1"] {
            assert!(policy(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        assert_eq!("0-2,4".parse(), Ok(CpuList(vec![0, 1, 2, 4])));
        for wrong in ["", "a", "1-", "2-1", "0-5000"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_label_has_a_value_or_none() {
        let flags = LifeFlags {
            label: vec!["a".into(), "b=c=d".into()],
            ..LifeFlags::default()
        };
        let labels = flags.labels().unwrap();
        assert_eq!((labels["a"].as_str(), labels["b"].as_str()), ("", "c=d"));
    }
}
