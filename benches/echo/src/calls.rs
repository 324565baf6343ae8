//! System calls of programs whose network is their own: how many are waits with nothing left to do, and how many are made while
//! there is something to do.
//!
//! They are counted, not sampled: a function has begun as often as its first instruction was executed. All calls begin
//! at the kernel's entry. A program that has found no more frames arms its card, and waits if none has come by then. Who waits for
//! several files by poll(2) forgets before that by a call what interrupts have come, and so does the library's own thread when it goes to
//! sleep. The thread's own calls are in two functions. What is left are calls that an echo would have to wait for.
//!
//! Two columns are no calls, and stand beside them: looks for frames before a wait, each of which is a wait less if it finds some; and how
//! often a card was armed, which no wait goes without. So where there are waits and no card was armed a function has another name by now.

use bench_pair::counter::Counts;
use bench_pair::dynamic_server;
use bench_pair::echo::Echo;
use bench_pair::names::Names;

use crate::beside::{self, CARD, CARD_FLAGS, VF, VF_FLAGS};
use crate::cards;
use crate::echo::{self, WINDOWS};
use crate::rings;

/// Where system calls enter the kernels.
const ENTRIES: [&str; 2] = ["entry_SYSCALL_64", "arch::syscall::entry"];
/// By what a program waits: one behind the library, and one that makes native calls.
const WAITS: [&str; 3] = [
    "sietch::patience::sleep",
    "rt::wait::wait_for",
    "rt::wait::wait_for_edge",
];
/// What forgets a card's interrupts before it is armed.
const FORGETS: [&str; 1] = ["rt::vfio::interrupt::Interrupt::clear"];
/// By what the library's thread enters the kernel.
const THREADS: [&str; 2] = ["sietch::keeper::ask", "sietch::keeper::sleep_until_look"];

/// By what a program looks for frames before it waits.
const LOOKS: [&str; 1] = ["rt::look::look_until"];
/// By what it arms its card. Where no frame comes meanwhile, a wait follows.
const ARMS: [&str; 1] = ["rt::card::Card::arm_port"];

/// A way to the network: its name, and the machine.
type Way = (&'static str, fn() -> Result<(Echo, Names), String>);

const WAYS: [Way; 6] = [
    ("sockets, card", || {
        beside::echo(beside::OWN_CARD, &dynamic_server("udp_echo")?)
    }),
    ("sockets, VF", || {
        beside::echo(beside::OWN_FUNCTION, &dynamic_server("udp_echo")?)
    }),
    ("io_uring, card", || {
        beside::echo(beside::OWN_CARD, &dynamic_server("uring_udp_echo")?)
    }),
    ("io_uring, VF", || {
        beside::echo(beside::OWN_FUNCTION, &dynamic_server("uring_udp_echo")?)
    }),
    ("native, card", || rings::native_echo(&CARD_FLAGS, CARD)),
    ("native, VF", || rings::native_echo(&VF_FLAGS, VF)),
];

/// How often each was made.
struct Calls {
    all: u64,
    waits: u64,
    forgets: u64,
    threads: u64,
    /// These two are no calls.
    looks: u64,
    arms: u64,
}

impl Calls {
    /// Errors: a sentence, if a function that must have run has no such name.
    fn of(counts: &Counts, names: &Names) -> Result<Self, String> {
        let of_each = |functions: &[&str]| -> u64 {
            let each = functions
                .iter()
                .map(|function| begun(counts, names, &[function]));
            each.sum()
        };
        let calls = Self {
            all: entered(counts, names),
            waits: of_each(&WAITS),
            forgets: of_each(&FORGETS),
            threads: of_each(&THREADS),
            looks: of_each(&LOOKS),
            arms: of_each(&ARMS),
        };
        match calls.waits != 0 && calls.arms == 0 {
            true => Err("calls are counted by names that functions no longer have".into()),
            false => Ok(calls),
        }
    }

    /// For a thousand of so many requests.
    fn row(&self, name: &str, requests: u32) -> String {
        let others = self
            .all
            .saturating_sub(self.waits + self.forgets + self.threads);
        let figures = [
            self.all,
            self.waits,
            self.forgets,
            self.threads,
            others,
            self.looks,
            self.arms,
        ];
        let cells = figures.map(|calls| {
            let per_thousand = calls as f64 * 1000.0 / f64::from(requests);
            format!(" {per_thousand:.2} |")
        });
        format!("| {name} |{}\n", cells.concat())
    }
}

/// How often the kernel was entered by a system call.
pub fn entered(counts: &Counts, names: &Names) -> u64 {
    begun(counts, names, &ENTRIES)
}

/// How often the first instruction of a function that has one of these names was executed.
fn begun(counts: &Counts, names: &Names, functions: &[&str]) -> u64 {
    let is_it = |address: u64| {
        let name = names.at(address).pop();
        name.is_some_and(|name| functions.contains(&name.as_str()))
    };
    let its = counts.iter().filter(|(address, _)| is_it(*address));
    its.min().map_or(0, |(_, count)| count)
}

/// A table of all ways.
pub fn count() -> Result<String, String> {
    let mut text = String::from(
        "| calls for 1000 requests | all | waits | interrupts forgotten | the library's thread | others | beside them: looks | cards armed |\n\
        |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, boot) in WAYS {
        eprintln!("{name}: system calls");
        let (echo, names) = boot()?;
        for window in WINDOWS {
            let counts = echo::of_window(&echo, window)?;
            let name = format!("UDP echo by {name}, {window} under way");
            text += &Calls::of(&counts, &names)?.row(&name, echo::ECHOES);
        }
    }
    for (name, row) in [("card", beside::OWN_CARD), ("VF", beside::OWN_FUNCTION)] {
        eprintln!("Redis, {name}: system calls");
        let (_guest, names) = beside::redis(row)?;
        let counts = beside::under_load(row, "GET")?;
        let name = format!("Redis GET, 50 clients, {name}");
        text += &Calls::of(&counts, &names)?.row(&name, cards::REQUESTS);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_left_for_a_thousand_requests() {
        let calls = Calls {
            all: 50,
            waits: 28,
            forgets: 10,
            threads: 10,
            looks: 100,
            arms: 30,
        };
        let row = calls.row("an echo", 2000);
        assert_eq!(
            row,
            "| an echo | 25.00 | 14.00 | 5.00 | 5.00 | 1.00 | 50.00 | 15.00 |\n"
        );
    }
}
