//! The page `docs/bench-bypass-network.md`.

use bench_pair::{Kernel, page};

use super::PARTS;
use super::table::Table;

const PAGE: &str = "docs/bench-bypass-network.md";

/// In the order of [`PARTS`]: a heading, and what a reader has to know.
const HEADINGS: [(&str, &str); PARTS.len()] = [
    (
        "Servers",
        "Rates, and the CPU time that QEMU takes for a request, its emulated card's included.\n\
        nginx is one process (`master_process off`), memcached one thread and root's.",
    ),
    (
        "More virtual CPUs",
        "memcached has as many threads and nginx as many workers as the machine has vCPUs. Over a VNIC each worker\n\
        and each thread has a queue of its own. Slow vCPUs are those of\n\
        [bench-network.md](bench-network.md). The host has two CPUs.",
    ),
    (
        "A Redis that nobody asks",
        "One connection, requests one after the other, then 10 s of silence, then one request after each 5 s.",
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

/// The tables that have rows.
pub fn tables(tables: &[Table]) -> String {
    let mut text = String::new();
    for ((heading, words), table) in HEADINGS.iter().zip(tables) {
        if !table.is_empty() {
            let table = table.to_markdown("median (min–max), ratio to Linux");
            text += &format!("\n## {heading}\n\n{words}\n\n{table}");
        }
    }
    text
}

/// Writes the page.
pub fn write(tables: &str, rounds: u32) -> Result<(), String> {
    let text = format!(
        "# Servers that own their network\n\n\
        `cargo run --release -p bench-network -- --own` wrote this page on {date}. Unmodified programs ran in guests on\n\
        the same host in {rounds} alternating rounds, one vCPU unless a row says otherwise, 512 MiB, on a tap interface\n\
        in a network namespace, behind each network:\n\n\
        | column | network |\n|---|---|\n\
        | Linux | its sockets, virtio-net, `mitigations=off` |\n\
        | Sietch | its sockets, virtio-net |\n\
        | VNIC | [`libsietch.so`](bypass.md) on a VNIC above the kernel's virtio-net |\n\
        | virtio-net | the same by `sietch run --bypass`: the card is the program's, behind an IOMMU |\n\
        | VF | the same on a virtual function of QEMU's 82576, behind an IOMMU |\n\n\
        - {qemu}, emulated (TCG)\n- Linux: {linux}\n- {redis}\n{tables}",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
        redis = page::first_line("redis-server", &["--version"]),
    );
    page::write(PAGE, &text)
}
