//! `sietch top`: the processes of a machine, which needs no `ps` for it: what its /proc says is read by the agent.

use std::collections::HashMap;

use serde::Serialize;

use crate::copy::{Found, fetch, listing};
use crate::failure::Failure;
use crate::flags::{TopFlags, told};
use crate::format::aligned;

/// Clock ticks of /proc in a second, and bytes of a page, on each Linux of this architecture.
const TICKS: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;
/// Processes of which is asked at once: their paths fit into a request.
const AT_ONCE: usize = 1000;

/// A process. The fields are those of `--output json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Process {
    pid: u32,
    ppid: u32,
    pgid: u32,
    sid: u32,
    user: String,
    uid: u32,
    state: String,
    threads: u32,
    cpu_s: f64,
    cpu_percent: f64,
    elapsed_s: f64,
    rss_bytes: u64,
    vsz_bytes: u64,
    comm: String,
    command: String,
}

/// Runs the command.
pub fn top(flags: &TopFlags) -> Result<u8, Failure> {
    let columns = Columns::of(&flags.columns)?;
    let processes = processes(&flags.name)?;
    flags.output.list(&processes, |processes| {
        let lines = std::iter::once(columns.heading())
            .chain(processes.iter().map(|process| columns.line(process)));
        aligned(lines.collect())
            .iter()
            .for_each(|line| println!("{line}"));
    })?;
    Ok(0)
}

fn processes(name: &str) -> Result<Vec<Process>, Failure> {
    let text = |found: &Option<Found>| {
        let bytes = found.as_ref().map(|found| found.bytes.as_slice());
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    };
    let common = fetch(name, &[b"/proc/uptime", b"/etc/passwd"])?;
    let [uptime, passwd] = [0, 1].map(|at| common.get(at).map(text).unwrap_or_default());
    let uptime = uptime.split_whitespace().next();
    let uptime_s = uptime.and_then(|text| text.parse().ok());
    let uptime_s: f64 = uptime_s.ok_or_else(|| Failure::NoProc { name: name.into() })?;
    let users = users(&passwd);
    let folders = listing(name, b"/proc")?;
    let is_number =
        |found: &&Found| !found.name.is_empty() && found.name.iter().all(u8::is_ascii_digit);
    let folders: Vec<&Found> = folders.iter().filter(is_number).collect();
    let mut all = Vec::new();
    for some in folders.chunks(AT_ONCE) {
        let paths = some.iter().flat_map(|folder| {
            [&b"/stat"[..], b"/cmdline"].map(|file| [b"/proc/", &folder.name[..], file].concat())
        });
        let paths: Vec<Vec<u8>> = paths.collect();
        let paths: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        let files = fetch(name, &paths)?;
        for (folder, files) in some.iter().zip(files.chunks_exact(2)) {
            let process = Process::read(&text(&files[0]), &text(&files[1]), uptime_s);
            all.extend(process.map(|process| Process {
                uid: folder.uid,
                user: match users.get(&folder.uid) {
                    Some(user) => user.clone(),
                    None => folder.uid.to_string(),
                },
                ..process
            }));
        }
    }
    all.sort_by_key(|process| process.pid);
    Ok(all)
}

/// Names by number, of passwd(5).
fn users(passwd: &str) -> HashMap<u32, String> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        Some((uid, name.to_string()))
    };
    // The first line of a number counts.
    passwd.lines().rev().filter_map(user).collect()
}

impl Process {
    /// Of `/proc/PID/stat` and `/proc/PID/cmdline`; `None` if it has ended, or is the one that reads them.
    fn read(stat: &str, cmdline: &str, uptime_s: f64) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        // The name may hold anything.
        let (comm, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // proc(5) counts from 1, and `state` is the third.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let small = |field| number(field).and_then(|number| u32::try_from(number).ok());
        let words = cmdline.trim_end_matches('\0').replace('\0', " ");
        if comm.is_empty() && words.is_empty() {
            return None;
        }
        let cpu_s = (number(14)?.saturating_add(number(15)?)) as f64 / TICKS;
        let elapsed_s = (uptime_s - number(22)? as f64 / TICKS).max(0.0);
        Some(Self {
            pid: pid.trim().parse().ok()?,
            ppid: small(4)?,
            pgid: small(5)?,
            sid: small(6)?,
            user: String::new(),
            uid: 0,
            state: fields.first()?.to_string(),
            threads: small(20)?,
            cpu_s,
            cpu_percent: match elapsed_s > 0.0 {
                true => (1000.0 * cpu_s / elapsed_s).round() / 10.0,
                false => 0.0,
            },
            elapsed_s: (elapsed_s * 100.0).round() / 100.0,
            rss_bytes: number(24)?.saturating_mul(PAGE_BYTES),
            vsz_bytes: number(23)?,
            command: if words.is_empty() {
                format!("[{comm}]")
            } else {
                words
            },
            comm: comm.into(),
        })
    }
}

/// ps' names for columns, ours, and what they show.
type Column = (&'static str, fn(&Process) -> String);

const COLUMNS: &[(&[&str], Column)] = &[
    (&["pid"], ("PID", |process| process.pid.to_string())),
    (&["ppid"], ("PPID", |process| process.ppid.to_string())),
    (
        &["pgid", "pgrp"],
        ("PGID", |process| process.pgid.to_string()),
    ),
    (
        &["sid", "sess", "session"],
        ("SID", |process| process.sid.to_string()),
    ),
    (
        &["user", "euser", "uname"],
        ("USER", |process| process.user.clone()),
    ),
    (&["uid", "euid"], ("UID", |process| process.uid.to_string())),
    (
        &["s", "state", "stat"],
        ("S", |process| process.state.clone()),
    ),
    (
        &["nlwp", "thcount"],
        ("NLWP", |process| process.threads.to_string()),
    ),
    (
        &["time", "cputime"],
        ("TIME", |process| clock(process.cpu_s)),
    ),
    (
        &["etime", "elapsed"],
        ("ELAPSED", |process| clock(process.elapsed_s)),
    ),
    (
        &["pcpu", "%cpu", "c"],
        ("%CPU", |process| format!("{:.1}", process.cpu_percent)),
    ),
    (
        &["rss", "rssize"],
        ("RSS", |process| told(process.rss_bytes)),
    ),
    (
        &["vsz", "vsize"],
        ("VSZ", |process| told(process.vsz_bytes)),
    ),
    (
        &["comm", "ucmd"],
        ("COMMAND", |process| process.comm.clone()),
    ),
    (
        &["args", "command", "cmd"],
        ("COMMAND", |process| process.command.clone()),
    ),
];

/// What is shown, in this order.
struct Columns(Vec<Column>);

impl Columns {
    const USUAL: &str = "pid,ppid,user,s,pcpu,rss,time,args";
    /// `ps -ef` and `ps aux`, as far as a machine knows of it.
    const FULL: &str = "user,pid,ppid,c,etime,time,args";
    const BSD: &str = "user,pid,pcpu,vsz,rss,s,etime,time,args";

    /// Those that ps' options choose.
    fn of(options: &[String]) -> Result<Self, Failure> {
        let words: Vec<&str> = options.iter().map(String::as_str).collect();
        let names = match words.as_slice() {
            [] | ["-e" | "-A" | "ax" | "-ax" | "a" | "x"] => Self::USUAL.into(),
            ["-f" | "-ef" | "-eF" | "-F" | "ef"] => Self::FULL.into(),
            ["u" | "aux" | "-aux" | "auxw" | "auxww"] => Self::BSD.into(),
            ["-o" | "-eo" | "o" | "-axo" | "axo" | "--format", names @ ..]
            | ["-e" | "-A", "-o", names @ ..] => names.join(","),
            [word] if word.starts_with("-o") => word[2..].into(),
            [word] if word.starts_with("-eo") => word[3..].into(),
            names if names.iter().all(|name| !name.starts_with('-')) => names.join(","),
            _ => return Err(Failure::NoPsOption(words.join(" "))),
        };
        let chosen = names.split([',', ' ']).map(|name| {
            let name = name.trim_end_matches('=').to_lowercase();
            let known = |(names, _): &&(&[&str], Column)| names.contains(&name.as_str());
            let column = COLUMNS.iter().find(known);
            column
                .map(|(_, column)| *column)
                .ok_or(Failure::NoPsOption(name.clone()))
        });
        chosen.collect::<Result<_, _>>().map(Self)
    }

    fn heading(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| *name).collect();
        names.join("\t")
    }

    fn line(&self, process: &Process) -> String {
        let cells: Vec<String> = self.0.iter().map(|(_, show)| show(process)).collect();
        // A name may hold what would be another column, or another line.
        let plain = |cell: &String| cell.replace(|c: char| c.is_control(), "?");
        cells.iter().map(plain).collect::<Vec<_>>().join("\t")
    }
}

/// `[DAYS-]HOURS:MINUTES:SECONDS`, as ps has it.
fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    let (days, hours) = (whole / 86_400, whole / 3600 % 24);
    let days = if days == 0 {
        String::new()
    } else {
        format!("{days}-")
    };
    format!("{days}{hours:02}:{:02}:{:02}", whole / 60 % 60, whole % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 3 0 1000 8192 2 0";

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let process = Process::read(STAT, "a\0b\0", 20.0).expect("a process");
        assert_eq!((process.pid, process.ppid, process.threads), (7, 1, 3));
        assert_eq!(
            (process.comm.as_str(), process.command.as_str()),
            ("a) b (c", "a b")
        );
        assert_eq!(
            (process.cpu_s, process.elapsed_s, process.cpu_percent),
            (3.0, 10.0, 30.0)
        );
        assert_eq!((process.rss_bytes, process.vsz_bytes), (8192, 8192));
        assert_eq!(
            Process::read(STAT, "", 20.0).expect("one").command,
            "[a) b (c]"
        );
        assert_eq!(Process::read("", "", 1.0), None);
        let nameless = STAT.replace("(a) b (c)", "()");
        assert_eq!(Process::read(&nameless, "", 1.0), None);
    }

    #[test]
    fn columns_are_those_that_ps_options_choose() {
        let heading = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(ToString::to_string).collect();
            Columns::of(&options).map(|columns| columns.heading()).ok()
        };
        assert_eq!(
            heading(&["-o", "pid,comm"]).as_deref(),
            Some("PID\tCOMMAND")
        );
        assert_eq!(heading(&["-eo", "pid"]), heading(&["pid"]));
        assert!(heading(&[]).expect("usual").contains("TIME"));
        assert!(heading(&["-ef"]).expect("full").starts_with("USER"));
        assert!(heading(&["aux"]).expect("bsd").contains("VSZ"));
        for wrong in [&["-o", "color"][..], &["--forest"], &["-p", "1"]] {
            assert_eq!(heading(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_first_name_of_a_number_counts() {
        let users = users("root:x:0:0::/:\ntoor:x:0:0::/:\nwww:x:33:33::/:\nbroken\n");
        assert_eq!((users[&0].as_str(), users[&33].as_str()), ("root", "www"));
        assert_eq!(clock(93_784.9), "1-02:03:04");
    }
}
