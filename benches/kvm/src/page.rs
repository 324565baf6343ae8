//! The page `docs/bench-kvm.md`.

use bench_pair::{Kernel, page, shown};

use crate::exits::{Cause, Exits};
use crate::model::{EXIT_US, INSTRUCTIONS_PER_US, Modelled};
use crate::run::{Figure, Figures, Row};
use crate::subject::Subject;

/// The rows that are broken down by causes.
const BROKEN_DOWN: [&str; 4] = [
    "Redis GET, 50 clients",
    "Redis GET, 1 client",
    "UDP echo, window 64",
    "new connection, 100 clients",
];

/// The whole page.
pub fn text(figures: &Figures, modelled: &[Modelled]) -> String {
    let mut text = format!(
        "# Under KVM, beside Linux\n\n\
        `cargo run --release -p bench-kvm` wrote this page on {date}. Debian's Linux with KVM ran in an\n\
        emulated machine (`-accel tcg -cpu max`, two CPUs, 3 GiB) and in it, one after the other, the\n\
        guests with one virtual CPU each, 256 MiB and virtio-net on a tap interface, with `-accel kvm\n\
        -cpu max`; the clients ran beside them. The kernel's histograms of `kvm_exit` and `kvm_msr` count\n\
        the exits. In such a machine counts are exact but for what goes by time (ticks of guest and host\n\
        are the more per request the slower the host is), and times are ratios at best: the\n\
        translator makes an exit far more expensive than it is. A bold ratio is one that Sietch wins.\n\n\
        - {qemu}\n- Linux, as host and as guest: {linux}\n\n",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
    );
    text += &table(
        "exits per request",
        &figures.loads,
        |figure| figure.exits.total(),
        false,
    );
    text += &table(
        "time of the virtual CPU's thread per request, µs",
        &figures.loads,
        |figure| figure.cpu_us,
        false,
    );
    text += &table(
        "requests per second",
        &figures.loads,
        |figure| figure.rate,
        true,
    );
    text += &machines(figures);
    for name in BROKEN_DOWN {
        if let Some(row) = figures.loads.iter().find(|row| row.0 == name) {
            text += &causes(row);
        }
    }
    text + &model(modelled)
}

fn heading(what: &str) -> String {
    let names = Subject::SYSTEMS.map(Subject::name).join(" | ");
    format!("| {what} | {names} | Sietch / Linux |\n|---|---:|---:|---:|---:|\n")
}

fn row(name: &str, figures: &[f64], more_is_better: bool) -> String {
    let cells: Vec<String> = figures.iter().map(|figure| shown(*figure)).collect();
    let of = |subject: Subject| figures.get(subject as usize).copied().unwrap_or(f64::NAN);
    let ratio = of(Subject::Sietch) / of(Subject::Linux);
    let wins = match more_is_better {
        true => ratio >= 1.0,
        false => ratio <= 1.0,
    };
    let mark = if wins { "**" } else { "" };
    let ratio = match ratio.is_finite() {
        true => format!("{mark}{ratio:.2}{mark}"),
        false => "–".into(),
    };
    format!("| {name} | {} | {ratio} |\n", cells.join(" | "))
}

fn table(what: &str, rows: &[Row], of: impl Fn(&Figure) -> f64, more_is_better: bool) -> String {
    let line = |(name, figures): &Row| {
        let figures: Vec<f64> = figures.iter().map(&of).collect();
        row(name, &figures, more_is_better)
    };
    heading(what) + &rows.iter().map(line).collect::<String>() + "\n"
}

/// Idle machines and starts.
fn machines(figures: &Figures) -> String {
    let idle: Vec<f64> = figures.idle.iter().map(Exits::total).collect();
    let of_start =
        |of: fn(&crate::run::Start) -> f64| figures.start.iter().map(of).collect::<Vec<_>>();
    heading("the whole machine")
        + &row("exits per second of an idle machine", &idle, false)
        + &row(
            "exits from the start to the first PONG of Redis",
            &of_start(|start| start.exits),
            false,
        )
        + &row(
            "time of the virtual CPU's thread until then, s",
            &of_start(|start| start.cpu_s),
            false,
        )
        + "\n"
}

fn causes((name, figures): &Row) -> String {
    let line = |cause: Cause| {
        let counts: Vec<f64> = figures
            .iter()
            .map(|figure| figure.exits.of(cause))
            .collect();
        row(cause.name(), &counts, false)
    };
    heading(&format!("{name}: exits per request by cause")) + &Cause::ALL.map(line).concat() + "\n"
}

fn model(modelled: &[Modelled]) -> String {
    let mut text = format!(
        "## What that would be on hardware\n\n\
        Instructions of the whole guest per request, the program's included, counted by a plugin of QEMU's\n\
        translator as in [bench-echo.md](bench-echo.md), and the exits from above, at {INSTRUCTIONS_PER_US} instructions a\n\
        microsecond (1.5 instructions per cycle at 3 GHz, what servers reach) and {EXIT_US} µs an exit (leaving the\n\
        guest, KVM's work and coming back take 1 to 2 µs on processors of the last years). It is a model: caches,\n\
        the host's own work for a packet and the network are not in it. Linux runs with `mitigations=off`.\n\n\
        | per request | instructions, Linux | Sietch | exits, Linux | Sietch | model, µs, Linux | Sietch | ratio |\n\
        |---|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    for one in modelled {
        let [linux, sietch] = one.us();
        let ratio = sietch / linux;
        let mark = if ratio <= 1.0 { "**" } else { "" };
        text += &format!(
            "| {} | {:.0} | {:.0} | {} | {} | {} | {} | {mark}{ratio:.2}{mark} |\n",
            one.name,
            one.instructions[0],
            one.instructions[1],
            shown(one.exits[0]),
            shown(one.exits[1]),
            shown(linux),
            shown(sietch),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_bold_where_sietch_is_better() {
        assert_eq!(
            row("exits", &[2.0, 2.0, 1.0], false),
            "| exits | 2.00 | 2.00 | 1.00 | **0.50** |\n"
        );
        assert_eq!(
            row("rate", &[2.0, 2.0, 1.0], true),
            "| rate | 2.00 | 2.00 | 1.00 | 0.50 |\n"
        );
        assert_eq!(row("none", &[], true), "| none |  | – |\n");
    }
}
