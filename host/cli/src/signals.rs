//! Linux's signals by name and number (signal(7)).

/// By name, in the order of their numbers.
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
/// The first and the last of the real-time signals, as the C library numbers them.
const REAL_TIME: (u8, u8) = (34, 64);

/// SIGKILL.
pub const KILL: u8 = 9;

/// The number of a signal, by `9`, `KILL`, `SIGKILL`, `RTMIN+3` or `RTMAX-1`.
pub fn number_of(text: &str) -> Option<u8> {
    if let Ok(number) = text.parse() {
        return (1..=REAL_TIME.1).contains(&number).then_some(number);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    if let Some(number) = real_time(name) {
        return Some(number);
    }
    let at = NAMES.iter().position(|known| *known == name)?;
    u8::try_from(at + 1).ok()
}

fn real_time(name: &str) -> Option<u8> {
    let (first, last) = REAL_TIME;
    let offset = |rest: &str, sign: char| match rest {
        "" => Some(0),
        rest => rest.strip_prefix(sign)?.parse::<u8>().ok(),
    };
    let number = match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(rest), _) => first.checked_add(offset(rest, '+')?)?,
        (_, Some(rest)) => last.checked_sub(offset(rest, '-')?)?,
        _ => return None,
    };
    (first..=last).contains(&number).then_some(number)
}

/// [`number_of`] for the command line.
///
/// Errors: a sentence's end.
pub fn parse(text: &str) -> Result<u8, String> {
    number_of(text).ok_or_else(|| "give a number from 1 to 64, or a name such as TERM".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        assert_eq!(number_of("KILL"), Some(9));
        assert_eq!(number_of("SIGTERM"), Some(15));
        assert_eq!(number_of("sigsys"), Some(31));
        assert_eq!(number_of("64"), Some(64));
        assert_eq!(number_of("SIGRTMIN+3"), Some(37));
        assert_eq!(number_of("RTMAX"), Some(64));
        for wrong in ["0", "65", "SIGNOTHING", "RTMIN+31", "RTMINX"] {
            assert_eq!(number_of(wrong), None, "{wrong}");
        }
    }
}
