//! Names of members (RFC 1035): questions, and answers to those that are the network's own.
//!
//! A name without a dot, one that ends with the network's name, and the reverse of an address of the network are never the
//! host's resolver's business. The case of letters counts nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

const HEADER_BYTES: usize = 12;
/// The longest name as it is sent, and the longest label.
const NAME_BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;
/// How long an answer may be kept, in seconds: a machine may come with another address.
const TTL_S: u32 = 5;
const RESPONSE: u8 = 0x80;
const AUTHORITATIVE: u8 = 0x04;
/// There is more: who wants it asks again by TCP.
const TRUNCATED: u8 = 0x02;
const RECURSION_DESIRED: u8 = 0x01;
const RECURSION_AVAILABLE: u8 = 0x80;
const OPCODE: u8 = 0x78;
const CLASS_IN: u16 = 1;
/// The longest message that any asker takes in a datagram (RFC 1035 2.3.4).
pub const DATAGRAM_BYTES_MAX: usize = 512;
/// The longest one over TCP, whose length is two bytes (RFC 1035 4.2.2).
pub const STREAM_BYTES_MAX: usize = u16::MAX as usize;
/// The length that stands before each message over TCP.
pub const LENGTH_BYTES: usize = 2;

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// The name of an address.
    Ptr,
    /// What the network has none of.
    Other,
}

impl Kind {
    const fn of(number: u16) -> Self {
        match number {
            1 => Self::A,
            12 => Self::Ptr,
            28 => Self::Aaaa,
            _ => Self::Other,
        }
    }
}

/// How an answer ends (RFC 1035 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is such a name.
    Found = 0,
    /// We cannot say.
    Failed = 2,
    /// There is no such name.
    NoSuchName = 3,
}

/// A message with one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    message: &'a [u8],
    /// Where the question ends.
    end: usize,
    /// The name in small letters, with dots between labels and none at the end.
    pub name: String,
    /// What it asks for.
    pub kind: Kind,
}

impl<'a> Question<'a> {
    /// Reads a message; `None` for one that is no plain question.
    pub fn parse(message: &'a [u8]) -> Option<Self> {
        let flags = *message.get(2)?;
        let is_question = flags & (RESPONSE | OPCODE) == 0;
        if !is_question || message.get(4..6)? != [0, 1] {
            return None;
        }
        let (name, at) = name_at(message, HEADER_BYTES)?;
        let kind = u16_at(message, at)?;
        let class = u16_at(message, at + 2)?;
        (class == CLASS_IN).then(|| Self {
            message,
            end: at + 4,
            name,
            kind: Kind::of(kind),
        })
    }

    /// The answer with as many of these records as `bytes_max` bytes have room for; if that is not all, it says so.
    pub fn answer(&self, outcome: Outcome, records: &[Record], bytes_max: usize) -> Vec<u8> {
        let mut answer = self.message.get(..self.end).unwrap_or_default().to_vec();
        let mut count: u16 = 0;
        for record in records {
            let len = answer.len();
            record.emit(&mut answer);
            if answer.len() > bytes_max {
                answer.truncate(len);
                break;
            }
            count = count.saturating_add(1);
        }
        if let Some(header) = answer.first_chunk_mut::<HEADER_BYTES>() {
            header[2] = RESPONSE | AUTHORITATIVE | header[2] & RECURSION_DESIRED;
            if usize::from(count) < records.len() {
                header[2] |= TRUNCATED;
            }
            header[3] = RECURSION_AVAILABLE | outcome as u8;
            header[8..].fill(0);
            let [high, low] = count.to_be_bytes();
            (header[6], header[7]) = (high, low);
        }
        answer
    }
}

/// An answer that a datagram has no room for, without its records and with the word that there are some; `None` for what is no
/// message.
pub fn truncated(answer: &[u8]) -> Option<Vec<u8>> {
    let (_, at) = name_at(answer, HEADER_BYTES)?;
    // Kind and class follow the name.
    let mut short = answer.get(..at + 4)?.to_vec();
    let header = short.first_chunk_mut::<HEADER_BYTES>()?;
    header[2] |= TRUNCATED;
    header[6..].fill(0);
    Some(short)
}

/// How many bytes a message over TCP lacks, or its length: nothing once it is there as a whole, whatever follows it. `None` for
/// one that is empty, or longer than `bytes_max`.
pub fn missing(inbox: &[u8], bytes_max: usize) -> Option<usize> {
    let Some((len, rest)) = inbox.split_first_chunk::<LENGTH_BYTES>() else {
        return Some(LENGTH_BYTES - inbox.len());
    };
    let len = usize::from(u16::from_be_bytes(*len));
    (len <= bytes_max && len > 0).then(|| len.saturating_sub(rest.len()))
}

/// What an answer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// The name of an address, with dots.
    Ptr(String),
}

impl Record {
    /// Writes it, of the question's name.
    fn emit(&self, answer: &mut Vec<u8>) {
        let (kind, data): (u16, Vec<u8>) = match self {
            Self::A(address) => (1, address.octets().into()),
            Self::Aaaa(address) => (28, address.octets().into()),
            Self::Ptr(name) => (12, encoded(name)),
        };
        // The name is where the question has it.
        answer.extend_from_slice(&[0xc0, HEADER_BYTES as u8]);
        answer.extend_from_slice(&kind.to_be_bytes());
        answer.extend_from_slice(&CLASS_IN.to_be_bytes());
        answer.extend_from_slice(&TTL_S.to_be_bytes());
        answer.extend_from_slice(&(data.len() as u16).to_be_bytes());
        answer.extend_from_slice(&data);
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let labels = labels.filter(|label| label.len() <= LABEL_BYTES_MAX);
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    let mut bytes: Vec<u8> = labels.flat_map(label).collect();
    bytes.push(0);
    bytes
}

/// The name at `at`, which is not compressed in a question, and where it ends.
fn name_at(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    loop {
        let len = usize::from(*message.get(at)?);
        at += 1;
        if len == 0 {
            return Some((name, at));
        }
        let label = message.get(at..at + len)?;
        if len > LABEL_BYTES_MAX || name.len() + len > NAME_BYTES_MAX {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        let small = label.iter().map(u8::to_ascii_lowercase);
        name.extend(small.map(char::from));
        at += len;
    }
}

fn u16_at(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

/// The address whose name `name` asks for: `4.3.89.10.in-addr.arpa`.
pub fn reversed(name: &str) -> Option<Ipv4Addr> {
    let numbers = name.strip_suffix(".in-addr.arpa")?;
    let turned: Vec<&str> = numbers.rsplit('.').collect();
    turned.join(".").parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A question as a resolver sends it.
    pub(crate) fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend(encoded(name));
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&CLASS_IN.to_be_bytes());
        message
    }

    #[test]
    fn a_question_is_read_and_its_answer_repeats_it() {
        let message = question("DB.Back", 1);
        let question = Question::parse(&message).expect("a question");
        assert_eq!(
            (question.name.as_str(), question.kind),
            ("db.back", Kind::A)
        );
        let answer = question.answer(
            Outcome::Found,
            &[Record::A([10, 89, 3, 2].into())],
            DATAGRAM_BYTES_MAX,
        );
        assert_eq!(
            answer[..12],
            [0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]
        );
        assert_eq!(answer[12..message.len()], message[12..]);
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 89, 3, 2];
        assert_eq!(answer[message.len()..], record);
        let none = question.answer(Outcome::NoSuchName, &[], DATAGRAM_BYTES_MAX);
        assert_eq!((none[3], none.len()), (0x83, message.len()));
    }

    #[test]
    fn an_answer_that_is_too_long_says_so_and_a_stream_has_all_of_it() {
        let message = question("many", 28);
        let question = Question::parse(&message).expect("a question");
        let records: Vec<Record> = (0..300)
            .map(|number| Record::Aaaa(Ipv6Addr::from(number)))
            .collect();
        let short = question.answer(Outcome::Found, &records, DATAGRAM_BYTES_MAX);
        let fit = (DATAGRAM_BYTES_MAX - message.len()) / 28;
        assert_eq!(short.len(), message.len() + fit * 28);
        assert_eq!(
            (short[2] & TRUNCATED, usize::from(short[7])),
            (TRUNCATED, fit)
        );
        let whole = question.answer(Outcome::Found, &records, STREAM_BYTES_MAX);
        assert_eq!(whole.len(), message.len() + 300 * 28);
        assert_eq!((whole[2] & TRUNCATED, &whole[6..8]), (0, &[1, 44][..]));
        // One of another server, which the switch only passes on.
        let cut = truncated(&whole).expect("a message");
        assert_eq!(cut[2], whole[2] | TRUNCATED);
        assert_eq!((&cut[6..12], &cut[12..]), (&[0; 6][..], &message[12..]));
        for len in 0..message.len() {
            assert_eq!(truncated(&whole[..len]), None);
        }
    }

    #[test]
    fn what_is_no_question_is_not_read_wherever_it_is_cut() {
        let message = question("db", 28);
        for len in 0..message.len() {
            assert_eq!(Question::parse(&message[..len]), None);
        }
        let mut answer = message.clone();
        answer[2] |= RESPONSE;
        assert_eq!(Question::parse(&answer), None);
        let mut compressed = message;
        compressed[12] = 0xc0;
        assert_eq!(Question::parse(&compressed), None);
        let endless = question(&["a"; 200].join("."), 1);
        assert_eq!(Question::parse(&endless), None);
    }

    #[test]
    fn a_message_over_tcp_lacks_its_length_then_the_rest() {
        let lacks = |inbox: &[u8]| missing(inbox, 3);
        assert_eq!((lacks(&[]), lacks(&[0])), (Some(2), Some(1)));
        assert_eq!((lacks(&[0, 3]), lacks(&[0, 3, 7, 8])), (Some(3), Some(1)));
        // What follows is the next one's.
        assert_eq!(lacks(&[0, 3, 7, 8, 9, 0, 1]), Some(0));
        assert_eq!((lacks(&[0, 0]), lacks(&[0, 4])), (None, None));
    }

    #[test]
    fn an_address_is_read_backwards() {
        assert_eq!(
            reversed("4.3.89.10.in-addr.arpa"),
            Some([10, 89, 3, 4].into())
        );
        assert_eq!(reversed("3.89.10.in-addr.arpa"), None);
        assert_eq!(reversed("db"), None);
    }
}
