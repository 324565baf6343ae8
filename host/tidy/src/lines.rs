//! Rules that a single line can break: stubs, leftovers, panics where a program's
//! values arrive, `unsafe` without its reason, and files that grew too long.
//!
//! A rule with exceptions takes a reason in place: a comment `tidy: <why>` on the
//! line, right above it, or above its function. For a long file it stands anywhere: `tidy: long because`.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{Line, Source};

/// Longer files need a reason.
const FILE_LINES_MAX: usize = 800;
/// How far above an `unsafe` its reason may start.
const SAFETY_REACH_LINES: usize = 30;

const STUBS: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];
/// Written apart so that this file does not break its own rule.
const LEFTOVERS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
];
/// Where Linux's error numbers are.
const ERRNO_HOME: &str = "kernel/linux-abi";

const PANICS: [&str; 5] = [
    ".unwrap()",
    ".expect(",
    "panic!(",
    "unreachable!(",
    "unwrap_unchecked",
];

/// Findings in one file; `path` is from the repository's root.
pub fn check(path: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if source.lines.len() > FILE_LINES_MAX && !has_reason_to_be_long(source) {
        findings.push(Finding::at(
            path,
            FILE_LINES_MAX,
            "the file is over 800 lines: split it by concept, or say why not in a comment `tidy: long because ...`",
        ));
    }
    let hears_programs = is_personality(path) && !is_test_file(path);
    let errno = errno_words(path);
    for (index, line) in source.lines.iter().enumerate() {
        let above = &source.lines[..index];
        let mut report = |sentence: String| findings.push(Finding::at(path, index, sentence));
        if let Some(stub) = STUBS.iter().find(|stub| has_word(&line.code, stub)) {
            report(format!(
                "`{stub}` is a stub: write what belongs here or leave it out"
            ));
        }
        if let Some(word) = LEFTOVERS.iter().find(|word| line.comment.contains(*word)) {
            report(format!(
                "`{word}` leaves work behind: do it or open an issue"
            ));
        }
        if let Some(word) = errno.iter().find(|word| has_word(&line.code, word)) {
            report(format!(
                "`{word}` is chosen in {ERRNO_HOME} only: say what went wrong by a `sync::Error`"
            ));
        }
        if is_unsafe_use(&line.code) && !has_safety_comment(above, line) {
            report(
                "say in a `// SAFETY:` comment right above which invariant makes this sound".into(),
            );
        }
        if hears_programs
            && !line.in_test
            && !has_reason(above, line)
            && let Some(panic) = panic_in(&line.code)
        {
            report(format!(
                "{panic} can panic on what a program passes: return an errno, or say why it cannot in a comment `tidy: ...`"
            ));
        }
    }
    findings
}

/// How many lines outside of tests may panic and do not say why they cannot.
pub fn panics(path: &Path, source: &Source) -> usize {
    if is_test_file(path) {
        return 0;
    }
    let lines = source.lines.iter().enumerate();
    let may_panic = |(index, line): &(usize, &Line)| {
        !line.in_test
            && panic_in(&line.code).is_some()
            && !has_reason(&source.lines[..*index], line)
    };
    lines.filter(may_panic).count()
}

/// Whether the file is of a crate that decodes what programs pass: `kernel/linux` or one of
/// `kernel/linux-*`.
fn is_personality(path: &Path) -> bool {
    let Some(rest) = path.to_str().and_then(|path| path.strip_prefix("kernel/")) else {
        return false;
    };
    rest.starts_with("linux/") || rest.starts_with("linux-")
}

/// The words for Linux's error numbers that the file must not use: the families of calls may
/// pass an `Errno` on, the rest of the kernel does not know that there is such a thing.
fn errno_words(path: &Path) -> &'static [&'static str] {
    match path {
        _ if path.starts_with(ERRNO_HOME) || !path.starts_with("kernel") => &[],
        _ if is_personality(path) => &["linux_raw_sys::errno"],
        _ => &["linux_raw_sys::errno", "Errno", "errno::"],
    }
}

fn is_test_file(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn has_reason_to_be_long(source: &Source) -> bool {
    source
        .lines
        .iter()
        .any(|line| line.comment.contains("tidy: long because"))
}

/// Whether a reason stands on the line, right above it, or above its function.
fn has_reason(above: &[Line], line: &Line) -> bool {
    let says = |line: &Line| line.comment.contains("tidy: ");
    if says(line) || above.last().is_some_and(says) {
        return true;
    }
    let function = above.iter().rposition(|line| has_word(&line.code, "fn "));
    let before_function = &above[..function.unwrap_or(0)];
    let is_preamble = |line: &&Line| !line.comment.is_empty() || line.code.starts_with("#[");
    before_function
        .iter()
        .rev()
        .take_while(is_preamble)
        .any(says)
}

/// Whether `code` has `word` and not as the end of a longer name.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether the line opens an unsafe block or an unsafe implementation.
fn is_unsafe_use(code: &str) -> bool {
    has_word(code, "unsafe {")
        || has_word(code, "unsafe impl")
        || code.trim_end().ends_with("= unsafe")
}

/// Whether the statement that the line belongs to has its reason on top. The search
/// goes up to the end of the statement before it.
fn has_safety_comment(above: &[Line], line: &Line) -> bool {
    if line.comment.contains("SAFETY:") {
        return true;
    }
    for line in above.iter().rev().take(SAFETY_REACH_LINES) {
        if line.comment.contains("SAFETY:") {
            return true;
        }
        let code = line.code.trim_end();
        let is_blank = code.is_empty() && line.comment.is_empty();
        if is_blank || code.ends_with(';') || code.ends_with('}') {
            return false;
        }
    }
    false
}

/// What in the line may panic: a method, a macro, or an index.
fn panic_in(code: &str) -> Option<String> {
    if let Some(panic) = PANICS.iter().find(|panic| code.contains(*panic)) {
        return Some(format!("`{}`", panic.trim_end_matches('(')));
    }
    has_index(code).then(|| "indexing".to_string())
}

/// Whether a `[` follows a value directly, as rustfmt writes it in an index only, and
/// holds something that a program might have chosen: more than numbers and constants.
fn has_index(code: &str) -> bool {
    let is_value_end = |c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']');
    let is_constant = |c: char| c.is_ascii_digit() || c.is_ascii_uppercase() || "_. +".contains(c);
    code.match_indices('[').any(|(at, _)| {
        let index = code[at + 1..].split(']').next().unwrap_or("");
        code[..at].ends_with(is_value_end) && !index.chars().all(is_constant)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let findings = check(Path::new(path), &Source::parse(text));
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn clean_code_has_no_findings() {
        let text = "// SAFETY: `a` is live.\nlet b = unsafe { *a };\nlet c: &[u8] = &b[..];\n#[inline]\nvec![1]\n";
        assert_eq!(found("kernel/linux/src/a.rs", text), Vec::<String>::new());
    }

    #[test]
    fn stubs_and_leftovers_are_found() {
        assert!(found("core/a.rs", "fn f() { todo!() }")[0].starts_with("core/a.rs:1: `todo!`"));
        let leftover = format!("// {}: later", LEFTOVERS[0]);
        assert_eq!(found("core/a.rs", &leftover).len(), 1);
        assert_eq!(found("core/a.rs", "my_dbg!(x)").len(), 0);
    }

    #[test]
    fn unsafe_needs_its_reason_on_the_same_statement() {
        assert_eq!(found("a.rs", "let a = unsafe { f() };").len(), 1);
        assert_eq!(
            found("a.rs", "// SAFETY: x\nlet b = 1;\nlet a = unsafe { f() };").len(),
            1
        );
        assert_eq!(
            found("a.rs", "// SAFETY: x\nlet a = g(\n    unsafe { f() },\n);").len(),
            0
        );
        assert_eq!(found("a.rs", "unsafe impl Send for A {}").len(), 1);
        assert_eq!(
            found("a.rs", "#[unsafe(naked)]\npub unsafe fn f();").len(),
            0
        );
    }

    #[test]
    fn panics_are_found_only_where_programs_are_heard() {
        for text in [
            "a.unwrap();",
            "a.expect(\"b\");",
            "let b = a[i];",
            "f()[n + 1..]",
        ] {
            assert_eq!(found("kernel/linux/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(found("kernel/linux-net/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(found("kernel/task/src/a.rs", text).len(), 0, "{text}");
        }
    }

    #[test]
    fn errno_lives_in_one_crate() {
        let text = "use linux_raw_sys::errno;";
        assert_eq!(found("kernel/linux-abi/src/errno.rs", text).len(), 0);
        assert_eq!(found("kernel/linux-net/src/a.rs", text).len(), 1);
        let passed = "use linux_abi::errno::Errno;";
        assert_eq!(found("kernel/linux-net/src/a.rs", passed).len(), 0);
        assert_eq!(found("kernel/task/src/a.rs", passed).len(), 1);
        assert_eq!(found("core/bpf/src/a.rs", "Action::Errno").len(), 0);
    }

    #[test]
    fn an_index_that_no_program_chose_is_fine() {
        for text in ["let b = a[0];", "a[..8].len()", "a[HEADER_BYTES..]"] {
            assert_eq!(found("kernel/linux/src/a.rs", text).len(), 0, "{text}");
        }
    }

    #[test]
    fn a_reason_or_a_test_lifts_the_rule() {
        let reasoned = "// tidy: `i` is masked to the table's length.\nlet b = a[i];";
        assert_eq!(found("kernel/linux/src/a.rs", reasoned).len(), 0);
        let function =
            "/// Doubles.\n/// tidy: `i` is in bounds.\nfn f() {\n    let b = 1;\n    a[i]\n}";
        assert_eq!(found("kernel/linux/src/a.rs", function).len(), 0);
        let test = "#[cfg(test)]\nmod tests {\n    fn f() { a.unwrap(); }\n}";
        assert_eq!(found("kernel/linux/src/a.rs", test).len(), 0);
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "fn f() {}\n".repeat(801);
        assert_eq!(found("a.rs", &long).len(), 1);
        assert_eq!(
            found("a.rs", &format!("// tidy: long because tables\n{long}")).len(),
            0
        );
    }
}
