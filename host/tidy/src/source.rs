//! A source file as the lints see it: for each line the code without comments and
//! strings, the comment, and whether it belongs to a test.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 4] = ["target", "build", ".git", "corpus"];

/// A file, line by line.
#[derive(Debug, Default)]
pub struct Source {
    /// The lines in order.
    pub lines: Vec<Line>,
}

/// One line of a file.
#[derive(Debug, Default)]
pub struct Line {
    /// The code with comments cut out and the contents of strings blanked.
    pub code: String,
    /// The text of the comments.
    pub comment: String,
    /// Whether it lies in a `#[cfg(test)]` module.
    pub in_test: bool,
}

/// What the scanner is inside of, across lines.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    BlockComment(u32),
    Text,
    RawText(usize),
}

/// The files to lint under `root`, from `root`, in order.
pub fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let listing = fs::read_dir(root.join(&folder))
            .map_err(|error| format!("{} cannot be listed: {error}", folder.display()))?;
        for entry in listing.flatten() {
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !FOREIGN.iter().any(|name| path.ends_with(name)) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads and scans one file.
pub fn read(root: &Path, path: &Path) -> Result<Source, String> {
    let text = fs::read_to_string(root.join(path))
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(Source::parse(&text))
}

impl Source {
    /// Scans the text of a file.
    pub fn parse(text: &str) -> Self {
        let mut state = State::Code;
        let mut lines: Vec<Line> = text.lines().map(|line| scan(line, &mut state)).collect();
        mark_tests(&mut lines);
        Self { lines }
    }
}

/// Splits one line into code and comment, starting in and leaving `state`.
fn scan(line: &str, state: &mut State) -> Line {
    let chars: Vec<char> = line.chars().collect();
    let mut split = Line::default();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        at += match *state {
            State::Code => scan_code(rest, state, &mut split),
            State::BlockComment(depth) => scan_block_comment(rest, depth, state, &mut split),
            State::Text => scan_text(rest, state),
            State::RawText(hashes) => scan_raw_text(rest, hashes, state),
        };
    }
    split
}

/// Each scanner consumes at least one character and says how many.
fn scan_code(rest: &[char], state: &mut State, split: &mut Line) -> usize {
    match rest {
        ['/', '/', ..] => {
            split.comment.extend(rest);
            rest.len()
        }
        ['/', '*', ..] => {
            *state = State::BlockComment(1);
            2
        }
        ['r', '"' | '#', ..] if !ends_in_word(&split.code) && raw_text_hashes(rest).is_some() => {
            let hashes = raw_text_hashes(rest).unwrap_or(0);
            *state = State::RawText(hashes);
            split.code.push_str("\"\"");
            2 + hashes
        }
        ['"', ..] => {
            *state = State::Text;
            split.code.push_str("\"\"");
            1
        }
        ['\'', '\\', _, ..] => {
            split.code.push_str("' '");
            let end = rest.iter().skip(3).position(|&c| c == '\'');
            end.map_or(rest.len(), |end| end + 4)
        }
        ['\'', _, '\'', ..] => {
            split.code.push_str("' '");
            3
        }
        [first, ..] => {
            split.code.push(*first);
            1
        }
        [] => 1,
    }
}

fn scan_block_comment(rest: &[char], depth: u32, state: &mut State, split: &mut Line) -> usize {
    match rest {
        ['*', '/', ..] => {
            *state = if depth == 1 {
                State::Code
            } else {
                State::BlockComment(depth - 1)
            };
            2
        }
        ['/', '*', ..] => {
            *state = State::BlockComment(depth + 1);
            2
        }
        _ => {
            split.comment.extend(rest.first());
            1
        }
    }
}

fn scan_text(rest: &[char], state: &mut State) -> usize {
    match rest {
        ['\\', ..] => 2,
        ['"', ..] => {
            *state = State::Code;
            1
        }
        _ => 1,
    }
}

fn scan_raw_text(rest: &[char], hashes: usize, state: &mut State) -> usize {
    let closed = rest[0] == '"' && rest[1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    if closed {
        *state = State::Code;
        return 1 + hashes;
    }
    1
}

/// The number of `#` in the raw string that starts here, if one does.
fn raw_text_hashes(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    (rest.get(1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Whether an `r` after this code continues a name (`b` of `br""` does not).
fn ends_in_word(code: &str) -> bool {
    let before = code.strip_suffix('b').unwrap_or(code);
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Marks `#[cfg(test)]` modules: rustfmt closes them at the attribute's indentation.
fn mark_tests(lines: &mut [Line]) {
    let mut closing: Option<String> = None;
    for line in lines {
        match &closing {
            Some(end) => {
                line.in_test = true;
                if line.code.starts_with(end.as_str()) {
                    closing = None;
                }
            }
            None if line.code.trim_start().starts_with("#[cfg(test)]") => {
                let indent = line.code.len() - line.code.trim_start().len();
                line.in_test = true;
                closing = Some(format!("{}}}", " ".repeat(indent)));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Vec<String> {
        Source::parse(text)
            .lines
            .into_iter()
            .map(|line| line.code)
            .collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(code_of("let a = 1; // todo!()"), ["let a = 1; "]);
        assert_eq!(
            code_of("f(\"unsafe {\\\" x\", 'c', '\\'');"),
            ["f(\"\", ' ', ' ');"]
        );
        assert_eq!(code_of("a /* b /* c */ d */ e"), ["a  e"]);
        assert_eq!(code_of("let s = r#\"a \"b\" {\"#;"), ["let s = \"\";"]);
        assert_eq!(
            code_of("let t: &'a str = \"x\n y\";"),
            ["let t: &'a str = \"\"", ";"]
        );
    }

    #[test]
    fn test_modules_are_marked_to_their_end() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        let marks: Vec<bool> = Source::parse(text)
            .lines
            .iter()
            .map(|line| line.in_test)
            .collect();
        assert_eq!(marks, [false, true, true, true, true, true, false]);
    }
}
