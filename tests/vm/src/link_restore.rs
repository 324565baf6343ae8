//! Links and flows that outlast a machine: a volume has what `dladm` and `flowadm` kept.

use std::fs;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::link_counts::CARDS;
use crate::links::operator_with;
use crate::operator::Operator;
use crate::volume::Folder;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "links and flows kept on a volume are there before the first program (link layer)",
        kept,
    ),
    (
        "a file of links that makes no sense is told about and does not stop the start (link layer)",
        broken,
    ),
    (
        "addresses and routes kept on a volume are there before the first program (link layer)",
        addresses,
    ),
];

const FILE: &str = "datalink.conf";

fn machine(setup: &Setup, folder: &Folder) -> Result<Operator, String> {
    let volume = format!("{}:/etc/dladm", folder.0.display());
    operator_with(setup, &["-v", &volume])
}

/// Section 2, check 7, its second half.
fn kept(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("links-kept")?;
    let mut shell = machine(setup, &folder)?;
    shell.ask(
        "dladm create-vnic -l eth0 -m 2:0:0:0:0:51 -p maxbw=100M vnic1; \
         dladm create-vnic -t -l eth0 gone1; dladm create-etherstub stub0; \
         dladm create-vnic -l stub0 -v 7 vnic2; dladm set-linkprop -p mtu=1400 vnic1; \
         dladm set-linkprop -p cpus=0-0 eth0; \
         flowadm add-flow -l vnic1 -a transport=tcp,local_port=80 -p maxbw=10M web",
    )?;
    let show = "dladm show-link -p -o link,class,mtu,over; dladm show-vnic -p -o macaddress,vid vnic1; \
                dladm show-linkprop -c -o value -p maxbw vnic1; \
                dladm show-linkprop -c -o value -p cpus eth0; \
                dladm show-phys -H -p -o cpus | tr , '\\n' | sort -u; flowadm show-flow -p -o flow,lport; \
                flowadm show-flowprop -c -o value -p maxbw web; ip link show dev vnic1";
    let before = lines(&shell.ask(&format!("dladm delete-vnic -t gone1; {show}"))?);
    shell.leave()?;
    if !before.iter().any(|line| line.starts_with("vnic2:vnic:")) {
        return Err(format!("nothing to keep: {before:?}"));
    }
    let cards = CARDS
        .iter()
        .filter(|card| **card == "virtio" || setup.has_our_pci());
    for card in cards {
        let mut shell = machine(&setup.with_nic(card), &folder)?;
        let after = lines(&shell.ask(show)?);
        shell.leave()?;
        if after != before {
            return Err(format!("{card}: {before:?}, then {after:?}"));
        }
    }
    Ok(())
}

fn addresses(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("addresses-kept")?;
    let volume = format!("{}:/etc/dladm", folder.0.display());
    let tool = format!("{}:/bin/ipadm", build::tool("admin", "ipadm")?.display());
    let start = || operator_with(setup, &["-v", &volume, "--add", &tool]);
    let mut shell = start()?;
    shell.ask(
        "dladm create-vnic -l eth0 -m 2:0:0:0:0:51 vnic1; \
         ipadm create-addr -a 10.0.2.51/24 vnic1; ipadm create-addr -a fd00::51/64 vnic1; \
         ipadm create-route -d 10.9.0.0/16 -g 10.0.2.2 vnic1",
    )?;
    shell.leave()?;
    let path = folder.0.join(FILE);
    let mut kept = fs::read(&path).map_err(|error| error.to_string())?;
    kept.extend(b"address\tvnic1\t10.0.2.52/99\naddress\tnone1\t10.0.2.53/24\n");
    fs::write(&path, kept).map_err(|error| error.to_string())?;
    let mut shell = start()?;
    let said = shell.ask("ip addr show dev vnic1; ip route show dev vnic1")?;
    let wanted = [
        "inet 10.0.2.51/24",
        "inet6 fd00::51/64",
        "10.9.0.0/16 via 10.0.2.2",
    ];
    let console = shell.leave()?.console;
    let sentences = ["that is no address", "the link has no interface"];
    let is_missing = |text: &&str, within: &str| !within.contains(*text);
    if wanted.iter().any(|text| is_missing(text, &said))
        || sentences.iter().any(|text| is_missing(text, &console))
    {
        return Err(format!("{said}: {console}"));
    }
    Ok(())
}

/// What a line printed, without its echo.
fn lines(said: &str) -> Vec<String> {
    let lines = said.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("dladm show"));
    lines.map(String::from).collect()
}

fn broken(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("links-broken")?;
    let path = folder.0.join(FILE);
    let write = |bytes: &[u8]| fs::write(&path, bytes).map_err(|error| error.to_string());
    let hostile = [
        &b"aggr\taggr0\nvnic\tvnic1\teth0\t02:00:00:00:00:51\t0\n"[..],
        b"vnic\tvnic2\teth0\tff:ff:ff:ff:ff:ff\t0\n\xff\xfe\x1b[2J\nlinkprop\teth0\tmtu\t9\n",
        b"flow\tweb\tnone7\ttransport=tcp\n",
    ];
    write(&hostile.concat())?;
    let sentences = [
        "line 1: no record of ours",
        "line 3: ",
        "line 4: no record of ours",
        "line 5: mtu: the value is out of range",
        "line 6: there is no link none7",
    ];
    expect(setup, &folder, &sentences, "vnic1")?;
    write(&b"etherstub\tstub0\n".repeat(100_000))?;
    expect(setup, &folder, &["the file is not read"], "eth0")?;
    let gone = fs::remove_file(&path).and_then(|()| fs::create_dir(&path));
    gone.map_err(|error| error.to_string())?;
    expect(setup, &folder, &["the file is not read"], "eth0")
}

/// A machine starts, says all the sentences, and has a link of that name last.
fn expect(
    setup: &Setup,
    folder: &Folder,
    sentences: &[&str],
    last_link: &str,
) -> Result<(), String> {
    let mut shell = machine(setup, folder)?;
    let said = shell.ask("dladm show-link -p -o link")?;
    let console = shell.leave()?.console;
    let is_missing = |sentence: &&&str| !console.contains(&format!("{FILE}: {sentence}"));
    match sentences.iter().find(is_missing) {
        Some(sentence) => Err(format!("`{sentence}` is not said: {console}")),
        None if said.trim().ends_with(last_link) => Ok(()),
        None => Err(format!("{last_link} is not the last of {said}")),
    }
}
