//! Figures in three characters, as illumos prints them.

/// `part` of `whole` in hundredths: `0.0` to `9.9`, then `10` to `100`.
pub fn percent(part: u64, whole: u64) -> String {
    let tenths = rounded(u128::from(part) * 1000, u128::from(whole.max(1))).min(1000);
    match tenths {
        0..100 => format!("{}.{}", tenths / 10, tenths % 10),
        _ => rounded(tenths, 10).to_string(),
    }
}

fn rounded(value: u128, by: u128) -> u128 {
    (value + by / 2) / by
}

/// A count: `999`, `99K`, `.9M`, `99M`, `.9G`, and so on.
pub fn count(count: u64) -> String {
    let (mut count, mut units) = (count, "KMGTPE".chars());
    if count < 1000 {
        return count.to_string();
    }
    loop {
        let unit = units.next().unwrap_or('E');
        match count {
            0..100_000 => return format!("{}{unit}", count / 1000),
            100_000..1_000_000 => {
                let unit = units.next().unwrap_or('E');
                return format!(".{}{unit}", count / 100_000);
            }
            _ => count /= 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_a_tenth_below_ten() {
        let shares = [(0, 1), (1, 10_000), (99, 1000), (9_951, 100_000), (1, 1)];
        let texts = shares.map(|(part, whole)| percent(part, whole));
        assert_eq!(texts, ["0.0", "0.0", "9.9", "10", "100"]);
        assert_eq!(percent(u64::MAX, u64::MAX), "100");
        assert_eq!(percent(5, 0), "100");
    }

    #[test]
    fn counts_have_three_characters_at_most() {
        let counts = [0, 999, 1000, 99_999, 100_000, 999_999, 1_000_000, u64::MAX];
        let texts = counts.map(count);
        assert_eq!(texts, ["0", "999", "1K", "99K", ".1M", ".9M", "1M", "18E"]);
        let mut value = 1;
        while value < u64::MAX / 3 {
            assert!(count(value).len() <= 3, "{value}");
            value = value * 3 + 1;
        }
    }
}
