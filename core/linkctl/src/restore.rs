//! What a file of records asks for, line by line, when a machine starts.
//!
//! The file is whoever's who can write it, so it is held to be hostile: it has an end, its lines
//! are records or are refused one by one, and a record can ask for nothing that a tool could
//! not. Each refusal is a sentence with its line; the rest goes on.

use alloc::format;
use alloc::string::{String, ToString};

use crate::{Answer, Record, Request};

/// Bytes of a file.
pub const FILE_BYTES_MAX: usize = 256 << 10;
/// Lines of a file that are looked at: more than there can be links, flows and properties set.
pub const LINES_MAX: usize = 8192;

/// Lines that are complained of one by one.
pub const COMPLAINTS_MAX: usize = 16;

/// Has `ask` do what the records of a file ask for; `complain` hears a sentence for each that is
/// not done. Returns how many were not.
pub fn restore(
    file: &[u8],
    ask: &mut dyn FnMut(&Request) -> Answer,
    complain: &mut dyn FnMut(&str),
) -> usize {
    let mut failed = 0;
    let mut lines = file.split(|byte| *byte == b'\n');
    for (number, line) in (1..).zip(lines.by_ref().take(LINES_MAX)) {
        if let Err(why) = restore_line(line, ask) {
            failed += 1;
            if failed <= COMPLAINTS_MAX {
                complain(&format!("line {number}: {why}"));
            }
        }
    }
    if failed > COMPLAINTS_MAX {
        complain(&format!("{} more lines", failed - COMPLAINTS_MAX));
    }
    if lines.next().is_some() {
        complain(&format!("only the first {LINES_MAX} lines are looked at"));
    }
    failed
}

fn restore_line(line: &[u8], ask: &mut dyn FnMut(&Request) -> Answer) -> Result<(), String> {
    if line.is_empty() {
        return Ok(());
    }
    let text = core::str::from_utf8(line).ok();
    let record = text.and_then(Record::parse).ok_or("no record of ours")?;
    let request = record.request().map_err(|why| why.to_string())?;
    // What cannot be a message has control characters or is too long: no tool wrote it.
    if request.encode().is_err() {
        return Err("no record of ours".into());
    }
    match ask(&request) {
        Answer::Refused(why) => Err(why.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::Refusal;

    /// What a file asks for, and what is complained of; links called `bad1` are refused.
    fn outcome(file: &[u8]) -> (Vec<Request>, Vec<String>) {
        let (mut asked, mut complaints) = (Vec::new(), Vec::new());
        let mut ask = |request: &Request| {
            asked.push(request.clone());
            match request {
                Request::CreateEtherstub { name } if name == "bad1" => {
                    Answer::Refused(Refusal::NotPermitted)
                }
                _ => Answer::Done,
            }
        };
        let failed = restore(file, &mut ask, &mut |why| complaints.push(why.to_string()));
        assert!(failed >= complaints.len().min(COMPLAINTS_MAX));
        (asked, complaints)
    }

    #[test]
    fn lines_are_asked_for_in_their_order_and_what_fails_is_one_sentence() {
        let file = b"etherstub\tstub0\n\netherstub\tbad1\nvlan\ta2000\ta0\t4095\n\
                     vnic\tv1\tstub0\tff:ff\t0\naggr\taggr0\nvlan\ta2\ta0\t2";
        let (asked, complaints) = outcome(file);
        assert_eq!(asked.len(), 3);
        let expected = [
            "line 3: only the administrator may do that",
            "line 4: identifiers go from 1 to 4094",
            "line 5: that is no station's address",
            "line 6: no record of ours",
        ];
        assert_eq!(complaints, expected);
    }

    #[test]
    fn a_file_without_sense_or_end_asks_for_nothing() {
        for file in [
            &b"\xff\xfe\n"[..],
            b"etherstub\ta\x1b[2J0",
            b"etherstub",
            b"\0\0",
        ] {
            let (asked, complaints) = outcome(file);
            assert_eq!((asked.len(), complaints.len()), (0, 1), "{file:?}");
        }
        let long = b"x\n".repeat(LINES_MAX * 2);
        let (asked, complaints) = outcome(&long);
        assert_eq!((asked.len(), complaints.len()), (0, COMPLAINTS_MAX + 2));
        assert_eq!(complaints[COMPLAINTS_MAX], "8176 more lines");
    }
}
