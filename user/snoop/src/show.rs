//! Packets as lines.

use std::time::Duration;

use crate::args::{Args, Times};
use crate::dissection::Dissection;
use crate::layer::Layer;
use crate::link::dissect;
use crate::{Seen, hexadecimal};

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Makes lines of packets, one after the other.
pub struct Printer<'a> {
    args: &'a Args,
    first: Option<Duration>,
    before: Option<Duration>,
}

impl<'a> Printer<'a> {
    /// One that has shown nothing yet.
    pub fn new(args: &'a Args) -> Self {
        Self {
            args,
            first: None,
            before: None,
        }
    }

    /// The lines of a packet.
    pub fn show(&mut self, link_type: i32, seen: &Seen<'_>) -> String {
        let read = dissect(link_type, seen);
        let time = self.time(seen.time);
        let mut text = if self.args.verbose {
            verbose(&read, seen, &time)
        } else {
            self.lines(&read, seen, &time)
        };
        if let Some(part) = self.args.dump {
            text += "\n";
            text += &hexadecimal::dump(seen.bytes, part);
            text += "\n";
        }
        text
    }

    fn time(&mut self, now: Duration) -> String {
        let first = *self.first.get_or_insert(now);
        let before = self.before.replace(now).unwrap_or(now);
        match self.args.times {
            // Clocks may be set back between two packets.
            Times::Delta => seconds(now.saturating_sub(before)),
            Times::Relative => seconds(now.saturating_sub(first)),
            Times::Absolute => time_of_day(now),
        }
    }

    /// A line for the innermost header, or one for each.
    fn lines(&self, read: &Dissection, seen: &Seen<'_>, time: &str) -> String {
        let shown = match (self.args.layers, read.layers.split_last()) {
            (true, _) => &read.layers[..],
            (false, Some((last, _))) => std::slice::from_ref(last),
            (false, None) => &[],
        };
        let size = match self.args.size {
            true => format!("length: {:>4}  ", seen.len),
            false => String::new(),
        };
        let Dissection {
            source,
            destination,
            ..
        } = read;
        let line = |layer: &Layer| {
            let Layer { name, summary, .. } = layer;
            let number = seen.number;
            format!(
                "{number:>3} {time:>9} {source:>12} -> {destination:<12} {size}{name} {summary}\n"
            )
        };
        shown.iter().map(line).collect()
    }
}

fn seconds(span: Duration) -> String {
    format!("{}.{:05}", span.as_secs(), span.subsec_micros() / 10)
}

fn time_of_day(since_1970: Duration) -> String {
    let second = since_1970.as_secs() % SECONDS_PER_DAY;
    let (hours, minutes, rest) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = since_1970.subsec_micros() / 10;
    format!("{hours}:{minutes:02}:{rest:02}.{fraction:05}")
}

/// All fields, a line each, under a heading for each header.
fn verbose(read: &Dissection, seen: &Seen<'_>, time: &str) -> String {
    let mut text = String::new();
    for (index, layer) in read.layers.iter().enumerate() {
        let name = format!("{}:", layer.name);
        let mut line = |what: &str| text += &format!("{name:<7} {what}\n");
        line(&format!("----- {} Header -----", layer.title));
        line("");
        if index == 0 {
            line(&format!("Packet {} arrived at {time}", seen.number));
        }
        if layer.fields.is_empty() {
            line(&layer.summary);
        }
        for (field, value) in &layer.fields {
            line(&format!("{field} = {value}"));
        }
        line("");
    }
    text
}
