//! What the device says of itself (section 5.2.4).

use block::{Bulk, Cache, Limits};
use hal::Mmio;
use virtio::{Error, Features, Transport};

bitflags::bitflags! {
    /// Features of disks (section 5.2.3).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct BlkFeatures: u64 {
        /// Pieces of memory have a largest size.
        const SIZE_MAX = 1 << 1;
        /// Commands have a largest number of them.
        const SEG_MAX = 1 << 2;
        /// Nothing can be changed.
        const RO = 1 << 5;
        /// Blocks have another size than 512 bytes.
        const BLK_SIZE = 1 << 6;
        /// There is a cache, and a command that empties it.
        const FLUSH = 1 << 9;
        /// It says how the medium is laid out.
        const TOPOLOGY = 1 << 10;
        /// The cache can be turned off.
        const CONFIG_WCE = 1 << 11;
        /// Several queues.
        const MQ = 1 << 12;
        /// Discards.
        const DISCARD = 1 << 13;
        /// Zeroes without memory full of them.
        const WRITE_ZEROES = 1 << 14;
    }
}

/// What we can make use of.
pub(crate) const WANTED: u64 =
    BlkFeatures::all().bits() | Features::EVENT_IDX.bits() | Features::INDIRECT_DESC.bits();

/// Offsets.
const CAPACITY: usize = 0;
const SIZE_MAX: usize = 8;
const SEG_MAX: usize = 12;
const BLK_SIZE: usize = 20;
const PHYSICAL_EXPONENT: usize = 24;
const ALIGNMENT_OFFSET: usize = 25;
const OPT_IO_SIZE: usize = 28;
const WRITEBACK: usize = 32;
const NUM_QUEUES: usize = 34;
const MAX_DISCARD_SECTORS: usize = 36;
const DISCARD_ALIGNMENT: usize = 44;
const MAX_WRITE_ZEROES_SECTORS: usize = 48;

/// Pieces of memory in a command, if the device leaves it to us.
const SEGMENTS_MAX: u16 = 30;
/// Bytes of a command: more than which no device gains by.
const COMMAND_BYTES_MAX: u32 = 1 << 20;

/// The configuration of one device.
pub(crate) struct Config<'a> {
    registers: &'a Mmio,
    agreed: BlkFeatures,
    has_tables: bool,
}

impl<'a> Config<'a> {
    pub(crate) fn new(transport: &'a Transport, agreed: u64) -> Self {
        Self {
            registers: transport.config(),
            agreed: BlkFeatures::from_bits_truncate(agreed),
            has_tables: agreed & Features::INDIRECT_DESC.bits() != 0,
        }
    }

    /// A field, which a device that is too short for it does not have.
    fn read32(&self, at: usize) -> u32 {
        let field = self.registers.window(at, 4);
        field.map_or(0, |field| field.read32(0))
    }

    fn read16(&self, at: usize) -> u16 {
        let field = self.registers.window(at, 2);
        field.map_or(0, |field| field.read16(0))
    }

    fn read8(&self, at: usize) -> u8 {
        let field = self.registers.window(at, 1);
        field.map_or(0, |field| field.read8(0))
    }

    /// The size in sectors, read until two looks agree: it may be changing.
    fn sectors(&self) -> u64 {
        let read = || {
            let high = u64::from(self.read32(CAPACITY + 4));
            high << 32 | u64::from(self.read32(CAPACITY))
        };
        let mut before = read();
        for _ in 0..4 {
            let now = read();
            if now == before {
                break;
            }
            before = now;
        }
        before
    }

    /// How many queues it has.
    pub(crate) fn queues(&self) -> u16 {
        match self.agreed.contains(BlkFeatures::MQ) {
            true => self.read16(NUM_QUEUES).max(1),
            false => 1,
        }
    }

    fn when<T>(&self, feature: BlkFeatures, value: impl FnOnce() -> T) -> Option<T> {
        self.agreed.contains(feature).then(value)
    }

    fn cache(&self) -> Cache {
        let is_off = self.agreed.contains(BlkFeatures::CONFIG_WCE) && self.read8(WRITEBACK) == 0;
        match self.agreed.contains(BlkFeatures::FLUSH) && !is_off {
            true => Cache::WriteBack { forces: false },
            false => Cache::WriteThrough,
        }
    }

    /// Its shape, where a queue has room for `parts` descriptors of a command.
    pub(crate) fn limits(&self, parts: u16) -> Result<Limits, Error> {
        let block = self.when(BlkFeatures::BLK_SIZE, || self.read32(BLK_SIZE));
        let block_bytes = block.unwrap_or(512);
        let exponent = self.when(BlkFeatures::TOPOLOGY, || self.read8(PHYSICAL_EXPONENT));
        let shift = u32::from(exponent.unwrap_or(0).min(16));
        let blocks = |blocks: Option<u32>| blocks.unwrap_or(0).saturating_mul(block_bytes);
        let segments = self.when(BlkFeatures::SEG_MAX, || self.read32(SEG_MAX));
        // Without tables a device that says nothing takes one piece.
        let unsaid = if self.has_tables {
            u32::from(SEGMENTS_MAX)
        } else {
            1
        };
        let segments = segments.unwrap_or(unsaid).clamp(1, SEGMENTS_MAX.into()) as u16;
        let bulk = |at: usize, granularity: u32| Bulk {
            sectors_max: self.read32(at),
            granularity,
        };
        let limits = Limits {
            block_bytes,
            physical_bytes: block_bytes.saturating_mul(1 << shift),
            alignment_offset: blocks(self.when(BlkFeatures::TOPOLOGY, || {
                self.read8(ALIGNMENT_OFFSET).into()
            })),
            optimal_bytes: blocks(self.when(BlkFeatures::TOPOLOGY, || self.read32(OPT_IO_SIZE))),
            segments_max: segments.min(parts.saturating_sub(2)),
            segment_bytes_max: self
                .when(BlkFeatures::SIZE_MAX, || self.read32(SIZE_MAX))
                .map_or(COMMAND_BYTES_MAX, |bytes| bytes.min(COMMAND_BYTES_MAX)),
            command_bytes_max: COMMAND_BYTES_MAX,
            is_read_only: self.agreed.contains(BlkFeatures::RO),
            cache: self.cache(),
            discard: self.when(BlkFeatures::DISCARD, || {
                bulk(MAX_DISCARD_SECTORS, self.read32(DISCARD_ALIGNMENT))
            }),
            zeroes: self.when(BlkFeatures::WRITE_ZEROES, || {
                bulk(MAX_WRITE_ZEROES_SECTORS, 1)
            }),
            ..Limits::plain(self.sectors())
        };
        limits.checked().ok_or(Error::CommandRefused)
    }
}

/// The most pieces of memory, and header and last byte beside them.
pub(crate) const PARTS_MAX: u16 = SEGMENTS_MAX + 2;
