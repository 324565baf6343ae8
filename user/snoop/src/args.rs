//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Shows packets as they pass an interface or lie in a file.
#[derive(Parser, Clone, Default, Debug)]
#[command(name = "snoop")]
pub struct Args {
    /// The interface; without one the first that is not loopback
    #[arg(short, long, value_name = "INTERFACE", conflicts_with = "input")]
    pub device: Option<String>,
    /// Read packets from a pcap or pcapng file instead of an interface
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Keep packets in a pcapng file instead of showing them
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Stop after so many packets
    #[arg(short, long)]
    pub count: Option<u64>,
    /// Keep at most so many bytes of each packet
    #[arg(short, long, value_name = "BYTES", default_value_t = KEEP_ALL)]
    pub snaplen: u32,
    /// Only frames for this machine
    #[arg(short = 'P', long)]
    pub no_promiscuous: bool,
    /// All fields of all headers, a line each
    #[arg(short, long, conflicts_with = "layers")]
    pub verbose: bool,
    /// A line for each header of a packet, not only for the innermost
    #[arg(short = 'V', long)]
    pub layers: bool,
    /// Each packet's length in its line
    #[arg(short = 'S', long)]
    pub size: bool,
    /// What the time in a line is
    #[arg(short, long, value_enum, default_value_t)]
    pub times: Times,
    /// The bytes too, from an offset on, as many as a length says
    #[arg(short = 'x', long, value_name = "OFFSET[,LENGTH]", value_parser = parse_dump)]
    pub dump: Option<(usize, usize)>,
    /// Only packets that this expression describes (pcap-filter(7))
    #[arg(value_name = "EXPRESSION")]
    pub expression: Vec<String>,
}

/// Bytes beyond the longest packet.
pub const KEEP_ALL: u32 = 262_144;

/// What the time in a line is.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Times {
    /// Seconds since the packet before
    #[default]
    #[value(alias = "d")]
    Delta,
    /// Seconds since the first packet
    #[value(alias = "r")]
    Relative,
    /// The time of day, UTC
    #[value(alias = "a")]
    Absolute,
}

impl Args {
    /// The filter in one piece.
    pub fn filter(&self) -> String {
        self.expression.join(" ")
    }
}

fn parse_dump(text: &str) -> Result<(usize, usize), String> {
    let (offset, len) = text.split_once(',').unwrap_or((text, "65535"));
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("{text:?} is not a number of bytes"))
    };
    Ok((number(offset)?, number(len)?))
}
