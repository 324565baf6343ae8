//! `struct sietch_config`.

use std::ffi::c_char;
use std::net::Ipv4Addr;

use sietch_io::{Address, QueueConfig};

use crate::failure::Failure;
use crate::names::SLOTS_MAX;
use crate::pointers::text;

/// As the header has it.
#[repr(C)]
#[derive(Debug)]
pub struct Config {
    /// The link's name.
    pub link: *const c_char,
    /// The program's address with its network.
    pub address: *const c_char,
    /// The way to other networks, or NULL.
    pub gateway: *const c_char,
    /// Frames that wait each way.
    pub ring_entries: u32,
    /// Chunks of packet memory.
    pub chunks: u32,
    /// Sockets at most.
    pub sockets_max: u32,
    /// Zero.
    pub reserved: [u32; 5],
}

/// 2 GiB, half of what the kernel takes.
const CHUNKS_MAX: u32 = 1 << 20;

/// A configuration that cannot be, as a sentence.
pub type Refused = (Failure, String);

fn refused(why: impl Into<String>) -> Refused {
    (Failure::INVALID, why.into())
}

impl Config {
    /// What a queue is opened with.
    ///
    /// # Safety
    /// **Caller**: of the texts.
    pub unsafe fn read(&self) -> Result<QueueConfig, Refused> {
        // SAFETY: **Caller**.
        let word = |at| unsafe { text(at) }.map_err(|_| refused("a text that is no UTF-8"));
        let link = word(self.link)?.ok_or_else(|| refused("no link is named"))?;
        let address = word(self.address)?.ok_or_else(|| refused("no address is given"))?;
        let address: Address = address
            .parse()
            .map_err(|why| refused(format!("{address}: {why}")))?;
        let gateway = word(self.gateway)?.map(parse_gateway).transpose()?;
        let mut config = QueueConfig::new(link, address);
        config.gateway = gateway;
        self.read_sizes(&mut config)?;
        Ok(config)
    }

    fn read_sizes(&self, config: &mut QueueConfig) -> Result<(), Refused> {
        if self.reserved != [0; 5] {
            return Err(refused("a reserved field is not zero"));
        }
        match self.ring_entries {
            0 => {}
            entries if entries.is_power_of_two() => config.ring_entries = entries,
            entries => return Err(refused(format!("{entries} ring_entries: no power of two"))),
        }
        match self.chunks {
            0 => {}
            chunks if chunks % 2 == 0 && chunks <= CHUNKS_MAX => config.chunks = chunks as usize,
            chunks => return Err(refused(format!("{chunks} chunks: odd, or too many"))),
        }
        match self.sockets_max {
            0 => {}
            sockets if sockets <= SLOTS_MAX => config.sockets_max = sockets as usize,
            sockets => return Err(refused(format!("{sockets} sockets: too many"))),
        }
        Ok(())
    }
}

fn parse_gateway(text: &str) -> Result<Ipv4Addr, Refused> {
    text.parse()
        .map_err(|_| refused(format!("{text}: no IPv4 address")))
}
