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

static CONFIG: OnceLock<Option<QueueConfig>> = OnceLock::new();

/// What it asks for; `None` without a link, and if it cannot be understood, which is said once.
pub fn get() -> Option<&'static QueueConfig> {
    CONFIG.get_or_init(read).as_ref()
}

/// For a child that has a further queue of the same link, whichever is free. The first one stays the parent's, which may
/// have left it (`exchange`) and come back. It gets no new peers before it has listeners.
pub fn further(config: &QueueConfig) -> QueueConfig {
    QueueConfig {
        queues: QUEUES.start() + 1..=*QUEUES.end(),
        takes_new_flows: false,
        chunks: CHUNKS / 4,
        ..config.clone()
    }
}

/// For a newer library: it needs a queue of its own while the older one has the program's, and keeps that one's share
/// of ports.
pub fn beside(config: &QueueConfig) -> QueueConfig {
    QueueConfig {
        queues: QUEUES,
        share: Some(*config.queues.start()),
        ..config.clone()
    }
}

/// In a newer library: what the older one has. False if something else was asked for already.
pub fn adopt(config: QueueConfig) -> bool {
    CONFIG.get_or_init(|| Some(config.clone())).as_ref() == Some(&config)
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

/// With this library's sizes.
pub fn sized(config: QueueConfig) -> QueueConfig {
    QueueConfig {
        ring_entries: RING_ENTRIES,
        chunks: CHUNKS,
        ..config
    }
}

fn parse(link: &str) -> Result<QueueConfig, String> {
    let address = env::var(ADDRESS).map_err(|_| format!("{ADDRESS} is not set"))?;
    let wrong = |error| format!("{ADDRESS}={address}: {error}");
    let mut config = sized(QueueConfig::new(link, address.parse().map_err(wrong)?));
    if let Ok(gateway) = env::var(GATEWAY) {
        let parsed: Result<Ipv4Addr, _> = gateway.parse();
        config.gateway = Some(parsed.map_err(|error| format!("{GATEWAY}={gateway}: {error}"))?);
    }
    Ok(config)
}
