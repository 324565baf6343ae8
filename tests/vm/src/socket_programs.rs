//! The C programs of `tests/programs` that use sockets, with `libsietch.so` in front (`docs/bypass.md`).
//!
//! Their checks are the same as without it, for a program must see the kernel's sockets. With 127.0.0.1 the
//! library hands a socket over to the kernel as soon as it has a name or a peer, and nobody must notice. Built with
//! the link's address in loopback's place, both ends of each conversation are on the library's own stack.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Test;
use crate::build::{self, Link};
use crate::bypass::{PROGRAM, VARIABLES, operator_of};
use crate::guest::Setup;

/// The tests of sockets that the library hands over.
pub const TESTS_OF_LOOPBACK: &[Test] = &[(
    "C programs with sockets do by libsietch.so on 127.0.0.1 what they do without",
    on_loopback,
)];

/// And of those on its stack.
pub const TESTS_OF_LINK: &[Test] = &[(
    "C programs with sockets do on the stack of libsietch.so what they do on the kernel's",
    on_the_link,
)];

/// Whose sockets the library hands over.
const ON_LOOPBACK: &[&str] = &[
    "async_io",
    "blocked_sockets",
    "call_errors",
    "epoll",
    "events",
    "file_descriptors",
    "fork_sharing",
    "inet_options",
    "io_uring_limits",
    "io_uring_ring",
    "loopback_order",
    "loopback_wakes",
    "low_water",
    "net_queues",
    "net_sendfile",
    "net_tcp",
    "net_udp",
    "net_udp_segments",
    "net_v6",
    "restarted_calls",
    "socket_buffers",
    "socket_edges",
    "socket_filters",
    "tcp_options",
    "udp_cork",
    "udp_errors",
    "udp_sizes",
    "unix_circles",
    "unix_edges",
    "unix_socket",
    "user_copies",
];
/// What is seen of that: a program, its check, and why it cannot be.
const SEEN_ON_LOOPBACK: &[Difference] = &[];

/// Whose sockets are on its stack. Not those that are all about what the stack has not (`docs/bypass.md`, "Not here"):
/// net_queues (/proc/net), net_zerocopy, socket_devices, socket_filters, udp_cork; nor
/// user_copies, which passes bad pointers.
const ON_THE_LINK: &[&str] = &[
    "blocked_sockets",
    "epoll",
    "fork_sharing",
    "loopback_order",
    "loopback_wakes",
    "low_water",
    "inet_options",
    "io_uring_limits",
    "io_uring_ring",
    "net_sendfile",
    "net_splice",
    "net_tcp",
    "net_udp",
    "net_udp_segments",
    "net_v6",
    "restarted_calls",
    "socket_buffers",
    "socket_edges",
    "tcp_options",
    "udp_errors",
    "udp_sizes",
];
/// As above.
const SEEN_ON_THE_LINK: &[Difference] = &[
    ("inet_options", "what is gathered counts", CORK),
    (
        "inet_options",
        "IPv6's options tell nothing of IPv4's packets",
        SIX,
    ),
    ("inet_options", "IPv4's tell the destination", SIX),
    ("inet_options", "and the hops", SIX),
    (
        "net_splice",
        "a_file_reaches_the_peer_from_any_byte_on_and_in_any_steps",
        SPLICE,
    ),
    (
        "net_splice",
        "a_peer_sees_what_was_written_to_the_file_meanwhile",
        SPLICE,
    ),
    (
        "net_udp_segments",
        "what was sent together is read together, with the size",
        JOINED,
    ),
    ("net_udp_segments", "one alone is as ever", JOINED),
    (
        "net_udp_segments",
        "each datagram's end can be told",
        JOINED,
    ),
    ("net_tcp", "an IPv4 client reaches it", SIX),
    ("net_tcp", "and appears with a mapped address", SIX),
];
const CORK: &str = "datagrams are not gathered (UDP_CORK)";
const JOINED: &str = "datagrams that come are not joined (UDP_GRO)";
const SIX: &str = "a socket of IPv6 is the kernel's, and not reached by the link";
const SPLICE: &str = "splice(2) is refused";

/// A program, a check of its that fails, and why that has to be.
type Difference = (&'static str, &'static str, &'static str);

/// One of them starts it.
const SHELL: &str = "/bin/busybox:/bin/sh";
const SEQUENCE: &str = "tests/harness/sequence.c";
const PATIENCE: Duration = Duration::from_secs(300);

fn on_loopback(setup: &Setup) -> Result<(), String> {
    let build = |source: &Path| build::c(source);
    expect(setup, ON_LOOPBACK, SEEN_ON_LOOPBACK, build)
}

fn on_the_link(setup: &Setup) -> Result<(), String> {
    let build = |source: &Path| build::c_with_loopback(source, PROGRAM);
    expect(setup, ON_THE_LINK, SEEN_ON_THE_LINK, build)
}

/// Runs the programs; what fails must be what is known to.
fn expect(
    setup: &Setup,
    names: &[&str],
    known: &[Difference],
    build: impl Fn(&Path) -> Result<PathBuf, String>,
) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let source = |name: &&str| PathBuf::from(format!("tests/programs/{name}.c"));
    let programs = names.iter().map(source).map(|source| build(&source));
    let said = run(setup, names, &programs.collect::<Result<Vec<_>, _>>()?)?;
    if !said.contains("# end of sequence") || said.contains("libsietch:") {
        return Err(said);
    }
    let failed = failures(&said);
    let is_known = |(program, line): &(String, String)| {
        let mut known = known.iter();
        known.any(|(of, check, _)| program == of && line.starts_with(&format!("{check}:")))
    };
    let unknown: Vec<_> = failed.iter().filter(|failure| !is_known(failure)).collect();
    if !unknown.is_empty() {
        return Err(format!("{unknown:#?}"));
    }
    match failed.len() == known.len() {
        true => Ok(()),
        false => Err(format!("of {known:#?} only these are left: {failed:#?}")),
    }
}

/// What the programs print, one after the other.
fn run(setup: &Setup, names: &[&str], programs: &[PathBuf]) -> Result<String, String> {
    let sequence = build::c_linked(Path::new(SEQUENCE), Link::StaticMusl)?;
    let sequence = format!("{}:/bin/sequence", sequence.display());
    let places: Vec<String> = names.iter().map(|name| format!("/tests/{name}")).collect();
    let added = programs.iter().zip(&places);
    let added: Vec<String> = added
        .map(|(program, place)| format!("{}:{place}", program.display()))
        .collect();
    let files: Vec<&str> = added.iter().map(String::as_str).collect();
    let mut shell = operator_of(
        setup,
        "512M",
        &[&[SHELL, sequence.as_str()], &files[..]].concat(),
    )?;
    let places = places.join(" ");
    let said = shell.ask_within(&format!("cd /tmp; {VARIABLES} sequence {places}"), PATIENCE)?;
    shell.leave()?;
    Ok(said)
}

/// The programs whose checks failed, and these.
fn failures(said: &str) -> Vec<(String, String)> {
    let mut program = String::new();
    let mut failed = Vec::new();
    for line in said.lines().map(str::trim) {
        match (line.strip_prefix("# "), line.strip_prefix("not ok ")) {
            (Some(name), _) => program = name.into(),
            (_, Some(check)) => failed.push((program.clone(), check.into())),
            _ => {}
        }
    }
    failed
}
