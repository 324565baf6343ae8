//! An echo by io_uring: on Linux, on Sietch, and where the ring is served in the program, by `libsietch.so`; with the system
//! calls that it takes.

use bench_pair::echo::Echo;
use bench_pair::names::Names;
use bench_pair::{System, dynamic_server};

use crate::beside;
use crate::calls;
use crate::echo::{self, Functions, WINDOWS};
use crate::functions;
use crate::own;

const PROGRAM: &str = "uring_udp_echo";

/// A way to the network: its name, whose rules its functions have, and the machine.
type Way = (
    &'static str,
    System,
    fn(&str) -> Result<(Echo, Names), String>,
);

const WAYS: [Way; 4] = [
    ("Linux", System::Linux, |program| {
        echo::boot(System::Linux, program)
    }),
    ("Sietch", System::Sietch, |program| {
        echo::boot(System::Sietch, program)
    }),
    ("`libsietch.so`, card", System::Sietch, |program| {
        beside::echo(beside::OWN_CARD, program)
    }),
    ("VF", System::Sietch, |program| {
        beside::echo(beside::OWN_FUNCTION, program)
    }),
];

/// What an echo costs by one way.
struct Figure {
    functions: Functions,
    calls: f64,
}

/// A table for each window, or the lists of functions behind them.
pub fn count(lists_functions: bool) -> Result<String, String> {
    let ways = ways()?;
    Ok(match lists_functions {
        true => lists(&ways),
        false => tables(&ways),
    })
}

fn ways() -> Result<Vec<Vec<Figure>>, String> {
    let program = dynamic_server(PROGRAM)?;
    let ways = WAYS.iter().map(|(name, system, boot)| {
        eprintln!("{name}, by io_uring");
        let (echo, names) = boot(&program)?;
        WINDOWS
            .iter()
            .map(|window| figure(*system, (&echo, &names), *window))
            .collect()
    });
    ways.collect()
}

fn tables(ways: &[Vec<Figure>]) -> String {
    let tables = WINDOWS.iter().enumerate().map(|(index, window)| {
        let figures = ways.iter().filter_map(|figures| figures.get(index));
        let figures: Vec<&Figure> = figures.collect();
        format!("With {window} under way:\n\n{}\n", table(&figures))
    });
    tables.collect()
}

fn lists(ways: &[Vec<Figure>]) -> String {
    let mut text = String::new();
    for ((name, ..), figures) in WAYS.iter().zip(ways) {
        for (window, figure) in WINDOWS.iter().zip(figures) {
            let total = echo::work(&figure.functions);
            let head = format!("{name} by io_uring, window {window} {total:.0}");
            text += &functions::of_one(&head, &figure.functions);
        }
    }
    text
}

fn figure(system: System, (echo, names): (&Echo, &Names), window: u32) -> Result<Figure, String> {
    let counts = beside::middle(|| echo::of_window(echo, window))?;
    let rules = echo::rules_of(system)?;
    Ok(Figure {
        functions: echo::by_function(&counts, names, &rules, echo::ECHOES),
        calls: calls::entered(&counts, names) as f64 / f64::from(echo::ECHOES),
    })
}

fn table(figures: &[&Figure]) -> String {
    let names = WAYS.iter().map(|(name, ..)| *name);
    let columns: Vec<_> = names
        .zip(figures.iter().map(|figure| &figure.functions))
        .collect();
    let calls = figures
        .iter()
        .map(|figure| format!(" {:.4} |", figure.calls));
    own::table(&columns) + &format!("| system calls |{}\n", calls.collect::<String>())
}
