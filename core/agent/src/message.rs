//! Frames, in the types that prove what they are.

use alloc::vec::Vec;

use crate::{PAYLOAD_BYTES_MAX, Refusal, SEED_BYTES, Window};

/// A message on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Which command it is about; 0 for process 1.
    pub channel: u16,
    /// What it says.
    pub message: Message<'a>,
}

/// What a machine that goes on from a snapshot cannot know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Renewal {
    /// What the host's clock shows: nanoseconds since 1970.
    pub since_1970_ns: u64,
    /// What no other machine of the snapshot is told.
    pub seed: [u8; SEED_BYTES],
}

/// What a frame says. `host` and `kernel` are who sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// host: part of a request; more follows.
    ExecPart(&'a [u8]),
    /// host: the request's last part.
    Exec(&'a [u8]),
    /// host: bytes for descriptor 0.
    Stdin(&'a [u8]),
    /// host: no more of them.
    StdinEnd,
    /// host: the terminal's size.
    Window(Window),
    /// host: the number of a signal for the command.
    Signal(u8),
    /// host: nobody listens any more. The channel is free only with its last frame.
    Close,
    /// host, for the machine: it goes on from a snapshot. Of no channel there was before is anything known any more.
    Renew(Renewal),
    /// both: so many bytes more may be sent.
    Credit(u32),
    /// kernel: bytes from descriptor 1, or from the terminal.
    Stdout(&'a [u8]),
    /// kernel: bytes from descriptor 2.
    Stderr(&'a [u8]),
    /// kernel, the last: the command has ended, or runs if it was to be detached.
    Exit(u8),
    /// kernel, the last: the command did not start.
    Refused(Refusal),
}

const EXEC_PART: u8 = 1;
const EXEC: u8 = 2;
const STDIN: u8 = 3;
const STDIN_END: u8 = 4;
const WINDOW: u8 = 5;
const SIGNAL: u8 = 6;
const CLOSE: u8 = 7;
const CREDIT: u8 = 8;
const STDOUT: u8 = 9;
const STDERR: u8 = 10;
const EXIT: u8 = 11;
const REFUSED: u8 = 12;
const RENEW: u8 = 13;

impl Renewal {
    fn decode(payload: &[u8]) -> Option<Self> {
        let (since_1970_ns, seed) = payload.split_first_chunk()?;
        Some(Self {
            since_1970_ns: u64::from_le_bytes(*since_1970_ns),
            seed: seed.try_into().ok()?,
        })
    }
}

impl<'a> Message<'a> {
    /// What `kind` and `payload` say; `None` if that is nothing.
    pub(crate) fn decode(kind: u8, payload: &'a [u8]) -> Option<Self> {
        Some(match (kind, payload) {
            (EXEC_PART, bytes) => Self::ExecPart(bytes),
            (EXEC, bytes) => Self::Exec(bytes),
            (STDIN, bytes) => Self::Stdin(bytes),
            (STDIN_END, []) => Self::StdinEnd,
            (WINDOW, &[r0, r1, c0, c1]) => Self::Window(Window {
                rows: u16::from_le_bytes([r0, r1]),
                columns: u16::from_le_bytes([c0, c1]),
            }),
            (SIGNAL, &[number]) => Self::Signal(number),
            (CLOSE, []) => Self::Close,
            (CREDIT, &[a, b, c, d]) => Self::Credit(u32::from_le_bytes([a, b, c, d])),
            (STDOUT, bytes) => Self::Stdout(bytes),
            (STDERR, bytes) => Self::Stderr(bytes),
            (EXIT, &[status]) => Self::Exit(status),
            (RENEW, bytes) => Self::Renew(Renewal::decode(bytes)?),
            (REFUSED, &[reason]) => Self::Refused(Refusal::of_code(reason)?),
            _ => return None,
        })
    }

    /// Whether the channel ends with it.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Exit(_) | Self::Refused(_))
    }

    fn with_payload<R>(&self, take: impl FnOnce(u8, &[u8]) -> R) -> R {
        match *self {
            Self::ExecPart(bytes) => take(EXEC_PART, bytes),
            Self::Exec(bytes) => take(EXEC, bytes),
            Self::Stdin(bytes) => take(STDIN, bytes),
            Self::StdinEnd => take(STDIN_END, &[]),
            Self::Window(Window { rows, columns }) => {
                let ([r0, r1], [c0, c1]) = (rows.to_le_bytes(), columns.to_le_bytes());
                take(WINDOW, &[r0, r1, c0, c1])
            }
            Self::Signal(number) => take(SIGNAL, &[number]),
            Self::Close => take(CLOSE, &[]),
            Self::Renew(Renewal {
                since_1970_ns,
                seed,
            }) => {
                let mut payload = [0; size_of::<u64>() + SEED_BYTES];
                let (time, rest) = payload.split_at_mut(size_of::<u64>());
                time.copy_from_slice(&since_1970_ns.to_le_bytes());
                rest.copy_from_slice(&seed);
                take(RENEW, &payload)
            }
            Self::Credit(bytes) => take(CREDIT, &bytes.to_le_bytes()),
            Self::Stdout(bytes) => take(STDOUT, bytes),
            Self::Stderr(bytes) => take(STDERR, bytes),
            Self::Exit(status) => take(EXIT, &[status]),
            Self::Refused(reason) => take(REFUSED, &[reason.code()]),
        }
    }
}

impl Frame<'_> {
    /// Makes `to` the bytes of the frame, [`FRAME_BYTES_MAX`](crate::FRAME_BYTES_MAX) at most. Payload beyond
    /// [`PAYLOAD_BYTES_MAX`] is left out.
    pub fn encode(&self, to: &mut Vec<u8>) {
        self.message.with_payload(|kind, payload| {
            let payload = payload.get(..PAYLOAD_BYTES_MAX).unwrap_or(payload);
            let ([c0, c1], [l0, l1]) = (
                self.channel.to_le_bytes(),
                // At most 4096.
                (payload.len() as u16).to_le_bytes(),
            );
            to.clear();
            to.extend_from_slice(&[c0, c1, kind, 0, l0, l1]);
            to.extend_from_slice(payload);
        });
    }
}
