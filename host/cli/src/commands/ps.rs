//! `sietch ps`: lists machines, with `-a` those that have ended too.

use crate::failure::Failure;
use crate::flags::PsFlags;
use crate::state::{self, Settings};

/// Runs the command.
pub fn ps(flags: &PsFlags) -> Result<u8, Failure> {
    let machines = match flags.all {
        true => state::all(),
        false => state::running(),
    };
    if flags.quiet {
        machines
            .iter()
            .for_each(|settings| println!("{}", settings.name));
        return Ok(0);
    }
    println!(
        "{:<20} {:>7} {:>8} {:<22}  {:<28} COMMAND",
        "NAME", "PID", "MEMORY", "STATUS", "PORTS"
    );
    let now_s = state::now_s();
    for settings in machines {
        println!("{}", row(&settings, now_s));
    }
    Ok(0)
}

fn row(settings: &Settings, now_s: u64) -> String {
    let pid = match settings.is_served() {
        true => settings.qemu_pid.to_string(),
        false => "-".into(),
    };
    format!(
        "{:<20} {:>7} {:>8} {:<22}  {:<28} {}",
        settings.name,
        pid,
        format!("{} MiB", settings.memory_mib),
        status(settings, now_s),
        settings.ports.join(", "),
        settings.command.join(" "),
    )
}

/// `Up 5 s`, `Exited (0) 3 min ago`.
fn status(settings: &Settings, now_s: u64) -> String {
    if settings.is_served() {
        return format!("Up {}", age(now_s.saturating_sub(settings.started_s)));
    }
    let exited = format!("Exited ({})", settings.status());
    match settings.ended {
        Some(ended) => format!("{exited} {} ago", age(now_s.saturating_sub(ended.at_s))),
        // Its session was killed, and said nothing.
        None => exited,
    }
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
