//! A server on the `tokio-uring` crate: rings of which Tokio's epoll set hears.

use std::net::Ipv4Addr;

use crate::Test;
use crate::build;
use crate::bypass::{PROGRAM, operator_of, sleeps, start};
use crate::guest::Setup;
use crate::operator::Operator;
use crate::socket_rings::{datagrams, streams};

/// The tests of this module.
pub const TESTS: &[Test] = &[
    (
        "a server on tokio-uring echoes by the kernel's sockets, root's and another user's",
        by_the_kernel,
    ),
    (
        "a server on tokio-uring echoes by libsietch.so, and sleeps while nothing comes",
        by_the_library,
    ),
];

const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// Who may have a low port, and is nobody else.
const OTHER_USER: &str = "/usr/bin/setpriv --reuid 4711 --clear-groups --inh-caps +net_bind_service \
                          --ambient-caps +net_bind_service";

fn operator(setup: &Setup) -> Result<Operator, String> {
    let server = build::tool("tokio-server", "tokio-uring-echo")?;
    let server = format!("{}:/bin/tokio-uring-echo", server.display());
    operator_of(setup, "256M", &[&server, "/usr/bin/setpriv"])
}

fn by_the_kernel(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    for user in ["", OTHER_USER] {
        let said = shell.ask(&format!(
            "{user} tokio-uring-echo >/tmp/said 2>&1 & \
             until grep -q serving /tmp/said || ! kill -0 $!; do sleep 0.1; done; cat /tmp/said"
        ))?;
        if !said.contains("serving") {
            return Err(format!("the program does not start: {said}"));
        }
        echoes(&mut shell, MACHINE)?;
    }
    shell.leave().map(drop)
}

fn by_the_library(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let mut shell = operator(setup)?;
    start(&mut shell, "tokio-uring-echo", "serving")?;
    let said = echoes(&mut shell, PROGRAM)?;
    if said.contains("libsietch:") {
        return Err(said);
    }
    shell.leave().map(drop)
}

/// All comes back, and no CPU is used afterwards. The server ends; what it has said.
fn echoes(shell: &mut Operator, address: Ipv4Addr) -> Result<String, String> {
    let done = datagrams(address).and_then(|()| streams(address));
    done.map_err(|error| shell.guest.explain(&error.to_string()))?;
    sleeps(shell)?;
    shell.ask("cat /tmp/said; kill $!; wait $!")
}
