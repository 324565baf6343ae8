//! The tables, and the page `docs/bench-network.md`.

use bench_pair::{Kernel, Table, page};

use crate::run::Size;

const PAGE: &str = "docs/bench-network.md";

/// A table for each size of machine.
#[derive(Debug, Default)]
pub struct Tables {
    one: Table,
    two: Table,
    one_slow: Table,
    two_slow: Table,
}

impl Tables {
    /// The table of a size.
    pub fn of(&mut self, size: Size) -> &mut Table {
        match (size.cpus, size.is_slow) {
            (1, false) => &mut self.one,
            (_, false) => &mut self.two,
            (1, true) => &mut self.one_slow,
            (_, true) => &mut self.two_slow,
        }
    }

    /// In Markdown, each machine of two CPUs beside one with one.
    pub fn to_markdown(&self) -> String {
        let mut text = self.one.to_markdown(heading(Size::ONE));
        if !self.two.is_empty() {
            text += "\n";
            text += &self.two.to_markdown_beside(&self.one, heading(Size::TWO));
            text += "\n";
            let heading = heading(Size::TWO_SLOW);
            text += &self.two_slow.to_markdown_beside(&self.one_slow, heading);
        }
        text
    }
}

/// What a size is called.
pub fn heading(size: Size) -> &'static str {
    match (size.cpus, size.is_slow) {
        (1, false) => "one vCPU",
        (_, false) => "two vCPUs",
        (1, true) => "one slow vCPU",
        (_, true) => "two slow vCPUs",
    }
}

/// Writes the page.
pub fn write(tables: &str, rounds: u32) -> Result<(), String> {
    let text = format!(
        "# The network under real servers\n\n\
        `cargo run --release -p bench-network` wrote this page on {date}. Both systems ran as guests\n\
        on the same host in {rounds} alternating rounds: the same QEMU flags, image, program and client,\n\
        512 MiB (2 GiB for idle connections), virtio-net unless a row says otherwise, on a tap interface\n\
        in a network namespace. {mitigations}\n\n\
        - {qemu}, emulated (TCG)\n\
        - Linux: {cloud}\n\
        - Linux with an e1000 or an 82576: {generic}\n\
        - {memcached}; {nginx}; {iperf}\n\n\
        memcached has as many threads and nginx as many workers as there are vCPUs; there are two\n\
        instances of Redis in either case. Client, tap interface and QEMU's devices share the host's\n\
        {cpus} CPUs with the vCPUs, so that a second one finds less than a CPU: what it costs shows in\n\
        QEMU's CPU time. The last table has what it gains where there is room for it. There QEMU looks\n\
        each block of translated instructions up again (`-d nochain`), which makes the guest several\n\
        times slower, and nothing else.\n\n\
        New connections from outside are counted with machine and client on one CPU of the host: on two,\n\
        the rate depends on which of QEMU's threads the host puts where. A host that others use makes the\n\
        seconds differ by a third all the same, for either system. Those within the machine are counted\n\
        by the clock of the guest's instructions (`-icount`), of which no host knows.\n\n\
        {tables}",
        date = page::date(),
        mitigations = page::MITIGATIONS,
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
