//! What a volume may be called.

use std::fmt::{self, Display};
use std::path::Path;
use std::str::FromStr;

/// A volume's name, as docker has it: it is also the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeName(String);

/// The longest that leaves room for what is added to a file's name.
const BYTES_MAX: usize = 128;

impl VolumeName {
    /// Whether `text` is meant as a path of the host: it has a slash, or begins with a dot.
    pub fn is_path(text: &str) -> bool {
        text.contains('/') || text.starts_with('.')
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for VolumeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for VolumeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= BYTES_MAX && text.chars().all(is_plain) {
            return Ok(Self(text.into()));
        }
        let way_out = match Path::new(text).exists() {
            true => format!(", or ./{text} for the folder"),
            false => String::new(),
        };
        Err(format!(
            "a volume's name has letters, digits, '-', '_' and '.', begins with a letter or a digit and has {BYTES_MAX} of them at most{way_out}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder_or_hide() {
        for wrong in [
            "",
            ".",
            "..",
            "a/b",
            ".a",
            "-a",
            "a b",
            "ä",
            &"a".repeat(129),
        ] {
            assert!(wrong.parse::<VolumeName>().is_err(), "{wrong:?}");
        }
        for right in ["a", "db-1", "0", "my_data.2"] {
            assert_eq!(right.parse::<VolumeName>().unwrap().as_str(), right);
        }
    }

    #[test]
    fn a_slash_or_a_dot_in_front_means_a_path() {
        for path in ["/srv", "./db", "../db", "db/x", "."] {
            assert!(VolumeName::is_path(path), "{path}");
        }
        assert!(!VolumeName::is_path("db.1"));
    }
}
