//! getrandom.

use linux_raw_sys::general::{__NR_getrandom, GRND_INSECURE, GRND_NONBLOCK, GRND_RANDOM};
use mm::io::partial;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::iovec;

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
    let to = &mut iovec::sink_at(&call, 0)?;
    let mut chunk = [0; CHUNK_BYTES];
    let is_done = |done| done == CALL_BYTES_MAX || call.thread.has_deliverable_signal();
    while to.remaining() != 0 && !(to.done() > 0 && is_done(to.done())) {
        let wanted = to.remaining().min(CHUNK_BYTES);
        let Some(bytes) = chunk.get_mut(..wanted) else {
            break;
        };
        random::fill(bytes);
        if let Err(error) = to.put(bytes) {
            return Ok(partial(to.done(), error)?);
        }
    }
    Ok(to.done())
}
