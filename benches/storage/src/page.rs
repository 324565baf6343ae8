//! The tables, and the page `docs/bench-storage.md`.

use std::fs;

use bench_pair::{Kernel, System, page};

use crate::counted::Cost;
use crate::disk::Bus;

const PAGE: &str = "docs/bench-storage.md";
/// Where the part begins that `--durable` writes.
const DURABLE: &str = "## A durable SET";

/// Instructions of the systems, row by row; a row that failed in one of them is empty there.
pub fn counts(bus: Bus, systems: &[(System, Vec<Cost>)]) -> String {
    let names: Vec<&str> = systems.iter().map(|(system, _)| system.name()).collect();
    let mut text = format!(
        "| {}, instructions of the kernel | {} | Sietch / Linux |\n|---|{}---:|\n",
        bus.name(),
        names.join(" | "),
        "---:|".repeat(systems.len()),
    );
    for name in rows(systems) {
        let of = |costs: &[Cost]| {
            let cost = costs.iter().find(|cost| cost.name == name);
            cost.map(|cost| cost.kernel)
        };
        let figures: Vec<Option<f64>> = systems.iter().map(|(_, costs)| of(costs)).collect();
        let cells = figures.iter().map(|figure| match figure {
            Some(figure) => format!("{figure:.0}"),
            None => "failed".into(),
        });
        let cells: Vec<String> = cells.collect();
        text += &format!("| {name} | {} | {} |\n", cells.join(" | "), ratio(&figures));
    }
    text + "\n"
}

/// The names of all rows, in their order.
fn rows(systems: &[(System, Vec<Cost>)]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for cost in systems.iter().flat_map(|(_, costs)| costs) {
        if !names.contains(&cost.name.as_str()) {
            names.push(&cost.name);
        }
    }
    names
}

/// The last column by the one before it: Linux as it costs least.
fn ratio(figures: &[Option<f64>]) -> String {
    let ratio = match figures {
        [.., Some(linux), Some(sietch)] if *linux > 0.0 => Some(sietch / linux),
        _ => None,
    };
    ratio.map_or("–".into(), |ratio| format!("{ratio:.2}"))
}

/// Writes the page but for what `--durable` measures.
pub fn write(counts: &str, rates: &str, rounds: u32) -> Result<(), String> {
    let mut text = format!(
        "# What a disk costs\n\n\
        `cargo run --release -p bench-storage` wrote this page on {date}. All systems ran as guests on the same\n\
        host: the same QEMU flags, images and programs, one CPU, 1 GiB, QEMU's virtio-blk or NVMe over raw files.\n\
        Linux has no I/O scheduler, no multipath layer over NVMe, and the module that makes the sums of ext4 by the\n\
        processor's instruction, as Sietch does. The ratio is to Linux with `mitigations=off`.\n\n\
        - {qemu}, emulated (TCG)\n\
        - Linux: {linux}\n\
        - {fio}; SQLite {sqlite}; {redis}; {postgres}\n\n\
        ## Instructions\n\n\
        `benches/echo/plugin/count.c` counts each instruction of the guest while a command does few things of a kind, and\n\
        then many: one has its part of the difference. The middle one of three differences stands here. Transfers are\n\
        `fio`'s, of 4 KiB, random, with O_DIRECT, of the disk itself; of depth 32 eight are handed over by one call and\n\
        eight taken by one. A transaction of SQLite inserts 100 bytes by its shell, a SET comes from `redis-benchmark` on\n\
        the host. Images lie in the host's memory with `cache=unsafe`, so a flush costs the host nothing. What programs\n\
        execute themselves is left out. `--functions` lists the functions of the kernel behind a row. What a program's own queue costs, by\n\
        `--owned`, stands in [vsa.md](vsa.md).\n\n\
        {counts}\
        ## Rates\n\n\
        Rounds, in which the systems take turns: {rounds}. The clock is the host's, and the spread shows what else that did. `unsafe`: the\n\
        images lie in the host's memory, and it passes over flushes. `writeback`: on its disk, and a flush waits for that. CPU time is\n\
        that of the QEMU process, which a busy host changes less. The row\n\
        of the disk itself is the bound of all that waits for it once. Sequential transfers are buffered, of a file of 64 MiB on ext4 in\n\
        pieces of 128 KiB; writing ends with an fsync(2), reading begins with an empty cache. SQLite has `synchronous=FULL`,\n\
        and has committed 200 transactions before those that are timed;\n\
        pgbench its own kind of transaction at scale 1; redis-benchmark and pgbench run on the host. QEMU's NVMe controller takes\n\
        forced writes (FUA) and does not act on them: where Linux ends a commit by one, Sietch flushes, so that it flushes\n\
        once more there and the commit is durable.\n\n\
        {rates}",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Disk),
        fio = page::first_line("fio", &["--version"]),
        sqlite = page::first_line("sqlite3", &["--version"])
            .split(' ')
            .next()
            .unwrap_or("?"),
        redis = page::first_line("redis-server", &["--version"])
            .split(" sha")
            .next()
            .unwrap_or("?"),
        postgres = page::first_line("postgres", &["--version"]),
    );
    if let Some((_, durable)) = fs::read_to_string(PAGE)
        .unwrap_or_default()
        .split_once(DURABLE)
    {
        text += &format!("\n{DURABLE}{durable}");
    }
    page::write(PAGE, &text)
}

/// Writes the part of the page about durable SETs.
pub fn write_durable(tables: &str, command: &str) -> Result<(), String> {
    let whole = fs::read_to_string(PAGE).unwrap_or_default();
    let (others, _) = whole.split_once(DURABLE).unwrap_or((&whole, ""));
    let text = format!(
        "{others}\n\n{DURABLE}\n\n\
        `{command}` wrote this part on {date}. Images lie in the host's memory\n\
        (`cache=unsafe`), so what is seen is the guest's part. The loops that only write are the bounds of what waits for\n\
        each write: by system calls on the disk itself, and by a program on a function of its own. The stages are those of Arrakis' Table 2, told apart\n\
        by the server's system calls (`benches/storage/plugin/stages.c`): what the machine executes from one to the next, interrupts\n\
        among it. Instructions are the kernel's, the program's with its C library's, and `libsietch.so`'s; those that it executes on behalf of a\n\
        write to the log stand there, while `durable_kv` makes its entries as it parses. Times are means, by the clock of the host, and hold\n\
        the wait for the disk; the wait for the client is not in their sum. Servers with a network of their own (a VNIC on the card, or\n\
        a virtual function of it) call no kernel for frames, so their stages are not told apart. Who looks for ends on a function of its\n\
        own calls no kernel for that either: the wait for the disk, and the looks, of `durable_kv` stand under parse and execute; Redis, whose\n\
        answer leaves by write(2) as its log does, is not told apart there.\n\n\
        {tables}\n",
        others = others.trim_end(),
        date = page::date(),
    );
    page::write(PAGE, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_beside_those_of_linux_with_its_name() {
        let cost = |name: &str, kernel| Cost {
            name: name.into(),
            kernel,
            program: 100.0,
            functions: Default::default(),
        };
        let systems = [
            (System::Linux, vec![cost("read", 400.0)]),
            (
                System::Unmitigated,
                vec![cost("other", 1.0), cost("read", 300.0)],
            ),
            (System::Sietch, vec![cost("read", 100.0)]),
        ];
        let text = counts(Bus::Virtio, &systems);
        assert!(text.contains("| read | 400 | 300 | 100 | 0.33 |"), "{text}");
        assert!(
            text.contains("| other | failed | 1 | failed | – |"),
            "{text}"
        );
    }
}
