//! When a service counts as healthy: `up` runs its test in the machine until it succeeds.

use std::time::Duration;

use super::document::Node;

/// `healthcheck` of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is run; a status of 0 is health.
    pub command: Vec<String>,
    /// Between two tries.
    pub interval: Duration,
    /// How long one try may take.
    pub timeout: Duration,
    /// How long it may fail.
    pub patience: Duration,
}

impl Check {
    /// Reads it; `None` if it is turned off.
    pub fn read(node: &Node) -> Result<Option<Self>, String> {
        const FIELDS: [&str; 7] = [
            "test",
            "interval",
            "timeout",
            "retries",
            "start_period",
            "start_interval",
            "disable",
        ];
        let fields = node.fields(&FIELDS)?;
        let time = |name, default| match fields.get(name) {
            None => Ok(default),
            Some(node) => span(&node.text()?).ok_or_else(|| node.wrong("a time such as 1m30s")),
        };
        let interval = time("interval", Duration::from_secs(30))?;
        let start_interval = time("start_interval", interval.min(Duration::from_secs(1)))?;
        let start_period = time("start_period", Duration::ZERO)?;
        let timeout = time("timeout", Duration::from_secs(30))?;
        let retries: u32 = match fields.get("retries") {
            None => 3,
            Some(node) => node.text()?.parse().map_err(|_| node.wrong("a number"))?,
        };
        let is_off = fields.get("disable").map_or(Ok(false), Node::flag)?;
        let Some(test) = fields.get("test").filter(|_| !is_off) else {
            return Ok(None);
        };
        let words = test.texts()?;
        let shell = |line: &str| vec!["sh".to_string(), "-c".into(), line.into()];
        let command = match (test.is_list(), words.split_first()) {
            (false, Some((line, _))) => shell(line),
            (true, Some((kind, rest))) if kind == "CMD" => rest.to_vec(),
            (true, Some((kind, rest))) if kind == "CMD-SHELL" => shell(&rest.join(" ")),
            (true, Some((kind, _))) if kind == "NONE" => return Ok(None),
            _ => return Err(test.wrong("a line, or a list that begins with CMD or CMD-SHELL")),
        };
        Ok(Some(Self {
            command,
            // A machine is ready in a fraction of the usual interval.
            interval: start_interval,
            timeout,
            patience: start_period + interval.saturating_mul(retries),
        }))
    }
}

/// A time as compose has it: `1m30s`, `500ms`, `2h`.
pub fn span(text: &str) -> Option<Duration> {
    let (mut rest, mut sum) = (text.trim(), Duration::ZERO);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(letters.unwrap_or(behind.len()));
        let seconds = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum += Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        rest = behind;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(span("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(span("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(span("1.5h"), Some(Duration::from_secs(5400)));
        for wrong in ["", "5", "s", "1x", "1m30"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }
}
