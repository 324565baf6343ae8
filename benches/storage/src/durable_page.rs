//! The tables of `--durable`.

use bench_pair::System;

use crate::disk::Bus;
use crate::durable::{Bound, Row};
use crate::redis::{Answers, Way};
use crate::stages::{Share, Stage};

/// Rates and stages of all rows.
pub fn tables(bus: Bus, rows: &[Row], device: &[(System, Bound, f64)]) -> String {
    let mut text = format!(
        "| {}, SET/s, median (min–max) | 1 client | to Linux on ext4 | p50, ms | p99 | p99.9 | 50 clients | to Linux on ext4 | p50, ms | p99 | p99.9 |\n|---|{}\n",
        bus.name(),
        "---:|".repeat(10)
    );
    let base = rows.iter().find(|row| is_base(row));
    for row in rows {
        let named = format!("| {}, {} |", row.system.name(), row.way.title());
        let alone = rates(&row.alone, base.map(|base| &base.alone[..]));
        let many = rates(&row.many, base.map(|base| &base.many[..]));
        text += &format!("{named}{alone}{many}\n");
    }
    for (system, bound, loops) in bounds(device) {
        let alone = base.map(|base| sorted(base.alone.iter().map(|answers| answers.rate)));
        let ratio = alone.map_or(0.0, |alone| middle(&loops) / middle(&alone));
        text += &format!(
            "| {}, {} | {} | {ratio:.2} |{}\n",
            system.name(),
            bound.title(),
            spread(&loops, 0),
            " |".repeat(8)
        );
    }
    text += &stages(
        bus,
        "instructions, kernel + program + library",
        rows,
        |row| (&row.counts[..], instructions),
    );
    text + &stages(bus, "µs", rows, |row| (&row.times[..], micros))
}

/// What others are compared with: Linux as it costs least.
fn is_base(row: &Row) -> bool {
    row.way == Way::EXT4 && row.system == System::Unmitigated
}

fn bounds(device: &[(System, Bound, f64)]) -> Vec<(System, Bound, Vec<f64>)> {
    let of = |system: System, bound: Bound| {
        let is_it = move |of: &&(System, Bound, f64)| (of.0, of.1) == (system, bound);
        sorted(device.iter().filter(is_it).map(|(_, _, rate)| *rate))
    };
    let kinds = Bound::ALL.iter();
    let all = kinds.flat_map(|&bound| System::ALL.map(|system| (system, bound, of(system, bound))));
    all.filter(|(_, _, loops)| !loops.is_empty()).collect()
}

fn rates(answers: &[Answers], base: Option<&[Answers]>) -> String {
    let rate = sorted(answers.iter().map(|answers| answers.rate));
    let base = base.map(|base| sorted(base.iter().map(|answers| answers.rate)));
    let ratio = base.map_or("–".into(), |base| {
        format!("{:.2}", middle(&rate) / middle(&base))
    });
    let mut text = format!(" {} | {ratio} |", spread(&rate, 0));
    for place in 0..3 {
        let late = sorted(answers.iter().map(|answers| answers.percentiles_ms[place]));
        text += &format!(" {} |", spread(&late, 2));
    }
    text
}

type Shares = [Share; Stage::ALL.len()];
type Cell = fn(&Share) -> String;

fn stages<'a>(
    bus: Bus,
    what: &str,
    rows: &'a [Row],
    of: impl Fn(&'a Row) -> (&'a [Shares], Cell),
) -> String {
    let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
    let mut text = format!(
        "\n| {}, 1 client, {what} | {} | sum without the wait |\n|---|{}\n",
        bus.name(),
        names.join(" | "),
        "---:|".repeat(names.len() + 1)
    );
    for row in rows {
        let (shares, cell) = of(row);
        let Some(shares) = median(shares) else {
            continue;
        };
        let cells: Vec<String> = shares.iter().map(cell).collect();
        text += &format!(
            "| {}, {} | {} | {} |\n",
            row.system.name(),
            row.way.title(),
            cells.join(" | "),
            cell(&sum(&shares[1..]))
        );
    }
    text
}

fn instructions(share: &Share) -> String {
    let library = match share.library.round() {
        0.0 => String::new(),
        library => format!(" + {library:.0}"),
    };
    format!("{:.0} + {:.0}{library}", share.kernel, share.program)
}

fn micros(share: &Share) -> String {
    format!("{:.1}", share.micros)
}

fn sum(shares: &[Share]) -> Share {
    let add = |sum: Share, share: &Share| Share {
        micros: sum.micros + share.micros,
        kernel: sum.kernel + share.kernel,
        program: sum.program + share.program,
        library: sum.library + share.library,
    };
    shares.iter().fold(Share::default(), add)
}

/// The round in which all stages but the wait took the middle of the times.
fn median(rounds: &[Shares]) -> Option<Shares> {
    let mut rounds = rounds.to_vec();
    let busy = |shares: &Shares| sum(&shares[1..]);
    rounds.sort_by(|one, other| {
        let (one, other) = (busy(one), busy(other));
        (one.micros + one.kernel).total_cmp(&(other.micros + other.kernel))
    });
    rounds.get(rounds.len() / 2).copied()
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn spread(sorted: &[f64], digits: usize) -> String {
    match sorted {
        [] => "–".into(),
        [only] => format!("{only:.digits$}"),
        [min, .., max] => format!(
            "{:.digits$} ({min:.digits$}–{max:.digits$})",
            middle(sorted)
        ),
    }
}
