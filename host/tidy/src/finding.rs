//! What a lint reports.

use std::fmt;
use std::path::PathBuf;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the repository's root.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub sentence: String,
}

impl Finding {
    /// A finding in the line of `path` with index `index`, counted from 0.
    pub fn at(path: impl Into<PathBuf>, index: usize, sentence: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: index + 1,
            sentence: sentence.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}",
            self.path.display(),
            self.line,
            self.sentence
        )
    }
}
