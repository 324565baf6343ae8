//! `--health-*`: how the program is asked whether it is well.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub struct HealthFlags {
    /// A command in the machine that ends with 0 if all is well: words for its /bin/sh, or a JSON list
    /// [default: the image's HEALTHCHECK]
    #[arg(long, value_name = "COMMAND")]
    pub health_cmd: Option<String>,
    /// Time between two runs of it, such as 30s [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub health_interval: Option<Span>,
    /// So many failures in a row make the machine unhealthy [default: 3]
    #[arg(long, value_name = "NUMBER")]
    pub health_retries: Option<u32>,
    /// How long one run may take [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub health_timeout: Option<Span>,
    /// How long failures do not count, after the start
    #[arg(long, value_name = "TIME")]
    pub health_start_period: Option<Span>,
    /// Time between two runs meanwhile [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub health_start_interval: Option<Span>,
    /// So many answers are kept, 0 for all [default: 5]
    #[arg(long, value_name = "NUMBER")]
    pub health_max_log_count: Option<usize>,
    /// So many bytes of each are kept, 0 for as many as there can be (4096) [default: 500]
    #[arg(long, value_name = "BYTES")]
    pub health_max_log_size: Option<usize>,
    /// A command that has to succeed before --health-cmd is asked
    #[arg(long, value_name = "COMMAND")]
    pub health_startup_cmd: Option<String>,
    /// Time between two runs of it [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub health_startup_interval: Option<Span>,
    /// So many failures in a row make the machine unhealthy, 0 for none [default: 0]
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub health_startup_retries: u32,
    /// So many successes in a row are enough
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub health_startup_success: u32,
    /// How long one run of it may take [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub health_startup_timeout: Option<Span>,
    /// What is done with a machine that is unhealthy
    #[arg(long, value_enum, default_value_t)]
    pub health_on_failure: OnUnhealthy,
    /// Do not ask, though the image says how
    #[arg(long, conflicts_with = "health_cmd")]
    pub no_healthcheck: bool,
}

/// `--health-on-failure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OnUnhealthy {
    /// Nothing
    #[default]
    None,
    /// It is ended at once; --restart may start it again
    Kill,
    /// Its program is asked to end; --restart may start it again
    Restart,
    /// Its program is asked to end, and it stays so
    Stop,
}

/// A time as Go writes it: `1m30s`, `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// None is longer, so that a clock's time and a span always have a sum.
    pub const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
}

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give a time such as 30s, 1m30s or 500ms";
        let (mut rest, mut whole) = (text, Duration::ZERO);
        while !rest.is_empty() {
            let is_digit = |c: char| c.is_ascii_digit() || c == '.';
            let digits = rest.find(|c| !is_digit(c)).ok_or(FORM)?;
            let (number, tail) = rest.split_at(digits);
            let end = tail.find(is_digit).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(end);
            let seconds = match unit {
                "ns" => 1e-9,
                "us" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(FORM),
            };
            let number: f64 = number.parse().map_err(|_| FORM)?;
            let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| FORM)?;
            whole = whole.checked_add(part).ok_or(FORM)?;
            rest = tail;
        }
        match text.is_empty() {
            true => Err(FORM),
            false if whole > Self::LONGEST => Err("give a time that is shorter than a century"),
            false => Ok(Self(whole)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ms = |text: &str| text.parse::<Span>().map(|span| span.0.as_millis());
        assert_eq!(ms("30s"), Ok(30_000));
        assert_eq!(ms("1m30s"), Ok(90_000));
        assert_eq!(ms("1.5s"), Ok(1500));
        assert_eq!(ms("500ms"), Ok(500));
        let long = "18000000000000000000s";
        let longer = [long, long].concat();
        for wrong in ["", "30", "s", "1x", "1.2.3s", "-1s", "1e99h", long, &longer] {
            assert!(ms(wrong).is_err(), "{wrong}");
        }
    }
}
