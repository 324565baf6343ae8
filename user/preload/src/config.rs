//! What the environment asks for.

use std::env;
use std::net::Ipv4Addr;
use std::sync::OnceLock;

use sietch_io::{QUEUES, QueueConfig};

/// The link, without which nothing is done.
const LINK: &str = "SIETCH_LINK";
/// The program's address on it, as `10.0.2.61/24`.
const ADDRESS: &str = "SIETCH_ADDRESS";
/// The way to other networks.
const GATEWAY: &str = "SIETCH_GATEWAY";

/// Frames that wait on each side: an answer of a socket's whole window fits.
const RING_ENTRIES: u32 = 2048;
/// Packet memory of 32 MiB; children have a quarter of it.
const CHUNKS: usize = 16 * 1024;

/// What it asks for; `None` without a link, and if it cannot be understood, which is said once.
pub fn get() -> Option<&'static QueueConfig> {
    static CONFIG: OnceLock<Option<QueueConfig>> = OnceLock::new();
    CONFIG.get_or_init(read).as_ref()
}

/// For a child that has a further queue of the same link, whichever is free.
pub fn further(config: &QueueConfig) -> QueueConfig {
    QueueConfig {
        queues: QUEUES,
        chunks: CHUNKS / 4,
        ..config.clone()
    }
}

fn read() -> Option<QueueConfig> {
    let link = env::var(LINK).ok().filter(|link| !link.is_empty())?;
    match parse(&link) {
        Ok(config) => Some(config),
        Err(why) => {
            eprintln!("libsietch: {why}; the kernel's sockets are used.");
            None
        }
    }
}

fn parse(link: &str) -> Result<QueueConfig, String> {
    let address = env::var(ADDRESS).map_err(|_| format!("{ADDRESS} is not set"))?;
    let wrong = |error| format!("{ADDRESS}={address}: {error}");
    let mut config = QueueConfig::new(link, address.parse().map_err(wrong)?);
    config.ring_entries = RING_ENTRIES;
    config.chunks = CHUNKS;
    if let Ok(gateway) = env::var(GATEWAY) {
        let parsed: Result<Ipv4Addr, _> = gateway.parse();
        config.gateway = Some(parsed.map_err(|error| format!("{GATEWAY}={gateway}: {error}"))?);
    }
    Ok(config)
}
