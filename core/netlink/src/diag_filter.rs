//! The little programs by which `ss` selects sockets (`struct inet_diag_bc_op`).
//!
//! An instruction is `code[1] yes[1] no[2]`, and what it compares with behind it. `yes` and
//! `no` say how many bytes further the next one is if the comparison holds or not. To reach
//! the end exactly is "selected", four bytes beyond it is "not selected".
//!
//! Invariant **Forward:** `yes` and `no` lead at least past the instruction, so a run takes at
//! most a quarter as many steps as there are bytes. Linux's rules (`inet_diag_bc_audit`).
//!
//! Not here: control groups (code 13), which Linux refuses too if it is built without them.

use core::net::{IpAddr, SocketAddr};

use crate::diag::SocketId;
use crate::fields::{array, u8_at, u16_at, u32_at};
use crate::ip;

/// Longer programs are refused: to check one takes steps by the square of its length.
pub const FILTER_BYTES_MAX: usize = 4096;

const OP_BYTES: usize = 4;
const NOTHING: u8 = 0;
const JUMP: u8 = 1;

/// A socket, as far as filters ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its ends and link.
    pub id: SocketId,
    /// Whether the kernel chose its port.
    pub is_port_automatic: bool,
    /// Its mark.
    pub mark: u32,
}

/// A program that was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiagFilter<'a>(&'a [u8]);

impl<'a> DiagFilter<'a> {
    /// Checks a program; `None` if Linux would refuse it too, or it is too long.
    pub fn check(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() > FILTER_BYTES_MAX {
            return None;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let op = Op::read(rest)?;
            let reach = rest.len() + OP_BYTES;
            let is_step =
                |step: usize| (op.bytes..=reach).contains(&step) && step.is_multiple_of(4);
            let is_jump = op.code == NOTHING || is_step(op.no) && is_start(bytes, rest, op.no);
            if !is_jump || !is_step(op.yes) {
                return None;
            }
            rest = rest.get(op.yes..)?;
        }
        Some(Self(bytes))
    }

    /// The program; to check it again leads to the same.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Whether the program selects the socket.
    pub fn selects(&self, socket: &Candidate) -> bool {
        let mut rest = self.0;
        while !rest.is_empty() {
            // By the checks each step leads to an instruction, to the end, or beyond it.
            let Some(op) = Op::read(rest) else {
                return false;
            };
            let step = if op.holds(socket) { op.yes } else { op.no };
            match rest.get(step..) {
                Some(further) => rest = further,
                None => return false,
            }
        }
        true
    }
}

/// Whether the place `step` bytes into `rest` starts an instruction of `all`, or is not before
/// the end.
fn is_start(all: &[u8], rest: &[u8], step: usize) -> bool {
    let Some(left) = rest.len().checked_sub(step).filter(|&left| left > 0) else {
        return true;
    };
    let mut from = all;
    while from.len() > left {
        let yes = usize::from(u8_at(from, 1));
        if yes < OP_BYTES || !yes.is_multiple_of(4) {
            return false;
        }
        from = from.get(yes..).unwrap_or_default();
    }
    from.len() == left
}

#[derive(Clone, Copy)]
enum End {
    Local,
    Remote,
}

/// What an instruction asks.
enum Question<'a> {
    Always,
    Never,
    IsPortAutomatic,
    Port(End, fn(&u16, &u16) -> bool, u16),
    Host(End, Host<'a>),
    Link(u32),
    Mark { mark: u32, mask: u32 },
}

/// An address's first bits and a port, each optional.
struct Host<'a> {
    family: u8,
    prefix_len: usize,
    port: Option<u16>,
    address: &'a [u8],
}

struct Op<'a> {
    code: u8,
    /// Bytes with what is compared.
    bytes: usize,
    yes: usize,
    no: usize,
    question: Question<'a>,
}

impl<'a> Op<'a> {
    /// The instruction at the start of `rest`, if it is whole.
    fn read(rest: &'a [u8]) -> Option<Self> {
        let (head, behind) = rest.split_at_checked(OP_BYTES)?;
        let code = u8_at(head, 0);
        let (question, bytes) = Question::read(code, behind)?;
        Some(Self {
            code,
            bytes: OP_BYTES + bytes,
            yes: u8_at(head, 1).into(),
            no: u16_at(head, 2).into(),
            question,
        })
    }

    fn holds(&self, socket: &Candidate) -> bool {
        let end = |end| match end {
            End::Local => socket.id.local,
            End::Remote => socket.id.remote,
        };
        match &self.question {
            Question::Always => true,
            Question::Never => false,
            Question::IsPortAutomatic => socket.is_port_automatic,
            Question::Port(which, compare, port) => compare(&end(*which).port(), port),
            Question::Host(which, host) => host.matches(end(*which)),
            Question::Link(link) => socket.id.link == *link,
            Question::Mark { mark, mask } => socket.mark & mask == *mark,
        }
    }
}

impl<'a> Question<'a> {
    /// What a code asks, and how many bytes behind the instruction it compares with.
    fn read(code: u8, behind: &'a [u8]) -> Option<(Self, usize)> {
        // A port is in the second half of what looks like an instruction.
        let port = |end, compare| {
            let (bytes, _) = behind.split_at_checked(4)?;
            Some((Self::Port(end, compare, u16_at(bytes, 2)), 4))
        };
        let host = |end| {
            let (host, bytes) = Host::read(behind)?;
            Some((Self::Host(end, host), bytes))
        };
        match code {
            NOTHING => Some((Self::Always, 0)),
            JUMP => Some((Self::Never, 0)),
            2 => port(End::Local, u16::ge),
            3 => port(End::Local, u16::le),
            4 => port(End::Remote, u16::ge),
            5 => port(End::Remote, u16::le),
            6 => Some((Self::IsPortAutomatic, 0)),
            7 => host(End::Local),
            8 => host(End::Remote),
            9 if behind.len() >= 4 => Some((Self::Link(u32_at(behind, 0)), 4)),
            10 if behind.len() >= 8 => {
                let (mark, mask) = (u32_at(behind, 0), u32_at(behind, 4));
                Some((Self::Mark { mark, mask }, 8))
            }
            11 => port(End::Local, u16::eq),
            12 => port(End::Remote, u16::eq),
            _ => None,
        }
    }
}

impl<'a> Host<'a> {
    /// `family[1] prefix[1] 0[2] port[4] address`: the address has its family's length.
    fn read(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (head, behind) = bytes.split_at_checked(8)?;
        let family = u8_at(head, 0);
        let address_bytes = match family {
            0 => 0,
            ip::V4 => 4,
            ip::V6 => 16,
            _ => return None,
        };
        let prefix_len = usize::from(u8_at(head, 1));
        let host = Self {
            family,
            prefix_len,
            // All ones mean any. No socket has a number beyond 65535: Linux would take it
            // and select nothing, which no tool asks for.
            port: match u32_at(head, 4) {
                u32::MAX => None,
                port => Some(u16::try_from(port).ok()?),
            },
            address: behind.get(..address_bytes)?,
        };
        (prefix_len <= 8 * address_bytes).then_some((host, 8 + address_bytes))
    }

    fn matches(&self, end: SocketAddr) -> bool {
        if self.port.is_some_and(|port| port != end.port()) {
            return false;
        }
        match (self.family, end.ip()) {
            (0, _) => true,
            (ip::V4, IpAddr::V4(address)) => self.starts(&address.octets()),
            (ip::V6, IpAddr::V6(address)) => self.starts(&address.octets()),
            // An IPv6 socket that speaks IPv4.
            (ip::V4, IpAddr::V6(address)) => address
                .to_ipv4_mapped()
                .is_some_and(|address| self.starts(&address.octets())),
            _ => false,
        }
    }

    fn starts(&self, octets: &[u8]) -> bool {
        let (whole, bits) = (self.prefix_len / 8, self.prefix_len % 8);
        let mask = !(0xff_u8.checked_shr(bits as u32).unwrap_or(0));
        let differ = |at| array::<1>(octets, at)[0] ^ array::<1>(self.address, at)[0];
        (0..whole).all(|at| differ(at) == 0) && differ(whole) & mask == 0
    }
}
