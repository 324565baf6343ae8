//! Datagrams of 64 bytes echoed, by each system, with one and with many under way.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::time::Duration;

use bench_pair::echo::{DATAGRAM_BYTES, Echo};
use bench_pair::{Guest, System, server};

use crate::classes::{Class, Rules, look_of};
use bench_pair::counter::{self, Counts};
use bench_pair::names::{self, KERNEL, Names};

/// Instructions per event by class and the function that decided it.
pub type Functions = HashMap<(Class, String), f64>;

/// Which class the functions of Linux 6.12 belong to.
pub const RULES_OF_LINUX: &str = include_str!("../classes/linux.txt");
/// Which class ours belong to.
pub const RULES_OF_SIETCH: &str = include_str!("../classes/sietch.txt");

/// Datagrams under way at a time.
pub const WINDOWS: [u32; 2] = [64, 1];
/// Echoes of a measurement; what the guest does now and then spreads over them.
pub const ECHOES: u32 = 20_000;

/// What was done: all but looks, which last as long as there is nothing to do.
pub fn work(functions: &Functions) -> f64 {
    functions.values().sum::<f64>() - looks(functions)
}

/// Looks for frames before waits.
pub fn looks(functions: &Functions) -> f64 {
    let all = functions.iter().filter(|((its, _), _)| *its == Class::Look);
    all.map(|(_, count)| count).sum()
}

/// The counts of one system with one window.
pub struct Echoes {
    /// Which system.
    pub system: System,
    /// Datagrams under way at a time.
    pub window: u32,
    /// Instructions per echo by class and the function that decided it.
    pub functions: Functions,
}

impl Echoes {
    /// Instructions per echo.
    pub fn total(&self) -> f64 {
        work(&self.functions)
    }
}

/// Counts the systems with each window.
pub fn count(systems: &[System]) -> Result<Vec<Echoes>, String> {
    let mut all = Vec::new();
    for &system in systems {
        let (echo, names) = boot(system, &server("udp_echo")?)?;
        let rules = rules_of(system)?;
        for window in WINDOWS {
            eprintln!("{}, window {window}", system.name());
            let counts = of_window(&echo, window)?;
            all.push(Echoes {
                system,
                window,
                functions: by_function(&counts, &names, &rules, ECHOES),
            });
        }
    }
    Ok(all)
}

/// Which class a system's functions belong to.
pub fn rules_of(system: System) -> Result<Rules, String> {
    Rules::read(match system {
        System::Linux | System::Unmitigated => RULES_OF_LINUX,
        System::Sietch => RULES_OF_SIETCH,
    })
}

/// What all echoes cost together.
pub fn of_window(echo: &Echo, window: u32) -> Result<Counts, String> {
    // The first datagrams fill caches and make the guest ready.
    exchange(&echo.socket, window, ECHOES / 10)?;
    let before = counter::read()?;
    exchange(&echo.socket, window, ECHOES)?;
    Ok(counter::read()?.since(&before))
}

/// Instructions of each function, spread over so many events.
pub fn by_function(counts: &Counts, names: &Names, rules: &Rules, events: u32) -> Functions {
    let mut functions = Functions::new();
    for (address, count) in counts.iter().filter(|&(_, count)| count > 0) {
        let names = names.at(address);
        let look = (address < KERNEL).then(|| look_of(&names)).flatten();
        let (class, name) = look.map_or_else(|| rules.class_of(&names), |name| (Class::Look, name));
        *functions.entry((class, name.to_string())).or_default() +=
            count as f64 / f64::from(events);
    }
    functions
}

/// The echo by a server, and the names of the kernel's functions. Linux sends them before it starts the
/// server: modules lie elsewhere at each boot.
pub fn boot(system: System, server: &str) -> Result<(Echo, Names), String> {
    let guest = |args: &[&str]| counter::boot(system, &[&["-m", "512M"], args].concat());
    match system {
        System::Sietch => {
            let guest = guest(&[server])?;
            let names = Names::of_sietch(guest.kernel())?;
            Ok((Echo::in_guest(guest)?, names))
        }
        System::Linux | System::Unmitigated => {
            let added = format!("{server}:/udp_echo");
            let script = format!(
                "busybox nc -l -p {} </proc/kallsyms; exec /udp_echo",
                names::PORT
            );
            let mut guest: Guest = guest(&["--add", &added, "busybox", "sh", "-c", &script])?;
            let names = Names::of_linux(&mut guest)?;
            Ok((Echo::in_guest(guest)?, names))
        }
    }
}

/// How long an echo may take: a busy host keeps the machine from running.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets `echoes` datagrams go there and back, `window` at a time. None may be lost: it would
/// cost instructions and be no echo.
pub fn exchange(socket: &UdpSocket, window: u32, echoes: u32) -> Result<(), String> {
    let send = || socket.send(&[0; DATAGRAM_BYTES]).map(drop);
    let exchange = || -> std::io::Result<()> {
        socket.set_read_timeout(Some(PATIENCE))?;
        (0..window).try_for_each(|_| send())?;
        for sent in window..window + echoes {
            socket.recv(&mut [0; DATAGRAM_BYTES])?;
            if sent < echoes {
                send()?;
            }
        }
        Ok(())
    };
    exchange().map_err(|error| format!("an echo did not come back: {error}"))
}
