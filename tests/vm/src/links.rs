//! The link layer in a machine: `dladm` and `flowadm` talk to /dev/linkctl, and frames go by
//! what they set.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::guest::Setup;
use crate::link_counts::CARDS;
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "dladm and flowadm show and change links by /dev/linkctl",
        tools,
    ),
    (
        "VNICs answer pings of the host, and each other's without the wire",
        vnics,
    ),
    (
        "two thousand pings between VNICs are all answered, and first ones too",
        steady_vnics,
    ),
    (
        "VNICs over an etherstub have a network of their own (link layer)",
        etherstub,
    ),
    (
        "VNICs over an 82576 and over an e1000 hear the wire (link layer)",
        other_cards,
    ),
    (
        "what a link may claim and how much it may send holds for the machine's own traffic",
        limits,
    ),
    (
        "a promiscuous VNIC hears of its neighbours what its link lets it (link layer)",
        promiscuous_vnic,
    ),
    (
        "two Redis on port 6379, each over its own VNIC in its own stack, serve at once",
        two_redis,
    ),
    (
        "dladm shows the rings of each card and the links that use them (link layer)",
        rings_shown,
    ),
];
/// One that makes hundreds of VNICs.
pub const TESTS_OF_MANY: &[Test] = &[(
    "a VNIC beyond the interfaces that a stack may have is refused and leaves nothing (link layer)",
    too_many_vnics,
)];

const PING: &str = "/usr/bin/ping";
const IP: &str = "/usr/sbin/ip";
/// A port that nobody uses; a machine with a network is asked for one.
pub const PORT: u16 = 9;

/// A shell in a machine with the tools.
pub fn operator(setup: &Setup) -> Result<Operator, String> {
    operator_with(setup, &[])
}

/// The same with more flags of `sietch run`. There `p 3 HOST` sends a request, waits for its answer,
/// and does so twice more: ping(8) itself leaves as soon as the last answer takes longer than two
/// before, which it does on a busy host, and a request that is forgotten until the next one comes
/// would be answered by then.
pub fn operator_with(setup: &Setup, more: &[&str]) -> Result<Operator, String> {
    operator_at(setup, PORT, more).map(|(shell, _)| shell)
}

/// The same with a server's port, and where the host reaches that.
pub fn operator_at(
    setup: &Setup,
    port: u16,
    more: &[&str],
) -> Result<(Operator, SocketAddr), String> {
    let tool = |name| -> Result<String, String> {
        let built = build::tool("admin", name)?;
        Ok(format!("{}:/bin/{name}", built.display()))
    };
    let (dladm, flowadm) = (tool("dladm")?, tool("flowadm")?);
    let flags = [
        "--add", &dladm, "--add", &flowadm, "--add", PING, "--add", IP,
    ];
    let flags = [&flags[..], more].concat();
    let (mut shell, address) = Operator::start(setup, port, &flags)?;
    shell.ask(&format!(
        "until {IP} addr show dev eth0 | grep -q 10.0.2.15; do sleep 0.1; done; \
         ip() {{ {IP} \"$@\"; }}; ping() {{ {PING} \"$@\"; }}; \
         p() {{ wanted=$1 answered=0; shift; \
                while [ $answered -lt $wanted ] && ping -4 -n -c 1 -W 20 \"$@\"; \
                do answered=$((answered + 1)); done; echo $answered answered; }}"
    ))?;
    Ok((shell, address))
}

/// A VNIC is heard by all rings of the card, which are as many as CPUs, and sends by the first.
fn rings_shown(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() || !setup.has_tap() {
        return Ok(());
    }
    for (nic, rings) in [("e1000", "0"), ("igb", "0-1")] {
        let mut shell = operator(&setup.with_nic(nic).with_cpus("2"))?;
        shell.ask("dladm create-vnic -t -l eth0 vnic1")?;
        let said = shell.ask("dladm show-phys -H -p -o ringtype,rings,clients eth0")?;
        let clients = |of: &str| format!("RX:{of}:<default,mcast>,eth0,vnic1");
        let senders = match rings {
            "0" => "TX:0:<default>,eth0,vnic1",
            _ => "TX:0-1:<default>,eth0",
        };
        let is_shown = said.contains(&clients(rings)) && said.contains(senders);
        if !is_shown || (rings != "0") != said.contains("TX:0:vnic1") {
            return Err(format!("{nic}: {said}"));
        }
        shell.leave()?;
    }
    Ok(())
}

/// The same, with two VNICs over the card.
fn operator_of_vnics(setup: &Setup) -> Result<Operator, String> {
    let mut shell = operator(setup)?;
    for number in [51, 52] {
        shell.ask(&format!(
            "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:{number} vnic{number}; \
             ip addr add 10.0.2.{number}/24 dev vnic{number}"
        ))?;
    }
    Ok(shell)
}

/// A line to type, and words that are in what it says.
pub type Row<'a> = (&'a str, &'a [&'a str]);

/// Twice: what went makes room for others.
fn too_many_vnics(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    shell.ask("dladm create-etherstub -t stub0")?;
    let fill = "for k in $(seq 300); do dladm create-vnic -t -l stub0 many$k 2>/tmp/why || break; \
                done; echo \"$k is refused\"; cat /tmp/why; \
                dladm show-vnic many$k 2>&1; ip link show dev many$k 2>&1; \
                echo links $(dladm show-vnic -p -o link | grep -c many) \
                     interfaces $(grep -c many /proc/net/dev)";
    let mut filled = Vec::new();
    for _ in 0..2 {
        let said = shell.ask_within(fill, FILL_PATIENCE)?;
        let refused = said.split(" is refused").next().unwrap_or_default();
        let refused = refused.split_whitespace().last().unwrap_or_default();
        let first: u32 = refused
            .parse()
            .map_err(|_| format!("none is refused: {said}"))?;
        let made = first - 1;
        let is_told = said.contains("there are as many as there can be")
            && said.contains(&format!("links {made} interfaces {made}"))
            && said.contains("does not exist")
            && made <= 256;
        if !is_told {
            return Err(said);
        }
        filled.push(made);
        shell.ask_within(
            &format!("for k in $(seq {made}); do dladm delete-vnic -t many$k; done"),
            FILL_PATIENCE,
        )?;
    }
    match filled[0] == filled[1] {
        true => shell.leave().map(drop),
        false => Err(format!("there is room for {filled:?}")),
    }
}

const FILL_PATIENCE: Duration = Duration::from_secs(400);

/// By default it hears no more than before (`promisc-filtered`).
fn promiscuous_vnic(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    with_each_card(setup, |setup| {
        let mut shell = operator_of_vnics(setup)?;
        for (line, hears) in [
            ("true", false),
            ("ip link set dev vnic51 promisc on", false),
            ("dladm set-linkprop -t -p promisc-filtered=off vnic51", true),
            ("ip link set dev vnic51 promisc off", false),
            ("busybox ifconfig vnic51 promisc", true),
            ("dladm reset-linkprop -t -p promisc-filtered vnic51", false),
        ] {
            let said = shell.ask(line)?;
            let before = number(&mut shell, FRAMES_OF_51)?;
            if !host_pings("10.0.2.52", 20)? {
                return Err(shell.guest.explain("does not answer"));
            }
            let heard = number(&mut shell, FRAMES_OF_51)? - before;
            // What goes to all is heard anyway.
            if (heard >= 20) != hears {
                return Err(format!("{heard} frames after `{line}`: {said}"));
            }
        }
        shell.leave().map(drop)
    })
}

const FRAMES_OF_51: &str = "sed -n 's/.*vnic51: *[0-9]* *\\([0-9]*\\) .*/\\1/p' /proc/net/dev";

/// Types each line; what it says has all its words.
pub fn expect(shell: &mut Operator, rows: &[Row<'_>]) -> Result<(), String> {
    for (line, words) in rows {
        let said = shell.ask(line)?;
        if let Some(word) = words.iter().find(|word| !said.contains(**word)) {
            return Err(format!("no {word:?} in what `{line}` says: {said}"));
        }
    }
    Ok(())
}

/// A number that a line prints.
pub fn number(shell: &mut Operator, line: &str) -> Result<u64, String> {
    let said = shell.ask(line)?;
    let last = said.split_whitespace().last();
    let number = last.and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("`{line}` prints no number: {said}"))
}

/// Calls `test` with the setup for each card that it can have.
fn with_each_card(
    setup: &Setup,
    test: impl Fn(&Setup) -> Result<(), String>,
) -> Result<(), String> {
    let is_possible = |card: &&&str| **card == "virtio" || setup.has_our_pci();
    let mut cards = CARDS.iter().filter(is_possible);
    cards.try_for_each(|card| test(&setup.with_nic(card)).map_err(|why| format!("{card}: {why}")))
}

/// Sections 2 and 3: the tools themselves, by the kernel's device.
fn tools(setup: &Setup) -> Result<(), String> {
    with_each_card(setup, tools_with)
}

fn tools_with(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    expect(&mut shell, TOOLS)?;
    shell.leave().map(drop)
}

/// What the tools are asked, one after the other.
const TOOLS: &[Row<'_>] = &[
    (
        "dladm show-link",
        &["LINK", "CLASS", "eth0", "phys", "1500"],
    ),
    ("dladm show-phys -p -o link,device", &["eth0:eth0"]),
    (
        "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:51 vnic1; dladm show-vnic",
        &["vnic1", "eth0", "02:00:00:00:00:51", "fixed"],
    ),
    (
        "dladm show-vnic -p -o link,macaddress vnic1; dladm show-vnic -p -o macaddress vnic1",
        &["vnic1:02\\:00\\:00\\:00\\:00\\:51", "\n02:00:00:00:00:51"],
    ),
    (
        "ip link show dev vnic1",
        &[
            "3: vnic1: <BROADCAST,MULTICAST,UP",
            "link/ether 02:00:00:00:00:51",
        ],
    ),
    ("cat /proc/net/dev", &["vnic1:"]),
    (
        "dladm create-vlan -t -l eth0 -v 2; dladm show-vlan",
        &["eth2000", "eth0"],
    ),
    (
        "dladm create-vlan -t -l eth0 -v 4095 || echo refused $?",
        &["refused 2"],
    ),
    (
        "dladm create-etherstub -t stub0; dladm show-etherstub",
        &["stub0"],
    ),
    (
        "dladm show-linkprop -p maxbw,state vnic1",
        &["maxbw", "--", "state"],
    ),
    (
        "dladm set-linkprop -t -p maxbw=1M vnic1 || echo refused $?",
        &["refused 1"],
    ),
    (
        "dladm set-linkprop -t -p state=down vnic1 || echo refused $?",
        &["refused 1"],
    ),
    (
        "dladm set-linkprop -t -p maxbw=100M vnic1; dladm show-linkprop -c -o value -p maxbw vnic1",
        &["100"],
    ),
    (
        "dladm set-linkprop -t -p mtu=1400 vnic1; ip link show dev vnic1",
        &["mtu 1400"],
    ),
    (
        "dladm set-linkprop -t -p mtu=1400 eth0; ip link show dev eth0",
        &["mtu 1400"],
    ),
    (
        "dladm reset-linkprop -t -p mtu eth0; ip link show dev eth0",
        &["mtu 1500"],
    ),
    (
        "flowadm add-flow -t -l vnic1 -a transport=tcp,local_port=443 https; flowadm show-flow",
        &["https", "vnic1", "tcp", "443", "--"],
    ),
    (
        "flowadm add-flow -t -l vnic1 -a local_ip=10.0.2.51 mixed || echo refused $?",
        &["refused 1"],
    ),
    (
        "flowadm add-flow -t -l vnic1 -a local_port=25 port || echo refused $?",
        &["refused 1"],
    ),
    (
        "for k in 1 2; do flowadm add-flow -t -l eth2000 -a transport=tcp,local_port=$k s$k; done; flowadm show-flow -p -o flow,link; flowadm remove-flow -t -l eth2000; flowadm show-flow -p -o flow",
        &["s1:eth2000", "s2:eth2000", "\nhttps"],
    ),
    (
        "flowadm set-flowprop -t -p maxbw=500M https; flowadm show-flowprop https",
        &["500", "medium"],
    ),
    (
        "dladm delete-etherstub -t vnic1 || echo refused $?",
        &["refused 1"],
    ),
    (
        "ip addr add 10.0.2.51/24 dev vnic1; dladm delete-vnic -t vnic1; flowadm show-flow -p -o flow; ip link show dev vnic1",
        &["\"vnic1\" does not exist"],
    ),
    (
        "dladm delete-vlan -t eth2000; dladm delete-etherstub -t stub0; dladm show-link -p -o link",
        &["eth0"],
    ),
    (
        "dladm create-vnic -l eth0 vnic7; dladm set-linkprop -p maxbw=50M vnic7; dladm delete-vnic -t vnic7; dladm restore; dladm show-linkprop -c -o value -p maxbw vnic7",
        &["50"],
    ),
    (
        "chmod a+r /etc/dladm/datalink.conf; busybox setuidgid 1000 dladm delete-vnic -t vnic7 || echo refused $?",
        &["refused 1"],
    ),
];

/// The host pings an address so many times, one after the other; whether all are answered.
pub fn host_pings(address: &str, count: u32) -> Result<bool, String> {
    for _ in 0..count {
        let args = ["-4", "-n", "-c", "1", "-W", "20", address];
        let ping = Command::new(PING).args(args).output();
        if !ping.map_err(|error| error.to_string())?.status.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Section 1, checks 3 and 2 (the address half): stations on the card.
fn vnics(setup: &Setup) -> Result<(), String> {
    let mut shell = operator_of_vnics(setup)?;
    expect(
        &mut shell,
        &[
            ("p 3 -I 10.0.2.51 10.0.2.2", &["3 answered"]),
            ("p 3 10.0.2.2", &["3 answered"]),
            // They know each other now; what follows needs no ARP, which goes to everybody.
            ("p 1 -I 10.0.2.51 10.0.2.52", &["1 answered"]),
            (
                "ip neigh show dev vnic51",
                &["10.0.2.52 lladdr 02:00:00:00:00:52"],
            ),
        ],
    )?;
    let sent = "dladm show-link -s -p -o opackets";
    let received = "dladm show-link -s -p -o ipackets";
    let before = [
        number(&mut shell, &format!("{sent} eth0"))?,
        number(&mut shell, &format!("{received} vnic52"))?,
    ];
    expect(
        &mut shell,
        &[("p 20 -I 10.0.2.51 10.0.2.52", &["20 answered"])],
    )?;
    let after = [
        number(&mut shell, &format!("{sent} eth0"))?,
        number(&mut shell, &format!("{received} vnic52"))?,
    ];
    // Neighbours are asked anew now and then, and IPv6 speaks when it likes.
    if after[0] - before[0] >= 20 || after[1] - before[1] < 20 {
        return Err(format!("the wire or vnic52: {before:?}, then {after:?}"));
    }
    if setup.has_tap() {
        for address in ["10.0.2.51", "10.0.2.52", "10.0.2.15"] {
            if !host_pings(address, 3)? {
                return Err(shell
                    .guest
                    .explain(&format!("does not answer at {address}")));
            }
        }
    }
    expect(
        &mut shell,
        &[
            (
                "dladm delete-vnic -t vnic51; dladm delete-vnic -t vnic52; dladm show-vnic -p -o link; echo none",
                &["none"],
            ),
            ("p 3 10.0.2.2", &["3 answered"]),
        ],
    )?;
    shell.leave().map(drop)
}

/// A frame for a VNIC wakes it, each time, whichever CPU it waits on.
fn steady_vnics(setup: &Setup) -> Result<(), String> {
    let mut shell = operator_of_vnics(setup)?;
    let flush = "for k in 51 52; do ip neigh flush dev vnic$k; done";
    for _ in 0..10 {
        let asked_anew = format!("{flush}; p 1 -I 10.0.2.51 10.0.2.52");
        expect(&mut shell, &[(&asked_anew, &["1 answered"])])?;
    }
    let line = "ping -4 -n -q -c 2000 -i 0.002 -W 5 -I 10.0.2.51 10.0.2.52";
    expect(&mut shell, &[(line, &["2000 received"])])?;
    shell.leave().map(drop)
}

/// Cards that let only their own frames in until they are told.
fn other_cards(setup: &Setup) -> Result<(), String> {
    if !setup.has_our_pci() {
        return Ok(());
    }
    vnics(&setup.with_nic("igb"))?;
    vnics(&setup.with_nic("e1000"))
}

fn etherstub(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    expect(
        &mut shell,
        &[
            (
                "dladm create-etherstub -t stub0; for k in 1 2; do dladm create-vnic -t -l stub0 inner$k; ip addr add 192.168.7.$k/24 dev inner$k; done; dladm show-vnic -p -o link,over",
                &["inner1:stub0", "inner2:stub0"],
            ),
            ("p 3 -I 192.168.7.1 192.168.7.2", &["3 answered"]),
            ("p 3 -s 1550 -I 192.168.7.1 192.168.7.2", &["3 answered"]),
            (
                "ip route",
                &["192.168.7.0/24 dev inner1", "10.0.2.0/24 dev eth0"],
            ),
            (
                "dladm delete-etherstub -t stub0 || echo refused $?",
                &["refused 1"],
            ),
            (
                "for k in 1 2; do dladm delete-vnic -t inner$k; done; dladm delete-etherstub -t stub0; dladm show-link -p -o link",
                &["eth0"],
            ),
        ],
    )?;
    shell.leave().map(drop)
}

/// Section 2.3 and section 3, on the card's own link: nothing but the rules changes.
fn limits(setup: &Setup) -> Result<(), String> {
    with_each_card(setup, limits_with)
}

fn limits_with(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    let answered: Row<'_> = ("p 2 10.0.2.2", &["2 answered"]);
    let lost: Row<'_> = ("p 1 -W 1 10.0.2.2", &["0 answered"]);
    expect(
        &mut shell,
        &[
            answered,
            (
                "dladm set-linkprop -t -p protection=ip-nospoof,allowed-ips=10.0.2.15 eth0",
                &[],
            ),
            answered,
            ("dladm set-linkprop -t -p allowed-ips=10.0.2.77 eth0", &[]),
            lost,
            ("dladm reset-linkprop -t -p protection eth0", &[]),
            answered,
            (
                "flowadm add-flow -t -l eth0 -a transport=icmp -p maxbw=0 pings",
                &[],
            ),
            lost,
            ("flowadm set-flowprop -t -p maxbw=100M pings", &[]),
            answered,
            ("flowadm show-flow -s pings", &["pings"]),
            ("flowadm remove-flow -t pings", &[]),
            answered,
        ],
    )?;
    shell.leave().map(drop)
}

/// Each server sees one interface besides loopback, and its port is free there. What talks to both
/// is a client in the other's stack: its packets pass the link, and so the card's lanes.
fn two_redis(setup: &Setup) -> Result<(), String> {
    let programs = [
        "unshare",
        "nsenter",
        "redis-server",
        "redis-cli",
        "redis-benchmark",
    ];
    let paths = programs.map(|program| format!("/usr/bin/{program}"));
    let added = paths.iter().flat_map(|path| ["--add", path]);
    let mut shell = operator_with(setup, &added.collect::<Vec<_>>())?;
    for number in [51, 52] {
        shell.ask(&format!(
            "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:{number} vnic{number}; \
             unshare -n sleep 1000 & of{number}=$!; \
             in{number}() {{ nsenter -t $of{number} -n \"$@\"; }}; \
             until [ \"$(readlink /proc/$of{number}/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.1; done; \
             ip link set dev vnic{number} netns $of{number}; \
             in{number} {IP} addr add 10.0.2.{number}/24 dev vnic{number}; \
             in{number} redis-server --protected-mode no --save '' --appendonly no >/dev/null & \
             until in{number} redis-cli set stack vnic{number} >/dev/null; do sleep 0.2; done"
        ))?;
    }
    expect(
        &mut shell,
        &[
            ("ip link show dev vnic51 || echo gone", &["gone"]),
            (
                "in51 /usr/sbin/ip -br addr",
                &["lo", "vnic51", "10.0.2.51/24"],
            ),
            ("in51 redis-cli -h 10.0.2.52 get stack", &["vnic52"]),
            ("in52 redis-cli -h 10.0.2.51 get stack", &["vnic51"]),
            (
                "b='redis-benchmark -n 2000 -c 20 -t set,get --csv'; in51 $b -h 10.0.2.52 & \
                 in52 $b -h 10.0.2.51; wait $!; echo both",
                &["SET", "GET", "both"],
            ),
            (
                "in52 /usr/bin/ping -4 -n -c 1 -W 20 10.0.2.2",
                &["1 received"],
            ),
            // Links go back when their stacks end.
            (
                "in51 redis-cli shutdown; in52 redis-cli shutdown; kill $of51 $of52; \
                 until ip link show dev vnic52; do sleep 0.2; done; \
                 dladm delete-vnic -t vnic52; ip link show dev vnic52 || echo gone",
                &["vnic52: <BROADCAST", "gone"],
            ),
        ],
    )
}
