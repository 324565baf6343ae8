//! What outlasts a restart.
//!
//! Each command that changes something, and was not given `-t`, first changes the kernel
//! and then this file, so it never has what the kernel refused. A line is a record: its
//! kind and its fields between tabs; texts have no control characters (`linkctl`). The
//! file is written anew and renamed into place, so a reader sees the old or the new one.
//! After a restart `dladm restore` does what the file says, in its order.
//! Who changes the file holds a lock on another one beside it, so no change is lost.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

pub use linkctl::{FILE, Record};
use linkctl::{FILE_BYTES_MAX, LINES_MAX};

/// Whether a change is kept, and where.
#[derive(Args, Clone, Debug)]
pub struct Keeping {
    /// Do not keep the change over a restart
    #[arg(short = 't', long = "temporary")]
    is_temporary: bool,
    #[command(flatten)]
    root: Root,
}

/// Where the file is.
#[derive(Args, Clone, Debug)]
pub struct Root {
    /// Keep what outlasts a restart below this directory
    #[arg(
        short = 'R',
        long = "root-dir",
        value_name = "DIR",
        default_value = "/"
    )]
    root: PathBuf,
}

impl Root {
    fn file(&self) -> PathBuf {
        self.root.join(FILE)
    }

    /// All records, in order; none if there is no file.
    pub fn load(&self) -> Result<Vec<Record>, String> {
        let file = self.file();
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => return Err(format!("{}: {why}", file.display())),
        };
        let record = |(line, text): (usize, &str)| {
            let known = Record::parse(text);
            known.ok_or_else(|| format!("{}:{line}: no record of ours", file.display()))
        };
        (1..).zip(text.lines()).map(record).collect()
    }
}

impl Keeping {
    /// Changes the records, unless the change is temporary.
    pub fn change(&self, edit: impl FnOnce(&mut Vec<Record>)) -> Result<(), String> {
        if self.is_temporary {
            return Ok(());
        }
        let file = self.root.file();
        let failed = |why| not_kept(format!("{}: {why}", file.display()));
        // Held until the end; the system takes it from whoever dies.
        let _lock = lock(&file).map_err(failed)?;
        let mut records = self.root.load().map_err(not_kept)?;
        let lines_before = records.len();
        edit(&mut records);
        let text: String = records.iter().map(Record::line).collect();
        // Who takes lines away from a file that is too long already is on the way to one that fits.
        let has_grown = records.len() >= lines_before;
        if has_grown && !fits_a_start(&text, records.len()) {
            return Err(not_kept(format!(
                "{}: the machine reads no more than {} KiB and {LINES_MAX} lines of it when it starts",
                file.display(),
                FILE_BYTES_MAX >> 10,
            )));
        }
        write(&file, &text).map_err(failed)
    }
}

/// Whether a machine that starts reads the whole file.
fn fits_a_start(text: &str, lines: usize) -> bool {
    text.len() <= FILE_BYTES_MAX && lines <= LINES_MAX
}

/// The kernel has changed by now.
fn not_kept(why: String) -> String {
    format!("it is done, but only until the next restart (-t says that this is meant): {why}")
}

/// Makes the folder too, if there is none.
fn lock(file: &Path) -> io::Result<File> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let lock = File::create(file.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// The text is on the disk before its name is, so a power cut leaves the old file or the new one.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let name = file.with_extension("new");
    let mut new = File::create(&name)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&name, file)
}

/// Adds a property, or puts it in the place of the one that was set before.
pub fn put(records: &mut Vec<Record>, new: Record) {
    let is_same = |old: &Record| match (old, &new) {
        (
            Record::LinkProp { link, name, .. },
            Record::LinkProp {
                link: new_link,
                name: new_name,
                ..
            },
        ) => link == new_link && name == new_name,
        (
            Record::FlowProp { flow, name, .. },
            Record::FlowProp {
                flow: new_flow,
                name: new_name,
                ..
            },
        ) => flow == new_flow && name == new_name,
        _ => false,
    };
    match records.iter_mut().find(|old| is_same(old)) {
        Some(old) => *old = new,
        None => records.push(new),
    }
}

/// Removes a flow and its properties.
pub fn remove_flow(records: &mut Vec<Record>, flow: &str) {
    records.retain(|record| !record.is_of_flow(flow));
}

/// Removes all flows of a link.
pub fn remove_flows(records: &mut Vec<Record>, of: &str) {
    let flows: Vec<String> = records
        .iter()
        .filter_map(|record| match record {
            Record::Flow { name, link, .. } if link == of => Some(name.clone()),
            _ => None,
        })
        .collect();
    flows.iter().for_each(|flow| remove_flow(records, flow));
}

/// Removes a link, its properties and its flows.
pub fn remove_link(records: &mut Vec<Record>, link: &str) {
    remove_flows(records, link);
    records.retain(|record| !record.is_of_link(link));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_with_its_flows_and_their_properties() {
        let parse = |text: &str| text.lines().filter_map(Record::parse).collect::<Vec<_>>();
        let mut records = parse(
            "vnic\ta1\tn0\tm\t0\nlinkprop\ta1\tmtu\t9\nflow\tf\ta1\tx\nflowprop\tf\tmaxbw\t1G\nflow\tg\tb1\tx",
        );
        remove_link(&mut records, "a1");
        assert_eq!(records, parse("flow\tg\tb1\tx"));
    }

    #[test]
    fn a_property_that_is_set_again_stands_once() {
        let prop = |value: &str| Record::LinkProp {
            link: "a1".into(),
            name: "mtu".into(),
            value: value.into(),
        };
        let mut records = vec![prop("1400")];
        put(&mut records, prop("1300"));
        assert_eq!(records, [prop("1300")]);
    }

    /// A directory of a test's own, and what is kept below it.
    fn keeping(name: &str) -> Keeping {
        let name = format!("sietch-keep-{name}-{}", std::process::id());
        Keeping {
            is_temporary: false,
            root: Root {
                root: std::env::temp_dir().join(name),
            },
        }
    }

    fn stub(name: String) -> Record {
        Record::Etherstub { name }
    }

    #[test]
    fn what_a_machine_would_not_read_when_it_starts_is_not_kept() {
        for (case, bytes) in [("lines", 8), ("bytes", 800)] {
            let keeping = keeping(case);
            let fill = |records: &mut Vec<Record>| {
                let line = stub("s".repeat(bytes));
                let room = FILE_BYTES_MAX / line.line().len();
                records.extend(std::iter::repeat_n(line, room.min(LINES_MAX)));
            };
            assert_eq!(keeping.change(fill), Ok(()), "{case}");
            let one_more = keeping.change(|records| records.push(stub("s".repeat(bytes))));
            let why = one_more.expect_err("it is full");
            assert!(why.contains("256 KiB and 8192 lines"), "{why}");
            let fewer = keeping.change(|records| records.truncate(1));
            assert_eq!(fewer, Ok(()), "{case}");
            fs::remove_dir_all(&keeping.root.root).expect("there");
        }
    }

    #[test]
    fn a_file_that_is_too_long_may_get_shorter() {
        let keeping = keeping("shorter");
        let file = keeping.root.file();
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        let line = stub("s".into()).line();
        fs::write(&file, line.repeat(LINES_MAX + 2)).expect("written");
        assert!(keeping.change(|records| drop(records.pop())).is_ok());
        assert!(keeping.change(|_| ()).is_err());
        fs::remove_dir_all(&keeping.root.root).expect("there");
    }

    #[test]
    fn no_change_is_lost_when_several_change_the_file_at_once() {
        let keeping = keeping("several");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let keeping = &keeping;
                scope.spawn(move || {
                    for number in 0..25 {
                        let name = format!("stub{thread}{number:02}");
                        let kept = keeping.change(|records| records.push(stub(name)));
                        assert_eq!(kept, Ok(()));
                    }
                });
            }
        });
        let records = keeping.root.load().expect("readable");
        fs::remove_dir_all(&keeping.root.root).expect("there");
        assert_eq!(records.len(), 100);
    }
}
