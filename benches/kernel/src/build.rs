//! Builds the programs that measure, and prepares Linux as a guest.

use std::fs;
use std::process::Command;

/// Where built programs and the machine's files go.
pub const OUTPUT: &str = "build/bench-kernel";
const SOURCES: &str = "benches/kernel/programs";
/// The one source that is a program of its own.
const CHILD: &str = "nothing.c";

/// The built programs.
#[derive(Debug)]
pub struct Programs {
    /// Prints the figures; its argument is `child`.
    pub costs: String,
    /// Exits at once.
    pub child: String,
}

/// Compiles both, static, so that the image holds no library.
pub fn programs() -> Result<Programs, String> {
    fs::create_dir_all(OUTPUT).map_err(|error| format!("{OUTPUT}: {error}"))?;
    let listing = fs::read_dir(SOURCES).map_err(|error| format!("{SOURCES}: {error}"))?;
    let names = listing
        .flatten()
        .map(|entry| entry.path().display().to_string());
    let (child, costs): (Vec<String>, Vec<String>) = names
        .filter(|name| name.ends_with(".c"))
        .partition(|name| name.ends_with(CHILD));
    Ok(Programs {
        costs: compile("costs", &["-D_GNU_SOURCE", "-pthread"], &costs)?,
        child: compile("nothing", &["-nostdlib"], &child)?,
    })
}

fn compile(name: &str, flags: &[&str], sources: &[String]) -> Result<String, String> {
    let program = format!("{OUTPUT}/{name}");
    let built = Command::new("cc")
        .args(["-static", "-O2", "-Wall", "-o", &program])
        .args(flags)
        .args(sources)
        .status();
    match built.is_ok_and(|status| status.success()) {
        true => Ok(program),
        false => Err(format!(
            "{name} cannot be compiled: `make setup` installs the compiler."
        )),
    }
}

/// Debian's kernel, in `build/linux`.
pub fn linux() -> Result<(), String> {
    let prepared = Command::new("tools/linux-guest.sh").status();
    match prepared.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("Debian's Linux cannot be prepared as a guest: see above.".into()),
    }
}
