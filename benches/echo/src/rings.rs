//! The echo by programs that move a VNIC's frames by the rings of an AF_XDP socket, beside the same
//! echo by a socket over that VNIC.
//!
//! One is `tests/programs/scenes/xdp_station.c`: it answers in place, as many frames a call as
//! it finds, and waits in poll(2) when it finds none. It shows what is left when no stack and no
//! socket is in the way. The other has a stack of its own, `user/libos` (`docs/libos.md`); it is linked
//! statically and at fixed addresses, so that its functions have classes too.

use std::net::Ipv4Addr;
use std::path::Path;

use bench_pair::counter;
use bench_pair::echo::Echo;
use bench_pair::{System, build, example, server, tool};

use crate::beside::{self, CARD, CARD_FLAGS, VF, VF_FLAGS};
use crate::classes::Rules;
use crate::echo::{self, Functions, RULES_OF_SIETCH, WINDOWS};
use crate::functions;
use crate::page;
use bench_pair::names::Names;

const STATION: &str = "tests/programs/scenes/xdp_station.c";
/// The program's address.
const VNIC: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 1);

/// Instructions per echo of each way, with each window.
type Ways = [Vec<Functions>; 5];
const NAMES: [&str; 5] = ["sockets", "rings", "native", "own card", "virtual function"];

/// The table, or the lists of functions behind it.
pub fn count(lists_functions: bool) -> Result<String, String> {
    beside::reach_vnic()?;
    let server = format!("ipadm create-addr -t -a {VNIC}/24 vnic0 && exec /echo");
    let station = format!("exec /echo vnic0 {VNIC}");
    let sockets = echoes(&[], &self::server("udp_echo")?, &server, Names::of_sietch)?;
    let rings = echoes(&[], &build(STATION)?, &station, Names::of_sietch)?;
    let over_vnic = native(&[], "vnic0")?;
    let [card, function] = natives()?;
    let ways = [sockets, rings, over_vnic, card, function];
    Ok(match lists_functions {
        true => lists(&ways),
        false => page::beside(NAMES, |way, window| ways[way].get(window)),
    })
}

/// The echo by native calls on a card of the program's own, and on a virtual function.
pub fn natives() -> Result<[Vec<Functions>; 2], String> {
    Ok([native(&CARD_FLAGS, CARD)?, native(&VF_FLAGS, VF)?])
}

fn native(flags: &[&str], link: &str) -> Result<Vec<Functions>, String> {
    of_windows(native_echo(flags, link)?)
}

/// The echo by native calls on a link.
pub fn native_echo(flags: &[&str], link: &str) -> Result<(Echo, Names), String> {
    let program = example("sietch-io", "udp_echo")?;
    let names = |kernel: &Path| Names::of_sietch_and_program(kernel, program.as_ref());
    let start = format!("exec /echo {link} {VNIC}/24");
    boot(flags, &program, &start, names)
}

/// What an echo costs with each window, by a program that a line starts when the VNIC is there.
fn echoes(
    more: &[&str],
    program: &str,
    start: &str,
    names: impl FnOnce(&Path) -> Result<Names, String>,
) -> Result<Vec<Functions>, String> {
    of_windows(boot(more, program, start, names)?)
}

fn boot(
    more: &[&str],
    program: &str,
    start: &str,
    names: impl FnOnce(&Path) -> Result<Names, String>,
) -> Result<(Echo, Names), String> {
    let tool = |name| Ok::<_, String>(format!("{}:/bin/{name}", tool(name)?));
    let (dladm, ipadm) = (tool("dladm")?, tool("ipadm")?);
    let program = format!("{program}:/echo");
    let create = match more {
        [] => "dladm create-vnic -t -l eth0 vnic0 && ",
        _ => "",
    };
    let script = format!("{create}{start}");
    let flags = [
        "-m", "512M", "--add", &dladm, "--add", &ipadm, "--add", &program,
    ];
    let shell = ["busybox", "sh", "-c", &script];
    let guest = counter::boot(System::Sietch, &[&flags[..], more, &shell].concat())?;
    let names = names(guest.kernel())?;
    Ok((Echo::at(guest, VNIC)?, names))
}

fn of_windows((echo, names): (Echo, Names)) -> Result<Vec<Functions>, String> {
    let rules = Rules::read(RULES_OF_SIETCH)?;
    let of_window = |window| {
        let counts = echo::of_window(&echo, window)?;
        Ok(echo::by_function(&counts, &names, &rules, echo::ECHOES))
    };
    WINDOWS.into_iter().map(of_window).collect()
}

fn lists(ways: &Ways) -> String {
    let mut text = String::new();
    for (name, figures) in NAMES.iter().zip(ways) {
        for (window, functions) in WINDOWS.iter().zip(figures) {
            let total = echo::work(functions);
            let head = format!("{name}, window {window} {total:.0}");
            text += &functions::of_one(&head, functions);
        }
    }
    text
}
