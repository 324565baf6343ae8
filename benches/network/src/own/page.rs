//! The page `docs/bench-bypass-network.md`.

use std::fs;

use bench_pair::{Kernel, page};

use super::PARTS;
use super::table::Table;

const PAGE: &str = "docs/bench-bypass-network.md";

/// In the order of [`PARTS`]: a heading, and what a reader has to know.
const HEADINGS: [(&str, &str); PARTS.len()] = [
    (
        "Servers",
        "Rates, and the CPU time that QEMU takes for a request, its emulated card's included.\n\
        nginx is one process (`master_process off`), memcached one thread and root's. Native calls are those of\n\
        [`sietch-io`](libos.md); they are to be compared with the row of the UDP echo by sockets. *The same frames sent\n\
        back* is what is left of it without a stack (`user/libos/examples/frame_echo.rs`): the emulated card, the tap\n\
        interface and the rings, which each request and its answer cross too.",
    ),
    (
        "New connections",
        "`ab` with 100 clients and a server that answers one request on each connection and closes it\n\
        (`benches/pair/servers/http_once.c`).",
    ),
    (
        "Instructions for a request",
        "All instructions of the guest, and whose they are. *The program's* are those of its own file, *its\n\
        libraries'* those of the C library, of an allocator and of the dynamic linker. What does not belong to the network\n\
        is the first two rows: no network makes a request cheaper than them. A card's own work is none of the guest's.",
    ),
    (
        "More virtual CPUs",
        "memcached has as many threads and nginx as many workers as the machine has vCPUs. Over a VNIC each worker\n\
        and each thread has a queue of its own. Slow vCPUs are those of\n\
        [bench-network.md](bench-network.md). The host has two CPUs.",
    ),
    (
        "A Redis that nobody asks",
        "One connection, requests one after the other, then 5 s of silence, then one request after each second.",
    ),
    (
        "Two programs in one machine",
        "The time of a request to one of them, a Redis on a link of its own, while echo requests come in a\n\
        flood, in turns past the machine and at the other program, a UDP echo on the other link. An emulated CPU is some\n\
        twenty times slower than a real one; client, generator and QEMU share this host's two CPUs with the machine's.",
    ),
    (
        "A VNIC's limit",
        "Datagrams of 1400 bytes that a program on its own VNIC sends as fast as it may: bytes of frames that\n\
        arrive on this host over time.",
    ),
];

/// The sections of tables that have rows.
pub fn sections(tables: &[Table], rounds: u32) -> Vec<(&'static str, String)> {
    let all = HEADINGS.iter().zip(PARTS).zip(tables);
    let measured = all.filter(|(_, table)| !table.is_empty());
    let section = |(((heading, words), part), table): ((&(&'static str, &str), &str), &Table)| {
        let table = table.to_markdown("median (min–max), ratio to Linux");
        let text = format!(
            "\n## {heading}\n\n{words}\n\n\
            Measured on {}: `cargo run --release -p bench-network -- --rounds {rounds} --own {part}`.\n\n{table}",
            page::date()
        );
        (*heading, text)
    };
    measured.map(section).collect()
}

/// Writes the page; sections that were not measured stay as they were.
pub fn write(sections: &[(&'static str, String)]) -> Result<(), String> {
    let before = fs::read_to_string(PAGE).unwrap_or_default();
    let of = |(heading, _): &(&str, &str)| {
        let new = sections.iter().find(|(of, _)| of == heading);
        new.map_or_else(|| section_of(&before, heading), |(_, text)| text.clone())
    };
    let sections: String = HEADINGS.iter().map(of).collect();
    page::write(PAGE, &format!("{}{sections}", head()))
}

/// A section of a page, from the line before its heading to the next one; empty if there is none.
fn section_of(page: &str, heading: &str) -> String {
    let Some((_, rest)) = page.split_once(&format!("\n## {heading}\n")) else {
        return String::new();
    };
    let end = rest.find("\n## ").unwrap_or(rest.len());
    format!("\n## {heading}\n{}", &rest[..end])
}

fn head() -> String {
    format!(
        "# Servers that own their network\n\n\
        `cargo run --release -p bench-network -- --own` writes this page, `--own PART` a section of it. Unmodified\n\
        programs ran in guests on the same host, one vCPU unless a row says otherwise, 512 MiB, on a tap interface\n\
        in a network namespace, behind each network, which took turns:\n\n\
        | column | network |\n|---|---|\n\
        | Linux as it comes | its sockets, virtio-net |\n\
        | Linux | the same with `mitigations=off`; ratios are to this |\n\
        | Sietch | its sockets, virtio-net |\n\
        | VNIC | [`libsietch.so`](bypass.md) on a VNIC above the kernel's virtio-net |\n\
        | virtio-net | the same by `sietch run --bypass`: the card is the program's, behind an IOMMU |\n\
        | VF | the same on a virtual function of QEMU's 82576, behind an IOMMU |\n\n\
        - {qemu}, emulated (TCG)\n- Linux: {linux}\n- {redis}\n",
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
        redis = page::first_line("redis-server", &["--version"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_found_between_its_heading_and_the_next() {
        let page = "# Title\n\n## One\n\nrows\n\n## Two\n\nmore\n";
        assert_eq!(section_of(page, "One"), "\n## One\n\nrows\n");
        assert_eq!(section_of(page, "Two"), "\n## Two\n\nmore\n");
        assert_eq!(section_of(page, "Three"), "");
    }
}
