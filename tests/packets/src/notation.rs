//! Packets as tcpdump writes them.
//!
//! `FLAGS START:END(LENGTH) [ack N] [win N] [urg N] [<OPTIONS>]`, with `.` for ACK and `P`
//! for PSH. An option's number may be `*`: any in a packet that is expected, and the
//! latest that the stack has sent as an echo.

use wire::TcpFlags;

/// A TCP segment, as a script has it. Numbers are relative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Control bits.
    pub flags: TcpFlags,
    /// First byte; may lie before the stream.
    pub start: i64,
    /// Payload bytes.
    pub len: u32,
    /// Acknowledgement, if it has the flag.
    pub ack: Option<i64>,
    /// The window field; `None` where it does not matter.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: Option<u16>,
    /// Options; `None` where they do not matter.
    pub options: Option<Vec<TcpOption>>,
}

/// An option with its numbers; `None` for `*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// `mss N`
    Mss(Option<u32>),
    /// `wscale N`
    WindowScale(Option<u32>),
    /// `sackOK`
    SackPermitted,
    /// `TS val N ecr N`
    Timestamps(Option<u32>, Option<u32>),
    /// `sack A:B C:D`
    Sack(Vec<(i64, i64)>),
}

impl Segment {
    /// Reads the notation.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (head, options) = match text.split_once('<') {
            Some((head, options)) => {
                let options = options.trim_end().strip_suffix('>');
                (
                    head,
                    Some(parse_options(
                        options.ok_or("an option list without its end")?,
                    )?),
                )
            }
            None => (text, None),
        };
        let mut words = head.split_whitespace();
        let flags = parse_flags(words.next().unwrap_or(""))?;
        let (start, len) = parse_range(words.next().ok_or("no sequence numbers")?)?;
        let mut segment = Self {
            flags,
            start,
            len,
            ack: None,
            window: None,
            urgent: None,
            options,
        };
        while let Some(name) = words.next() {
            let value = words.next().unwrap_or("");
            match name {
                "ack" => segment.ack = Some(number(value)?),
                "win" => segment.window = Some(number(value)?),
                "urg" => segment.urgent = Some(number(value)?),
                _ => return Err(format!("`{name}` is no part of a segment")),
            }
        }
        match segment.ack.is_some() == flags.has(TcpFlags::ACK) {
            true => Ok(segment),
            false => Err("`ack N` and the flag `.` go together".into()),
        }
    }
}

fn parse_flags(text: &str) -> Result<TcpFlags, String> {
    text.chars().try_fold(TcpFlags::default(), |flags, letter| {
        let flag = match letter {
            'S' => TcpFlags::SYN,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            'P' => TcpFlags::PSH,
            'U' => TcpFlags::URG,
            '.' => TcpFlags::ACK,
            '-' => TcpFlags::default(),
            _ => return Err(format!("`{text}` are no flags")),
        };
        Ok(flags.with(flag))
    })
}

/// `1:101(100)`
fn parse_range(text: &str) -> Result<(i64, u32), String> {
    let wrong = || format!("`{text}` is not START:END(LENGTH)");
    let (start, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (end, len) = rest
        .trim_end_matches(')')
        .split_once('(')
        .ok_or_else(wrong)?;
    let (start, end): (i64, i64) = (number(start)?, number(end)?);
    let len: u32 = number(len)?;
    match end - start == i64::from(len) {
        true => Ok((start, len)),
        false => Err(wrong()),
    }
}

fn parse_options(text: &str) -> Result<Vec<TcpOption>, String> {
    let options = text
        .split(',')
        .map(str::trim)
        .filter(|option| !option.is_empty());
    options
        .map(|option| {
            let words: Vec<&str> = option.split_whitespace().collect();
            match words[..] {
                ["mss", size] => Ok(TcpOption::Mss(any_or_number(size)?)),
                ["wscale", shift] => Ok(TcpOption::WindowScale(any_or_number(shift)?)),
                ["sackOK"] => Ok(TcpOption::SackPermitted),
                ["TS", "val", value, "ecr", echo] => Ok(TcpOption::Timestamps(
                    any_or_number(value)?,
                    any_or_number(echo)?,
                )),
                ["sack", ref blocks @ ..] => blocks
                    .iter()
                    .map(|block| parse_block(block))
                    .collect::<Result<_, _>>()
                    .map(TcpOption::Sack),
                _ => Err(format!("`{option}` is no option")),
            }
        })
        .collect()
}

fn parse_block(text: &str) -> Result<(i64, i64), String> {
    let (start, end) = text.split_once(':').ok_or("a block is START:END")?;
    Ok((number(start)?, number(end)?))
}

fn any_or_number(text: &str) -> Result<Option<u32>, String> {
    match text {
        "*" => Ok(None),
        _ => number(text).map(Some),
    }
}

/// A decimal number.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number that fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_read_as_tcpdump_writes_it() {
        let text = "P. 1:101(100) ack 7 win 50 <TS val 3 ecr *,sack 5:9 11:13>";
        let segment = Segment::parse(text).expect("it is well formed");
        assert_eq!((segment.start, segment.len, segment.ack), (1, 100, Some(7)));
        assert_eq!((segment.window, segment.urgent), (Some(50), None));
        assert_eq!(segment.flags, TcpFlags::ACK.with(TcpFlags::PSH));
        let options = vec![
            TcpOption::Timestamps(Some(3), None),
            TcpOption::Sack(vec![(5, 9), (11, 13)]),
        ];
        assert_eq!(segment.options, Some(options));
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            "",
            "X 0:0(0)",
            "S 0:5(4)",
            ". 0:0(0)",
            "S 0:0(0) ack 1",
            "S 0:0(0) win 70000",
            "S 0:0(0) size 4",
            "S 0:0(0) <mss>",
            "S 0:0(0) <mss 5",
        ] {
            assert!(Segment::parse(wrong).is_err(), "{wrong}");
        }
    }
}
