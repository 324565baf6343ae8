//! Boots Sietch with small and real programs and looks at what they do.
//!
//!     cargo run -p vm-tests -- [--cpus N] [--machine q35|microvm] [--nic virtio|e1000|igb]
//!         [--linux] [--long] [--host busy|quiet] [WORD...]
//!
//! Each test is a sentence and a function; words choose those whose sentence has one
//! of them. A test drives the command `sietch` as a user would. The small C programs
//! of `tests/programs` run in one machine, one after the other, and each of their
//! lines `ok NAME` or `not ok NAME: why` counts as a test of its own.
//!
//! With `--linux` the same tests run on Debian's Linux as a guest, which
//! `tools/linux-guest.sh` prepares: what fails there is the test's fault.
//!
//! With `--long` the monkey makes its full count of calls, Redis serves a million requests
//! where its leaks are looked for, 64 machines show their clocks, and machines run under KVM
//! as well.
//!
//! Tests judge by what a machine does, not by when; so two runs at once, each in its own
//! namespace and folder, disturb each other little. Those that measure a rate, a clock or a load
//! are for a quiet host: `--host busy` leaves them out, `--host quiet` runs no others.
//!
//! The last line is `N passed, N failed`, and the status says whether any failed.

#![forbid(unsafe_code)]

mod area_edges;
mod areas;
mod attached;
mod backlogs;
mod balloon;
mod beside;
mod bochs;
mod build;
mod bypass;
mod c_io;
mod c_programs;
mod cached;
mod card_filters;
mod cards;
mod clients;
mod clocks;
mod cloud;
mod clumsy;
mod compose;
mod connections;
mod copied;
mod counters;
mod databases;
mod datagrams;
mod deafness;
mod debian_image;
mod disk_faults;
mod disks;
mod docker;
mod entered;
mod etcd;
mod exchanged;
mod execs;
mod exhaustion;
mod figures;
mod firmware;
mod go;
mod guest;
mod handed;
mod handshakes;
mod haproxy;
mod http;
mod images;
mod iommu;
mod ipv6;
mod java;
mod kvm;
mod lifecycle;
mod link_checks;
mod link_counts;
mod link_cpus;
mod link_frames;
mod link_order;
mod link_restore;
mod links;
mod logged;
mod logged_cuts;
mod lone_frames;
mod many_cpus;
mod mariadb;
mod memcached;
mod monkey;
mod mounts;
mod narrow;
mod native_io;
mod netlink;
mod netstat;
mod network;
mod network_connect;
mod networks;
mod nginx;
mod node;
mod numa;
mod nvme;
mod nvme_functions;
mod operator;
mod own_card;
mod owned_links;
mod packing;
mod passed;
mod perf;
mod ping;
mod ports;
mod postgres;
mod power_cuts;
mod pressure;
mod profile;
mod programs;
mod python;
mod rabbitmq;
mod redis;
mod redis_leaks;
mod relayed;
mod repaired;
mod resp;
mod rings;
mod root_disk;
mod roots;
mod seen;
mod shared_root;
mod shell;
mod snapshots;
mod snoop;
mod socket_programs;
mod socket_rings;
mod sqlite;
mod statistics;
mod status;
mod storm;
mod streams;
mod stretch;
mod sysctl;
mod tally;
mod tcpdump;
mod threads;
mod tokio;
mod tokio_rings;
mod tracing;
mod umem;
mod userland;
mod vfio;
mod virtiofs;
mod virtual_functions;
mod volume;
mod volumes;
mod wordpress;
mod workers;
mod zerocopy;

use std::process::ExitCode;

use guest::{Host, Setup};
use tally::Tally;

/// A test: its sentence and what it does. An error says why it failed.
type Test = (&'static str, fn(&Setup) -> Result<(), String>);

/// Tests of what only our kernel has.
fn ours(setup: &Setup, tests: &'static [Test]) -> &'static [Test] {
    if setup.is_linux() { &[] } else { tests }
}

/// How many CPUs a machine has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cpus {
    One,
    Several,
}

/// Whether what takes long, and that one CPU more or less is not the point of, runs in these machines: the short form
/// runs it once. Which with one CPU and which with several, so that either run takes as long as the other.
fn runs(setup: &Setup, with: Cpus) -> bool {
    let cpus = match setup.cpus() {
        "1" => Cpus::One,
        _ => Cpus::Several,
    };
    setup.is_long() || cpus == with
}

/// Tests of that kind.
fn once(setup: &Setup, with: Cpus, tests: &'static [Test]) -> &'static [Test] {
    if runs(setup, with) { tests } else { &[] }
}

/// Tests that show the same as others, with more of everything.
fn long(setup: &Setup, tests: &'static [Test]) -> &'static [Test] {
    if setup.is_long() { tests } else { &[] }
}

/// Tests that measure a rate, a clock or a load, and want the host to themselves.
fn suites_for_quiet_host(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        rings::TESTS_OF_LOAD,
        lone_frames::TESTS,
        once(setup, Cpus::Several, clocks::TESTS),
        once(setup, Cpus::Several, link_checks::TESTS),
    ]
}

/// Tests of disks that neither fail nor lose power, and of folders that a daemon serves.
fn suites_of_disks(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        ours(setup, areas::TESTS),
        ours(setup, once(setup, Cpus::One, areas::TESTS_ONCE)),
        ours(setup, once(setup, Cpus::One, area_edges::TESTS_ONCE)),
        ours(setup, disks::TESTS),
        ours(setup, once(setup, Cpus::One, disks::TESTS_ONCE)),
        ours(setup, nvme::TESTS),
        ours(setup, nvme_functions::TESTS),
        ours(setup, once(setup, Cpus::One, nvme_functions::TESTS_ONCE)),
        ours(setup, once(setup, Cpus::One, nvme::TESTS_ONCE)),
        ours(setup, long(setup, virtiofs::tests())),
    ]
}

/// Tests of disks that fail or lose power.
fn suites_of_failing_disks(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        ours(setup, once(setup, Cpus::Several, disk_faults::TESTS)),
        ours(setup, once(setup, Cpus::One, disk_faults::TESTS_OF_NVME)),
        ours(setup, long(setup, disk_faults::TESTS_LONG)),
        ours(setup, once(setup, Cpus::Several, power_cuts::TESTS)),
        ours(
            setup,
            once(setup, Cpus::Several, power_cuts::TESTS_OF_POSTGRES),
        ),
        ours(setup, once(setup, Cpus::One, power_cuts::TESTS_OF_NVME)),
    ]
}

/// Tests of what machines start from: folders and images.
fn suites_of_images(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        ours(setup, once(setup, Cpus::Several, root_disk::TESTS)),
        ours(setup, roots::TESTS),
        ours(setup, once(setup, Cpus::Several, roots::TESTS_OF_APACHE)),
        ours(setup, images::TESTS),
        ours(setup, once(setup, Cpus::Several, images::TESTS_ONCE)),
        ours(setup, once(setup, Cpus::Several, shared_root::TESTS_ONCE)),
    ]
}

/// The other tests of what only runs in a machine, in the order in which they run: servers and their like.
fn suites_of_servers(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        status::TESTS,
        once(setup, Cpus::One, figures::TESTS),
        statistics::TESTS,
        shell::TESTS,
        sqlite::TESTS,
        redis::TESTS,
        once(setup, Cpus::One, umem::TESTS),
        volume::TESTS,
        ours(setup, volumes::TESTS),
        ours(setup, once(setup, Cpus::Several, networks::TESTS)),
        ours(setup, once(setup, Cpus::Several, ports::TESTS_ONCE)),
        ours(setup, once(setup, Cpus::Several, compose::TESTS_ONCE)),
        ours(setup, databases::TESTS),
        ours(setup, logged::TESTS),
        ours(setup, once(setup, Cpus::Several, logged_cuts::TESTS)),
        ours(
            setup,
            once(setup, Cpus::Several, databases::TESTS_OF_SERVERS),
        ),
        ours(setup, long(setup, databases::TESTS_OF_MARIADB)),
        ours(setup, once(setup, Cpus::Several, volumes::TESTS_ONCE)),
        ours(setup, cached::TESTS),
        once(setup, Cpus::One, cards::TESTS),
        once(setup, Cpus::One, iommu::TESTS),
        once(setup, Cpus::Several, vfio::TESTS),
        virtual_functions::TESTS,
        rings::TESTS,
        connections::TESTS,
        redis_leaks::TESTS,
        relayed::TESTS,
        ours(setup, repaired::TESTS),
        pressure::TESTS,
        handshakes::TESTS,
        once(setup, Cpus::One, exhaustion::TESTS),
        long(setup, exhaustion::TESTS_OF_128_MIB),
        deafness::TESTS,
        numa::TESTS,
        many_cpus::TESTS,
        memcached::TESTS,
        nginx::TESTS,
        ipv6::TESTS,
        datagrams::TESTS,
        zerocopy::TESTS,
        narrow::TESTS,
        python::TESTS,
        go::TESTS,
        once(setup, Cpus::Several, node::TESTS),
        once(setup, Cpus::Several, java::TESTS),
        tokio::TESTS,
        haproxy::TESTS,
        etcd::TESTS,
        once(setup, Cpus::One, postgres::TESTS),
        once(setup, Cpus::Several, mariadb::TESTS),
        long(setup, rabbitmq::TESTS),
        once(setup, Cpus::One, netlink::TESTS),
        once(setup, Cpus::One, netstat::TESTS),
        once(setup, Cpus::One, sysctl::TESTS),
        clumsy::TESTS,
        once(setup, Cpus::One, profile::TESTS),
        monkey::TESTS,
        storm::TESTS,
    ]
}

/// Programs as they are installed, and from images.
fn suites_of_programs(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        ours(setup, once(setup, Cpus::One, programs::TESTS_WITH_ONE)),
        ours(
            setup,
            once(setup, Cpus::Several, programs::TESTS_WITH_SEVERAL),
        ),
        ours(setup, long(setup, programs::TESTS_LONG)),
        ours(setup, long(setup, wordpress::TESTS)),
    ]
}

/// Those of the machine's tools, its files and its links.
fn suites_of_tools(setup: &Setup) -> Vec<&'static [Test]> {
    vec![
        // The serial port, all that Linux has here, is one stream for everything.
        ours(setup, once(setup, Cpus::One, mounts::TESTS)),
        ours(setup, once(setup, Cpus::Several, many_cpus::TESTS_OF_NAPS)),
        ours(setup, streams::TESTS),
        ours(setup, entered::TESTS),
        ours(setup, attached::TESTS),
        ours(setup, balloon::TESTS),
        ours(setup, copied::TESTS),
        ours(setup, once(setup, Cpus::One, lifecycle::TESTS)),
        ours(setup, once(setup, Cpus::One, docker::TESTS)),
        ours(setup, snapshots::TESTS),
        ours(setup, ports::TESTS),
        ours(setup, once(setup, Cpus::One, firmware::TESTS)),
        ours(setup, once(setup, Cpus::One, cloud::TESTS)),
        ours(setup, long(setup, cloud::TESTS_LONG)),
        ours(setup, once(setup, Cpus::One, packing::TESTS)),
        ours(setup, once(setup, Cpus::One, bochs::TESTS)),
        ours(setup, shell::TESTS_OF_PORTS),
        once(setup, Cpus::One, stretch::TESTS),
        tcpdump::TESTS,
        once(setup, Cpus::One, tracing::TESTS),
        once(setup, Cpus::Several, perf::TESTS),
        ping::TESTS,
        once(setup, Cpus::One, links::TESTS),
        once(setup, Cpus::One, links::TESTS_OF_MANY),
        once(setup, Cpus::Several, beside::TESTS),
        once(setup, Cpus::Several, card_filters::TESTS),
        once(setup, Cpus::One, link_counts::TESTS),
        once(setup, Cpus::Several, link_cpus::TESTS),
        link_order::TESTS,
        once(setup, Cpus::One, link_restore::TESTS),
        once(setup, Cpus::Several, owned_links::TESTS),
        native_io::TESTS,
        once(setup, Cpus::One, native_io::TESTS_OF_FRAMES),
        c_io::TESTS,
        bypass::TESTS,
        socket_rings::TESTS,
        tokio_rings::TESTS,
        seen::TESTS,
        exchanged::TESTS,
        once(setup, Cpus::Several, bypass::TESTS_OF_MORE),
        once(setup, Cpus::One, socket_programs::TESTS_OF_LOOPBACK),
        once(setup, Cpus::Several, socket_programs::TESTS_OF_LINK),
        workers::TESTS,
        threads::TESTS,
        backlogs::TESTS,
        handed::TESTS,
        execs::TESTS,
        passed::TESTS,
        once(setup, Cpus::One, own_card::TESTS),
        snoop::TESTS,
    ]
}

/// The suites for the host as it is.
fn suites_of(setup: &Setup) -> Vec<&'static [Test]> {
    let busy = [
        suites_of_images(setup),
        suites_of_servers(setup),
        suites_of_programs(setup),
        suites_of_disks(setup),
        suites_of_failing_disks(setup),
        suites_of_tools(setup),
    ]
    .concat();
    let quiet = suites_for_quiet_host(setup);
    match setup.host() {
        Some(Host::Busy) => busy,
        Some(Host::Quiet) => quiet,
        None => [busy, quiet].concat(),
    }
}

fn main() -> ExitCode {
    if !qemu::namespace::is_inside()
        && let Err(why) = build::command()
    {
        eprintln!("vm-tests: {why}");
        return ExitCode::FAILURE;
    }
    qemu::namespace::enter();
    let (setup, words) = match Setup::from_args(std::env::args().skip(1)) {
        Ok(parsed) => parsed,
        Err(sentence) => {
            eprintln!("vm-tests: {sentence}");
            return ExitCode::FAILURE;
        }
    };
    let is_chosen = |sentence: &str| {
        words.is_empty() || words.iter().any(|word| sentence.contains(word.as_str()))
    };
    let mut tally = Tally::default();
    if setup.host() != Some(Host::Quiet) && is_chosen(c_programs::SENTENCE) {
        c_programs::run(&setup, &mut tally);
    }
    for (sentence, test) in suites_of(&setup).into_iter().flatten() {
        if is_chosen(sentence) {
            tally.run(sentence, || test(&setup));
        }
    }
    if setup.is_long() && is_chosen(kvm::SENTENCE) {
        kvm::run(&setup, &mut tally);
    }
    // Where it was never made, there is nothing to remove.
    let _ = std::fs::remove_dir_all(guest::state_folder());
    tally.finish()
}
