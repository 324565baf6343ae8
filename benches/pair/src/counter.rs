//! A machine whose instructions are counted one by one, by a plugin of QEMU's translator.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::{Guest, OUTPUT, System};
use qemu::Machine;

const SOURCE: &str = "benches/echo/plugin/count.c";

/// How often each instruction was executed, by its address.
#[derive(Debug, Default)]
pub struct Counts(HashMap<u64, u64>);

impl Counts {
    /// What all of them were, without what they were `before`.
    pub fn since(mut self, before: &Self) -> Self {
        for (address, count) in &mut self.0 {
            *count -= before.0.get(address).copied().unwrap_or(0);
        }
        self
    }

    /// Addresses and counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(&address, &count)| (address, count))
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Pairs of words in the host's order, as the plugin writes them.
    fn of_words(bytes: &[u8]) -> Self {
        let word = |half: &[u8]| half.try_into().map_or(0, u64::from_ne_bytes);
        let pairs = bytes.chunks_exact(16);
        Self(
            pairs
                .map(|pair| (word(&pair[..8]), word(&pair[8..])))
                .collect(),
        )
    }
}

/// Boots a system so that its instructions are counted.
///
/// `mitigations=off` is what costs Linux least.
pub fn boot(system: System, args: &[&str]) -> Result<Guest, String> {
    let system = match system {
        System::Linux => System::Unmitigated,
        other => other,
    };
    boot_as_it_is(system, args)
}

/// The same, but [`System::Linux`] has its mitigations.
pub fn boot_as_it_is(system: System, args: &[&str]) -> Result<Guest, String> {
    let plugin = plugin()?;
    let option = format!("{plugin},counts={}", socket());
    system.boot_on(args, |machine: &mut Machine| {
        machine.plugin = Some(option);
        if system.is_linux() {
            machine.command_line += " nokaslr";
        }
    })
}

/// The counts up to now of the guest that runs.
pub fn read() -> Result<Counts, String> {
    let mut bytes = Vec::new();
    UnixStream::connect(socket())
        .and_then(|mut stream| stream.read_to_end(&mut bytes))
        .map_err(|error| format!("{}: {error}", socket()))?;
    Ok(Counts::of_words(&bytes))
}

fn socket() -> String {
    format!("{OUTPUT}/counts.sock")
}

fn plugin() -> Result<String, String> {
    let plugin = format!("{OUTPUT}/count.so");
    fs::create_dir_all(OUTPUT).map_err(|error| format!("{OUTPUT}: {error}"))?;
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-o", &plugin, SOURCE])
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(plugin),
        false => Err(format!(
            "{SOURCE} cannot be compiled: `make setup` installs the compiler."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_executed_before_does_not_count() {
        let counts = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            Counts::of_words(&bytes)
        };
        let more = counts(&[16, 7, 32, 5]).since(&counts(&[16, 4]));
        assert_eq!(more.total(), 8);
        assert!(more.iter().any(|pair| pair == (16, 3)));
    }
}
