//! What fio is told to do.

/// A row of counted transfers.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// fio's name for the API.
    pub engine: &'static str,
    /// `randread` or `randwrite`.
    pub pattern: &'static str,
    /// Transfers under way at a time.
    pub depth: u32,
    /// More of fio's options.
    pub more: &'static str,
}

const fn load(engine: &'static str, pattern: &'static str, depth: u32) -> Load {
    Load {
        engine,
        pattern,
        depth,
        more: "",
    }
}

/// The rows on a disk itself.
pub const DIRECT: [Load; 12] = [
    load("psync", "randread", 1),
    load("psync", "randwrite", 1),
    load("libaio", "randread", 1),
    load("libaio", "randwrite", 1),
    load("libaio", "randread", 32),
    load("libaio", "randwrite", 32),
    load("io_uring", "randread", 1),
    load("io_uring", "randwrite", 1),
    load("io_uring", "randread", 32),
    load("io_uring", "randwrite", 32),
    registered("randread"),
    registered("randwrite"),
];

const fn registered(pattern: &'static str) -> Load {
    Load {
        more: " --fixedbufs=1 --registerfiles=1",
        ..load("io_uring", pattern, 32)
    }
}

impl Load {
    /// Its name in the table.
    pub fn name(&self) -> String {
        let api = match (self.engine, self.more) {
            ("psync", _) => "`pread`/`pwrite`",
            ("libaio", _) => "`io_submit`",
            (_, "") => "`io_uring`",
            _ => "`io_uring`, registered buffers and file",
        };
        let what = match self.pattern {
            "randread" => "read",
            _ => "write",
        };
        format!("{api}, {what}, depth {}", self.depth)
    }

    /// The command for so many transfers.
    ///
    /// Of depth 32 eight are handed over at once and eight are taken, as programs do that have so
    /// many; one by one, depth would save nobody anything.
    pub fn command(&self, device: &str, transfers: u32) -> String {
        let batch = match self.depth {
            1 => String::new(),
            _ => " --iodepth_batch_submit=8 --iodepth_batch_complete_min=8 --iodepth_batch_complete_max=8".into(),
        };
        format!(
            "{COMMON} --filename=/dev/{device} --direct=1 --size=64m --bs=4k --rw={} --ioengine={} --iodepth={}{batch}{} --number_ios={transfers}",
            self.pattern, self.engine, self.depth, self.more
        )
    }
}

/// fio itself.
pub const PROGRAM: &str = "/usr/bin/fio";

/// What fio shall not spend instructions on.
const COMMON: &str = "fio --name=it --minimal --thread --gtod_reduce=1 --norandommap --randrepeat=1 --random_generator=lfsr";

/// Appends of 4 KiB to a file, each followed by fsync(2).
pub fn appends(count: u32) -> String {
    format!(
        "rm -f /mnt/log; {COMMON} --filename=/mnt/log --ioengine=sync --rw=write --bs=4k --size=64m --fallocate=none --fsync=1 --number_ios={count}"
    )
}

/// The same for so many seconds.
pub fn appends_for(seconds: u32) -> String {
    format!(
        "rm -f /mnt/log; {COMMON} --filename=/mnt/log --ioengine=sync --rw=write --bs=4k --size=64m --fallocate=none --fsync=1 --runtime={seconds}"
    )
}

/// What a durable write can cost at best: 4 KiB to the disk itself and a flush, one after the other.
pub fn device_for(device: &str, seconds: u32) -> String {
    format!(
        "{COMMON} --filename=/dev/{device} --ioengine=psync --direct=1 --rw=randwrite --bs=4k --size=64m --fsync=1 --time_based --runtime={seconds}"
    )
}

/// The program whose threads append.
pub const APPENDERS: &str = "tests/harness/appenders.c";
const THREADS: u32 = 8;

/// Its rows' names.
pub fn threads_name(is_on_log: bool) -> &'static str {
    match is_on_log {
        false => "8 threads append 100 bytes and `fdatasync` on ext4, /s",
        true => "8 threads append the same by `libsietch.so` on a log, /s",
    }
}

/// So many appends by all threads together, to files of ext4 or by the library to a log on `disk`.
pub fn threads(disk: &str, is_on_log: bool, count: u32) -> String {
    let each = count / THREADS;
    let before = match is_on_log {
        false => String::new(),
        true => format!(
            "busybox dd if=/dev/zero of=/dev/{disk} bs=4096 count=4 2>/dev/null; \
             export LD_PRELOAD=/lib/libsietch.so SIETCH_LOG='/mnt/append-*=/dev/{disk}';"
        ),
    };
    format!("rm -f /mnt/append-*; {before} /bin/appenders /mnt/append {THREADS} {each}")
}

/// What that says: appends a second.
pub fn appends_said(said: &str) -> Result<f64, String> {
    let rate = said
        .lines()
        .find_map(|line| line.strip_suffix(" appends/s"));
    let rate = rate.and_then(|rate| rate.parse().ok());
    rate.ok_or_else(|| format!("the threads said: {said}"))
}

/// A file of ext4 from its beginning to its end, buffered; `pattern` is `read` or `write`.
pub fn sequential(pattern: &str) -> String {
    format!(
        "{COMMON} --filename=/mnt/big --ioengine=sync --rw={pattern} --bs=128k --size={SEQUENTIAL_MIB}m --end_fsync=1 --invalidate=0"
    )
}

/// MiB of that file.
pub const SEQUENTIAL_MIB: u32 = 64;

/// Fields of fio's terse output.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// KiB a second of reads.
    Read = 6,
    /// Of writes.
    Write = 47,
    /// Writes a second.
    Writes = 48,
}

impl Field {
    /// What it has in what fio said.
    pub fn of(self, said: &str) -> Result<f64, String> {
        let fields = said.lines().find(|line| line.starts_with("3;"));
        let field = fields.and_then(|line| line.split(';').nth(self as usize)?.parse().ok());
        field.ok_or_else(|| format!("fio said: {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stands_among_what_else_is_said() {
        let fields: Vec<String> = (0..60).map(|field| (field * 1000).to_string()).collect();
        let said = format!("a warning\n3;{}\n", fields[1..].join(";"));
        assert_eq!(Field::Read.of(&said), Ok(6000.0));
        assert!(Field::Read.of("nothing").is_err());
    }
}
