//! The tables, and the page `docs/bench-storage.md`.

use bench_pair::{Kernel, page};

use crate::counted::Cost;
use crate::disk::Bus;

const PAGE: &str = "docs/bench-storage.md";

/// Instructions of both systems, row by row.
pub fn counts(bus: Bus, linux: &[Cost], sietch: &[Cost]) -> String {
    let mut text = format!(
        "| {}, instructions of the kernel for a transfer | Linux | Sietch | Sietch / Linux |\n\
        |---|---:|---:|---:|\n",
        bus.name()
    );
    for ours in sietch {
        let theirs = linux.iter().find(|cost| cost.name == ours.name);
        let theirs = theirs.map_or(f64::NAN, |cost| cost.kernel);
        let (kernel, ratio) = (ours.kernel, ours.kernel / theirs);
        text += &format!(
            "| {} | {theirs:.0} | {kernel:.0} | {ratio:.2} |\n",
            ours.name
        );
    }
    text + "\n"
}

/// Writes the page.
pub fn write(counts: &str, bandwidth: &str, rounds: u32) -> Result<(), String> {
    let text = format!(
        "# What a transfer to a disk costs\n\n\
        `cargo run --release -p bench-storage` wrote this page on {date}. Both systems ran as guests on the same\n\
        host: the same QEMU flags, image, disk and `fio`, one CPU, 1 GiB, QEMU's virtio-blk or NVMe over a raw file.\n\
        Linux has `mitigations=off` where instructions are counted, and no I/O scheduler.\n\n\
        - {qemu}, emulated (TCG)\n\
        - Linux: {linux}\n\
        - {fio}\n\n\
        ## Instructions\n\n\
        `benches/echo/plugin/count.c` counts each instruction of the guest while `fio` makes 1000 transfers, and\n\
        11000: a transfer has a 10000th of the difference. They are of 4 KiB, random, with O_DIRECT, of the disk itself\n\
        (`/dev/vda`, `/dev/nvme0n1`). Of depth 32 eight are handed over by one call and eight taken by one. Appends are\n\
        buffered, on ext4, and spread over 1250 only. The image lies in the host's memory, so that a flush costs the\n\
        host nothing. What `fio` does itself is left out: it looks how fast the clock runs, and what that takes\n\
        differs from run to run. Rows of depth 1 are less sure than those of depth 32. `--functions` lists the functions of the kernel behind a row.\n\n\
        {counts}\
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
        let text = counts(Bus::Virtio, &linux, &[cost("read", 100.0)]);
        assert!(text.contains("| read | 300 | 100 | 0.33 |"), "{text}");
    }
}
