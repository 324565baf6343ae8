//! add_key, request_key, keyctl: keys that the kernel keeps for programs (keyrings(7)).
//!
//! There are none: we answer as a Linux that was built without them (`CONFIG_KEYS`), for which whoever calls has a
//! way, as pam_keyinit(8) does at each log-in. Docker refuses these calls as well.

use linux_raw_sys::general::*;

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_add_key,
        name: "add_key",
        args: &[Arg::Path, Arg::Path, Arg::Address, Arg::Size, Arg::Int],
        handler: absent,
    },
    Entry {
        number: __NR_request_key,
        name: "request_key",
        args: &[Arg::Path, Arg::Path, Arg::Path, Arg::Int],
        handler: absent,
    },
    Entry {
        number: __NR_keyctl,
        name: "keyctl",
        args: &[
            Arg::Int,
            Arg::Address,
            Arg::Address,
            Arg::Address,
            Arg::Address,
        ],
        handler: absent,
    },
];

fn absent(_: Call<'_>) -> Outcome {
    Err(Errno::ENOSYS)
}
