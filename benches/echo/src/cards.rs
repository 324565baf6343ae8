//! Redis behind each network card: instructions of the whole guest for a request.

use std::net::Ipv4Addr;
use std::process::Command;

use bench_pair::counter::{self, Counts};
use bench_pair::{Guest, System};
use qemu::namespace::MACHINE;

use crate::classes::Rules;
use crate::echo::{Functions, RULES_OF_SIETCH, by_function};
use bench_pair::names::Names;

/// The cards, as `sietch run --nic` names them; the first is what the others are compared with.
pub const CARDS: [&str; 3] = ["virtio", "e1000", "igb"];
/// What is asked of Redis.
pub const COMMANDS: [&str; 2] = ["SET", "GET"];

/// Redis.
pub const PORT: u16 = 6379;
/// The server and its arguments.
pub const SERVER: [&str; 5] = ["redis-server", "--protected-mode", "no", "--save", ""];
/// Requests of a measurement.
pub const REQUESTS: u32 = 20_000;
/// Requests that make the guest and its translation warm.
const WARM_UP_REQUESTS: u32 = 3_000;

/// One card.
pub struct Card {
    /// Its name.
    pub name: &'static str,
    /// Instructions per request, in the order of [`COMMANDS`].
    pub per_request: Vec<f64>,
}

/// Counts behind each card.
pub fn count() -> Result<Vec<Card>, String> {
    CARDS.iter().map(|name| behind(name)).collect()
}

/// What each command costs behind the first card, function by function.
pub fn functions() -> Result<Vec<(&'static str, Functions)>, String> {
    let guest = boot(CARDS[0])?;
    let names = Names::of_sietch(guest.kernel())?;
    let rules = Rules::read(RULES_OF_SIETCH)?;
    let functions = COMMANDS.into_iter().map(|command| {
        let counts = under_load(MACHINE, command)?;
        Ok((command, by_function(&counts, &names, &rules, REQUESTS)))
    });
    functions.collect()
}

fn behind(name: &'static str) -> Result<Card, String> {
    let _guest = boot(name)?;
    let per_request = COMMANDS
        .iter()
        .map(|command| Ok(under_load(MACHINE, command)?.total() as f64 / f64::from(REQUESTS)));
    Ok(Card {
        name,
        per_request: per_request.collect::<Result<_, String>>()?,
    })
}

fn boot(name: &str) -> Result<Guest, String> {
    eprintln!("Redis behind {name}");
    let args = [&["-m", "512M", "--nic", name], &SERVER[..]].concat();
    let mut guest = counter::boot(System::Sietch, &args)?;
    guest.wait_for_answer(PORT, b"PING\r\n")?;
    Ok(guest)
}

/// What all requests of a command to an address of the guest cost together.
pub fn under_load(host: Ipv4Addr, command: &str) -> Result<Counts, String> {
    load(host, command, WARM_UP_REQUESTS)?;
    let before = counter::read()?;
    load(host, command, REQUESTS)?;
    Ok(counter::read()?.since(&before))
}

fn load(host: Ipv4Addr, command: &str, requests: u32) -> Result<(), String> {
    let host = host.to_string();
    let (command, requests) = (command.to_lowercase(), requests.to_string());
    let output = Command::new("timeout")
        .args(["200", "redis-benchmark", "--csv", "-c", "50", "-h", &host])
        .args(["-t", &command, "-n", &requests])
        .output()
        .map_err(|error| format!("timeout: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "redis-benchmark: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
