//! `sietch ps`: lists the machines that run.

use crate::failure::Failure;
use crate::state::{self, Settings};

/// Runs the command.
pub fn ps() -> Result<u8, Failure> {
    println!(
        "{:<20} {:>7} {:>8} {:>8}  {:<28} COMMAND",
        "NAME", "PID", "MEMORY", "UP", "PORTS"
    );
    let now_s = state::now_s();
    for settings in state::running() {
        println!("{}", row(&settings, now_s));
    }
    Ok(0)
}

fn row(settings: &Settings, now_s: u64) -> String {
    format!(
        "{:<20} {:>7} {:>8} {:>8}  {:<28} {}",
        settings.name,
        settings.qemu_pid,
        format!("{} MiB", settings.memory_mib),
        age(now_s.saturating_sub(settings.started_s)),
        settings.ports.join(", "),
        settings.command.join(" "),
    )
}

/// Seconds in the largest unit that fits.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_fitting_units() {
        assert_eq!(age(5), "5 s");
        assert_eq!(age(125), "2 min");
        assert_eq!(age(3 * 3600), "3 h");
        assert_eq!(age(3 * 86_400), "3 d");
    }
}
