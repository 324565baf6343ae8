//! `linkdrop`: frames that the link layer drops, while it happens; what `tcpdrop` is for TCP.
//!
//! The kernel remembers a few frames for each reason and ring, whoever looks. The tool reads
//! them again and again and prints those that are new, in the order of time; how many of a
//! reason came and went between two looks their numbers tell.

use std::collections::BTreeMap;

use clap::Parser;
use link::links::Class;
use linkctl::{Answer, DropRow, Request};

use crate::ask::{ask, links, nonsense};
use crate::{Kernel, World};

/// Shows frames that links drop, and why
#[derive(Parser)]
#[command(name = "linkdrop")]
struct Flags {
    /// Begin with what the kernel remembers, not with what happens from now on
    #[arg(short = 'a', long = "all")]
    has_past: bool,
    /// This link's frames only
    #[arg(short = 'l', value_name = "LINK")]
    link: Option<String>,
    /// Seconds between looks
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    interval: u32,
    /// End after so many looks
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

const HEADS: &str = "TIME           LINK       REASON       FRAMES BYTES PROTO    \
                     FROM                  TO\n";

/// Who counts: a port, a ring and a reason.
type Counter = (String, u16, String);
/// What a look finds.
type Events = Vec<(Counter, DropRow)>;

/// Runs `linkdrop`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flags: Flags, world| watch(&flags, world))
}

fn watch(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut seen = Seen::default();
    if !flags.has_past {
        seen.new_of(look(world.kernel)?);
    }
    let mut goes_on = world.console.print(HEADS);
    let mut looks = 0;
    while goes_on {
        let (mut events, missed) = seen.new_of(look(world.kernel)?);
        if let Some(link) = &flags.link {
            events.retain(|event| event.link.as_ref() == Some(link));
        }
        goes_on = world.console.print(&text(&events, missed));
        looks += 1;
        goes_on = goes_on && flags.count != Some(looks) && world.console.wait(flags.interval);
    }
    Ok(())
}

/// What all rings of all ports remember.
fn look(kernel: &mut dyn Kernel) -> Result<Events, String> {
    let mut all = Vec::new();
    for link in links(kernel)? {
        if !matches!(link.class, Class::Phys | Class::Etherstub) {
            continue;
        }
        let mut ring = Some(0);
        while let Some(number) = ring {
            let request = Request::Drops {
                link: link.name.clone(),
                ring: number,
            };
            let Answer::Drops { rows, next } = ask(kernel, &request)? else {
                return Err(nonsense());
            };
            let counted = |row: DropRow| ((link.name.clone(), number, row.reason.clone()), row);
            all.extend(rows.into_iter().map(counted));
            ring = next.filter(|next| *next > number);
        }
    }
    Ok(all)
}

/// What was seen before.
#[derive(Default)]
struct Seen {
    /// The number that comes next.
    next: BTreeMap<Counter, u64>,
    has_looked: bool,
}

impl Seen {
    /// What was not seen before, by time, and how many more there were since the first look.
    fn new_of(&mut self, events: Events) -> (Vec<DropRow>, u64) {
        let (mut new, mut missed) = (Vec::new(), 0);
        for (counter, event) in events {
            let first = if self.has_looked { 0 } else { event.serial };
            let next = self.next.entry(counter).or_insert(first);
            // A port that was used anew counts from zero again.
            if event.serial + MEMORY_MAX < *next {
                *next = event.serial;
            }
            if event.serial >= *next {
                missed += event.serial - *next;
                *next = event.serial + 1;
                new.push(event);
            }
        }
        self.has_looked = true;
        new.sort_by_key(|event| event.time_ns);
        (new, missed)
    }
}

/// Events of one reason that a ring remembers.
const MEMORY_MAX: u64 = link::lane::EVENTS_MAX as u64;

fn text(events: &[DropRow], missed: u64) -> String {
    let mut text = match missed {
        0 => String::new(),
        missed => format!("({missed} events were missed)\n"),
    };
    text.extend(events.iter().map(line));
    text
}

fn line(event: &DropRow) -> String {
    let (seconds, micros) = (
        event.time_ns / 1_000_000_000,
        event.time_ns / 1000 % 1_000_000,
    );
    let link = event.link.as_deref().unwrap_or("--");
    let (reason, frames, len) = (&event.reason, event.frames, event.len);
    let (protocol, from, to) = (protocol(event), &event.from, &event.to);
    let line = format!(
        "{seconds:7}.{micros:06} {link:<10} {reason:<12} {frames:<6} {len:<5} {protocol:<8} \
         {from:<21} {to}"
    );
    format!("{}\n", line.trim_end())
}

fn protocol(event: &DropRow) -> String {
    match (event.protocol, event.ether_type) {
        (Some(1), _) => "icmp".into(),
        (Some(6), _) => "tcp".into(),
        (Some(17), _) => "udp".into(),
        (Some(58), _) => "icmpv6".into(),
        (Some(other), _) => format!("ip-{other}"),
        (None, 0) => "--".into(),
        (None, 0x0806) => "arp".into(),
        (None, other) => format!("{other:#06x}"),
    }
}
