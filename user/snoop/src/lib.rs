//! Shows packets as they pass an interface or lie in a file, and keeps them in a file that
//! Wireshark reads.
//!
//! ```text
//! interface or file ─ source ─▶ dissect ─▶ show ─▶ lines
//!                          └──▶ file (pcapng)
//! ```
//!
//! Packets come by libpcap, which also compiles filters: its language is the one that
//! everybody knows. What packets mean is read here, leniently: bytes that are no packet are
//! shown as such. Options and lines are those of illumos' snoop(1M), as far as they exist.
//! Not here: names of hosts and services, application protocols.

#![forbid(unsafe_code)]

mod args;
mod bytes;
mod dissection;
mod file;
mod hexadecimal;
mod layer;
mod link;
mod network;
mod show;
mod source;
mod transport;

pub use args::{Args, Times};
pub use dissection::Dissection;
pub use link::dissect;
pub use show::Printer;

use std::io::{self, Write};

use file::CaptureWriter;
use source::{Next, Source};

/// A packet and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// When it passed, since 1970.
    pub time: std::time::Duration,
    /// Bytes that it had.
    pub len: u32,
    /// Bytes that were kept, link header first.
    pub bytes: &'a [u8],
}

/// Does what `args` ask for. An error is a sentence.
pub fn run(args: &Args) -> Result<(), String> {
    let mut source = Source::open(args)?;
    let mut writer = match &args.output {
        Some(path) => Some(CaptureWriter::create(path, &source, args)?),
        None => None,
    };
    let mut out = io::stdout().lock();
    let mut printer = Printer::new(args);
    let link_type = source.link_type();
    let mut count = 0;
    while args.count.is_none_or(|most| count < most) {
        let seen = match source.next(count + 1)? {
            Next::Packet(seen) => seen,
            Next::Quiet => continue,
            Next::End => break,
        };
        count += 1;
        let told = match &mut writer {
            Some(writer) => writer.keep(&seen),
            None => out.write_all(printer.show(link_type, &seen).as_bytes()),
        };
        told.and_then(|()| out.flush())
            .map_err(|error| format!("it cannot be written: {error}"))?;
    }
    finish(&mut source, writer, count)
}

/// Tells what was missed; of an interface only, a file misses nothing.
fn finish(source: &mut Source, writer: Option<CaptureWriter>, count: u64) -> Result<(), String> {
    let missed = source.statistics()?;
    if let Some(writer) = writer {
        let finished = writer.finish(missed);
        finished.map_err(|error| format!("the file cannot be finished: {error}"))?;
    }
    if let Some(missed) = missed {
        eprintln!(
            "{count} packets shown or kept, {} passed the filter, {} were dropped",
            missed.received, missed.dropped
        );
    }
    Ok(())
}
