//! Programs that own their network (`docs/bypass.md`), beside sockets of both systems.
//!
//! `bench-network --own` measures what `docs/bench-bypass-network.md` shows; the words behind it name
//! parts of that. Rounds alternate between the networks, so that a busy host disturbs all alike.

mod cpus;
mod echoes;
mod idle;
mod instructions;
mod limit;
mod loads;
mod neighbours;
mod network;
mod page;
mod programs;
mod servers;
mod table;
mod whose;

use network::Network;
use table::Table;

/// What can be measured by itself.
pub const PARTS: [&str; 7] = [
    "servers",
    "connections",
    "instructions",
    "cpus",
    "idle",
    "neighbours",
    "limit",
];

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Rounds of each part.
    pub rounds: u32,
    /// A sixth of each, to see whether it works.
    pub quick: bool,
}

const QUICK_DIVISOR: u32 = 6;

/// Measures some parts, all if none is named; writes their sections of the page if they were measured in full length.
pub fn measure(parts: &[String], amount: Amount) -> Result<(), String> {
    let is_wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    let divisor = if amount.quick { QUICK_DIVISOR } else { 1 };
    let mut tables: [Table; PARTS.len()] = Default::default();
    for round in 1..=amount.rounds {
        for (part, table) in PARTS.into_iter().zip(&mut tables) {
            if is_wanted(part) {
                eprintln!("round {round} of {}: {part}", amount.rounds);
                part_of(part, divisor, table);
            }
        }
    }
    let sections = page::sections(&tables, amount.rounds);
    sections.iter().for_each(|(_, text)| println!("{text}"));
    match amount.quick {
        true => Ok(()),
        false => page::write(&sections),
    }
}

/// One round of a part. What fails lacks this round.
fn part_of(part: &str, divisor: u32, table: &mut Table) {
    let told = |result: Result<(), String>| {
        if let Err(why) = result {
            eprintln!("  failed: {why}");
        }
    };
    let with_links = [Network::Vnic, Network::Function];
    match part {
        "servers" => {
            for server in servers::ALL {
                for network in Network::ALL {
                    eprintln!(" {}", network.name());
                    told(server(network, divisor, table));
                }
            }
        }
        "connections" => {
            for network in Network::ALL {
                eprintln!(" {}", network.name());
                told(servers::connections(network, divisor, table));
            }
        }
        "instructions" => {
            for network in Network::ALL {
                eprintln!(" {}", network.name());
                instructions::measure(network, divisor, table);
            }
        }
        "cpus" => cpus::measure(divisor, table),
        "idle" => {
            for network in &Network::ALL[1..] {
                let network = *network;
                eprintln!(" {}", network.name());
                told(idle::measure(network, divisor, table));
            }
        }
        "neighbours" => {
            for network in with_links {
                eprintln!(" {}", network.name());
                told(neighbours::measure(network, divisor, table));
            }
        }
        _ => told(limit::measure(divisor, table)),
    }
}
