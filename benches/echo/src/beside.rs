//! What a machine costs beside a plain one: with a VNIC beside the card, in the same network
//! stack, idle or in use; where the VNIC, the card or a part of it is the program's by `libsietch.so`; and
//! behind an IOMMU.
//!
//! The servers are bound to no address, so they wait at both interfaces. Each figure is the
//! median of [`ROUNDS`] in one guest.

use std::net::Ipv4Addr;

use bench_pair::echo::Echo;
use bench_pair::{Guest, System, dynamic_server, library, tool};
use qemu::namespace::{self, MACHINE};

use bench_pair::counter::{self, Counts};

use crate::cards::{self, COMMANDS};
use crate::classes::Rules;
use crate::echo::{self, Functions, RULES_OF_SIETCH, WINDOWS};
use crate::functions;
use bench_pair::names::Names;

/// Odd, for a median.
const ROUNDS: usize = 3;
/// The VNIC's address, and this host's in its network.
const VNIC: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 1);
const THIS_HOST: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 2);

const CREATE: &str = "dladm create-vnic -t -l eth0 vnic0";
const LINK: &str = "vnic0";
/// A machine whose card is left to programs, and where that is.
pub const CARD_FLAGS: [&str; 3] = ["--iommu", "--kernel-option", "vfio=00:01.0"];
pub const CARD: &str = "0000:00:01.0";
/// A machine with a virtual function, and where that is.
pub const VF_FLAGS: [&str; 5] = [
    "--iommu",
    "--nic",
    "igb",
    "--kernel-option",
    "igb.max_vfs=1",
];
pub const VF: &str = "0000:00:11.0";
const LIBRARY: &str = "/lib/libsietch.so";
const START: &str = "exec \"$@\"";
/// Starts a program, and says where it has the library.
const TELLING_MAPS: &str = r#""$@" & \
    until grep -m1 libsietch /proc/$!/maps; do :; done; wait"#;
const REDIS: &str = "/usr/bin/redis-server";

/// What the machines of a table differ in.
#[derive(Clone, Copy, Debug)]
pub enum Difference {
    /// Whether there is a VNIC, and where requests go.
    Vnic,
    /// Whose network it is: the kernel's by the card or by a VNIC, or the program's by a VNIC, a card of its
    /// own, or a virtual function.
    Bypass,
    /// Whether devices are behind an IOMMU.
    Iommu,
}

/// Whose network a server has.
#[derive(Clone, Copy, PartialEq)]
pub enum Network {
    /// The kernel's, by its card.
    Card,
    /// The kernel's, by a VNIC.
    Vnic,
    /// The program's, by a VNIC or the function at this place.
    Own(&'static str),
}

/// A machine of a table.
#[derive(Clone, Copy)]
pub struct Row {
    name: &'static str,
    /// Flags of `sietch run`.
    flags: &'static [&'static str],
    network: Network,
    /// Where requests go.
    address: Ipv4Addr,
}

pub const PLAIN: Row = Row {
    name: "the card",
    flags: &[],
    network: Network::Card,
    address: MACHINE,
};

const OF_VNIC: Row = Row {
    name: "the VNIC",
    network: Network::Vnic,
    address: VNIC,
    ..PLAIN
};

/// The machine's card, driven by the program.
pub const OWN_CARD: Row = Row {
    name: "virtio-net of its own, by `libsietch.so`",
    flags: &CARD_FLAGS,
    network: Network::Own(CARD),
    ..OF_VNIC
};

/// A part of it.
pub const OWN_FUNCTION: Row = Row {
    name: "a virtual function of the 82576, by `libsietch.so`",
    flags: &VF_FLAGS,
    network: Network::Own(VF),
    ..OF_VNIC
};

impl Difference {
    /// The first is what the others are compared with.
    fn rows(self) -> Vec<Row> {
        match self {
            Self::Vnic => vec![
                PLAIN,
                Row {
                    name: "the card, a VNIC idle",
                    network: Network::Vnic,
                    ..PLAIN
                },
                OF_VNIC,
            ],
            Self::Bypass => vec![
                PLAIN,
                OF_VNIC,
                Row {
                    name: "the VNIC, by `libsietch.so`",
                    network: Network::Own(LINK),
                    ..OF_VNIC
                },
                OWN_CARD,
                OWN_FUNCTION,
            ],
            Self::Iommu => vec![
                PLAIN,
                Row {
                    name: "the card behind an IOMMU",
                    flags: &["--iommu"],
                    ..PLAIN
                },
            ],
        }
    }
}

/// One figure: its heading, and each function's instructions per request.
pub type Figure = (String, Functions);

/// The table, or the lists of functions behind it.
pub fn count(difference: Difference, lists_functions: bool) -> Result<String, String> {
    reach_vnic()?;
    let rows = difference.rows().into_iter().map(|row| {
        eprintln!("{}", row.name);
        let mut figures = echoes(row)?;
        figures.extend(requests(row)?);
        Ok((row.name, figures))
    });
    let rows: Vec<(&str, Vec<Figure>)> = rows.collect::<Result<_, String>>()?;
    Ok(match lists_functions {
        true => lists(&rows),
        false => table(&rows),
    })
}

/// Gives this host an address in the VNIC's network.
pub fn reach_vnic() -> Result<(), String> {
    match namespace::add_address(THIS_HOST) {
        true => Ok(()),
        false => Err(format!("{THIS_HOST} cannot be added to the tap interface.")),
    }
}

/// An echo by a server, and the names of what runs there.
pub fn echo(row: Row, server: &str) -> Result<(Echo, Names), String> {
    let mut guest = boot(row, &format!("{server}:/echo"), &["/echo"])?;
    let names = names(&mut guest, row)?;
    Ok((Echo::at(guest, row.address)?, names))
}

/// An echo with each window.
pub fn echoes(row: Row) -> Result<Vec<Figure>, String> {
    let (echo, names) = echo(row, &dynamic_server("udp_echo")?)?;
    let figures = WINDOWS.into_iter().map(|window| {
        let functions = median(&names, echo::ECHOES, || echo::of_window(&echo, window))?;
        Ok((format!("UDP echo, window {window}"), functions))
    });
    figures.collect()
}

/// Each command of Redis.
pub fn requests(row: Row) -> Result<Vec<Figure>, String> {
    let (_guest, names) = redis(row)?;
    let figures = COMMANDS.into_iter().map(|command| {
        let load = || under_load(row, command);
        let functions = median(&names, cards::REQUESTS, load)?;
        Ok((format!("redis {command}"), functions))
    });
    figures.collect()
}

/// Redis, and the names of what runs there.
pub fn redis(row: Row) -> Result<(Guest, Names), String> {
    let mut guest = boot(row, REDIS, &cards::SERVER)?;
    guest.wait_for_answer_at(row.address, cards::PORT, b"PING\r\n")?;
    let names = names(&mut guest, row)?;
    Ok((guest, names))
}

/// What all requests of a command to it cost together.
pub fn under_load(row: Row, command: &str) -> Result<Counts, String> {
    cards::under_load(row.address, command)
}

fn names(guest: &mut Guest, row: Row) -> Result<Names, String> {
    if let Network::Card | Network::Vnic = row.network {
        return Names::of_sietch(guest.kernel());
    }
    let base = guest.find_in_output("say where the library is", base_in)?;
    let library = library("sietch")?;
    Names::of_sietch_and_library(guest.kernel(), library.as_ref(), base)
}

/// Where the library begins, by the first of its lines in `/proc/PID/maps`.
fn base_in(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(LIBRARY))?;
    let (start, _) = line.split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}

/// The guest with a server, the program `added`; the VNIC is there before it starts.
fn boot(row: Row, added: &str, server: &[&str]) -> Result<Guest, String> {
    let tool = |name| Ok::<_, String>(format!("{}:/bin/{name}", tool(name)?));
    let (dladm, ipadm) = (tool("dladm")?, tool("ipadm")?);
    let script = match row.network {
        Network::Card => START.into(),
        Network::Vnic => format!("{CREATE} && ipadm create-addr -t -a {VNIC}/24 vnic0 && {START}"),
        Network::Own(link) => {
            let create = if link == LINK { CREATE } else { "true" };
            format!(
                "{create} && export LD_PRELOAD={LIBRARY} SIETCH_LINK={link} \
                 SIETCH_ADDRESS={VNIC}/24 && {TELLING_MAPS}"
            )
        }
    };
    let preload = format!("{}:{LIBRARY}", library("sietch")?);
    let added = [
        "--add", &dladm, "--add", &ipadm, "--add", &preload, "--add", added,
    ];
    let shell = ["busybox", "sh", "-c", &script, "sh"];
    counter::boot(
        System::Sietch,
        &[&["-m", "512M"][..], row.flags, &added, &shell, server].concat(),
    )
}

/// The middle one of several counts.
fn median(
    names: &Names,
    events: u32,
    count: impl Fn() -> Result<Counts, String>,
) -> Result<Functions, String> {
    let counts = middle(count)?;
    let rules = Rules::read(RULES_OF_SIETCH)?;
    Ok(echo::by_function(&counts, names, &rules, events))
}

/// The same before they are told apart.
pub fn middle(count: impl Fn() -> Result<Counts, String>) -> Result<Counts, String> {
    let mut all = (0..ROUNDS)
        .map(|_| count())
        .collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(Counts::total);
    Ok(all.swap_remove(ROUNDS / 2))
}

fn total(figure: &Figure) -> f64 {
    echo::work(&figure.1)
}

fn lists(rows: &[(&str, Vec<Figure>)]) -> String {
    let list = |name: &str, figure: &Figure| {
        let head = format!("{}, {name} {:.0}", figure.0, total(figure));
        functions::of_one(&head, &figure.1)
    };
    let all = rows
        .iter()
        .flat_map(|(name, figures)| figures.iter().map(move |figure| list(name, figure)));
    all.collect()
}

fn table(rows: &[(&str, Vec<Figure>)]) -> String {
    let Some((_, first)) = rows.first() else {
        return String::new();
    };
    let mut text = String::from("| instructions per request |");
    for (heading, _) in first {
        text += &format!(" {heading} | to the card |");
    }
    text += "\n|---|";
    text += &"---:|---:|".repeat(first.len());
    text += "\n";
    for (name, figures) in rows {
        text += &format!("| {name} |");
        for (figure, plain) in figures.iter().zip(first) {
            let (figure, plain) = (total(figure), total(plain));
            text += &format!(" {figure:.0} | {:.3} |", figure / plain);
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Class;

    #[test]
    fn a_library_is_where_the_maps_say() {
        let maps = "# Ready\n7f0000001000-7f0000002000 r--p 00000000 00:01 5 /lib/libsietch.so\n";
        assert_eq!(base_in(maps), Some(0x7f00_0000_1000));
        assert_eq!(base_in("# Ready\n"), None);
    }

    #[test]
    fn rows_are_compared_with_the_first() {
        let figure = |count| {
            let functions = Functions::from([((Class::StackIn, "a".into()), count)]);
            vec![("UDP echo".to_string(), functions)]
        };
        let text = table(&[("the card", figure(100.0)), ("the VNIC", figure(105.0))]);
        assert!(text.contains("| the VNIC | 105 | 1.050 |"), "{text}");
    }
}
