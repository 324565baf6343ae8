//! What is global in the kernel says why.
//!
//! A thing that somebody may own is a value with an owner: a stack, a namespace, a process. What
//! is left is the machine's, a CPU's, a constant, or said once at boot, and a comment above the
//! `static` says which. That it is true is for the reader to judge; that it is there, is counted.

use std::path::Path;

use crate::finding::Finding;
use crate::source::{Line, Source};

/// Findings in one file; `path` is from the repository's root.
pub fn check(path: &Path, source: &Source) -> Vec<Finding> {
    if !path.starts_with("kernel") {
        return Vec::new();
    }
    let lines = source.lines.iter().enumerate();
    let bare = lines.filter(|(index, line)| {
        !line.in_test && is_global(&line.code) && !has_comment(&source.lines[..*index])
    });
    let finding = |(index, _)| {
        Finding::at(
            path,
            index,
            "say in a comment right above why this is global, or give it an owner",
        )
    };
    bare.map(finding).collect()
}

/// Whether a `static` begins here; where the linker puts something is no global of ours.
fn is_global(code: &str) -> bool {
    let code = code.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or(rest, |(_, item)| item),
        None => code,
    };
    let is_symbol = code.ends_with(';') && !code.contains('=');
    code.starts_with("static ") && !is_symbol
}

/// Whether a comment stands right above, but for attributes.
fn has_comment(above: &[Line]) -> bool {
    let is_attribute = |line: &&Line| line.code.trim_start().starts_with("#[");
    let mut above = above.iter().rev().skip_while(is_attribute);
    above
        .next()
        .is_some_and(|line| line.code.trim().is_empty() && !line.comment.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(Path::new(path), &Source::parse(text)).len()
    }

    #[test]
    fn a_global_without_a_reason_is_found() {
        for text in [
            "static COUNT: AtomicU64 = AtomicU64::new(0);",
            "pub(crate) static COUNT: AtomicU64 = AtomicU64::new(0);",
            "/// Of the other.\nstatic A: u8 = 0;\nstatic B: u8 = 0;",
            "fn f() {\n    static LAST: AtomicU64 = AtomicU64::new(0);\n}",
            "/// The table.\n\nstatic TABLE: Spin<Vec<u64>> =\n    Spin::new(Vec::new());",
        ] {
            assert_eq!(found("kernel/net/src/a.rs", text), 1, "{text}");
            assert_eq!(found("core/inet/src/a.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn a_global_with_a_reason_a_symbol_and_a_lifetime_are_fine() {
        for text in [
            "/// The machine's.\nstatic COUNT: AtomicU64 = AtomicU64::new(0);",
            "/// The machine's.\n#[used]\npub static COUNT: AtomicU64 = AtomicU64::new(0);",
            "unsafe extern \"C\" {\n    static __text_start: u8;\n}",
            "fn f(name: &'static str) {}",
            "#[cfg(test)]\nmod tests {\n    static A: u8 = 0;\n}",
        ] {
            assert_eq!(found("kernel/net/src/a.rs", text), 0, "{text}");
        }
    }
}
