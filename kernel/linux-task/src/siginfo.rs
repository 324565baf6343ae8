//! `siginfo_t` in memory (asm-generic/siginfo.h): signal, error, code, then a union.

use task::signal::{Info, Origin, Signal};

/// Bytes of a `siginfo_t`.
pub const BYTES: usize = 128;
/// Where the union starts.
const UNION: usize = 16;
/// Nanoseconds of one tick of `clock_t`.
const CLOCK_NS: u64 = 10_000_000;

/// The structure under construction.
struct Writer([u8; BYTES]);

impl Writer {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn put_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }
}

/// As the program sees it.
pub fn encode(info: &Info) -> [u8; BYTES] {
    let mut out = Writer([0; BYTES]);
    out.put_u32(0, info.signal.number());
    out.put(8, &info.code.to_le_bytes());
    match info.origin {
        Origin::Kernel => {}
        Origin::Process { pid, uid } => {
            out.put_u32(UNION, pid);
            out.put_u32(UNION + 4, uid);
        }
        Origin::Value { pid, uid, value } => {
            out.put_u32(UNION, pid);
            out.put_u32(UNION + 4, uid);
            out.put_u64(UNION + 8, value);
        }
        Origin::Timer { id, overrun, value } => {
            out.put_u32(UNION, id);
            out.put_u32(UNION + 4, overrun);
            out.put_u64(UNION + 8, value);
        }
        Origin::Child {
            pid,
            uid,
            status,
            used,
        } => {
            out.put_u32(UNION, pid);
            out.put_u32(UNION + 4, uid);
            out.put_u32(UNION + 8, status);
            out.put_u64(UNION + 16, used.user_ns / CLOCK_NS);
            out.put_u64(UNION + 24, used.system_ns / CLOCK_NS);
        }
        Origin::Fault { address, .. } => out.put_u64(UNION, address),
        Origin::Call {
            address,
            number,
            architecture,
            reason,
        } => {
            out.put_u32(4, reason.into());
            out.put_u64(UNION, address);
            out.put_u32(UNION + 8, number);
            out.put_u32(UNION + 12, architecture);
        }
        Origin::File { fd, band } => {
            out.put_u64(UNION, u64::from(band));
            out.put_u32(UNION + 8, fd);
        }
    }
    out.0
}

/// What rt_sigqueueinfo(2) is given: the sender's words about itself and a value.
pub fn decode_queued(bytes: &[u8; BYTES], signal: Signal) -> Info {
    let word = |at: usize| {
        let bytes = bytes
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let value = u64::from(word(UNION + 12)) << 32 | u64::from(word(UNION + 8));
    let origin = Origin::Value {
        pid: word(UNION),
        uid: word(UNION + 4),
        value,
    };
    Info {
        signal,
        code: word(8) as i32,
        origin,
    }
}
