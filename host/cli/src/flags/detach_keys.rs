//! `--detach-keys`: keys in a row that end `sietch attach`, and not the program.

use std::str::FromStr;

/// The keys, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetachKeys(pub Vec<u8>);

impl Default for DetachKeys {
    /// docker's: Ctrl-P, Ctrl-Q.
    fn default() -> Self {
        Self(vec![16, 17])
    }
}

impl FromStr for DetachKeys {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give keys with commas between: a letter, or ctrl- with one of a-z @ [ \\ ] ^ _, such as ctrl-p,ctrl-q";
        let key = |text: &str| match (text.strip_prefix("ctrl-"), text.as_bytes()) {
            (Some(rest), _) => match rest.as_bytes() {
                [letter @ b'a'..=b'z'] => Some(letter - b'a' + 1),
                b"@" => Some(0),
                [sign @ b'['..=b'_'] => Some(sign - b'[' + 27),
                _ => None,
            },
            (None, [key]) if key.is_ascii_graphic() => Some(*key),
            _ => None,
        };
        let keys: Option<Vec<u8>> = text.split(',').map(key).collect();
        keys.map(Self).ok_or(FORM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dockers() {
        let keys = |text: &str| text.parse::<DetachKeys>().map(|keys| keys.0);
        assert_eq!(keys("ctrl-p,ctrl-q"), Ok(DetachKeys::default().0));
        assert_eq!(keys("a"), Ok(vec![b'a']));
        assert_eq!(keys("ctrl-@,ctrl-[,ctrl-_"), Ok(vec![0, 27, 31]));
        for wrong in ["", "ab", "ctrl-", "ctrl-1", "a,,b", "ctrl-P"] {
            assert!(keys(wrong).is_err(), "{wrong}");
        }
    }
}
