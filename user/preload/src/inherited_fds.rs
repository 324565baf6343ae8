//! Sockets go on in the program that this one becomes by execve(2), or starts (`posix`, `inherited_sockets`; `docs/bypass.md`, "exec").
//!
//! # Idea
//! What the library has is told in a memfd whose number the new program finds in its environment. The library's descriptors
//! that are needed there, the memfd, channels to who has connections (`claims`) and the queue of a process that has
//! some itself, lose FD_CLOEXEC just before the call and get it back if it fails. All states are locked from the copy
//! on, so that nothing comes of a connection that was copied.
//!
//! The new program may have been given another environment, and needs the library: its variables are added, too.
//!
//! # Not here
//! Programs that do not load the library (`without_library`). The accept queues of listeners. Epoll sets and a card of the
//! program's own, of which it is said.

use std::collections::HashMap;
use std::env;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::OnceLock;

use posix::InheritedSockets;

use crate::claims;
use crate::config;
use crate::exit;
use crate::inherited::{inode_of, is_kept, set_closed_by_exec};
use crate::numbers::{self, Whose};
use crate::shards::{self, Stopped};
use crate::state;
use crate::stdio;

/// The number of the memfd.
const INHERITED_FDS: &str = "SIETCH_INHERITED_FDS";
/// Without these the new program has no library, or no link.
const PRELOAD: &str = "LD_PRELOAD";
const VARIABLES: [&str; 4] = [PRELOAD, "SIETCH_LINK", "SIETCH_ADDRESS", "SIETCH_GATEWAY"];
/// Descriptors that are looked at where /proc is not mounted.
const NUMBERS_LOOKED_AT: c_int = 1024;
/// Bytes at most.
const BYTES_MAX: u64 = 1 << 30;

/// What this program was started with.
static STARTED_WITH: OnceLock<Vec<(&str, CString)>> = OnceLock::new();

/// Runs when the library is loaded, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = adopt;

extern "C" fn adopt() {
    let value = |name| CString::new(env::var_os(name)?.as_bytes()).ok();
    let all = VARIABLES.map(|name| Some((name, value(name)?)));
    STARTED_WITH.set(all.into_iter().flatten().collect()).ok();
    let Some(number) = env::var(INHERITED_FDS).ok() else {
        return;
    };
    // SAFETY: the program has no other thread yet that could read it.
    unsafe { env::remove_var(INHERITED_FDS) };
    if let Some(inherited) = number.parse().ok().and_then(take) {
        state::lock().adopt(&inherited, &numbers_by_inode());
        stdio::replace_standard();
    }
}

/// Reads what was left there. A number that is something else's is left alone.
fn take(number: c_int) -> Option<InheritedSockets> {
    inode_of(number, libc::S_IFREG)?;
    // SAFETY: it is closed only if it is the library's.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
    file.rewind().ok()?;
    let mut bytes = Vec::new();
    Read::take(&mut *file, BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    let inherited = InheritedSockets::decode(&bytes)?;
    drop(ManuallyDrop::into_inner(file));
    Some(inherited)
}

fn numbers_by_inode() -> HashMap<u64, Vec<u32>> {
    let listed = fs::read_dir("/proc/self/fd").map(|all| {
        let names = all.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.parse().ok()).collect()
    });
    let numbers: Vec<c_int> = listed.unwrap_or_else(|_| (0..NUMBERS_LOOKED_AT).collect());
    let mut found: HashMap<u64, Vec<u32>> = HashMap::new();
    for number in numbers {
        if let Some(inode) = inode_of(number, libc::S_IFSOCK) {
            found.entry(inode).or_default().push(number.cast_unsigned());
        }
    }
    found
}

/// What goes on in another program, which the call that starts it is about to find. Dropped, the call has failed, or has
/// started another process.
pub struct Leaving {
    file: OwnedFd,
    needed: Vec<c_int>,
}

impl Leaving {
    pub fn new(inherited: &InheritedSockets) -> Option<Self> {
        let file = claims::as_file(&inherited.encode()).ok()?;
        let channels = inherited.loans.iter().map(|left| left.what.0);
        let mut needed: Vec<c_int> = channels
            .chain(inherited.queue)
            .map(u32::cast_signed)
            .chain([file.as_raw_fd()])
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
            .iter()
            .for_each(|number| set_closed_by_exec(*number, false));
        Some(Self { file, needed })
    }

    /// Where the memfd is.
    pub fn number(&self) -> c_int {
        self.file.as_raw_fd()
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        for number in &self.needed {
            set_closed_by_exec(*number, true);
        }
    }
}

/// This process is about to become another program. Nothing may change until that call is over, even if nothing is left: a
/// connection that was claimed meanwhile would go without a word to its peer.
pub fn leave() -> (Option<Stopped>, Option<Leaving>) {
    if !exit::is_own_process() || !numbers::has_any() {
        return (None, None);
    }
    complain_of_card();
    let mut stopped = loop {
        exit::wait_for_claims();
        let stopped = shards::stop();
        // One that stands still is another process's soon.
        if !stopped.states[0].is_giving() {
            break stopped;
        }
    };
    complain_of_sets(&mut stopped);
    if let Some(host) = stopped.states[0].host().filter(|host| host.is_up()) {
        exit::deliver(host);
    }
    let inherited = stopped.states[0].sockets_for_exec();
    let leaving = (!inherited.is_empty()).then(|| Leaving::new(&inherited));
    (Some(stopped), leaving.flatten())
}

/// Says what is lost of epoll sets that execve leaves open.
fn complain_of_sets(stopped: &mut Stopped) {
    let hosts = stopped.states.iter_mut().filter_map(|state| state.host());
    let mut sets = hosts.flat_map(|host| host.numbered_sets());
    if sets.any(|(set, numbers)| is_kept(&numbers) && set.has_members()) {
        eprintln!(
            "libsietch: an epoll set goes on in the program that is started without the sockets that it has here."
        );
    }
}

/// Says what is lost of a card's sockets.
fn complain_of_card() {
    let card = config::get().filter(|config| config.is_card());
    let is_lost =
        |number: u32| numbers::seen(number.cast_signed()) == Whose::Socket && is_kept(&[number]);
    if let Some(card) = card
        && (0..numbers::end()).any(is_lost)
    {
        let link = &card.link;
        eprintln!(
            "libsietch: {link} has one queue: the program that is started cannot use its sockets."
        );
    }
}

/// The environment of a program that something is left to.
pub struct Environment {
    _added: Vec<CString>,
    all: Vec<*const c_char>,
}

impl Environment {
    /// # Safety
    /// The program's own pointers to strings, ended by a null, or null for none.
    pub unsafe fn with(given: *const *const c_char, leaving: &Leaving) -> Self {
        // SAFETY: the caller's word.
        let given = unsafe { list(given) };
        // SAFETY: the same.
        let text = |at: &*const c_char| unsafe { CStr::from_ptr(*at) };
        let is_of = |at: &*const c_char, name: &str| {
            let rest = text(at).to_bytes().strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first() == Some(&b'='))
        };
        let mut added = vec![format!("{INHERITED_FDS}={}", leaving.number()).into_bytes()];
        let mut replaced = vec![INHERITED_FDS];
        for (name, value) in STARTED_WITH.get().into_iter().flatten() {
            let value = value.to_bytes();
            let there = given.iter().find(|at| is_of(at, name));
            let there = there.map_or(&b""[..], |at| &text(at).to_bytes()[name.len() + 1..]);
            let merged = match (*name, there) {
                (_, b"") => value.to_vec(),
                (PRELOAD, there) if !contains(there, value) => [value, b":", there].concat(),
                _ => continue,
            };
            replaced.push(name);
            added.push([name.as_bytes(), b"=", &merged].concat());
        }
        let added: Vec<CString> = added.into_iter().flat_map(CString::new).collect();
        let kept = given
            .iter()
            .filter(|at| !replaced.iter().any(|name| is_of(at, name)));
        let mut all: Vec<_> = kept.copied().collect();
        all.extend(added.iter().map(|one| one.as_ptr()));
        all.push(ptr::null());
        Self { _added: added, all }
    }

    /// As the kernel wants it.
    pub fn pointer(&self) -> *const *const c_char {
        self.all.as_ptr()
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.split(|byte| *byte == b':' || *byte == b' ')
        .any(|one| part.split(|byte| *byte == b':').any(|other| one == other))
}

/// Strings ended by a null.
///
/// # Safety
/// They are.
pub unsafe fn list<'a>(at: *const *const c_char) -> &'a [*const c_char] {
    if at.is_null() {
        return &[];
    }
    let mut len = 0;
    // SAFETY: the caller's word.
    while !unsafe { *at.add(len) }.is_null() {
        len += 1;
    }
    // SAFETY: so many are there.
    unsafe { std::slice::from_raw_parts(at, len) }
}

/// The name under which a memfd is told to a program whose environment is ours.
pub fn set_variable(leaving: Option<&Leaving>) {
    match leaving {
        // SAFETY: as the C library's own functions that read it do, at the program's risk.
        Some(leaving) => unsafe { env::set_var(INHERITED_FDS, leaving.number().to_string()) },
        // SAFETY: the same.
        None => unsafe { env::remove_var(INHERITED_FDS) },
    }
}
