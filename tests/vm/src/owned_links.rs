//! VNICs whose frames a program takes, by the rings of an AF_XDP socket (`docs/rings.md`).

use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use qemu::namespace::TAP;

use crate::Test;
use crate::build;
use crate::card_filters::host;
use crate::guest::Setup;
use crate::link_counts::{CARDS, kstat, kstats};
use crate::links::{number, operator_with};
use crate::operator::Operator;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "frames between VNICs that a program owns arrive whole, whatever it writes into its rings",
        pair,
    ),
    (
        "a program that owns its rings answers the host for a VNIC, whatever the card",
        answers,
    ),
    (
        "a VNIC serves the next program when one is killed while frames come, and others go on",
        killed,
    ),
    (
        "a program that never looks at its rings loses its own frames only, each for a reason",
        deaf,
    ),
    (
        "a program hears that its VNIC is deleted while frames come, and others go on",
        deleted,
    ),
    (
        "filters over a VNIC give programs without rights what they say, once, and can be revoked",
        filters,
    ),
    (
        "a program without rights owns a port of a VNIC (filter) whose other ports and pings are the stack's",
        shares,
    ),
];

const UNSHARE: &str = "/usr/bin/unshare";
const STATION: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 61);
const NEIGHBOUR: &str = "10.0.2.62";
const MACHINE: &str = "10.0.2.15";
/// What the station answers, as it does any other.
const ECHO: u16 = 7;
/// Where the stack does.
const OTHER_PORT: u16 = 9;
const START: &str = "rm -f /tmp/said; xdp_station vnic61 10.0.2.61 >/tmp/said 2>&1 & \
                     until grep -qs . /tmp/said; do sleep 0.1; done; cat /tmp/said";

/// A machine with both programs and two VNICs over its card, one of which the stack keeps.
fn operator(setup: &Setup) -> Result<Operator, String> {
    let program = |name: &str| -> Result<String, String> {
        let source = format!("tests/programs/scenes/{name}.c");
        let built = build::c(Path::new(&source))?;
        Ok(format!("{}:/bin/{name}", built.display()))
    };
    let kstat = format!("{}:/bin/kstat", build::tool("admin", "kstat")?.display());
    let (station, pair) = (program("xdp_station")?, program("xdp_pair")?);
    let (filter, echo) = (program("xdp_filter")?, program("mmsg_echo")?);
    let flags = [
        "--add", &station, "--add", &pair, "--add", &filter, "--add", &echo, "--add", &kstat,
        "--add", UNSHARE,
    ];
    let mut shell = operator_with(setup, &flags)?;
    shell.ask(
        "dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61; \
         dladm create-vnic -t -l eth0 -m 2:0:0:0:0:62 vnic62; \
         ip addr add 10.0.2.62/24 dev vnic62",
    )?;
    Ok(shell)
}

fn on_each_card(
    setup: &Setup,
    test: impl Fn(&mut Operator) -> Result<(), String>,
) -> Result<(), String> {
    let is_possible = |card: &&&str| **card == "virtio" || setup.has_our_pci();
    for card in CARDS.iter().filter(is_possible) {
        let mut shell = operator(&setup.with_nic(card))?;
        test(&mut shell).map_err(|why| format!("{card}: {why}"))?;
        shell.leave()?;
    }
    Ok(())
}

/// The program's own tests, over an etherstub where nobody else says anything, and those that do not
/// mind others over each card.
fn pair(setup: &Setup) -> Result<(), String> {
    on_each_card(setup, |shell| {
        all_hold(shell, "xdp_pair vnic61 vnic62 beside")
    })?;
    let mut shell = operator(setup)?;
    shell.ask(
        "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; dladm create-etherstub -t stub0; \
         dladm create-vnic -t -l stub0 vnic1; dladm create-vnic -t -l stub0 vnic2",
    )?;
    all_hold(&mut shell, "xdp_pair vnic1 vnic2")?;
    limited(&mut shell)?;
    shell.ask(
        "xdp_pair vnic1 vnic2 hold >/tmp/held & \
         until grep -q bound /tmp/held; do sleep 0.1; done",
    )?;
    all_hold(
        &mut shell,
        "dladm delete-vnic -t vnic2; wait $!; cat /tmp/held",
    )?;
    shell.leave().map(drop)
}

/// The program's own tests, where nobody else says anything.
fn filters(setup: &Setup) -> Result<(), String> {
    let mut shell = operator(setup)?;
    shell.ask(
        "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; dladm create-etherstub -t stub0; \
         dladm create-vnic -t -l stub0 vnic1; dladm create-vnic -t -l stub0 vnic2; \
         ip addr add 10.9.0.2/24 dev vnic2",
    )?;
    all_hold(&mut shell, "xdp_filter vnic1 vnic2")?;
    let left = shell.ask("dladm show-filter; dladm show-doorbell; echo end")?;
    match left.contains("vnic") {
        true => Err(format!("something is left: {left}")),
        false => shell.leave().map(drop),
    }
}

/// The station has port 7 of an address, and the stack the address: the host pings it, and gets an answer at
/// another port; then the filter is taken away.
fn shares(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        forget_station()?;
        shell.ask("ip addr add 10.0.2.61/24 dev vnic61")?;
        shell.ask(&format!(
            "mmsg_echo {OTHER_PORT} {STATION} >/dev/null & other=$!"
        ))?;
        let said = shell.ask(&START.replace(" >", " filtered >"))?;
        if !said.contains("\nserving") {
            return Err(format!("the station does not start: {said}"));
        }
        let shown = shell.ask("dladm show-filter -p -o link,queue,uid,rx vnic61")?;
        let row = "vnic61:0:65534:local_ip=10.0.2.61,transport=udp,local_port=7";
        if !shown.contains(row) {
            return Err(format!("the filter is shown as {shown}"));
        }
        let shown = shell.ask("dladm show-doorbell -p -o link,queue,state,tx vnic61")?;
        if !shown.contains("vnic61:0:armed:0") {
            return Err(format!("the doorbell is shown as {shown}"));
        }
        let socket = client()?;
        for len in LENGTHS {
            echoes(&socket, len, 1)?;
            is_answered(shell, &STATION.to_string())?;
        }
        echoes(&socket, 1000, WINDOW)?;
        under_flood(|_| echoes(&client_of(OTHER_PORT)?, 777, 1))?;
        let hits = number(shell, "dladm show-filter -p -o hits vnic61")?;
        if hits < (LENGTHS.len() + WINDOW) as u64 {
            return Err(format!("the filter has {hits} hits"));
        }
        others_answer(shell)?;
        let said = shell.ask(
            "dladm delete-filter vnic61 $(dladm show-filter -p -o id vnic61); \
             until grep -q gone /tmp/said; do sleep 0.1; done; cat /tmp/said; kill $other",
        )?;
        match said.contains("the link is gone") {
            true => is_answered(shell, &STATION.to_string()),
            false => Err(format!(
                "the program keeps a filter that is revoked: {said}"
            )),
        }
    })
}

fn limited(shell: &mut Operator) -> Result<(), String> {
    shell.ask("dladm set-linkprop -t -p maxbw=10M vnic1; dladm set-linkprop -t -p protection=mac-nospoof vnic1")?;
    let forged = "dladm show-link -s -p -o macspoofed vnic1";
    let before = number(shell, forged)?;
    all_hold(shell, "xdp_pair vnic1 vnic2 limited")?;
    let after = number(shell, forged)?;
    match after - before {
        1 => Ok(()),
        count => Err(format!("{count} forged frames were counted")),
    }
}

/// Types a line that runs tests of a program.
fn all_hold(shell: &mut Operator, line: &str) -> Result<(), String> {
    let said = shell.ask(&format!("{line}; echo status $?"))?;
    match said.contains("\nok ") && !said.contains("not ok") && said.contains("status 0") {
        true => Ok(()),
        false => Err(format!("{line}: {said}")),
    }
}

/// A datagram of each length comes back, one at a time and many at once, to one who found the station
/// by ARP.
fn answers(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        forget_station()?;
        starts(shell)?;
        let socket = client()?;
        for len in LENGTHS {
            echoes(&socket, len, 1)?;
        }
        echoes(&socket, 1000, WINDOW)?;
        others_answer(shell)?;
        // ARP, and all that came back.
        let sent = kstat(shell, "vnic61:0:xdp:opackets")?;
        let taken = kstat(shell, "vnic61:0:xdp:ipackets")?;
        if sent < (LENGTHS.len() + WINDOW) as u64 || taken < sent {
            return Err(format!("{taken} frames are counted in, {sent} out"));
        }
        shell.ask("kill $!; wait $!").map(drop)
    })
}

const LENGTHS: [usize; 6] = [0, 1, 18, 777, 1471, 1472];
/// Datagrams under way at once.
const WINDOW: usize = 32;
const ATTEMPTS: usize = 20;

fn client() -> Result<UdpSocket, String> {
    client_of(ECHO)
}

fn client_of(port: u16) -> Result<UdpSocket, String> {
    let bound = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((STATION, port))?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        Ok(socket)
    });
    bound.map_err(|error| error.to_string())
}

/// So many datagrams sent at once come back as they were; a host that is busy may lose some.
fn echoes(socket: &UdpSocket, len: usize, count: usize) -> Result<(), String> {
    let datagram = |number: usize| -> Vec<u8> { (0..len).map(|at| (at + number) as u8).collect() };
    for _ in 0..ATTEMPTS {
        let sent = (0..count).try_for_each(|number| socket.send(&datagram(number)).map(drop));
        sent.map_err(|error| error.to_string())?;
        let mut buffer = [0; 2048];
        let mut comes = |number: usize| {
            let bytes = socket.recv(&mut buffer);
            bytes.is_ok_and(|bytes| buffer[..bytes] == datagram(number))
        };
        if (0..count).all(&mut comes) {
            return Ok(());
        }
        drain(socket)?;
    }
    Err(format!("{count} datagrams of {len} bytes do not come back"))
}

/// Takes what came too late.
fn drain(socket: &UdpSocket) -> Result<(), String> {
    let emptied = socket.set_nonblocking(true).and_then(|()| {
        while socket.recv(&mut [0; 1]).is_ok() {}
        socket.set_nonblocking(false)
    });
    emptied.map_err(|error| error.to_string())
}

fn forget_station() -> Result<(), String> {
    host("ip", &["neighbour", "flush", "to", &STATION.to_string()]).map(drop)
}

fn starts(shell: &mut Operator) -> Result<(), String> {
    let said = shell.ask(START)?;
    match said.contains("\nserving") {
        true => Ok(()),
        false => Err(format!("the station does not start: {said}")),
    }
}

/// The stack has its card and the other VNIC as ever.
fn others_answer(shell: &mut Operator) -> Result<(), String> {
    for address in [MACHINE, NEIGHBOUR] {
        is_answered(shell, address)?;
    }
    Ok(())
}

/// The host gets an answer; it loses a request itself where its queue is full.
fn is_answered(shell: &mut Operator, address: &str) -> Result<(), String> {
    for _ in 0..ATTEMPTS {
        let said = host("ping", &["-4", "-n", "-c", "1", "-W", "2", address])?;
        if said.contains(" bytes from ") {
            return Ok(());
        }
    }
    let why = format!("does not answer at {address}");
    Err(shell.guest.explain(&why))
}

/// Kills the program while its frames come. Then the address is the stack's, which has it all the
/// time; then another program's; and in the end there is as much memory as at the beginning.
fn killed(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        shell.ask("ip addr add 10.0.2.61/24 dev vnic61")?;
        under_flood(|echoed| {
            kill_and_start(shell, echoed)?;
            let before = number(shell, FREE_KIB)?;
            (0..KILLS).try_for_each(|_| kill_and_start(shell, echoed))?;
            let after = number(shell, FREE_KIB)?;
            match after + LEAK_KIB_MAX >= before {
                true => Ok(()),
                false => Err(format!("{before} KiB were free, and then {after}")),
            }
        })
    })
}

/// Each program pins half a MiB, so this is much less than all that they had.
const KILLS: u32 = 20;
const LEAK_KIB_MAX: u64 = 5 * 1024;
const FREE_KIB: &str = "awk '/MemFree/ {print $2}' /proc/meminfo";

fn kill_and_start(shell: &mut Operator, echoed: &AtomicU64) -> Result<(), String> {
    starts(shell)?;
    comes(echoed)?;
    shell.ask("kill -9 $!; wait $!")?;
    is_answered(shell, &STATION.to_string())?;
    others_answer(shell)
}

/// Waits until some more datagrams have come back.
fn comes(echoed: &AtomicU64) -> Result<(), String> {
    let wanted = echoed.load(Ordering::Relaxed) + 50;
    let deadline = Instant::now() + PATIENCE;
    while echoed.load(Ordering::Relaxed) < wanted {
        if Instant::now() > deadline {
            return Err("no datagram comes back".into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `act` while the host sends datagrams to the station all the time; it is told how many
/// came back so far.
fn under_flood(act: impl FnOnce(&AtomicU64) -> Result<(), String>) -> Result<(), String> {
    let socket = client()?;
    let nonblocking = socket.set_nonblocking(true);
    nonblocking.map_err(|error| error.to_string())?;
    let (is_over, echoed) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&socket, &is_over, &echoed));
        let done = act(&echoed);
        is_over.store(true, Ordering::Relaxed);
        let flooded = flood.join().map_err(|_| "the flood panicked".to_string());
        done.and(flooded)
    })
}

/// Datagrams of the flood every few milliseconds.
const FLOOD_FRAMES: usize = 8;

/// No faster than a busy host and a machine take them. Nobody may be there to take them, or to be
/// found by ARP.
fn flood(socket: &UdpSocket, is_over: &AtomicBool, echoed: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..FLOOD_FRAMES {
            let _ = socket.send(&[7; 500]);
        }
        thread::sleep(Duration::from_millis(5));
        while socket.recv(&mut [0; 1]).is_ok() {
            echoed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// All chunks are in the rx ring soon, and the program never takes one out.
fn deaf(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        let known = format!("neighbour replace {STATION} lladdr 02:00:00:00:00:61 dev {TAP}");
        host("ip", &known.split(' ').collect::<Vec<_>>())?;
        shell.ask(&START.replace(" >", " deaf >"))?;
        under_flood(|_| {
            while kstat(shell, "vnic61:0:xdp:rx_ring_full")? < CHUNKS {
                others_answer(shell)?;
            }
            Ok(())
        })?;
        let counts = kstats(shell, "vnic61:0:xdp:")?;
        let count = |name: &str| counts.get(&format!("vnic61:0:xdp:{name}")).copied();
        let all: u64 = counts.values().sum();
        let explained = count("ipackets").zip(count("rx_ring_full"));
        match explained {
            Some((CHUNKS, full)) if full > 0 && CHUNKS + full == all => {}
            _ => return Err(format!("{counts:?}")),
        }
        shell.ask("kill -9 $!; wait $!")?;
        let said = shell.ask("kstat -p 'vnic61:0:xdp:'; echo $?")?;
        match said.contains("rx_ring_full") {
            true => Err(format!("it counts without a program: {said}")),
            false => Ok(()),
        }
    })
}

/// What the station has.
const CHUNKS: u64 = 256;

fn deleted(setup: &Setup) -> Result<(), String> {
    if !setup.has_tap() {
        return Ok(());
    }
    on_each_card(setup, |shell| {
        under_flood(|echoed| {
            for _ in 0..3 {
                starts(shell)?;
                comes(echoed)?;
                let said =
                    shell.ask("dladm delete-vnic -t vnic61; wait $!; echo $?; cat /tmp/said")?;
                if !said.contains("the link is gone") {
                    return Err(format!("the program does not hear of it: {said}"));
                }
                others_answer(shell)?;
                shell.ask("dladm create-vnic -t -l eth0 -m 2:0:0:0:0:61 vnic61")?;
            }
            moved(shell)
        })
    })
}

/// A link that another stack gets is as good as gone, and that stack's.
fn moved(shell: &mut Operator) -> Result<(), String> {
    starts(shell)?;
    let said = shell.ask(
        "station=$!; unshare -n sleep 1000 & other=$!; \
         until [ \"$(readlink /proc/$other/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; \
         do sleep 0.1; done; ip link set dev vnic61 netns $other; \
         wait $station; cat /tmp/said; kill $other",
    )?;
    match said.contains("the link is gone") {
        true => others_answer(shell),
        false => Err(format!("the program keeps a link that moved: {said}")),
    }
}
