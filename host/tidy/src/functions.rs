//! Functions that do too much to be read in one look.
//!
//! rustfmt closes a function by a brace at the indentation of its first line, which is all
//! that is looked at.

use crate::source::Source;

/// Longer functions are counted.
const LINES_MAX: usize = 70;

/// Lines (from 0) at which functions outside of tests start that are too long.
pub fn long(source: &Source) -> Vec<usize> {
    let starts = source.lines.iter().enumerate();
    let starts = starts.filter(|(_, line)| !line.in_test && is_start(&line.code));
    starts
        .filter(|(index, _)| lines_from(source, *index) > LINES_MAX)
        .map(|(index, _)| index)
        .collect()
}

fn is_start(code: &str) -> bool {
    let words: Vec<&str> = code.split_whitespace().collect();
    let before = words.iter().take_while(|word| **word != "fn").count();
    let is_qualifier = |word: &&str| {
        matches!(*word, "const" | "async" | "unsafe" | "extern" | "\"\"") || word.starts_with("pub")
    };
    before < words.len() && words[..before].iter().all(is_qualifier)
}

/// From the line at `start` to the brace at its indentation, both counted.
fn lines_from(source: &Source, start: usize) -> usize {
    let code = &source.lines[start].code;
    let indent = code.len() - code.trim_start().len();
    let closing = format!("{}}}", " ".repeat(indent));
    let has_no_body = code.trim_end().ends_with([';', '}']);
    let rest = source.lines[start..].iter();
    let body = rest.take_while(|line| !line.code.starts_with(&closing));
    if has_no_body { 1 } else { body.count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_more_than_seventy_lines_is_long() {
        let short = function("pub(crate) const fn a()", 70);
        let text = format!("{short}{}", function("unsafe extern \"C\" fn b()", 71));
        assert_eq!(long(&Source::parse(&text)), [70]);
    }

    #[test]
    fn declarations_types_and_tests_are_not() {
        let types = format!(
            "type F = fn(u32);\nfn a();\nfn b() {{}}\n{}",
            "\n".repeat(90)
        );
        assert_eq!(long(&Source::parse(&types)), Vec::<usize>::new());
        let inner = function("fn a()", 90).replace('\n', "\n    ");
        let test = format!("#[cfg(test)]\nmod tests {{\n    {inner}\n}}\n");
        assert_eq!(long(&Source::parse(&test)), Vec::<usize>::new());
    }
}
