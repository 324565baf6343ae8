//! The page `docs/bench-profile.md`.

use bench_pair::page;

use crate::guest::{Figures, Profiler};

const PAGE: &str = "docs/bench-profile.md";

/// The figures as a table; the first row is what the others are compared with.
pub fn table(figures: &[(Profiler, Figures)]) -> String {
    let mut table = String::from(
        "| instructions per request | SET | more | GET | more |\n|---|---:|---:|---:|---:|\n",
    );
    let Some((_, off)) = figures.first() else {
        return table;
    };
    for (profiler, on) in figures {
        table += &format!(
            "| {} | {:.0} | {:.2} % | {:.0} | {:.2} % |\n",
            profiler.name(),
            on.set,
            percent(on.set, off.set),
            on.get,
            percent(on.get, off.get),
        );
    }
    table
}

fn percent(on: f64, off: f64) -> f64 {
    (on / off - 1.0) * 100.0
}

/// Writes the page.
pub fn write(table: &str) -> Result<(), String> {
    let text = format!(
        "# What the profiler costs\n\n\
        `cargo run --release -p bench-profile` wrote this page on {date}. `redis-server` and\n\
        `redis-benchmark -n 20000 -c 20 -t set,get` ran together in one machine with one CPU\n\
        (`-accel tcg -icount shift=0,sleep=off`), so that its clock counts instructions: those of\n\
        kernel, server and client together for one request.\n\n\
        - {qemu}\n\n{table}\n\
        A second of that machine has 10⁹ instructions. An emulated one without `-icount` has\n\
        fewer and takes as many samples, a real one has more.\n",
        date = page::date(),
        qemu = page::qemu(),
    );
    page::write(PAGE, &text)
}
