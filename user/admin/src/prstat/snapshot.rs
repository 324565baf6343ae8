//! What the kernel says of all threads at one time.

use crate::files::Files;

/// Where the kernel says it.
const PATH: &str = "/proc/microstates";
/// Shares of time.
const STATES: [&str; 8] = ["USR", "SYS", "TRP", "TFL", "DFL", "LCK", "SLP", "LAT"];
/// Things counted.
const COUNTS: [&str; 4] = ["VCX", "ICX", "SCL", "SIG"];

/// What a thread has done since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
    pub uid: u32,
    pub name: String,
    pub age_ns: u64,
    pub spent_ns: [u64; 8],
    pub counts: [u64; 4],
}

impl Thread {
    /// How long it waited for a CPU.
    pub fn latency_ns(&self) -> u64 {
        self.spent_ns[7]
    }
}

/// All threads, and how loaded the machine is.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub threads: Vec<Thread>,
    pub loads: String,
}

impl Snapshot {
    /// Asks the kernel.
    pub fn read(files: &mut dyn Files) -> Result<Self, String> {
        let text = files.read(PATH)?;
        let loads = files.read("/proc/loadavg")?;
        let loads: Vec<&str> = loads.split_whitespace().take(3).collect();
        Ok(Self {
            threads: parse(&text).ok_or(format!("{PATH} makes no sense"))?,
            loads: loads.join(", "),
        })
    }
}

fn parse(text: &str) -> Option<Vec<Thread>> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next()?.split(' ').collect();
    lines.map(|line| thread(&heads, line)).collect()
}

/// The last column is a name, which may have spaces.
fn thread(heads: &[&str], line: &str) -> Option<Thread> {
    let fields: Vec<&str> = line.splitn(heads.len(), ' ').collect();
    let field = |head: &str| {
        let at = heads.iter().position(|known| *known == head)?;
        fields.get(at).copied()
    };
    let number = |head: &str| field(head)?.parse::<u64>().ok();
    let id = |head: &str| field(head)?.parse::<u32>().ok();
    let mut thread = Thread {
        pid: id("PID")?,
        tid: id("TID")?,
        uid: id("UID")?,
        name: field("NAME")?.into(),
        age_ns: number("AGE")?,
        ..Thread::default()
    };
    for (state, spent_ns) in STATES.iter().zip(&mut thread.spent_ns) {
        *spent_ns = number(state)?;
    }
    for (what, count) in COUNTS.iter().zip(&mut thread.counts) {
        *count = number(what)?;
    }
    Some(thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_heads_and_names_keep_their_spaces() {
        let text = "TID PID UID AGE NEW USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG NAME\n\
                    8 7 33 36 99 1 2 3 4 5 6 7 8 9 10 11 12 web server\n";
        let thread = Thread {
            pid: 7,
            tid: 8,
            uid: 33,
            name: "web server".into(),
            age_ns: 36,
            spent_ns: [1, 2, 3, 4, 5, 6, 7, 8],
            counts: [9, 10, 11, 12],
        };
        assert_eq!(parse(text), Some(vec![thread]));
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("PID TID\n1 2\n"), None);
        assert_eq!(parse(&text_with("x")), None);
        assert!(parse(&text_with("1")).is_some());
    }

    fn text_with(pid: &str) -> String {
        format!(
            "PID TID UID AGE USR SYS TRP TFL DFL LCK SLP LAT VCX ICX SCL SIG NAME\n\
             {pid} 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 init\n"
        )
    }
}
