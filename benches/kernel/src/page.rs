//! The page `docs/bench-kernel.md`: the table, and what it takes to believe it.

use bench_pair::{Kernel, page};

const PAGE: &str = "docs/bench-kernel.md";

/// Writes the page.
pub fn write(table: &str) -> Result<(), String> {
    let text = format!(
        "# The kernel's instructions, counted\n\n\
        `cargo run --release -p bench-kernel` wrote this page on {date}. One static program\n\
        (`benches/kernel/programs`) ran in three guests with the same QEMU flags: one CPU,\n\
        `-accel tcg -icount shift=0,sleep=off -cpu max,-x2apic`, 512 MiB. Under these flags the\n\
        time-stamp counter counts the guest's instructions exactly, in kernel and program.\n\n\
        - {qemu}\n- Linux: {linux}\n\n\
        The ratio is Sietch's figure through that of Linux with `mitigations=off`, the faster\n\
        of the two; a bold ratio is one that Sietch wins. A repeated string instruction counts\n\
        once for each repetition: Linux runs with `clearcpuid=erms,fsrm`, so that it clears and\n\
        copies pages by words as Sietch does. Long samples are taken by a real-time policy,\n\
        and again if the kernel ran something else meanwhile.\n\n\
        {table}",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Cloud),
    );
    page::write(PAGE, &text)
}
