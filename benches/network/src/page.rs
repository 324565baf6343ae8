//! The tables, and the page `docs/bench-network.md`.

use bench_pair::{Kernel, Table, page};

const PAGE: &str = "docs/bench-network.md";

/// Both tables in Markdown.
pub fn tables(one_cpu: &Table, two_cpus: &Table) -> String {
    let mut text = one_cpu.to_markdown("one vCPU");
    if !two_cpus.is_empty() {
        text += "\n";
        text += &two_cpus.to_markdown_beside(one_cpu, "two vCPUs");
    }
    text
}

/// Writes the page.
pub fn write(tables: &str, rounds: u32) -> Result<(), String> {
    let text = format!(
        "# The network under real servers\n\n\
        `cargo run --release -p bench-network` wrote this page on {date}. Both systems ran as guests\n\
        on the same host in {rounds} alternating rounds: the same QEMU flags, image, program and client,\n\
        512 MiB (2 GiB for idle connections), virtio-net unless a row says otherwise, on a tap interface\n\
        in a network namespace. A bold ratio is one that Sietch wins.\n\n\
        - {qemu}, emulated (TCG)\n\
        - Linux: {cloud}\n\
        - Linux with an e1000 or an 82576: {generic}\n\
        - {memcached}; {nginx}; {iperf}\n\n\
        memcached has as many threads and nginx as many workers as there are vCPUs; there are two\n\
        instances of Redis in either case. Machine and client share the host's {cpus} CPUs: what a\n\
        second vCPU costs shows in QEMU's CPU time, and its gain is less than where CPUs are free.\n\n\
        {tables}",
        date = page::date(),
        qemu = page::qemu(),
        cloud = page::linux(Kernel::Cloud),
        generic = page::linux(Kernel::Generic),
        memcached = page::first_line("memcached", &["--version"]),
        nginx = page::first_line(
            "dpkg-query",
            &["-W", "-f", "${Package} ${Version}", "nginx-light"]
        ),
        iperf = page::first_line("iperf3", &["--version"]),
        cpus = std::thread::available_parallelism().map_or(0, usize::from),
    );
    page::write(PAGE, &text)
}
