//! `sietch stats`: what machines use of this host, and what those with a balloon say of their own memory.

use std::collections::HashMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::StatsFlags;
use crate::format::Template;
use crate::memory;
use crate::state::{self, Folder, Settings};

/// Between two looks, over which the use of CPUs is measured.
const PERIOD: Duration = Duration::from_secs(1);
/// Clock ticks of /proc in a second (`sysconf(_SC_CLK_TCK)` on each Linux of this architecture).
const TICKS: f64 = 100.0;
const TABLE: &str = "table {{.Name}}\\t{{.Cpu}}\\t{{.Memory}}\\t{{.Limit}}\\t{{.Guest}}\\t{{.Read}}\\t{{.Written}}\\t{{.Threads}}";

/// What one QEMU has used so far.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    cpu_s: f64,
    resident_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    threads: u64,
}

/// Runs the command.
pub fn stats(flags: &StatsFlags) -> Result<u8, Failure> {
    let table = Template::parse(TABLE)?;
    let (mut before, mut at) = (looks(&flags.names)?, Instant::now());
    loop {
        thread::sleep(PERIOD);
        let now = looks(&flags.names)?;
        let elapsed_s = at.elapsed().as_secs_f64();
        at = Instant::now();
        let values = now.iter().map(|(settings, used)| {
            let earlier = before
                .iter()
                .find(|(other, _)| other.qemu_pid == settings.qemu_pid);
            let spent = earlier.map_or(0.0, |(_, earlier)| used.cpu_s - earlier.cpu_s);
            value(settings, used, 100.0 * spent / elapsed_s)
        });
        let values: Vec<Value> = values.collect();
        flags.output.list(&values, |values| {
            let lines = table.lines(values);
            lines.iter().for_each(|line| println!("{line}"));
        })?;
        if flags.no_stream {
            return Ok(0);
        }
        before = now;
    }
}

fn looks(names: &[String]) -> Result<Vec<(Settings, Use)>, Failure> {
    let running = state::running();
    for name in names {
        if !running.iter().any(|settings| settings.name == *name) {
            return Err(Failure::NoSuchMachine { name: name.clone() });
        }
    }
    let is_wanted = |settings: &Settings| names.is_empty() || names.contains(&settings.name);
    let wanted = running.into_iter().filter(is_wanted);
    Ok(wanted
        .filter_map(|settings| {
            let used = used(settings.qemu_pid)?;
            Some((settings, used))
        })
        .collect())
}

fn used(pid: u32) -> Option<Use> {
    let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let stat = file("stat")?;
    // The program's name, in parentheses, may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    let status = numbers(&file("status")?);
    let io = numbers(&file("io").unwrap_or_default());
    let of = |table: &HashMap<String, u64>, key: &str| table.get(key).copied().unwrap_or(0);
    Some(Use {
        // utime and stime are fields 14 and 15 of proc(5), and the name is the second.
        cpu_s: (ticks(11)? + ticks(12)?) / TICKS,
        resident_bytes: of(&status, "VmRSS") << 10,
        threads: of(&status, "Threads"),
        read_bytes: of(&io, "read_bytes"),
        written_bytes: of(&io, "write_bytes"),
    })
}

/// Lines of `KEY: NUMBER`.
fn numbers(text: &str) -> HashMap<String, u64> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let value = value.split_whitespace().next()?.parse().ok()?;
        Some((key.to_string(), value))
    };
    text.lines().filter_map(pair).collect()
}

fn value(settings: &Settings, used: &Use, cpu_percent: f64) -> Value {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let memory = memory::now(&Folder::of(&settings.name));
    let started_with = u64::from(settings.memory_mib) << 20;
    let limit_bytes = memory.map_or(started_with, |(bytes, _)| bytes);
    let guest_bytes = memory.and_then(|(_, guest)| Some(guest?.used_bytes()));
    json!({
        "name": settings.name,
        "cpu": format!("{cpu_percent:.1} %"),
        "cpu_perc": format!("{cpu_percent:.2}%"),
        "memory": mib(used.resident_bytes),
        "mem_usage": mib(used.resident_bytes),
        "limit": format!("{} MiB", limit_bytes >> 20),
        "guest": guest_bytes.map_or("-".into(), mib),
        "read": mib(used.read_bytes),
        "written": mib(used.written_bytes),
        "threads": used.threads,
        "cpu_percent": (cpu_percent * 100.0).round() / 100.0,
        "memory_bytes": used.resident_bytes,
        "limit_bytes": limit_bytes,
        "guest_bytes": guest_bytes,
        "read_bytes": used.read_bytes,
        "written_bytes": used.written_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_uses_is_read() {
        let used = used(std::process::id()).unwrap();
        assert!(used.resident_bytes > 1 << 20 && used.threads > 0);
        let table = numbers("VmRSS:\t  12 kB\nName:\tx\n");
        assert_eq!((table.len(), table["VmRSS"]), (1, 12));
    }
}
