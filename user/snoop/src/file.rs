//! Files of packets, as `core/capture` writes them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use capture::pcapng::{Block, Interface, Packet, Statistics};

use crate::Seen;
use crate::args::Args;
use crate::source::{Missed, Source};

/// Room for what a block says besides a packet's bytes: an expression may be long.
const FIELDS_BYTES_MAX: usize = 64 << 10;

/// A file under way.
pub struct CaptureWriter {
    file: BufWriter<File>,
    block: Vec<u8>,
}

impl CaptureWriter {
    /// Starts a file for packets of `source`.
    pub fn create(path: &Path, source: &Source, args: &Args) -> Result<Self, String> {
        let told = |error: io::Error| format!("{}: {error}", path.display());
        let mut writer = Self {
            file: BufWriter::new(File::create(path).map_err(told)?),
            block: vec![0; args.snaplen as usize + FIELDS_BYTES_MAX],
        };
        let application = "snoop";
        writer
            .write(&Block::Section { application })
            .map_err(told)?;
        let filter = args.filter();
        let interface = Interface {
            link_type: u16::try_from(source.link_type()).unwrap_or(u16::MAX),
            keep_max: args.snaplen,
            name: source.name.as_deref(),
            filter: (!filter.is_empty()).then_some(&filter),
        };
        writer.write(&Block::Interface(interface)).map_err(told)?;
        Ok(writer)
    }

    /// Adds a packet.
    pub fn keep(&mut self, seen: &Seen<'_>) -> io::Result<()> {
        self.write(&Block::Packet(Packet {
            interface: 0,
            time: seen.time.into(),
            len: seen.len,
            parts: &[seen.bytes],
            direction: None,
            lost: None,
            comment: None,
        }))
    }

    /// Ends the file, with what is missing in it.
    pub fn finish(mut self, missed: Option<Missed>) -> io::Result<()> {
        if let Some(missed) = missed {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO);
            self.write(&Block::Statistics(Statistics {
                interface: 0,
                time: now.into(),
                received: missed.received,
                dropped: missed.dropped,
            }))?;
        }
        self.file.flush()
    }

    fn write(&mut self, block: &Block<'_>) -> io::Result<()> {
        // A file's packets may be longer than what is kept of an interface's.
        loop {
            match block.emit(&mut self.block) {
                Ok(len) => return self.file.write_all(&self.block[..len]),
                Err(_) => self.block.resize(self.block.len() * 2, 0),
            }
        }
    }
}
