//! `${NAME}` and its kin in a compose file, and files of variables.

use std::collections::BTreeMap;
use std::env;

/// Variables: those of the environment, else those of the project's `.env`.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// With `file`'s, which the environment's come before.
    pub fn new(file: &str) -> Self {
        let mut all: BTreeMap<String, String> = parse(file).into_iter().collect();
        all.extend(env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
        Self(all)
    }

    /// `text` with values in the place of `$NAME`, `${NAME}`, `${NAME:-DEFAULT}`, `${NAME-DEFAULT}`, `${NAME:?WORDS}`,
    /// `${NAME?WORDS}`, `${NAME:+OTHER}`, `${NAME+OTHER}`, and `$` of `$$`. With a colon an empty value is none.
    ///
    /// Errors: a sentence.
    pub fn substitute(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('$') {
            out += before;
            rest = match behind.chars().next() {
                Some('$') => {
                    out.push('$');
                    behind.get(1..).unwrap_or("")
                }
                Some('{') => {
                    let end = closing_brace(behind)
                        .ok_or_else(|| format!("{text:?} has a ${{ without its }}."))?;
                    out += &self.expression(behind.get(1..end).unwrap_or(""))?;
                    behind.get(end + 1..).unwrap_or("")
                }
                _ => {
                    let len = name_len(behind);
                    if len == 0 {
                        return Err(format!(
                            "{text:?} has a $ before no name: write $$ for one."
                        ));
                    }
                    let (name, behind) = behind.split_at(len);
                    out += self.0.get(name).map_or("", String::as_str);
                    behind
                }
            };
        }
        Ok(out + rest)
    }

    /// What is between the braces.
    fn expression(&self, inside: &str) -> Result<String, String> {
        let (name, operator) = inside.split_at(name_len(inside));
        let value = self.0.get(name).cloned();
        let (value, operator) = match operator.strip_prefix(':') {
            Some(operator) => (value.filter(|value| !value.is_empty()), operator),
            None => (value, operator),
        };
        let mut characters = operator.chars();
        let kind = characters.next();
        let word = characters.as_str();
        match (kind, value) {
            _ if name.is_empty() => Err(format!("${{{inside}}} has no name.")),
            (None, value) => Ok(value.unwrap_or_default()),
            (Some('-' | '?'), Some(value)) => Ok(value),
            (Some('-'), None) | (Some('+'), Some(_)) => self.substitute(word),
            (Some('+'), None) => Ok(String::new()),
            (Some('?'), None) => Err(match word {
                "" => format!("The variable {name} is not set."),
                words => format!("The variable {name} is not set: {words}."),
            }),
            _ => Err(format!("${{{inside}}} is not understood.")),
        }
    }
}

/// Where the brace that opens `text` is closed.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn name_len(text: &str) -> usize {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.starts_with(|c: char| c.is_ascii_digit()) {
        true => 0,
        false => text.find(|c| !is_of_name(c)).unwrap_or(text.len()),
    }
}

/// The variables of a file: `NAME=VALUE` lines, comments, values in quotes; a name alone has the environment's value.
pub fn parse(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let Some((name, value)) = line.split_once('=') else {
        return Some((line.into(), env::var(line).ok()?));
    };
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        let inside = value.strip_prefix(quote)?;
        Some(inside.split_once(quote)?.0)
    });
    let plain = || value.split(" #").next().unwrap_or("").trim();
    Some((name.trim().into(), quoted.unwrap_or_else(plain).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        let all = [("A", "one"), ("EMPTY", "")];
        Variables(all.map(|(name, value)| (name.into(), value.into())).into())
    }

    #[test]
    fn values_and_what_stands_for_them() {
        let all = variables();
        for (text, wanted) in [
            ("$A-${A}", "one-one"),
            ("$$A", "$A"),
            ("${B:-two}${EMPTY:-x}${EMPTY-x}", "twox"),
            ("${B:-${A}s}", "ones"),
            ("${A:+set}${B+set}", "set"),
            ("${A:?w}, ${B}.", "one, ."),
            ("plain", "plain"),
        ] {
            assert_eq!(all.substitute(text).as_deref(), Ok(wanted), "{text}");
        }
        for wrong in ["${B:?is needed}", "${A", "$ A", "${}", "${A!x}", "$"] {
            let sentence = all.substitute(wrong).expect_err(wrong);
            assert!(sentence.ends_with('.'), "{sentence}");
        }
        let sentence = all.substitute("${B:?set it}").expect_err("it is not");
        assert_eq!(sentence, "The variable B is not set: set it.");
    }

    #[test]
    fn a_file_of_variables_has_comments_and_quotes() {
        let text = "# of a test\nA=1\n\nexport B = two words # said\nC=\"a # b\"\nD='$x'\nE=\n";
        let all = parse(text);
        let wanted = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # b"),
            ("D", "$x"),
            ("E", ""),
        ];
        assert_eq!(all, wanted.map(|(a, b)| (a.to_string(), b.to_string())));
    }
}
