//! `sietch events`: what happens to machines, from now on or since a time.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::thread;
use std::time::Duration;

use crate::events::{self, Event};
use crate::failure::Failure;
use crate::flags::{EventsFlags, timestamp};
use crate::format::Template;

const POLL: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn events(flags: &EventsFlags) -> Result<u8, Failure> {
    let template = flags.format.as_deref().map(Template::parse).transpose()?;
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
    let mut reader = None;
    loop {
        if reader.is_none() {
            reader = File::open(events::file()).ok().map(BufReader::new);
        }
        for event in reader.iter_mut().flat_map(new_events) {
            show(&event);
        }
        if until_ms.is_some_and(|until| events::now_ms() >= until) {
            return Ok(0);
        }
        thread::sleep(POLL);
    }
}

fn new_events(reader: &mut BufReader<File>) -> Vec<Event> {
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
