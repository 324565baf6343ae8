//! The kinds of blocks.

use base::Duration;

use crate::bytes::Fields;

/// The buffer is too small for the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// A link that packets were captured on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface<'a> {
    /// `LINKTYPE_*`; Ethernet is 1.
    pub link_type: u16,
    /// The most bytes that are kept of a packet; zero for all.
    pub keep_max: u32,
    /// The link's name.
    pub name: Option<&'a str>,
    /// The filter, as the user wrote it.
    pub filter: Option<&'a str>,
}

/// Which way a packet went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// It came in.
    In = 1,
    /// It went out.
    Out = 2,
}

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The interface's place among those before it in the file.
    pub interface: u32,
    /// Since 1970.
    pub time: Duration,
    /// Bytes that it had.
    pub len: u32,
    /// Bytes that were kept, in pieces.
    pub parts: &'a [&'a [u8]],
    /// Which way it went.
    pub direction: Option<Direction>,
    /// Packets lost between the one before and this one.
    pub lost: Option<u64>,
    /// A remark, such as why it was dropped.
    pub comment: Option<&'a str>,
}

/// What an interface counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// The interface's place in the file.
    pub interface: u32,
    /// Since 1970.
    pub time: Duration,
    /// Packets that came.
    pub received: u64,
    /// Packets that the sniffer was too slow for.
    pub dropped: u64,
}

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block<'a> {
    /// The start of a file.
    Section {
        /// The program that writes it.
        application: &'a str,
    },
    /// A link.
    Interface(Interface<'a>),
    /// A packet.
    Packet(Packet<'a>),
    /// Counters.
    Statistics(Statistics),
}

impl Block<'_> {
    /// Writes the block to the start of `to`; returns its bytes.
    pub fn emit(&self, to: &mut [u8]) -> Result<usize, NoRoom> {
        let mut fields = Fields::new(to);
        fields.u32(self.kind()).u32(0);
        match self {
            Self::Section { application } => section(&mut fields, application),
            Self::Interface(interface) => interface.emit(&mut fields),
            Self::Packet(packet) => packet.emit(&mut fields),
            Self::Statistics(statistics) => statistics.emit(&mut fields),
        }
        let len = u32::try_from(fields.len() + 4).map_err(|_| NoRoom)?;
        fields.u32(len).patch(4, len).finish().ok_or(NoRoom)
    }

    fn kind(&self) -> u32 {
        match self {
            Self::Section { .. } => 0x0a0d_0d0a,
            Self::Interface(_) => 1,
            Self::Packet(_) => 6,
            Self::Statistics(_) => 5,
        }
    }
}

/// Byte order, version 1.0, a length that is not known yet.
fn section(to: &mut Fields, application: &str) {
    to.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
    to.option(4, application.as_bytes()).end_of_options();
}

impl Interface<'_> {
    fn emit(&self, to: &mut Fields) {
        to.u16(self.link_type).u16(0).u32(self.keep_max);
        to.optional_text(2, self.name);
        // Times have nine decimals.
        to.option(9, &[9]);
        if let Some(filter) = self.filter {
            // A byte says that the filter is text; then the text.
            let len = filter.len().min(usize::from(u16::MAX) - 1);
            to.u16(11).u16(len as u16 + 1);
            to.bytes(&[0]).bytes(&filter.as_bytes()[..len]).pad();
        }
        to.end_of_options();
    }
}

impl Packet<'_> {
    fn emit(&self, to: &mut Fields) {
        let kept = self.parts.iter().map(|part| part.len()).sum::<usize>();
        to.u32(self.interface);
        time(to, self.time);
        to.u32(u32::try_from(kept).unwrap_or(u32::MAX));
        to.u32(self.len);
        for part in self.parts {
            to.bytes(part);
        }
        to.pad().optional_text(1, self.comment);
        if let Some(direction) = self.direction {
            to.option(2, &(direction as u32).to_le_bytes());
        }
        if let Some(lost) = self.lost {
            to.option(4, &lost.to_le_bytes());
        }
        to.end_of_options();
    }
}

impl Statistics {
    fn emit(&self, to: &mut Fields) {
        to.u32(self.interface);
        time(to, self.time);
        to.option(4, &self.received.to_le_bytes());
        to.option(5, &self.dropped.to_le_bytes());
        to.end_of_options();
    }
}

/// Nanoseconds since 1970 (until 2554), the upper half first.
fn time(to: &mut Fields, time: Duration) {
    let nanos = time.as_nanos();
    to.u32((nanos >> 32) as u32).u32(nanos as u32);
}
