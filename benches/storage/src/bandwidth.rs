//! Bandwidth of a file that is read and written in its order, buffered.

use bench_pair::{Better, System, Table};

use crate::disk::{Bus, Disk, Host};
use crate::load;
use crate::shell::Shell;

/// The field of fio's terse output with the KiB per second of reads, and of writes.
const READ_FIELD: usize = 6;
const WRITE_FIELD: usize = 47;

/// One round of a system.
pub fn measure(system: System, bus: Bus, table: &mut Table) -> Result<(), String> {
    let device = bus.device();
    for (host, cache) in [(Host::File, "`writeback`"), (Host::Memory, "`unsafe`")] {
        let disk = Disk::new(host, true)?;
        let mut shell = Shell::fast(system, &disk.flag(bus))?;
        shell.run(&format!(
            "mkdir -p /mnt; busybox mount -t ext4 /dev/{device} /mnt"
        ))?;
        let written = rate(&shell.run(&load::sequential("write"))?, WRITE_FIELD)?;
        table.add(
            &format!("{}, sequential write and fsync, {cache}, MB/s", bus.name()),
            Better::More,
            system,
            written,
        );
        // What was cached is read from the disk again.
        shell.run(&format!(
            "busybox umount /mnt; busybox mount -t ext4 /dev/{device} /mnt"
        ))?;
        let read = rate(&shell.run(&load::sequential("read"))?, READ_FIELD)?;
        table.add(
            &format!("{}, sequential read, {cache}, MB/s", bus.name()),
            Better::More,
            system,
            read,
        );
    }
    Ok(())
}

/// MB/s of a field of fio's terse output.
fn rate(said: &str, field: usize) -> Result<f64, String> {
    let fields = said.lines().find(|line| line.starts_with("3;"));
    let field = fields.and_then(|line| line.split(';').nth(field)?.parse::<f64>().ok());
    let kib_s = field.ok_or_else(|| format!("fio said: {said}"))?;
    Ok(kib_s * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_stands_among_what_else_is_said() {
        let fields: Vec<String> = (0..60).map(|field| (field * 1000).to_string()).collect();
        let said = format!("a warning\n3;{}\n", fields[1..].join(";"));
        assert_eq!(rate(&said, READ_FIELD), Ok(6000.0 * 1.024e-3));
    }
}
