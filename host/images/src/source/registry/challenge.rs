//! How a registry asks who we are: `WWW-Authenticate` (RFC 7235; "Docker Registry v2 authentication").

/// What it wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password with each request (RFC 7617).
    Basic,
    /// A token of a server, which is asked for it with this query.
    Bearer { realm: String, query: String },
}

impl Challenge {
    /// Reads the header; `None` for what is neither.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let words = words(rest);
        let value = |key: &str| {
            let found = words
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(key));
            found.map(|(_, value)| value.as_str())
        };
        let query = ["service", "scope"].into_iter().filter_map(|key| {
            let value = value(key)?;
            Some(format!("{key}={}", escaped(value)))
        });
        let query: Vec<String> = query.collect();
        Some(Self::Bearer {
            realm: value("realm")?.into(),
            query: query.join("&"),
        })
    }
}

/// `name="value"` between commas, which values may hold, too.
fn words(text: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([',', ' ']).to_string();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        words.push((name, value.to_string()));
        rest = next;
    }
    words
}

/// For a query (RFC 3986).
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_whom_to_ask_for_what() {
        let text = r#"Bearer realm="https://auth.example/token",service="reg.example",scope="repository:a/b:pull,push""#;
        let expected = Challenge::Bearer {
            realm: "https://auth.example/token".into(),
            query: "service=reg.example&scope=repository%3Aa%2Fb%3Apull%2Cpush".into(),
        };
        assert_eq!(Challenge::parse(text), Some(expected));
        assert_eq!(
            Challenge::parse("Basic realm=\"x\""),
            Some(Challenge::Basic)
        );
        assert_eq!(Challenge::parse("Negotiate"), None);
        assert_eq!(Challenge::parse("Bearer service=\"x\""), None);
    }
}
