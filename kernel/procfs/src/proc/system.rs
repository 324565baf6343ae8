//! The files of the whole system: memory, CPUs, time.

use alloc::vec::Vec;
use core::fmt::{Result, Write};

use base::{CpuId, Instant, PAGE_BYTES};
use mm::commit;
use sched::sample::{CpuUse, cpu_use};
use task::{allocated_ids, family, thread_count};

use vfs::kinds;
use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("buddyinfo", super::frames::buddyinfo),
    Entry::new("cmdline", cmdline),
    Entry::new("cpuinfo", cpuinfo),
    Entry::new("devices", devices),
    Entry::new("filesystems", filesystems),
    Entry::new("loadavg", loadavg),
    Entry::new("meminfo", meminfo),
    Entry::new("microstates", super::microstates::generate),
    Entry::new("lock_stat", super::lock_stat::generate),
    Entry::new("resched", super::resched::generate),
    Entry::new("slabinfo", super::frames::slabinfo),
    Entry::new("stat", stat),
    Entry::new("swaps", swaps),
    Entry::new("uptime", uptime),
    Entry::new("version", version),
    Entry::new("vmstat", vmstat),
    Entry::new("volumes", fs_host::figures),
    Entry::new("zoneinfo", super::frames::zoneinfo),
];

const NANOS_PER_TICK: u64 = 10_000_000;

fn meminfo(text: &mut Text) -> Result {
    let memory = mach::mem::stats();
    let kib = |pages: u64| pages * (PAGE_BYTES as u64 / 1024);
    let balloon = mm::balloon::counts();
    let total = kib(memory.total.saturating_sub(balloon.lost));
    let free = kib(memory.free);
    let held = kib(balloon.held - balloon.lost);
    let heap = mach::mem::heap_bytes() / 1024;
    let stacks = mach::mem::resting_bytes() / 1024;
    let shared = kib(mm::page_count());
    let files = kernel_pagecache::counts();
    let cached = kib(files.pages);
    let clean = kib(files.pages.saturating_sub(files.dirty));
    let kernel_stacks = thread_count() as u64 * (mach::task::STACK_BYTES as u64 / 1024);
    let large = mach::mem::large_pages() as u64 * mach::mem::LARGE_PAGE_BYTES / 1024;
    for (name, amount) in [
        ("MemTotal:", total),
        ("MemFree:", free),
        ("MemAvailable:", free + stacks + clean),
        ("Buffers:", 0),
        ("Cached:", shared + cached),
        ("SwapCached:", 0),
        ("Active:", total.saturating_sub(free + held)),
        ("Inactive:", 0),
        ("SwapTotal:", 0),
        ("SwapFree:", 0),
        ("Dirty:", kib(files.dirty)),
        ("Writeback:", kib(files.under_way)),
        (
            "AnonPages:",
            total.saturating_sub(free + held + heap + shared + cached),
        ),
        ("Mapped:", 0),
        ("Shmem:", shared),
        ("KReclaimable:", 0),
        ("Slab:", heap),
        ("SReclaimable:", 0),
        ("SUnreclaim:", heap),
        ("KernelStack:", kernel_stacks),
        ("NFS_Unstable:", 0),
        ("Bounce:", 0),
        ("WritebackTmp:", 0),
        ("CommitLimit:", commit::limit_bytes() / 1024),
        ("Committed_AS:", commit::promised_bytes() / 1024),
        ("VmallocTotal:", 0),
        ("VmallocUsed:", 0),
        ("VmallocChunk:", 0),
        ("HardwareCorrupted:", 0),
        ("AnonHugePages:", large),
        ("ShmemHugePages:", 0),
        ("ShmemPmdMapped:", 0),
        ("FileHugePages:", 0),
        ("FilePmdMapped:", 0),
        ("Balloon:", kib(balloon.held)),
        ("HugePages_Total:", 0),
        ("HugePages_Free:", 0),
        ("HugePages_Rsvd:", 0),
        ("HugePages_Surp:", 0),
        ("Hugepagesize:", 2048),
        ("Hugetlb:", 0),
    ] {
        let unit = if name.starts_with("HugePages") {
            ""
        } else {
            " kB"
        };
        writeln!(text, "{name:<15} {amount:8}{unit}")?;
    }
    Ok(())
}

fn cpuinfo(text: &mut Text) -> Result {
    let hertz = mach::time::cycles_per_second();
    for cpu in 0..mach::cpu::count() {
        writeln!(text, "processor\t: {cpu}")?;
        writeln!(text, "vendor_id\t: Sietch\ncpu family\t: 6\nmodel\t\t: 0")?;
        writeln!(text, "model name\t: x86-64 virtual CPU\nstepping\t: 0")?;
        writeln!(
            text,
            "cpu MHz\t\t: {}.{:03}",
            hertz / 1_000_000,
            hertz / 1000 % 1000
        )?;
        writeln!(text, "physical id\t: 0\nsiblings\t: {}", mach::cpu::count())?;
        writeln!(
            text,
            "core id\t\t: {cpu}\ncpu cores\t: {}",
            mach::cpu::count()
        )?;
        writeln!(text, "apicid\t\t: {cpu}\nfpu\t\t: yes\nwp\t\t: yes")?;
        writeln!(
            text,
            "flags\t\t: fpu tsc msr cx8 sep cmov fxsr sse sse2 syscall nx lm"
        )?;
        writeln!(text, "clflush size\t: 64\ncache_alignment\t: 64\n")?;
    }
    Ok(())
}

/// User, system and idle time of one CPU, in ticks.
fn ticks(cpu: u32) -> [u64; 3] {
    let CpuUse { busy, idle_ns } = cpu_use(CpuId(cpu));
    [busy.user_ns, busy.system_ns, idle_ns].map(|nanos| nanos / NANOS_PER_TICK)
}

fn all_ticks() -> Vec<[u64; 3]> {
    (0..mach::cpu::count() as u32).map(ticks).collect()
}

/// Interrupt handlers only take notes, and nothing waits for a disk without the kernel
/// working for it; so neither time is told apart.
fn stat(text: &mut Text) -> Result {
    let cpus = all_ticks();
    let sum = |part: usize| cpus.iter().map(|cpu| cpu[part]).sum::<u64>();
    writeln!(text, "cpu  {} 0 {} {} 0 0 0 0 0 0", sum(0), sum(1), sum(2))?;
    for (number, [user, system, idle]) in cpus.iter().enumerate() {
        writeln!(text, "cpu{number} {user} 0 {system} {idle} 0 0 0 0 0 0")?;
    }
    let boot = clock::wall_now() - mach::time::now().since(Instant::START);
    writeln!(text, "intr {}", mach::irq::count())?;
    writeln!(text, "ctxt {}", sched::switch_count())?;
    writeln!(text, "btime {}", boot.as_secs())?;
    writeln!(
        text,
        "processes {}\nprocs_running {}",
        allocated_ids(),
        sched::runnable_count()
    )?;
    writeln!(text, "procs_blocked 0")
}

fn uptime(text: &mut Text) -> Result {
    let up = mach::time::now().as_millis() / 10;
    let idle: u64 = all_ticks().iter().map(|[_, _, idle]| idle).sum();
    writeln!(
        text,
        "{}.{:02} {}.{:02}",
        up / 100,
        up % 100,
        idle / 100,
        idle % 100
    )
}

fn loadavg(text: &mut Text) -> Result {
    let running = sched::runnable_count();
    let last = family::last_id();
    for average in sched::load_averages().hundredths() {
        write!(text, "{}.{:02} ", average / 100, average % 100)?;
    }
    writeln!(text, "{running}/{} {last}", thread_count())
}

fn version(text: &mut Text) -> Result {
    writeln!(
        text,
        "Linux version {} (sietch) #1 SMP Sietch {}",
        task::names::RELEASE,
        env!("CARGO_PKG_VERSION")
    )
}

fn cmdline(text: &mut Text) -> Result {
    writeln!(text, "{}", mach::boot::info().cmdline())
}

fn filesystems(text: &mut Text) -> Result {
    kinds::all().iter().try_for_each(|kind| {
        writeln!(
            text,
            "{}\t{}",
            if kind.nodev { "nodev" } else { "" },
            kind.name
        )
    })
}

fn devices(text: &mut Text) -> Result {
    text.push_str("Character devices:\n");
    let mut majors: alloc::vec::Vec<_> = vfs::devices::nodes()
        .iter()
        .map(|device| (device.major, device.name))
        .collect();
    majors.dedup_by_key(|(major, _)| *major);
    majors
        .iter()
        .try_for_each(|(major, name)| writeln!(text, "{major:3} {name}"))?;
    text.push_str("\nBlock devices:\n");
    // A family shows with its first disk.
    kernel_block::disks().try_for_each(|disk| {
        let mut same = kernel_block::disks().filter(|other| other.major() == disk.major());
        match same
            .next()
            .is_some_and(|first| first.number() == disk.number())
        {
            true => writeln!(text, "{:3} {}", disk.major(), disk.family().driver()),
            false => Ok(()),
        }
    })
}

fn swaps(text: &mut Text) -> Result {
    writeln!(text, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority")
}

fn vmstat(text: &mut Text) -> Result {
    super::frames::counters(text)?;
    super::frames::events(text)?;
    let events = mach::mem::tlb_events();
    events
        .iter()
        .try_for_each(|(name, count)| writeln!(text, "{name} {count}"))
}
