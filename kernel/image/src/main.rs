//! The bootable kernel.
//!
//! `mach` sets the machine up and calls `kernel_main` on the first CPU; from there the
//! boot order can be read off this file. Its one unsafe attribute gives that function the
//! name that `mach` calls.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod devices;
mod options;

use core::panic::PanicInfo;

use ::{clock, dev, task};
use base::Duration;
use exec::Arguments;
use linux::First;
use mach::klog;
use mm::{balloon, garbage};
use net::{Config, Config6, TimeWait};
use perf::profile;
use task::{net_namespace, signal};
use tty::console;
use vfs::file;

use crate::options::Run;

/// Where `mach` hands over: the machine is set up, one CPU runs.
#[expect(unsafe_code, reason = "the symbol is defined here and nowhere else")]
// SAFETY: `mach::setup` declares the symbol with this type.
#[unsafe(no_mangle)]
fn kernel_main() -> ! {
    let archives = mach::boot::info().archives();
    let run = Run::from_archives(archives);
    let run = run.unwrap_or_else(|| {
        klog!("the host says something about the program that makes no sense");
        mach::power::off(STATUS_BAD_IMAGE)
    });
    set_clock();
    pci::init(devices::virtual_functions);
    net_namespace::init(net::first().clone());
    task::adopt_boot_thread();
    sched::init();
    clock::init();
    garbage::init();
    file::async_io::init();
    signal::files::init();
    linux::init();
    tty::init(run.host.unwrap_or(console::Host::SerialStream));
    dev::init();
    net::register_devices();
    inet_sockets::register_devices();
    kernel_netlink::init();
    ipc::init();
    unix::init();
    procfs::init();
    mqueue::init();
    fs_9p::init();
    fs_virtiofs::init();
    kernel_block::init();
    kernel_vsa::init();
    fs_ext4::init();
    fs_overlay::init();
    if let Err(error) = fs_tmp::boot::mount_all(archives) {
        klog!("the image's file system is unusable: {error:?}");
        mach::power::off(STATUS_BAD_IMAGE);
    }
    mach::setup::start_secondary_cpus(task::start_cpu);
    iommu::init();
    net::init(time_wait());
    // Interrupts are led to CPUs that run.
    devices::start();
    kernel_vfio::init(allows_unconfined_devices());
    procfs::sys::add_iommu_groups();
    net::configure(address());
    net::configure6(net::first(), address_v6());
    let flushes = task::start_kernel_thread(
        kernel_pagecache::run_flusher,
        *b"flush\0\0\0\0\0\0\0\0\0\0\0",
    );
    let closes = task::start_kernel_thread(mm::close_left, *b"close\0\0\0\0\0\0\0\0\0\0\0");
    if !flushes || !closes {
        klog!("no memory for who brings files' pages down, and who closes files");
        mach::power::off(STATUS_BAD_IMAGE);
    }
    start_balloon();
    perf::init();
    profile::init(profile_ring_bytes());
    start_program(run);
    start_profile();
    sched::run()
}

/// Starts the thread of a machine that has a balloon.
fn start_balloon() {
    let name = *b"balloon\0\0\0\0\0\0\0\0\0";
    if balloon::is_attached() && !task::start_kernel_thread(balloon::run, name) {
        klog!("no memory for who keeps the balloon");
    }
}

/// A shell's status for what cannot be executed.
const STATUS_BAD_IMAGE: i32 = 126;

/// The host's wall clock before the start, where the command line tells it (`epoch=SECONDS.NANOS`).
fn set_clock() {
    let since_1970 = options::raw_values("epoch").last().and_then(|text| {
        let (secs, nanos) = text.split_once('.')?;
        Some(Duration::new(secs.parse().ok()?, nanos.parse().ok()?))
    });
    if let Some(since_1970) = since_1970 {
        mach::time::wall_is_after(since_1970);
    }
}

/// The size of the profiler's rings (`profile_ring=BYTES`).
fn profile_ring_bytes() -> usize {
    let text = options::raw_values("profile_ring").last();
    text.and_then(|text| text.parse().ok())
        .unwrap_or(profile::RING_BYTES)
}

/// Has the profiler do from the boot on what the host could ask for later
/// (`profile=REQUESTS`).
fn start_profile() {
    let requests = options::raw_values("profile").last().unwrap_or("");
    for request in requests.bytes() {
        profile::obey(request);
    }
}

/// Whether programs may drive devices that reach all memory
/// (`vfio.enable_unsafe_noiommu_mode=1`, the name of Linux's parameter).
fn allows_unconfined_devices() -> bool {
    options::raw_values("vfio.enable_unsafe_noiommu_mode").last() == Some("1")
}

/// Whether the network has the bug of the clumsy kernel, for teaching (`clumsy=1`).
fn time_wait() -> TimeWait {
    match options::raw_values("clumsy").last() {
        Some("1") => TimeWait::Clumsy,
        _ => TimeWait::Careful,
    }
}

/// What the command line says about the machine's address.
fn address() -> Config {
    let text = options::raw_values("ip").last();
    text.and_then(Config::parse).unwrap_or(Config::Dhcp)
}

/// What it says about its IPv6 address.
fn address_v6() -> Config6 {
    let text = options::raw_values("ip6").last();
    text.and_then(Config6::parse).unwrap_or(Config6::Auto)
}

fn start_program(run: Run) {
    if let Some(name) = options::value("hostname")
        && task::names::first().host.set(&name).is_err()
    {
        klog!("the name of the machine is too long");
    }
    if let Some(name) = options::value("domainname")
        && task::names::first().domain.set(&name).is_err()
    {
        klog!("the name of the domain is too long");
    }
    let path = options::value("init").or_else(|| run.arguments.first().cloned());
    let first = First {
        arguments: Arguments {
            path: path.unwrap_or_else(|| b"/sbin/init".to_vec()),
            values: run.arguments,
            environment: run.environment,
        },
        directory: run.directory,
        user: run.user,
        groups: run.groups,
        capabilities: run.capabilities.unwrap_or(cred::CAPABILITIES_ALL),
        gains_nothing: run.gains_nothing,
        settings: run.settings,
        is_traced: options::value("strace").is_some_and(|value| value == b"1"),
        root: options::root(),
        covered: options::values("cover").collect(),
        is_read_only: options::value("ro").is_some_and(|value| value == b"1"),
        is_packed: options::value("packed").is_some_and(|value| value == b"1"),
        volumes: options::volumes(),
    };
    if linux::start_init(first).is_err() {
        klog!("no memory for the first program: give the machine more");
        mach::power::off(STATUS_BAD_IMAGE);
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    mach::panic::panic(info)
}
