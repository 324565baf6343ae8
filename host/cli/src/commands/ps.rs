//! `sietch ps`: lists machines, with `-a` those that have ended too.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::PsFlags;
use crate::health::Health;
use crate::state::{self, Folder, Settings};

/// Runs the command.
pub fn ps(flags: &PsFlags) -> Result<u8, Failure> {
    let filters: Vec<Filter> = flags
        .filter
        .iter()
        .map(|text| Filter::parse(text))
        .collect::<Result<_, _>>()?;
    let wants_ended = filters.iter().any(Filter::is_about_ended);
    let mut machines = match flags.all || wants_ended {
        true => state::all(),
        false => state::running(),
    };
    machines.retain(|settings| filters.iter().all(|filter| filter.lets_through(settings)));
    let now_s = state::now_s();
    if flags.quiet {
        machines
            .iter()
            .for_each(|settings| println!("{}", settings.name));
    } else {
        let values = machines.iter().map(|settings| value(settings, now_s));
        let values: Vec<Value> = values.collect();
        flags.output.list(&values, |_| show(&machines, now_s))?;
    }
    Ok(0)
}

fn show(machines: &[Settings], now_s: u64) {
    println!(
        "{:<20} {:>7} {:>8} {:<22}  {:<28} COMMAND",
        "NAME", "PID", "MEMORY", "STATUS", "PORTS"
    );
    for settings in machines {
        println!("{}", row(settings, now_s));
    }
}

fn row(settings: &Settings, now_s: u64) -> String {
    let pid = match settings.state() {
        "running" => settings.qemu_pid.to_string(),
        _ => "-".into(),
    };
    format!(
        "{:<20} {:>7} {:>8} {:<22}  {:<28} {}",
        settings.name,
        pid,
        format!("{} MiB", settings.memory_mib),
        status(settings, now_s),
        settings.ports.join(", "),
        on_one_line(&settings.command),
    )
}

/// Scripts have several.
fn on_one_line(command: &[String]) -> String {
    let words = command.iter().flat_map(|word| word.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// What templates have.
fn value(settings: &Settings, now_s: u64) -> Value {
    json!({
        "name": settings.name,
        "names": settings.name,
        "id": settings.name,
        "image": settings.image,
        "command": settings.command.join(" "),
        "state": settings.state(),
        "status": status(settings, now_s),
        "health": health(settings),
        "pid": settings.qemu_pid,
        "memory": format!("{} MiB", settings.memory_mib),
        "memory_bytes": u64::from(settings.memory_mib) << 20,
        "exit_code": settings.ended.map(|ended| ended.status),
        "ports": settings.ports,
        "labels": settings.labels,
        "restarts": settings.restarts,
        "running_for": age(now_s.saturating_sub(settings.started_s)),
        "started_s": settings.started_s,
    })
}

fn health(settings: &Settings) -> Option<String> {
    let health = Health::read(Folder::of(&settings.name).path());
    health.map(|health| health.status)
}

/// `Up 5 s (healthy)`, `Exited (0) 3 min ago`.
fn status(settings: &Settings, now_s: u64) -> String {
    let ago = settings.ended.map_or(String::new(), |ended| {
        format!(" {} ago", age(now_s.saturating_sub(ended.at_s)))
    });
    match settings.state() {
        "running" => {
            let up = age(now_s.saturating_sub(settings.started_s));
            let health = health(settings).map(|health| format!(" ({health})"));
            format!("Up {up}{}", health.unwrap_or_default())
        }
        "restarting" => format!("Restarting ({}){ago}", settings.status()),
        // One whose session was killed said nothing.
        _ => format!("Exited ({}){ago}", settings.status()),
    }
}

/// `--filter`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Filter {
    Name(String),
    Status(String),
    Label { key: String, value: Option<String> },
    Exited(u8),
    Health(String),
    Ancestor(String),
}

impl Filter {
    fn parse(text: &str) -> Result<Self, Failure> {
        let bad = || Failure::BadFilter(text.into());
        let (key, value) = text.split_once('=').ok_or_else(bad)?;
        let word = value.to_string();
        Ok(match key {
            "name" | "id" => Self::Name(word),
            "status" => Self::Status(word),
            "label" => {
                let (key, value) = match value.split_once('=') {
                    Some((key, value)) => (key, Some(value.into())),
                    None => (value, None),
                };
                let key = key.into();
                Self::Label { key, value }
            }
            "exited" => Self::Exited(value.parse().map_err(|_| bad())?),
            "health" => Self::Health(word),
            "ancestor" => Self::Ancestor(word),
            _ => return Err(bad()),
        })
    }

    /// Whether it asks for machines that have ended.
    fn is_about_ended(&self) -> bool {
        matches!(self, Self::Exited(_))
            || matches!(self, Self::Status(status) if status == "exited")
    }

    fn lets_through(&self, settings: &Settings) -> bool {
        match self {
            Self::Name(part) => settings.name.contains(part),
            Self::Status(status) => settings.state() == status,
            Self::Label { key, value } => {
                let found = settings.labels.get(key);
                found.is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
            }
            Self::Exited(status) => settings.state() == "exited" && settings.status() == *status,
            Self::Health(wanted) => {
                health(settings).as_deref().unwrap_or("none") == wanted.as_str()
            }
            Self::Ancestor(image) => settings
                .image
                .as_deref()
                .is_some_and(|of| of == image || of.split(':').next() == Some(image)),
        }
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

    #[test]
    fn filters_are_about_names_labels_and_ends() {
        let mut settings: Settings = serde_json::from_value(json!({
            "name": "web-1", "command": ["nginx"], "qemu_pid": 0, "session_pid": 0, "ports": [], "kernel": "/k",
            "memory_mib": 1, "started_s": 0, "labels": {"a": "b"}, "image": "nginx:1.2",
            "ended": {"status": 3, "at_s": 5}
        }))
        .unwrap();
        let passes =
            |text: &str, settings: &Settings| Filter::parse(text).unwrap().lets_through(settings);
        for text in [
            "name=web",
            "label=a",
            "label=a=b",
            "exited=3",
            "status=exited",
            "ancestor=nginx",
        ] {
            assert!(passes(text, &settings), "{text}");
        }
        for text in [
            "name=db",
            "label=a=c",
            "label=b",
            "exited=0",
            "status=running",
            "ancestor=ngin",
        ] {
            assert!(!passes(text, &settings), "{text}");
        }
        assert_eq!(status(&settings, 10), "Exited (3) 5 s ago");
        settings.ended = None;
        assert_eq!(status(&settings, 10), "Exited (137)");
        for wrong in ["name", "exited=x", "color=red"] {
            assert!(Filter::parse(wrong).is_err(), "{wrong}");
        }
    }
}
