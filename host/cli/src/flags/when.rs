//! `--since` and `--until`: a time, as docker has it.

use std::str::FromStr;

use super::Span;

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Milliseconds since the epoch.
    At(u64),
    /// So many milliseconds ago.
    Ago(u64),
}

impl When {
    /// Milliseconds since the epoch.
    pub fn at_ms(self, now_ms: u64) -> u64 {
        match self {
            Self::At(at_ms) => at_ms,
            Self::Ago(ms) => now_ms.saturating_sub(ms),
        }
    }
}

impl FromStr for When {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "give seconds since 1970, a time ago such as 10m, or 2026-11-29T12:00:00Z";
        if let Ok(span) = text.parse::<Span>() {
            let ms = u64::try_from(span.0.as_millis()).map_err(|_| FORM)?;
            return Ok(Self::Ago(ms));
        }
        if let Some(at_ms) = seconds(text) {
            return Ok(Self::At(at_ms));
        }
        date(text).map(Self::At).ok_or(FORM)
    }
}

/// `1764417600.5`.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let whole: u64 = whole.parse().ok()?;
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let ms: String = part.chars().chain("00".chars()).take(3).collect();
    whole
        .checked_mul(1000)?
        .checked_add(ms.parse().ok().filter(|_| is_number)?)
}

/// RFC 3339 with `Z` or an offset; a day alone is its first moment, UTC.
fn date(text: &str) -> Option<u64> {
    let (day, time) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let numbers = |text: &str, sign: char| -> Option<Vec<i64>> {
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        text.split(sign)
            .map(|part| part.parse().ok().filter(|_| is_plain(part)))
            .collect()
    };
    let [year, month, day] = numbers(day, '-')?.try_into().ok()?;
    let offset_at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, offset) = time.split_at(offset_at);
    let (time, part) = time.split_once('.').unwrap_or((time, ""));
    let ms: String = part.chars().chain("000".chars()).take(3).collect();
    let [hour, minute, second] = numbers(time, ':')?.try_into().ok()?;
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day) && year >= 1970;
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let ahead_s = match offset {
        "" | "Z" => 0,
        offset => {
            let [hours, minutes] = numbers(&offset[1..], ':')?.try_into().ok()?;
            let seconds = hours * 3600 + minutes * 60;
            if offset.starts_with('-') {
                -seconds
            } else {
                seconds
            }
        }
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - ahead_s;
    let seconds = u64::try_from(seconds).ok()?;
    Some(seconds * 1000 + ms.parse::<u64>().ok()?)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is a year's last.
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// `2026-11-29T12:00:00.250Z` of milliseconds since the epoch.
pub fn timestamp(at_ms: u64) -> String {
    let (seconds, ms) = (at_ms / 1000, at_ms % 1000);
    let (mut day, time) = ((seconds / 86_400) as i64, seconds % 86_400);
    let mut year = 1970;
    while day >= days(year + 1, 1, 1) - days(year, 1, 1) {
        day -= days(year + 1, 1, 1) - days(year, 1, 1);
        year += 1;
    }
    let starts = |month: i64| days(year, month, 1) - days(year, 1, 1);
    let month = (1..=12)
        .rev()
        .find(|&month| starts(month) <= day)
        .unwrap_or(1);
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        day - starts(month) + 1,
        time / 3600,
        time / 60 % 60,
        time % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ago_or_absolute() {
        let when = |text: &str| text.parse::<When>();
        assert_eq!(when("10m"), Ok(When::Ago(600_000)));
        assert_eq!(when("1764417600"), Ok(When::At(1_764_417_600_000)));
        assert_eq!(when("1.25"), Ok(When::At(1250)));
        assert_eq!(when("1970-01-02"), Ok(When::At(86_400_000)));
        assert_eq!(when("2000-03-01T00:00:00Z"), Ok(When::At(951_868_800_000)));
        assert_eq!(
            when("2000-03-01T01:00:00.5+01:00"),
            Ok(When::At(951_868_800_500))
        );
        for wrong in [
            "",
            "now",
            "2000-13-01",
            "2000-01-01T25:00:00Z",
            "-5",
            "2000-01-01Tx",
        ] {
            assert!(when(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for at_ms in [0, 951_782_400_123, 1_764_417_600_999, 4_107_542_399_000] {
            assert_eq!(timestamp(at_ms).parse(), Ok(When::At(at_ms)), "{at_ms}");
        }
        assert_eq!(timestamp(951_782_400_000), "2000-02-29T00:00:00.000Z");
    }
}
