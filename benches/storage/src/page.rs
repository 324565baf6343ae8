//! The tables, and the page `docs/bench-storage.md`.

use bench_pair::{Kernel, page};

use crate::counted::Cost;

const PAGE: &str = "docs/bench-storage.md";

/// Instructions of both systems, row by row.
pub fn counts(linux: &[Cost], sietch: &[Cost]) -> String {
    let mut text = String::from(
        "| instructions of a transfer | Linux: kernel | with fio | Sietch: kernel | with fio | kernel, Sietch / Linux | with fio |\n\
        |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for ours in sietch {
        let theirs = linux.iter().find(|cost| cost.name == ours.name);
        let (their_kernel, their_total) =
            theirs.map_or((f64::NAN, f64::NAN), |cost| (cost.kernel, cost.total()));
        text += &format!(
            "| {} | {their_kernel:.0} | {their_total:.0} | {:.0} | {:.0} | {:.2} | {:.2} |\n",
            ours.name,
            ours.kernel,
            ours.total(),
            ours.kernel / their_kernel,
            ours.total() / their_total
        );
    }
    text
}

/// Writes the page.
pub fn write(counts: &str, bandwidth: &str, rounds: u32) -> Result<(), String> {
    let text = format!(
        "# What a transfer to a disk costs\n\n\
        `cargo run --release -p bench-storage` wrote this page on {date}. Both systems ran as guests on the same\n\
        host: the same QEMU flags, image, disk and `fio`, one CPU, 1 GiB, virtio-blk over a raw file.\n\
        Linux has `mitigations=off` where instructions are counted, and no I/O scheduler.\n\n\
        - {qemu}, emulated (TCG)\n\
        - Linux: {linux}\n\
        - {fio}\n\n\
        ## Instructions\n\n\
        `benches/echo/plugin/count.c` counts each instruction of the guest while `fio` makes 1000 transfers, and\n\
        41000: a transfer has a 40000th of the difference. All are of 4 KiB, random, with O_DIRECT, of the disk itself\n\
        (`/dev/vda`). Of depth 32 eight are handed over by one call and eight taken by one. The image lies in the\n\
        host's memory, so that a flush costs the host nothing. `fio` is the same program in both guests; what it does\n\
        itself for a transfer is the difference between the columns, its busy waiting included.\n\
        `--functions` lists the functions of the kernel behind a row.\n\n\
        {counts}\n\
        ## Bandwidth\n\n\
        `fio` writes and reads a file of 64 MiB on ext4 in pieces of 128 KiB, in {rounds} alternating rounds;\n\
        writing ends with an fsync(2), reading begins with an empty cache. `writeback`: the image lies on the host's\n\
        disk and a flush waits for that; `unsafe`: in its memory. By the host's clock, so a host that is busy shows.\n\n\
        {bandwidth}",
        date = page::date(),
        qemu = page::qemu(),
        linux = page::linux(Kernel::Disk),
        fio = page::first_line("fio", &["--version"]),
    );
    page::write(PAGE, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_beside_that_of_linux_with_its_name() {
        let cost = |name: &str, kernel| Cost {
            name: name.into(),
            kernel,
            program: 100.0,
            functions: Default::default(),
        };
        let linux = [cost("other", 1.0), cost("read", 300.0)];
        let text = counts(&linux, &[cost("read", 100.0)]);
        assert!(
            text.contains("| read | 300 | 400 | 100 | 200 | 0.33 | 0.50 |"),
            "{text}"
        );
    }
}
