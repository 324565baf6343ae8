//! A path that is narrower than both ends know: a router says so by ICMP, and the machine's
//! packets fit from then on.
//!
//! The router is our namespace, and a second one behind it is far away. The link between them
//! takes 1300 bytes on our side, which nobody can see but by trying.

use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::{fs, thread, time::Duration};

use qemu::namespace::MACHINE;

use crate::Test;
use crate::guest::Setup;
use crate::ipv6::{counter, fetch, nginx_machine, run};
use crate::redis_leaks::STOP;
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[(
    "nginx reaches clients of both families behind a narrow link",
    behind_a_narrow_link,
)];

const LINK_MTU: u32 = 1300;
/// How long the second namespace may take.
const TRIES: u32 = 250;

fn behind_a_narrow_link(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    let far = Far::start()?;
    let Some((mut operator, six)) = nginx_machine(setup)? else {
        return Ok(());
    };
    let before = counter(&mut operator, "Icmp6InPktTooBigs")?;
    let id = far.0.id().to_string();
    let enter = ["-t", &id, "-n", "curl"];
    for address in [six, SocketAddr::new(IpAddr::V4(MACHINE), 80)] {
        fetch(&operator, "nsenter", &enter, address)?;
    }
    let after = counter(&mut operator, "Icmp6InPktTooBigs")?;
    if after == before {
        return Err("no router said that a packet was too big".into());
    }
    operator.ask(STOP)?;
    expect_status(&operator.leave()?, 0)
}

/// A process in a namespace of its own; dropping it ends both.
struct Far(Child);

impl Far {
    fn start() -> Result<Self, String> {
        let child = Command::new("unshare")
            .args(["--net", "--", "sleep", "1000"])
            .stdin(Stdio::null())
            .spawn();
        let far = Self(child.map_err(|error| format!("unshare: {error}"))?);
        let id = far.0.id().to_string();
        far.wait_until_apart()?;
        let own = [
            format!("link add far0 type veth peer name far1 netns {id}"),
            "address add 10.0.3.1/24 dev far0".into(),
            "address add fd00:51e8::1/64 dev far0 nodad".into(),
            format!("link set far0 mtu {LINK_MTU} up"),
        ];
        let theirs = [
            "address add 10.0.3.2/24 dev far1",
            "address add fd00:51e8::2/64 dev far1 nodad",
            "link set far1 up",
            "route add default via 10.0.3.1",
            "route add default via fd00:51e8::1",
        ];
        own.iter().try_for_each(|step| ip(&[], step))?;
        let inside = ["nsenter", "-t", &id, "-n"];
        theirs.iter().try_for_each(|step| ip(&inside, step))?;
        for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let path = format!("/proc/sys/net/{switch}");
            fs::write(&path, "1").map_err(|error| format!("{path}: {error}"))?;
        }
        Ok(far)
    }

    /// Waits until the child has left our namespace.
    fn wait_until_apart(&self) -> Result<(), String> {
        let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net"));
        for _ in 0..TRIES {
            let theirs = namespace(&self.0.id().to_string());
            if theirs.is_ok_and(|theirs| namespace("self").is_ok_and(|ours| ours != theirs)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err("the second namespace does not come".into())
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `ip`, behind other words if there are any.
fn ip(before: &[&str], step: &str) -> Result<(), String> {
    let words: Vec<&str> = before
        .iter()
        .copied()
        .chain(["ip"])
        .chain(step.split(' '))
        .collect();
    match run(words[0], &words[1..])? {
        (_, true) => Ok(()),
        (said, false) => Err(format!("ip {step}: {said}")),
    }
}
