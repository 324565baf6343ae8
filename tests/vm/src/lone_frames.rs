//! A frame behind which no other comes, to a CPU that has several rings of the card.
//!
//! A quiet machine leaves all rings to one CPU. A frame may come by any of them: whole messages
//! of ICMPv6 are the first shard's, whatever the card's hash says, and a card without our hash
//! takes a ring for each sender as it likes. If the CPU forgot one on its way from a ring to
//! another one's shard, the next frame would bring it to light; so none follows here.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use qemu::namespace::{self, MACHINE_V6, MACHINE_V6_FLAG};

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::ipv6::run;
use crate::operator::Operator;
use crate::status::expect_status;

/// The tests. A CPU that the host keeps from running looks busy, and keeps its ring.
pub const TESTS: &[Test] = &[(
    "a lone frame is answered by whichever ring it came, where one CPU has them all",
    lone_frames,
)];

/// A machine that waits at its console is soon quiet.
const QUIET_PATIENCE: Duration = Duration::from_secs(120);
const UNTIL_QUIET: &str =
    "until kstat -p 'eth0:0:mac_rx_hwlane1:cpu' | grep -q '[^0-9]0$'; do sleep 1; done";
/// Senders: their frames are spread over the rings.
const SENDERS: u16 = 8;
/// Within 5 seconds the machine asks nobody whether a sender is still there, so nothing follows
/// (RFC 4861, DELAY_FIRST_PROBE_TIME).
const ANSWER_PATIENCE_SECONDS: &str = "4";

fn lone_frames(setup: &Setup) -> Result<(), String> {
    if !setup.has_rings() || !setup.has_tap() {
        return Ok(());
    }
    let mut nics = ["virtio", "igb"].iter();
    nics.try_for_each(|nic| {
        lone_frames_behind(&setup.with_nic(nic)).map_err(|why| format!("{nic}: {why}"))
    })
}

fn lone_frames_behind(setup: &Setup) -> Result<(), String> {
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let flags = ["--ip6", MACHINE_V6_FLAG, "--add", &kstat];
    let (mut operator, _) = Operator::start(setup, 7, &flags)?;
    // Long before they are used: the host tells groups of new addresses (RFC 3810). A second
    // machine's senders may be there already.
    (0..SENDERS).for_each(|number| _ = namespace::add_address(sender(number)));
    operator.ask_within(UNTIL_QUIET, QUIET_PATIENCE)?;
    let unanswered: Vec<IpAddr> = (0..SENDERS)
        .map(sender)
        .filter(|from| !is_answered(*from))
        .collect();
    match unanswered.as_slice() {
        [] => expect_status(&operator.leave()?, 0),
        _ => Err(operator
            .guest
            .explain(&format!("left {unanswered:?} waiting"))),
    }
}

fn sender(number: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 0x51e7, 0, 0, 0, 0, 1, number).into()
}

/// Sends one echo request.
fn is_answered(from: IpAddr) -> bool {
    let (from, to) = (from.to_string(), MACHINE_V6.to_string());
    let args = [
        "-6",
        "-n",
        "-c",
        "1",
        "-W",
        ANSWER_PATIENCE_SECONDS,
        "-I",
        &from,
        &to,
    ];
    run("ping", &args).is_ok_and(|(_, is_well)| is_well)
}
