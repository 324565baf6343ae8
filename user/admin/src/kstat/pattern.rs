//! Which statistics are meant.

use regex::Regex;

use super::source::Statistic;

/// A pattern for one of the names.
enum Pattern {
    /// `*`, `?` and everything else.
    Glob(String),
    /// What stands between slashes.
    Regex(Regex),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let inner = text
            .strip_prefix('/')
            .and_then(|text| text.strip_suffix('/'));
        match inner {
            Some(inner) => {
                let regex = Regex::new(inner);
                let regex = regex.map_err(|_| format!("{text} is no regular expression"))?;
                Ok(Self::Regex(regex))
            }
            None if text.is_empty() => Ok(Self::Glob("*".into())),
            None => Ok(Self::Glob(text.into())),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Glob(glob) => matches_glob(glob.as_bytes(), name.as_bytes()),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

/// Whether a name matches; a star that took too little takes one byte more.
fn matches_glob(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut done) = (0, 0);
    let mut star = None;
    while done < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, done));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[done] => {
                at += 1;
                done += 1;
            }
            _ => {
                let Some((place, taken)) = star else {
                    return false;
                };
                star = Some((place, taken + 1));
                (at, done) = (place + 1, taken + 1);
            }
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

/// What the operands choose.
pub struct Choice {
    /// Any of them; all, if there is none.
    patterns: Vec<[Pattern; 4]>,
    class: Option<String>,
}

impl Choice {
    /// Errors: a sentence about an operand that is none.
    pub fn new(operands: &[String], class: Option<&str>) -> Result<Self, String> {
        let patterns = operands.iter().map(|operand| {
            let mut fields = operand.splitn(4, ':');
            let mut next = || Pattern::parse(fields.next().unwrap_or_default());
            Ok([next()?, next()?, next()?, next()?])
        });
        Ok(Self {
            patterns: patterns.collect::<Result<_, String>>()?,
            class: class.map(String::from),
        })
    }

    /// Whether a statistic is chosen.
    pub fn has(&self, one: &Statistic) -> bool {
        let is_of_class = self.class.as_deref().is_none_or(|class| class == one.class);
        let instance = one.instance.to_string();
        let names = [&*one.module, &instance, &*one.name, &*one.statistic];
        let mut patterns = self.patterns.iter();
        let matches = |pattern: &[Pattern; 4]| {
            let mut pairs = pattern.iter().zip(names);
            pairs.all(|(pattern, name)| pattern.matches(name))
        };
        is_of_class && (self.patterns.is_empty() || patterns.any(matches))
    }
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_any_byte() {
        let cases = [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abcbc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*d", "abcbd", true),
            ("*b*d", "abcbde", false),
            ("", "a", false),
        ];
        for (glob, name, expected) in cases {
            let matched = matches_glob(glob.as_bytes(), name.as_bytes());
            assert_eq!(matched, expected, "{glob} {name}");
        }
    }
}
