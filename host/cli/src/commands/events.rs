//! `sietch events`: what happens to machines, from now on or since a time.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::events::{self, Event};
use crate::failure::Failure;
use crate::flags::Form;
use crate::flags::{EventsFlags, timestamp};
use crate::format::Template;

const POLL: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn events(flags: &EventsFlags) -> Result<u8, Failure> {
    let format = match flags.output.output {
        Some(Form::Json) => Some("json"),
        _ => flags.output.format.as_deref(),
    };
    let template = format.map(Template::parse).transpose()?;
    let now_ms = events::now_ms();
    let since_ms = flags.since.map_or(now_ms, |since| since.at_ms(now_ms));
    let until_ms = flags.until.map(|until| until.at_ms(now_ms));
    let show = |event: &Event| {
        if event.at_ms < since_ms || until_ms.is_some_and(|until| event.at_ms > until) {
            return;
        }
        match &template {
            None => println!("{}", line(event)),
            Some(template) => {
                let value = serde_json::to_value(event).unwrap_or_default();
                template
                    .lines(&[value])
                    .iter()
                    .for_each(|line| println!("{line}"));
            }
        }
    };
    let former = fs::read_to_string(events::former_file()).unwrap_or_default();
    former
        .lines()
        .filter_map(read)
        .for_each(|event| show(&event));
    let mut follower = Follower::of(events::file());
    loop {
        follower.new_events().iter().for_each(show);
        if until_ms.is_some_and(|until| events::now_ms() >= until) {
            return Ok(0);
        }
        thread::sleep(POLL);
    }
}

/// Reads a file as it grows, and goes over to the one that takes its place.
struct Follower {
    path: PathBuf,
    reader: Option<BufReader<File>>,
}

impl Follower {
    /// The file need not be there yet.
    fn of(path: PathBuf) -> Self {
        Self { path, reader: None }
    }

    /// What was written since the last call.
    fn new_events(&mut self) -> Vec<Event> {
        // Looked at first: nobody opens a file to write that no longer has its name.
        let next = self.next_file();
        let mut events: Vec<Event> = self.reader.iter_mut().flat_map(read_on).collect();
        if let Some(file) = next {
            let reader = self.reader.insert(BufReader::new(file));
            events.extend(read_on(reader));
        }
        events
    }

    /// The file of that name, if it is another one than that which is read.
    fn next_file(&self) -> Option<File> {
        let identity = |file: &File| {
            let file = file.metadata().ok()?;
            Some((file.dev(), file.ino()))
        };
        let file = File::open(&self.path).ok()?;
        let former = self
            .reader
            .as_ref()
            .map(|reader| identity(reader.get_ref()));
        (former != Some(identity(&file))).then_some(file)
    }
}

/// The events that have come to that file since the last call.
fn read_on(reader: &mut BufReader<File>) -> Vec<Event> {
    let mut events = Vec::new();
    let mut line = String::new();
    // Lines are written whole.
    while reader.read_line(&mut line).is_ok_and(|len| len > 0) {
        events.extend(read(&line));
        line.clear();
    }
    events
}

fn read(line: &str) -> Option<Event> {
    serde_json::from_str(line).ok()
}

fn line(event: &Event) -> String {
    let status = event
        .exit_code
        .map(|status| format!(" (exit code {status})"));
    format!(
        "{} {} {}{}",
        timestamp(event.at_ms),
        event.action,
        event.name,
        status.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_that_takes_the_place_of_a_large_one_is_read_on() {
        let path = std::env::temp_dir().join(format!("sietch-events-{}", std::process::id()));
        let former = path.with_extension("1");
        let add = |name: &str| {
            let mut file = File::options()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap();
            let event = json!({"at_ms": 1, "name": name, "action": "start"});
            writeln!(file, "{event}").unwrap();
        };
        let mut follower = Follower::of(path.clone());
        let mut told = || {
            let events = follower.new_events().into_iter();
            events.map(|event| event.name).collect::<Vec<_>>()
        };
        assert!(told().is_empty());
        add("a");
        assert_eq!(told(), ["a"]);
        add("b");
        fs::rename(&path, &former).unwrap();
        add("c");
        assert_eq!(told(), ["b", "c"]);
        add("d");
        assert_eq!(told(), ["d"]);
        fs::remove_file(&path).unwrap();
        fs::remove_file(former).unwrap();
    }
}
