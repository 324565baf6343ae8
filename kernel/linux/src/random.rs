//! getrandom.

use kernel::user;
use linux_raw_sys::general::{__NR_getrandom, GRND_INSECURE, GRND_NONBLOCK, GRND_RANDOM};

use crate::call::{Arg, Call, Entry, Outcome};
use crate::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_getrandom,
    name: "getrandom",
    args: &[Arg::Address, Arg::Size, Arg::Flags],
    handler: getrandom,
}];

/// Bytes made at a time.
const CHUNK_BYTES: usize = 256;
/// The most that one call returns; a signal may end it after a chunk.
const CALL_BYTES_MAX: usize = 32 << 20;

fn getrandom(call: Call<'_>) -> Outcome {
    let flags = call.uint(2);
    let contradiction = GRND_RANDOM | GRND_INSECURE;
    if flags & !(GRND_NONBLOCK | contradiction) != 0 || flags & contradiction == contradiction {
        return Err(Errno::EINVAL);
    }
    let wanted = call.size(1).min(CALL_BYTES_MAX);
    let mut done = 0;
    let mut chunk = [0; CHUNK_BYTES];
    while done < wanted && !(done > 0 && call.thread.has_deliverable_signal()) {
        let len = (wanted - done).min(CHUNK_BYTES);
        let Some(part) = chunk.get_mut(..len) else {
            break;
        };
        kernel::random::fill(part);
        user::copy_out(part, call.addr(0) + done as u64)?;
        done += len;
    }
    Ok(done)
}
