//! Control messages of datagrams that are received. Which of them a socket's receiver wants is asked of the kernel's
//! socket behind the number once, and again when the program has changed it.

use std::ffi::{CString, c_int};
use std::sync::OnceLock;

use posix::{Messages, Wanted};

use crate::config;
use crate::next;
use crate::state::Held;
use crate::transfer::Received;

/// What is told of a datagram where there is `room` for it.
pub fn told(number: c_int, received: &Received, room: usize) -> Option<Messages> {
    let heard = received.heard.as_ref().filter(|_| room != 0)?;
    let wanted = match received.wanted {
        Some(wanted) => wanted,
        None => ask_for(number)?,
    };
    let interface = match wanted.contains(Wanted::PACKET_INFO) {
        true => interface(),
        false => 0,
    };
    Some(match &received.failure {
        None => Messages::of(heard, wanted, interface, room),
        Some(why) => Messages::of_failure((heard, why), wanted, interface, room),
    })
}

/// What the socket's receiver wants, noted for the next time; `None` if the number is no socket's any more.
#[cold]
fn ask_for(number: c_int) -> Option<Wanted> {
    let mut held = Held::of(number).ok()?;
    let open = held.host().socket(number.cast_unsigned()).ok()?;
    let wanted = kernels_options(number);
    open.set_wanted(Some(wanted));
    Some(wanted)
}

fn kernels_options(number: c_int) -> Wanted {
    let options = Wanted::OPTIONS.into_iter();
    let is_on = |&(_, level, name): &(Wanted, c_int, c_int)| {
        let mut value: c_int = 0;
        let mut len = size_of::<c_int>() as libc::socklen_t;
        let at = (&raw mut value).cast();
        // SAFETY: both are ours, and as long as is said.
        let outcome = unsafe { next::getsockopt.get()(number, level, name, at, &raw mut len) };
        outcome == 0 && value != 0
    };
    options.filter(is_on).map(|option| option.0).collect()
}

/// The number of the link's interface; zero if it has none, as a card that the kernel does not drive.
fn interface() -> u32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| {
        let name = config::get().and_then(|config| CString::new(config.link.to_string()).ok());
        // SAFETY: it is a string that ends.
        name.map_or(0, |name| unsafe { libc::if_nametoindex(name.as_ptr()) })
    })
}
