//! Networks of machines: `sietch network` and `run --network`.
//!
//! A network is a folder of the user's data with its description and who had which address ([`Store`]). Its switch is
//! a process (`sietch network serve`) that its first machine starts and that goes with the last one; it is found by its
//! socket in the user's folder for what runs. `host/switch` says how the switch works.
//!
//! A machine is a member as long as its session is, which also takes it to other networks while it runs ([`live`]).

mod live;
mod own;
mod request;
mod store;

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::iter;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use cpio::{Entry, Writer};
use qemu::{Machine, Net, Switched};
use switch::join::JoinError;
use switch::protocol::Join;
use switch::{Files, Kept, Lease, Membership, Network};

use crate::failure::Failure;
use crate::flags::{Ip, NetFlag, OnNetwork, RunFlags};
use crate::line;
use crate::state::Settings;

pub(crate) use live::Live;
pub(crate) use request::{Wish, ask};
pub(crate) use store::{Store, users};

/// Networks that a machine may be on: each costs its card's hub a copy of each frame.
const NETWORKS_MAX: usize = 8;
/// What the kernel calls the card's own link.
const CARD: &str = "eth0";
/// The flag that names one, by both its names.
const NET_FLAGS: [&str; 2] = ["--net", "--network"];
/// Where the kernel finds what links it is to make (`core/linkctl`), in the image.
pub(crate) const LINKS_FILE: &str = "etc/dladm/datalink.conf";
/// Kinds of files in a mode (inode(7)).
const S_IFDIR: u32 = 0o040_000;
const S_IFREG: u32 = 0o100_000;

/// The networks that `flags` name, the first of which leads out.
pub fn of(flags: &RunFlags) -> Result<Vec<Network>, Failure> {
    match (flags.first_net(), &flags.program.ip) {
        (NetFlag::Network(_), _) => {}
        (_, Some(Ip::OfNetwork(address))) => {
            return Err(Failure::NoPrefix {
                address: address.to_string(),
            });
        }
        _ if !flags.network.aliases.is_empty() => {
            return Err(Failure::AliasWithoutNetwork);
        }
        _ if !flags.further_nets().is_empty() => return Err(Failure::SeveralNetworks),
        _ => return Ok(Vec::new()),
    }
    if let Some(flag) = not_on_a_network(flags) {
        return Err(Failure::NotOnNetwork { flag });
    }
    let store = Store::of_user()?;
    let mut networks: Vec<Network> = Vec::new();
    for net in &flags.net {
        let NetFlag::Network(on) = net else {
            return Err(Failure::SeveralNetworks);
        };
        // Twice the same is once.
        if networks.iter().all(|other| other.name != on.name) {
            networks.push(store.network(&on.name)?);
        }
    }
    match networks.len() > NETWORKS_MAX {
        true => Err(Failure::TooManyNetworks { max: NETWORKS_MAX }),
        false => Ok(networks),
    }
}

/// The flag that goes not with a network, whose switch says what it would.
fn not_on_a_network(flags: &RunFlags) -> Option<&'static str> {
    let is_foreign = |ip: &Ip<Ipv4Addr>| !matches!(ip, Ip::OfNetwork(_));
    let flags = [
        ("--mac-address", flags.mac_address.is_some()),
        ("--bypass", flags.bypass.is_some()),
        ("--ip6", flags.program.ip6.is_some()),
        ("--dry-run", flags.dry_run),
        (
            "--ip ADDRESS/LENGTH",
            flags.program.ip.as_ref().is_some_and(is_foreign),
        ),
    ];
    let given = flags.into_iter().find(|(_, is_given)| *is_given);
    given.map(|(flag, _)| flag)
}

/// A machine's place on a network.
#[derive(Debug)]
pub struct Place {
    /// The network.
    pub network: Network,
    /// What the machine has there.
    pub lease: Lease,
    /// Its wire at the card's hub; the first one has 0.
    wire: u8,
    /// The machine's link; of the first one that is the card's own.
    link: String,
    kept: Kept,
}

impl Place {
    /// That of the card's own link.
    fn of_card(network: Network, lease: Lease, kept: Kept) -> Self {
        Self {
            network,
            lease,
            wire: 0,
            link: CARD.into(),
            kept,
        }
    }

    /// Whether it is on the network `name`, and not by itself.
    fn is_of(&self, name: &str) -> bool {
        self.network.alone.is_none() && self.network.name == name
    }
}

/// Makes `machine` a member of all as long as this process lives.
pub fn join(
    networks: &[Network],
    flags: &RunFlags,
    name: &str,
    machine: &mut Machine,
) -> Result<Vec<Place>, Failure> {
    let Some((first, further)) = networks.split_first() else {
        return Ok(Vec::new());
    };
    machine.further_switches = further.len() as u8;
    let has_ipv6 = networks.iter().any(|network| network.prefix6.is_some());
    let place = join_one(networks, 0, flags, name, machine)?;
    add_to(machine, first, &place.lease, has_ipv6);
    let mut places = vec![place];
    for number in 1..networks.len() {
        places.push(join_one(networks, number, flags, name, machine)?);
    }
    Ok(places)
}

/// Joins the network with that number; only the first one leads out, and knows names of the others.
fn join_one(
    networks: &[Network],
    number: usize,
    flags: &RunFlags,
    name: &str,
    machine: &Machine,
) -> Result<Place, Failure> {
    let (store, network) = (Store::of_user()?, &networks[number]);
    let on = flags.net.iter().find_map(|net| match net {
        NetFlag::Network(on) if on.name == network.name => Some(on.clone()),
        _ => None,
    });
    let on = on.unwrap_or_default();
    let others = networks.iter().skip(1).filter(|_| number == 0);
    let others = others.map(|other| Ok(store.files(&other.name)?.socket));
    let wire = number as u8;
    let join = Join {
        name: name.into(),
        aliases: [&flags.network.aliases[..], &on.aliases].concat(),
        wish: on.ip.or_else(|| wish(flags).filter(|_| number == 0)),
        card: machine.socket_of_switch(wire),
        way_out: (number == 0).then(|| machine.way_out_socket()),
        others: others.collect::<Result<_, Failure>>()?,
    };
    let link = match number {
        0 => CARD.into(),
        number => link_name(number),
    };
    let (lease, kept) = become_member(&store, network, join)?;
    Ok(Place {
        network: network.clone(),
        lease,
        wire,
        link,
        kept,
    })
}

fn link_name(number: usize) -> String {
    format!("net{number}")
}

/// Makes this process a member by the network's switch, as long as it lives or until it leaves.
fn become_member(store: &Store, network: &Network, join: Join) -> Result<(Lease, Kept), Failure> {
    let files = store.files(&network.name)?;
    let start = starter(&network.name)?;
    join_by(&files.socket, &network.name, join, start)
}

/// Joins by the switch at `socket`, which `start` starts if there is none.
fn join_by(
    socket: &Path,
    name: &str,
    join: Join,
    start: Box<switch::join::Start>,
) -> Result<(Lease, Kept), Failure> {
    let member = Membership::join(socket, &join, &*start);
    let member = member.map_err(|error| match error {
        JoinError::Refused(sentence) => Failure::NotJoined { sentence },
        JoinError::Io(reason) => Failure::NoSwitch {
            name: name.into(),
            reason,
        },
    })?;
    let lease = member.lease;
    Ok((lease, member.keep(socket, join, start)))
}

/// What a machine has on its further networks.
pub fn further(places: &[Place]) -> Vec<(Network, Lease)> {
    let further = places.iter().skip(1);
    further
        .map(|place| (place.network.clone(), place.lease))
        .collect()
}

/// The addresses on further networks, by their names.
pub fn addresses(leases: &[(Network, Lease)]) -> BTreeMap<String, Ipv4Addr> {
    let leases = leases.iter();
    leases
        .map(|(network, lease)| (network.name.clone(), lease.address))
        .collect()
}

/// The machine's image with what its kernel is to make before the first program: for each further network a link over the card,
/// with a station and addresses of its own.
pub fn with_links(mut image: Vec<u8>, leases: &[(Network, Lease)]) -> Vec<u8> {
    if leases.is_empty() {
        return image;
    }
    // What is appended follows the last member; the trailer is the archive's end.
    let end = image.len().saturating_sub(Writer::new().finish().len());
    image.truncate(end);
    let mut writer = Writer::new();
    let (folder, _) = LINKS_FILE.rsplit_once('/').unwrap_or_default();
    let text = links(leases);
    for (name, mode, data) in [
        (folder, S_IFDIR | 0o755, &[][..]),
        (LINKS_FILE, S_IFREG | 0o644, text.as_bytes()),
    ] {
        let entry = Entry {
            name: name.as_bytes(),
            mode,
            uid: 0,
            gid: 0,
            links: 1,
            inode: 0,
            mtime_s: 0,
            rdev: (0, 0),
            data,
        };
        // Neither is longer than an archive takes.
        let _ = writer.append(&entry);
    }
    image.extend(writer.finish());
    image
}

/// The lines of `dladm`'s and `ipadm`'s file (`core/linkctl`).
fn links(leases: &[(Network, Lease)]) -> String {
    let numbered = (1..).zip(leases);
    let records =
        numbered.flat_map(|(number, (network, lease))| records(&link_name(number), network, lease));
    records.map(|record| record + "\n").collect()
}

/// The records of a link with what the machine has on that network, the link's own first.
fn records(link: &str, network: &Network, lease: &Lease) -> Vec<String> {
    let bytes = lease.mac.map(|byte| format!("{byte:02x}"));
    let (mac, address) = (bytes.join(":"), lease.address);
    let vnic = format!("vnic\t{link}\t{CARD}\t{mac}\t0");
    let address = format!("address\t{link}\t{address}/{}", network.prefix_len);
    let address6 = lease.address6;
    let address6 = address6.map(|address| format!("address\t{link}\t{address}/64"));
    [vnic, address].into_iter().chain(address6).collect()
}

/// The line of a machine that is on one more network.
///
/// Of `--net user` and `--net none` the network takes the place.
///
/// Errors: `OnThatNetwork`; `SeveralNetworks` for one that is on another kind of network; `NotWithFrom` and `NotOnNetwork` for
/// one that would not start so.
pub fn connected(settings: &Settings, on: &OnNetwork) -> Result<Vec<String>, Failure> {
    let is_in_its_place = |value: &str| matches!(value.parse(), Ok(NetFlag::User | NetFlag::None));
    let settings = &Settings {
        arguments: line::without(settings, &NET_FLAGS, is_in_its_place),
        ..settings.clone()
    };
    let mut words = settings.arguments.clone();
    let typed = iter::once("sietch".to_string()).chain(words.iter().cloned());
    let flags = RunFlags::of_line(typed).ok();
    if flags.as_ref().is_some_and(|flags| flags.from.is_some()) {
        let flag = "--network".into();
        return Err(Failure::NotWithFrom { flag });
    }
    if let Some(flag) = flags.as_ref().and_then(not_on_a_network) {
        return Err(Failure::NotOnNetwork { flag });
    }
    let nets = flags.map_or_else(Vec::new, |flags| flags.net);
    if nets.iter().any(|net| is_of(net, &on.name)) {
        return Err(Failure::OnThatNetwork {
            machine: settings.name.clone(),
            network: on.name.clone(),
        });
    }
    // Behind those that it is on, as the first one leads out.
    let is_net = |word: &String| line::is_one_of(&NET_FLAGS, word);
    let last = words[..line::own_words(settings)].iter().rposition(is_net);
    let is_on_networks = nets.iter().all(|net| matches!(net, NetFlag::Network(_)));
    let at = match last {
        Some(_) if !is_on_networks => return Err(Failure::SeveralNetworks),
        Some(at) if words[at].contains('=') => at + 1,
        Some(at) => at + 2,
        None => words.len().min(1),
    };
    words.insert(at, format!("--network={on}"));
    Ok(words)
}

fn is_of(net: &NetFlag, network: &str) -> bool {
    matches!(net, NetFlag::Network(on) if on.name == network)
}

/// The line of a machine that is not on that network any more.
///
/// Errors: `NotOnThatNetwork`.
pub fn disconnected(settings: &Settings, network: &str) -> Result<Vec<String>, Failure> {
    let is_its = |value: &str| value.parse().is_ok_and(|net| is_of(&net, network));
    let kept = line::without(settings, &NET_FLAGS, is_its);
    if kept.len() == settings.arguments.len() {
        return Err(Failure::NotOnThatNetwork {
            machine: settings.name.clone(),
            network: network.into(),
        });
    }
    let kept = Settings {
        arguments: kept,
        ..settings.clone()
    };
    let of_first = match (first_net(settings), first_net(&kept)) {
        // The names that it has on each.
        (_, None) => &["--ip", "--network-alias"][..],
        (was, is) if was != is => &["--ip"],
        _ => &[],
    };
    Ok(line::without(&kept, of_first, |_| true))
}

/// The first value of `--network` in a line.
fn first_net(settings: &Settings) -> Option<String> {
    let own = &settings.arguments[..line::own_words(settings)];
    let at = own
        .iter()
        .position(|word| line::is_one_of(&NET_FLAGS, word))?;
    let value = own[at].split_once('=').map(|(_, value)| value.to_string());
    value.or_else(|| own.get(at + 1).cloned())
}

fn wish(flags: &RunFlags) -> Option<Ipv4Addr> {
    match flags.program.ip {
        Some(Ip::OfNetwork(address)) => Some(address),
        _ => None,
    }
}

/// Gives the machine what the switch has for it.
fn add_to(machine: &mut Machine, network: &Network, lease: &Lease, has_ipv6: bool) {
    let place = Switched {
        address: lease.address,
        subnet: network.subnet,
        prefix_len: network.prefix_len,
        gateway: network.gateway(),
        name_server: network.name_server(),
    };
    let ip = format!(
        " ip={}/{},{}",
        lease.address, network.prefix_len, place.gateway
    );
    let ip6 = match lease.address6 {
        Some(address) => format!(" ip6={address}/64"),
        None if has_ipv6 => " ip6=auto".into(),
        None => " ip6=none".into(),
    };
    machine.command_line.push_str(&(ip + &ip6));
    machine.mac = Some(lease.mac);
    machine.net = Net::Switched(place);
    machine.forwarder = qemu::passt::forwarder(&machine.net, &machine.forwards);
}

/// What starts the network's switch, as a process that outlives this one.
fn starter(name: &str) -> Result<Box<switch::join::Start>, Failure> {
    let this = env::current_exe().map_err(Failure::file("sietch"))?;
    let name = name.to_string();
    Ok(Box::new(move || start(&this, &name)))
}

fn start(sietch: &Path, name: &str) -> io::Result<()> {
    let mut child = Command::new(sietch)
        .args(["network", "serve", name])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is not for it.
        .process_group(0)
        .spawn()?;
    // Its end is to be noticed, whenever that is.
    thread::spawn(move || child.wait());
    Ok(())
}

/// The switch of the network `name`, until its last machine has left.
pub fn serve(name: &str) -> Result<(), Failure> {
    let store = Store::of_user()?;
    let (network, files) = (store.network(name)?, store.files(name)?);
    let Files { socket, .. } = &files;
    switch::serve(network, &files).map_err(Failure::file(socket))
}

#[cfg(test)]
mod tests {
    use cpio::Archive;

    use super::*;
    use crate::line::tests::machine;

    #[test]
    fn a_machine_is_started_again_on_one_network_more_or_less() {
        let on_two = machine("run -d --network a --net=b x --net c", "x --net c");
        let line = |line: Result<Vec<String>, Failure>| line.expect("a line").join(" ");
        let on = |text: &str| text.parse::<OnNetwork>().expect("a network");
        let longer = line(connected(&on_two, &on("d:ip=10.89.0.9,alias=y")));
        assert_eq!(
            longer,
            "run -d --network a --net=b --network=d:ip=10.89.0.9,alias=y x --net c"
        );
        let on_three = machine(&longer, "x --net c");
        assert_eq!(
            line(disconnected(&on_three, "d")),
            on_two.arguments.join(" ")
        );
        for network in ["a", "d:alias=z"] {
            assert!(matches!(
                connected(&on_three, &on(network)),
                Err(Failure::OnThatNetwork { .. })
            ));
        }
        assert_eq!(line(disconnected(&on_two, "a")), "run -d --net=b x --net c");
        assert_eq!(
            line(disconnected(&on_two, "b")),
            "run -d --network a x --net c"
        );
        assert!(disconnected(&on_two, "c").is_err());
        let on_none = machine("run -d x", "x");
        assert_eq!(line(connected(&on_none, &on("a"))), "run --network=a -d x");
        for net in ["--net none ", "--network=user "] {
            let alone = machine(&format!("run {net}x --net none"), "x --net none");
            let started = line(connected(&alone, &on("a")));
            assert_eq!(started, "run --network=a x --net none");
        }
        let elsewhere = machine("run --net tap=t x", "x");
        assert!(matches!(
            connected(&elsewhere, &on("a")),
            Err(Failure::SeveralNetworks)
        ));
    }

    #[test]
    fn what_a_line_says_of_the_first_network_goes_with_it_and_names_go_with_the_last() {
        let before = "run --ip 10.89.0.9 --network a --network-alias=y --network b x --ip z";
        let left = |settings: &Settings, network: &str| {
            let arguments = disconnected(settings, network).expect("a line");
            Settings {
                arguments,
                ..settings.clone()
            }
        };
        let words = |settings: &Settings| settings.arguments.join(" ");
        let on_two = machine(before, "x --ip z");
        let without_second = words(&left(&on_two, "b"));
        let expected = "run --ip 10.89.0.9 --network a --network-alias=y x --ip z";
        assert_eq!(without_second, expected);
        let on_second = left(&on_two, "a");
        let expected = "run --network-alias=y --network b x --ip z";
        assert_eq!(words(&on_second), expected);
        assert_eq!(words(&left(&on_second, "b")), "run x --ip z");
    }

    #[test]
    fn the_image_says_which_links_there_are_and_keeps_what_it_has() {
        let network = Network {
            name: "back".into(),
            subnet: [10, 90, 0, 0].into(),
            prefix_len: 24,
            prefix6: Some("fd00:1:2:3::".parse().expect("an address")),
            created_s: 0,
            alone: None,
        };
        let lease = network.lease([10, 90, 0, 7].into());
        let mut writer = Writer::new();
        let entry = |name: &'static str, data: &'static [u8]| Entry {
            name: name.as_bytes(),
            mode: S_IFREG | 0o644,
            uid: 0,
            gid: 0,
            links: 1,
            inode: 0,
            mtime_s: 0,
            rdev: (0, 0),
            data,
        };
        writer.append(&entry("init", b"first")).expect("short");
        let image = with_links(writer.finish(), &[(network, lease)]);
        let members: Vec<(String, String)> = Archive::new(&image)
            .map(|entry| {
                let entry = entry.expect("an archive");
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (text(entry.name), text(entry.data))
            })
            .collect();
        let links = "vnic\tnet1\teth0\t02:42:0a:5a:00:07\t0\naddress\tnet1\t10.90.0.7/24\n\
            address\tnet1\tfd00:1:2:3::7/64\n";
        let expected = [("init", "first"), ("etc/dladm", ""), (LINKS_FILE, links)];
        let expected = expected.map(|(name, data)| (name.to_string(), data.to_string()));
        assert_eq!(members, expected);
    }
}
