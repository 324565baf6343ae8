//! Where an operator asks for a newer library: a unix socket of an abstract name, `sietch-PID`, that takes a path and
//! answers with a sentence. Only root and the program's own user are heard (SO_PEERCRED), who could replace its memory
//! anyway.

use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process;
use std::time::Duration;

use crate::exchange;
use crate::keeper;
use crate::numbers::{self, Whose};
use crate::state;

/// Bytes of a path (PATH_MAX).
const PATH_MAX: u64 = 4096;
/// Who asks says what within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs when the library is loaded, before sockets are taken over that were left to the program (`inherited_fds`).
#[used]
#[unsafe(link_section = ".init_array.00200")]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    // Nobody has before.
    state::CONTROL.set(start).ok();
}

/// Listens, on a thread of its own; `None` if it cannot: then nobody can ask.
fn start() -> Option<OwnedFd> {
    let name = SocketAddr::from_abstract_name(format!("sietch-{}", process::id())).ok()?;
    let listener = OwnedFd::from(UnixListener::bind_addr(&name).ok()?);
    let number = listener.as_raw_fd();
    numbers::set(number, Whose::Library);
    keeper::spawn("sietch-control", move || listen(number));
    Some(listener)
}

/// Until the library has been exchanged, or in vain.
fn listen(number: c_int) {
    // SAFETY: **Ours**; it is closed by the state that has it, at the end of an exchange that this thread does.
    let listener = mem::ManuallyDrop::new(unsafe { UnixListener::from_raw_fd(number) });
    while let Ok((peer, _)) = listener.accept() {
        if serve(peer).is_ok_and(|is_over| is_over) {
            return;
        }
    }
}

/// Does what one asks for; whether the library's part is over.
fn serve(mut peer: UnixStream) -> io::Result<bool> {
    if !may_ask(&peer) {
        peer.write_all(b"no: only root and the program's own user may ask for that\n")?;
        return Ok(false);
    }
    peer.set_read_timeout(Some(PATIENCE))?;
    let mut path = String::new();
    (&peer).take(PATH_MAX).read_to_string(&mut path)?;
    let outcome = exchange::exchange(&path);
    let answer = match &outcome {
        Ok(done) => format!("ok: {done}\n"),
        Err(why) => format!("no: {why}\n"),
    };
    // Who has asked may be gone; what was done is done.
    peer.write_all(answer.as_bytes()).ok();
    Ok(outcome.is_ok())
}

fn may_ask(peer: &UnixStream) -> bool {
    // SAFETY: all zeros is a credential.
    let mut who: libc::ucred = unsafe { mem::zeroed() };
    let mut len = size_of_val(&who) as libc::socklen_t;
    // SAFETY: both are ours, and as long as is said.
    let outcome = unsafe {
        libc::getsockopt(
            peer.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut who).cast(),
            &raw mut len,
        )
    };
    // SAFETY: no memory is passed.
    let own = unsafe { libc::geteuid() };
    outcome == 0 && (who.uid == 0 || who.uid == own)
}
