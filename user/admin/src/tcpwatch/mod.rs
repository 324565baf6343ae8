//! `tcpretrans`, `tcptimewait`, `tcpdrop`: what goes wrong with TCP, while it happens.
//!
//! The kernel remembers its last events in `/proc/net/tcp_events`, whoever looks. The tools read
//! them again and again and print those that are new, of one kind each. What was overwritten
//! between two readings is counted by the gap in the kind's serials, and told.

mod event;

use clap::{Args, Parser};

use crate::World;
use event::{Event, parse};

/// Where the events are.
const PATH: &str = "/proc/net/tcp_events";

#[derive(Args)]
struct Flags {
    /// Begin with what the kernel remembers, not with what happens from now on
    #[arg(short = 'a', long = "all")]
    has_past: bool,
    /// Seconds between looks
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    interval: u32,
    /// End after so many looks
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

/// Shows TCP segments that are sent again, and why
#[derive(Parser)]
#[command(name = "tcpretrans")]
struct Retransmits {
    #[command(flatten)]
    flags: Flags,
}

/// Shows TCP segments that come for connections that are over
#[derive(Parser)]
#[command(name = "tcptimewait")]
struct TimeWaits {
    #[command(flatten)]
    flags: Flags,
}

/// Shows TCP segments that are dropped, and why
#[derive(Parser)]
#[command(name = "tcpdrop")]
struct Drops {
    #[command(flatten)]
    flags: Flags,
}

/// Runs `tcpretrans`; returns its exit code.
pub fn retransmits(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |tool: Retransmits, world| {
        watch(&tool.flags, world, "retransmit")
    })
}

/// Runs `tcptimewait`; returns its exit code.
pub fn time_waits(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |tool: TimeWaits, world| {
        watch(&tool.flags, world, "time_wait")
    })
}

/// Runs `tcpdrop`; returns its exit code.
pub fn drops(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |tool: Drops, world| {
        watch(&tool.flags, world, "drop")
    })
}

fn watch(flags: &Flags, world: &mut World<'_>, kind: &str) -> Result<(), String> {
    let mut next = match flags.has_past {
        true => None,
        false => Some(end_of(&look(world, kind)?)),
    };
    let mut goes_on = world.console.print(event::HEADS);
    let mut looks = 0;
    while goes_on {
        let events = look(world, kind)?;
        goes_on = world.console.print(&text(&events, next));
        next = Some(end_of(&events).max(next.unwrap_or(0)));
        looks += 1;
        goes_on = goes_on && flags.count != Some(looks) && world.console.wait(flags.interval);
    }
    Ok(())
}

/// The events of a kind.
fn look(world: &mut World<'_>, kind: &str) -> Result<Vec<Event>, String> {
    let text = world.files.read(PATH)?;
    let mut events = parse(&text).ok_or_else(|| format!("{PATH} makes no sense"))?;
    events.retain(|event| event.kind == kind);
    Ok(events)
}

/// The serial that comes after these events.
fn end_of(events: &[Event]) -> u64 {
    events.last().map_or(0, |event| event.serial + 1)
}

/// Those from the serial `next` on, and how many were missed.
fn text(events: &[Event], next: Option<u64>) -> String {
    let first = events.first().map_or(0, |event| event.serial);
    let missed = next.map_or(0, |next| first.saturating_sub(next));
    let mut text = match missed {
        0 => String::new(),
        missed => format!("({missed} events were missed)\n"),
    };
    let new = events
        .iter()
        .filter(|event| event.serial >= next.unwrap_or(0));
    text.extend(new.map(Event::line));
    text
}
