//! Counts exits, CPU time and time between two moments, in the host's shell.

use std::time::Duration;

use nested::{Guest, Host};

use crate::exits::Exits;

/// How long one measured script may take on a busy host.
const PATIENCE: Duration = Duration::from_secs(900);

/// What happened while a script ran.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Exits of all virtual CPUs.
    pub exits: Exits,
    /// Time that the threads of the virtual CPUs used.
    pub cpu_ns: f64,
    /// How long it took.
    pub seconds: f64,
}

/// The scripts' functions: `begin` and `end` around what is measured. The histograms are the
/// kernel's own (Linux's Documentation/trace/histogram.rst).
const FUNCTIONS: &str = r#"
events=/sys/kernel/tracing/events/kvm
cpu_ns() {
    for comm in $(grep -l '^CPU ' /proc/$(cat /tmp/$1/pid)/task/*/comm); do
        cut -d' ' -f1 ${comm%comm}schedstat
    done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}
begin() {
    before=$(cpu_ns $1); began=$(cut -d' ' -f1 /proc/uptime)
    echo hist:keys=exit_reason:clear >>$events/kvm_exit/trigger
    echo hist:keys=write,ecx:clear >>$events/kvm_msr/trigger
}
end() {
    cat $events/kvm_exit/hist $events/kvm_msr/hist
    echo "time $(cut -d' ' -f1 /proc/uptime) $began"
    echo "cpu $(cpu_ns $1) $before"
}
echo hist:keys=exit_reason >$events/kvm_exit/trigger
echo hist:keys=write,ecx >$events/kvm_msr/trigger
"#;

/// Makes a host ready to count.
pub fn prepare(host: &mut Host) -> Result<(), String> {
    host.run(FUNCTIONS, PATIENCE).map(drop)
}

/// Runs `script` while a guest runs, and counts.
pub fn count(host: &mut Host, guest: &Guest, script: &str) -> Result<Sample, String> {
    let name = guest.name();
    // A client's words could look like a line of a histogram.
    let script = format!(
        "begin {name}\n( {script} ) >/tmp/said 2>&1; status=$?\nend {name}\n\
         [ $status = 0 ] || {{ tail -n 5 /tmp/said; false; }}"
    );
    let said = host.run(&script, PATIENCE)?;
    sample(&said).ok_or_else(|| format!("the meter says {said:?}"))
}

fn sample(said: &str) -> Option<Sample> {
    let difference = |label: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(label))?;
        let (after, before) = line.trim().split_once(' ')?;
        Some(after.parse::<f64>().ok()? - before.parse::<f64>().ok()?)
    };
    Some(Sample {
        exits: Exits::parse(said),
        cpu_ns: difference("cpu ")?,
        seconds: difference("time ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_differences() {
        let said = "{ exit_reason: 120 } hitcount: 4\ntime 12.50 10.00\ncpu 700 200\n";
        let sample = sample(said).expect("whole");
        assert_eq!((sample.seconds, sample.cpu_ns), (2.5, 500.0));
        assert_eq!(sample.exits.total(), 4.0);
    }
}
