//! The page `docs/bench-bypass-kvm.md`: what a request costs whose network is the program's.

use bench_pair::{Kernel, page, shown};

use crate::exits::{Cause, Exits};
use crate::run::{Figure, Figures, Row};
use crate::subject::Subject;

/// The rows that are broken down by causes.
const BROKEN_DOWN: [&str; 5] = [
    "Redis GET, 50 clients",
    "Redis GET, 1 client",
    "Redis GET, 50 clients, pipeline 16",
    "UDP echo, window 64",
    "UDP echo, window 1",
];

/// The whole page; `names` are the servers that were asked for, none for all.
pub fn text(figures: &Figures, names: &[String]) -> String {
    let servers: String = names.iter().map(|name| format!(" {name}")).collect();
    let mut text = format!(
        "# Programs that own their network, under KVM\n\n\
        `cargo run --release -p bench-kvm -- --own{servers}` wrote this page on {date}. As for [bench-kvm.md](bench-kvm.md)\n\
        Debian's Linux with KVM ran in an emulated machine and in it, one after the other, guests with one virtual CPU\n\
        each, 256 MiB and a card on a tap interface; the clients ran beside them. Each figure is of one run:\n\
        8000 requests of each load of Redis (1500 with one client, 60 000 with `-P 16`), 10 000 and 1500 echoes, 2000\n\
        connections, 20 000 requests to memcached, 4000 to nginx, after a tenth of them. Counts of exits are exact but\n\
        for what goes by time (ticks of guest and host are the more per request the slower the host is); time is a\n\
        ratio at best. Behind a figure stands its ratio to the first column's, bold where it is less (for rates: more).\n\n\
        | column | network |\n|---|---|\n\
        | {linux_name}; Linux; Sietch | the system's sockets, virtio-net |\n\
        | VNIC | the same program by [`libsietch.so`](bypass.md) on a VNIC above the kernel's virtio-net |\n\
        | virtio-net | the same by `sietch run --bypass`: the card is the program's, behind QEMU's `intel-iommu` |\n\
        | VF | the same on a virtual function of QEMU's 82576 (`igb.max_vfs=1`), behind that, too |\n\n\
        nginx is one process (`master_process off`), memcached one thread and root's.\n\n\
        - {qemu}\n- Linux, as host and as guest: {linux}\n\n",
        date = page::date(),
        linux_name = Subject::Unmitigated.name(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
    );
    text += &table("exits per request", figures, |one| one.exits.total(), false);
    let what = "of them without interrupts of the host";
    text += &table(what, figures, |one| one.exits.of_guest(), false);
    let what = "time of the virtual CPU's thread per request, µs";
    text += &table(what, figures, |one| one.cpu_us, false);
    text += &table("requests per second", figures, |one| one.rate, true);
    text += &machines(figures);
    let named = |name| figures.loads.iter().find(|row: &&Row| row.0 == name);
    text += &BROKEN_DOWN
        .into_iter()
        .filter_map(named)
        .map(causes)
        .collect::<Vec<_>>()
        .join("\n");
    text
}

fn heading(what: &str) -> String {
    let names = Subject::NETWORKS.map(Subject::name).join(" | ");
    let dashes = "---:|".repeat(Subject::NETWORKS.len());
    format!("| {what} | {names} |\n|---|{dashes}\n")
}

/// Each figure behind the first with its ratio to that.
fn line(name: &str, figures: &[f64], more_is_better: bool) -> String {
    let first = figures.first().copied().unwrap_or(f64::NAN);
    let cell = |(index, &figure): (usize, &f64)| {
        let ratio = figure / first;
        match index == 0 {
            _ if figure.is_nan() => "–".into(),
            true => shown(figure),
            false if (ratio > 1.0) == more_is_better => {
                format!("{} (**{ratio:.2}**)", shown(figure))
            }
            false => format!("{} ({ratio:.2})", shown(figure)),
        }
    };
    let cells: Vec<String> = figures.iter().enumerate().map(cell).collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

fn table(what: &str, figures: &Figures, of: fn(&Figure) -> f64, more_is_better: bool) -> String {
    let lines = figures.loads.iter().map(|(name, figures)| {
        let figures: Vec<f64> = figures.iter().map(of).collect();
        line(name, &figures, more_is_better)
    });
    heading(what) + &lines.collect::<String>() + "\n"
}

fn machines(figures: &Figures) -> String {
    let rows = [
        (
            "exits per second of an idle UDP echo's machine",
            figures.idle.iter().map(Exits::total).collect(),
        ),
        (
            "exits from the start to the first PONG of Redis",
            figures.start.iter().map(|start| start.exits).collect(),
        ),
        (
            "time of the virtual CPU's thread until then, s",
            figures
                .start
                .iter()
                .map(|start| start.cpu_s)
                .collect::<Vec<f64>>(),
        ),
    ];
    let measured = rows.iter().filter(|(_, figures)| !figures.is_empty());
    let lines = measured.map(|(name, figures)| line(name, figures, false));
    heading("the whole machine") + &lines.collect::<String>() + "\n"
}

fn causes((name, figures): &Row) -> String {
    let lines = Cause::ALL.map(|cause| {
        let counts: Vec<f64> = figures.iter().map(|one| one.exits.of(cause)).collect();
        line(cause.name(), &counts, false)
    });
    heading(&format!("{name}: exits per request by cause")) + &lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_ratio_to_the_first_behind_it() {
        assert_eq!(
            line("exits", &[2.0, 1.0, 3.0], false),
            "| exits | 2.00 | 1.00 (**0.50**) | 3.00 (1.50) |\n"
        );
        assert_eq!(
            line("rate", &[2.0, 3.0], true),
            "| rate | 2.00 | 3.00 (**1.50**) |\n"
        );
    }
}
