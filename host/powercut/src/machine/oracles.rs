//! What the programs of `tests/harness/power_cut.py` were promised.
//!
//! A mark is a program's name and a number: everything up to that one was acknowledged. What came
//! after may be there, whole; what was never written may not.

use std::process::Command;

use crate::image::Tree;

/// Places that the program `files` uses in turn.
const FILES: u64 = 8;
/// Rows of a transaction in a database.
const ROWS: u64 = 3;

/// Whether the files that are left keep all that `marks` say.
pub fn check(tree: &Tree, marks: &[&str]) -> Result<(), String> {
    let last = |program: &str| last(marks, program);
    check_files(tree, last("files"))?;
    check_lines(tree, last("lines"))?;
    for journal in ["delete", "wal"] {
        let promised = last(journal);
        check_database(tree, journal, promised).map_err(|error| format!("{journal}: {error}"))?;
    }
    check_redis(tree, last("redis")).map_err(|error| format!("redis: {error}"))
}

/// The last number that a program was promised.
pub fn last(marks: &[&str], program: &str) -> Option<u64> {
    let of = |mark: &&&str| {
        mark.split_once(' ')
            .is_some_and(|(name, _)| name == program)
    };
    let mark = marks.iter().rfind(of)?;
    mark.split_once(' ')?.1.trim().parse().ok()
}

/// What the `number`-th file holds.
fn contents(number: u64) -> Vec<u8> {
    let line = format!("file {number} of the power cut\n");
    line.repeat(40 + number as usize % 300).into_bytes()
}

/// Each file was written under another name, synced, and renamed over the older one.
fn check_files(tree: &Tree, promised: Option<u64>) -> Result<(), String> {
    for place in 0..FILES {
        let path = format!("files/{place}");
        let oldest = promised.and_then(|last| {
            let last = last.checked_sub((last + FILES - place) % FILES)?;
            Some(last)
        });
        match (tree.bytes(&path), oldest) {
            (None, None) => {}
            (None, Some(number)) => return Err(format!("{path}: number {number} is lost")),
            (Some(bytes), oldest) => {
                let text = String::from_utf8_lossy(bytes);
                let number = text.split(' ').nth(1).and_then(|word| word.parse().ok());
                let number: u64 = number.ok_or(format!("{path} holds nothing that was written"))?;
                if bytes != contents(number) || number % FILES != place {
                    return Err(format!("{path} is not number {number} as it was written"));
                }
                if oldest.is_some_and(|oldest| number < oldest) {
                    return Err(format!(
                        "{path} is number {number}, {oldest:?} was promised"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// A file that grows by a line, each followed by fdatasync(2).
fn check_lines(tree: &Tree, promised: Option<u64>) -> Result<(), String> {
    let found = tree.bytes("lines").unwrap_or(&[]);
    let mut at = 0;
    for number in 0.. {
        let line = format!("line {number} of many\n").into_bytes();
        let rest = &found[at..];
        if !rest.starts_with(&line) {
            let is_whole = promised.is_none_or(|last| number > last);
            return match (line.starts_with(rest), is_whole) {
                (true, true) => Ok(()),
                (true, false) => Err(format!("line {number} is lost, {promised:?} was promised")),
                (false, _) => Err(format!("line {number} is not what was written")),
            };
        }
        at += line.len();
    }
    Ok(())
}

/// The host's `sqlite3` recovers the database and reads it.
fn check_database(tree: &Tree, journal: &str, promised: Option<u64>) -> Result<(), String> {
    let folder = crate::temporary(journal);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut has_database = false;
    for suffix in ["", "-journal", "-wal"] {
        if let Some(bytes) = tree.bytes(&format!("{journal}.db{suffix}")) {
            has_database |= suffix.is_empty() && !bytes.is_empty();
            let file = folder.join(format!("test.db{suffix}"));
            std::fs::write(file, bytes).map_err(|error| error.to_string())?;
        }
    }
    let output = Command::new("sqlite3")
        .arg(folder.join("test.db"))
        .arg("pragma integrity_check; select count(*), coalesce(sum(n), 0), count(distinct v) from t")
        .output();
    let _ = std::fs::remove_dir_all(&folder);
    let output = output.map_err(|error| format!("sqlite3: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complains = String::from_utf8_lossy(&output.stderr).into_owned();
    if complains.contains("no such table") && promised.is_none()
        || !has_database && promised.is_none()
    {
        return Ok(());
    }
    let row: Option<Vec<u64>> = said.strip_prefix("ok\n").map(|row| {
        let numbers = row.trim().split('|');
        numbers.filter_map(|number| number.parse().ok()).collect()
    });
    let Some([rows, sum, texts]) = row.as_deref() else {
        return Err(format!("sqlite3 says {said}{complains}"));
    };
    let is_right = rows % ROWS == 0 && *sum == rows * rows.saturating_sub(1) / 2 && texts == rows;
    let least = promised.map_or(0, |last| (last + 1) * ROWS);
    match is_right && *rows >= least {
        true => Ok(()),
        false => Err(format!(
            "{rows} rows, sum {sum}, where {least} rows were promised"
        )),
    }
}

fn check_redis(tree: &Tree, promised: Option<u64>) -> Result<(), String> {
    let is_log = |path: &&String| path.starts_with("redis/") && path.ends_with(".incr.aof");
    let path = tree.files.keys().find(is_log);
    check_aof(
        path.and_then(|path| tree.bytes(path)).unwrap_or(&[]),
        promised,
    )
}

/// Whether an append-only file of Redis' has all keys up to the one that was promised: it is read command by command;
/// the last may be cut off.
pub fn check_aof(found: &[u8], promised: Option<u64>) -> Result<(), String> {
    let (mut at, mut next) = (0, 0);
    while let Some((words, len)) = command(&found[at..]) {
        at += len;
        let [name, key, value] = &words[..] else {
            continue;
        };
        if name.eq_ignore_ascii_case("set") {
            if *key != format!("key-{next}") || *value != format!("value of {next}") {
                return Err(format!("{key} = {value} where {next} is expected"));
            }
            next += 1;
        }
    }
    let is_rest_cut = found[at..].is_empty() || found[at] == b'*';
    match promised {
        Some(last) if next <= last => Err(format!("{next} keys, where {last} was promised")),
        _ if !is_rest_cut => Err("the log ends in something that was never written".into()),
        _ => Ok(()),
    }
}

/// The words of the command at the beginning, and its bytes.
fn command(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let mut at = 0;
    let mut line = |kind: u8| {
        let rest = bytes.get(at..)?;
        let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
        let text = rest[..end].strip_prefix(&[kind])?;
        at += end + 2;
        std::str::from_utf8(text).ok()?.parse::<usize>().ok()
    };
    let count = line(b'*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let rest = &bytes[at..];
        let (len, head) = bulk(rest)?;
        let word = rest.get(head..head + len)?;
        rest.get(head + len..head + len + 2)
            .filter(|end| *end == b"\r\n")?;
        words.push(String::from_utf8_lossy(word).into_owned());
        at += head + len + 2;
    }
    Some((words, at))
}

/// The length of a string, and of the line that says so.
fn bulk(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let text = bytes[..end].strip_prefix(b"$")?;
    let len = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some((len, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::File;

    fn tree(path: &str, bytes: &[u8]) -> Tree {
        let file = File {
            inode: 12,
            is_directory: false,
            bytes: bytes.to_vec(),
        };
        Tree {
            files: [(path.to_string(), file)].into(),
        }
    }

    #[test]
    fn a_lost_or_foreign_file_is_found() {
        assert!(check_files(&tree("files/3", &contents(11)), None).is_ok());
        assert!(check_files(&tree("files/0", &contents(8)), Some(0)).is_ok());
        assert!(check_files(&tree("files/0", &contents(0)), Some(8)).is_err());
        assert!(check_files(&tree("files/0", &contents(0)[1..]), Some(0)).is_err());
        assert!(check_files(&Tree::default(), Some(0)).is_err());
    }

    #[test]
    fn a_lost_or_foreign_line_is_found() {
        let lines = b"line 0 of many\nline 1 of many\nline 2 o";
        assert!(check_lines(&tree("lines", lines), Some(1)).is_ok());
        assert!(check_lines(&tree("lines", lines), Some(2)).is_err());
        assert!(check_lines(&tree("lines", b"line 0 of many\n\0\0"), None).is_err());
    }

    #[test]
    fn a_lost_or_foreign_command_is_found() {
        let set = b"*3\r\n$3\r\nSET\r\n$5\r\nkey-0\r\n$10\r\nvalue of 0\r\n*3\r\n$3\r\nSE";
        let path = "redis/appendonly.aof.1.incr.aof";
        assert!(check_redis(&tree(path, set), Some(0)).is_ok());
        assert!(check_redis(&tree(path, set), Some(1)).is_err());
        assert!(check_redis(&tree(path, b"\0\0\0"), None).is_err());
    }
}
